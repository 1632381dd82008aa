// The summariser that needs no model: it takes sentences as they stand. For a record the table has already said which metric is meant; in
// prose only what plainly defines a metric counts ("conditional branches mispredicted (Bcm)", "Bcm: ...", "Bcm counts ..."), for a
// wrong entry costs more than a missing one.
#include "crawler/charset.hpp"
#include "crawler/cues.hpp"
#include "crawler/metric_names.hpp"
#include "crawler/sentences.hpp"
#include "crawler/summarise.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>

namespace pragma {

using namespace crawler;

namespace {

constexpr size_t max_meaning = 1200, max_summary = 300, max_more = 700, max_quote = 600;   ///< bytes
constexpr size_t max_related = 12, max_claims = 40, max_names_together = 6;
constexpr size_t least_meaning = 25;      ///< bytes; a shorter first sentence ("Cycles.") is joined with the second
constexpr size_t longest_sentence = 450; ///< bytes; longer ones in prose are lists without full stops
constexpr size_t longest_phrase = 16;     ///< words before "(Name)"; more is not the name of a thing

std::string clipped(std::string_view text, size_t most) {
  auto flat = one_line(text);
  if (flat.size() <= most) return flat;
  const auto piece = utf8_prefix(flat, most);
  const auto space = piece.rfind(' ');
  return std::string(piece.substr(0, space == std::string_view::npos ? piece.size() : space));
}

/// A span of the segment, word for word, but not endless.
std::string quoted(std::string_view sentence) {
  const auto piece = utf8_prefix(sentence, max_quote);
  if (piece.size() == sentence.size()) return std::string(sentence);
  return std::string(piece.substr(0, piece.find_last_of(" \n")));
}

void add_sentence(std::string& into, std::string_view sentence) {
  const auto flat = one_line(sentence);
  if (into.size() + flat.size() > max_more || into.find(flat) != std::string::npos) return;
  into += (into.empty() ? "" : " ") + flat;
}

bool names(std::string_view sentence, std::string_view metric) {
  for (const auto word : words_of(sentence)) {
    if (word == metric) return true;
    for (const auto& part : split(word, '/'))
      if (part == metric) return true;
  }
  return false;
}

std::vector<std::string> related_in(std::string_view text, const std::string& own) {
  std::vector<std::string> all;
  for (auto& n : metric_names_in(text))
    if (all.size() < max_related && ascii_lower(n) != ascii_lower(own)) all.push_back(std::move(n));
  return all;
}

// -- records -----------------------------------------------------------------------------------------------------------

bool is_formula_field(const std::string& header) {
  return column_of(header) == column::formula || ascii_lower(header) == "value" || header == "MetricExpr";
}

bool is_brief_field(const std::string& header) { return header == "Brief description" || header == "Title"; }

bool is_hardware_field(const std::string& header) {
  const auto plain = ascii_lower(header);
  return plain == "architectures" || plain == "architecture" || plain == "chip" || plain == "chips" || plain == "hardware" ||
         plain == "gpu" || plain == "cpu" || plain == "supported architectures" || plain == "supported hardware";
}

claim claim_of_record(const segment& s) {
  const auto& r = s.record;
  claim c;
  c.name = r.name;
  // The description as it stands in the text, so that quotes are spans of the segment.
  std::string_view description = r.description;
  const std::string_view text = s.text;
  if (const auto at = text.find(r.description); !r.description.empty() && at != std::string_view::npos)
    description = text.substr(at, r.description.size());
  auto sentences = sentences_of(description);
  std::erase_if(sentences, [](std::string_view sentence) { return addresses_a_model(sentence); });
  size_t used = 0;
  if (!sentences.empty()) {
    c.meaning = clipped(sentences[0], max_meaning);
    used = 1;
    if (c.meaning.size() < least_meaning && sentences.size() > 1) {
      c.meaning = clipped(c.meaning + " " + one_line(sentences[1]), max_meaning);
      used = 2;
    }
    c.summary = clipped(c.meaning, max_summary);
    c.quote = quoted(sentences[0]);
  } else if (!r.description.empty() && addresses_a_model(description)) {
    return c;
  } else {
    c.quote = quoted(text.substr(0, text.find('\n')));
  }
  for (const auto& [header, value] : r.fields) {
    if (is_formula_field(header)) add_sentence(c.measurement, header + ": " + value);
    if (c.meaning.empty() && is_brief_field(header)) c.meaning = c.summary = clipped(value, max_meaning);
    if (is_hardware_field(header))
      for (const auto& part : split(value, ','))
        if (const auto chip = trim(part); !chip.empty() && c.hardware.size() < 16) c.hardware.push_back(chip);
  }
  for (size_t i = 0; i < sentences.size(); ++i) {
    // The first sentence is the meaning; it is repeated only where it says a formula, too.
    const auto lower = ascii_lower(sentences[i]);
    const bool formula = lower.find("calculated") != std::string::npos || lower.find("computed") != std::string::npos ||
                         lower.find("divided by") != std::string::npos;
    const bool measures = i >= used ? tells_measurement(sentences[i]) : formula;
    const bool reads = i >= used ? tells_reading(sentences[i]) : lower.find("indicates") != std::string::npos;
    if (measures) add_sentence(c.measurement, sentences[i]);
    if (reads) add_sentence(c.reading, sentences[i]);
    // What is neither belongs to the meaning: "Demand fills by source." is half of it, "From local DRAM." the other half.
    if (i >= used && !measures && !reads && c.meaning.size() + sentences[i].size() < max_meaning) c.meaning += " " + one_line(sentences[i]);
  }
  if (r.kind == "option") {
    c.kind = r.kind;
    c.measurement.clear();
    if (const auto usage = r.fields.find("Usage"); usage != r.fields.end()) c.measurement = usage->second;
    return c;
  }
  c.unit = clipped(r.unit, 40);
  if (c.unit.empty()) c.unit = implied_unit(c.summary);
  c.diagnoses = implied_diagnoses(r.name + ". " + c.summary + " " + c.reading); // not of remarks like "this includes hits on misses"
  // Keys of a JSON object ("L1_Hit_Indication") look like names: only what the texts and values say counts.
  std::string said = r.description;
  for (const auto& [header, value] : r.fields)
    if (header != "Group") said += "\n" + value; // a group's name is no metric
  c.related = related_in(said, r.name);
  return c;
}

// -- prose -------------------------------------------------------------------------------------------------------------

size_t word_count(std::string_view text) {
  const auto flat = one_line(text);
  return flat.empty() ? 0 : static_cast<size_t>(std::count(flat.begin(), flat.end(), ' ')) + 1;
}

/// A text without connecting words and punctuation in front: ", and D1 cache read misses" -> "D1 cache read misses".
std::string_view without_connectives(std::string_view phrase) {
  for (bool again = true; again;) {
    again = false;
    const auto first = phrase.find_first_not_of(" \n\t,;:-");
    phrase = first == std::string_view::npos ? std::string_view() : phrase.substr(first);
    for (const std::string_view word : {"and ", "or ", "as well as ", "together with ", "along with ", "the ", "The ", "plus ", "and\n"})
      if (phrase.starts_with(word)) {
        phrase.remove_prefix(word.size());
        again = true;
      }
  }
  const auto last = phrase.find_last_not_of(" \n\t,;:-\"'");
  return last == std::string_view::npos ? std::string_view() : phrase.substr(0, last + 1);
}

struct found_claim {
  std::string name, meaning;
};

/// The names that a bracket begins with: `Bcm`, `"Bc"/"Bcm"`, `Ir, which equals ...` (then `tail` is what follows).
std::vector<std::string> names_in_bracket(std::string_view inside, std::string_view& tail) {
  std::vector<std::string> all;
  size_t at = 0;
  while (at < inside.size() && all.size() < max_names_together) {
    const auto start = inside.find_first_not_of(" \n\"'`", at);
    if (start == std::string_view::npos) break;
    auto end = std::min(inside.find_first_of(" \n\"'`,/;", start), inside.size());
    const auto word = inside.substr(start, end - start);
    if (!looks_like_metric(word)) {
      if (all.empty()) return {};
      tail = inside.substr(at);
      return all;
    }
    all.emplace_back(word);
    while (end < inside.size() && std::string_view("\"'` \n").find(inside[end]) != std::string_view::npos) ++end;
    at = end;
    if (at < inside.size() && (inside[at] == '/' || inside[at] == ',')) {
      ++at;
    } else if (at < inside.size()) {
      const auto rest = inside.substr(at);
      if (rest == "event" || rest == "events" || rest == "counter" || rest == "metric") return all;
      return {}; // "(ILmr + DLmr)" and "(Bcm misses)" do not name what stands before
    }
  }
  return all;
}

/// A phrase can be the name of a thing where it ends in a plain word, and does not lean on what was said before.
bool is_noun_like(std::string_view phrase) {
  const auto last = phrase.substr(phrase.find_last_of(" /") == std::string_view::npos ? 0 : phrase.find_last_of(" /") + 1);
  const auto first = ascii_lower(phrase.substr(0, phrase.find(' ')));
  for (const std::string_view word : {"related", "corresponding", "such", "these", "those", "this", "other", "respective", "see",
                                      "like", "use", "using", "versus", "pass", "call", "there"})
    if (first == word) return false;
  return !last.empty() && std::all_of(last.begin(), last.end(),
                                      [](unsigned char c) { return std::isalpha(c) || c == '-' || c == '\'' || c >= 0x80; });
}

/// Names in capitals are also those of macros and constants: prose has to speak of counting.
bool plausible_here(const std::string& name, std::string_view sentence, const segment& s) {
  if (std::any_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; }) || name.find('_') == std::string::npos)
    return true;
  const auto about = ascii_lower(sentence) + " " + ascii_lower(join(s.headings, " "));
  for (const std::string_view other : {"macro", "function", "client request", "system call", "syscall", "environment variable", "constant"})
    if (ascii_lower(sentence).find(other) != std::string::npos) return false;
  for (const std::string_view word : {"counter", "metric", "event", "counts", "number of", "cycles", "instructions"})
    if (about.find(word) != std::string::npos) return true;
  return false;
}

