#include "cluster/greeting.hpp"

#include "base/text.hpp"
#include "base/version.hpp"

namespace pragma {

greeting own_greeting(const std::string& want) {
  greeting g;
  g.version = pragma_version;
  g.want = want;
  return g;
}

std::string version_problem(const greeting& head, const greeting& member) {
  const bool older = member.protocol < head.oldest, newer = head.protocol < member.oldest;
  if (!older && !newer) return {};
  const auto who = member.want == "user" ? std::string("command") : printable(member.want.substr(0, 20));
  return "head " + printable(head.version.substr(0, 20)) + " (protocol " + std::to_string(head.protocol) + "), " + who + " " + printable(member.version.substr(0, 20)) + " (protocol " +
         std::to_string(member.protocol) + "): upgrade the " + (older ? who : std::string("head")) + " first";
}

role role_for(const std::string& want) {
  return want == "node" ? role::node : want == "user" ? role::admin : want == "head" ? role::head : role::none;
}

std::string role_problem(const identity& who, const std::string& want) {
  const auto needed = role_for(want);
  if (needed == role::none) return "nobody here knows what a " + printable(want.substr(0, 20)) + " is";
  if (who.what == needed || (needed == role::admin && who.what == role::user)) return {};
  return "the certificate of " + printable(who.name) + " is for a " + name(who.what) + ", and this is work for a " + (needed == role::admin ? "user or an admin" : name(needed)) +
         ": `pragma cluster ca issue NAME --role " + (needed == role::admin ? "user" : name(needed)) + "`";
}

} // namespace pragma
