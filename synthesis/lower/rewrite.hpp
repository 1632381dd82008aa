// Simplifications of single primitives as named rules, applied until none applies. Each gives the same bits as what it replaces
// (a NaN stays a NaN; its payload may differ), so they always run; what changes rounding is algebra.hpp's. Used by builtin_coder::create.
#pragma once

#include "synthesis/lower/lower.hpp"

#include <span>
#include <string_view>

namespace pragma::synthesis {

struct rewrite_rule {
  std::string_view name;    ///< "double negation"
  std::string_view example; ///< "-(-x) -> x"
  std::string_view exact;   ///< why both sides have the same bits
  /// The node that does the same with less, made of the node's arguments; -1 where the rule does not apply. `node` is of the builder's
  /// program and its arguments are rewritten already.
  int (*apply)(node_builder& b, const tensor_node& node);
};

std::span<const rewrite_rule> rewrite_rules();

/// The same outputs, without the nodes that no output needs. `applied`, where given, gets the names of the rules in the order in which they applied.
tensor_program rewrite(const tensor_program& program, std::vector<std::string_view>* applied = nullptr);

/// Only the nodes that the outputs need.
tensor_program without_dead_nodes(const tensor_program& program);

} // namespace pragma::synthesis
