// float16 and bfloat16 as formats of memory: every value that is read, every way to round what is stored, for each size of vectors, with what
// the processor has for it and without. Products of bfloat16 in pairs. Expected values are made here, by the types' definitions.
#include "kernel_fixture.hpp"

using namespace pragma;
using namespace pragma::test;

namespace {

struct half_type {
  dtype type;
  int fraction_bits, lowest_exponent;
  double largest;
};
const half_type float16_type{dtype::float16, 10, -14, 65504}, bfloat16_type{dtype::bfloat16, 7, -126, 0x1.fep127};

std::string name_of(const half_type& h) { return json(h.type).get<std::string>(); }

/// What 16 bits stand for.
double value_of(uint16_t bits, const half_type& h) {
  const int exponent_bits = 15 - h.fraction_bits, exponent = bits >> h.fraction_bits & ((1 << exponent_bits) - 1);
  const double fraction = static_cast<double>(bits & ((1 << h.fraction_bits) - 1)) / (1 << h.fraction_bits), sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * INFINITY : NAN;
  return exponent == 0 ? sign * std::ldexp(fraction, h.lowest_exponent) : sign * std::ldexp(1 + fraction, exponent - 1 + h.lowest_exponent);
}

/// The nearest value of the type, of two that are equally near the one with an even fraction.
double nearest(double x, const half_type& h) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int last = std::max(std::ilogb(x), h.lowest_exponent) - h.fraction_bits;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -last)), last);
  return std::fabs(rounded) > h.largest ? std::copysign(INFINITY, x) : rounded;
}

/// The kernel of a cast from one type to another.
loaded cast(const std::string& from, const std::string& to, size_t n, int simd_bits, const std::string& march) {
  graph_text g;
  const auto x = g.input({static_cast<int64_t>(n)}, from);
  const auto y = g.node("aten._to_copy.default", {{"self", graph_text::ref(x)}, {"dtype", to}}, {static_cast<int64_t>(n)}, to);
  auto options = test_machine();
  options.machine.simd_bits = simd_bits;
  const auto made = coder_for(g.finish({y}), options).next(std::nullopt);
  REQUIRE(made);
  auto flags = made->flags;
  for (auto& f : flags)
    if (f == "-march=native") f = march;
  flags.push_back("-Wno-uninitialized"); // GCC 12's own header of AVX-512
  return loaded(made->source, flags, "-O2");
}

struct target {
  int simd_bits;
  const char* march;
};
/// Code for other processors is compiled, not run: all of these run on any x86-64 but what "native" adds.
#if defined(__x86_64__)
const target targets[] = {{512, "-march=native"}, {256, "-march=native"}, {256, "-march=x86-64-v2"}}; // the last by integer arithmetic
#else
const target targets[] = {{128, "-march=native"}};
#endif

} // namespace

