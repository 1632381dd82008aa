// glibc's allocator as both timed sides get it. Used by the reference, the candidates and the check of drop-ins.
#pragma once

namespace pragma {

/// Value of GLIBC_TUNABLES: freed memory stays with the process, else every call faults its outputs in again (docs/measuring.md).
inline constexpr const char* allocator_tunables = "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=8589934592";

} // namespace pragma
