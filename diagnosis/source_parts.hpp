// What a line of a kernel's source is part of, by name: "region 2 (pass 1: peak)", "regions 1 and 3 (product)", "dot_rows".
#pragma once

#include <string>
#include <string_view>

namespace pragma {

/// Of C++ that the built-in coder wrote: the region of the comments above the line with its pass, and for a line in a helper what the helper does and which regions call it.
/// Of other C++ the enclosing function or the lambda with a name. "": neither can be read, or it is pragma_kernel, which says nothing. Lines count from 1.
std::string part_of(std::string_view source, int line);

} // namespace pragma
