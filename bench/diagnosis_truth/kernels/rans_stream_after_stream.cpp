// task: rans
// good: rans_good
// cause: memory_latency_bound
// or: dependency_chain
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int streams = 64, symbols = 1024;

struct entry {
  uint32_t often, from;
};

/// One stream from its first symbol to its last; no branch on whether it needs a word.
static void decode(uint32_t x, const int32_t* word, const entry* table, const float* value, float* y) {
  for (int t = 0; t < symbols; ++t) {
    const uint32_t slot = x & 65535;
    y[t * streams] = value[slot];
    x = table[slot].often * (x >> 16) + table[slot].from;
    const uint32_t needs = x < 65536;
    const uint32_t filled = x << 16 | static_cast<uint32_t>(*word);
    x = needs ? filled : x;
    word += needs;
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const int32_t* words = static_cast<const int32_t*>(args->inputs[0].data);
  const entry* table = static_cast<const entry*>(args->inputs[1].data);
  const int32_t* start = static_cast<const int32_t*>(args->inputs[3].data);
  for (int s = 0; s < streams; ++s) decode(static_cast<uint32_t>(start[s]), words + s * symbols, table, in(args, 2), out(args) + s);
}
