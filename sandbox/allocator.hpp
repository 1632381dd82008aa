// Values of GLIBC_TUNABLES: glibc's allocator in the reference and the candidates, and in the check of drop-ins.
#pragma once

namespace pragma {

/// Freed memory stays with the process, else every call faults its outputs in again (docs/measuring.md).
inline constexpr const char* allocator_tunables = "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=8589934592";

/// What a program has after a while: the largest thresholds that glibc comes to by itself, once a block of 32 MiB was freed. It would be chance
/// how far they have come when the timing begins (docs/measuring.md).
inline constexpr const char* program_tunables = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=67108864";

} // namespace pragma
