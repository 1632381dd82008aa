#include "synthesis/cpp/helpers/helpers.hpp"

namespace pragma::synthesis {

namespace {

/// GCC 12 makes a comparison and a masked move of the plain text where one side is a constant of 512 bits.
helper or_second(const std::string& name, const std::string& sign) {
  const auto builtin = "__builtin_ia32_" + name + "ps512_mask";
  return {"v_" + name + "_or_second", {}, "template <class V> inline V v_" + name + "_or_second(V a, V b) { // b where either is NaN\n"
          "#if defined(__AVX512F__) && __has_builtin(" + builtin + ")\n"
          "  if constexpr (sizeof(V) == 64 && std::is_same_v<lane<V>, float>) return " + builtin + "(a, b, b, uint16_t(-1), 4);\n"
          "#endif\n  return a " + sign + " b ? a : b;\n}\n"};
}

} // namespace

const std::vector<helper>& reduction_helpers() {
  static const std::vector<helper> list{
      or_second("max", ">"),
      or_second("min", "<"),
      {"wide", {}, R"(template <class V> using wide = std::conditional_t<std::is_floating_point_v<lane<V>>, double, int64_t>;
)"},
      {"fold", {}, R"(// One value of all lanes: the upper half joins the lower one, again and again; within 16 bytes all lanes stay, since half of those is no register.
template <int Half, class V, class Join, int... K> inline lane<V> folded_within(V x, Join join, std::integer_sequence<int, K...> all) {
  const V y = join(x, V(__builtin_shufflevector(x, x, (K ^ Half)...)));
  if constexpr (Half == 1) return y[0];
  else return folded_within<Half / 2>(y, join, all);
}
template <class V, class Join, int... K> inline auto folded(V x, Join join, std::integer_sequence<int, K...>) {
  constexpr int half = sizeof...(K);
  if constexpr (sizeof x <= 16) {
    return folded_within<half>(x, join, std::make_integer_sequence<int, 2 * half>{});
  } else {
    const auto y = join(__builtin_shufflevector(x, x, K...), __builtin_shufflevector(x, x, (K + half)...));
    return folded(y, join, std::make_integer_sequence<int, half / 2>{});
  }
}
template <class V, class Join> inline lane<V> fold(V x, Join join) { return folded(x, join, std::make_integer_sequence<int, W / 2>{}); }
)"},
      {"total", {"wide", "fold"}, R"(// Pairs of accumulators in their own type, then the lanes in double.
template <class V, int U> inline wide<V> total(const V (&part)[U]) {
  V sum = part[0];
  for (int u = 1; u < U; ++u) sum += part[u];
  return fold(__builtin_convertvector(sum, typename lanes_of<wide<V>>::type), [](auto a, auto b) { return a + b; });
}
)"},
      {"product", {"wide"}, R"(template <class V, int U> inline wide<V> product(const V (&part)[U]) {
  wide<V> r = 1;
  for (int u = 0; u < U; ++u)
    for (int k = 0; k < W; ++k) r *= wide<V>(part[u][k]);
  return r;
}
)"},
      {"take_higher", {"keep"}, R"(// A NaN wins and stays, as in Torch.
template <class V, int N> inline void take_higher(V& best, V x, some_lanes<N> lanes) {
  best = keep(lanes, V((x > best) | (x != x) ? x : best), best);
}
)"},
      {"take_lower", {"keep"}, R"(template <class V, int N> inline void take_lower(V& best, V x, some_lanes<N> lanes) {
  best = keep(lanes, V((x < best) | (x != x) ? x : best), best);
}
)"},
      {"position", {}, R"(template <class V, class I> struct position { V value; I at; }; // the best so far and where it was
)"},
      {"take_higher_place", {"position", "keep", "ramp"}, R"(template <class V, class I, int N> inline void take_higher(position<V, I>& best, V x, int64_t first, int64_t step, some_lanes<N> lanes) {
  const auto better = ~(x <= best.value) & (best.value == best.value); // greater, or the first NaN
  best.value = keep(lanes, V(better ? x : best.value), best.value);
  best.at = keep(lanes, I(better ? ramp<I>(first, step) : best.at), best.at);
}
)"},
      {"take_lower_place", {"position", "keep", "ramp"}, R"(template <class V, class I, int N> inline void take_lower(position<V, I>& best, V x, int64_t first, int64_t step, some_lanes<N> lanes) {
  const auto better = ~(x >= best.value) & (best.value == best.value);
  best.value = keep(lanes, V(better ? x : best.value), best.value);
  best.at = keep(lanes, I(better ? ramp<I>(first, step) : best.at), best.at);
}
)"},
      {"take_peak", {"keep", "v_max_or_second"}, R"(// Numbers only: of a NaN nothing is said.
template <class V, int N> inline void take_peak(V& best, V x, some_lanes<N> lanes) { best = keep(lanes, v_max_or_second(x, best), best); }
)"},
      {"any_higher", {"fold"}, R"(template <class V> inline bool any_higher(V a, V b) { // in some lane
#if defined(__AVX512F__) && __has_builtin(__builtin_ia32_cmpps512_mask)
  if constexpr (W == 16) return __builtin_ia32_cmpps512_mask(a, b, 30, uint16_t(-1), 4) != 0; // 30: greater
#endif
#if defined(__AVX__) && __has_builtin(__builtin_ia32_movmskps256)
  if constexpr (W == 8) return __builtin_ia32_movmskps256(V(a > b)) != 0;
#endif
  return fold(vi(a > b), [](auto x, auto y) { return x | y; }) != 0;
}
)"},
      {"peak", {"fold"}, R"(template <class V, int U> inline lane<V> peak(const V (&part)[U]) {
  V best = part[0];
  for (int u = 1; u < U; ++u) best = part[u] > best ? part[u] : best;
  return fold(best, [](auto a, auto b) { return a > b ? a : b; });
}
)"},
      {"highest", {"take_higher", "fold"}, R"(template <class V, int U> inline lane<V> highest(const V (&part)[U]) {
  V best = part[0];
  for (int u = 1; u < U; ++u) take_higher(best, part[u], all_lanes{});
  return fold(best, [](auto a, auto b) { return (a > b) | (a != a) ? a : b; });
}
)"},
      {"lowest", {"take_lower", "fold"}, R"(template <class V, int U> inline lane<V> lowest(const V (&part)[U]) {
  V best = part[0];
  for (int u = 1; u < U; ++u) take_lower(best, part[u], all_lanes{});
  return fold(best, [](auto a, auto b) { return (a < b) | (a != a) ? a : b; });
}
)"},
      {"best_place", {}, R"(// Of equal values the one that comes first counts.
template <class P, int U, class Better> inline int64_t best_place(const P (&part)[U], Better better) {
  auto value = part[0].value[0];
  int64_t at = part[0].at[0];
  for (int u = 0; u < U; ++u)
    for (int k = 0; k < W; ++k) {
      const auto v = part[u].value[k];
      const int64_t a = part[u].at[k];
      const bool nan = v != v, had_nan = value != value;
      if ((nan && (!had_nan || a < at)) || (!nan && !had_nan && (better(v, value) || (v == value && a < at)))) {
        value = v;
        at = a;
      }
    }
  return at;
}
)"},
      {"highest_place", {"best_place"}, R"(template <class P, int U> inline int64_t highest_place(const P (&part)[U]) {
  return best_place(part, [](auto a, auto b) { return a > b; });
}
)"},
      {"lowest_place", {"best_place"}, R"(template <class P, int U> inline int64_t lowest_place(const P (&part)[U]) {
  return best_place(part, [](auto a, auto b) { return a < b; });
}
)"},
      {"moments", {}, R"(// Mean and squared distances of all blocks so far (Chan, Golub and LeVeque: updating formulae for sample variances).
struct moments {
  double count = 0, mean = 0, squares = 0;
  void add(double n, double block_sum, double block_squares, double center) {
    const double block_mean = block_sum / n, off = block_mean - center, delta = block_mean - mean;
    const double all = count + n, own = block_squares - n * off * off;
    squares += (own < 0 ? 0 : own) + delta * delta * count * n / all; // of equal values rounding alone is left, and a variance has a root
    mean += delta * n / all;
    count = all;
  }
  double sum() const { return mean * count; }
};
)"},
      {"prefixes", {}, R"(template <int S, class V, int... K> inline V shifted(V x, V fill, std::integer_sequence<int, K...>) {
  return __builtin_shufflevector(x, fill, (K < S ? W + K : K - S)...); // lane k gets lane k - S
}
template <class V, class Combine> inline V prefixes(V x, V identity, Combine combine) {
  constexpr auto all = std::make_integer_sequence<int, W>{};
  x = combine(x, shifted<1>(x, identity, all));
  if constexpr (W > 2) x = combine(x, shifted<2>(x, identity, all));
  if constexpr (W > 4) x = combine(x, shifted<4>(x, identity, all));
  if constexpr (W > 8) x = combine(x, shifted<8>(x, identity, all));
  return x;
}
)"},
      {"scan_sum", {"prefixes"}, R"(// The carry grows by the whole vector's sum, which does not wait for the carry: one addition per step is the chain.
template <class V, class C> inline V scan_sum(V x, C& carry) {
  const V inside = prefixes(x, V{}, [](V a, V b) { return V(a + b); });
  const V r = inside + lane<V>(carry);
  carry += C(inside[W - 1]);
  return r;
}
)"},
      {"scan_prod", {"prefixes"}, R"(// A product so far may be beyond float32, and what it is multiplied with bring it back: the carry stays what it is until then.
template <class V, class C> inline V scan_prod(V x, C& carry) {
  using carried = typename lanes_of<C>::type;
  const V inside = prefixes(x, V(V{} + 1), [](V a, V b) { return V(a * b); });
  const V r = __builtin_convertvector(__builtin_convertvector(inside, carried) * carry, V);
  carry *= C(inside[W - 1]);
  return r;
}
)"},
      {"scan_decayed_sum", {"vector_types"}, R"(// Lane after lane: products of decays may leave the range that each step of the sum stays in.
template <class V, class C> inline V scan_decayed_sum(V given, V decay, C& carry) {
  V r{};
  for (int k = 0; k < W; ++k) {
    carry = C(decay[k]) * carry + C(given[k]);
    r[k] = lane<V>(carry);
  }
  return r;
}
)"},
      {"guarded", {"splat", "load", "load_strided"}, R"(struct window_place { int64_t step, shift, limit; }; // output j reads position step * j + shift of [0, limit)
constexpr std::true_type at_border{};
constexpr std::false_type inside{};
template <int S, class T, class Lane, int N, bool Border>
inline auto guarded(const T* p, window_place place, int64_t first, Lane otherwise, some_lanes<N> lanes, std::bool_constant<Border>) {
  if constexpr (Border) {
    auto x = splat(T(otherwise));
    for (int k = 0; k < N; ++k) {
      const int64_t at = place.step * (first + k) + place.shift;
      if (at >= 0 && at < place.limit) x[k] = p[int64_t{S} * k];
    }
    return x;
  } else if constexpr (S == 1) {
    return load(p, lanes);
  } else {
    return load_strided<S>(p, lanes);
  }
}
)"},
  };
  return list;
}

} // namespace pragma::synthesis
