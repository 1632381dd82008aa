// The rule by which one output is judged, on tensors made by hand: every dtype, NaN and Inf, near misses, words.
#include "kernels/seeds.hpp"
#include "verification/compare.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>

using namespace pragma;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double inf_value = std::numeric_limits<double>::infinity();

tensor_spec spec_of(dtype type, std::vector<int64_t> shape, std::string name = "out0") {
  tensor_spec spec;
  spec.name = std::move(name);
  spec.dtype = type;
  spec.shape = std::move(shape);
  return spec;
}

std::vector<std::byte> tensor(dtype type, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  for (size_t i = 0; i < values.size(); ++i) set_element(type, bytes.data(), static_cast<int64_t>(i), values[i]);
  return bytes;
}

comparison judge(dtype type, const std::vector<double>& oracle, const std::vector<double>& got, double tolerance = -1) {
  const auto spec = spec_of(type, {static_cast<int64_t>(oracle.size())});
  const auto reference = tensor(type, oracle);
  const auto answer = tensor(type, got);
  return compare_output(spec, reference, is_floating(type) ? std::span<const double>(oracle) : std::span<const double>(), answer.data(),
                        tolerance < 0 ? default_tolerance(type) : tolerance);
}

std::vector<double> softmax_like(size_t n) {
  std::vector<double> values(n);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += values[i] = std::exp(std::sin(static_cast<double>(i) * 1.7));
  for (auto& v : values) v /= sum;
  return values;
}

} // namespace

TEST_CASE("values of every dtype survive being written and read") {
  for (auto type : {dtype::float32, dtype::float64, dtype::float16, dtype::bfloat16, dtype::int64, dtype::int32, dtype::int16, dtype::int8}) {
    const std::vector<double> values{0, 1, -1, 2, -64, 100};
    const auto bytes = tensor(type, values);
    for (size_t i = 0; i < values.size(); ++i) CHECK(element_value(type, bytes.data(), static_cast<int64_t>(i)) == values[i]);
  }
  CHECK(element_value(dtype::float16, tensor(dtype::float16, {65504}).data(), 0) == 65504);
  CHECK(std::isinf(element_value(dtype::float16, tensor(dtype::float16, {70000}).data(), 0)));
  CHECK(element_value(dtype::float16, tensor(dtype::float16, {0x1p-24}).data(), 0) == 0x1p-24);
  CHECK(element_value(dtype::float16, tensor(dtype::float16, {0x1.ffcp-15}).data(), 0) == Approx(0x1.ffcp-15).epsilon(1e-3));
  CHECK(element_value(dtype::float16, tensor(dtype::float16, {2047.9}).data(), 0) == 2048);
  CHECK(std::isnan(element_value(dtype::float16, tensor(dtype::float16, {nan_value}).data(), 0)));
  CHECK(element_value(dtype::bfloat16, tensor(dtype::bfloat16, {3.140625}).data(), 0) == 3.140625);
  CHECK(std::isnan(element_value(dtype::bfloat16, tensor(dtype::bfloat16, {nan_value}).data(), 0)));
}

TEST_CASE("a right answer passes and a slightly wrong one does not, in every floating dtype") {
  const auto truth = softmax_like(1000);
  for (auto type : {dtype::float32, dtype::float64, dtype::float16, dtype::bfloat16}) {
    CHECK(judge(type, truth, truth).wrong == 0);
    auto off = truth;
    off[617] += 20 * default_tolerance(type) * (off[617] + 1e-3);
    const auto found = judge(type, truth, off);
    CHECK(found.wrong == 1);
    CHECK(found.worst_index == 617);
    CHECK(found.worst > 1);
  }
}

TEST_CASE("tiny outputs are judged on their own scale: zeros and constants fail a softmax") {
  const auto truth = softmax_like(16384); // every value is below 2e-4: an absolute tolerance of 1e-2 would accept anything
  CHECK(judge(dtype::float32, truth, std::vector<double>(truth.size(), 0)).wrong == 16384);
  CHECK(judge(dtype::float32, truth, std::vector<double>(truth.size(), 1.0 / 16384)).wrong > 16000);
}

