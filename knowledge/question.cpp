#include "knowledge/question.hpp"

#include "base/text.hpp"
#include "knowledge/name_index.hpp"

#include <algorithm>

namespace pragma {

namespace {

constexpr size_t max_question_bytes = 4096; // of a question that is read; longer ones say what they ask at the beginning
constexpr size_t max_chunks = 256;
constexpr size_t max_identifiers = 8;       // that are compared with every name; a question has one or two
constexpr size_t longest_glossary_phrase = 6;        // chunks of a glossary phrase
constexpr size_t longest_name = 6;          // words that together may be a name: "cycles per instruction"

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

/// Words that go with any metric's name and belong to none: "the metric X", "X counter".
bool is_filler(const std::string& folded) {
  static const std::vector<std::string> fillers = {"counter", "counters", "event", "events", "metric", "metrics", "number", "value", "values"};
  return std::binary_search(fillers.begin(), fillers.end(), folded);
}

/// Words by which a switch of the tool is asked for.
bool asks_for_option(const std::string& folded) {
  static const std::vector<std::string> words = {"argument", "arguments", "cmdline", "flag", "flags", "option", "options", "parameter", "switch"};
  return std::binary_search(words.begin(), words.end(), folded);
}

/// "Bcm", "D1mr", "ILmr": capitals and small letters or digits in one word. A capital at the start of a sentence says nothing.
bool has_telling_case(const chunk& c, bool first) {
  const auto& t = c.text;
  const bool upper_inside = std::any_of(t.begin() + 1, t.end(), [](char x) { return is_upper(x); });
  const bool small = std::any_of(t.begin(), t.end(), [](char x) { return is_lower(x); });
  const bool digit = std::any_of(t.begin(), t.end(), [](char x) { return is_digit(x); });
  if (!small) return false;
  return (is_upper(t[0]) && (!first || digit)) || upper_inside;
}

/// By what a phrase of the glossary is found. Pieces of one letter count here: without its "e", "e-core" would be found in every "core".
std::string phrase_key(std::string_view phrase) {
  size_t length = 0;
  for (size_t i = 0; i <= phrase.size(); ++i) {
    const bool inside = i < phrase.size() && (is_upper(phrase[i]) || is_lower(phrase[i]) || is_digit(phrase[i]));
    if (!inside && length == 1 && !is_digit(phrase[i - 1])) return fold_name(phrase);
    length = inside ? length + 1 : 0;
  }
  return stem_key(phrase);
}

bool is_several_words(const std::string& phrase) {
  size_t pieces = 0;
  for (const auto& c : chunks_of(phrase)) pieces += pieces_of(c.text).size();
  return pieces > 1;
}

std::string joined(const std::vector<const chunk*>& chunks) {
  std::string all;
  for (const auto* c : chunks) {
    if (!all.empty()) all += ' ';
    all += c->text;
  }
  return all;
}

void add_different(std::vector<std::string>& list, std::string text) {
  if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

/// Chunks that remain may be a name in words: "branch misses".
void add_names_in_words(const std::vector<const chunk*>& content, std::vector<std::string>& names) {
  if (content.empty() || content.size() > longest_name) return;
  const auto text = joined(content);
  add_different(names, fold_name(text));
  add_different(names, stem_key(text));
}

} // namespace

phrase_book::phrase_book(glossary words, const std::vector<std::string>& profilers) : words_(std::move(words)), hardware_(words_) {
  for (const auto& profiler : profilers)
    if (profiler.size() > 1) at(profiler).profiler = profiler;
  for (const auto& [profiler, phrases] : words_.profilers) {
    at(profiler).profiler = profiler;
    for (const auto& phrase : phrases) at(phrase).profiler = profiler;
  }
  for (const auto& [hardware, phrases] : words_.hardware) {
    at(hardware).hardware = hardware;
    for (const auto& phrase : phrases) at(phrase).hardware = hardware;
  }
  for (const auto& [maker, ignored] : words_.makers) at(maker).hardware = maker;
  for (size_t i = 0; i < words_.expansions.size(); ++i) {
    const auto& [word, phrases] = words_.expansions[i];
    at(word).expansions.push_back(i);
    // Back as well, from phrases of several words: who writes "last level cache" finds LLC. Single words have other senses.
    for (const auto& phrase : phrases)
      if (is_several_words(phrase)) at(phrase).reversed.push_back(i);
  }
  for (size_t i = 0; i < words_.same.size(); ++i) {
    at(words_.same[i].first).same.push_back(i);
    for (const auto& phrase : words_.same[i].second) at(phrase).same.push_back(i);
  }
}

phrase_book::meaning& phrase_book::at(std::string_view phrase) {
  auto& m = phrases_[phrase_key(phrase)];
  m.abbreviation = is_stop_word(fold_name(phrase)) || is_everyday_word(fold_name(phrase));
  return m;
}

namespace {

/// The tokens of one chunk, and the names that it may be.
void add_chunk(const chunk& c, bool of_scope, bool first, understood_question& u) {
  std::vector<token> tokens;
  append_tokens(c, tokens);
  for (const auto& t : tokens)
    if (std::none_of(u.tokens.begin(), u.tokens.end(), [&](const question_token& q) { return q.text == t.text; }))
      u.tokens.push_back({t.text, c.text, t.what == token::type::whole, of_scope});
  if (c.identifier) {
    if (u.identifiers.size() < max_identifiers) add_different(u.identifiers, c.text);
    add_different(u.names, fold_name(c.text));
    add_different(u.names, fold_name(base_metric(c.text)));
    add_different(u.names, stem_key(c.text));
  } else if (has_telling_case(c, first)) {
    u.exact_names.push_back(c.text);
  }
}

} // namespace

std::string phrase_book::canonical_profiler(const std::string& text) const {
  const auto it = phrases_.find(phrase_key(text));
  return it != phrases_.end() && !it->second.profiler.empty() ? it->second.profiler : text;
}

std::string phrase_book::canonical_hardware(const std::string& text) const {
  const auto it = phrases_.find(phrase_key(text));
  return it != phrases_.end() && !it->second.hardware.empty() ? it->second.hardware : text;
}

void phrase_book::expand(const meaning& m, const std::string& written, understood_question& u, word_group& group) const {
  const auto add = [&](const std::string& phrase) {
    std::vector<std::string> texts;
    for (const auto& t : tokens_of(phrase)) {
      add_different(u.expanded, t.text);
      texts.push_back(t.text);
    }
    if (!texts.empty()) group.others.push_back(std::move(texts));
  };
  for (const auto e : m.expansions) {
    const auto& [word, phrases] = words_.expansions[e];
    u.expansions.push_back(word + " -> " + join(phrases, ", "));
    u.text += ' ' + join(phrases, " ");
    for (const auto& phrase : phrases) add(phrase);
  }
  for (const auto e : m.same) { // not for the vector: there they gained nothing
    add(words_.same[e].first);
    for (const auto& phrase : words_.same[e].second) add(phrase);
  }
  for (const auto e : m.reversed) {
    u.expansions.push_back(written + " -> " + words_.expansions[e].first);
    u.text += ' ' + words_.expansions[e].first;
    add(words_.expansions[e].first);
  }
}

understood_question phrase_book::understand(std::string_view question) const {
  understood_question u;
  auto chunks = chunks_of(question.substr(0, max_question_bytes));
  if (chunks.size() > max_chunks) chunks.resize(max_chunks);
  std::vector<bool> of_scope(chunks.size(), false), of_profiler(chunks.size(), false);

  // Phrases of the glossary, the longest first at each place.
  for (size_t i = 0; i < chunks.size();) {
    size_t taken = 0;
    word_group group;
    for (size_t length = std::min(longest_glossary_phrase, chunks.size() - i); length > 0 && taken == 0; --length) {
      std::string text;
      for (size_t k = i; k < i + length; ++k) text += (text.empty() ? "" : " ") + chunks[k].text;
      const auto it = phrases_.find(phrase_key(text));
      if (it == phrases_.end() || it->first.empty()) continue; // nothing but single letters
      const auto& m = it->second;
      if (m.abbreviation && std::any_of(text.begin(), text.end(), is_lower)) continue;
      taken = length;
      if (!m.profiler.empty()) u.profiler = m.profiler;
      if (!m.hardware.empty()) u.hardware = m.hardware;
      for (size_t k = i; k < i + length; ++k) {
        if (!m.profiler.empty() || !m.hardware.empty()) of_scope[k] = true;
        if (!m.profiler.empty()) of_profiler[k] = true;
      }
      expand(m, text, u, group);
    }
    taken = std::max<size_t>(taken, 1);
    if (!of_scope[i]) {
      for (size_t k = i; k < i + taken; ++k) {
        std::vector<token> tokens;
        append_tokens(chunks[k], tokens);
        for (const auto& t : tokens)
          if (t.what != token::type::whole) add_different(group.own, t.text);
      }
      if (!group.own.empty()) u.groups.push_back(std::move(group));
    }
    i += taken;
  }

  // "what is Nsight Compute" asks for the profiler itself: its words stay where nothing else is left.
  auto is_content = [&](size_t i, const std::vector<bool>& left_out) {
    std::vector<token> tokens;
    if (!left_out[i]) append_tokens(chunks[i], tokens);
    return !tokens.empty();
  };
  bool other_content = false;
  for (size_t i = 0; i < chunks.size(); ++i) other_content = other_content || is_content(i, of_profiler);
  if (!other_content) std::fill(of_profiler.begin(), of_profiler.end(), false);

  std::vector<const chunk*> content, without_scope, without_filler;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const auto& c = chunks[i];
    if (of_profiler[i]) continue;
    add_chunk(c, of_scope[i], i == 0, u);
    const auto folded = fold_name(c.text);
    u.asks_option = u.asks_option || asks_for_option(folded) || c.text.starts_with("--");
    u.asks_metric = u.asks_metric || (is_filler(folded) && folded != "number" && folded != "value" && folded != "values");
    if (is_stop_word(folded)) continue;
    content.push_back(&c);
    if (of_scope[i]) continue;
    without_scope.push_back(&c);
    if (!is_filler(folded)) without_filler.push_back(&c);
  }
  for (const auto& name : u.names) u.in_passing.push_back(name);
  std::vector<std::string> whole;
  for (const auto* words : {&content, &without_scope, &without_filler}) add_names_in_words(*words, whole);
  std::erase_if(u.in_passing, [&](const std::string& name) { return std::find(whole.begin(), whole.end(), name) != whole.end(); });
  for (auto& name : whole) add_different(u.names, std::move(name));
  if (u.groups.empty()) // it names a profiler or hardware and nothing else
    for (const auto& t : u.tokens)
      if (!t.whole) u.groups.push_back({{t.text}, {}});
  // An expansion that the question has anyway is no evidence of its own.
  std::erase_if(u.expanded, [&](const std::string& t) {
    return std::any_of(u.tokens.begin(), u.tokens.end(), [&](const question_token& q) { return q.text == t; });
  });
  u.text = std::string(question.substr(0, max_question_bytes)) + u.text;
  return u;
}

} // namespace pragma
