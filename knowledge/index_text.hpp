// What of an entry can be found: its tokens in the three columns of the lexical index, and the text that is embedded.
// Used by retriever::build() and by the benchmark that compares with SQLite's own tokenizer over the same texts.
#pragma once

#include "knowledge/entry.hpp"

#include <string>

namespace pragma {

/// Text of an entry by how much a word in it says about what the entry is: names and aliases; the meaning; measurement, reading,
/// diagnoses, hardware, a model's questions and quotes. `related` is left out: it speaks of other entries.
struct column_texts {
  std::string name, meaning, rest;
};
column_texts columns_of(const entry& e);
/// Tokens of a text, separated by spaces.
std::string joined_tokens(std::string_view text);
/// "name (alias, alias): meaning measurement reading diagnoses questions".
std::string embedding_text(const entry& e);

} // namespace pragma
