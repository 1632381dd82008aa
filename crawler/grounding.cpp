// The check that a summary says nothing that its segment does not: each name, number and quote of it must stand there. It cannot see
// whether the words between them are right; what a model invents, though, is mostly names and numbers.
#include "crawler/charset.hpp"
#include "crawler/cues.hpp"
#include "crawler/metric_names.hpp"
#include "crawler/summarise.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace pragma {

using namespace crawler;

namespace {

constexpr size_t max_unit_bytes = 40;

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

/// Numbers as they are meant: "1,000" and "1000.0" are one. Digits that belong to a name (L2, x86, I1mr) are none.
std::set<std::string> numbers_in(std::string_view text) {
  std::set<std::string> all;
  for (size_t i = 0; i < text.size();) {
    if (!digit(text[i])) {
      // A name with digits in it is passed over as a whole.
      if (word_char(text[i]))
        while (i < text.size() && word_char(text[i])) ++i;
      else ++i;
      continue;
    }
    std::string number;
    bool point = false;
    for (; i < text.size(); ++i) {
      const bool digit_follows = i + 1 < text.size() && digit(text[i + 1]);
      if (digit(text[i])) number += text[i];
      else if (text[i] == ',' && digit_follows && i + 3 < text.size() && digit(text[i + 2]) && digit(text[i + 3]) &&
               !(i + 4 < text.size() && digit(text[i + 4])))
        continue;
      else if (text[i] == '.' && digit_follows && !point) number += '.', point = true;
      else break;
    }
    while (i < text.size() && word_char(text[i])) ++i; // "64KB", "10th"
    if (point) {
      while (number.ends_with('0')) number.pop_back();
      if (number.ends_with('.')) number.pop_back();
    }
    number.erase(0, std::min(number.find_first_not_of('0'), number.size() - 1));
    all.insert(number);
  }
  return all;
}

/// All that the segment says, for looking things up in.
std::string source_of(const segment& s) {
  std::string all = s.text;
  for (const auto& h : s.headings) all += "\n" + h;
  if (s.has_record) {
    all += "\n" + s.record.name + "\n" + s.record.unit + "\n" + s.record.description;
    for (const auto& [header, value] : s.record.fields) all += "\n" + header + ": " + value;
  }
  return all;
}

/// As a name of its own, not as part of another one.
bool stands_in(const std::string& source, const std::string& name) {
  if (name.empty()) return false;
  for (auto at = source.find(name); at != std::string::npos; at = source.find(name, at + 1)) {
    const auto end = at + name.size();
    const bool left = at == 0 || !word_char(source[at - 1]) || !word_char(name.front());
    const bool right = end >= source.size() || !word_char(source[end]) || !word_char(name.back());
    if (left && right) return true;
  }
  return false;
}

std::string short_form(const std::string& text) { return text.size() <= 80 ? text : std::string(utf8_prefix(text, 80)) + "..."; }

std::string check(const claim& c, const std::string& source, const std::string& folded, const std::string& lower,
                  const std::set<std::string>& numbers, const std::set<std::string>& names) {
  const auto named = [&](const std::string& name, bool any_case) {
    return stands_in(source, name) || stands_in(folded, one_line(name)) || (any_case && stands_in(lower, ascii_lower(one_line(name))));
  };
  const auto where = "the claim of '" + short_form(c.name) + "': ";
  if (trim(c.name).empty()) return "a claim without a name";
  if (c.kind != "metric" && c.kind != "concept") return where + "its kind '" + short_form(c.kind) + "' is neither metric nor concept";
  if (!named(c.name, c.kind == "concept")) return where + "no such name stands in the segment";
  if (!c.quote.empty() && folded.find(one_line(c.quote)) == std::string::npos)
    return where + "its quote does not stand in the segment: '" + short_form(c.quote) + "'";
  for (const auto& text : {c.meaning, c.measurement, c.reading}) {
    for (const auto& number : numbers_in(text))
      if (!numbers.contains(number)) return where + "the number " + number + " does not stand in the segment";
    for (const auto& name : metric_names_in(text))
      if (!names.contains(name) && !stands_in(source, name))
        return where + "the name '" + short_form(name) + "' does not stand in the segment";
  }
  for (const auto& name : c.related)
    if (!named(name, false)) return where + "the related name '" + short_form(name) + "' does not stand in the segment";
  for (const auto& chip : c.hardware)
    if (!named(chip, true)) return where + "the hardware '" + short_form(chip) + "' does not stand in the segment";
  const auto& known = diagnosis_names();
  for (const auto& d : c.diagnoses)
    if (std::find(known.begin(), known.end(), d) == known.end()) return where + "'" + short_form(d) + "' is no class of bottleneck";
  if (!c.unit.empty() && (c.unit.size() > max_unit_bytes || (!is_unit(c.unit) && !c.unit.starts_with("1/") &&
                                                             lower.find(ascii_lower(one_line(c.unit))) == std::string::npos)))
    return where + "the unit '" + short_form(c.unit) + "' does not stand in the segment";
  return {};
}

} // namespace

std::string ungrounded(const segment& s, const summary& made) {
  const auto source = source_of(s);
  const auto folded = one_line(source);
  const auto lower = ascii_lower(folded);
  const auto numbers = numbers_in(source);
  const auto list = metric_names_in(source, static_cast<size_t>(-1));
  const std::set<std::string> names(list.begin(), list.end());
  if (made.segment != s.id) return "the summary is of another segment";
  for (const auto& c : made.claims)
    if (auto why = check(c, source, folded, lower, numbers, names); !why.empty()) return why;
  return {};
}

} // namespace pragma
