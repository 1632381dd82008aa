// Lists of metrics as JSON -> records, without knowing who wrote them: an object with a name and something that describes it is a record,
// and so is each entry of an object whose keys are names. That covers Intel's perfmon ({Header, Events}), the kernel's pmu-events
// (a flat list), Arm's (a dictionary by name), `perf list -j`, and rocprofiler's. YAML comes here by way of catalogue_yaml.cpp.
#include "crawler/charset.hpp"
#include "crawler/metric_names.hpp"
#include "crawler/parsers.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

namespace pragma::crawler {

namespace {

constexpr size_t max_name_bytes = 200, max_description_bytes = 8000, max_field_bytes = 2000, max_fields = 64, max_title_bytes = 300;
constexpr size_t max_steps = 5'000'000;     ///< objects and arrays that are visited

// `subject`: "event", "counter": a name, unless there is a better one ("Counter" in Intel's lists says which counters can count it).
// `reference`: the name of an event that other files describe (the kernel's ArchStdEvent).
enum class key { other, name, subject, reference, brief, description, title, unit, scale, formula, container, skipped, marks };

/// Keys without case and separators: "EventName", "event_name", "Event Name" are one.
key key_of(std::string_view text) {
  static const std::map<std::string, key, std::less<>> keys = {{"eventname", key::name},
                                                               {"metricname", key::name},
                                                               {"countername", key::name},
                                                               {"name", key::name},
                                                               {"archstdevent", key::reference},
                                                               {"metric", key::subject},
                                                               {"event", key::subject},
                                                               {"counter", key::subject},
                                                               {"symbol", key::name},
                                                               {"briefdescription", key::brief},
                                                               {"summary", key::brief},
                                                               {"shortdescription", key::brief},
                                                               {"description", key::description},
                                                               {"publicdescription", key::description},
                                                               {"longdescription", key::description},
                                                               {"desc", key::description},
                                                               {"plain", key::description},
                                                               {"title", key::title},
                                                               {"unit", key::unit},
                                                               {"units", key::unit},
                                                               {"unitofmeasure", key::unit},
                                                               {"metricunit", key::unit},
                                                               {"scaleunit", key::scale},
                                                               {"formula", key::formula},
                                                               {"expression", key::formula},
                                                               {"metricexpr", key::formula},
                                                               {"expr", key::formula},
                                                               {"value", key::formula},
                                                               {"avg", key::formula},
                                                               {"events", key::container},
                                                               {"metrics", key::container},
                                                               {"counters", key::container},
                                                               {"datasource", key::container},
                                                               {"header", key::skipped},
                                                               {"groups", key::skipped},
                                                               {"methodologies", key::skipped},
                                                               {"productconfiguration", key::skipped},
                                                               {"panelconfig", key::container},
                                                               {"code", key::marks},
                                                               {"eventcode", key::marks},
                                                               {"configcode", key::marks},
                                                               {"architectures", key::marks},
                                                               {"block", key::marks},
                                                               {"definitions", key::marks},
                                                               {"tips", key::marks},
                                                               {"peak", key::marks},
                                                               {"rst", key::other}};
  std::string plain;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c))) plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const auto it = keys.find(plain);
  return it == keys.end() ? key::other : it->second;
}

/// A scalar as text; a list of scalars with commas; empty for anything deeper.
std::string text_of(const json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number()) return value.dump();
  if (!value.is_array()) return {};
  std::string all;
  for (const auto& part : value) {
    if (part.is_structured() || part.is_null()) return {};
    all += (all.empty() ? "" : ", ") + text_of(part);
    if (all.size() > max_field_bytes) break;
  }
  return all;
}

/// What a formula's letters stand for, [{"Name": "INST_RETIRED.ANY", "Alias": "a"}]: "a = INST_RETIRED.ANY"; empty where it is something else.
std::string references_of(const json& value) {
  std::string all;
  if (!value.is_array()) return all;
  for (const auto& part : value) {
    if (!part.is_object()) return {};
    std::string who, letter;
    for (const auto& [k, text] : part.items()) {
      if (!text.is_string()) continue;
      if (key_of(k) == key::name) who = text.get<std::string>();
      else if (ascii_lower(k) == "alias") letter = text.get<std::string>();
    }
    if (who.empty()) return {};
    all += (all.empty() ? "" : ", ") + (letter.empty() ? who : letter + " = " + who);
    if (all.size() > max_field_bytes) break;
  }
  return all;
}

