// LIKWID's performance groups: a title, which counter counts which event, and metrics as formulas over the counters. Its documentation
// describes them in the same files, below LONG: the formulas of the group's own metrics, and what the group is for.
#include "crawler/parsers.hpp"

#include "base/text.hpp"
#include "crawler/charset.hpp"
#include "crawler/metric_names.hpp"

#include <algorithm>
#include <cctype>
#include <map>

namespace pragma::crawler {

namespace {

constexpr size_t longest_formula = 1200;

struct group_text {
  std::string about, prose;
  std::map<std::string, std::string> events;              ///< counter -> event: "PMC0" -> "RETIRED_INSTRUCTIONS"
  std::vector<std::pair<std::string, std::string>> metrics; ///< "CPI" -> "PMC1/PMC0", in order
  std::map<std::string, std::string> described;           ///< the group's own metrics, with the formula as LONG has it
};

/// "L2 bandwidth [MBytes/s] 1.0E-06*(PMC2)*64.0/time": the formula stands behind the unit; where there is none, it is the last word.
std::pair<std::string, std::string> split_metric(const std::string& line) {
  const auto unit = line.find("] ");
  const auto blank = unit != std::string::npos ? unit + 1 : line.find_last_of(" \t");
  if (blank == std::string::npos) return {};
  return {trim(std::string_view(line).substr(0, blank)), trim(std::string_view(line).substr(blank + 1))};
}

/// The formula with events in place of counters.
std::string in_events(const std::string& formula, const std::map<std::string, std::string>& events) {
  std::string out;
  for (size_t i = 0; i < formula.size() && out.size() < longest_formula;) {
    size_t end = i;
    while (end < formula.size() && (std::isalnum(static_cast<unsigned char>(formula[end])) || formula[end] == '_' || formula[end] == ':')) ++end;
    if (end == i) {
      out += formula[i++];
      continue;
    }
    const auto word = formula.substr(i, end - i);
    const auto known = events.find(word);
    out += known == events.end() ? word : known->second;
    i = end;
  }
  return out;
}

group_text read_group(std::string_view text) {
  enum class part { none, events, metrics, described, prose };
  group_text g;
  auto now = part::none;
  for (const auto& raw : split(text, '\n')) {
    const auto line = trim(raw);
    if (line.empty()) continue;
    if (line.starts_with("SHORT")) g.about = trim(std::string_view(line).substr(5));
    else if (line == "EVENTSET") now = part::events;
    else if (line == "METRICS") now = part::metrics;
    else if (line == "LONG") now = part::prose;
    else if (now == part::prose && (line == "Formulas:" || line == "Formula:")) now = part::described;
    else if (now == part::described && line.find_first_not_of('-') == std::string::npos) now = part::prose;
    else if (now == part::events) {
      const auto blank = line.find_first_of(" \t");
      if (blank != std::string::npos) g.events[line.substr(0, line.find_first_of(": \t"))] = trim(std::string_view(line).substr(blank));
    } else if (now == part::metrics) {
      if (auto m = split_metric(line); !m.first.empty()) g.metrics.push_back(std::move(m));
    } else if (now == part::described) {
      if (const auto equals = line.find(" = "); equals != std::string::npos) g.described[trim(std::string_view(line).substr(0, equals))] = trim(std::string_view(line).substr(equals + 3));
    } else if (now == part::prose) g.prose += (g.prose.empty() ? "" : " ") + line;
  }
  return g;
}

} // namespace

bool is_performance_group(std::string_view text) {
  const auto start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text.substr(start).starts_with("SHORT ") && text.find("\nEVENTSET") != std::string_view::npos &&
         text.find("\nMETRICS") != std::string_view::npos;
}

document parse_performance_group(std::string_view utf8, std::string_view url) {
  document d;
  d.base = url;
  const auto g = read_group(utf8);
  auto file = std::string(url.substr(url.rfind('/') + 1));
  file.resize(std::min(file.size(), file.rfind('.')));
  d.title = g.about;
  for (const auto& [name, formula] : g.metrics) {
    metric_record r;
    r.unit = unit_in_brackets(name);
    r.name = r.unit.empty() ? name : trim(std::string_view(name).substr(0, name.find_last_of("([")));
    const auto described = g.described.find(name);
    const auto spelt = in_events(described == g.described.end() ? formula : described->second, g.events);
    // Run time, clock and CPI stand in every group, and are not what it is about.
    if (described == g.described.end()) {
      r.description = "Computed as " + spelt + ".";
    } else {
      r.description = g.about + (g.about.ends_with('.') ? " " : ". ") + g.prose;
      r.fields.emplace("Formula", spelt);
    }
    r.fields.emplace("Group", file);
    add_record(d, std::move(r));
  }
  return d;
}

} // namespace pragma::crawler
