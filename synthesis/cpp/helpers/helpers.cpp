#include "synthesis/cpp/helpers/helpers.hpp"

#include <map>
#include <stdexcept>

namespace pragma::synthesis {

namespace {

const std::map<std::string, size_t>& places() {
  static const std::map<std::string, size_t> by_name = [] {
    std::map<std::string, size_t> m;
    for (size_t i = 0; i < all_helpers().size(); ++i) m[all_helpers()[i].name] = i;
    return m;
  }();
  return by_name;
}

} // namespace

const std::vector<helper>& all_helpers() {
  static const std::vector<helper> list = [] {
    std::vector<helper> all;
    for (const auto* part : {&memory_helpers(), &half_helpers(), &reduction_helpers(), &anchor_helpers(), &pair_helpers(), &word_helpers(), &math_helpers()}) all.insert(all.end(), part->begin(), part->end());
    return all;
  }();
  return list;
}

bool is_helper(const std::string& name) { return places().count(name) != 0; }

std::string helpers_text(const std::set<std::string>& used, int lanes) {
  std::vector<bool> wanted(all_helpers().size(), false);
  std::vector<std::string> open{"vector_types", "some_lanes"};
  open.insert(open.end(), used.begin(), used.end());
  while (!open.empty()) {
    const auto it = places().find(open.back());
    if (it == places().end()) throw std::logic_error("no helper is called " + open.back());
    open.pop_back();
    if (wanted[it->second]) continue;
    wanted[it->second] = true;
    const auto& needs = all_helpers()[it->second].needs;
    open.insert(open.end(), needs.begin(), needs.end());
  }
  std::string out = "constexpr int W = " + std::to_string(lanes) + "; // float32 lanes of one vector\n";
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) out += all_helpers()[i].text;
  return out;
}

} // namespace pragma::synthesis
