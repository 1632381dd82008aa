#include "profilers/roofline_kernels.hpp"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

// Vectors wider than the baseline never cross a function boundary here.
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wignored-attributes"

#define ROOFLINE_EIGHT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
// 12 chains fill 16 registers with room for the operands, 24 fill 32.
#define ROOFLINE_TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define ROOFLINE_TWELVE_MORE(X) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)

namespace pragma::roofline {

#if defined(__x86_64__)

#define ROOFLINE_NAMESPACE avx512
#define ROOFLINE_TARGET __attribute__((target("avx512f")))
#define ROOFLINE_BYTES 64
#define ROOFLINE_STREAM(to, value) _mm512_stream_ps(to, value)
#define ROOFLINE_FENCE() _mm_sfence()
#define ROOFLINE_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define ROOFLINE_CHAINS(X) ROOFLINE_TWELVE(X) ROOFLINE_TWELVE_MORE(X)
#define ROOFLINE_CONSTRAINT "v"
#include "profilers/roofline_loops.inc"

#define ROOFLINE_NAMESPACE avx2
#define ROOFLINE_TARGET __attribute__((target("avx2,fma")))
#define ROOFLINE_BYTES 32
#define ROOFLINE_STREAM(to, value) _mm256_stream_ps(to, value)
#define ROOFLINE_FENCE() _mm_sfence()
#define ROOFLINE_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define ROOFLINE_CHAINS(X) ROOFLINE_TWELVE(X)
#define ROOFLINE_CONSTRAINT "x"
#include "profilers/roofline_loops.inc"

#define ROOFLINE_NAMESPACE baseline
#define ROOFLINE_TARGET
#define ROOFLINE_BYTES 16
#define ROOFLINE_STREAM(to, value) _mm_stream_ps(to, value)
#define ROOFLINE_FENCE() _mm_sfence()
#define ROOFLINE_FMA(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
#define ROOFLINE_CHAINS(X) ROOFLINE_TWELVE(X)
#define ROOFLINE_CONSTRAINT "x"
#include "profilers/roofline_loops.inc"

bool has_tiles() {
#if defined(__linux__)
  static const bool there = [] {
    constexpr unsigned bfloat16 = 1u << 22, tiles = 1u << 24, int8 = 1u << 25; // of leaf 7
    constexpr long request_permission = 0x1023, tile_data = 18;               // arch_prctl(2): ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool known = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & (bfloat16 | tiles | int8)) == (bfloat16 | tiles | int8);
    return known && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  }();
  return there;
#else
  return false;
#endif
}

double multiply_tiles(int64_t repeats) {
  constexpr int rows = 16, pairs = 16, columns = 16, products = 4;
  struct {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  } shapes;
  for (int t = 0; t < 8; ++t) shapes.row_bytes[t] = 64, shapes.rows[t] = rows;
  // As in a product: two tiles of each factor, from the first level. Zeros take as long as other numbers.
  alignas(64) static const std::byte factors[4 * 1024] = {};
  const int64_t row = 64;
  __asm__ volatile("ldtilecfg %0" : : "m"(shapes));
  __asm__ volatile("tilezero %tmm0\n\ttilezero %tmm1\n\ttilezero %tmm2\n\ttilezero %tmm3");
  for (int64_t r = 0; r < repeats; ++r)
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm4\n\ttileloadd 1024(%0,%1,1), %%tmm5\n\ttileloadd 2048(%0,%1,1), %%tmm6\n\ttileloadd 3072(%0,%1,1), %%tmm7\n\t"
                     "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\ttdpbf16ps %%tmm7, %%tmm4, %%tmm1\n\ttdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\ttdpbf16ps %%tmm7, %%tmm5, %%tmm3"
                     : : "r"(factors), "r"(row) : "memory");
  __asm__ volatile("tilerelease");
  return 2.0 * 2 * rows * pairs * columns * products * static_cast<double>(repeats);
}

const kernel_set& best_kernels() {
  static const kernel_set wide{"avx512f", 512, avx512::read, avx512::read_streams, avx512::copy, avx512::stream_copy, avx512::multiply_add, avx512::divide};
  static const kernel_set middle{"avx2+fma", 256, avx2::read, avx2::read_streams, avx2::copy, avx2::stream_copy, avx2::multiply_add, avx2::divide};
  static const kernel_set narrow{"sse2", 128, baseline::read, baseline::read_streams, baseline::copy, baseline::stream_copy, baseline::multiply_add, baseline::divide};
  static const kernel_set& best = [&]() -> const kernel_set& {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return wide;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return middle;
    return narrow;
  }();
  return best;
}

#else

#if defined(__aarch64__)
#define ROOFLINE_CONSTRAINT "w"
#define ROOFLINE_CHAINS(X) ROOFLINE_TWELVE(X) ROOFLINE_TWELVE_MORE(X)
#else
#define ROOFLINE_CONSTRAINT "m" // no register class that is known to hold a vector: the peak is then a lower bound
#define ROOFLINE_CHAINS(X) ROOFLINE_TWELVE(X)
#endif
#define ROOFLINE_NAMESPACE baseline
#define ROOFLINE_TARGET
#define ROOFLINE_BYTES 16
#define ROOFLINE_STREAM(to, value) (*reinterpret_cast<vector_t*>(to) = (value))
#define ROOFLINE_FENCE() (void)0
#define ROOFLINE_FMA(a, b, c) ((a) * (b) + (c))
#include "profilers/roofline_loops.inc"

bool has_tiles() { return false; }
double multiply_tiles(int64_t) { return 0; }

const kernel_set& best_kernels() {
  static const kernel_set only{"128-bit vectors", 128, baseline::read, baseline::read_streams, baseline::copy, baseline::stream_copy,
                               baseline::multiply_add, baseline::divide};
  return only;
}

#endif

int64_t repeats_for(double least_seconds, const std::function<double(int64_t)>& seconds_of) {
  constexpr int trials = 4;
  int64_t repeats = 1;
  while (repeats < int64_t{1} << 40) {
    double shortest = seconds_of(repeats);
    for (int again = 1; again < trials && shortest >= least_seconds; ++again) shortest = std::min(shortest, seconds_of(repeats));
    if (shortest >= least_seconds) break;
    repeats *= 2;
  }
  return repeats;
}

} // namespace pragma::roofline
