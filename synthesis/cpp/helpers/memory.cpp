#include "synthesis/cpp/helpers/helpers.hpp"

namespace pragma::synthesis {

const std::vector<helper>& memory_helpers() {
  static const std::vector<helper> list{
      {"vector_types", {}, R"(template <class T> struct lanes_of {
  typedef T type __attribute__((vector_size(W * sizeof(T))));
  typedef T memory __attribute__((vector_size(W * sizeof(T)), aligned(alignof(T)), may_alias));
};
using vf = lanes_of<float>::type;
using vd = lanes_of<double>::type;
using vl = lanes_of<int64_t>::type;
using vi = lanes_of<int32_t>::type; // also small integers; a truth value is 0 or -1
template <class V> using lane = std::remove_reference_t<decltype(std::declval<V&>()[0])>;
)"},
      {"some_lanes", {}, R"(template <int N> struct some_lanes { static constexpr int count = N; }; // the first N lanes are in range
using all_lanes = some_lanes<W>;
template <class T> constexpr T least(T a, T b) { return b < a ? b : a; }
constexpr float infinity = __builtin_inff(), not_a_number = __builtin_nanf("");
)"},
      {"vectors", {}, "template <int N> using vectors = std::integral_constant<int, N>;\n"},
      {"splat", {"vector_types"}, R"(template <class T> inline auto splat(T x) {
  if constexpr (std::is_same_v<T, bool>) return vi{} - int32_t(x);
  else if constexpr (std::is_integral_v<T> && sizeof(T) < 4) return vi{} + int32_t(x);
  else return typename lanes_of<T>::type{} + x;
}
)"},
      {"splat_memory", {"splat"}, "template <class T> inline auto splat_memory(const T* p) { return splat(*p); }\n"},
      {"to", {}, "template <class V, class X> inline V to(X x) { return __builtin_convertvector(x, V); }\n"},
      {"some_elements", {}, R"(// N of Lanes elements, zeros behind them: the largest power of two is read at once, then what is left.
template <int Lanes, int N, class T> inline auto some_elements(const T* p) {
  typedef T vector __attribute__((vector_size(Lanes * sizeof(T))));
  typedef T memory __attribute__((vector_size(Lanes * sizeof(T)), aligned(alignof(T)), may_alias));
  if constexpr (N == Lanes) {
    return vector(*reinterpret_cast<const memory*>(p));
  } else if constexpr (N == 0) {
    return vector{};
  } else if constexpr (Lanes == 2) {
    return vector{p[0]};
  } else {
    constexpr int half = Lanes / 2;
    const auto low = some_elements<half, (N < half ? N : half)>(p);
    const auto high = some_elements<half, (N < half ? 0 : N - half)>(p + half);
    return [&]<int... K>(std::integer_sequence<int, K...>) { return vector(__builtin_shufflevector(low, high, K...)); }(std::make_integer_sequence<int, Lanes>{});
  }
}
)"},
      {"widened_bytes", {}, R"(// GCC takes vectors of a quarter of the width apart, lane by lane.
template <class V> inline vi widened_bytes(V x) {
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX2__)
  typedef char bytes __attribute__((vector_size(16)));
  constexpr bool has_sign = std::is_signed_v<lane<V>>;
  vi y{};
  bytes all{};
#if defined(__AVX512F__)
  typedef int sixteen __attribute__((vector_size(64)));
  if constexpr (W == 16) {
    std::memcpy(&all, &x, W);
    const sixteen spread = has_sign ? __builtin_ia32_pmovsxbd512_mask(all, sixteen{}, 0xffff) : __builtin_ia32_pmovzxbd512_mask(all, sixteen{}, 0xffff);
    std::memcpy(&y, &spread, sizeof y);
    return y;
  }
#endif
  if constexpr (W == 8) {
    std::memcpy(&all, &x, W);
    const auto spread = has_sign ? __builtin_ia32_pmovsxbd256(all) : __builtin_ia32_pmovzxbd256(all);
    std::memcpy(&y, &spread, sizeof y);
    return y;
  }
#endif
  return __builtin_convertvector(__builtin_convertvector(x, typename lanes_of<std::conditional_t<std::is_signed_v<lane<V>>, int16_t, uint16_t>>::type), vi);
}
)"},
      {"narrowed_bytes", {}, R"(template <class B> inline B narrowed_bytes(vi x) {
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__)
  if constexpr (W == 16) {
    typedef char bytes __attribute__((vector_size(16)));
    typedef int sixteen __attribute__((vector_size(64)));
    sixteen spread{};
    std::memcpy(&spread, &x, sizeof x);
    const auto narrow = __builtin_ia32_pmovdb512_mask(spread, bytes{}, 0xffff);
    B y;
    std::memcpy(&y, &narrow, sizeof y);
    return y;
  }
