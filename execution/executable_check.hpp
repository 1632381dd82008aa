// Looks at what the linker made of a candidate before the kernel does: a program header is as much the candidate's to choose (by a section of
// that name in its assembly) as its code is. Used by build_candidate().
#pragma once

#include "base/error.hpp"

#include <string_view>

namespace pragma {

/// build_failed, naming the section to remove, for an executable that asks for an interpreter (the kernel could not start it), for a stack
/// or memory that can be written and executed (code that was never compiled), and for what is no static executable of this machine.
expected<void> check_executable(std::string_view elf);

} // namespace pragma
