#include "crawler/definitions.hpp"

#include "base/text.hpp"
#include "crawler/charset.hpp"
#include "crawler/metric_names.hpp"

#include <algorithm>
#include <cctype>

namespace pragma::crawler {

namespace {

constexpr size_t longest_term = 120, longest_announced_term = 60;
constexpr size_t quantity_within = 120;    ///< bytes of a description in which the thing counted is named
constexpr size_t max_record_text = 12'000, max_field_columns = 24;

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// "--branch-sim=no|yes [default: no]" -> "--branch-sim", "-e <event>" -> "-e"; empty: no option.
std::string option_name(std::string_view spelling) {
  const auto text = trim(spelling);
  if (text.size() < 2 || text[0] != '-' || text == "--") return {};
  const auto end = text.find_first_of(" =<[|,");
  auto name = text.substr(0, end);
  while (!name.empty() && !std::isalnum(static_cast<unsigned char>(name.back()))) name.pop_back();
  const auto first = name.find_first_not_of('-');
  if (first == std::string::npos || first > 2 || !is_letter(name[first])) return {};
  return name;
}

} // namespace

bool speaks_of_quantity(std::string_view text) {
  const auto head = ascii_lower(one_line(utf8_prefix(text, quantity_within)));
  for (const auto word : words_of(head))
    if (one_of(word, {"number",     "count",      "counts",     "counted",   "total",      "bytes",       "byte",      "cycles",     "time",
                      "duration",   "seconds",    "percent",    "percentage", "ratio",     "rate",        "fraction",  "average",    "mean",
                      "maximum",    "minimum",    "peak",       "amount",    "sum",        "size",        "bandwidth", "throughput", "latency",
                      "utilization", "utilisation", "occupancy", "usage",    "hits",       "misses",      "requests",  "instructions", "transactions",
                      "temperature", "power",     "energy",     "frequency", "clock",      "clocks",      "errors",    "failures",   "load",
                      "share",      "per",        "cumulative", "blocks",    "voltage",    "watts",       "measures",  "speed",      "state",
                      "free",       "used",       "memory",     "events",    "delay",      "limit",       "packets",   "pages",      "processes"}))
      return true;
  return head.find('%') != std::string::npos;
}

namespace {

/// Shaped like one, whatever it names.
bool shaped_word(std::string_view raw) {
  auto term = trim(raw);
  while (!term.empty() && std::string_view("`'\"*").find(term.back()) != std::string_view::npos) term.pop_back();
  while (!term.empty() && std::string_view("`'\"*").find(term.front()) != std::string_view::npos) term.erase(0, 1);
  if (term.size() < 3 || term.size() > longest_term || !is_letter(term[0])) return false;
  bool separated = false, hump = false, upper = true;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    const bool separator = c == '_' || c == '.' || c == ':' || c == '-';
    if (!separator && !std::isalnum(static_cast<unsigned char>(c))) return false;
    separated |= c == '_' || c == '.' || c == ':';
    hump |= i > 0 && std::isupper(static_cast<unsigned char>(c)) && std::islower(static_cast<unsigned char>(term[i - 1]));
    upper &= !std::islower(static_cast<unsigned char>(c));
  }
  if (term.find("::") != std::string::npos || term.back() == '.' || term.back() == '-') return false;
  // "config.json" and "libfoo.so": a short ending behind the only dot of a word in lower case is a file's.
  const auto dot = term.rfind('.');
  if (dot != std::string::npos && term.size() - dot <= 5 && term.find('_') == std::string::npos) return false;
  return separated || hump || (upper && term.size() <= 12);
}

} // namespace

bool identifier_shaped(std::string_view term) { return shaped_word(term) && !names_code(trim(term)); }

bool sets_something(std::string_view text) {
  const auto head = ascii_lower(trim(one_line(utf8_prefix(text, quantity_within))));
  for (const std::string_view start : {"whether to ", "if true", "if set", "if false", "if non-zero", "if nonzero", "default:", "default is", "defaults to", "sets ", "specifies ",
                                       "specify ", "enables ", "enable ", "disables ", "disable ", "path to ", "when set", "when true"})
    if (head.starts_with(start)) return true;
  return false;
}

