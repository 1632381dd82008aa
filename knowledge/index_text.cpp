#include "knowledge/index_text.hpp"

#include "base/text.hpp"
#include "embeddings/tokens.hpp"

#include <algorithm>

namespace pragma {

namespace {

// Of one field: an entry is some hundred words; a page that was taken for one must not fill the index.
constexpr size_t max_field_bytes = 16 << 10;
constexpr size_t max_quotes = 3;

void append(std::string& out, std::string_view text, std::string_view separator = "\n") {
  if (text.empty()) return;
  if (!out.empty()) out += separator;
  out += text.substr(0, max_field_bytes);
}

} // namespace

column_texts columns_of(const entry& e) {
  column_texts c;
  append(c.name, e.name);
  for (const auto& alias : e.aliases) append(c.name, alias);
  append(c.name, e.spelled); // the same name in words
  append(c.meaning, e.meaning);
  append(c.rest, e.measurement);
  append(c.rest, e.reading);
  for (const auto& diagnosis : e.diagnoses) append(c.rest, diagnosis);
  for (const auto& hardware : e.hardware) append(c.rest, hardware);
  for (const auto& question : e.questions) append(c.rest, question);
  for (size_t i = 0; i < std::min(e.sources.size(), max_quotes); ++i) append(c.rest, e.sources[i].quote);
  return c;
}

std::string joined_tokens(std::string_view text) {
  std::string out;
  for (const auto& t : tokens_of(text)) {
    if (!out.empty()) out += ' ';
    out += t.text;
  }
  return out;
}

std::string embedding_text(const entry& e) {
  std::string text = e.name.substr(0, max_field_bytes);
  if (!e.aliases.empty()) text += " (" + join(e.aliases, ", ").substr(0, max_field_bytes) + ")";
  text += ":";
  append(text, e.spelled, " ");
  append(text, e.meaning, " ");
  append(text, e.measurement, " ");
  append(text, e.reading, " ");
  for (const auto& diagnosis : e.diagnoses) append(text, diagnosis, " ");
  for (const auto& question : e.questions) append(text, question, " ");
  return text;
}

} // namespace pragma
