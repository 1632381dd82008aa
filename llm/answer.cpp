// Model's answer -> candidate (llm/prompts.hpp). Strict, because whatever is guessed here is charged to the wrong one later.
#include "llm/prompts.hpp"

#include "base/defaults.hpp"
#include "base/language.hpp"
#include "base/text.hpp"
#include "llm/fences.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

namespace pragma {

namespace {

constexpr size_t max_rationale_bytes = 600, max_rationale_sentences = 3;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Comments and literals blanked, so that what is searched for is code. Raw strings are rare in kernels and left alone.
std::string code_only(const std::string& source) {
  std::string out = source;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out.compare(i, 2, "//") == 0) {
      while (i < out.size() && out[i] != '\n') out[i++] = ' ';
    } else if (out.compare(i, 2, "/*") == 0) {
      const auto end = out.find("*/", i + 2);
      const auto stop = end == std::string::npos ? out.size() : end + 2;
      while (i < stop) out[i++] = ' ';
      --i;
    } else if (out[i] == '"') {
      // extern "C" stays readable: only the quoted text goes.
      for (++i; i < out.size() && out[i] != '"' && out[i] != '\n'; ++i) {
        if (out[i] == '\\' && i + 1 < out.size()) out[i++] = ' ';
        out[i] = ' ';
      }
    }
  }
  return out;
}

/// `pragma_kernel(...)` followed by a body, not a declaration or a call.
bool defines_kernel(const std::string& source) {
  static const std::string name = "pragma_kernel";
  const auto code = code_only(source);
  for (auto at = code.find(name); at != std::string::npos; at = code.find(name, at + 1)) {
    auto i = at + name.size();
    if ((at > 0 && is_word(code[at - 1])) || (i < code.size() && is_word(code[i]))) continue;
    i = code.find_first_not_of(" \t\n", i);
    if (i == std::string::npos || code[i] != '(') continue;
    int depth = 0;
    for (; i < code.size(); ++i) {
      if (code[i] == '(') ++depth;
      if (code[i] == ')' && --depth == 0) break;
    }
    if (i >= code.size()) continue;
    i = code.find_first_not_of(" \t\n", i + 1);
    if (i != std::string::npos && code.compare(i, 8, "noexcept") == 0) i = code.find_first_not_of(" \t\n", i + 8);
    if (i != std::string::npos && code[i] == '{') return true;
  }
  return false;
}

/// Python with its comments and texts blanked.
std::string python_code_only(std::string source) {
  for (size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    if (c == '#') {
      while (i < source.size() && source[i] != '\n') source[i++] = ' ';
    } else if (c == '"' || c == '\'') {
      const bool triple = source.compare(i, 3, std::string(3, c)) == 0;
      const std::string closing(triple ? 3 : 1, c);
      for (i += closing.size(); i < source.size() && source.compare(i, closing.size(), closing) != 0; ++i) {
        if (!triple && source[i] == '\n') break;
        if (source[i] == '\\' && i + 1 < source.size() && source[i + 1] != '\n') source[i++] = ' ';
        if (source[i] != '\n') source[i] = ' ';
      }
      i += closing.size() - 1;
    }
  }
  return source;
}

/// `class ModelNew` at the start of a line, with its colon or bases.
bool defines_model(const std::string& source) {
  static const std::string name = "class ModelNew";
  const auto code = python_code_only(source);
  for (auto at = code.find(name); at != std::string::npos; at = code.find(name, at + 1)) {
    const auto next = code.find_first_not_of(" \t", at + name.size());
    if ((at == 0 || code[at - 1] == '\n') && next != std::string::npos && (code[next] == '(' || code[next] == ':')) return true;
  }
  return false;
}

bool is_python(const llm::code_block& b) {
  if (b.language.empty()) return b.content.find("ModelNew") != std::string::npos;
  return b.language == "python" || b.language == "py" || b.language == "python3" || in_python(b.language);
}

/// What an answer in a language must look like, and the words of what is missing.
struct form {
  bool (*is_source)(const llm::code_block&);
  bool (*is_whole)(const std::string&);
  const char* block;   ///< "C++ block"
  const char* fence;
  const char* entry;   ///< what the source must define
};

/// The language says so, or there is none and the text is plainly a kernel.
bool is_cpp(const llm::code_block& b) {
  static const std::vector<std::string> names = {"cpp", "c++", "c", "cc", "cxx", "hpp", "h"};
  if (b.language.empty()) return b.content.find("pragma_kernel") != std::string::npos;
  return std::find(names.begin(), names.end(), b.language) != names.end();
}

/// The rest of a line "key: rest", with or without Markdown's decoration ("- **Flags:** `-O3`").
std::optional<std::string> value_of(const std::string& line, std::string_view key) {
  const auto start = line.find_first_not_of(" \t*-_>`#");
  if (start == std::string::npos || line.size() - start < key.size()) return std::nullopt;
  for (size_t i = 0; i < key.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(line[start + i])) != key[i]) return std::nullopt;
  const auto colon = line.find_first_not_of(" \t*_`", start + key.size());
  if (colon == std::string::npos || line[colon] != ':') return std::nullopt;
  auto rest = line.substr(colon + 1);
  std::replace_if(rest.begin(), rest.end(), [](char c) { return c == '`' || c == '*'; }, ' ');
  return trim(rest);
}