TEST_CASE("every value of a half type is read as what it stands for") {
  constexpr size_t n = 65536;
  for (const auto& h : {float16_type, bfloat16_type})
    for (const auto& on : targets) {
      INFO(name_of(h) << " on vectors of " << on.simd_bits << " bits with " << on.march);
      const auto kernel = cast(name_of(h), "float32", n, on.simd_bits, on.march);
      tensor<uint16_t> in(n);
      tensor<float> out(n);
      for (size_t i = 0; i < n; ++i) in[i] = static_cast<uint16_t>(i);
      call(kernel, {in.data()}, {out.data()});
      size_t wrong = 0;
      for (size_t i = 0; i < n; ++i) {
        const double expected = value_of(in[i], h);
        wrong += std::isnan(expected) ? !std::isnan(out[i]) : static_cast<double>(out[i]) != expected || std::signbit(out[i]) != std::signbit(expected);
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("what is stored in a half type is the nearest of its values, and of two the even one") {
  std::vector<float> all;
  for (uint32_t bits = 0; bits < 65536; ++bits) // each value, the middle to the next, and what lies just beside both
    for (const auto& h : {float16_type, bfloat16_type}) {
      const double a = value_of(static_cast<uint16_t>(bits), h), b = value_of(static_cast<uint16_t>(bits + 1), h);
      if (!std::isfinite(a)) continue;
      const auto middle = static_cast<float>(std::isfinite(b) ? (a + b) / 2 : a);
      for (float x : {static_cast<float>(a), middle, std::nextafter(middle, INFINITY), std::nextafter(middle, -INFINITY)}) all.push_back(x);
    }
  for (float x : {65519.99f, 65520.0f, 1e9f, 3.4e38f, INFINITY, -INFINITY, NAN}) all.push_back(x);
  std::mt19937 generator(3);
  for (int i = 0; i < 20000; ++i) {
    const uint32_t bits = generator();
    float x;
    std::memcpy(&x, &bits, sizeof x);
    all.push_back(x);
  }
  tensor<float> in(all.size());
  std::copy(all.begin(), all.end(), in.data());
  for (const auto& h : {float16_type, bfloat16_type})
    for (const auto& on : targets) {
      INFO(name_of(h) << " on vectors of " << on.simd_bits << " bits with " << on.march);
      const auto kernel = cast("float32", name_of(h), all.size(), on.simd_bits, on.march);
      tensor<uint16_t> out(all.size());
      call(kernel, {in.data()}, {out.data()});
      size_t wrong = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        const double got = value_of(out[i], h), expected = nearest(static_cast<double>(all[i]), h);
        if (h.type == dtype::bfloat16 && std::fabs(all[i]) < 0x1p-125f && std::fabs(got) <= 0x1p-125) continue; // AVX512-BF16 takes numbers below the normal ones for zero
        wrong += std::isnan(expected) ? !std::isnan(got) : got != expected || std::signbit(got) != std::signbit(expected);
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("a product of bfloat16 is that of its values, in pairs of steps or not, whatever is left over") {
  struct sizes { int64_t m, k, n; bool turned; };
  for (const auto& s : {sizes{17, 35, 51, false}, sizes{40, 701, 33, true}})
    for (const auto& on : targets) {
      INFO(s.m << " x " << s.k << " x " << s.n << (s.turned ? " turned" : "") << " on vectors of " << on.simd_bits << " bits with " << on.march);
      graph_text g;
      const auto a = g.input({s.m, s.k}, "bfloat16");
      auto b = g.input(s.turned ? std::vector<int64_t>{s.n, s.k} : std::vector<int64_t>{s.k, s.n}, "bfloat16");
      if (s.turned) b = g.node("aten.t.default", {{"self", graph_text::ref(b)}}, {s.k, s.n}, "bfloat16");
      const auto product = g.node("aten.mm.default", {{"self", graph_text::ref(a)}, {"mat2", graph_text::ref(b)}}, {s.m, s.n}, "bfloat16");
      const auto wide = g.node("aten._to_copy.default", {{"self", graph_text::ref(product)}, {"dtype", "float32"}}, {s.m, s.n});
      auto options = test_machine();
      options.machine.simd_bits = on.simd_bits;
      const auto made = coder_for(g.finish({wide}), options).next(std::nullopt);
      REQUIRE(made);
      auto flags = made->flags;
      for (auto& f : flags)
        if (f == "-march=native") f = on.march;
      const loaded kernel(made->source, flags);
      tensor<uint16_t> left(static_cast<size_t>(s.m * s.k)), right(static_cast<size_t>(s.k * s.n));
      std::mt19937 generator(5);
      for (auto* t : {&left, &right})
        for (size_t i = 0; i < t->size(); ++i) (*t)[i] = static_cast<uint16_t>((generator() & 0x80ff) | 0x3f00); // of sizes around 1
      tensor<float> out(static_cast<size_t>(s.m * s.n));
      call(kernel, {left.data(), right.data()}, {out.data()});
      double worst = 0;
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j) {
          double sum = 0, size = 0;
          for (int64_t k = 0; k < s.k; ++k) {
            const double p = value_of(left[static_cast<size_t>(i * s.k + k)], bfloat16_type) * value_of(right[static_cast<size_t>(s.turned ? j * s.k + k : k * s.n + j)], bfloat16_type);
            sum += p;
            size += std::fabs(p);
          }
          worst = std::max(worst, std::fabs(out[static_cast<size_t>(i * s.n + j)] - sum) / size);
        }
      CHECK(worst < 1e-6); // sums in float32: in a half type they would miss by 4e-3
    }
}
