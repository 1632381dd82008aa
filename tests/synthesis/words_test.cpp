// Products by words of 32 bits: bfloat16 and int8 on tiles (AMX) where the processor has them, by vectors, and without either. Expected values are made here.
#include "kernel_fixture.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace pragma;
using namespace pragma::test;

namespace {

struct target {
  int simd_bits;
  bool tiles;
  const char* march;
};
/// Each text is compiled for more processors than the one it was planned for, as a drop-in's is; one that this machine cannot run is only compiled.
#if defined(__x86_64__)
const target targets[] = {{512, true, "-march=native"}, {512, true, "-march=x86-64-v2"}, {512, false, "-march=native"}, {256, false, "-march=native"}, {256, false, "-march=x86-64-v2"}};
#else
const target targets[] = {{128, false, "-march=native"}};
#endif

std::string name_of(const target& on) { return std::to_string(on.simd_bits) + " bits, " + (on.tiles ? "planned for tiles, " : "") + on.march; }

struct sizes {
  int64_t m, k, n;
  bool turned; ///< the second factor lies in memory as [n, k]
};

/// Tiles that are not full, several blocks of rows, columns and steps, fewer steps than a tile's.
const sizes shapes[] = {{17, 35, 51, false}, {40, 1701, 33, true}, {2, 9, 200, true}, {300, 530, 70, false}};

loaded kernel_of(const graph_text& g, const std::string& out, const target& on, int threads = 1) {
  auto options = test_machine();
  options.machine.simd_bits = on.simd_bits;
  options.machine.half_gflops = on.tiles ? 1000 : 0;
  options.machine.cache_bytes = {48 << 10, 256 << 10, 8 << 20};
  options.threads = threads;
  const auto made = coder_for(g.finish({out}), options).next(std::nullopt);
  REQUIRE(made);
  auto flags = made->flags;
  for (auto& f : flags)
    if (f == "-march=native") f = on.march;
  flags.push_back("-Wno-uninitialized"); // GCC 12's own header of AVX-512
  flags.push_back("-Wno-maybe-uninitialized");
  return loaded(made->source, flags);
}

template <class T> tensor<T> random_bits(int64_t n, unsigned seed, T keep, T set) {
  tensor<T> t(static_cast<size_t>(n));
  std::mt19937 generator(seed);
  for (size_t i = 0; i < t.size(); ++i) t[i] = static_cast<T>((generator() & static_cast<unsigned>(static_cast<std::make_unsigned_t<T>>(keep))) | static_cast<unsigned>(set));
  return t;
}

double widened(uint16_t bits) {
  const uint32_t upper = uint32_t{bits} << 16;
  float x;
  std::memcpy(&x, &upper, sizeof x);
  return static_cast<double>(x);
}

std::string second_factor(graph_text& g, const sizes& s, const std::string& type) {
  const auto b = g.input(s.turned ? std::vector<int64_t>{s.n, s.k} : std::vector<int64_t>{s.k, s.n}, type);
  return s.turned ? g.node("aten.t.default", {{"self", graph_text::ref(b)}}, {s.k, s.n}, type) : b;
}

size_t place(const sizes& s, int64_t k, int64_t n) { return static_cast<size_t>(s.turned ? n * s.k + k : k * s.n + n); }

/// The largest error of a product of bfloat16, in parts of the sum of its magnitudes.
double error_of_halves(const sizes& s, const target& on, int threads = 1) {
  graph_text g;
  const auto a = g.input({s.m, s.k}, "bfloat16"), b = second_factor(g, s, "bfloat16");
  const auto product = g.node("aten.mm.default", {{"self", graph_text::ref(a)}, {"mat2", graph_text::ref(b)}}, {s.m, s.n}, "bfloat16");
  const auto wide = g.node("aten._to_copy.default", {{"self", graph_text::ref(product)}, {"dtype", "float32"}}, {s.m, s.n});
  const auto kernel = kernel_of(g, wide, on, threads);
  auto left = random_bits<uint16_t>(s.m * s.k, 5, 0x80ff, 0x3f00), right = random_bits<uint16_t>(s.k * s.n, 6, 0x80ff, 0x3f00); // of sizes around 1
  tensor<float> out(static_cast<size_t>(s.m * s.n));
  call(kernel, {left.data(), right.data()}, {out.data()}, threads);
  double worst = 0;
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < s.k; ++k) {
        const double p = widened(left[static_cast<size_t>(i * s.k + k)]) * widened(right[place(s, k, j)]);
        sum += p;
        size += std::fabs(p);
      }
      const double error = std::fabs(static_cast<double>(out[static_cast<size_t>(i * s.n + j)]) - sum) / size;
      worst = error > worst || std::isnan(error) ? error : worst;
    }
  return worst;
}

