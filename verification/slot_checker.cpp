#include "verification/slot_checker.hpp"

#include "verification/fingerprint.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace pragma {

namespace {

constexpr double rounding_of_values = 8 * FLT_EPSILON; ///< of those that indices point to: the ranking of closer ones is no more than rounding
constexpr double all_equal = 1e-6; ///< mean deviation of an output over that on the task's own inputs: its values differ by rounding
constexpr int64_t most_doubtful_indices = 4096; ///< of an output: more differences are no matter of rounding
constexpr int64_t most_behind_steps = 1 << 16;  ///< of an output: one step may reach a whole row

const std::byte* tensor_at(const tensor_layout& layout, const std::byte* memory, int slot, size_t tensor) {
  return memory + layout.slot_bytes * static_cast<uint64_t>(slot) + layout.offsets[tensor];
}

} // namespace

std::string input_set_name(input_kind kind, int number) {
  switch (kind) {
    case input_kind::own: return "own inputs, seed " + std::to_string(number);
    case input_kind::large: return "large values";
    case input_kind::tiny: return "tiny values";
    case input_kind::negative: return "negative values";
    case input_kind::near_one: return "values near one";
    case input_kind::constant_rows: return "constant rows";
    case input_kind::ties: return "tied values";
  }
  return "inputs";
}

void judge_at_own_size(output_scale& scale, input_kind kind, double own_size) {
  const bool equal = kind != input_kind::tiny && scale.mad < all_equal * own_size; // tiny inputs make all of an output tiny
  if (kind == input_kind::constant_rows || kind == input_kind::large || equal) scale.mad = std::max(scale.mad, own_size);
}

slot_checker::slot_checker(const task& t, reference& ref, double tolerance, const std::vector<double>& tightening)
    : ref_(ref), tolerance_of_values_(tolerance > 0 ? tolerance : t.tolerance > 0 ? t.tolerance : defaults::tolerance_float32) {
  for (size_t i = 0; i < t.outputs.size(); ++i) {
    const auto type = t.outputs[i].dtype;
    const double base = tolerance > 0 ? tolerance : t.tolerance > 0 ? t.tolerance : default_tolerance(type);
    tolerances_.push_back(is_floating(type) ? base * (i < tightening.size() ? tightening[i] : 1) : 0);
  }
  if (!tightening.empty()) tolerance_of_values_ *= *std::min_element(tightening.begin(), tightening.end());
  slots_.resize(static_cast<size_t>(ref.slots()));
}

void slot_checker::refresh(int slot, std::string input_set, input_kind kind) {
  auto& state = slots_[static_cast<size_t>(slot)];
  state.input_set = std::move(input_set);
  state.scales.clear();
  const auto& specs = ref_.outputs_layout().specs;
  for (size_t i = 0; i < specs.size(); ++i)
    state.scales.push_back(is_floating(specs[i].dtype) ? scale_of(specs[i], ref_.reference_output(slot, i), ref_.oracle(slot, i))
                                                       : output_scale{});
  own_sizes_.resize(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    if (kind == input_kind::own) own_sizes_[i] = std::max(own_sizes_[i], state.scales[i].mad);
    judge_at_own_size(state.scales[i], kind, own_sizes_[i]);
  }
}

slot_checker::outcome slot_checker::check(int slot, const std::byte* outputs, const fill_probe& before) const {
  const auto& layout = ref_.outputs_layout();
  const auto& state = slots_[static_cast<size_t>(slot)];
  outcome result;
  for (size_t i = 0; i < layout.specs.size(); ++i) {
    const auto reference_output = ref_.reference_output(slot, i);
    const auto oracle = ref_.oracle(slot, i);
    const auto* got = tensor_at(layout, outputs, slot, i);
    auto found = compare_output(layout.specs[i], reference_output, oracle, state.scales[i], got, tolerances_[i]);
    const bool of_indices = found.wrong > 0 && layout.specs[i].dtype == dtype::int64 && forgive_indices(slot, i, got, found);
    if (found.wrong > 0 && !of_indices) forgive_steps(slot, i, got, found);
    result.worst = std::max(result.worst, found.worst);
    if (found.wrong == 0) continue;
    auto m = describe_mismatch(layout.specs[i], reference_output, oracle, got, found, state.input_set);
    const auto width = size_of(layout.specs[i].dtype);
    if (i < before.size() && found.worst_index >= 0 &&
        std::memcmp(got + static_cast<size_t>(found.worst_index) * width, before[i].data(), width) == 0)
      m.got = unwritten_text;
    result.mismatches.push_back(std::move(m));
  }
  return result;
}