expected<void> take_flags(const std::string& value, std::vector<std::string>& flags) {
  std::string text = value;
  if (text == "none" || text == "(none)") return {};
  for (const auto& word : split(text, ' ')) {
    auto flag = trim(word);
    while (flag.ends_with(',')) flag.pop_back();
    if (flag.empty()) continue;
    if (flag[0] != '-' || flag.size() < 2)
      return fail(ec::parse_error, "the flags line has '" + flag.substr(0, 60) + "' in it, which is not a compiler flag");
    flags.push_back(flag);
  }
  return {};
}

expected<std::string> compiler_of(std::string value) {
  for (auto& c : value) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (value == "gcc" || value == "g++") return std::string("gcc");
  if (value == "clang" || value == "clang++") return std::string("clang");
  return fail(ec::parse_error, "the compiler line says '" + value.substr(0, 60) + "'; it must be gcc or clang");
}

/// Names of the classes that a finding can have.
const std::set<std::string>& finding_classes() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (int i = 0; i <= static_cast<int>(bottleneck::register_spills); ++i) all.insert(json(static_cast<bottleneck>(i)).get<std::string>());
    return all;
  }();
  return names;
}

/// The first sentences of the prose, on one line.
std::string rationale_of(const std::vector<std::string>& prose) {
  std::string text;
  for (const auto& line : prose) {
    const auto start = line.find_first_not_of(" \t#*->");
    if (start == std::string::npos) continue;
    if (!text.empty()) text += ' ';
    text += trim(std::string_view(line).substr(start));
  }
  size_t sentences = 0, end = text.size();
  for (size_t i = 0; i < text.size(); ++i) {
    const bool stops = (text[i] == '.' || text[i] == '!' || text[i] == '?') && (i + 1 == text.size() || text[i + 1] == ' ');
    if (stops && ++sentences == max_rationale_sentences) {
      end = i + 1;
      break;
    }
  }
  text.resize(end);
  if (text.size() > max_rationale_bytes) {
    size_t cut = max_rationale_bytes;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
    text.resize(cut);
    text += "...";
  }
  return text;
}

} // namespace

expected<coded_answer> parse_answer(std::string_view raw, const std::string& language) {
  const bool module = in_python(language);
  const form wanted = module ? form{is_python, defines_model, "Python block", "```python", "class ModelNew"}
                             : form{is_cpp, defines_kernel, "C++ block", "```cpp", "pragma_kernel"};
  if (raw.size() > defaults::max_candidate_source)
    return fail(ec::parse_error, "the answer is longer than " + format_bytes(static_cast<double>(defaults::max_candidate_source)));
  // Also drops the carriage returns of CRLF.
  const auto text = printable(strip_thinking(raw));
  if (trim(text).empty()) return fail(ec::parse_error, "the answer is empty");
  const auto parts = llm::take_apart(text);
  if (parts.unterminated)
    return fail(ec::parse_error, "the last fenced code block is not closed (was the answer cut off?)");
  if (parts.blocks.empty()) return fail(ec::parse_error, "no fenced code block");

  coded_answer answer;
  size_t sources = 0, blocks = 0;
  for (const auto& block : parts.blocks) {
    if (!wanted.is_source(block)) continue;
    ++blocks;
    if (!wanted.is_whole(block.content)) continue;
    if (++sources == 1) answer.source = block.content;
  }
  if (blocks == 0) return fail(ec::parse_error, std::string("no fenced ") + wanted.block + " (the blocks must start with " + wanted.fence + ")");
  if (sources == 0) return fail(ec::parse_error, std::string(wanted.entry) + " is not defined in the fenced " + wanted.block);
  if (sources > 1)
    return fail(ec::parse_error, (sources == 2 ? std::string("two") : std::to_string(sources)) + " fenced sources define " + wanted.entry + "; there must be one");

  std::vector<std::string> prose;
  for (const auto& line : parts.prose) {
    if (const auto answers = value_of(line, "answers")) {
      if (finding_classes().count(*answers) != 0) answer.answers = *answers;
    } else if (module) { // it has neither flags nor a compiler to choose
      prose.push_back(line);
    } else if (const auto flags = value_of(line, "flags")) {
      if (auto good = take_flags(*flags, answer.flags); !good) return fail(good.error());
    } else if (const auto compiler = value_of(line, "compiler")) {
      auto chosen = compiler_of(*compiler);
      if (!chosen) return fail(chosen.error());
      answer.compiler = *chosen;
    } else {
      prose.push_back(line);
    }
  }
  answer.rationale = rationale_of(prose);
  return answer;
}

} // namespace pragma
