// Regions + schedule -> one readable C++ source that defines pragma_kernel.
#pragma once

#include "kernels/synthesis/schedule.hpp"

namespace pragma::synthesis {

struct emitted {
  std::string source;
};

/// `title` names the task in the header comment.
std::string emit_source(const loop_program& program, const schedule& s, const std::string& title);

/// The helpers (vector types, loads, reductions, mathematics) whose names occur in `body`, in an order that compiles.
std::string helpers_for(const std::string& body, int lanes);

/// Text of one region's loop nest, indented by two spaces. Declares nothing but what it uses. `followers`: text of the
/// regions that run in its batch loop.
std::string emit_region(const loop_program& program, const region& r, const region_schedule& s, const schedule& all, size_t number,
                        const std::string& followers = "");

} // namespace pragma::synthesis
