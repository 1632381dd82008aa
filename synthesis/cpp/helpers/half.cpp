// Half types of emitted sources: formats of memory. A load widens to float32, a store rounds to the nearest, ties to even; nothing is
// computed in them. Vectors of 16 bits and plain integer arithmetic, and what a processor has for it where the compiler may use it.
#include "synthesis/cpp/helpers/helpers.hpp"

namespace pragma::synthesis {

const std::vector<helper>& half_helpers() {
  static const std::vector<helper> list{
      {"half_vectors", {"vector_types", "some_lanes", "splat"}, R"(using vu = lanes_of<uint32_t>::type;
using vh = lanes_of<uint16_t>::type; // 16 bits of each float32 lane
template <int N> inline vh load_halves(const void* p, some_lanes<N>) {
  vh bits{};
  std::memcpy(&bits, p, N * sizeof(uint16_t));
  return bits;
}
template <class To, class From> inline To same_bits(const From& x) {
  To y{};
  std::memcpy(&y, &x, sizeof x < sizeof y ? sizeof x : sizeof y);
  return y;
}
template <int N> inline void store_halves(void* p, vh bits, some_lanes<N>) { std::memcpy(p, &bits, N * sizeof(uint16_t)); }
)"},
      {"bfloat16", {"half_vectors", "load", "store"}, R"(// The upper half of a float32.
inline vf widened_bfloat16(vh bits) { return (vf)(__builtin_convertvector(bits, vu) << 16); }
inline vh rounded_bfloat16(vf x) {
#if defined(__AVX512BF16__) && defined(__AVX512VL__)
  if constexpr (W == 16) return same_bits<vh>(_mm512_cvtneps_pbh(same_bits<__m512>(x)));
#endif
  const vu bits = (vu)x, nearest = bits + 0x7fffu + ((bits >> 16) & 1u), quiet = bits | 0x400000u;
  return __builtin_convertvector((vu)(x == x ? (vi)nearest : (vi)quiet) >> 16, vh);
}
struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  explicit bfloat16(float x) : bits(rounded_bfloat16(vf{} + x)[0]) {}
  operator float() const {
    const uint32_t upper = uint32_t{bits} << 16;
    float x;
    std::memcpy(&x, &upper, sizeof x);
    return x;
  }
};
inline vf splat(bfloat16 x) { return vf{} + float(x); }
template <int N> inline vf load(const bfloat16* p, some_lanes<N> lanes) { return widened_bfloat16(load_halves(p, lanes)); }
template <int N> inline void store(bfloat16* p, vf x, some_lanes<N> lanes) { store_halves(p, rounded_bfloat16(x), lanes); }
)"},
      {"float16", {"half_vectors", "load", "store"}, R"(// IEEE 754 binary16.
inline vf widened_float16(vh bits) {
#if defined(__AVX512F__)
  if constexpr (W == 16) return same_bits<vf>(_mm512_cvtph_ps(same_bits<__m256i>(bits)));
#endif
#if defined(__F16C__)
  if constexpr (W == 8) return same_bits<vf>(_mm256_cvtph_ps(same_bits<__m128i>(bits)));
#endif
  const vu all = __builtin_convertvector(bits, vu), magnitude = (all & 0x7fffu) << 13;
  const vf number = (vf)magnitude * 0x1p112f; // moves the exponent, of numbers below the normal ones as well
  const vu value = (vu)(magnitude >= 0x0f800000u ? (vi)(magnitude | 0x7f800000u) : (vi)number);
  return (vf)(value | (all & 0x8000u) << 16);
}
inline vh rounded_float16(vf x) {
#if defined(__AVX512F__)
  if constexpr (W == 16) return same_bits<vh>(_mm512_cvtps_ph(same_bits<__m512>(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
#if defined(__F16C__)
  if constexpr (W == 8) return same_bits<vh>(_mm256_cvtps_ph(same_bits<__m256>(x), _MM_FROUND_TO_NEAREST_INT));
#endif
  const vu bits = (vu)x, magnitude = bits & 0x7fffffffu;
  const vu normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const vu small = (vu)((vf)magnitude + 0.5f) - 0x3f000000u; // a float32 sum with 1/2 rounds where float16 has its last place
  const vu large = (vu)(magnitude > 0x7f800000u ? (vi)(vu{} + 0x7e00u) : (vi)(vu{} + 0x7c00u));
  vu value = (vu)(magnitude < 0x38800000u ? (vi)small : (vi)normal);
  value = (vu)(magnitude >= 0x47800000u ? (vi)large : (vi)value);
  return __builtin_convertvector(value | ((bits >> 16) & 0x8000u), vh);
}
struct float16 {
  uint16_t bits;
  float16() = default;
  explicit float16(float x) : bits(rounded_float16(vf{} + x)[0]) {}
  operator float() const { return widened_float16(vh{} + bits)[0]; }
};
inline vf splat(float16 x) { return vf{} + float(x); }
template <int N> inline vf load(const float16* p, some_lanes<N> lanes) { return widened_float16(load_halves(p, lanes)); }
template <int N> inline void store(float16* p, vf x, some_lanes<N> lanes) { store_halves(p, rounded_float16(x), lanes); }
)"},
      {"v_round_bfloat16", {"bfloat16"}, "inline vf v_round_bfloat16(vf x) { return widened_bfloat16(rounded_bfloat16(x)); }\n"},
      {"v_round_float16", {"float16"}, "inline vf v_round_float16(vf x) { return widened_float16(rounded_float16(x)); }\n"},
  };
  return list;
}

} // namespace pragma::synthesis
