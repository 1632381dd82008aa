// The way from a graph to a text, shape by shape: what the built-in coder writes is what golden/ keeps. No Torch, no compiler, no
// device. PRAGMA_GOLDEN=accept writes the texts of now instead; `git diff` then shows what changed.
#include "golden.hpp"

#include "base/text.hpp"
#include "synthesis/lower/lower.hpp"

#include <cctype>
#include <cstdlib>
#include <set>

using namespace pragma;
using namespace pragma::test;

namespace {

struct parts {
  std::string head, helpers, rest; ///< the header's lines, the small functions that were copied in, statics and the kernel
};

/// Helpers are the same text in every kernel: the golden text leaves them out, and another test looks at them.
parts split_source(const std::string& source) {
  const std::string begin = "namespace {\n\n", end = "} // namespace\n";
  const auto from = source.find(begin), to = source.find(end);
  REQUIRE(from != std::string::npos);
  REQUIRE(to != std::string::npos);
  parts p;
  p.head = source.substr(0, from + begin.size());
  const auto inside = source.substr(from + begin.size(), to - from - begin.size());
  size_t at = 0; // of the first static
  while (at < inside.size()) {
    const auto line = inside.substr(at, inside.find('\n', at) - at);
    if (line.find("// between regions") != std::string::npos || line.rfind("alignas(64) const ", 0) == 0) break;
    at += line.size() + 1;
  }
  p.helpers = inside.substr(0, std::min(at, inside.size()));
  p.rest = (at < inside.size() ? inside.substr(at) : "") + source.substr(to);
  return p;
}

std::string kept_text(const candidate& c) {
  if (c.language != "c++") return c.source;
  const auto p = split_source(c.source);
  return p.head + "// (helpers)\n\n" + p.rest;
}

/// The first line that differs, with its number; empty when none does.
std::string difference(const std::string& kept, const std::string& now) {
  const auto a = split(kept, '\n'), b = split(now, '\n');
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const auto x = i < a.size() ? a[i] : "(the end)", y = i < b.size() ? b[i] : "(the end)";
    if (x != y) return "line " + std::to_string(i + 1) + "\n  kept: " + x + "\n  now:  " + y;
  }
  return "";
}

void compare(const std::string& language, const std::string& extension) {
  const char* wanted = std::getenv("PRAGMA_GOLDEN");
  const bool accept = wanted && std::string(wanted) == "accept";
  const auto names = golden_names();
  CHECK(names.size() >= 40);
  for (const auto& name : names) {
    const auto shape = golden(name, language);
    auto coder = coder_of(shape);
    const auto made = coder.next(std::nullopt);
    REQUIRE(made);
    const auto text = kept_text(*made);
    const auto file = golden_folder() / (name + extension);
    if (accept) {
      REQUIRE(write_file_atomic(file, text));
      continue;
    }
    const auto kept = read_file(file);
    if (!kept) FAIL_CHECK(render(kept.error()));
    else if (const auto found = difference(*kept, text); !found.empty())
      FAIL_CHECK(file.filename().string() << ", " << found << "\n  PRAGMA_GOLDEN=accept writes what is made now; look at the difference before it is kept");
  }
}

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Names that are called in `text`: NAME( and NAME<...>(; without those that belong to a namespace or an object.
std::set<std::string> called(const std::string& text) {
  static const std::set<std::string> of_the_language{"if", "for", "while", "return", "sizeof", "alignas", "defined", "__attribute__", "static_cast", "switch", "__builtin_prefetch",
                                                     "num_threads", "schedule", "collapse", "float", "double", "int64_t", "int32_t", "decltype", "int"};
  std::set<std::string> names;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (!in_name(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && in_name(text[end])) ++end;
    size_t next = end;
    if (next < text.size() && text[next] == '<') {
      int depth = 0;
      for (; next < text.size() && text[next] != ';' && text[next] != '\n'; ++next) {
        if (text[next] == '<') ++depth;
        if (text[next] == '>' && --depth == 0) break;
      }
      if (depth == 0) ++next;
    }
    const bool of_another = i > 0 && (text[i - 1] == ':' || text[i - 1] == '.' || std::isdigit(static_cast<unsigned char>(text[i])));
    const auto name = text.substr(i, end - i);
    if (!of_another && next < text.size() && text[next] == '(' && !of_the_language.count(name)) names.insert(name);
    i = end;
  }
  return names;
}

/// Is NAME declared here: as a function, a lambda or a type?
bool declares(const std::string& text, const std::string& name) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const auto after = at + name.size();
    if ((at > 0 && in_name(text[at - 1])) || (after < text.size() && in_name(text[after]))) continue;
    const auto before = text.substr(text.rfind('\n', at) + 1, at - text.rfind('\n', at) - 1);
    for (const char* word : {"inline ", "template", "static ", "auto ", "using ", "struct ", "const ", "typedef "})
      if (before.find(word) != std::string::npos) return true;
    if (!before.empty() && before[0] != ' ' && before.find('=') == std::string::npos) return true; // TYPE NAME(...) at the margin
  }
  return false;
}

} // namespace

TEST_CASE("the C++ that every golden graph becomes is the one that was kept", "[golden]") { compare("c++", ".cpp"); }

TEST_CASE("the Triton module that every golden graph becomes is the one that was kept", "[golden]") { compare("triton", ".py"); }

TEST_CASE("every helper that a kernel calls is copied into its source") {
  for (const auto& name : golden_names()) {
    auto coder = coder_of(golden(name));
    const auto made = coder.next(std::nullopt);
    REQUIRE(made);
    const auto p = split_source(made->source);
    for (const auto& function : called(p.rest)) {
      INFO(name << ": " << function);
      CHECK((declares(p.helpers, function) || declares(p.rest, function)));
    }
  }
}

TEST_CASE("a text depends on the graph and the options alone: twice the same") {
  for (const char* language : {"c++", "triton"})
    for (const char* name : {"softmax_last", "product", "convolution_pool_norm"}) {
      auto one = coder_of(golden(name, language)), two = coder_of(golden(name, language));
      for (int i = 0; i < 5; ++i) {
        const auto a = one.next(std::nullopt), b = two.next(std::nullopt);
        REQUIRE(a.has_value() == b.has_value());
        if (!a) break;
        CHECK(a->source == b->source);
        CHECK(a->id() == b->id());
      }
    }
}

TEST_CASE("the table of operators in the docs is that of the rules", "[operators]") {
  const auto file = std::filesystem::path(TESTS_DIR).parent_path() / "docs" / "operators.md";
  const auto now = synthesis::lowered_operators();
  if (const char* wanted = std::getenv("PRAGMA_GOLDEN"); wanted && std::string(wanted) == "accept") REQUIRE(write_file_atomic(file, now));
  const auto kept = read_file(file);
  REQUIRE(kept);
  INFO(difference(*kept, now));
  CHECK(*kept == now);
}
