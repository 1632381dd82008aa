#include "cluster/pair.hpp"

#include "base/files.hpp"

#include <algorithm>
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
    if (state) state->serves = state->claims = false; // whoever wrote it is gone
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
  const auto number = [](uint64_t n) { return std::to_string(n); };
  const auto wait = [](std::string why) { return pair_decision{turn::wait, 0, std::move(why)}; };
  if (own.told) return {turn::serve, own.epoch, "it was told to serve"};
  if (seen.other && seen.other->serves) {
    if (seen.other->epoch >= own.epoch || !own.whole) return {turn::follow, 0, "the other head serves"};
    return wait("the other head serves in epoch " + number(seen.other->epoch) + ", and here is " + number(own.epoch) + ": it will stand down");
  }
  if (seen.other && seen.other->claims) return wait("the other head is about to serve");
  if (!own.whole && !(seen.other && !seen.other->whole)) // else both are new
    return wait("this head has no whole run store: start the other head, or, where both are new and the other is to come later, this one with --serve");
  if (seen.newest_epoch > own.epoch) return wait("members have heard of epoch " + number(seen.newest_epoch) + ", and here is " + number(own.epoch) + ": start the other head, or give up what it recorded with --serve");
  if (seen.other) { // whoever asked nodes to vouch did not get enough of them: neither serves
    if (!is_ahead(own, *seen.other)) return wait("the other head is ahead and about to serve");
    return {turn::serve, std::max({own.epoch, own.proposed, seen.other->proposed, seen.vouched_epoch}) + 1, "the other head is behind"};
  }
  if (seen.away_seconds < (seen.refused ? gone_seconds : silent_seconds)) return wait("the other head is away");
  if (seen.vouched_epoch > std::max(own.epoch, own.proposed))
    return wait("the other head is away, and may have gone on alone in epoch " + number(seen.vouched_epoch) + ", for which nodes vouched: start it, or give up what it recorded with --serve");
  // Of two heads that both ask the nodes, the one that wrote needs more than half, and the other half: never both.
  const bool enough = own.nodes == 0 ? seen.anybody : own.served ? 2 * seen.nodes > own.nodes : 2 * seen.nodes >= own.nodes;
  if (!enough)
    return wait("the other head is away from here, and too few members miss it: " + number(seen.nodes) + " of " + number(own.nodes) + " nodes came");
  return {turn::serve, std::max(own.epoch, own.proposed) + 1, "the other head is gone, and members miss it"};
}

bool may_go_on_alone(const pair_state& own, size_t nodes_that_vouch) { return own.nodes == 0 || 2 * nodes_that_vouch > own.nodes; }

uint64_t witness::epoch() const {
  const std::lock_guard lock(mutex_);
  return epoch_;
}
void witness::served(uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  epoch_ = std::max(epoch_, epoch);
}
uint64_t witness::vouched() const {
  const std::lock_guard lock(mutex_);
  return vouched_;
}

bool witness::misses(const std::string& door) {
  const std::lock_guard lock(mutex_);
  if (bound_to_another(door)) return false;
  promised_to_ = door;
  promised_ = std::max(promised_, epoch_ + 1); // should its answer be lost
  return true;
}
void witness::counted(const std::string& door, uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  if (promised_to_ == door) promised_ = epoch;
}

bool witness::vouch(const std::string& door, uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  if (epoch <= epoch_ || bound_to_another(door)) return false;
  if (epoch < vouched_ || (epoch == vouched_ && vouched_to_ != door)) return false;
  vouched_ = epoch;
  vouched_to_ = door;
  return true;
}

} // namespace pragma