/// "conditional branches executed (Bc) and conditional branches mispredicted (Bcm)"
void find_bracketed(std::string_view sentence, std::vector<found_claim>& found) {
  size_t phrase_start = 0;
  for (size_t open = sentence.find('('); open != std::string_view::npos;) {
    const auto close = sentence.find(')', open);
    if (close == std::string_view::npos) return;
    std::string_view tail;
    const auto list = names_in_bracket(sentence.substr(open + 1, close - open - 1), tail);
    // "openat(AT_FDCWD)" is a call, no explanation.
    const bool apart = open > 0 && (sentence[open - 1] == ' ' || sentence[open - 1] == '\n');
    if (!list.empty() && apart && open > phrase_start) {
      // The phrase reaches back to the bracket before, or to a comma, a colon or a dash.
      auto phrase = sentence.substr(phrase_start, open - phrase_start);
      for (const std::string_view stop : {": ", ", ", "; ", " - ", ",\n", ":\n"}) {
        const auto at = phrase.rfind(stop);
        if (at == std::string_view::npos) continue;
        const auto behind = phrase.substr(at + stop.size());
        if (!without_connectives(behind).empty()) phrase = behind;
      }
      phrase = without_connectives(phrase);
      // "executed branches and related misses ("Bc"/"Bcm")": as many parts as names.
      std::vector<std::string> parts;
      std::string flat = one_line(phrase);
      if (list.size() > 1) {
        for (size_t from = 0;;) {
          const auto at = flat.find(" and ", from);
          parts.push_back(flat.substr(from, at == std::string::npos ? at : at - from));
          if (at == std::string::npos) break;
          from = at + 5;
        }
      }
      const auto words = word_count(phrase);
      const bool explains = tail.find("which ") != std::string_view::npos || tail.find("that is") != std::string_view::npos ||
                            tail.find("i.e.") != std::string_view::npos;
      if (words >= 2 && words <= longest_phrase && is_noun_like(flat))
        for (size_t i = 0; i < list.size(); ++i) {
          auto meaning = parts.size() == list.size() ? parts[i] : flat;
          if (explains && list.size() == 1) meaning += ", " + std::string(without_connectives(one_line(tail)));
          if (is_noun_like(parts.size() == list.size() ? parts[i] : flat)) found.push_back({list[i], meaning});
        }
    }
    phrase_start = close + 1;
    open = sentence.find('(', close);
  }
}