/// The kernel's "Unit" is the box that counts ("cpu", "iMC"), not what is counted in.
bool is_counting_box(const json& object, const std::string& unit) {
  return !is_unit(unit) && (object.contains("EventName") || object.contains("MetricName") || object.contains("ArchStdEvent"));
}

/// What an object says about the metric `name` (empty: it says that itself).
metric_record record_of(const json& object, std::string name) {
  metric_record r;
  r.name = std::move(name);
  for (const auto wanted : {key::name, key::reference, key::subject})
    for (const auto& [k, value] : object.items())
      if (r.name.empty() && key_of(k) == wanted) r.name = text_of(value);
  std::string brief, title, scale;
  for (const auto& [k, value] : object.items()) {
    auto text = text_of(value);
    if (value.is_object() && ascii_lower(k) == "architectures")
      for (const auto& [chip, definition] : value.items())
        if (text.size() < max_field_bytes && definition.is_structured()) text += (text.empty() ? "" : ", ") + chip;
    if (text.empty()) text = references_of(value);
    if (text.empty()) continue;
    switch (key_of(k)) {
      case key::name:
      case key::reference:
      case key::subject:
        if (text != r.name && r.fields.size() < max_fields) r.fields.emplace(k, std::move(text));
        break;
      case key::brief: brief = std::move(text); break;
      case key::description:
        if (text.size() > r.description.size()) r.description = std::move(text);
        break;
      case key::title: title = std::move(text); break;
      case key::scale: scale = std::move(text); break;
      case key::unit:
        if (!is_counting_box(object, text)) {
          r.unit = std::move(text);
          break;
        }
        [[fallthrough]];
      default:
        if (r.fields.size() < max_fields) r.fields.emplace(k, std::move(text));
    }
  }
  if (r.description.empty()) r.description = brief.empty() ? std::exchange(title, {}) : std::exchange(brief, {});
  if (!brief.empty() && brief != r.description) r.fields.emplace("Brief description", brief);
  if (!title.empty() && title != r.description && title != r.name) r.fields.emplace("Title", title);
  if (!scale.empty()) {
    // "100%" and "1per_instr": the factor, then the unit that the product has.
    const auto digits = scale.find_first_not_of("0123456789.e+-");
    auto unit = digits == std::string::npos ? std::string() : scale.substr(digits);
    if (r.unit.empty()) r.unit = unit.starts_with("per_") ? "1/" + unit.substr(4) : unit;
    r.fields.emplace("ScaleUnit", std::move(scale));
  }
  return r;
}

bool describes(const json& object) {
  for (const auto& [k, value] : object.items()) {
    const auto what = key_of(k);
    if (what == key::brief || what == key::description || what == key::formula || what == key::marks || what == key::unit ||
        what == key::scale || what == key::reference)
      return true;
  }
  return false;
}

bool has_name(const json& object) {
  for (const auto& [k, value] : object.items())
    if ((key_of(k) == key::name || key_of(k) == key::subject || key_of(k) == key::reference) && value.is_string()) return true;
  return false;
}

/// A list of metrics that are described there. A metric's own "Events": [{"Name": ..., "Alias": "a"}] only refers to others.
bool holds_others(const json& object) {
  for (const auto& [k, value] : object.items()) {
    if ((key_of(k) != key::container && key_of(k) != key::subject) || !value.is_structured()) continue;
    for (const auto& part : value)
      if (part.is_array() || (part.is_object() && describes(part))) return true;
  }
  return false;
}

