// Attention by blocks of rows: under a causal mask, whose masked part is not computed, it is right all the same where rows are masked as a whole, and where a masked value is infinite; and with long rows.
#include "golden.hpp"
#include "kernel_fixture.hpp"

using namespace pragma;
using namespace pragma::test;

namespace {

constexpr int64_t heads = 2, rows = 192, columns = 200, width = 16, values = 17; ///< of golden/attention_causal_blocks.json

/// Row i keeps the columns before i - 2.
double exact(const float* q, const float* k, const float* v, int64_t i, int64_t j) {
  double peak = -INFINITY, sum = 0, result = 0;
  std::vector<double> scores;
  for (int64_t c = 0; c < i - 2; ++c) {
    double s = 0;
    for (int64_t x = 0; x < width; ++x) s += double(q[i * width + x]) * k[c * width + x];
    scores.push_back(s);
    peak = std::max(peak, s);
  }
  for (double s : scores) sum += std::exp(s - peak);
  for (size_t c = 0; c < scores.size(); ++c) result += std::exp(scores[c] - peak) / sum * v[static_cast<int64_t>(c) * values + j];
  return scores.empty() ? NAN : result;
}

} // namespace

TEST_CASE("causal attention by blocks of rows: whole masked rows are NaN, and an infinite value reaches the rows that mask it") {
  for (int bits : {128, 256, 512}) {
    if (bits == 512 && !__builtin_cpu_supports("avx512f")) continue;
    auto shape = golden("attention_causal_blocks");
    shape.options.machine.simd_bits = bits;
    auto coder = coder_of(shape);
    const auto made = coder.next(std::nullopt);
    REQUIRE(made);
    REQUIRE(made->source.find("columns_until(m + MR)") != std::string::npos);
    const loaded kernel(made->source, made->flags);
    auto q = random_floats(heads * rows * width, 1, -1, 1), k = random_floats(heads * columns * width, 2, -1, 1), v = random_floats(heads * columns * values, 3);
    tensor<float> out(heads * rows * values);
    for (const int64_t infinite : {int64_t{-1}, int64_t{60}, int64_t{150}}) { // this column's first value, of the second head
      float& changed = v[static_cast<size_t>((columns + std::max<int64_t>(infinite, 0)) * values)];
      const float before = changed;
      if (infinite >= 0) changed = INFINITY;
      call(kernel, {q.data(), k.data(), v.data()}, {out.data()});
      double worst = 0;
      bool shapes = true;
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < values; ++j) {
            const float got = out[static_cast<size_t>((h * rows + i) * values + j)];
            const double want = exact(q.data() + h * rows * width, k.data() + h * columns * width, v.data() + h * columns * values, i, j);
            const bool meets = infinite >= 0 && h == 1 && j == 0;
            if (meets && i - 2 > infinite) shapes = shapes && got == INFINITY;
            else if (meets || i <= 2) shapes = shapes && std::isnan(got); // zero times infinity, and nothing at all
            else worst = std::max(worst, std::isnan(got) ? INFINITY : std::fabs(got - want));
          }
      INFO(bits << " bits, infinite at " << infinite << ", worst " << worst);
      CHECK(shapes);
      CHECK(worst < 2e-6);
      changed = before;
    }
  }
}

TEST_CASE("rows of more than 4,096 columns run by blocks of 16, and their scores are never in memory as a whole") {
  constexpr int64_t many = 8200, few = 32, inner = 8;
  graph_text g;
  const auto ref = [](const std::string& id) { return graph_text::ref(id); };
  const auto q = g.input({1, few, inner}), k = g.input({1, inner, many}), v = g.input({1, many, inner});
  const auto scores = g.node("aten.bmm.default", {{"self", ref(q)}, {"mat2", ref(k)}}, {1, few, many});
  const auto weights = g.node("aten._softmax.default", {{"self", ref(scores)}, {"dim", -1}, {"half_to_float", false}}, {1, few, many});
  auto coder = coder_for(g.finish({g.node("aten.bmm.default", {{"self", ref(weights)}, {"mat2", ref(v)}}, {1, few, inner})}));
  const auto made = coder.next(std::nullopt);
  REQUIRE(made);
  CHECK(made->source.find("[" + std::to_string(16 * many) + "]") != std::string::npos);
  CHECK(made->source.find("[" + std::to_string(few * many) + "]") == std::string::npos);
  const loaded kernel(made->source, made->flags);
  auto a = random_floats(few * inner, 1, -1, 1), b = random_floats(inner * many, 2, -1, 1), c = random_floats(many * inner, 3);
  tensor<float> out(few * inner);
  call(kernel, {a.data(), b.data(), c.data()}, {out.data()});
  double worst = 0;
  for (int64_t i = 0; i < few; ++i) {
    double sum = 0, results[inner] = {};
    for (int64_t n = 0; n < many; ++n) {
      double s = 0;
      for (int64_t x = 0; x < inner; ++x) s += double(a[static_cast<size_t>(i * inner + x)]) * b[static_cast<size_t>(x * many + n)];
      sum += std::exp(s);
      for (int64_t j = 0; j < inner; ++j) results[j] += std::exp(s) * c[static_cast<size_t>(n * inner + j)];
    }
    for (int64_t j = 0; j < inner; ++j) worst = std::max(worst, std::fabs(out[static_cast<size_t>(i * inner + j)] - results[j] / sum));
  }
  CHECK(worst < 2e-6);
}
