#include "diagnosis/predict.hpp"
#include "diagnosis/rule_context.hpp"
#include "diagnosis/source_parts.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace pragma {

namespace {

/// All rules, the more specific ones first: the order decides between findings of equal confidence.
constexpr rule::rule_function all_rules[] = {
    rule::call_overhead,     rule::redundant_work, rule::load_imbalance,   rule::false_sharing, rule::thread_overhead, rule::strided_access,
    rule::too_many_passes,   rule::store_bandwidth, rule::not_vectorized,  rule::divider,         rule::dependency_chain,
    rule::scalar_tail,       rule::bad_speculation, rule::front_end,       rule::split_access,    rule::address_aliasing,
    rule::store_forwarding, rule::memory_latency,  rule::memory_bandwidth,
    rule::port_pressure,     rule::denormals,
};

/// The same for devices.
constexpr rule::rule_function device_rules[] = {
    rule::device::register_spills, rule::device::atomic_contention,  rule::device::uncoalesced_access, rule::device::bank_conflicts, rule::device::tail_effect,
    rule::device::launch_bound,    rule::device::too_many_passes,    rule::device::tensor_cores_idle, rule::device::memory_bandwidth,
    rule::device::compute_bound,   rule::device::occupancy_limited,  rule::device::latency_bound,
};

/// What the manifests of registered profilers read from their metrics.
void add_told(const profile& p, std::vector<finding>& found) {
  for (const auto& t : p.told) {
    finding f;
    f.what = json(t.what).get<bottleneck>();
    if (json(f.what).get<std::string>() != t.what) continue; // a record of a pragma that knew another class
    f.confidence = std::clamp(t.confidence, 0.0, 1.0);
    f.why = t.why;
    evidence e;
    e.metric = t.metric;
    e.value = t.value;
    e.unit = t.unit;
    e.text = t.metric + " is " + format_number(t.value, 3) + (t.unit.empty() ? "" : " " + t.unit) + ", " + (t.below ? "below " : "above ") +
             format_number(t.threshold, 3) + " (a rule of " + t.tool + "'s manifest)";
    f.proof.push_back(std::move(e));
    f.remedies = t.remedies;
    found.push_back(std::move(f));
  }
}

/// The surest comes first, and of two that are about as sure the one whose removal promises more: half of the time or more counts in full.
double weight_in_order(const finding& f) {
  constexpr double without_promise = 0.9, least = 0.8, much = 0.5;
  if (f.seconds_without <= 0 || f.seconds <= 0) return f.confidence * without_promise;
  return f.confidence * (least + (1 - least) * std::min(1.0, (1 - f.seconds_without / f.seconds) / much));
}

template <class Rules> std::vector<finding> apply(const Rules& rules, const rule::facts& facts, const profile& p) {
  std::vector<finding> found;
  for (const auto& one : rules)
    if (auto f = one(facts)) {
      rule::predict(facts, *f);
      if (f->confidence >= rule::at(rule::limit::least_confidence)) found.push_back(std::move(*f));
    }
  add_told(p, found);
  std::stable_sort(found.begin(), found.end(), [](const finding& a, const finding& b) { return weight_in_order(a) > weight_in_order(b); });
  return found;
}

} // namespace

diagnosis_input diagnosis_of(const diagnosed_with& with, const profile& current) {
  diagnosis_input input;
  static_cast<roofline_work&>(input) = with.work;
  input.current = &current;
  input.limits = with.limits.peak_gflops > 0 ? &with.limits : nullptr;
  input.source = with.source;
  input.flags = with.flags;
  input.threads = with.threads;
  return input;
}

std::vector<finding> diagnose(const diagnosis_input& input) {
  if (!input.current) return {};
  const rule::facts facts(input);
  // At the hardware's limit whatever else may be said of the code costs no time.
  if (auto done = facts.device ? rule::device::at_roofline(facts) : rule::at_roofline(facts)) return {std::move(*done)};
  if (facts.device) return apply(device_rules, facts, *input.current);
  auto found = apply(all_rules, facts, *input.current);
  for (auto& f : found) f.part = part_of(input.source, f.line);
  return found;
}

} // namespace pragma