namespace {

std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

} // namespace

bool slot_checker::forgive_indices(int slot, size_t output, const std::byte* got, comparison& found) const {
  if (found.wrong > most_doubtful_indices) return false;
  const auto& spec = ref_.outputs_layout().specs[output];
  const auto* wanted = ref_.reference_output(slot, output).data();
  const auto index_at = [](const std::byte* data, int64_t i) {
    int64_t value = 0;
    std::memcpy(&value, data + static_cast<size_t>(i) * sizeof value, sizeof value);
    return value;
  };
  std::vector<int64_t> positions, indices;
  for (int64_t i = 0; i < spec.elements(); ++i)
    if (index_at(got, i) != index_at(wanted, i)) {
      positions.push_back(i);
      indices.push_back(index_at(got, i));
    }
  const auto values = ref_.point_to(slot, output, positions, indices);
  if (!values || !*values) return false; // of no operator that chooses
  const auto& v = **values;
  comparison left;
  for (size_t k = 0; k < positions.size(); ++k) {
    const double distance = std::fabs(v.got[k] - v.best[k]);
    const bool as_good = distance <= tolerance_of_values_ * v.spread[k] + rounding_of_values * std::fabs(v.best[k]); // false where it is NaN
    const bool later_tie = v.first && distance == 0 && indices[k] > index_at(wanted, positions[k]);
    if (as_good && !later_tie) continue;
    if (left.wrong++ == 0) left.worst_index = positions[k];
    if (left.where.size() < most_listed_elements) {
      left.where.push_back(positions[k]);
      left.notes.push_back("the value at the candidate's index is " + scientific(v.got[k]) + ", the best is " + scientific(v.best[k]) + ", " + scientific(distance) + " apart" +
                           (later_tie ? " (equal values: the first index counts)" : ""));
    }
    left.worst = found.worst;
  }
  found = left;
  return true;
}

void slot_checker::forgive_steps(int slot, size_t output, const std::byte* got, comparison& found) const {
  if (found.wrong > most_behind_steps) return;
  const auto& spec = ref_.outputs_layout().specs[output];
  const auto& scale = slots_[static_cast<size_t>(slot)].scales[output];
  const auto wrong = find_wrong(spec, ref_.reference_output(slot, output), ref_.oracle(slot, output), scale, got, tolerances_[output], most_behind_steps);
  const auto left = ref_.not_explained(slot, output, wrong.positions, wrong.got, wrong.allowed);
  if (!left || left->size() == wrong.positions.size()) return;
  if (left->empty()) {
    found = {};
    found.worst = 1; // as far as the rule goes
    return;
  }
  found.wrong = static_cast<int64_t>(left->size());
  found.where.assign(left->begin(), left->begin() + static_cast<std::ptrdiff_t>(std::min(left->size(), most_listed_elements)));
  found.notes.clear();
  if (std::find(left->begin(), left->end(), found.worst_index) == left->end()) found.worst_index = left->front();
}

fill_probe probe_fill(const tensor_layout& layout, const std::byte* outputs) {
  fill_probe probe(layout.specs.size());
  for (size_t i = 0; i < probe.size(); ++i)
    if (layout.specs[i].bytes() > 0) std::memcpy(probe[i].data(), tensor_at(layout, outputs, 0, i), size_of(layout.specs[i].dtype));
  return probe;
}

void fill_outputs(const tensor_layout& layout, std::byte* outputs, int first, int count) {
  for (int slot = first; slot < first + count; ++slot)
    for (size_t i = 0; i < layout.specs.size(); ++i)
      std::memset(const_cast<std::byte*>(tensor_at(layout, outputs, slot, i)), is_floating(layout.specs[i].dtype) ? 0xa5 : 0x5a,
                  layout.specs[i].bytes());
}

uint64_t slot_fingerprint(const tensor_layout& layout, const std::byte* memory, int slot) {
  uint64_t print = 0;
  for (size_t i = 0; i < layout.specs.size(); ++i)
    print = fingerprint(tensor_at(layout, memory, slot, i), layout.specs[i].bytes(), print);
  return print;
}

void keep_worst(std::vector<mismatch>& mismatches, size_t keep) {
  std::stable_sort(mismatches.begin(), mismatches.end(), [](const mismatch& a, const mismatch& b) { return a.error > b.error; });
  if (mismatches.size() > keep) mismatches.resize(keep);
}

} // namespace pragma