#endif
  return __builtin_convertvector(x, B);
}
)"},
      {"load", {"some_lanes", "some_elements", "widened_bytes"}, R"(// Smaller types than int32 widen to it; a bool becomes 0 or -1.
template <class T, int N> inline auto load(const T* p, some_lanes<N>) {
  if constexpr (std::is_same_v<T, bool>) {
    typename lanes_of<uint8_t>::type bytes{};
    std::memcpy(&bytes, p, N);
    return vi(-widened_bytes(bytes));
  } else {
    typename lanes_of<T>::type x{};
    if constexpr (N == W) x = *reinterpret_cast<const typename lanes_of<T>::memory*>(p);
    else if constexpr (sizeof(T) == 4) x = some_elements<W, N>(p);
    else std::memcpy(&x, p, N * sizeof(T));
    if constexpr (sizeof(T) == 1) return widened_bytes(x);
    else if constexpr (sizeof(T) < 4) return __builtin_convertvector(x, vi);
    else return x;
  }
}
)"},
      {"store", {"some_lanes", "narrowed_bytes"}, R"(template <class T, class V, int N> inline void store(T* p, V v, some_lanes<N>) {
  if constexpr (std::is_same_v<T, bool>) {
    const auto bytes = narrowed_bytes<lanes_of<uint8_t>::type>(v & 1);
    std::memcpy(p, &bytes, N);
  } else {
    typename lanes_of<T>::type x;
    if constexpr (sizeof(T) == 1) x = narrowed_bytes<typename lanes_of<T>::type>(v);
    else if constexpr (sizeof(T) < 4) x = __builtin_convertvector(v, typename lanes_of<T>::type);
    else x = v;
    if constexpr (N == W) *reinterpret_cast<typename lanes_of<T>::memory*>(p) = x;
    else std::memcpy(p, &x, N * sizeof(T));
  }
}
)"},
      {"store_first", {}, R"(template <class T, class V> inline void store_first(T* p, V v) {
  if constexpr (std::is_same_v<T, bool>) *p = v[0] != 0;
  else *p = T(v[0]);
}
)"},
      {"stream", {"store", "some_lanes"}, R"(// Past the caches: the line is not read before it is written. p is aligned to a whole vector.
template <class V> inline void stream(float* p, V v, all_lanes) {
#if defined(__AVX512F__)
  if constexpr (W == 16) return _mm512_stream_ps(p, reinterpret_cast<__m512&>(v));
#endif
#if defined(__AVX__)
  if constexpr (W == 8) return _mm256_stream_ps(p, reinterpret_cast<__m256&>(v));
#endif
#if defined(__SSE2__)
  if constexpr (W == 4) return _mm_stream_ps(p, reinterpret_cast<__m128&>(v));
#endif
  *reinterpret_cast<V*>(p) = v;
}
template <class V, int N> inline void stream(float* p, V v, some_lanes<N> lanes) { store(p, v, lanes); }
)"},
      {"stream_fence", {}, R"(inline void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}
)"},
      {"reversed", {}, R"(template <class V, int... K> inline V reversed(V x, std::integer_sequence<int, K...>) {
  return __builtin_shufflevector(x, x, (W - 1 - K)...);
}
)"},
      {"scratch_memory", {}, R"(// A kernel has no way to report an error: it says what it lacked, and ends before it writes through a null pointer.
inline void* scratch_memory(size_t bytes) {
  if (void* p = std::aligned_alloc(64, bytes)) return p;
  std::fprintf(stderr, "pragma_kernel: no memory for %zu bytes between regions\n", bytes);
  std::abort();
}
)"},
      {"load_strided", {"splat", "reversed", "some_lanes"}, R"(// Lane k comes from p[S * k]. Small steps read whole vectors and pick; none reads past the last lane's element.
template <int S> constexpr int strided_start(int m) { return m * W < (W - 1) * S + 1 - W ? m * W : (W - 1) * S + 1 - W; }
template <int S> constexpr int strided_source(int k) { return k * S >= strided_start<S>(S - 1) && k * S / W >= S - 1 ? S - 1 : k * S / W; }
template <int S, int M, class V, int... K> inline V strided_merge(V got, V next, std::integer_sequence<int, K...>) {
  return __builtin_shufflevector(got, next, (strided_source<S>(K) == M ? W + K * S - strided_start<S>(M) : K)...);
}
template <int S, class V, class M, int... K> inline V strided_pick(const M* p, std::integer_sequence<int, K...> all) {
  const auto vector = [p](int m) { return V(*reinterpret_cast<const typename lanes_of<M>::memory*>(p + strided_start<S>(m))); };
  V r = vector(0);
  r = __builtin_shufflevector(r, r, (strided_source<S>(K) == 0 ? K * S : 0)...);
  r = strided_merge<S, 1>(r, vector(1), all);
  if constexpr (S > 2) r = strided_merge<S, 2>(r, vector(2), all);
  if constexpr (S > 3) r = strided_merge<S, 3>(r, vector(3), all);
  return r;
}
template <int S, class T, int N> inline auto load_strided(const T* p, some_lanes<N>) {
  using V = decltype(splat(T{}));
  if constexpr (N == W && S == -1 && sizeof(T) >= 4) {
    const V x = *reinterpret_cast<const typename lanes_of<T>::memory*>(p - (W - 1));
    return reversed(x, std::make_integer_sequence<int, W>{});
  } else if constexpr (N == W && S >= 2 && S <= 4 && sizeof(T) >= 4) {
    return strided_pick<S, V>(p, std::make_integer_sequence<int, W>{});
  } else {
    V x{};
    for (int k = 0; k < N; ++k) x[k] = std::is_same_v<T, bool> ? -lane<V>(p[int64_t{S} * k]) : lane<V>(p[int64_t{S} * k]);
    return x;
  }
}
)"},
      {"store_strided", {"store", "reversed", "store_first", "splat"}, R"(template <int S, class T, class V, int N> inline void store_strided(T* p, V v, some_lanes<N> lanes) {
  if constexpr (N == W && S == -1) {
    store(p - (W - 1), reversed(v, std::make_integer_sequence<int, W>{}), lanes);
  } else {
    for (int k = 0; k < N; ++k) store_first(p + int64_t{S} * k, splat(v[k]));
  }
}
)"},
      {"gather", {"splat", "some_lanes"}, R"(// Lane k comes from p[index[k] + S * k].
template <int S, class T, int N> inline auto gather(const T* p, vl index, some_lanes<N>) {
  using V = decltype(splat(T{}));
  V x{};
  for (int k = 0; k < N; ++k)
    x[k] = std::is_same_v<T, bool> ? -lane<V>(p[index[k] + int64_t{S} * k]) : lane<V>(p[index[k] + int64_t{S} * k]);
  return x;
}
)"},
      {"join_sum", {}, "constexpr auto join_sum = [](auto a, auto b) { return a + b; };\n"},
      {"join_prod", {}, "constexpr auto join_prod = [](auto a, auto b) { return a * b; };\n"},
      {"join_max", {}, "constexpr auto join_max = [](auto a, auto b) { return (b > a) | (b != b) ? b : a; }; // a NaN wins and stays\n"},
      {"join_min", {}, "constexpr auto join_min = [](auto a, auto b) { return (b < a) | (b != b) ? b : a; };\n"},
      {"scatter", {"vector_types", "some_lanes"}, R"(// Lane after lane is joined with p[step * place[k] + S * k]; what has no place in [0, limit) is left out.
template <int64_t S, class T, class V, int N, class Join> inline void scatter(T* p, vl place, int64_t step, int64_t limit, V v, some_lanes<N>, Join join) {
  for (int k = 0; k < N; ++k)
    if (place[k] >= 0 && place[k] < limit) {
      T& to = p[step * place[k] + S * k];
      to = T(join(to, T(v[k])));
    }
}
)"},
      {"scatter_row", {"load", "store"}, R"(template <class T, class V, int N, class Join> inline void scatter_row(T* p, vl place, int64_t step, int64_t limit, V v, some_lanes<N> lanes, Join join) {
  const int64_t at = place[0]; // of all lanes
  if (at < 0 || at >= limit) return;
  store(p + step * at, V(join(load(p + step * at, lanes), v)), lanes);
}
)"},
      {"ramp", {}, R"(template <class V = vl> inline V ramp(int64_t first, int64_t step) {
  V x{};
  for (int k = 0; k < W; ++k) x[k] = lane<V>(first + step * k);
  return x;
}
)"},
      {"keep", {"some_lanes"}, R"(// New values in the lanes that are in range, old ones in the others.
template <int N, class V> inline V keep(some_lanes<N>, V fresh, V old) {
  if constexpr (N < W)
    return [&]<int... K>(std::integer_sequence<int, K...>) { return V(__builtin_shufflevector(fresh, old, (K < N ? K : W + K)...)); }(std::make_integer_sequence<int, W>{});
  else return fresh;
}
)"},
      {"mask", {}, R"(template <class M> inline vi mask(M m) {
  if constexpr (sizeof(M) == sizeof(vi)) return vi(m);
  else return __builtin_convertvector(m, vi);
}
)"},
      {"truth", {"mask"}, "template <class V> inline vi truth(V x) { return mask(x != 0); }\n"},
      {"count_of", {}, "template <class V> inline V count_of(vi m) { return __builtin_convertvector(m & 1, V); }\n"},
      {"wrapped", {}, R"(template <class T> inline vi wrapped(vi x) {
  return __builtin_convertvector(__builtin_convertvector(x, typename lanes_of<T>::type), vi);
}
)"},
      {"select", {}, R"(template <class V> inline V select(vi m, V a, V b) {
  if constexpr (sizeof(V) == sizeof(vi)) return V(m ? a : b);
  else return V(__builtin_convertvector(m, vl) ? a : b);
}
)"},
      {"first_inside", {}, R"(// Window positions k with 0 <= start + dilation * k < limit.
inline int64_t first_inside(int64_t start, int64_t dilation) { return start >= 0 ? 0 : (-start + dilation - 1) / dilation; }
inline int64_t last_inside(int64_t start, int64_t dilation, int64_t limit, int64_t kernel) {
  return limit <= start ? 0 : least(kernel, (limit - 1 - start) / dilation + 1);
}
)"},
  };
  return list;
}

} // namespace pragma::synthesis
