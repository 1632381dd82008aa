// task: automaton
// good: automaton_good
// cause: memory_latency_bound
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int states = 131072, symbols = 16, strings = 512, length = 128;

extern "C" void pragma_kernel(const pragma_args* args) {
  const int32_t* table = static_cast<const int32_t*>(args->inputs[0].data);
  const int32_t* text = static_cast<const int32_t*>(args->inputs[1].data);
  const float* values = in(args, 2);
  float* y = out(args);
  for (int s = 0; s < strings; ++s) {
    int32_t state = s * (states / strings);
    for (int t = 0; t < length; ++t) state = table[state * symbols + (text[t * strings + s] & (symbols - 1))] & (states - 1);
    y[s] = values[state];
  }
}
