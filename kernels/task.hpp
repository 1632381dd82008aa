// A task: the KernelBench-format reference to beat, with everything that the reference process found out about it.
// Made by reference::load(); read by every agent.
#pragma once

#include "base/defaults.hpp"
#include "kernels/tensor.hpp"

#include <string>
#include <vector>

namespace pragma {

/// What a buffer holds after a call of forward() that updates it: an output of the task beyond those that forward() returns, or its integer value and something more.
struct buffer_update {
  std::string name;                  ///< state_dict key: "norm.running_mean"
  int output = -1;                   ///< index in task::outputs; -1: `add` counts
  int64_t add = 0;
};
PRAGMA_JSON(buffer_update, name, output, add)

struct task {
  std::string id;                    ///< sha256 of the file's text (and of the sidecar, if there is one)
  std::string name;                  ///< file name without .py
  std::string path;                  ///< absolute path of the file
  std::string source;                ///< its text
  std::string category;              ///< matmul, activation, normalization, pooling/reduction, conv, others (the paper's six)
  std::vector<tensor_spec> inputs;   ///< tensor inputs of forward(), in order
  std::vector<tensor_spec> params;   ///< parameters, then buffers, in state_dict order
  std::vector<tensor_spec> outputs;  ///< what forward() returns, then the new values of the buffers that it updates (`updates`)
  std::vector<std::string> scalars;  ///< non-tensor inputs of forward(), as "position=repr": constants of the task
  double flops = 0;                  ///< floating-point operations of one call, counted on the graph (or the sidecar's formula)
  double bytes = 0;                  ///< compulsory traffic of one call: inputs + params used + outputs, each once
  double tolerance = 0;              ///< 0: the default for the output's dtype (base/defaults.hpp)
  bool deterministic = true;         ///< two calls of the reference on the same inputs gave the same bits
  bool training_mode = true;         ///< module.training when called (KernelBench never calls eval())
  json constants;                    ///< what the trace took for granted, as text: attributes of the modules, the constructor's arguments (constants.py)
  std::vector<std::string> mutated;  ///< buffers that one forward() call changes (BatchNorm's running statistics)
  std::vector<buffer_update> updates; ///< of all in `mutated`, where the trace says what they become; else none
  std::vector<std::string> foreign;  ///< parameters and buffers that forward() reads and no kernel is given, since none has their types (complex64, float8): only Torch's calls read them
  std::vector<std::string> notes;    ///< things that a person should know ("reference scales by eps 1e-5", "sidecar used")
  std::string graph;                 ///< JSON text of the traced graph (docs/graph.md); empty when it could not be traced
  std::string graph_error;           ///< why not
};
PRAGMA_JSON(task, id, name, path, source, category, inputs, params, outputs, scalars, flops, bytes, tolerance, deterministic,
            training_mode, constants, mutated, updates, foreign, notes, graph, graph_error)

/// One operator of eager Torch in a call of the task, by Torch's own profiler (reference/python/operator_times.py).
struct operator_time {
  std::string name;                  ///< as aten has it: "softmax"
  int calls = 0;                     ///< in one call of the task
  double share = 0;                  ///< of the time of all operators; on a device, of their kernels
  int launches = 0;                  ///< of kernels, on a device
};
PRAGMA_JSON(operator_time, name, calls, share, launches)

} // namespace pragma
