#include "verification/compare.hpp"

#include "base/text.hpp"
#include "verification/pieces.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace pragma {

double epsilon_of(dtype type) {
  switch (type) {
    case dtype::float64: return DBL_EPSILON;
    case dtype::float16: return 0x1p-10;
    case dtype::bfloat16: return 0x1p-7;
    default: return FLT_EPSILON;
  }
}

namespace {

/// The largest finite number of a floating type.
double largest_of(dtype type) {
  switch (type) {
    case dtype::float64: return DBL_MAX;
    case dtype::float16: return 65504;
    case dtype::bfloat16: return 0x1.fep127;
    default: return FLT_MAX;
  }
}

constexpr double infinite_error = 1e300; ///< stands for "not finite" where JSON must carry a number
constexpr double tail_factor = 10;       ///< a mean absolute deviation of more than so many times what most values are is made by few large ones
constexpr double most_values = 0.9;
constexpr int64_t worth_binning = 256;   ///< elements; of fewer nothing is said of most
constexpr int64_t least_slice = 64;      ///< elements, for the largest of their errors to stand for another one's
constexpr double well_conditioned = 100; ///< units in the last place: where no element of the reference is farther off, errors are relative ones
constexpr double no_digit = 1 << 20;     ///< the reference's error over the oracle's largest value
constexpr double nothing_in_float32 = 1e-14; ///< less than the rounding of float32 values near one
constexpr double coarser = 16 * FLT_EPSILON / DBL_EPSILON; ///< float32's rounding than float64's, where the latter was small by luck
constexpr int first_exponent = -160, exponents = 320;

/// By powers of two, values beyond float's range in the last ones.
size_t bin_of(double value) {
  const auto exponent = static_cast<int>(std::bit_cast<uint64_t>(value) >> 52 & 0x7ff) - 1023; // of what is finite; zero and subnormal ones lie below the first bin
  return static_cast<size_t>(std::clamp(exponent - first_exponent, 0, exponents - 1));
}

template <class T> T load(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}
template <class T> void store(std::byte* data, int64_t index, T value) {
  std::memcpy(data + static_cast<size_t>(index) * sizeof(T), &value, sizeof(T));
}

/// Calls f with a value of the element's storage type.
template <class F> decltype(auto) with_type(dtype type, F&& f) {
  switch (type) {
    case dtype::float64: return f(double{});
    case dtype::float16: return f(Eigen::half{});
    case dtype::bfloat16: return f(Eigen::bfloat16{});
    case dtype::int64: return f(int64_t{});
    case dtype::int32: return f(int32_t{});
    case dtype::int16: return f(int16_t{});
    case dtype::int8: return f(int8_t{});
    case dtype::uint8:
    case dtype::boolean: return f(uint8_t{});
    default: return f(float{});
  }
}

/// Below this, values of the dtype may be flushed to zero: a difference that small is none. Not the least normal value itself: what an exponential gives may be flushed
/// a little earlier, or be a factor larger or smaller than the result.
double underflow_of(dtype type) {
  switch (type) {
    case dtype::float64: return 4 * DBL_MIN;
    case dtype::float16: return 0x1p-24;
    default: return 4 * FLT_MIN;
  }
}

/// What no tolerance takes away.
double floor_at(int64_t index, double target, double underflow, const output_scale& scale) {
  return std::max(defaults::reference_error_factor * scale.error_at(index, target), underflow);
}

/// |got - target| where both have a meaning, 0 where they agree as NaN or Inf, infinity where they do not.
/// `largest`: finite number of the type; `target` is set to the value that the difference is measured from.
inline double difference(double reference, double oracle, double got, double largest, double& target) {
  if (std::isfinite(reference)) {
    target = std::isfinite(oracle) ? oracle : reference;
    if (std::isinf(got) && std::fabs(target) > largest && (got > 0) == (target > 0)) return 0; // the reference lost its way back
    return std::isfinite(got) ? std::fabs(got - target) : std::numeric_limits<double>::infinity();
  }
  target = oracle;
  if (std::isnan(reference) ? std::isnan(got) : got == reference) {
    target = 0;
    return 0;
  }
  if (std::isfinite(oracle) && std::isfinite(got)) return std::fabs(got - oracle);
  target = 0;
  return std::numeric_limits<double>::infinity();
}

/// Calls f(index, difference, target) for the elements [first, last) of a floating output.
template <class F>
void each_difference(dtype type, std::span<const std::byte> reference_output, std::span<const double> oracle,
                     const std::byte* got, int64_t first, int64_t last, F&& f) {
  with_type(type, [&](auto kind) {
    using T = decltype(kind);
    const double largest = largest_of(type);
    for (int64_t i = first; i < last; ++i) {
      const double r = static_cast<double>(load<T>(reference_output.data(), i));
      const double o = oracle.empty() ? r : oracle[static_cast<size_t>(i)];
      double target = 0;
      const double d = difference(r, o, static_cast<double>(load<T>(got, i)), largest, target);
      f(i, d, target);
    }
  });
}

/// Judges the elements of one floating output, block by block.
class judge_of_elements {
public:
  static constexpr int64_t block = 512;

