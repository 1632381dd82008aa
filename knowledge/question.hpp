// What a question asks for, in the terms of the indexes: its tokens, the names that it may mean, the profiler and hardware that
// its words name, and the glossary's expansions. No index is asked here. Used by retriever::ask().
#pragma once

#include "embeddings/tokens.hpp"
#include "knowledge/hardware_words.hpp"
#include "knowledge/retrieval.hpp"

#include <unordered_map>

namespace pragma {

struct question_token {
  std::string text;    ///< as the index has it
  std::string written; ///< as the question has it
  bool whole = false;  ///< of an identifier, whose pieces are tokens too
  bool hardware = false; ///< part of the hardware's name: a scope, and a word to search only where no entry has such hardware
};

/// What one word or phrase of the question stands for: its own tokens, and the phrases (tokens each) that the glossary says for it.
struct word_group {
  std::vector<std::string> own;
  std::vector<std::vector<std::string>> others;
};

struct understood_question {
  std::vector<question_token> tokens;    ///< different ones, in order; words that only name a profiler are left out
  std::vector<word_group> groups;        ///< the question's words in order, those of the profiler and the hardware left out
  std::vector<std::string> expanded;     ///< tokens that the glossary adds: expansions, and words that are said for the same thing
  std::vector<std::string> expansions;   ///< "llc -> last level cache", for people
  std::string profiler, hardware;        ///< canonical, from the words; empty where none is named
  std::vector<std::string> names;        ///< keys that may be a whole name (fold_name(), stem_key()), surest first
  std::vector<std::string> exact_names;  ///< as written, where case tells that a name is meant: "Bcm"
  std::vector<std::string> identifiers;  ///< as written: look like a name, known or not
  std::vector<std::string> in_passing;   ///< of names: words like "top-down" in a longer question, which mean no concept
  bool asks_metric = false;              ///< "which counter", "what event": no concept is meant
  bool asks_option = false;              ///< "which option", "what flag": a switch of the tool is meant
  std::string text;                      ///< to be embedded: the question and its expansions
};

/// The glossary with its phrases ready to be found in questions.
class phrase_book {
public:
  /// `profilers`: those of the index, which are known by their own name too.
  phrase_book(glossary words, const std::vector<std::string>& profilers);
  understood_question understand(std::string_view question) const;
  /// The canonical word for what a user gave as a scope ("Milan" -> "zen 3"); the text itself where the glossary has none.
  std::string canonical_profiler(const std::string& text) const;
  std::string canonical_hardware(const std::string& text) const;
  /// True where both name the same hardware, by the glossary or by the same letters, or one means the other ("AMD", "Zen 3").
  bool same_hardware(const std::string& a, const std::string& b) const { return hardware_.related(a, b); }

private:
  struct meaning {
    std::string profiler, hardware;
    std::vector<size_t> expansions; ///< of words_.expansions, forwards
    std::vector<size_t> same;       ///< of words_.same
    std::vector<size_t> reversed;   ///< whose expansion this is
    bool abbreviation = false;      ///< also a stop word ("BE", "IS"): counts in capitals only
  };
  meaning& at(std::string_view phrase);
  /// What the glossary adds for a phrase of the question.
  void expand(const meaning& m, const std::string& written, understood_question& u, word_group& group) const;
  glossary words_;
  hardware_words hardware_;
  std::unordered_map<std::string, meaning> phrases_; ///< by stem_key()
};

} // namespace pragma
