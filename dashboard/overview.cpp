#include "dashboard/dashboard.hpp"

#include <algorithm>

namespace pragma::dashboard {

namespace {

constexpr size_t longest_text = 300; ///< of a reason or rationale in a row

const json& at(const json& object, const char* key) {
  static const json none;
  if (!object.is_object()) return none;
  const auto it = object.find(key);
  return it == object.end() ? none : *it;
}

std::string text_of(const json& object, const char* key) {
  const auto& value = at(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// Cut between characters, so that it stays valid UTF-8.
std::string shortened(std::string text) {
  if (text.size() <= longest_text) return text;
  size_t end = longest_text;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + " ...";
}

int number_of(const json& iteration) {
  const auto& n = at(iteration, "number");
  return n.is_number_integer() ? n.get<int>() : 0;
}

json row_of(const json& it, int compared_with) {
  const auto& time = at(at(at(it, "code"), "measured"), "time");
  json row = {{"number", number_of(it)},       {"stage", text_of(it, "stage")},  {"reason", shortened(text_of(it, "reason"))}, {"new_best", at(it, "new_best") == json(true)},
              {"origin", text_of(it, "origin")}, {"finished", text_of(it, "finished")}, {"rationale", shortened(text_of(at(it, "code"), "rationale"))}, {"compared_with", compared_with}};
  if (text_of(it, "stage") == "passed") {
    row["speedup"] = at(time, "speedup");
    row["seconds"] = at(time, "candidate_seconds");
    row["torch_seconds"] = at(time, "baseline_seconds");
    row["contended"] = at(time, "contended");
  }
  if (const auto& ratio = at(it, "against_best"); at(ratio, "value").is_number() && at(ratio, "value").get<double>() > 0) row["against_best"] = ratio;
  if (const auto& findings = at(it, "findings"); findings.is_array() && !findings.empty()) row["finding"] = {{"what", at(findings[0], "what")}, {"level", at(findings[0], "level")}};
  return row;
}

} // namespace

json overview(const json& document) {
  const auto& run = at(document, "run");
  json short_run = json::object();
  for (const char* key : {"id", "state", "started", "finished", "stop_reason", "best", "confirmed", "final", "totals", "options", "environment", "usage", "owner"})
    if (const auto& value = at(run, key); !value.is_null()) short_run[key] = value;
  const auto& task = at(run, "task");
  short_run["task"] = {{"name", at(task, "name")}, {"path", at(task, "path")}, {"category", at(task, "category")}, {"flops", at(task, "flops")}, {"bytes", at(task, "bytes")}};
  json rows = json::array();
  int best = 0;
  if (const auto& all = at(document, "iterations"); all.is_array())
    for (const auto& it : all) {
      rows.push_back(row_of(it, best));
      if (at(it, "new_best") == json(true)) best = number_of(it);
    }
  return {{"run", std::move(short_run)}, {"attempts", std::move(rows)}};
}

expected<json> attempt_of(const json& document, int number, int against, const source& from) {
  const json *wanted = nullptr, *before = nullptr;
  if (const auto& all = at(document, "iterations"); all.is_array())
    for (const auto& it : all) {
      if (number_of(it) == number) wanted = &it;
      const bool fits = against > 0 ? number_of(it) == against : at(it, "new_best") == json(true) && number_of(it) < number;
      if (fits) before = &it;
    }
  if (!wanted) return fail(ec::not_found, "there is no attempt " + std::to_string(number));
  json answer = {{"attempt", *wanted}};
  if (!before || before == wanted) return answer;
  answer["against"] = {{"number", number_of(*before)}, {"metrics", at(at(at(*before, "code"), "measured"), "metrics")}};
  answer["diff"] = from.diff(text_of(at(*before, "code"), "source"), text_of(at(*wanted, "code"), "source"));
  return answer;
}

} // namespace pragma::dashboard
