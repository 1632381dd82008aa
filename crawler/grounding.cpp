// The check that a summary says nothing that its segment does not: each name, number (in digits or words), unit, bottleneck and quote must
// rest on it, most words of a text must stand there, none may be the opposite of what stands there, and none may speak to a model. It
// compares words, so a false statement made of the passage's own words passes: docs/knowledge.md says so.
#include "crawler/charset.hpp"
#include "crawler/cues.hpp"
#include "crawler/definitions.hpp"
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

/// Numbers as they are meant: "1,000" and "1000.0" are one. Digits that belong to a name (L2, x86, I1mr) are none.
std::set<std::string> numbers_in(std::string_view text) {
  std::set<std::string> all;
  for (size_t i = 0; i < text.size();) {
    if (!is_digit(text[i])) {
      // A name with digits in it is passed over as a whole.
      if (word_char(text[i]))
        while (i < text.size() && word_char(text[i])) ++i;
      else ++i;
      continue;
    }
    std::string number;
    bool point = false;
    for (; i < text.size(); ++i) {
      const bool digit_follows = i + 1 < text.size() && is_digit(text[i + 1]);
      if (is_digit(text[i])) number += text[i];
      else if (text[i] == ',' && digit_follows && i + 3 < text.size() && is_digit(text[i + 2]) && is_digit(text[i + 3]) &&
               !(i + 4 < text.size() && is_digit(text[i + 4])))
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

/// Words and numbers that change what a sentence says.
const std::vector<std::string_view>& numbers_in_words() {
  static const std::vector<std::string_view> all = {"zero",    "two",      "three",    "four",   "five",   "six",     "seven",   "eight",   "nine",
                                                    "ten",     "eleven",   "twelve",   "dozen",  "twenty", "thirty",  "forty",   "fifty",   "sixty",
                                                    "seventy", "eighty",   "ninety",   "hundred", "thousand", "million", "billion", "half",   "third",
                                                    "quarter", "twice",    "double",   "doubles", "triple", "thrice",  "tenfold", "twofold"};
  return all;
}

/// The words of a text in lower case, letters only.
std::vector<std::string> plain_words_of(std::string_view text) {
  std::vector<std::string> all(1);
  for (const char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c))) all.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!all.back().empty()) all.emplace_back();
  }
  if (all.back().empty()) all.pop_back();
  return all;
}

bool any_begins(const std::vector<std::string>& words, std::string_view stem) {
  return std::any_of(words.begin(), words.end(), [&](const auto& w) { return w.starts_with(stem); });
}

/// The first word of `text` whose opposite, but not itself, stands in the source: "hit" where it says "miss".
std::string reversed_word(const std::vector<std::string>& text, const std::vector<std::string>& source) {
  static constexpr std::pair<std::string_view, std::string_view> opposites[] = {
      {"hit", "miss"},      {"read", "write"},  {"read", "written"},     {"load", "store"},   {"high", "low"},     {"more", "less"},      {"more", "fewer"},
      {"increas", "decreas"}, {"best", "worst"}, {"better", "worse"},    {"good", "bad"},     {"before", "after"}, {"first", "last"},     {"maxim", "minim"},
      {"front", "back"},    {"input", "output"}, {"send", "receiv"},     {"sent", "receiv"},  {"faster", "slower"}, {"active", "idle"},    {"local", "remote"},
      {"includ", "exclud"}, {"user", "kernel"}, {"taken", "untaken"},    {"allocat", "free"}, {"correct", "wrong"}, {"data", "instruction"}};
  for (const auto& [a, b] : opposites)
    for (const auto& [said, there] : {std::pair{a, b}, std::pair{b, a}})
      if (any_begins(text, said) && !any_begins(source, said) && any_begins(source, there)) return std::string(said);
  return {};
}

bool negates(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const auto& w) {
    return w == "not" || w == "no" || w == "never" || w == "none" || w == "without" || w == "neither" || w == "cannot" || w == "isn" || w == "doesn" || w == "except";
  });
}

