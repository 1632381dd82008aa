// `perf list` without -j, as perf before 6.2 prints it: "  name OR alias    [Software event]", and names with their description in brackets
// on the lines below.
#include "crawler/parsers.hpp"

#include "base/text.hpp"
#include "crawler/charset.hpp"

namespace pragma::crawler {

namespace {

constexpr size_t description_indent = 7;

bool is_event_type(std::string_view text) {
  return text.ends_with(" event") || text.ends_with(" descriptor") || text == "Hardware breakpoint" || text == "Metric";
}

void take_names(std::string_view names, const std::string& type, const std::string& description, document& d) {
  std::string rest(names);
  std::vector<std::string> all;
  for (size_t at = rest.find(" OR "); at != std::string::npos; at = rest.find(" OR ")) {
    all.push_back(trim(std::string_view(rest).substr(0, at)));
    rest.erase(0, at + 4);
  }
  all.push_back(trim(rest));
  for (const auto& n : all) {
    // Placeholders ("cpu/t1=v1[,...]/modifier", "mem:<addr>") are a syntax, not an event.
    if (n.empty() || n.find_first_of("<>[]= ") != std::string::npos || n == "rNNN") continue;
    metric_record r;
    r.name = n;
    r.description = description;
    if (!type.empty()) r.fields.emplace("Type", type);
    for (const auto& other : all)
      if (other != n) r.fields.emplace("Other name", other);
    add_record(d, std::move(r));
  }
}

} // namespace

bool is_perf_list(std::string_view text) {
  return text.find("  [Software event]") != std::string_view::npos || text.find("  [Hardware event]") != std::string_view::npos ||
         text.starts_with("\nMetrics:\n") || text.starts_with("Metrics:\n") || text.starts_with("\nList of pre-defined events") ||
         text.starts_with("List of pre-defined events");
}

document parse_perf_list(std::string_view utf8, std::string_view url) {
  document d;
  d.base = url;
  d.title = "perf list";
  std::string names, description;
  bool open = false;             // in a description that goes on over lines
  auto close = [&] {
    if (!names.empty() && !description.empty()) take_names(names, {}, description, d);
    names.clear();
    description.clear();
    open = false;
  };
  for (const auto& line : split(utf8, '\n')) {
    const auto indent = line.find_first_not_of(' ');
    auto text = trim(line);
    if (open || (indent != std::string::npos && indent >= description_indent && text.starts_with('[') && !names.empty())) {
      if (!open) text.erase(0, 1);
      open = !text.ends_with(']');
      if (!open) text.pop_back();
      description += (description.empty() ? "" : " ") + text;
      if (!open) close();
      continue;
    }
    close();
    if (text.empty() || indent == 0) continue; // a group's title
    const auto bracket = text.rfind("  [");
    if (bracket != std::string::npos && text.ends_with(']')) {
      const auto type = text.substr(bracket + 3, text.size() - bracket - 4);
      if (type == "Tracepoint event" || type.starts_with("SDT "))
        continue; // thousands of places in the kernel and in programs, not metrics
      if (is_event_type(type)) take_names(std::string_view(text).substr(0, bracket), type, {}, d);
    } else {
      names = text;
    }
  }
  close();
  return d;
}

} // namespace pragma::crawler