  judge_of_elements(dtype type, std::span<const std::byte> reference_output, std::span<const double> oracle, const output_scale& scale, const std::byte* got, double tolerance)
      : type_(type), reference_(reference_output), oracle_(oracle), scale_(scale), got_(got), tolerance_(tolerance), underflow_(underflow_of(type)) {}

  /// Elements [first, last): how many are wrong, which, and the worst.
  void add(int64_t first, int64_t last, comparison& so_far) const {
    if (type_ == dtype::float32 && !oracle_.empty() && scale_.part.errors.empty() && nothing_new(first, last, std::min(so_far.worst, 1.0))) return;
    each_difference(type_, reference_, oracle_, got_, first, last, [&](int64_t i, double d, double target) {
      if (d == 0) return;
      const double allowed = std::max(tolerance_ * (std::fabs(target) + scale_.mad), floor_at(i, target, underflow_, scale_));
      double error = std::isfinite(d) ? d / allowed : infinite_error;
      if (!(error < infinite_error)) error = infinite_error;
      so_far.wrong += error > 1;
      if (error > 1 && so_far.where.size() < most_listed_elements) so_far.where.push_back(i);
      if (error > so_far.worst) {
        so_far.worst = error;
        so_far.worst_index = i;
      }
    });
  }

private:
  /// All are finite, and no error is above `bound`. Most blocks are such: without branches and divisions it takes a quarter of the time (a third of a run's audits was spent here).
  bool nothing_new(int64_t first, int64_t last, double bound) const {
    const double relative = scale_.relative_error > 0 ? defaults::reference_error_factor * scale_.relative_error : 0;
    const double least = scale_.relative_error > 0 ? underflow_ : std::max(defaults::reference_error_factor * scale_.reference_error, underflow_);
    int any = 0;
    for (int64_t i = first; i < last; ++i) {
      const double target = oracle_[static_cast<size_t>(i)], size = std::fabs(target);
      const double judged = tolerance_ * (size + scale_.mad), floor = std::max(relative * size, least);
      const bool fine = std::fabs(static_cast<double>(load<float>(got_, i)) - target) <= bound * std::max(judged, floor);
      any |= !(fine & (size <= DBL_MAX) & (std::fabs(load<float>(reference_.data(), i)) <= FLT_MAX));
    }
    return any == 0;
  }

  dtype type_;
  std::span<const std::byte> reference_;
  std::span<const double> oracle_;
  const output_scale& scale_;
  const std::byte* got_;
  double tolerance_, underflow_;
};

comparison compare_exact(const tensor_spec& spec, std::span<const std::byte> reference_output, const std::byte* got) {
  comparison result;
  const auto width = size_of(spec.dtype);
  const int64_t n = spec.elements();
  if (n == 0 || std::memcmp(reference_output.data(), got, static_cast<size_t>(n) * width) == 0) return result;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i) * width;
    if (std::memcmp(reference_output.data() + at, got + at, width) == 0) continue;
    if (result.wrong++ == 0) result.worst_index = i;
    if (result.where.size() < most_listed_elements) result.where.push_back(i);
  }
  result.worst = infinite_error;
  return result;
}

} // namespace