TEST_CASE("the candidate may be some times as wrong as the reference itself, not more") {
  const auto spec = spec_of(dtype::float32, {4});
  const std::vector<double> oracle{1, 2, 3, 4};
  const auto reference = tensor(dtype::float32, {1, 2, 3.01, 4}); // the reference is wrong by 0.01
  CHECK(compare_output(spec, reference, oracle, tensor(dtype::float32, {1.05, 2, 3, 4}).data(), 1e-6).wrong == 0);
  CHECK(compare_output(spec, reference, oracle, tensor(dtype::float32, {1.1, 2, 3, 4}).data(), 1e-6).wrong == 1);
  // Better than the reference is right, too.
  CHECK(compare_output(spec, reference, oracle, tensor(dtype::float32, oracle).data(), 1e-6).wrong == 0);
}

TEST_CASE("NaN and Inf must stand where the reference has them") {
  const std::vector<double> truth{1, nan_value, inf_value, -inf_value, 5};
  CHECK(judge(dtype::float32, truth, truth).wrong == 0);
  CHECK(judge(dtype::float32, truth, {1, 0, inf_value, -inf_value, 5}).wrong == 1);
  CHECK(judge(dtype::float32, truth, {1, nan_value, -inf_value, -inf_value, 5}).wrong == 1);
  CHECK(judge(dtype::float32, truth, {1, nan_value, nan_value, -inf_value, 5}).wrong == 1);
  const auto found = judge(dtype::float32, truth, {nan_value, nan_value, inf_value, -inf_value, inf_value});
  CHECK(found.wrong == 2);
  CHECK(found.worst == 1e300);
}

TEST_CASE("where float32 overflows but the oracle does not, both answers are right") {
  const auto spec = spec_of(dtype::float32, {3});
  const std::vector<double> oracle{1, 2, 2.5};
  const auto reference = tensor(dtype::float32, {1, 2, inf_value});
  CHECK(compare_output(spec, reference, oracle, tensor(dtype::float32, {1, 2, inf_value}).data(), 1e-4).wrong == 0);
  CHECK(compare_output(spec, reference, oracle, tensor(dtype::float32, {1, 2, 2.5}).data(), 1e-4).wrong == 0);
  CHECK(compare_output(spec, reference, oracle, tensor(dtype::float32, {1, 2, 7}).data(), 1e-4).wrong == 1);
}

TEST_CASE("where the exact answer is beyond the type, infinity is right though the reference came back from there") {
  const auto spec = spec_of(dtype::bfloat16, {3}); // a cumulative product whose steps Torch rounds
  const std::vector<double> oracle{1, -1e39, 1e30};
  const auto reference = tensor(dtype::bfloat16, {1, -3e38, 1e30});
  const auto wrong = [&](std::vector<double> got) { return compare_output(spec, reference, oracle, tensor(dtype::bfloat16, got).data(), 2e-2).wrong; };
  CHECK(wrong({1, -inf_value, 1e30}) == 0);
  CHECK(wrong({1, inf_value, 1e30}) == 1);
  CHECK(wrong({1, nan_value, 1e30}) == 1);
  CHECK(wrong({1, -inf_value, inf_value}) == 1);
}

TEST_CASE("integers and booleans must be equal") {
  for (auto type : {dtype::int64, dtype::int32, dtype::int16, dtype::int8, dtype::uint8}) {
    CHECK(judge(type, {1, 2, 3}, {1, 2, 3}).wrong == 0);
    const auto found = judge(type, {1, 2, 3}, {1, 3, 3});
    CHECK(found.wrong == 1);
    CHECK(found.worst_index == 1);
  }
  CHECK(judge(dtype::boolean, {1, 0}, {1, 0}).wrong == 0);
  CHECK(judge(dtype::boolean, {1, 0}, {1, 1}).wrong == 1);
  auto two = tensor(dtype::boolean, {1, 0});
  two[0] = std::byte{2}; // not a bool that Torch could use
  CHECK(compare_output(spec_of(dtype::boolean, {2}), tensor(dtype::boolean, {1, 0}), {}, two.data(), 0).wrong == 1);
  const auto big = spec_of(dtype::int64, {1}); // beyond what a double can tell apart
  std::vector<std::byte> a(8), b(8);
  const int64_t x = (int64_t{1} << 60) + 1, y = int64_t{1} << 60;
  std::memcpy(a.data(), &x, 8);
  std::memcpy(b.data(), &y, 8);
  CHECK(compare_output(big, a, {}, b.data(), 0).wrong == 1);
  CHECK(element_text(dtype::int64, a.data(), 0) == "1152921504606846977");
}

