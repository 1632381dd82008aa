#include "synthesis/ir/tensor_ir.hpp"

#include <tuple>

namespace pragma::synthesis {

namespace {

/// Everything but the value, which is compared by its bits.
auto fields(const tensor_node& n) {
  return std::tie(n.kind, n.dtype, n.held_as, n.shape, n.args, n.op, n.dims, n.map, n.window, n.groups, n.transposed, n.rounding, n.buffer);
}

} // namespace

bool tensor_node::operator==(const tensor_node& other) const { return fields(*this) == fields(other) && same_bits(value, other.value); }

void tensor_node::hash_into(hasher& h) const {
  std::apply([&](const auto&... field) { (h(field), ...); }, fields(*this));
  h(value);
}

} // namespace pragma::synthesis
