// Task: all_rows
// Reference: aten.gt.Scalar, aten.all.dim
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1}],"threads":1}
// Written by PRAGMA's built-in coder (docs/synthesis.md).
#include "pragma_kernel.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace {

// (helpers)

} // namespace

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x0 = static_cast<const float*>(args->inputs[0].data);
  bool* out0 = static_cast<bool*>(args->outputs[0].data);
  // Region 1: 30 x 60 (reduced) (vectorised)
  {
    for (int64_t o0 = 0; o0 < 30; ++o0) {
      vl min4_part[4];
      for (auto& part : min4_part) part = splat(std::numeric_limits<int64_t>::max());
      const auto pass1 = [&](int64_t i, auto lanes, vl& min4) __attribute__((always_inline)) {
        take_lower(min4, count_of<vl>(mask(load(x0 + 60 * o0 + i, lanes) > -2.0f)), lanes);
      };
      for (int64_t i = 0; i < 32; i += 32)
        for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, min4_part[u]);
      for (int64_t i = 32; i < 56; i += W) pass1(i, all_lanes{}, min4_part[0]);
      pass1(56, some_lanes<4>{}, min4_part[0]);
      const vl min4 = splat(lowest(min4_part));
      const vi v5 = truth(min4);
      store_first(out0 + o0, v5);
    }
  }
}