TEST_CASE("an all-zero truth accepts zero, minus zero and flushed denormals, nothing else") {
  CHECK(judge(dtype::float32, {0, 0, 0}, {0, -0.0, 1e-40}).wrong == 0);
  CHECK(judge(dtype::float32, {0, 0, 0}, {0, 0, 1e-20}).wrong == 1);
}

TEST_CASE("an answer that is zero but for rounding is judged by float32's rounding, whichever value the reference's happened to take") {
  // The running mean of a normalised tensor (random_graphs, seeds 61076, 71017, 81194): float64's rounding is 1e-18, float32's some 1e-9.
  const auto wrong = [](const std::vector<double>& oracle, const std::vector<double>& reference, const std::vector<double>& got) {
    const auto spec = spec_of(dtype::float32, {static_cast<int64_t>(oracle.size())});
    return compare_output(spec, tensor(dtype::float32, reference), oracle, tensor(dtype::float32, got).data(), default_tolerance(dtype::float32)).wrong;
  };
  CHECK(wrong({3.4e-18, -1e-18}, {0, 0}, {9.8e-10, 1e-9}) == 0);
  CHECK(wrong({3.4e-18, -1e-18}, {2e-11, 0}, {9.8e-10, 1e-9}) == 0);
  CHECK(wrong({3.4e-18, -1e-18}, {0, 0}, {1e-6, 0}) == 1);
  CHECK(wrong({3.4e-10, -1e-10}, {0, 0}, {9.8e-9, 1e-8}) == 2);          // not zero: the reference lost it
  CHECK(wrong({3.4e-18, -1e-18}, {3.4e-18, -1e-18}, {9.8e-10, 0}) == 2); // small, and the reference has its digits
}

TEST_CASE("needed_tolerance is the limit between accepted and refused") {
  const auto spec = spec_of(dtype::float32, {1000});
  const auto truth = softmax_like(1000);
  const auto reference = tensor(dtype::float32, truth);
  auto shifted = truth;
  for (auto& v : shifted) v *= 1.001;
  const auto got = tensor(dtype::float32, shifted);
  const auto scale = scale_of(spec, reference, truth);
  const double needed = needed_tolerance(spec, reference, truth, scale, got.data());
  CHECK(needed > 1e-5);
  CHECK(compare_output(spec, reference, truth, scale, got.data(), needed * 1.001).wrong == 0);
  CHECK(compare_output(spec, reference, truth, scale, got.data(), needed * 0.999).wrong > 0);
  CHECK(needed_tolerance(spec, reference, truth, scale, reference.data()) == 0);
  const auto broken = tensor(dtype::float32, std::vector<double>(1000, nan_value));
  CHECK(std::isinf(needed_tolerance(spec, reference, truth, scale, broken.data())));
}

TEST_CASE("a mismatch is told in one sentence") {
  const auto spec = spec_of(dtype::float32, {4, 32});
  std::vector<double> truth(128);
  for (size_t i = 0; i < truth.size(); ++i) truth[i] = 0.5 + 0.01 * static_cast<double>(i);
  auto wrong = truth;
  wrong[3 * 32 + 17] = 0;
  const auto reference = tensor(dtype::float32, truth), got = tensor(dtype::float32, wrong);
  const auto found = compare_output(spec, reference, truth, got.data(), 1e-4);
  const auto m = describe_mismatch(spec, reference, truth, got.data(), found, "own inputs, seed 3");
  CHECK(m.index == std::vector<int64_t>{3, 17});
  CHECK(sentence(m) == "out0[3, 17] is 0, expected 1.63 (own inputs, seed 3); 1 of 128 elements is wrong");

  const auto scalar = spec_of(dtype::float32, {}, "loss");
  const std::vector<double> one{2.5};
  const auto r = tensor(dtype::float32, one), g = tensor(dtype::float32, {nan_value});
  const auto s = describe_mismatch(scalar, r, one, g.data(), compare_output(scalar, r, one, g.data(), 1e-4), "large values");
  CHECK(sentence(s) == "loss is nan, expected 2.5 (large values)");
}