bool is_explaining_verb(std::string_view text) {
  for (const std::string_view verb :
       {"counts ",  "measures ",     "indicates ",     "represents ",  "shows ",         "reports ",    "denotes ",
        "gives ",   "tells ",        "tracks ",        "equals ",      "is the ",        "is a ",       "is an ",
        "are the ", "are counters ", "is defined as ", "is computed ", "is calculated ", "stands for ", "means "})
    if (text.starts_with(verb)) return true;
  return false;
}

/// "Bcm: ...", "Bcm - ...", "Bcm counts ...", "AcCost1 and AcCost2 are counters ..." at a sentence's start.
void find_leading(std::string_view sentence, std::vector<found_claim>& found) {
  auto rest = sentence;
  for (const std::string_view opening :
       {"The metric ", "The counter ", "The event ", "The ", "Similarly, ", "Metric ", "Event ", "Counter "})
    if (rest.starts_with(opening)) {
      rest.remove_prefix(opening.size());
      break;
    }
  std::vector<std::string> list;
  while (list.size() < max_names_together) {
    const auto start = rest.find_first_not_of("\"'`");
    if (start == std::string_view::npos) return;
    const auto end = std::min(rest.find_first_of(" \n\"'`,", start), rest.size());
    auto word = rest.substr(start, end - start);
    const bool colon = word.ends_with(':');
    if (colon) word.remove_suffix(1);
    if (!looks_like_metric(word)) return;
    list.emplace_back(word);
    rest = rest.substr(end);
    while (!rest.empty() && std::string_view("\"'`").find(rest.front()) != std::string_view::npos) rest.remove_prefix(1);
    if (colon) {
      rest = without_connectives(rest);
      if (word_count(rest) >= 2)
        for (auto& n : list) found.push_back({n, clipped(rest, max_meaning)});
      return;
    }
    bool more = false;
    for (const std::string_view between : {", and ", " and ", ", ", " or "})
      if (rest.starts_with(between)) {
        const auto next = rest.substr(between.size());
        const auto word_end = std::min(next.find_first_of(" \n,:"), next.size());
        if (!looks_like_metric(next.substr(
                next.find_first_not_of("\"'`") == std::string_view::npos ? 0 : next.find_first_not_of("\"'`"), word_end)))
          continue;
        rest = next;
        more = true;
        break;
      }
    if (!more) break;
  }
  if (list.empty()) return;
  for (const std::string_view noun : {" metric", " metrics", " counter", " counters", " event", " events"})
    if (rest.starts_with(noun) && rest.size() > noun.size() && rest[noun.size()] == ' ') rest.remove_prefix(noun.size());
  if (rest.starts_with(": ") || rest.starts_with(" - ") || rest.starts_with(" \xe2\x80\x93 ") || rest.starts_with(" \xe2\x80\x94 ")) {
    const auto at = rest.find(' ', 1);
    rest = without_connectives(rest.substr(at == std::string_view::npos ? rest.size() : at));
    if (word_count(rest) >= 2)
      for (auto& n : list) found.push_back({n, clipped(rest, max_meaning)});
    return;
  }
  if (rest.empty() || (rest.front() != ' ' && rest.front() != '\n')) return;
  rest.remove_prefix(1);
  if (is_explaining_verb(rest))
    for (auto& n : list) found.push_back({n, clipped(sentence, max_meaning)});
}