/// How many results of a product of int8 differ.
size_t wrong_of_bytes(const sizes& s, const target& on, int threads = 1) {
  graph_text g;
  const auto a = g.input({s.m, s.k}, "int8"), b = second_factor(g, s, "int8");
  const auto kernel = kernel_of(g, g.node("aten._int_mm.default", {{"self", graph_text::ref(a)}, {"mat2", graph_text::ref(b)}}, {s.m, s.n}, "int32"), on, threads);
  auto left = random_bits<int8_t>(s.m * s.k, 7, -1, 0), right = random_bits<int8_t>(s.k * s.n, 8, -1, 0);
  for (int64_t k = 0; k < s.k; ++k) left[static_cast<size_t>(k)] = right[place(s, k, 0)] = -128; // the largest sum there is
  tensor<int32_t> out(static_cast<size_t>(s.m * s.n));
  call(kernel, {left.data(), right.data()}, {out.data()}, threads);
  size_t wrong = 0;
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      int64_t sum = 0;
      for (int64_t k = 0; k < s.k; ++k) sum += int64_t{left[static_cast<size_t>(i * s.k + k)]} * right[place(s, k, j)];
      wrong += out[static_cast<size_t>(i * s.n + j)] != sum;
    }
  return wrong;
}

/// In a process of its own, to which the system refuses the tiles.
template <class Check> bool holds_without_permission(Check check) {
  const pid_t child = fork();
  if (child == 0) {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x1023, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{std::size(code), code};
    bool held = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    try {
      held = held && check();
    } catch (...) {
      held = false;
    }
    _exit(held ? 0 : 1);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace

TEST_CASE("a product of bfloat16 by words is that of its values, on tiles and without") {
  for (const auto& s : shapes)
    for (const auto& on : targets) {
      if (!on.tiles) continue; // pairs of steps: half_test.cpp
      INFO(s.m << " x " << s.k << " x " << s.n << (s.turned ? " turned, " : ", ") << name_of(on));
      CHECK(error_of_halves(s, on) < 1e-6); // sums in float32: in a half type they would miss by 4e-3
    }
}

TEST_CASE("a product of int8 is exact, on tiles and without") {
  for (const auto& s : shapes)
    for (const auto& on : targets) {
      if (&s > shapes + 1 && &on > targets + 1) continue;
      INFO(s.m << " x " << s.k << " x " << s.n << (s.turned ? " turned, " : ", ") << name_of(on));
      CHECK(wrong_of_bytes(s, on) == 0);
    }
}

TEST_CASE("products by words share out their columns over threads") {
  const sizes s{70, 300, 500, true};
  CHECK(error_of_halves(s, targets[0], 2) < 1e-6);
  CHECK(wrong_of_bytes(s, targets[0], 2) == 0);
}

#if defined(__x86_64__)
TEST_CASE("where the system refuses the tiles, vectors multiply") {
  CHECK(holds_without_permission([] { return error_of_halves({40, 170, 70, true}, targets[0]) < 1e-6; }));
  CHECK(holds_without_permission([] { return wrong_of_bytes({40, 170, 70, true}, targets[0]) == 0; }));
}

TEST_CASE("a product leaves no tile in use") {
  REQUIRE(error_of_halves({40, 70, 40, true}, targets[0]) < 1e-6);
  if (read_file("/proc/cpuinfo")->find("amx_tile") == std::string::npos) return;
  uint32_t in_use = 0, upper = 0;
  __asm__ volatile("xgetbv" : "=a"(in_use), "=d"(upper) : "c"(1));
  CHECK((in_use >> 17 & 3) == 0); // configuration, data
}
#endif

TEST_CASE("weights of int8 with a scale for each row are widened while they are packed") {
  for (const char* type : {"bfloat16", "float32"})
    for (const auto& on : targets)
      for (const int64_t m : {1, 5, 40}) {
        if (m != 40 && &on != targets) continue;
        const sizes s{m, 300, 70, true};
        INFO(type << ", " << m << " rows, " << name_of(on));
        graph_text g;
        const auto x = g.input({s.m, s.k}, type), w = g.input({s.n, s.k}, "int8"), scale = g.input({s.n, 1}, type);
        const auto wide = g.node("aten._to_copy.default", {{"self", graph_text::ref(w)}, {"dtype", type}}, {s.n, s.k}, type);
        const auto scaled = g.node("aten.mul.Tensor", {{"self", graph_text::ref(wide)}, {"other", graph_text::ref(scale)}}, {s.n, s.k}, type);
        const auto turned = g.node("aten.t.default", {{"self", graph_text::ref(scaled)}}, {s.k, s.n}, type);
        const auto product = g.node("aten.mm.default", {{"self", graph_text::ref(x)}, {"mat2", graph_text::ref(turned)}}, {s.m, s.n}, type);
        const auto out_type = g.node("aten._to_copy.default", {{"self", graph_text::ref(product)}, {"dtype", "float32"}}, {s.m, s.n});
        auto options = test_machine();
        options.machine.simd_bits = on.simd_bits;
        options.machine.half_gflops = on.tiles ? 1000 : 0;
        CHECK(coder_for(g.finish({out_type}), options).next(std::nullopt)->source.find("scratch") == std::string::npos); // no matrix of floats in memory
        const auto kernel = kernel_of(g, out_type, on);
        const bool half = std::string(type) == "bfloat16";
        auto left = random_bits<uint16_t>(s.m * s.k, 9, 0x80ff, 0x3f00), scales = random_bits<uint16_t>(s.n, 10, 0xff, 0x3f00);
        auto bytes = random_bits<int8_t>(s.k * s.n, 11, -1, 0);
        tensor<float> wide_left(left.size()), wide_scales(scales.size()), out(static_cast<size_t>(s.m * s.n));
        for (size_t i = 0; i < left.size(); ++i) wide_left[i] = static_cast<float>(widened(left[i]));
        for (size_t i = 0; i < scales.size(); ++i) wide_scales[i] = static_cast<float>(widened(scales[i]));
        call(kernel, {half ? static_cast<void*>(left.data()) : wide_left.data(), bytes.data(), half ? static_cast<void*>(scales.data()) : wide_scales.data()}, {out.data()});
        double worst = 0;
        for (int64_t i = 0; i < s.m; ++i)
          for (int64_t j = 0; j < s.n; ++j) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < s.k; ++k) {
              const double p = widened(left[static_cast<size_t>(i * s.k + k)]) * bytes[place(s, k, j)] * widened(scales[static_cast<size_t>(j)]);
              sum += p;
              size += std::fabs(p);
            }
            const double error = std::fabs(static_cast<double>(out[static_cast<size_t>(i * s.n + j)]) - sum) / size;
            worst = error > worst || std::isnan(error) ? error : worst;
          }
        CHECK(worst < 1e-6);
      }
}
