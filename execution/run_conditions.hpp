// What an experiment of the profilers changes about how a candidate in C++ runs: never about what runs. The figures of such a run are told beside
// the measured time and never enter it. All false and zero for every other run.
#pragma once

#include <cstdint>

namespace pragma {

struct run_conditions {
  uint64_t fold_bytes = 0;       ///< every page of a floating-point tensor shows one of its first so many bytes; whole pages; 0 = each shows its own
  bool fold_reads = false;       ///< inputs and parameters are folded
  bool fold_writes = false;      ///< outputs are
  bool flush_denormals = false;  ///< FTZ and DAZ (on aarch64 FZ) are set for the calls
  bool ones = false;             ///< every floating-point input holds 1 everywhere
  bool huge_pages = false;       ///< the tensors are copies on pages of 2 MiB, where the system has such
  bool apart = false;            ///< the tensors are copies, and inputs and outputs begin at other places of their pages than they do without
  bool any() const { return fold_bytes > 0 || flush_denormals || ones || huge_pages || apart; }
};

} // namespace pragma
