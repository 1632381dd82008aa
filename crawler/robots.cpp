#include "crawler/robots.hpp"

#include "base/text.hpp"
#include "crawler/url.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace pragma {

namespace {

constexpr size_t max_bytes = 500 << 10;       ///< RFC 9309, 2.5: at least this much is to be read
constexpr size_t max_pattern_bytes = 1024;    ///< longer ones can't match a sensible path; they cost time on each page
constexpr size_t max_rules = 20'000;
constexpr size_t max_sitemaps_named = 50;
constexpr double max_delay_seconds = 86'400;  ///< a larger Crawl-delay is a slip; so far it is honoured

/// The product token at the start of a User-agent value: letters, '_' and '-', or "*".
std::string token_of(std::string_view value) {
  if (value.starts_with('*')) return "*";
  size_t length = 0;
  while (length < value.size() && ((value[length] >= 'a' && value[length] <= 'z') || (value[length] >= 'A' && value[length] <= 'Z') ||
                                   value[length] == '-' || value[length] == '_'))
    ++length;
  return ascii_lower(value.substr(0, length));
}

/// The same escapes as in our addresses, '*' and '$' kept.
std::string normal_pattern(std::string_view value) {
  page_url base;
  base.scheme = "http";
  base.host = "robots";
  base.path = "/";
  std::string text(value);
  if (text.starts_with('*')) text.insert(text.begin(), '/'); // "*.pdf" means any path
  // Dot segments and '#' have no place in a pattern, "//" would read as a host: those are left as they are.
  if (!text.starts_with('/') || text.starts_with("//") || text.find("/.") != std::string::npos || text.find_first_of("#\\") != std::string::npos)
    return text;
  const auto resolved = resolve_url(base, text);
  if (!resolved) return text;
  return text.ends_with('?') ? resolved->target() + "?" : resolved->target();
}

/// Prefix match with '*' and a final '$'.
bool matches(std::string_view pattern, std::string_view target) {
  const bool anchored = pattern.ends_with('$');
  if (anchored) pattern.remove_suffix(1);
  size_t at = 0;
  bool first = true;
  while (true) {
    const auto star = pattern.find('*');
    const auto piece = pattern.substr(0, star);
    const bool last = star == std::string_view::npos;
    if (first) {
      if (!target.starts_with(piece)) return false;
      at = piece.size();
      if (last) return !anchored || at == target.size();
    } else if (last && anchored) {
      return target.size() - at >= piece.size() && target.ends_with(piece);
    } else {
      const auto found = target.find(piece, at);
      if (found == std::string_view::npos) return false;
      at = found + piece.size();
      if (last) return true;
    }
    first = false;
    pattern.remove_prefix(star + 1);
  }
}

} // namespace

robots_rules robots_rules::parse(std::string_view text, std::string_view token) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (text.size() > max_bytes) {
    text = text.substr(0, max_bytes);
    text = text.substr(0, text.find_last_of("\r\n") == std::string_view::npos ? 0 : text.find_last_of("\r\n"));
  }
  const auto wanted = ascii_lower(token);
  struct group_rules {
    std::vector<rule> rules;
    double delay = 0;
    bool seen = false;
  } ours, everyone;
  robots_rules out;
  bool for_us = false, for_everyone = false, reading_agents = false;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of("\r\n"), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto key = ascii_lower(trim(line.substr(0, colon)));
    const auto value = trim(line.substr(colon + 1));
    if (key == "user-agent") {
      if (!reading_agents) for_us = for_everyone = false;
      reading_agents = true;
      const auto agent = token_of(value);
      if (agent == "*") for_everyone = everyone.seen = true;
      if (!agent.empty() && agent == wanted) for_us = ours.seen = true;
      continue;
    }
    if (key == "sitemap") { // belongs to no group
      if (out.sitemaps_.size() < max_sitemaps_named && !value.empty()) out.sitemaps_.push_back(value);
      continue;
    }
    const bool allow = key == "allow";
    if (!allow && key != "disallow" && key != "crawl-delay") continue;
    reading_agents = false;
    for (auto* group : {for_us ? &ours : nullptr, for_everyone ? &everyone : nullptr}) {
      if (!group) continue;
      if (key == "crawl-delay") {
        double seconds = 0;
        const auto [rest, problem] = std::from_chars(value.data(), value.data() + value.size(), seconds);
        if (problem == std::errc{} && std::isfinite(seconds) && seconds > 0)
          group->delay = std::max(group->delay, std::min(seconds, max_delay_seconds));
      } else if (!value.empty() && value.size() <= max_pattern_bytes && group->rules.size() < max_rules) {
        group->rules.push_back({allow, normal_pattern(value)});
      }
    }
  }
  auto& chosen = ours.seen ? ours : everyone;
  out.rules_ = std::move(chosen.rules);
  out.delay_ = chosen.delay;
  return out;
}

robots_rules robots_rules::of_status(int status, std::string_view body) {
  if (status >= 200 && status < 300) return parse(body);
  if (status < 500 && status != 429) return {}; // also a redirect that led nowhere: there is no file
  robots_rules out;
  out.unavailable_ = "robots.txt answered HTTP " + std::to_string(status) + ", so that nothing of this host may be fetched for now";
  return out;
}

std::string robots_rules::refused(std::string_view target) const {
  if (!unavailable_.empty()) return unavailable_;
  if (target == "/robots.txt") return {};
  const rule* best = nullptr;
  for (const auto& r : rules_) {
    if (best && (r.pattern.size() < best->pattern.size() || (r.pattern.size() == best->pattern.size() && !r.allow))) continue;
    if (matches(r.pattern, target)) best = &r;
  }
  if (!best || best->allow) return {};
  return "robots.txt: Disallow: " + printable(best->pattern);
}

} // namespace pragma