double default_tolerance(dtype type) {
  switch (type) {
    case dtype::float32: return defaults::tolerance_float32;
    case dtype::float64: return defaults::tolerance_float64;
    case dtype::float16: return defaults::tolerance_float16;
    case dtype::bfloat16: return defaults::tolerance_bfloat16;
    default: return 0;
  }
}

double element_value(dtype type, const std::byte* data, int64_t index) {
  return with_type(type, [&](auto kind) { return static_cast<double>(load<decltype(kind)>(data, index)); });
}

void set_element(dtype type, std::byte* data, int64_t index, double value) {
  switch (type) {
    case dtype::float32: return store(data, index, static_cast<float>(value));
    case dtype::float64: return store(data, index, value);
    case dtype::float16: return store(data, index, Eigen::half(static_cast<float>(value)));
    case dtype::bfloat16: return store(data, index, Eigen::bfloat16(static_cast<float>(value)));
    case dtype::boolean: return store(data, index, static_cast<uint8_t>(value != 0));
    default: break;
  }
  with_type(type, [&](auto kind) {
    using T = decltype(kind);
    if constexpr (std::is_integral_v<T>) {
      const double low = static_cast<double>(std::numeric_limits<T>::min());
      const double high = std::nextafter(static_cast<double>(std::numeric_limits<T>::max()), 0.0);
      store(data, index, static_cast<T>(std::isnan(value) ? 0 : std::clamp(std::nearbyint(value), low, high)));
    }
  });
}

std::string element_text(dtype type, const std::byte* data, int64_t index) {
  if (is_floating(type)) return number_text(element_value(type, data, index));
  if (type == dtype::boolean) {
    const auto bits = load<uint8_t>(data, index);
    return bits == 0 ? "false" : bits == 1 ? "true" : "not a bool (byte " + std::to_string(bits) + ")";
  }
  return with_type(type, [&](auto kind) -> std::string {
    using T = decltype(kind);
    if constexpr (std::is_integral_v<T>) return std::to_string(load<T>(data, index));
    return {};
  });
}

double output_scale::error_at(int64_t index, double value) const {
  if (relative_error > 0) return relative_error * std::fabs(value);
  return part.errors.empty() ? reference_error : part.errors[static_cast<size_t>(index / part.stride % part.extent)];
}

namespace {

/// Then all others would hardly be judged by it: it becomes what most values are like.
bool few_make_the_deviation(output_scale& scale, const std::array<int64_t, exponents>& elements) {
  int64_t all = 0, below = 0;
  for (const auto n : elements) all += n;
  if (all < worth_binning) return false;
  size_t bin = 0;
  while (static_cast<double>(below + elements[bin]) < most_values * static_cast<double>(all)) below += elements[bin++];
  const double most = std::ldexp(2.0, static_cast<int>(bin) + first_exponent);
  if (scale.mad <= tail_factor * most) return false;
  scale.mad = tail_factor * most;
  return scale.heavy_tail = true;
}

/// Of the elements [first, last) of an output, or of all of them.
struct moments {
  int64_t finite = 0, count = 0;
  double sum = 0, error = 0, largest = 0;
  double relative = 0, largest_of_reference = 0;
  std::array<int64_t, exponents> elements{}; ///< that are not zero