/// Share of a text's words of substance that the source has too, in some form ("predictor" for "mispredicted").
double share_in_source(const std::vector<std::string>& text, const std::string& lower) {
  constexpr size_t least_letters = 4, stem_letters = 5;
  size_t all = 0, there = 0;
  for (const auto& w : text) {
    if (w.size() < least_letters || w == "that" || w == "this" || w == "which" || w == "with" || w == "from" || w == "were" || w == "when" || w == "have" ||
        w == "been" || w == "their" || w == "there" || w == "than" || w == "into" || w == "over" || w == "each" || w == "between" || w == "value" || w == "values")
      continue;
    ++all;
    there += lower.find(w.substr(0, stem_letters)) != std::string::npos;
  }
  return all == 0 ? 1 : static_cast<double>(there) / static_cast<double>(all);
}

bool unit_stands(const std::string& unit, const segment& s, const std::string& lower) {
  const auto u = ascii_lower(one_line(unit));
  if (stands_in(lower, u)) return true;
  if (u.size() > 3 && u.ends_with('s') && stands_in(lower, u.substr(0, u.size() - 1))) return true;
  if (u == "%" || u == "percent") return lower.find('%') != std::string::npos || lower.find("percent") != std::string::npos;
  return implied_unit(s.text) == unit || implied_unit(s.record.description) == unit || s.record.unit == unit;
}

/// A span of some words, or all that a short source says.
bool tells_something(const std::string& quote, const segment& s) {
  constexpr long least_words = 3;
  const auto flat = one_line(quote);
  if (std::count(flat.begin(), flat.end(), ' ') + 1 >= least_words) return true;
  const auto said = one_line(s.text);
  return flat == said || flat == one_line(s.record.description) || (s.has_record && said.starts_with(flat));
}

std::string short_form(const std::string& text) { return text.size() <= 80 ? text : std::string(utf8_prefix(text, 80)) + "..."; }

/// What is wrong with the words of one text; empty: nothing.
std::string check_words(const std::string& text, const std::string& source, const std::string& lower) {
  constexpr double least_share = 0.4;
  if (addresses_a_model(text)) return "it speaks to a model";
  const auto words = plain_words_of(text), there = plain_words_of(source);
  for (const auto number : numbers_in_words())
    if (std::find(words.begin(), words.end(), number) != words.end() && std::find(there.begin(), there.end(), number) == there.end())
      return "the number '" + std::string(number) + "' does not stand in the segment";
  if (const auto word = reversed_word(words, there); !word.empty()) return "'" + word + "' is the opposite of what the segment says";
  if (negates(words) && !negates(there)) return "it denies something that the segment does not deny";
  if (share_in_source(words, lower) < least_share) return "most of its words do not stand in the segment: '" + short_form(text) + "'";
  for (const auto word : words_of(text))
    if (identifier_shaped(word) && !stands_in(source, std::string(word)) && lower.find(ascii_lower(word)) == std::string::npos)
      return "the name '" + short_form(std::string(word)) + "' does not stand in the segment";
  return {};
}

/// Numbers, names and words of one text against what it should rest on.
std::string check_text(const std::string& text, const std::string& source, const std::string& lower, const std::set<std::string>& numbers, const std::set<std::string>& names) {
  for (const auto& number : numbers_in(text))
    if (!numbers.contains(number)) return "the number " + number + " does not stand in the segment";
  for (const auto& name : metric_names_in(text))
    if (!names.contains(name) && !stands_in(source, name)) return "the name '" + short_form(name) + "' does not stand in the segment";
  return check_words(text, source, lower);
}

std::set<std::string> all_names_in(const std::string& source) {
  const auto list = metric_names_in(source, static_cast<size_t>(-1));
  return {list.begin(), list.end()};
}

