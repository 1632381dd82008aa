#include "synthesis/cpp/code.hpp"

#include <stdexcept>

namespace pragma::synthesis {

void code::append(const code& other) {
  for (const auto& l : other.lines_) lines_.push_back({l.depth < 0 ? -1 : l.depth + depth_, l.text, l.comment});
  helpers_.insert(other.helpers_.begin(), other.helpers_.end());
}

std::string code::use(std::string_view helper) {
  std::string name(helper);
  if (!is_helper(name)) throw std::logic_error("no helper is called " + name);
  helpers_.insert(name);
  return name;
}

std::string code::written(int depth, bool comments) const {
  std::string out;
  for (const auto& l : lines_) {
    if (l.comment && !comments) continue;
    out.append(static_cast<size_t>(l.depth < 0 ? 0 : 2 * (depth + l.depth)), ' ');
    out += l.text;
    out += '\n';
  }
  return out;
}

} // namespace pragma::synthesis
