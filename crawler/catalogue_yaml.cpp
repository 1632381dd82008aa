// Metric tables as YAML (rocprof-compute's analysis configurations, rocprofiler's counter definitions): turned into JSON, within limits on
// depth and on the size that aliases unfold to, and read as that.
#include "crawler/charset.hpp"
#include "crawler/metric_names.hpp"
#include "crawler/parsers.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <unordered_map>
#include <yaml-cpp/yaml.h>

namespace pragma::crawler {

namespace {

constexpr int max_yaml_depth = 48;
constexpr size_t max_nodes = 500'000;       ///< aliases included: a few lines of them can stand for billions
constexpr size_t max_unfolded_bytes = 64u << 20;
constexpr size_t max_unfolded_description = 8000;

struct budget {
  size_t nodes = 0, bytes = 0;
  bool spent = false;
};

json as_json(const YAML::Node& node, int depth, budget& used) {
  if (++used.nodes > max_nodes || used.bytes > max_unfolded_bytes || depth > max_yaml_depth) {
    used.spent = true;
    return nullptr;
  }
  if (node.IsScalar()) {
    used.bytes += node.Scalar().size();
    return node.Scalar();
  }
  if (node.IsSequence()) {
    json list = json::array();
    for (const auto& part : node) {
      if (used.spent) break;
      list.push_back(as_json(part, depth + 1, used));
    }
    return list;
  }
  if (node.IsMap()) {
    json object = json::object();
    for (const auto& part : node) {
      if (used.spent) break;
      if (part.first.IsScalar()) object[part.first.Scalar()] = as_json(part.second, depth + 1, used);
    }
    return object;
  }
  return nullptr;
}

/// rocprof-compute keeps the words apart from the tables: {"metrics_description": {"VALU FLOPs": "text", ...}}. Those words go to the
/// records of that name, or become records.
void take_descriptions(const json& value, document& d, std::unordered_map<std::string, size_t>& records, int depth = 0) {
  if (depth > max_yaml_depth || !value.is_structured()) return;
  if (value.is_object())
    for (const auto& [k, part] : value.items()) {
      auto plain = ascii_lower(k);
      std::replace(plain.begin(), plain.end(), ' ', '_');
      if (!part.is_object() || (plain != "metrics_description" && plain != "metric_descriptions" && plain != "descriptions")) continue;
      for (const auto& [name, words] : part.items()) {
        if (!words.is_string() && !words.is_object()) continue;
        metric_record r;
        r.name = name;
        if (words.is_string()) r.description = words.get<std::string>();
        else
          for (const char* key : {"plain", "description", "rst"})
            if (r.description.empty() && words.contains(key) && words[key].is_string()) r.description = words[key].get<std::string>();
        if (words.is_object() && words.contains("unit") && words["unit"].is_string()) r.unit = words["unit"].get<std::string>();
        if (const auto known = records.find(name); known == records.end()) {
          if (add_record(d, std::move(r))) records.emplace(name, d.records.size() - 1);
        } else if (auto& have = d.records[known->second].description; have.empty()) {
          have = utf8_prefix(one_line(clean_text(r.description)), max_unfolded_description);
        }
      }
    }
  for (const auto& part : value) take_descriptions(part, d, records, depth + 1);
}

} // namespace

expected<document> parse_yaml_catalogue(std::string_view utf8, std::string_view url) {
  const std::string where(url);
  if (utf8.size() > limits::yaml_bytes)
    return fail(ec::limit_exceeded, where + ": " + format_bytes(static_cast<double>(utf8.size())) + " of YAML, more than the " +
                                        format_bytes(static_cast<double>(limits::yaml_bytes)) + " that are read",
                "leave it out with a deny pattern, or split it");
  document d;
  d.base = url;
  budget used;
  json root = json::array();
  try {
    for (const auto& part : YAML::LoadAll(std::string(utf8))) root.push_back(as_json(part, 0, used));
  } catch (const YAML::Exception& e) {
    const auto& at = e.mark;
    return fail(
        ec::parse_error,
        where + ": not valid YAML" +
            (at.is_null() ? "" : " at line " + std::to_string(at.line + 1) + ", column " + std::to_string(at.column + 1)) + ": " +
            one_line(printable(e.msg)));
  }
  if (used.spent) d.notes.push_back("cut: its nesting or its aliases unfold to more than is read");
  take_records(root, d);
  std::unordered_map<std::string, size_t> records;
  for (size_t i = 0; i < d.records.size(); ++i) records.emplace(d.records[i].name, i);
  take_descriptions(root, d, records);
  if (d.records.empty()) return no_records(url, "YAML", {});
  return d;
}

} // namespace pragma::crawler