TEST_CASE("close values are printed with enough digits to differ") {
  const auto spec = spec_of(dtype::float64, {2});
  const std::vector<double> truth{1.0, 3.0};
  const auto reference = tensor(dtype::float64, truth), got = tensor(dtype::float64, {1.0, 3.0000001});
  const auto m = describe_mismatch(spec, reference, truth, got.data(), compare_output(spec, reference, truth, got.data(), 1e-9), "own inputs, seed 1");
  CHECK(m.expected != m.got);
}

// -- little computed ---------------------------------------------------------------------------------------------------

namespace {

struct heavy {
  std::vector<double> oracle, reference;
  double error(double factor, seed_source& random) const { return factor * 1e-7 * (static_cast<double>(random.next()) * 0x1p-52 - 1); }
  /// `size(i)`: of the values' spread; errors are relative to it, as in sums of terms of that size.
  template <class F> explicit heavy(size_t n, F&& size, bool relative = false) {
    seed_source random(5);
    for (size_t i = 0; i < n; ++i) {
      const double s = size(i, random);
      oracle.push_back(s * (relative ? 1 : std::sin(static_cast<double>(random.next() % 100000))));
      reference.push_back(oracle.back() + s * error(1, random));
      sizes.push_back(s);
    }
  }
  std::vector<double> sizes;
  std::vector<int64_t> shape;
  comparison judge(const std::vector<double>& got) const {
    const auto spec = spec_of(dtype::float32, shape.empty() ? std::vector<int64_t>{static_cast<int64_t>(oracle.size())} : shape);
    return compare_output(spec, tensor(dtype::float32, reference), oracle, tensor(dtype::float32, got).data(), defaults::tolerance_float32);
  }
  /// Three times as wrong as the reference.
  comparison judge_honest() const {
    seed_source random(9);
    auto got = oracle;
    for (size_t i = 0; i < got.size(); ++i) got[i] += sizes[i] * error(3, random);
    return judge(got);
  }
};

} // namespace

TEST_CASE("one large channel does not make the others unjudged") {
  heavy output(64 * 1024, [](size_t i, seed_source&) { return i % 1024 == 7 ? 1e5 * 0.02 : 0.02; });
  output.shape = {64, 1024};
  output.oracle[7] = output.reference[7] = 1e-3; // crosses zero, where the reference is right by luck: the error is that of its channel
  CHECK(output.judge_honest().wrong == 0);
  auto one_column = output.oracle;
  for (size_t i = 0; i < one_column.size(); ++i)
    if (i % 1024 != 7) one_column[i] = 0;
  const auto found = output.judge(one_column);
  CHECK(found.wrong > 60000);
  auto without_it = output.oracle;
  for (size_t i = 7; i < without_it.size(); i += 1024) without_it[i] = 0;
  CHECK(output.judge(without_it).wrong > 60);
}

TEST_CASE("a wide range of sizes is judged at each of them") {
  // exp(10 x): sizes from e^-40 to e^40, all errors relative.
  const heavy output(100000, [](size_t, seed_source& random) {
    double normal = 0;
    for (int i = 0; i < 12; ++i) normal += static_cast<double>(random.next()) * 0x1p-53;
    return std::exp(10 * (normal - 6));
  }, true);
  CHECK(output.judge_honest().wrong == 0);
  double largest = 0;
  for (const double o : output.oracle) largest = std::max(largest, std::fabs(o));
  for (const double cut : {1e-3, 1e-6, 1e-9}) { // the largest value is about e^40
    auto got = output.oracle;
    for (auto& g : got)
      if (std::fabs(g) < cut * largest) g = 0;
    CHECK(output.judge(got).wrong > 1000);
  }
}