void take_prose(const segment& s, std::vector<claim>& claims) {
  auto sentences = sentences_of(s.text);
  std::erase_if(sentences, [](std::string_view sentence) { return addresses_a_model(sentence); });
  auto claim_named = [&](const std::string& n) -> claim* {
    const auto it = std::find_if(claims.begin(), claims.end(), [&](const auto& c) { return c.name == n; });
    return it == claims.end() ? nullptr : &*it;
  };
  auto begin_claim = [&](const std::string& n, std::string_view sentence) -> claim* {
    if (claims.size() >= max_claims) return nullptr;
    claims.emplace_back();
    claims.back().name = n;
    claims.back().quote = quoted(sentence);
    return &claims.back();
  };
  // A heading that is a metric's name: the text below it is about that.
  std::string subject;
  if (!s.headings.empty())
    if (const auto list = names_in_cell(s.headings.back(), false); list.size() == 1) subject = list[0];
  if (!subject.empty() && !sentences.empty())
    if (auto* c = begin_claim(subject, sentences[0])) c->meaning = clipped(sentences[0], max_meaning);

  for (const auto sentence : sentences) {
    std::vector<found_claim> found;
    find_leading(sentence, found);
    find_bracketed(sentence, found);
    for (const auto& f : found) {
      if (claim_named(f.name) || !plausible_here(f.name, sentence, s)) continue; // the first definition is the best one
      if (auto* c = begin_claim(f.name, sentence)) c->meaning = clipped(f.meaning, max_meaning);
    }
  }
  // What other sentences say of a metric; of those that nothing defines here, only how to read them.
  for (const auto sentence : sentences) {
    const bool reading = tells_reading(sentence), measuring = tells_measurement(sentence);
    if ((!reading && !measuring) || sentence.size() > longest_sentence ||
        ascii_lower(sentence).find("example") != std::string::npos)
      continue; // examples tell of one program
    for (const auto& n : metric_names_in(sentence)) {
      auto* c = claim_named(n);
      if (!c && reading && word_count(sentence) >= 6 && plausible_here(n, sentence, s)) c = begin_claim(n, sentence);
      if (!c) continue;
      if (one_line(sentence) == c->meaning) {
        if (measuring) add_sentence(c->measurement, sentence);
        continue;
      }
      if (reading) add_sentence(c->reading, sentence);
      else if (one_line(sentence) != one_line(c->quote)) add_sentence(c->measurement, sentence);
    }
    if (!subject.empty() && !names(sentence, subject))
      if (auto* c = claim_named(subject); c && one_line(sentence) != c->meaning)
        add_sentence(reading ? c->reading : c->measurement, sentence);
  }
  std::erase_if(claims, [](const auto& c) { return c.meaning.empty() && c.reading.empty(); });
  for (auto& c : claims) {
    c.summary = clipped(c.meaning, max_summary);
    c.unit = implied_unit(c.meaning);
    // How to read a value says which bottleneck it stands for only where it says so.
    const bool tells = c.reading.find("indicat") != std::string::npos || c.reading.find("bottleneck") != std::string::npos;
    c.diagnoses = implied_diagnoses(!c.meaning.empty() ? c.meaning : tells ? c.reading : "");
    std::string about = c.quote + "\n" + c.reading + "\n" + c.measurement;
    c.related = related_in(about, c.name);
  }
}

} // namespace

summary summarise_extractive(const segment& s) {
  summary made;
  made.segment = s.id;
  made.by = extractive_version;
  if (s.has_record && !trim(s.record.name).empty()) made.claims.push_back(claim_of_record(s));
  else if (!s.has_record) take_prose(s, made.claims);
  return made;
}

} // namespace pragma
