// task: gelu
// good: gelu_good
// cause: port_pressure
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -mprefer-vector-width=512
#include "common.hpp"

#include <utility>

/// x and x^3 / 3, x^5 / (3 * 5), x^7 / (3 * 5 * 7) ...: forty-five terms for a group of vectors at a time, Horner's way.
template <int group, int... n>
static inline void series(const v16* square, v16* sum, std::integer_sequence<int, n...>) {
  const auto term = [&](float factor) __attribute__((always_inline)) {
    for (int k = 0; k < group; ++k) sum[k] = 1 + square[k] * factor * sum[k];
  };
  (term(1.0f / (2 * (sizeof...(n) - n) + 1)), ...);
}

extern "C" void pragma_kernel(const pragma_args* args) {
  constexpr int group = 6;
  const v16* x = reinterpret_cast<const v16*>(in(args, 0));
  v16* y = reinterpret_cast<v16*>(out(args));
  const auto some = [&]<int count>(int at, std::integral_constant<int, count>) __attribute__((always_inline)) {
    v16 square[count], sum[count], near[count];
    for (int k = 0; k < count; ++k) {
      const v16 v = x[at + k];
      near[k] = v > 5 ? v16{} + 5 : v < -5 ? v16{} - 5 : v;
      square[k] = near[k] * near[k];
      sum[k] = v16{} + 1;
    }
    series<count>(square, sum, std::make_integer_sequence<int, 45>());
    for (int k = 0; k < count; ++k) {
      v16 density;
      for (int lane = 0; lane < 16; ++lane) density[lane] = 0.39894228f * fast_exp(-0.5f * square[k][lane]);
      y[at + k] = x[at + k] * (0.5f + density * near[k] * sum[k]);
    }
  };
  int at = 0;
  for (; at + group <= 256 * 128; at += group) some(at, std::integral_constant<int, group>());
  for (; at < 256 * 128; ++at) some(at, std::integral_constant<int, 1>());
}