  void add(double reference, double truth, double underflow) {
    finite += std::isfinite(reference);
    if (!std::isfinite(truth)) return;
    sum += truth;
    ++count;
    largest = std::max(largest, std::fabs(truth));
    elements[bin_of(truth)] += truth != 0;
    if (!std::isfinite(reference)) return;
    largest_of_reference = std::max(largest_of_reference, std::fabs(reference));
    error = std::max(error, std::fabs(reference - truth));
    if (std::fabs(reference - truth) > underflow) relative = std::max(relative, std::fabs(reference - truth) / std::fabs(truth));
  }
  void add(const moments& part) {
    finite += part.finite;
    count += part.count;
    sum += part.sum;
    error = std::max(error, part.error);
    largest = std::max(largest, part.largest);
    relative = std::max(relative, part.relative);
    largest_of_reference = std::max(largest_of_reference, part.largest_of_reference);
    for (size_t b = 0; b < elements.size(); ++b) elements[b] += part.elements[b];
  }
};

/// Is the exact answer zero everywhere, so that the oracle holds float64's rounding and the reference float32's (the running mean of a normalised tensor)?
/// Then the reference has no digit of the oracle's, or is zero where its rounding happened to cancel.
bool is_rounding_only(const moments& all) {
  return all.error > no_digit * all.largest || (all.largest_of_reference == 0 && all.largest < nothing_in_float32);
}

/// The dimension along which the reference's errors differ most, where they do: `value` and `truth` of an element.
template <class Value, class Truth>
void find_uneven_errors(const tensor_spec& spec, double largest_error, double underflow, Value&& value, Truth&& truth, output_scale& scale) {
  const int64_t n = spec.elements();
  double most_uneven = tail_factor;
  for (int64_t stride = 1, d = static_cast<int64_t>(spec.shape.size()) - 1; d >= 0; --d) {
    const int64_t extent = std::max<int64_t>(spec.shape[static_cast<size_t>(d)], 1);
    output_scale::slices part{stride, extent, std::vector<double>(static_cast<size_t>(extent))};
    stride *= extent;
    if (extent < 2 || n / extent < least_slice) continue;
    for (int64_t i = 0; i < n; ++i) {
      const double r = value(i), o = truth(i);
      auto& worst = part.errors[static_cast<size_t>(i / part.stride % extent)];
      if (std::isfinite(r) && std::isfinite(o)) worst = std::max(worst, std::fabs(r - o));
    }
    auto sorted = part.errors;
    std::nth_element(sorted.begin(), sorted.begin() + extent / 2, sorted.end());
    const double usual = std::max(sorted[static_cast<size_t>(extent / 2)], underflow);
    if (largest_error <= most_uneven * usual) continue;
    most_uneven = largest_error / usual;
    scale.part = std::move(part);
  }
}

} // namespace

output_scale scale_of(const tensor_spec& spec, std::span<const std::byte> reference_output, std::span<const double> oracle) {
  output_scale scale;
  const int64_t n = spec.elements();
  const double underflow = underflow_of(spec.dtype);
  with_type(spec.dtype, [&](auto kind) {
    using T = decltype(kind);
    const auto value = [&](int64_t i) { return static_cast<double>(load<T>(reference_output.data(), i)); };
    const auto truth = [&](int64_t i) { return oracle.empty() ? value(i) : oracle[static_cast<size_t>(i)]; };
    moments all;
    for (const auto& part : in_pieces(n, [&](int64_t first, int64_t last) {
           moments m;
           for (int64_t i = first; i < last; ++i) m.add(value(i), truth(i), underflow);
           return m;
         }))
      all.add(part);
    scale.finite = all.finite;
    scale.reference_error = all.error;
    scale.largest = all.largest;
    if (all.count == 0) return;
    if (!oracle.empty() && is_rounding_only(all)) scale.reference_error = std::max(all.error, coarser * all.largest);
    scale.mean = all.sum / static_cast<double>(all.count);
    double deviation = 0;
    for (const double part : in_pieces(n, [&](int64_t first, int64_t last) {
           double sum = 0;
           for (int64_t i = first; i < last; ++i)
             if (const double o = truth(i); std::isfinite(o)) sum += std::fabs(o - scale.mean);
           return sum;
         }))
      deviation += part;
    scale.mad = deviation / static_cast<double>(all.count);
    if (!few_make_the_deviation(scale, all.elements)) return;
    if (!oracle.empty() && all.relative <= well_conditioned * epsilon_of(spec.dtype))
      scale.relative_error = std::max(all.relative, epsilon_of(spec.dtype));
    else
      find_uneven_errors(spec, all.error, underflow, value, truth, scale);
  });
  return scale;
}