/// A question may use other words than the segment, for that is what it is for; it brings no number, no name and nothing that speaks to a model.
std::string check_question(const std::string& text, const std::string& source, const std::string& lower, const std::set<std::string>& numbers) {
  constexpr size_t max_question_bytes = 160;
  if (text.size() > max_question_bytes) return "a question of more than " + std::to_string(max_question_bytes) + " bytes";
  if (addresses_a_model(text)) return "a question that speaks to a model";
  for (const auto& number : numbers_in(text))
    if (!numbers.contains(number)) return "the number " + number + " of a question does not stand in the segment";
  for (const auto word : words_of(text))
    if (identifier_shaped(word) && !stands_in(source, std::string(word)) && lower.find(ascii_lower(word)) == std::string::npos)
      return "the name '" + short_form(std::string(word)) + "' of a question does not stand in the segment";
  return {};
}

std::string check(const segment& s, const claim& c, const std::string& source, const std::string& folded, const std::string& lower,
                  const std::set<std::string>& numbers, const std::set<std::string>& names) {
  const auto named = [&](const std::string& name, bool any_case) {
    return stands_in(source, name) || stands_in(folded, one_line(name)) || (any_case && stands_in(lower, ascii_lower(one_line(name))));
  };
  const auto where = "the claim of '" + short_form(c.name) + "': ";
  if (trim(c.name).empty()) return "a claim without a name";
  if (!named(c.name, c.kind == "concept")) return where + "no such name stands in the segment";
  if (c.kind != "metric" && c.kind != "concept" && c.kind != "option") return where + "its kind '" + short_form(c.kind) + "' is not known";
  if (!c.quote.empty() && folded.find(one_line(c.quote)) == std::string::npos)
    return where + "its quote does not stand in the segment: '" + short_form(c.quote) + "'";
  if (!c.quote.empty() && !tells_something(c.quote, s)) return where + "its quote is a word or two: '" + short_form(c.quote) + "'";
  for (const auto& text : {c.summary, c.meaning, c.measurement, c.reading})
    if (const auto why = check_text(text, source, lower, numbers, names); !why.empty()) return where + why;
  constexpr size_t max_questions = 4;
  if (c.questions.size() > max_questions) return where + "more than " + std::to_string(max_questions) + " questions";
  for (const auto& text : c.questions)
    if (const auto why = check_question(text, source, lower, numbers); !why.empty()) return where + why;
  for (const auto& name : c.related)
    if (!named(name, false)) return where + "the related name '" + short_form(name) + "' does not stand in the segment";
  for (const auto& chip : c.hardware)
    if (!named(chip, true)) return where + "the hardware '" + short_form(chip) + "' does not stand in the segment";
  const auto& known = diagnosis_names();
  for (const auto& d : c.diagnoses)
    if (std::find(known.begin(), known.end(), d) == known.end()) return where + "'" + short_form(d) + "' is no class of bottleneck";
  auto implied = implied_diagnoses(source);
  for (const auto& more : {implied_diagnoses(c.quote), implied_diagnoses(c.name + ". " + c.summary + " " + c.reading)}) implied.insert(implied.end(), more.begin(), more.end());
  for (const auto& d : c.diagnoses)
    if (std::find(implied.begin(), implied.end(), d) == implied.end()) return where + "nothing in the segment speaks of " + short_form(d);
  if (!c.unit.empty() && (c.unit.size() > max_unit_bytes || !unit_stands(c.unit, s, lower)))
    return where + "the unit '" + short_form(c.unit) + "' does not stand in the segment";
  return {};
}

} // namespace

std::string ungrounded(const segment& s, const summary& made) {
  const auto source = source_of(s);
  const auto folded = one_line(source);
  const auto lower = ascii_lower(folded);
  const auto numbers = numbers_in(source);
  const auto names = all_names_in(source);
  if (made.segment != s.id) return "the summary is of another segment";
  for (const auto& c : made.claims)
    if (auto why = check(s, c, source, folded, lower, numbers, names); !why.empty()) return why;
  return {};
}

std::string ungrounded(const std::string& sentence, const std::string& source) {
  return check_text(sentence, source, ascii_lower(one_line(source)), numbers_in(source), all_names_in(source));
}

} // namespace pragma
