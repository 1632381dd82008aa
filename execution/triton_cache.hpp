// What Triton keeps of the kernels that it compiled: a folder for each, by the hash of what it was made of.
#pragma once

#include <filesystem>

namespace pragma {

/// Hands on what a module's process compiled to another process of the same module, which has loaded nothing of it yet. Both are folders that TRITON_CACHE_DIR names; the second is made where
/// it is missing. Entries that it has already stay. The first is a candidate's: no link in it is followed, and what cannot be handed on is compiled again. Triton's lists of the files of an
/// entry hold their whole paths, and are written anew.
void take_compiled(const std::filesystem::path& from, const std::filesystem::path& to);

} // namespace pragma
