// task: black_scholes
// good: black_scholes_good
// cause: not_vectorized
// written after the rules
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd -mprefer-vector-width=512
#include "common.hpp"

#include <algorithm>

struct option {
  float spot, strike, years;
};

static float normal_cdf(float x) { return 0.5f * std::erfc(-x * static_cast<float>(M_SQRT1_2)); }

static float call_price(const option& o, float rate, float volatility) {
  const float wide = volatility * std::sqrt(o.years);
  const float d1 = (std::log(o.spot / o.strike) + (rate + 0.5f * volatility * volatility) * o.years) / wide;
  const float d2 = d1 - wide;
  return o.spot * normal_cdf(d1) - o.strike * std::exp(-rate * o.years) * normal_cdf(d2);
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *spot = in(args, 0), *strike = in(args, 1), *years = in(args, 2);
  float* price = out(args);
  for (int i = 0; i < 131072; ++i) {
    const option o = {std::clamp(spot[i], 1.0f, 1000.0f), std::clamp(strike[i], 1.0f, 1000.0f), std::clamp(years[i], 0.01f, 10.0f)};
    price[i] = call_price(o, 0.03f, 0.2f);
  }
}