TEST_CASE("where sizes are alike, and where most elements are zero, nothing is judged more strictly than before") {
  const heavy alike(10000, [](size_t, seed_source&) { return 1.0; });
  CHECK(alike.judge_honest().wrong == 0);
  auto near_zero = alike.oracle;
  for (auto& g : near_zero) g += 5e-5; // where a value crosses zero, too
  CHECK(alike.judge(near_zero).wrong == 0);
  const heavy sparse(10000, [](size_t i, seed_source&) { return i % 10 == 0 ? 1.0 : 0.0; }); // as after a ReLU
  auto got = sparse.oracle;
  for (auto& g : got) g += 4e-6;
  CHECK(sparse.judge(got).wrong == 0);
  // Cancellation: small results of large terms, among large ones. Their errors are those of the terms.
  const heavy terms(10000, [](size_t i, seed_source&) { return i % 100 == 0 ? 1e4 : 1.0; });
  auto cancelled = terms;
  for (size_t i = 0; i < cancelled.sizes.size(); ++i) cancelled.sizes[i] = 1e4;
  seed_source random(3);
  for (size_t i = 0; i < cancelled.oracle.size(); ++i) cancelled.reference[i] = cancelled.oracle[i] + cancelled.sizes[i] * cancelled.error(1, random);
  CHECK(cancelled.judge_honest().wrong == 0);
}

TEST_CASE("blocks that are passed over hold nothing: an element on its own is found wherever it lies") {
  constexpr int64_t n = 3000; // some blocks
  const auto spec = spec_of(dtype::float32, {n});
  std::vector<double> oracle(n);
  for (int64_t i = 0; i < n; ++i) oracle[static_cast<size_t>(i)] = std::sin(static_cast<double>(i) * 0.7);
  const auto reference = tensor(dtype::float32, oracle);
  const auto usual = compare_output(spec, reference, oracle, reference.data(), 1e-4);
  CHECK(usual.wrong == 0);
  CHECK(usual.worst > 0); // of rounding: the worst is known even where nothing is wrong
  for (const int64_t place : {int64_t{0}, int64_t{1}, int64_t{511}, int64_t{512}, int64_t{1023}, int64_t{1777}, n - 1}) {
    const auto at = static_cast<size_t>(place);
    for (const double wrong : {nan_value, inf_value, -inf_value, oracle[at] + 0.01, -1e30}) {
      auto got = reference;
      set_element(dtype::float32, got.data(), place, wrong);
      const auto found = compare_output(spec, reference, oracle, got.data(), 1e-4);
      CHECK(found.wrong == 1);
      CHECK(found.worst_index == place);
    }
    for (const double truth : {inf_value, -inf_value, nan_value}) { // Torch's result and the oracle's are no number: neither is a finite one right
      auto other = oracle;
      other[at] = truth;
      const auto expected = tensor(dtype::float32, other);
      CHECK(compare_output(spec, expected, other, expected.data(), 1e-4).wrong == 0);
      CHECK(compare_output(spec, expected, other, reference.data(), 1e-4).wrong == 1);
    }
    auto overflowed = reference; // in float32 only: any number is near enough that the oracle is near to
    set_element(dtype::float32, overflowed.data(), place, inf_value);
    CHECK(compare_output(spec, overflowed, oracle, reference.data(), 1e-4).wrong == 0);
  }
  auto two = reference;
  set_element(dtype::float32, two.data(), 5, oracle[5] + 0.5);
  set_element(dtype::float32, two.data(), 6, oracle[6] + 0.1);
  set_element(dtype::float32, two.data(), 2000, oracle[2000] + 0.2);
  const auto found = compare_output(spec, reference, oracle, two.data(), 1e-4);
  CHECK(found.wrong == 3);
  CHECK(found.where == std::vector<int64_t>{5, 6, 2000});
  CHECK(found.worst_index == 5);
}
