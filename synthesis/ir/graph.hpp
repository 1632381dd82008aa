// The traced reference as it arrives in task::graph (docs/graph.md): nodes that call aten operators on named tensors.
// Parsed once, read by lower(). Arguments stay JSON, because their types differ by operator.
#pragma once

#include "base/json.hpp"
#include "base/tf32.hpp"
#include "kernels/task.hpp"

#include <map>

namespace pragma::synthesis {

struct tensor_type {
  pragma::dtype dtype = pragma::dtype::float32;
  std::vector<int64_t> shape;
  std::string foreign = {};            ///< a type that no kernel has, by Torch's name ("complex64", "float8_e4m3fn"): only Torch's calls have it, and `dtype` says nothing
  int64_t elements() const {
    int64_t n = 1;
    for (auto d : shape) n *= d;
    return n;
  }
};

/// One call of an operator. Several results have several types; `getitem` takes one of them.
struct graph_node {
  std::string id;
  std::string op;                      ///< "aten.softplus.default", "getitem"
  json args;                           ///< by schema name, defaults filled in; a tensor is {"ref": id}
  std::vector<tensor_type> results;
  int line = 0;                        ///< of the task's file: what called for it; 0: not known
  tf32_rounding rounding = tf32_rounding::none; ///< of the factors of a convolution on this device
};

struct graph_leaf {
  std::string id;
  int index = 0;                       ///< position among inputs or parameters
  tensor_type type;
  std::vector<double> values;          ///< constants only
};

struct graph {
  std::vector<graph_leaf> inputs, params, constants;
  std::vector<graph_leaf> foreign;     ///< parameters and buffers of foreign types: not among the task's, no kernel is given them
  std::vector<graph_node> nodes;       ///< in an order in which every argument comes before its use
  std::vector<std::string> outputs;
  bool random = false;                 ///< some value is drawn at random
  bool writes_inputs = false;          ///< forward() changes tensors that it was given
};

/// Ids of the tensors that a node reads.
std::vector<std::string> references(const graph_node& node);

/// parse_error names the node and key that is missing or of the wrong type.
expected<graph> parse_graph(const std::string& text);

/// "inf", "-inf" and "nan" stand for themselves in the graph's JSON.
double number_of(const json& value);

} // namespace pragma::synthesis