/// {"CPU_CYCLES": {"description": ...}, ...}: most values are objects that describe something and do not name it.
bool is_dictionary_by_name(const json& object) {
  size_t described = 0, objects = 0;
  for (const auto& [k, value] : object.items()) {
    if (key_of(k) != key::other && key_of(k) != key::name && key_of(k) != key::subject) return false;
    if (!value.is_object()) continue;
    ++objects;
    described += describes(value) && !has_name(value) && !holds_others(value);
  }
  return objects > 0 && described * 2 > objects;
}

} // namespace

bool add_record(document& d, metric_record r) {
  auto clean = [](std::string& text, size_t most) { text = utf8_prefix(one_line(clean_text(text)), most); };
  clean(r.name, max_name_bytes);
  clean(r.unit, 60);
  clean(r.description, max_description_bytes);
  const bool letters = std::any_of(r.name.begin(), r.name.end(), [](char c) { return std::isalpha(static_cast<unsigned char>(c)); });
  if (!letters) return false;
  std::map<std::string, std::string> fields;
  for (auto& [k, value] : r.fields) {
    auto header = one_line(clean_text(k));
    auto text = value;
    clean(text, max_field_bytes);
    if (!text.empty()) fields.emplace(utf8_prefix(header, 100), std::move(text));
  }
  r.fields = std::move(fields);
  if (r.unit.empty()) r.unit = unit_in_brackets(r.name);
  if (d.records.size() >= limits::records) {
    if (d.notes.empty() || !d.notes.back().starts_with("cut after"))
      d.notes.push_back("cut after " + std::to_string(limits::records) + " records");
    return false;
  }
  d.records.push_back(std::move(r));
  return true;
}

tl::unexpected<error> no_records(std::string_view url, std::string_view format, const std::string& seen) {
  return fail(ec::parse_error,
              std::string(url) + ": this " + std::string(format) + " names no metric" + (seen.empty() ? "" : " (" + seen + ")"),
              "a catalogue needs a name for each metric (keys or columns such as \"name\", \"EventName\", \"Metric Name\") and a "
              "description");
}

void take_records(const json& root, document& d) {
  // With a stack of our own: the nesting is the writer's choice.
  std::vector<const json*> open = {&root};
  size_t steps = 0;
  while (!open.empty() && d.records.size() < limits::records) {
    if (++steps > max_steps) {
      d.notes.push_back("cut: more than " + std::to_string(max_steps) + " nested values");
      return;
    }
    const auto& value = *open.back();
    open.pop_back();
    std::vector<const json*> children;
    if (value.is_array()) {
      for (const auto& part : value)
        if (part.is_structured()) children.push_back(&part);
    } else if (value.is_object()) {
      if (d.title.empty() && value.contains("title") && value["title"].is_string())
        d.title = one_line(clean_text(value["title"].get_ref<const std::string&>()));
      // Intel's {"Header": {"Info": "Performance Monitoring Events for ..."}} says which processor.
      if (d.title.empty() && value.contains("Header") && value["Header"].is_object() && value["Header"].contains("Info") && value["Header"]["Info"].is_string())
        d.title = one_line(clean_text(utf8_prefix(value["Header"]["Info"].get_ref<const std::string&>(), max_title_bytes)));
      if (has_name(value) && describes(value) && !holds_others(value)) {
        add_record(d, record_of(value, {}));
        continue;
      }
      const bool by_name = is_dictionary_by_name(value);
      for (const auto& [k, part] : value.items()) {
        if (!part.is_structured() || key_of(k) == key::skipped) continue;
        if (by_name && part.is_object()) add_record(d, record_of(part, k));
        else children.push_back(&part);
      }
    }
    open.insert(open.end(), children.rbegin(), children.rend()); // in order of appearance
  }
}

expected<document> parse_json_catalogue(std::string_view utf8, std::string_view url) {
  auto root = parse_json(utf8, url);
  if (!root) return fail(root.error());
  document d;
  d.base = url;
  take_records(*root, d);
  if (d.records.empty())
    return no_records(url, "JSON",
                      root->is_object() && !root->empty()
                          ? "its first key is '" + std::string(utf8_prefix(root->begin().key(), 60)) + "'"
                          : std::string());
  return d;
}

} // namespace pragma::crawler
