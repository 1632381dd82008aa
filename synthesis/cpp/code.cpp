#include "synthesis/cpp/code.hpp"

#include <stdexcept>

namespace pragma::synthesis {

void code::append(const code& other) {
  for (const auto& r : other.lines_) lines_.push_back({r.depth < 0 ? -1 : r.depth + depth_, r.text});
  helpers_.insert(other.helpers_.begin(), other.helpers_.end());
}

std::string code::use(std::string_view helper) {
  std::string name(helper);
  if (!is_helper(name)) throw std::logic_error("no helper is called " + name);
  helpers_.insert(name);
  return name;
}

std::string code::text(int depth) const {
  std::string out;
  for (const auto& r : lines_) {
    out.append(static_cast<size_t>(r.depth < 0 ? 0 : 2 * (depth + r.depth)), ' ');
    out += r.text;
    out += '\n';
  }
  return out;
}

} // namespace pragma::synthesis