bool announces_metrics(std::string_view heading) {
  const auto lower = ascii_lower(heading); // words_of() points into it
  for (const auto word : words_of(lower))
    if (one_of(word, {"metric", "metrics", "counter", "counters", "event", "events", "statistics", "stats", "measurements", "fields"})) return true;
  return false;
}

bool announces_settings(std::string_view heading) {
  const auto lower = ascii_lower(heading);
  for (const auto word : words_of(lower))
    if (one_of(word, {"config", "configuration", "environment", "settings", "variables"})) return true;
  return false;
}

bool leads_into_metrics(std::string_view paragraph) {
  constexpr size_t last_words = 160; // bytes at the end of the paragraph
  const auto lower = ascii_lower(one_line(paragraph.substr(paragraph.size() - std::min(paragraph.size(), last_words))));
  const auto at = lower.rfind("following");
  if (at == std::string::npos) return false;
  const auto before = lower.rfind(". ", at); // only its own sentence: "Possible keywords are A and B. The following values are displayed:"
  bool printed = false;
  for (const auto word : words_of(std::string_view(lower).substr(before == std::string::npos ? 0 : before))) {
    if (one_of(word, {"possible", "allowed", "accepted", "valid", "keywords", "options", "arguments", "values:"})) return false;
    printed |= one_of(word, {"displayed", "shown", "reported", "printed", "format", "fields", "columns", "metrics", "counters", "statistics"});
  }
  return printed;
}

std::optional<term_and_text> split_definition(std::string_view raw) {
  const auto item = std::string_view(raw).substr(std::min(raw.find_first_not_of(" \n-*"), raw.size()));
  const auto line = item.substr(0, std::min<size_t>(item.size(), longest_term + 8));
  size_t best = std::string_view::npos, skip = 0;
  for (const std::string_view between : {": ", ":\n", " - ", " -- ", " \xe2\x80\x93 ", " \xe2\x80\x94 ", " = "})
    if (const auto at = line.find(between); at < best) {
      best = at;
      skip = between.size();
    }
  if (best == std::string_view::npos || best == 0 || best > longest_term) return std::nullopt;
  term_and_text found{trim(item.substr(0, best)), trim(item.substr(best + skip))};
  if (found.term.find('\n') != std::string::npos || found.text.empty()) return std::nullopt;
  return found;
}

defined what_is_defined(std::string_view term, std::string_view text, bool announced) {
  defined d;
  const auto flat = one_line(term);
  if (flat.empty() || trim(text).empty()) return {};
  if (flat[0] == '-') {
    d.kind = "option";
    // "-k --kill", "-e, --event=<event>", "-v | --verbose": each word that begins with a hyphen is a spelling.
    std::string all(flat), longest;
    for (auto& c : all)
      if (c == ',' || c == '|') c = ' ';
    for (const auto& part : split(all, ' ')) {
      if (!part.starts_with('-')) continue;
      const auto n = option_name(part);
      if (n.empty() || n == longest || std::find(d.also.begin(), d.also.end(), n) != d.also.end()) continue;
      if (n.size() > longest.size()) {
        if (!longest.empty()) d.also.push_back(longest);
        longest = n;
      } else {
        d.also.push_back(n);
      }
    }
    if (longest.empty()) return {};
    d.names = {longest};
    return d;
  }
  if (flat.find_first_of("=\"") != std::string::npos) return {}; // an assignment: an example of a setting
  if (sets_something(text)) d.kind = "option";
  d.names = names_in_cell(flat, false);
  if (!d.names.empty()) return d;
  if (identifier_shaped(flat) && (announced || speaks_of_quantity(text))) {
    d.names = names_in_cell(flat, true);
    return d;
  }
  if (announced && flat.size() <= longest_announced_term && speaks_of_quantity(std::string(flat) + " " + std::string(text))) {
    const auto words = std::count(flat.begin(), flat.end(), ' ') + 1;
    const bool sentence = flat.ends_with('.') || flat.ends_with('?') || flat.find(". ") != std::string::npos;
    // The bracket in "Total (bytes)" tells it from "Total (blocks)": the name keeps it, unlike a cell of a table with a column of units.
    if (words <= 7 && !sentence && std::any_of(flat.begin(), flat.end(), is_letter)) d.names = {flat};
  }
  return d;
}

