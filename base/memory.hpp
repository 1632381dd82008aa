// How much memory this process may still take: the machine's, and that of every control group (container) round it. For whoever decides
// whether something large fits before it is allocated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace pragma {

/// Bytes that can be allocated now without swapping: the kernel's MemAvailable, or less where a control group (version 1 or 2) of this process
/// or one that holds it has a limit: what that leaves, its page cache that can be dropped counted as free. None: not known. `root` is where
/// /proc and /sys/fs/cgroup are looked for. Sources: proc(5), the kernel's admin-guide/cgroup-v2 and cgroup-v1/memory.
std::optional<uint64_t> available_memory(const std::filesystem::path& root = "/");

} // namespace pragma
