#include "profilers/manifest.hpp"

#include "base/text.hpp"
#include "diagnosis/finding.hpp"

#include <algorithm>
#include <fnmatch.h>
#include <regex>

namespace pragma {

namespace {

template <class T> std::vector<std::string> keys_of(const T& value) {
  std::vector<std::string> names;
  const json members = value;
  for (const auto& [key, ignored] : members.items()) names.push_back(key);
  return names;
}

/// One object of the manifest as a struct; its keys are those of the struct.
template <class T> expected<T> read_struct(const json& value, const std::string& where) {
  auto kept = only_known_keys(value, keys_of(T{}), where);
  if (!kept) return fail(kept.error());
  return from_json_value<T>(*kept, where);
}

/// A list of such objects under `key`; nothing when there is no such key.
template <class T> expected<std::vector<T>> read_structs(const json& object, const char* key, const std::string& where) {
  std::vector<T> all;
  if (!object.contains(key)) return all;
  const auto here = where + ": " + key;
  if (!object[key].is_array()) return fail(ec::parse_error, here + " must be a list");
  for (const auto& member : object[key]) {
    auto one = read_struct<T>(member, here);
    if (!one) return fail(one.error());
    all.push_back(std::move(*one));
  }
  return all;
}

/// An object with free keys, without its comments.
expected<json> read_map(const json& object, const char* key, const std::string& where) {
  json kept = json::object();
  if (!object.contains(key)) return kept;
  if (!object[key].is_object()) return fail(ec::parse_error, where + ": " + key + " must be an object");
  for (const auto& [name, value] : object[key].items())
    if (!name.starts_with("_")) kept[name] = value;
  return kept;
}

expected<void> one_of(const std::string& value, const std::vector<std::string>& known, const std::string& where) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return {};
  return fail(ec::invalid_argument, where + " cannot be '" + printable(value.substr(0, 80)) + "'", "known: " + join(known, ", "));
}

expected<void> good_regex(const std::string& pattern, size_t groups, const std::string& where) {
  try {
    if (std::regex(pattern).mark_count() >= groups) return {};
    return fail(ec::invalid_argument, where + ": '" + printable(pattern) + "' has no group (...) around what is wanted");
  } catch (const std::regex_error& e) {
    return fail(ec::invalid_argument, where + ": '" + printable(pattern) + "' is no regular expression: " + e.what());
  }
}

expected<void> good_word(const std::string& word, const std::string& where) {
  for (const auto& name : placeholders_in(word)) {
    const auto& known = collect_placeholders();
    if (name == "metrics*" && word != "{metrics*}")
      return fail(ec::invalid_argument, where + ": {metrics*} is one word for each metric, so it stands alone", "{metrics} joins them with commas");
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto near = nearest_names(name, known, 1);
    return fail(ec::invalid_argument, where + ": unknown placeholder {" + printable(name) + "}",
                near.empty() ? "known: {" + join(known, "}, {") + "}" : "did you mean {" + near.front() + "}?");
  }
  return {};
}

expected<void> good_argv(const std::vector<json>& argv, const std::string& where) {
  for (const auto& word : argv) {
    const auto words = word.is_array() ? word : json::array({word});
    for (const auto& w : words) {
      if (!w.is_string()) return fail(ec::parse_error, where + ": argv holds words and lists of words");
      if (auto good = good_word(w.get<std::string>(), where + ": argv"); !good) return good;
    }
  }
  if (argv.empty() || argv.back() != "{target}")
    return fail(ec::invalid_argument, where + ": argv must end with \"{target}\", where the candidate's command line stands");
  const auto targets = std::count_if(argv.begin(), argv.end(), [](const json& w) { return w.dump().find("{target}") != std::string::npos; });
  if (targets != 1) return fail(ec::invalid_argument, where + ": {target} must stand once in argv");
  return {};
}

expected<void> check_output(const pass_output& o, const std::string& where) {
  if (o.file.empty() == o.stream.empty()) return fail(ec::invalid_argument, where + ": one of file and stream must be given");
  if (!o.stream.empty())
    if (auto good = one_of(o.stream, {"stdout", "stderr"}, where + ": stream"); !good) return good;
  if (auto good = one_of(o.format, {"csv", "json", "jsonl", "table"}, where + ": format"); !good) return good;
  if (o.separator.size() != 1) return fail(ec::invalid_argument, where + ": separator must be one character");
  if (!o.rows.empty() && o.rows.front() != '/') return fail(ec::invalid_argument, where + ": rows is a JSON pointer, as \"/results\"");
  const auto& c = o.columns;
  if (c.metric.empty() != c.value.empty()) return fail(ec::invalid_argument, where + ": columns.metric and columns.value go together");
  if (c.start.empty() != c.end.empty()) return fail(ec::invalid_argument, where + ": columns.start and columns.end go together");
  if (c.rule.empty() != c.rule_text.empty()) return fail(ec::invalid_argument, where + ": columns.rule and columns.rule_text go together");
  return {};
}

expected<pass_output> read_output(const json& value, const std::string& where) {
  auto kept = only_known_keys(value, keys_of(pass_output{}), where);
  if (!kept) return fail(kept.error());
  if (kept->contains("columns")) {
    auto columns = only_known_keys((*kept)["columns"], keys_of(output_columns{}), where + ": columns");
    if (!columns) return fail(columns.error());
    (*kept)["columns"] = std::move(*columns);
  }
  auto output = from_json_value<pass_output>(*kept, where);
  if (!output) return output;
  if (auto good = check_output(*output, where); !good) return fail(good.error());
  return output;
}

expected<collect_pass> read_pass(const json& value, const std::string& whole) {
  auto kept = only_known_keys(value, {"name", "argv", "extra", "spare_time", "whole_run", "metrics", "outputs"}, whole + ": passes");
  if (!kept) return fail(kept.error());
  collect_pass pass;
  try {
    pass.name = kept->value("name", "");
    pass.argv = kept->value("argv", std::vector<json>());
    pass.extra = kept->value("extra", false);
    pass.spare_time = kept->value("spare_time", false);
    pass.whole_run = kept->value("whole_run", false);
  } catch (const json::exception& e) {
    return fail(ec::parse_error, whole + ": passes: " + e.what());
  }
  if (pass.name.empty()) return fail(ec::invalid_argument, whole + ": a pass has no name");
  const auto where = whole + ": pass " + printable(pass.name);
  if (auto good = good_argv(pass.argv, where); !good) return fail(good.error());
  const auto metrics = read_map(*kept, "metrics", where);
  if (!metrics) return fail(metrics.error());
  for (const auto& [name, unit] : metrics->items()) {
    if (!unit.is_string()) return fail(ec::parse_error, where + ": the unit of " + printable(name) + " must be a text");
    pass.metrics[name] = unit.get<std::string>();
  }
  if (!kept->contains("outputs") || !(*kept)["outputs"].is_array() || (*kept)["outputs"].empty())
    return fail(ec::invalid_argument, where + ": outputs must say where its results are");
  for (const auto& o : (*kept)["outputs"]) {
    auto output = read_output(o, where + ": outputs");
    if (!output) return fail(output.error());
    pass.outputs.push_back(std::move(*output));
  }
  return pass;
}

expected<std::map<std::string, unit_rule>> read_units(const json& collect, const std::string& where) {
  const auto units = read_map(collect, "units", where);
  if (!units) return fail(units.error());
  std::map<std::string, unit_rule> all;
  for (const auto& [printed, ours] : units->items()) {
    if (ours.is_string()) all[printed] = {ours.get<std::string>(), 1};
    else if (ours.is_array() && ours.size() == 2 && ours[0].is_string() && ours[1].is_number()) all[printed] = {ours[0].get<std::string>(), ours[1].get<double>()};
    else return fail(ec::parse_error, where + ": units: " + printable(printed) + " must be a unit, or [unit, factor]");
  }
  return all;
}

expected<name_rules> read_names(const json& collect, const std::string& where) {
  if (!collect.contains("names")) return name_rules{};
  auto names = read_struct<name_rules>(collect["names"], where + ": names");
  if (!names) return names;
  if (!names->pattern.empty())
    if (auto good = good_regex(names->pattern, 1, where + ": names: pattern"); !good) return fail(good.error());
  return names;
}

expected<probe_rules> read_probe(const json& collect, const std::string& where) {
  if (!collect.contains("probe")) return probe_rules{};
  auto kept = only_known_keys(collect["probe"], keys_of(probe_rules{}), where + ": probe");
  if (!kept) return fail(kept.error());
  auto checks = read_structs<probe_check>(*kept, "checks", where + ": probe");
  if (!checks) return fail(checks.error());
  kept->erase("checks");
  auto probe = from_json_value<probe_rules>(*kept, where + ": probe");
  if (!probe) return probe;
  probe->checks = std::move(*checks);
  for (const auto& word : probe->argv)
    if (!placeholders_in(word).empty() && word != "{program}")
      return fail(ec::invalid_argument, where + ": probe: argv knows one placeholder, {program}, as a word of its own; found '" + printable(word.substr(0, 80)) + "'");
  if (!probe->argv.empty())
    if (auto good = good_regex(probe->version, 1, where + ": probe: version"); !good) return fail(good.error());
  for (const auto& check : probe->checks)
    if (auto good = good_regex(check.pattern, 0, where + ": probe: checks"); !good) return fail(good.error());
  return probe;
}

/// [{"metric": "widgets", "above": 5, "bottleneck": "memory_latency_bound", "why": "...", "remedies": [...], "confidence": 0.7}]
expected<std::vector<diagnosis_rule>> read_rules(const json& collect, const std::string& where) {
  std::vector<diagnosis_rule> rules;
  if (!collect.contains("rules")) return rules;
  const auto here = where + ": rules";
  if (!collect["rules"].is_array()) return fail(ec::parse_error, here + " must be a list");
  std::vector<std::string> classes;
  for (int i = 0; i <= static_cast<int>(bottleneck::redundant_work); ++i) classes.push_back(json(static_cast<bottleneck>(i)).get<std::string>());
  for (const auto& item : collect["rules"]) {
    auto kept = only_known_keys(item, {"metric", "above", "below", "bottleneck", "why", "remedies", "confidence", "ask"}, here);
    if (!kept) return fail(kept.error());
    diagnosis_rule rule;
    try {
      rule.metric = kept->value("metric", "");
      rule.bottleneck = kept->value("bottleneck", "");
      rule.why = kept->value("why", "");
      rule.remedies = kept->value("remedies", std::vector<std::string>());
      rule.confidence = kept->value("confidence", rule.confidence);
      rule.ask = kept->value("ask", std::vector<std::string>());
      rule.below = kept->contains("below");
      if (kept->contains("above") == rule.below) return fail(ec::invalid_argument, here + ": give either \"above\" or \"below\", a number");
      rule.threshold = kept->at(rule.below ? "below" : "above").get<double>();
    } catch (const json::exception& e) {
      return fail(ec::parse_error, here + ": " + e.what());
    }
    if (rule.metric.empty() || rule.why.empty()) return fail(ec::invalid_argument, here + ": a rule needs \"metric\" and \"why\"");
    if (!(rule.confidence >= 0 && rule.confidence <= 1)) return fail(ec::invalid_argument, here + ": confidence must lie between 0 and 1");
    if (auto known = one_of(rule.bottleneck, classes, here + ": bottleneck"); !known) return fail(known.error());
    rules.push_back(std::move(rule));
  }
  return rules;
}

} // namespace