// -- tables ------------------------------------------------------------------------------------------------------------

table_reader::table_reader(const table& t, bool announced) : t_(t), announced_(announced) {
  columns_ = t.header.size();
  for (const auto& r : t.rows) columns_ = std::max(columns_, r.size());
  if (columns_ < 2) return;
  name_column_ = find_name_column();
  if (name_column_ == none) {
    // Without a header that says so: one column of identifiers beside one of sentences that speak of quantities.
    bool told = false;
    for (size_t k = 0; k < columns_ && !told; ++k) told = tells(k);
    for (size_t k = 0; told && k < columns_ && name_column_ == none; ++k) {
      size_t shaped = 0, filled = 0;
      for (const auto& r : t.rows) {
        if (k >= r.size() || r[k].empty()) continue;
        ++filled;
        shaped += identifier_shaped(r[k]) || !names_in_cell(r[k], false).empty();
      }
      if (filled < 2 || shaped * 10 < filled * 8) continue;
      name_column_ = k;
      shaped_ = true;
    }
  }
  if (name_column_ == none) return;
  certain_ = shaped_ || (name_column_ < t.header.size() && column_of(t.header[name_column_]) == column::metric) ||
             (announced && name_column_ < t.header.size() && column_of(t.header[name_column_]) == column::name);
  for (size_t k = 0; k < t.header.size() && description_ == none; ++k)
    if (k != name_column_ && column_of(t.header[k]) == column::description) description_ = k;
}

double table_reader::share_of_names(size_t k, bool certain) const {
  size_t good = 0, filled = 0;
  for (const auto& r : t_.rows) {
    if (k >= r.size() || r[k].empty()) continue;
    ++filled;
    good += !names_in_cell(r[k], certain).empty();
  }
  return filled == 0 ? 0.0 : static_cast<double>(good) / static_cast<double>(filled);
}

/// A column of sentences, which speak of quantities unless a heading announced metrics.
bool table_reader::tells(size_t k) const {
  size_t prose = 0, quantities = 0, filled = 0;
  for (const auto& r : t_.rows) {
    if (k >= r.size() || r[k].empty()) continue;
    ++filled;
    const bool sentence = std::count(r[k].begin(), r[k].end(), ' ') >= 2;
    prose += sentence;
    quantities += sentence && (announced_ || speaks_of_quantity(r[k]));
  }
  return prose * 2 > filled && quantities * 2 > filled;
}

size_t table_reader::find_name_column() const {
  // Where a table has counters and events, the counters are registers and the events what is counted in them (LIKWID).
  for (const bool register_too : {false, true})
    for (size_t k = 0; k < t_.header.size(); ++k)
      if (column_of(t_.header[k]) == column::metric && (register_too || ascii_lower(t_.header[k]).find("counter") == std::string::npos) &&
          share_of_names(k, true) >= 0.5)
        return k;
  for (size_t k = 0; k < t_.header.size(); ++k)
    if (column_of(t_.header[k]) == column::name && (share_of_names(k, false) >= 0.3 || (announced_ && share_of_names(k, true) >= 0.5))) return k;
  for (size_t k = 0; k < columns_; ++k)
    if (share_of_names(k, false) >= 0.6 && (k >= t_.header.size() || column_of(t_.header[k]) != column::description)) return k;
  return none;
}

/// A row without a name whose text belongs to the row above: Markdown has no other way to wrap a cell.
bool table_reader::goes_on(size_t i) const {
  if (i >= t_.rows.size() || i == 0) return false;
  const auto& cells = t_.rows[i];
  if (name_column_ < cells.size() && !cells[name_column_].empty()) return false;
  size_t filled = 0;
  for (const auto& cell : cells) filled += !cell.empty();
  return filled >= 1 && filled <= 2;
}

