#include "cluster/pair.hpp"

#include "base/files.hpp"

#include <cstdio>
#include <random>
#include <tuple>

namespace pragma {

expected<pair_state> read_pair_state(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) {
    auto text = read_file(file);
    if (!text) return fail(text.error());
    auto parsed = parse_json(*text, file.string());
    if (!parsed) return fail(parsed.error());
    auto state = from_json_value<pair_state>(*parsed, file.string());
    if (state) state->serves = false; // whoever wrote it is gone
    return state;
  }
  pair_state fresh;
  std::random_device source;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", source(), source());
  fresh.name = text;
  return fresh;
}

expected<void> keep_pair_state(const std::filesystem::path& file, const pair_state& state) {
  std::error_code told_below;
  std::filesystem::create_directories(file.parent_path(), told_below);
  return write_file_atomic(file, json(state).dump(2) + "\n");
}

bool is_ahead(const pair_state& a, const pair_state& b) {
  const auto rank = [](const pair_state& s) { return std::tie(s.whole, s.epoch, s.served, s.name); };
  return rank(a) > rank(b);
}

pair_decision decide(const pair_state& own, const pair_view& seen) {
  const auto epoch = [](uint64_t n) { return std::to_string(n); };
  if (own.told) return {turn::serve, false, "it was told to serve"};
  if (seen.other && seen.other->serves) {
    if (seen.other->epoch >= own.epoch || !own.whole) return {turn::follow, false, "the other head serves"};
    return {turn::wait, false, "the other head serves in epoch " + epoch(seen.other->epoch) + ", and here is " + epoch(own.epoch) + ": it will stand down"};
  }
  if (!own.whole && !(seen.other && !seen.other->whole)) // else both are new
    return {turn::wait, false, "this head has no whole run store: start the other head, or, where both are new and the other is to come later, this one with --serve"};
  if (seen.newest_epoch > own.epoch) return {turn::wait, false, "members have heard of epoch " + epoch(seen.newest_epoch) + ", and here is " + epoch(own.epoch) + ": start the other head, or give up what it recorded with --serve"};
  if (seen.other) {
    if (is_ahead(own, *seen.other)) return {turn::serve, false, "the other head is behind"};
    return {turn::wait, false, "the other head is ahead and about to serve"};
  }
  if (seen.away_seconds < (seen.refused ? gone_seconds : silent_seconds)) return {turn::wait, false, "the other head is away"};
  if (own.nodes > 0 ? 2 * seen.nodes < own.nodes : !seen.anybody)
    return {turn::wait, false, "the other head is away from here, and too few members miss it: " + epoch(seen.nodes) + " of " + epoch(own.nodes) + " nodes came"};
  return {turn::serve, true, "the other head is gone, and members miss it"};
}

bool may_go_on_alone(const pair_state& own, size_t nodes_now) { return own.nodes == 0 || 2 * nodes_now > own.nodes; }

} // namespace pragma
