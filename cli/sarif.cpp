// Findings as SARIF: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
#include "cli/interchange.hpp"

#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/html.hpp"
#include "diagnosis/conductor.hpp"

#include <algorithm>
#include <cctype>

namespace pragma {

namespace {

/// A path as a URI reference (RFC 3986): what is neither unreserved nor a separator is percent-encoded.
std::string uri_of(const std::string& path) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const unsigned char c : path) {
    if ((c < 0x80 && std::isalnum(c)) || c == '-' || c == '_' || c == '.' || c == '~' || c == '/') out += static_cast<char>(c);
    else ((out += '%') += digits[c >> 4]) += digits[c & 15];
  }
  return out;
}

std::string in_words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

json result_of(const finding& f, size_t rule, const std::string& uri) {
  std::string text = printable(f.why);
  for (const auto& remedy : f.remedies) text += "\nTry: " + printable(remedy);
  return {{"ruleId", json(f.what)},
          {"ruleIndex", rule},
          {"level", f.what == bottleneck::at_roofline || f.at_limit ? "note" : "warning"},
          {"message", {{"text", text}}},
          {"rank", std::clamp(100 * f.confidence, 0.0, 100.0)},
          {"locations", {{{"physicalLocation", {{"artifactLocation", {{"uri", uri}, {"index", 0}}}, {"region", {{"startLine", f.line}}}}}}}},
          {"properties", {{"confidence", f.confidence}, {"level", printable(f.level)}}}};
}

} // namespace

expected<json> sarif_of(const json& document, const std::string& file) {
  const auto& run = html::object_at(document, "run");
  const auto best = static_cast<int>(html::number_at(run, "best"));
  for (const auto& value : html::array_at(document, "iterations")) {
    if (best <= 0 || static_cast<int>(html::number_at(value, "number")) != best) continue;
    auto attempt = from_json_value<iteration_record>(value, "attempt " + std::to_string(best));
    if (!attempt) return fail(attempt.error());
    const auto uri = uri_of(file);
    json rules = json::array(), results = json::array();
    int elsewhere = 0;
    for (const auto& f : attempt->findings) {
      if (f.line <= 0) {
        ++elsewhere;
        continue;
      }
      const auto id = json(f.what).get<std::string>();
      const auto known = std::find_if(rules.begin(), rules.end(), [&](const json& r) { return r["id"] == id; });
      const auto rule = static_cast<size_t>(known - rules.begin());
      if (known == rules.end()) rules.push_back({{"id", id}, {"shortDescription", {{"text", in_words(id)}}}});
      results.push_back(result_of(f, rule, uri));
    }
    json log = {{"tool", {{"driver", {{"name", "PRAGMA"}, {"version", pragma_version}, {"rules", std::move(rules)}}}}},
                {"automationDetails", {{"id", "pragma/" + printable(html::text_at(html::object_at(run, "task"), "name")) + "/" + printable(html::text_at(run, "id"))}}},
                {"columnKind", "utf16CodeUnits"},
                {"artifacts", {{{"location", {{"uri", uri}}}, {"contents", {{"text", printable(attempt->code.source)}}}}}},
                {"results", std::move(results)},
                {"properties", {{"attempt", best}, {"findings_without_line", elsewhere}}}};
    return json{{"$schema", "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"}, {"version", "2.1.0"}, {"runs", {std::move(log)}}};
  }
  return fail(ec::not_found, "the run has no accepted version, so there is nothing to annotate", "`pragma show RUN` says why its attempts failed");
}

} // namespace pragma
