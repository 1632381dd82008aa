// Small jitted functions that kernels call; a module gets those that it uses.
#include "synthesis/triton/values.hpp"

namespace pragma::synthesis {

std::string triton_helper(const std::string& name) {
  static const std::map<std::string, std::string> texts{
      {"sigmoid", R"(@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))
)"},
      {"floor_divide", R"(@triton.jit
def floor_divide(a, b):
    q = a // b  # towards zero
    return tl.where((q * b != a) & ((a < 0) != (b < 0)), q - 1, q)
)"},
      {"remainder", R"(@triton.jit
def remainder(a, b):
    r = a % b  # has the sign of a
    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)
)"},
      {"round_float16", R"(@triton.jit
def round_float16(x):
    return x.to(tl.float16).to(tl.float32)
)"},
      {"round_bfloat16", R"(@triton.jit
def round_bfloat16(x):
    return x.to(tl.bfloat16).to(tl.float32)
)"},
      {"tf32_part", R"(@triton.jit
def tf32_part(x):
    # x rounded to the 11 significant bits that tensor cores take; infinities and NaN stay
    bits = x.to(tl.int32, bitcast=True)
    return (tl.where(x - x == 0, bits + 4096, bits) & -8192).to(tl.float32, bitcast=True)
)"},
      {"tf32_even", R"(@triton.jit
def tf32_even(x):
    # x rounded to the 11 significant bits that tensor cores take, ties to the even one; infinities and NaN stay
    bits = x.to(tl.int32, bitcast=True)
    return (tl.where(x - x == 0, bits + 4095 + ((bits >> 13) & 1), bits) & -8192).to(tl.float32, bitcast=True)
)"},
      {"tf32_rest", R"(@triton.jit
def tf32_rest(x, part):
    # what the part leaves of x, rounded in the same way
    return tf32_part(tl.where(part - part == 0, x - part, 0.0))
)"},
      {"product", R"(@triton.jit
def product(a, b):
    return a * b
)"},
      {"higher", R"(@triton.jit
def higher(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
)"},
      {"lower", R"(@triton.jit
def lower(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
)"},
      {"higher_place", R"(@triton.jit
def higher_place(a, i, b, j):
    # The first of equals; NaN is above all numbers.
    equal = (a == b) | ((a != a) & (b != b))
    take = (a > b) | ((a != a) & (b == b)) | (equal & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)
)"},
      {"lower_place", R"(@triton.jit
def lower_place(a, i, b, j):
    # The first of equals; NaN is below all numbers.
    equal = (a == b) | ((a != a) & (b != b))
    take = (a < b) | ((a != a) & (b == b)) | (equal & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)
)"},
      {"merged_moments", R"(@triton.jit
def merged_moments(mean_a, squares_a, count_a, mean_b, squares_b, count_b):
    # Mean and squared distances of two sets together (Chan, Golub and LeVeque 1979).
    count = count_a + count_b
    share = tl.where(count > 0, count_b / tl.maximum(count, 1.0), 0.0)
    step = mean_b - mean_a
    return mean_a + step * share, squares_a + squares_b + step * step * count_a * share, count
)"},
      {"log_of_both", R"(@triton.jit
def log_of_both(a, b):
    # log(exp(a) + exp(b)); of equal ones, infinite too, no difference is asked for
    top = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    return tl.where(a == b, top + 0.6931471805599453, top + libdevice.log1p(tl.exp(-tl.abs(a - b))))
)"},
      {"decayed", R"(@triton.jit
def decayed(decay_a, sum_a, decay_b, sum_b):
    return decay_a * decay_b, decay_b * sum_a + sum_b
)"},
      {"exponential_of_distance", R"(@triton.jit
def exponential_of_distance(x, top):
    # exp(x - top); 0 for x = -inf also where nothing greater was seen yet
    return tl.where(x == float("-inf"), 0.0, tl.exp(x - top))
)"},
      {"merged_exponentials", R"(@triton.jit
def merged_exponentials(top_a, sum_a, top_b, sum_b):
    # Sums of exponentials relative to two maxima, relative to the higher of them.
    top = tl.maximum(top_a, top_b, propagate_nan=tl.PropagateNan.ALL)
    return top, sum_a * exponential_of_distance(top_a, top) + sum_b * exponential_of_distance(top_b, top)
)"},
  };
  const auto it = texts.find(name);
  return it == texts.end() ? std::string() : it->second;
}

} // namespace pragma::synthesis
