// Regions + schedule -> one readable C++ source that defines pragma_kernel.
#pragma once

#include "synthesis/cpp/code.hpp"
#include "synthesis/schedule/emitted.hpp"
#include "synthesis/schedule/schedule.hpp"

namespace pragma::synthesis {

/// `title` names the task in the header comment.
emitted_source emit_source(const loop_program& program, const schedule& s, const std::string& title);

/// One region's loop nest. `followers`: the regions that run in its batch loop.
code write_region(const loop_program& program, const region& r, const region_schedule& s, const schedule& all, const code& followers = {});

} // namespace pragma::synthesis