comparison compare_output(const tensor_spec& spec, std::span<const std::byte> reference_output,
                          std::span<const double> oracle, const output_scale& scale, const std::byte* got, double tolerance) {
  if (!is_floating(spec.dtype)) return compare_exact(spec, reference_output, got);
  const judge_of_elements judge(spec.dtype, reference_output, oracle, scale, got, tolerance);
  comparison result;
  for (const auto& part : in_pieces(spec.elements(), [&](int64_t first, int64_t last) {
         comparison p;
         for (int64_t at = first; at < last; at += judge_of_elements::block) judge.add(at, std::min(last, at + judge_of_elements::block), p);
         return p;
       })) {
    result.wrong += part.wrong;
    for (auto i : part.where)
      if (result.where.size() < most_listed_elements) result.where.push_back(i);
    if (part.worst > result.worst) {
      result.worst = part.worst;
      result.worst_index = part.worst_index;
    }
  }
  return result;
}

wrong_elements find_wrong(const tensor_spec& spec, std::span<const std::byte> reference_output, std::span<const double> oracle, const output_scale& scale, const std::byte* got,
                          double tolerance, size_t most) {
  wrong_elements found;
  const auto add = [&](int64_t i, double allowed) {
    found.positions.push_back(i);
    found.got.push_back(element_value(spec.dtype, got, i));
    found.allowed.push_back(allowed);
  };
  const bool floating = is_floating(spec.dtype);
  const auto width = size_of(spec.dtype);
  const double underflow = underflow_of(spec.dtype);
  for (int64_t first = 0; first < spec.elements() && found.positions.size() <= most; first += judge_of_elements::block) {
    const int64_t last = std::min(spec.elements(), first + judge_of_elements::block);
    if (!floating) {
      for (int64_t i = first; i < last; ++i)
        if (const auto at = static_cast<size_t>(i) * width; std::memcmp(reference_output.data() + at, got + at, width) != 0) add(i, 0);
      continue;
    }
    each_difference(spec.dtype, reference_output, oracle, got, first, last, [&](int64_t i, double d, double target) {
      const double allowed = std::max(tolerance * (std::fabs(target) + scale.mad), floor_at(i, target, underflow, scale));
      if (!(d <= allowed)) add(i, allowed);
    });
  }
  return found.positions.size() <= most ? found : wrong_elements{};
}

comparison compare_output(const tensor_spec& spec, std::span<const std::byte> reference_output,
                          std::span<const double> oracle, const std::byte* got, double tolerance) {
  if (!is_floating(spec.dtype)) return compare_exact(spec, reference_output, got);
  return compare_output(spec, reference_output, oracle, scale_of(spec, reference_output, oracle), got, tolerance);
}

double needed_tolerance(const tensor_spec& spec, std::span<const std::byte> reference_output, std::span<const double> oracle,
                        const output_scale& scale, const std::byte* got, int64_t first, int64_t count) {
  constexpr double never = std::numeric_limits<double>::infinity();
  tensor_spec part = spec;
  part.shape = {count};
  const auto from = static_cast<size_t>(first), size = static_cast<size_t>(count), width = size_of(spec.dtype);
  const auto expected_part = reference_output.subspan(from * width, size * width);
  if (!is_floating(spec.dtype)) return compare_exact(part, expected_part, got).wrong == 0 ? 0 : never;
  const double underflow = underflow_of(spec.dtype);
  double needed = 0;
  each_difference(spec.dtype, expected_part, oracle.empty() ? oracle : oracle.subspan(from, size), got, 0, count, [&](int64_t i, double d, double target) {
    if (d <= floor_at(first + i, target, underflow, scale)) return;
    const double magnitude = std::fabs(target) + scale.mad;
    needed = std::max(needed, std::isfinite(d) && magnitude > 0 ? d / magnitude : never);
  });
  return needed;
}

double needed_tolerance(const tensor_spec& spec, std::span<const std::byte> reference_output, std::span<const double> oracle,
                        const output_scale& scale, const std::byte* got) {
  return needed_tolerance(spec, reference_output, oracle, scale, got, 0, spec.elements());
}

} // namespace pragma
