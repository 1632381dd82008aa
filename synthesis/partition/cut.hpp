// A graph that one kernel cannot compute, cut into regions that are compiled and calls that stay Torch's. Used where pragma optimize gets a task with an operator
// that has no rule, or one in which Torch's own products are faster. docs/decisions/0031.
#pragma once

#include "synthesis/ir/graph.hpp"

#include <functional>

namespace pragma::synthesis {

/// Nodes that are computed one after the other: by one kernel of ours, or by Torch.
struct part {
  bool ours = false;
  std::vector<size_t> nodes;         ///< positions in graph::nodes, ascending
  std::vector<std::string> inputs;   ///< ids of the tensors that it reads from outside; parameters and constants are not among them
  std::vector<std::string> outputs;  ///< ids of what later parts or the caller read
  std::vector<size_t> params;        ///< positions in graph::params of those that it reads
  double work = 0;                   ///< bytes that Torch's operators move, and operations at the price of bytes: a guess at its time, to say where attempts go first
};

/// A call that Torch keeps, for people.
struct kept_call {
  std::string call;                  ///< "topk in line 13"
  std::string why;                   ///< "aten.topk has no rule"
};

struct partition {
  std::vector<part> parts;           ///< in an order in which each reads what is there; two of Torch's never follow each other
  std::vector<kept_call> kept;       ///< Torch's operators that compute something
};

/// "topk in line 13, sort in line 14"
std::string calls_of(const std::vector<kept_call>& kept);

/// Which nodes Torch keeps although they could be lowered.
using keeps = std::function<bool(const graph_node&)>;
/// Products of matrices, convolutions, attention and recurrent layers: what Torch's libraries may do better.
bool is_contraction(const graph_node& node);
/// The same of an operator that a model calls, by its name in Torch's profiler ("conv2d", "linear"), which stands for those of a graph.
bool calls_contraction(const std::string& name);

/// unsupported: the graph draws random numbers, writes to its inputs or reads memory by strides, so that replaying it is not the task.
/// left_as_it_is: there is nothing that we would compute. `loops`: as lower() has it.
expected<partition> cut(const graph& g, const keeps& torch_keeps = {}, bool loops = true);

/// Equal for parts that compute the same with other tensors: one kernel serves both.
std::string shape_of(const graph& g, const part& p);

/// A part of ours as a task of its own, in KernelBench's format: forward() replays its nodes, get_inputs() gives what the whole task has at the cut. `whole`: the task, with
/// its graph as `document`; `about`: its first line, for people.
expected<std::string> region_task(const task& whole, const json& document, const graph& g, const part& p, const std::string& about);

} // namespace pragma::synthesis
