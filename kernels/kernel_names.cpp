#include "kernels/kernel_names.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>

namespace pragma {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The identifier that `text` begins with.
std::string identifier(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && is_word(text[end])) ++end;
  return std::string(text.substr(0, end));
}

/// Where "jit" stands as a word of its own, from `at` on.
size_t find_jit(std::string_view text, size_t at = 0) {
  for (at = text.find("jit", at); at != std::string_view::npos; at = text.find("jit", at + 1))
    if ((at == 0 || !is_word(text[at - 1])) && (at + 3 == text.size() || !is_word(text[at + 3]))) return at;
  return at;
}

/// "_0d1d2de": one digit or more for the argument, then d (divisible by 16), c (one) or e (by 8).
bool is_signature(std::string_view suffix) {
  return suffix.size() > 1 && suffix.front() == '_' && suffix.find_first_not_of("0123456789cde", 1) == std::string_view::npos && std::isdigit(static_cast<unsigned char>(suffix[1]));
}

} // namespace

std::vector<std::string> jit_functions(std::string_view source) {
  std::vector<std::string> found;
  const auto add = [&](std::string name) {
    if (!name.empty() && std::find(found.begin(), found.end(), name) == found.end()) found.push_back(std::move(name));
  };
  bool decorated = false; // a decorator may go on for many lines: it holds until the next function
  for (const auto& whole : split(std::string(source), '\n')) {
    const auto line = trim(whole.substr(0, whole.find('#')));
    const auto at = find_jit(line);
    if (line.starts_with("@")) {
      decorated = decorated || at != std::string::npos;
    } else if (line.starts_with("def ")) {
      if (decorated) add(identifier(trim(line.substr(4))));
      decorated = false;
    } else {
      for (auto call = at; call != std::string::npos; call = find_jit(line, call + 3))
        if (const auto rest = std::string_view(line).substr(call + 3); rest.starts_with("(")) add(identifier(trim(std::string(rest.substr(1)))));
    }
  }
  return found;
}

std::vector<std::string> foreign_kernels(std::string_view source, const std::vector<std::string>& launched) {
  const auto own = jit_functions(source);
  std::vector<std::string> foreign;
  for (const auto& kernel : launched) {
    const bool known = std::any_of(own.begin(), own.end(), [&](const std::string& name) {
      return kernel == name || (kernel.starts_with(name) && is_signature(std::string_view(kernel).substr(name.size())));
    });
    if (!known && std::find(foreign.begin(), foreign.end(), kernel) == foreign.end()) foreign.push_back(kernel);
  }
  return foreign;
}

} // namespace pragma
