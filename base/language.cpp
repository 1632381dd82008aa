#include "base/language.hpp"

#include <array>

namespace pragma {

namespace {

constexpr std::array rows{
    language{language_name::cpp, false, ".cpp", "cpp", "#error \"the model gave no kernel\"\n"},
    language{language_name::triton, true, ".py", "python", "raise SystemExit('the model gave no kernel')\n"},
};

} // namespace

std::span<const language> languages() { return rows; }

const language* find_language(std::string_view name) {
  for (const auto& l : rows)
    if (l.name == name) return &l;
  return nullptr;
}

bool in_python(std::string_view name) {
  const auto* l = find_language(name);
  return l && l->in_python;
}

std::string language_names() {
  std::string names;
  for (size_t i = 0; i < rows.size(); ++i) names += (i == 0 ? "" : i + 1 == rows.size() ? " or " : ", ") + std::string(rows[i].name);
  return names;
}

} // namespace pragma