std::vector<std::string> table_reader::whole_row(size_t i) const {
  auto cells = t_.rows[i];
  for (size_t below = i + 1; goes_on(below); ++below)
    for (size_t k = 0; k < t_.rows[below].size(); ++k) {
      if (t_.rows[below][k].empty()) continue;
      if (k >= cells.size()) cells.resize(k + 1);
      cells[k] += (cells[k].empty() ? "" : " ") + t_.rows[below][k];
    }
  return cells;
}

/// A table of settings says so in its header ("Parameter", "Default"), its rows by a default or by what they switch.
bool table_reader::is_setting(const std::vector<std::string>& cells) const {
  if (name_column_ < t_.header.size() && column_of(t_.header[name_column_]) == column::metric) return false;
  for (const auto& header : t_.header) {
    const auto lower = ascii_lower(header); // words_of() points into it
    for (const auto word : words_of(lower))
      if (one_of(word, {"parameter", "parameters", "argument", "option", "flag", "variable", "setting", "default", "defaults"})) return true;
  }
  return std::any_of(cells.begin(), cells.end(), [](const auto& cell) { return sets_something(cell); });
}

std::vector<std::string> table_reader::names_of(const std::string& cell) const {
  auto names = names_in_cell(cell, certain_);
  // In a column of names a constant's suffix ("..._VERSION") says nothing.
  if (names.empty() && (shaped_ || t_.header.empty()) && shaped_word(cell)) names = {one_line(cell)};
  return names;
}

table_reader::row_record table_reader::row(size_t i) {
  row_record out;
  if (goes_on(i)) {
    out.continues = true;
    return out;
  }
  const auto cells = whole_row(i);
  const auto names = name_column_ < cells.size() ? names_of(cells[name_column_]) : std::vector<std::string>();
  if (names.empty()) {
    ++unread_;
    return out;
  }
  metric_record r;
  if (is_setting(cells)) r.kind = "option";
  auto description = description_;
  const auto what_of = [&](size_t k) { return k < t_.header.size() ? column_of(t_.header[k]) : column::other; };
  for (size_t k = 0; k < cells.size(); ++k)
    if (k != name_column_ && what_of(k) == column::unit && r.unit.empty()) r.unit = one_line(cells[k]);
  // Without a column that says so, or where its cell is empty, the description is the longest text of several words.
  if (description == none || description >= cells.size() || cells[description].empty()) {
    description = none;
    for (size_t k = 0; k < cells.size(); ++k) {
      if (k == name_column_ || what_of(k) == column::unit || what_of(k) == column::formula || cells[k].find(' ') == std::string::npos) continue;
      if (description == none || cells[k].size() > cells[description].size()) description = k;
    }
  }
  if (description != none) r.description = one_line(cells[description]);
  if (r.unit.empty()) r.unit = unit_in_brackets(cells[name_column_]);
  if (r.unit.empty() && name_column_ < t_.header.size()) r.unit = unit_in_brackets(t_.header[name_column_]);
  for (size_t k = 0; k < cells.size(); ++k) {
    const auto cell = one_line(cells[k]);
    if (cell.empty()) continue;
    const auto header = k < t_.header.size() ? t_.header[k] : std::string();
    if (out.text.size() + cell.size() < max_record_text) out.text += (out.text.empty() ? "" : "\n") + (header.empty() ? "" : header + ": ") + cell;
    const bool taken = k == name_column_ || k == description || (!r.unit.empty() && cell == r.unit);
    if (!taken && r.fields.size() < max_field_columns && !r.fields.emplace(header.empty() ? "column " + std::to_string(k + 1) : header, cell).second)
      r.fields.emplace(header + " (column " + std::to_string(k + 1) + ")", cell);
  }
  for (const auto& n : names) {
    out.records.push_back(r);
    out.records.back().name = n;
  }
  return out;
}

} // namespace pragma::crawler
