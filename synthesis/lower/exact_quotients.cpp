#include "synthesis/lower/exact_quotients.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

using o = operation;

/// Its result jumps where its argument hardly moves.
bool is_step(const tensor_program& program, const tensor_node& n) {
  if (n.kind != node_kind::pointwise) return false;
  switch (n.op) {
    case o::floor:
    case o::ceil:
    case o::round:
    case o::trunc:
    case o::frac:
    case o::sign:
    case o::floor_divide:
    case o::trunc_divide:
    case o::remainder:
    case o::fmod: return true;
    case o::convert: return !is_floating(n.dtype) && is_floating(program.nodes[static_cast<size_t>(n.args[0])].dtype);
    default: return traits(n.op).result == result_rule::truth;
  }
}

/// Both sides compute the same bits from the same bits: IEEE 754 says what they are, or nothing is computed.
bool is_reproducible(const tensor_node& n) {
  switch (n.kind) {
    case node_kind::reduce: return n.op == o::max || n.op == o::min || n.op == o::peak;
    case node_kind::scan:
    case node_kind::window:
    case node_kind::scatter:
    case node_kind::recurrence:
    case node_kind::anchor: return false;
    case node_kind::pointwise: break;
    default: return true;
  }
  if (is_half(n.held_as)) return n.op == o::round_float16 || n.op == o::round_bfloat16; // Torch rounds all others, too
  switch (n.op) {
    case o::rsqrt:
    case o::hypot:
    case o::asinh:
    case o::acosh:
    case o::atanh: return false;
    default: return !traits(n.op).expensive;
  }
}

} // namespace

tensor_program with_exact_quotients(tensor_program program) {
  const size_t n = program.nodes.size();
  std::vector<bool> same(n), before_step(n);
  for (size_t i = 0; i < n; ++i) {
    const auto& node = program.nodes[i];
    same[i] = is_reproducible(node) && std::all_of(node.args.begin(), node.args.end(), [&](int a) { return same[static_cast<size_t>(a)]; });
  }
  for (size_t i = n; i-- > 0;) {
    auto& node = program.nodes[i];
    if (!before_step[i] && !is_step(program, node)) continue;
    for (int a : node.args) before_step[static_cast<size_t>(a)] = same[static_cast<size_t>(a)];
    if (before_step[i] && node.op == o::div && node.dtype == dtype::float32) node.op = o::exact_div;
  }
  return program;
}

} // namespace pragma::synthesis