std::map<std::string, std::string> collect_manifest::default_metrics() const {
  std::map<std::string, std::string> all;
  for (const auto& pass : passes) all.insert(pass.metrics.begin(), pass.metrics.end());
  return all;
}

const std::vector<std::string>& collect_placeholders() {
  static const std::vector<std::string> known{"program", "target", "scratch", "metrics", "metrics*", "max_launches"};
  return known;
}

std::vector<std::string> placeholders_in(const std::string& word) {
  static const std::regex braces(R"(\{([A-Za-z_]+\*?)\})");
  std::vector<std::string> names;
  for (auto at = std::sregex_iterator(word.begin(), word.end(), braces); at != std::sregex_iterator(); ++at) names.push_back((*at)[1]);
  return names;
}

bool fits_pattern(const std::string& text, const std::string& pattern) { return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0; }

expected<collect_manifest> parse_collect_manifest(const json& manifest, const std::string& what) {
  if (!manifest.is_object() || !manifest.contains("collect") || manifest["collect"].is_null())
    return fail(ec::not_found, what + " does not say how to collect metrics (it has no \"collect\")");
  const auto where = what + ": collect";
  const auto top = only_known_keys(manifest["collect"], {"program", "install", "probe", "time", "combine", "units", "names", "obstacles", "errors", "passes", "rules"}, where);
  if (!top) return fail(top.error());
  collect_manifest m;
  try {
    m.name = manifest.value("name", "");
    m.backends = manifest.value("backend", std::vector<std::string>());
    m.programs = top->value("program", std::vector<std::string>());
    m.install = top->value("install", "");
    m.time = top->value("time", "");
    m.errors = top->value("errors", std::vector<std::string>());
  } catch (const json::exception& e) {
    return fail(ec::parse_error, where + ": " + e.what());
  }
  if (m.programs.empty()) return fail(ec::invalid_argument, where + ": program must list at least one program");
  auto probe = read_probe(*top, where);
  if (!probe) return fail(probe.error());
  m.probe = std::move(*probe);
  auto combine = read_structs<combine_rule>(*top, "combine", where);
  if (!combine) return fail(combine.error());
  for (const auto& rule : *combine)
    if (auto good = one_of(rule.how, {"sum", "max", "mean", "longest"}, where + ": combine: how"); !good) return fail(good.error());
  m.combine = std::move(*combine);
  auto units = read_units(*top, where);
  if (!units) return fail(units.error());
  m.units = std::move(*units);
  auto names = read_names(*top, where);
  if (!names) return fail(names.error());
  m.names = std::move(*names);
  auto lists = read_structs<name_list>(manifest, "catalogue", what);
  if (!lists) return fail(lists.error());
  m.lists = std::move(*lists);
  auto obstacles = read_structs<obstacle_rule>(*top, "obstacles", where);
  if (!obstacles) return fail(obstacles.error());
  m.obstacles = std::move(*obstacles);
  if (!top->contains("passes") || !(*top)["passes"].is_array() || (*top)["passes"].empty())
    return fail(ec::invalid_argument, where + ": passes must list at least one run of the tool");
  for (const auto& p : (*top)["passes"]) {
    auto pass = read_pass(p, where);
    if (!pass) return fail(pass.error());
    for (const auto& output : pass->outputs)
      if (!output.columns.start.empty() && m.time.empty())
        return fail(ec::invalid_argument, where + ": columns.start and columns.end are the metric \"time\", which it does not name");
    m.passes.push_back(std::move(*pass));
  }
  auto rules = read_rules(*top, where);
  if (!rules) return fail(rules.error());
  m.rules = std::move(*rules);
  return m;
}

} // namespace pragma
