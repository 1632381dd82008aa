// Regions + schedule -> one Python module with Triton kernels and a `class ModelNew` (docs/synthesis.md, "Triton").
#pragma once

#include "synthesis/schedule/emitted.hpp"
#include "synthesis/triton/schedule.hpp"

#include <set>

namespace pragma::synthesis {

/// One region: a jitted function (or several) and what forward() does to run it.
struct triton_kernel {
  std::string name;               ///< of the (last) kernel
  std::string text;               ///< the jitted functions, decorators included
  std::string launch;             ///< lines of forward(), without indentation, each ended by a newline; buffers have the names
                                  ///< of loop_program::buffers ("x0", "p1", "out0", "scratch2", "constant0")
  std::string setup;              ///< lines of load_params(), as launch: packed parameters go to self.NAME; may be empty
  std::set<std::string> helpers;  ///< triton_helper()s that the text calls
};

/// `number` makes the names of its kernels unique within the module, `kept` those of what load_params() keeps for it.
triton_kernel emit_triton_region(const loop_program& program, const region& r, const triton_region_schedule& s, size_t number, size_t kept);
/// A region with an anchor (triton_anchor.cpp).
triton_kernel emit_triton_anchor(const loop_program& program, const region& r, const triton_region_schedule& s, size_t number, size_t kept);

/// The decorators of a kernel: @triton.autotune where there are alternatives, then @triton.jit. `names`: the constexpr
/// parameters that stand for lanes, steps and columns ("" for one that the kernel does not have).
std::string triton_decorators(const triton_region_schedule& s, const std::vector<std::string>& names);
/// The end of a launch: ", BLOCK=1024, num_warps=4, num_stages=3)" or ")" where autotune chooses.
std::string triton_launch_end(const triton_region_schedule& s, const std::vector<std::string>& names);

/// The whole module. `title` names the task in the header comment.
emitted_source emit_triton(const loop_program& program, const triton_schedule& s, const std::string& title);

} // namespace pragma::synthesis
