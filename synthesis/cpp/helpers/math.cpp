// Polynomials and rational approximations were fitted by iteratively reweighted least squares (minimax, relative error) for
// this project; the errors stated in the emitted comments are checked against double in tests/synthesis/math_test.cpp.
#include "synthesis/cpp/helpers/helpers.hpp"

#include <cmath>
#include <fmt/format.h>

namespace pragma::synthesis {

namespace {

/// A function of the C library, lane by lane: rare in kernels, so exactness counts more than speed. By the compiler's names for it: <cmath> costs every
/// kernel a tenth of a second.
std::string of_library(const std::string& function, const std::string& arguments) {
  return "if constexpr (std::is_same_v<V, vf>) x[k] = __builtin_" + function + "f(" + arguments + ");\n    else x[k] = __builtin_" + function + "(" + arguments + ");\n";
}

helper by_lane(const std::string& name, const std::string& function) {
  return {"v_" + name, {}, "template <class V> inline V v_" + name + "(V x) {\n  for (int k = 0; k < W; ++k) {\n    " + of_library(function, "x[k]") + "  }\n  return x;\n}\n"};
}

helper by_lane2(const std::string& name, const std::string& function) {
  return {"v_" + name, {}, "template <class V> inline V v_" + name + "(V x, V y) {\n  for (int k = 0; k < W; ++k) {\n    " + of_library(function, "x[k], y[k]") + "  }\n  return x;\n}\n"};
}

/// Powers of two between 1 and 2 as C++, `count` of them.
std::string roots_of_two(int count) {
  std::string text;
  for (int k = 0; k < count; ++k) text += fmt::format("{}{:#.9g}f", k == 0 ? "" : k % 16 == 0 ? ",\n    " : ", ", std::exp2(static_cast<double>(k) / count));
  return text;
}

/// exp for vectors of 16 float32: 2^n = 2^floor(n) t, where t is one of `count` roots of two that a register (or two) holds.
helper exp_by_roots(const std::string& name, int count, const std::string& picked, const std::string& of_clang, const std::string& polynomial) {
  return {name, {"splat"}, fmt::format(R"(template <class V> V {0}(V x); // where has_{0}
#if defined(__AVX512F__) && __has_builtin(__builtin_ia32_scalefps512_mask) && __has_builtin(__builtin_ia32_cmpps512_mask)
constexpr bool has_{0} = W == 16;
alignas(64) constexpr float {0}_table[{1}] = {{
    {2}}};
// exp(x) = 2^n exp(r), n in {1}ths, |r| <= ln(2)/{5}: the low bits of `shifted` choose a root of two, an instruction applies floor(n).
// Below -87.33 it is 0, by a mask: a denormal result would cost some 250 cycles.
template <class V> inline V {0}(V x) {{
  const V shifted = x * 1.44269504f + {6}.0f, n = shifted - {6}.0f;
  const V r = (x - n * 0.693115234f) - n * 3.19461833e-5f; // the first product is exact
  const auto& roots = *reinterpret_cast<const V(*)[{7}]>({0}_table);
#if defined(__clang__)
  const V root = {4};
#else
  const V root = __builtin_shuffle({3}, vi(shifted));
#endif
  const V y = ({8}) * root;
  return __builtin_ia32_scalefps512_mask(y, n, V{{}}, __builtin_ia32_cmpps512_mask(x, splat(-87.33f), 5, uint16_t(-1), 4), 4); // 5: not less
}}
#else
constexpr bool has_{0} = false;
#endif
)", name, count, roots_of_two(count), picked, of_clang, 2 * count, (3 << 22) / count, count / 16, polynomial)};
}

/// The double version of a function that has polynomials for float only.
std::string in_double(const std::string& name, const std::string& expression) {
  return "inline vd v_" + name + "(vd x) {\n  for (int k = 0; k < W; ++k) x[k] = " + expression + ";\n  return x;\n}\n";
}

/// exp with the longer polynomial or the shorter one (`kind`: "" or "_short").
helper any_exp(const std::string& name, const std::string& kind, int ulp) {
  return {name, {"exp_bits", "exp_polynomial" + kind, "exp_by_roots" + kind, "v_max_or_second", "v_min_or_second", "splat"},
          fmt::format(R"(// At most {0} ULP; overflows to infinity, underflows to 0 below -87.3 (no denormals).
inline vf {1}(vf x) {{
  if constexpr (has_exp_by_roots{2}) return exp_by_roots{2}(v_min_or_second(splat(89.0f), x));
  const exp_bits b(v_min_or_second(splat(88.7228f), v_max_or_second(splat(-87.33f), x)));
  const vf y = vf(vi(exp_polynomial{2}(b.r)) + b.power);
  return x > 88.7228f ? splat(infinity) : (x < -87.33f ? vf{{}} : y);
}}
)", ulp, name, kind) + in_double("exp" + kind, "__builtin_exp(x[k])")};
}

helper exp_nonpositive(const std::string& name, const std::string& kind, int ulp) {
  return {name, {"exp_power", "exp_polynomial" + kind, "exp_by_roots" + kind},
          fmt::format(R"(// exp for x <= 0, or as little above as rounding makes it, at most {0} ULP.
inline vf {1}(vf x) {{
  if constexpr (has_exp_by_roots{2}) return exp_by_roots{2}(x);
  const exp_power e(x);
  return vf(vi(exp_polynomial{2}(e.r) * e.power) & ~(x < -87.33f)); // far below, the factors are of no use
}}
)", ulp, name, kind) + in_double("exp_nonpositive" + kind, "__builtin_exp(x[k])")};
}

} // namespace

const std::vector<helper>& math_helpers() {
  static const std::vector<helper> list{
      // One instruction each.
      {"v_maximum", {}, "template <class V> inline V v_maximum(V a, V b) { return (a > b) | (a != a) ? a : b; }\n"},
      {"v_minimum", {}, "template <class V> inline V v_minimum(V a, V b) { return (a < b) | (a != a) ? a : b; }\n"},
      {"v_fmax", {}, "template <class V> inline V v_fmax(V a, V b) { return (a > b) | (b != b) ? a : b; }\n"},
      {"v_fmin", {}, "template <class V> inline V v_fmin(V a, V b) { return (a < b) | (b != b) ? a : b; }\n"},
      {"v_abs", {}, R"(template <class V> inline V v_abs(V x) {
  if constexpr (std::is_same_v<V, vf>) return vf(vi(x) & 0x7fffffff);
  else if constexpr (std::is_same_v<V, vd>) return vd(vl(x) & int64_t{0x7fffffffffffffff});
  else return x < 0 ? -x : x;
}
)"},
      {"v_sign", {}, "template <class V> inline V v_sign(V x) { return x > 0 ? V{} + 1 : (x < 0 ? V{} - 1 : V{}); }\n"},
      by_lane("sqrt", "sqrt"),
      {"v_rsqrt", {"v_sqrt"}, "template <class V> inline V v_rsqrt(V x) { return 1 / v_sqrt(x); }\n"},
      by_lane("floor", "floor"),
      by_lane("ceil", "ceil"),
      by_lane("trunc", "trunc"),
      by_lane("round", "nearbyint"),
      {"v_frac", {"v_trunc"}, "template <class V> inline V v_frac(V x) { return x - v_trunc(x); }\n"},
      {"v_trunc_divide", {}, "template <class V> inline V v_trunc_divide(V a, V b) { return a / b; }\n"},
      {"v_floor_divide", {}, R"(template <class V> inline V v_floor_divide(V a, V b) {
  const V q = a / b;
  return q - V((a % b != 0) & ((a < 0) != (b < 0)) ? V{} + 1 : V{});
}
)"},
      {"v_remainder", {}, R"(template <class V> inline V v_remainder(V a, V b) { // has the sign of b
  for (int k = 0; k < W; ++k) {
    if constexpr (std::is_floating_point_v<lane<V>>) {
      const auto r = lane<V>(std::is_same_v<V, vf> ? __builtin_fmodf(a[k], b[k]) : __builtin_fmod(a[k], b[k]));
      a[k] = r != 0 && (r < 0) != (b[k] < 0) ? r + b[k] : r;
    } else {
      const auto r = a[k] % b[k];
      a[k] = r != 0 && (r < 0) != (b[k] < 0) ? r + b[k] : r;
    }
  }
  return a;
}
)"},
      {"v_fmod", {}, R"(template <class V> inline V v_fmod(V a, V b) {
  for (int k = 0; k < W; ++k) {
    if constexpr (std::is_floating_point_v<lane<V>>) a[k] = lane<V>(std::is_same_v<V, vf> ? __builtin_fmodf(a[k], b[k]) : __builtin_fmod(a[k], b[k]));
    else a[k] = a[k] % b[k];
  }
  return a;
}
)"},
      {"exp_bits", {}, R"(// exp(x) = 2^n exp(r), |r| <= ln(2)/2; adding 1.5 * 2^23 rounds to the integer n, whose bits then are the low ones.
struct exp_bits {
  vf n;       // as float
  vi power;   // n << 23
  vf r;
  explicit exp_bits(vf x) {
    const vf shifted = x * 1.44269504f + 12582912.0f;
    power = vi(shifted) << 23;
    n = shifted - 12582912.0f;
    r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  }
};
)"},
      {"exp_polynomial", {}, R"(// exp(r) on [-ln(2)/2, ln(2)/2], relative error 3e-9 before rounding.
inline vf exp_polynomial(vf r) {
  const vf p = ((((r * 0.0013814538f + 0.0083687454f) * r + 0.041668391f) * r + 0.16666520f) * r + 0.49999994f);
  return (p * r + 1.0f) * r + 1.0f;
}
)"},
      {"exp_polynomial_short", {}, R"(// exp(r) on [-ln(2)/2, ln(2)/2], relative error 1.1e-7 before rounding.
inline vf exp_polynomial_short(vf r) {
  const vf p = ((r * 0.0083125033f + 0.041890334f) * r + 0.16667115f) * r + 0.49999230f;
  return (p * r + 1.0f) * r + 1.0f;
}
)"},
      {"exp_power", {}, R"(// As exp_bits, for x from -87.33 to 88: adding 127 more gives the bits of 2^n. A NaN stays one in r.
struct exp_power {
  vf power, r;
  explicit exp_power(vf x) {
    const vf shifted = x * 1.44269504f + 12583039.0f, n = shifted - 12583039.0f;
    power = vf(vi(shifted) << 23);
    r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  }
};
)"},
      exp_by_roots("exp_by_roots", 16, "roots[0]", "__builtin_ia32_permvarsf512(roots[0], vi(shifted))", "((r * 0.16666721f + 0.50001616f) * r + 1.0f) * r + 1.0f"),
      exp_by_roots("exp_by_roots_short", 32, "roots[0], roots[1]", "__builtin_ia32_vpermi2varps512(roots[0], vi(shifted), roots[1])", "(r * 0.50000053f + 1.00001465f) * r + 1.0f"),
      any_exp("v_exp", "", 2),
      any_exp("v_exp_short", "_short", 4),
      exp_nonpositive("v_exp_nonpositive", "", 2),
      exp_nonpositive("v_exp_nonpositive_short", "_short", 4),
      {"v_sigmoid", {"exp_bits", "exp_polynomial", "exp_by_roots", "v_max_or_second", "v_min_or_second", "splat"}, R"(// 1 / (1 + exp(-x)), at most 3 ULP.
inline vf v_sigmoid(vf x) {
  if constexpr (has_exp_by_roots) return 1.0f / (1.0f + exp_by_roots(v_min_or_second(splat(89.0f), -x)));
  const exp_bits b(v_min_or_second(splat(88.0f), v_max_or_second(splat(-87.33f), -x)));
  const vf y = 1.0f / (1.0f + vf(vi(exp_polynomial(b.r)) + b.power));
  return vf(vi(y) & ~(x < -88.0f)); // exactly 0 for large negative x
}
)" + in_double("sigmoid", "1 / (1 + __builtin_exp(-x[k]))")},
      {"expm1_polynomial", {}, R"(// exp(r) - 1 on [-ln(2)/2, ln(2)/2].
inline vf expm1_polynomial(vf r) {
  const vf p = ((((r * 0.0013814538f + 0.0083687454f) * r + 0.041668391f) * r + 0.16666520f) * r + 0.49999994f);
  return (p * r) * r + r;
}
)"},
      {"v_expm1", {"exp_bits", "expm1_polynomial", "v_max_or_second", "v_min_or_second", "splat", "v_exp"}, R"(// 2^n (exp(r) - 1) + (2^n - 1), at most 3 ULP.
inline vf v_expm1(vf x) {
  const exp_bits b(v_min_or_second(splat(88.0f), v_max_or_second(splat(-87.33f), x)));
  const vf power = vf(vi(splat(1.0f)) + b.power);
  const vf y = power * expm1_polynomial(b.r) + (power - 1.0f);
  return x > 88.0f ? v_exp(x) : y;
}
)" + in_double("expm1", "__builtin_expm1(x[k])")},
      {"v_expm1_nonpositive", {"exp_power", "expm1_polynomial", "splat"}, R"(// expm1 for x <= 0, at most 3 ULP; anything for x > 0.
inline vf v_expm1_nonpositive(vf x) {
  const exp_power e(x);
  const vf y = e.power * expm1_polynomial(e.r) + (e.power - 1.0f);
  return x < -18.0f ? splat(-1.0f) : y; // exp is less than half of what 1 can hold
}
)" + in_double("expm1_nonpositive", "__builtin_expm1(x[k])")},
      {"v_log", {"splat"}, R"(// log(x) = e ln(2) + log(m), m in [sqrt(1/2), sqrt(2)); at most 2 ULP; log(0) = -inf, log(x < 0) = NaN.
inline vf v_log(vf x) {
  const vi small = x < 1.17549435e-38f;
  const vf scaled = small ? x * 8388608.0f : x;
  const vi e = (vi(scaled) - 0x3f3504f3) >> 23;
  const vf f = vf(vi(scaled) - (e << 23)) - 1.0f;
  const vf n = __builtin_convertvector(e, vf) - (small ? splat(23.0f) : vf{});
  vf p = f * 0.0870035991f - 0.142674763f;
  p = p * f + 0.149147870f;
  p = p * f - 0.165775860f;
  p = p * f + 0.199630623f;
  p = p * f - 0.250013370f;
  p = p * f + 0.333339108f;
  const vf square = f * f;
  const vf tail = n * 1.42860677e-6f - 0.5f * square;
  const vf y = n * 0.693145752f + (f + (tail + (p * f) * square));
  const vf special = x < 0.0f ? splat(not_a_number) : (x == 0.0f ? splat(-infinity) : x);
  return (x > 0.0f) & (x < infinity) ? y : special;
}
)" + in_double("log", "__builtin_log(x[k])")},
      {"v_log1p_unit", {}, R"(// log(1 + x) for x in [0, 1], at most 3 ULP.
inline vf v_log1p_unit(vf x) {
  vf p = x * 0.0052326240f - 0.0295049571f;
  p = p * x + 0.0782254932f;
  p = p * x - 0.1366320689f;
  p = p * x + 0.1910598847f;
  p = p * x - 0.2484297754f;
  p = p * x + 0.3331909622f;
  p = p * x - 0.499994931f;
  p = p * x + 0.99999997f;
  return p * x;
}
)" + in_double("log1p_unit", "__builtin_log1p(x[k])")},
      {"v_log1p", {"v_log"}, R"(// log(u) x / (u - 1), u = 1 + x: the rounding of u cancels; at most 4 ULP.
inline vf v_log1p(vf x) {
  const vf u = 1.0f + x;
  const vf y = v_log(u) * (x / (u - 1.0f));
  return u == 1.0f ? x : ((x < infinity) & (u > 0.0f) ? y : v_log(u));
}
)" + in_double("log1p", "__builtin_log1p(x[k])")},
      {"v_log2", {"v_log"}, "inline vf v_log2(vf x) { return v_log(x) * 1.44269504f; } // at most 4 ULP\n" + in_double("log2", "__builtin_log2(x[k])")},
      {"v_log10", {"v_log"}, "inline vf v_log10(vf x) { return v_log(x) * 0.434294482f; } // at most 4 ULP\n" + in_double("log10", "__builtin_log10(x[k])")},
      {"v_tanh", {"v_max_or_second", "v_min_or_second", "splat"}, R"(// A rational function of x on [-9.02, 9.02], +-1 outside; relative error 6e-8 before rounding, at most 6 ULP.
inline vf v_tanh(vf x) {
  const vf c = v_min_or_second(splat(9.02f), v_max_or_second(splat(-9.02f), x));
  const vf s = c * c;
  vf p = s * 1.81635557e-11f - 1.27443122e-8f;
  p = p * s + 9.25531460e-6f;
  p = p * s + 0.00291943355f;
  p = p * s + 0.129179929f;
  p = p * s + 0.99999994f;
  vf q = s * 0.000227916661f + 0.0237577306f;
  q = q * s + 0.462512759f;
  q = q * s + 1.0f;
  return v_min_or_second(splat(1.0f), v_max_or_second(splat(-1.0f), vf(c * p / q)));
}
)" + in_double("tanh", "__builtin_tanh(x[k])")},
      {"v_erf", {"v_max_or_second", "v_min_or_second", "splat"}, R"(// A rational function of x on [-3.93, 3.93], +-1 outside; relative error 2e-8 before rounding, at most 6 ULP.
inline vf v_erf(vf x) {
  const vf c = v_min_or_second(splat(3.93f), v_max_or_second(splat(-3.93f), x));
  const vf s = c * c;
  vf p = s * 2.04200112e-6f + 0.000284804471f;
  p = p * s + 0.00377943240f;
  p = p * s + 0.0527897452f;
  p = p * s + 0.190779729f;
  p = p * s + 1.12837915f;
  vf q = s * 3.80041712e-5f + 0.00116516943f;
  q = q * s + 0.0149970855f;
  q = q * s + 0.114255828f;
  q = q * s + 0.502406853f;
  q = q * s + 1.0f;
  return v_min_or_second(splat(1.0f), v_max_or_second(splat(-1.0f), vf(c * p / q)));
}
)" + in_double("erf", "__builtin_erf(x[k])")},
      by_lane("erfc", "erfc"),
      by_lane("exp2", "exp2"),
      by_lane("sin", "sin"),
      by_lane("cos", "cos"),
      by_lane("tan", "tan"),
      by_lane("asin", "asin"),
      by_lane("acos", "acos"),
      by_lane("atan", "atan"),
      by_lane("sinh", "sinh"),
      by_lane("cosh", "cosh"),
      by_lane("asinh", "asinh"),
      by_lane("acosh", "acosh"),
      by_lane("atanh", "atanh"),
      by_lane("lgamma", "lgamma"),
      by_lane2("atan2", "atan2"),
      by_lane2("hypot", "hypot"),
      {"v_pow", {}, R"(template <class V> inline V v_pow(V x, V y) {
  for (int k = 0; k < W; ++k) {
    if constexpr (std::is_floating_point_v<lane<V>>) {
      if constexpr (std::is_same_v<V, vf>) x[k] = __builtin_powf(x[k], y[k]);
      else x[k] = __builtin_pow(x[k], y[k]);
    } else {
      lane<V> power = 1, base = x[k];
      for (auto n = y[k]; n > 0; n >>= 1, base *= base)
        if (n & 1) power *= base;
      x[k] = y[k] >= 0 ? power : x[k] == 1 ? 1 : x[k] == -1 ? (y[k] & 1 ? -1 : 1) : 0;
    }
  }
  return x;
}
)"},
      {"scan_max", {"prefixes", "v_maximum"}, R"(template <class V, class C> inline V scan_max(V x, C& carry) {
  const V before = V{} + lane<V>(carry), r = v_maximum(before, prefixes(x, before, v_maximum<V>));
  carry = C(r[W - 1]);
  return r;
}
)"},
      {"scan_min", {"prefixes", "v_minimum"}, R"(template <class V, class C> inline V scan_min(V x, C& carry) {
  const V before = V{} + lane<V>(carry), r = v_minimum(before, prefixes(x, before, v_minimum<V>));
  carry = C(r[W - 1]);
  return r;
}
)"},
      {"log_of_both", {"v_maximum", "v_abs", "v_exp_nonpositive", "v_log1p_unit"}, R"(// log(exp(a) + exp(b)); of equal ones, infinite too, no difference is asked for.
template <class V> inline V log_of_both(V a, V b) {
  const V top = v_maximum(a, b);
  return a == b ? top + lane<V>(0.6931471805599453) : top + v_log1p_unit(v_exp_nonpositive(-v_abs(a - b)));
}
)"},
      {"scan_log_sum", {"prefixes", "log_of_both"}, R"(template <class V, class C> inline V scan_log_sum(V x, C& carry) {
  const V r = log_of_both(V(V{} + lane<V>(carry)), prefixes(x, V(V{} - __builtin_inff()), log_of_both<V>));
  carry = C(r[W - 1]);
  return r;
}
)"},
  };
  return list;
}

} // namespace pragma::synthesis
