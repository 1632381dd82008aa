#include "cluster/roles.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace pragma {

namespace {

const std::map<role, std::string>& words() {
  static const std::map<role, std::string> all{{role::none, "none"}, {role::node, "node"}, {role::user, "user"}, {role::admin, "admin"}, {role::head, "head"}};
  return all;
}

const std::vector<std::pair<std::string, std::set<role>>>& table() {
  using enum role;
  static const std::vector<std::pair<std::string, std::set<role>>> rows{
      {"join", {node}},          {"beat", {node}},          {"done", {node}},         {"drain", {node}},        {"leave", {node}},        {"vouch", {node}},
      {"start", {user, admin}},  {"news", {user, admin}},   {"fetch", {user, admin}}, {"list", {user, admin}},  {"halt", {user, admin}},
      {"cancel", {user, admin}}, {"status", {user, admin}}, {"ask", {user, admin}},   {"release", {admin}},
      {"who", {head}},           {"follow", {head}}};
  return rows;
}

} // namespace

std::string name(role r) { return words().at(r); }

role role_named(const std::string& word) {
  for (const auto& [r, text] : words())
    if (text == word) return r;
  return role::none;
}

const std::vector<std::string>& frame_kinds() {
  static const auto all = [] {
    std::vector<std::string> kinds;
    for (const auto& [kind, who] : table()) kinds.push_back(kind);
    return kinds;
  }();
  return all;
}

bool may(role who, const std::string& kind) {
  return std::any_of(table().begin(), table().end(), [&](const auto& row) { return row.first == kind && row.second.contains(who); });
}

bool may_be_called(const identity& who, const std::string& node) {
  if (who.serial.empty()) return !node.empty(); // no TLS: loopback, where names are not proved
  return node == who.name || (node.size() > who.name.size() + 1 && node.starts_with(who.name + "."));
}

} // namespace pragma
