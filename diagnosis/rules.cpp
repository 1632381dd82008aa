#include "diagnosis/rule_context.hpp"

#include <algorithm>

namespace pragma {

namespace {

/// All rules, the more specific ones first: the order decides between findings of equal confidence.
constexpr rule::rule_function all_rules[] = {
    rule::call_overhead,     rule::redundant_work, rule::load_imbalance,   rule::thread_overhead, rule::strided_access,
    rule::too_many_passes,   rule::store_bandwidth, rule::not_vectorized,  rule::divider,         rule::dependency_chain,
    rule::scalar_tail,       rule::bad_speculation, rule::front_end,       rule::memory_latency,  rule::memory_bandwidth,
    rule::port_pressure,     rule::denormals,
};

/// The same for devices.
constexpr rule::rule_function device_rules[] = {
    rule::device::register_spills, rule::device::uncoalesced_access, rule::device::bank_conflicts, rule::device::tail_effect,
    rule::device::launch_bound,    rule::device::too_many_passes,    rule::device::tensor_cores_idle, rule::device::memory_bandwidth,
    rule::device::compute_bound,   rule::device::occupancy_limited,  rule::device::latency_bound,
};

template <class Rules> std::vector<finding> apply(const Rules& rules, const rule::facts& facts) {
  std::vector<finding> found;
  for (const auto& rule : rules)
    if (auto f = rule(facts)) found.push_back(std::move(*f));
  std::stable_sort(found.begin(), found.end(), [](const finding& a, const finding& b) { return a.confidence > b.confidence; });
  return found;
}

} // namespace

std::vector<finding> diagnose(const diagnosis_input& input) {
  if (!input.current) return {};
  const rule::facts facts(input);
  // At the hardware's limit whatever else may be said of the code costs no time.
  if (auto done = facts.device ? rule::device::at_roofline(facts) : rule::at_roofline(facts)) return {std::move(*done)};
  return facts.device ? apply(device_rules, facts) : apply(all_rules, facts);
}

} // namespace pragma
