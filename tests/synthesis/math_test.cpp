// The errors that emitted sources state are the errors that they have.
#include "kernel_fixture.hpp"

#include "synthesis/cpp/helpers/helpers.hpp"
#include "synthesis/ir/operators.hpp"

#include <algorithm>
#include <bit>
#include <set>

using namespace pragma;
using namespace pragma::synthesis;
using namespace pragma::test;

namespace {

struct function_case {
  operation op;
  double (*exact)(double);
  float low, high;
  bool cheap = false;
  std::string helper() const { return std::string(cheap ? traits(op).cpp_cheap : traits(op).cpp.text); }
  std::string name() const { return "run_" + helper().substr(2); }
  double ulp() const { return cheap ? traits(op).cheap_ulp : traits(op).ulp; } ///< as the table of operators has it
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const function_case cases[] = {
    {operation::exp, std::exp, -87, 88.7f},
    {operation::exp, std::exp, -87, 88.7f, true},
    {operation::exp_nonpositive, std::exp, -87, 0},
    {operation::exp_nonpositive, std::exp, -87, 0, true},
    {operation::log, std::log, 1e-30f, 1e30f},
    {operation::log1p_unit, std::log1p, 0, 1},
    {operation::log1p, std::log1p, -0.9f, 100},
    {operation::expm1, std::expm1, -20, 80},
    {operation::expm1_nonpositive, std::expm1, -100, 0},
    {operation::expm1_nonpositive, std::expm1, -1e-6f, 0},
    {operation::tanh, std::tanh, -12, 12},
    {operation::erf, std::erf, -5, 5},
    {operation::sigmoid, sigmoid, -80, 80},
    {operation::log2, std::log2, 1e-6f, 1e6f},
    {operation::log10, std::log10, 1e-6f, 1e6f}};

double ulp_of(double exact) {
  const float f = std::fabs(static_cast<float>(exact));
  return std::nextafter(f, INFINITY) - static_cast<double>(f);
}

/// Widths that this processor runs: of 16 lanes there are texts of their own.
std::vector<int> widths() { return __builtin_cpu_supports("avx512f") ? std::vector<int>{8, 16} : std::vector<int>{8}; }

std::string source_of_all(int lanes) {
  std::string body;
  std::set<std::string> used{"load", "store"};
  for (const auto& c : cases) {
    if (!used.insert(c.helper()).second) continue; // in a second range
    body += "extern \"C\" void " + c.name() + "(const float* x, float* y, int64_t n) {\n  for (int64_t i = 0; i < n; i += W) store(y + i, " + c.helper() +
            "(load(x + i, all_lanes{})), all_lanes{});\n}\n";
  }
  return "#include <cstdint>\n#include <cstring>\n#include <limits>\n#include <type_traits>\n#include <utility>\nnamespace {\n" +
         helpers_text(used, lanes) + "}\n" + body;
}

} // namespace

TEST_CASE("emitted mathematics keeps the error that it states") {
  const int lanes = GENERATE(from_range(widths()));
  const loaded library(source_of_all(lanes), {"-std=c++20", "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast"});
  for (const auto& c : cases) {
    const size_t n = c.exact == static_cast<double (*)(double)>(std::exp) ? 1 << 22 : 1 << 16; // tables of roots have many edges
    INFO(c.name() << " with " << lanes << " lanes");
    auto* run = library.function<void(const float*, float*, int64_t)>(c.name().c_str());
    REQUIRE(run != nullptr);
    auto x = random_floats(n, 7, c.low, c.high);
    if (c.low > 0) // logarithms: all magnitudes alike
      for (size_t i = 0; i < n; ++i)
        x[i] = std::exp(std::log(c.low) + (std::log(c.high) - std::log(c.low)) * static_cast<float>(i) / static_cast<float>(n));
    tensor<float> y(n);
    run(x.data(), y.data(), n);
    double worst = 0;
    float at = 0;
    for (size_t i = 0; i < n; ++i) {
      const double exact = c.exact(x[i]);
      const double error = std::fabs(y[i] - exact) / ulp_of(exact);
      if (!(error <= worst)) worst = error, at = x[i];
    }
    INFO("worst " << worst << " ULP at " << at);
    CHECK(worst <= c.ulp());
  }
}

TEST_CASE("emitted mathematics knows infinities, zero and NaN") {
  const int lanes = GENERATE(from_range(widths()));
  INFO(lanes << " lanes");
  const loaded library(source_of_all(lanes), {"-std=c++20", "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast"});
  const auto value = [&](const char* name, float x) {
    tensor<float> in(16), out(16);
    for (size_t i = 0; i < 16; ++i) in[i] = x;
    library.function<void(const float*, float*, int64_t)>(name)(in.data(), out.data(), 16);
    return out[3];
  };
  const float inf = INFINITY;
  CHECK(value("run_exp", inf) == inf);
  CHECK(value("run_exp", -inf) == 0);
  CHECK(value("run_exp", 100) == inf);
  for (const char* name : {"run_exp_nonpositive", "run_exp_nonpositive_short", "run_exp_short"})
    for (float x : {-inf, -1e30f, -104.f, -90.f, -87.4f}) CHECK(value(name, x) == 0);
  CHECK(value("run_exp_short", inf) == inf);
  CHECK(value("run_exp", 88.7f) < inf);
  CHECK(value("run_log", 0) == -inf);
  CHECK(value("run_log", inf) == inf);
  CHECK(std::isnan(value("run_log", -1)));
  CHECK(value("run_log", 1e-41f) == Approx(std::log(1e-41)).epsilon(1e-5));
  CHECK(value("run_tanh", inf) == 1);
  CHECK(value("run_tanh", -inf) == -1);
  CHECK(value("run_erf", -inf) == -1);
  CHECK(value("run_sigmoid", -inf) == 0);
  CHECK(value("run_sigmoid", inf) == 1);
  for (const auto& c : cases) {
    INFO(c.name());
    CHECK(std::isnan(value(c.name().c_str(), NAN)));
  }
  for (uint32_t payload : {1u, 0xffu, 0x155u}) CHECK(std::isnan(value("run_exp_nonpositive", std::bit_cast<float>(0x7fc00000u + payload))));
}

TEST_CASE("rows of every length end right, in vectors of every width, and a NaN anywhere in a row reaches what it has to") {
  const std::vector<int64_t> lengths{1, 2, 3, 5, 8, 9, 14, 16, 17, 23, 31, 33, 47, 64, 70};
  graph_text g;
  const auto ref = &graph_text::ref;
  std::vector<std::string> outputs;
  for (auto n : lengths) {
    const auto x = g.input({2, n});
    for (const char* op : {"aten.sum.dim_IntList", "aten.amax.default", "aten.amin.default"})
      outputs.push_back(g.node(op, {{"self", ref(x)}, {"dim", {1}}, {"keepdim", false}, {"dtype", nullptr}}, {2}));
    outputs.push_back(g.node("aten._log_softmax.default", {{"self", ref(x)}, {"dim", 1}, {"half_to_float", false}}, {2, n}));
  }
  const auto described = g.finish(outputs);
  for (int bits : {128, 256, 512}) {
    INFO(bits << " bits");
    auto options = test_machine();
    options.machine.simd_bits = bits;
    auto coder = coder_for(described, options);
    const auto made = coder.next(std::nullopt);
    REQUIRE(made);
    const loaded kernel(made->source, made->flags);
    std::vector<tensor<float>> x, results;
    for (auto n : lengths) {
      x.push_back(random_floats(static_cast<size_t>(2 * n), static_cast<unsigned>(n)));
      for (int64_t size : {int64_t{2}, int64_t{2}, int64_t{2}, 2 * n}) results.emplace_back(static_cast<size_t>(size));
    }
    std::vector<void*> in, out;
    for (auto& t : x) in.push_back(t.data());
    for (auto& t : results) out.push_back(t.data());
    const auto check = [&](int64_t nan_at) { // in the first row; -1: nowhere
      call(kernel, in, out);
      for (size_t i = 0; i < lengths.size(); ++i)
        for (int64_t row = 0; row < 2; ++row) {
          const auto n = lengths[i];
          INFO(n << " elements, row " << row << ", NaN at " << nan_at);
          const float *values = &x[i][static_cast<size_t>(row * n)], *log_p = &results[4 * i + 3][static_cast<size_t>(row * n)];
          const auto of = [&](size_t kind) { return results[4 * i + kind][static_cast<size_t>(row)]; };
          if (row == 0 && nan_at >= 0 && nan_at < n) {
            for (size_t kind = 0; kind < 3; ++kind) CHECK(std::isnan(of(kind)));
            CHECK(std::all_of(log_p, log_p + n, [](float v) { return std::isnan(v); }));
            continue;
          }
          double sum = 0, powers = 0;
          for (int64_t k = 0; k < n; ++k) sum += values[k], powers += std::exp(static_cast<double>(values[k]));
          CHECK(std::fabs(of(0) - sum) < 1e-5);
          CHECK(of(1) == *std::max_element(values, values + n));
          CHECK(of(2) == *std::min_element(values, values + n));
          for (int64_t k = 0; k < n; ++k) CHECK(std::fabs(log_p[k] - (values[k] - std::log(powers))) < 2e-6);
        }
    };
    check(-1);
    for (int64_t at : {int64_t{0}, int64_t{2}, int64_t{7}, int64_t{16}, int64_t{22}, int64_t{69}}) {
      std::vector<float> before;
      for (size_t i = 0; i < lengths.size(); ++i) {
        before.push_back(at < lengths[i] ? x[i][static_cast<size_t>(at)] : 0);
        if (at < lengths[i]) x[i][static_cast<size_t>(at)] = NAN;
      }
      check(at);
      for (size_t i = 0; i < lengths.size(); ++i)
        if (at < lengths[i]) x[i][static_cast<size_t>(at)] = before[i];
    }
  }
}

TEST_CASE("sums that are found beside their peak are right, wherever in a row the peak lies") {
  const int64_t n = GENERATE(1003, 20000); // the second one in two blocks
  constexpr int64_t rows = 10;
  graph_text g;
  const auto x = g.input({rows, n});
  const auto log_p = g.node("aten._log_softmax.default", {{"self", graph_text::ref(x)}, {"dim", 1}, {"half_to_float", false}}, {rows, n});
  const auto described = g.finish({g.node("aten.sum.dim_IntList", {{"self", graph_text::ref(log_p)}, {"dim", {1}}, {"keepdim", false}, {"dtype", nullptr}}, {rows})});
  auto values = random_floats(static_cast<size_t>(rows * n), 5);
  const auto row = [&](int64_t r) { return values.data() + r * n; };
  for (int64_t k = 0; k < n; ++k) {
    const auto at = static_cast<float>(k) / static_cast<float>(n);
    row(1)[k] = 3000 * at;            // the level rises block by block
    row(2)[k] = -3000 * at;           // it never does
    row(3)[k] += k == n - 1 ? 90 : 0; // the last element outweighs all
    row(4)[k] += 1e5f;
    row(5)[k] = k < 200 ? -3.4e38f : row(5)[k] * 1e-3f; // as some masks are written
    row(6)[k] = k < 200 ? -INFINITY : row(6)[k];
    row(7)[k] = -INFINITY;
  }
  row(8)[n - 2] = NAN;
  row(9)[n / 2] = INFINITY;
  for (int bits : {128, 256, 512}) {
    if (bits == 512 && !__builtin_cpu_supports("avx512f")) continue;
    auto options = test_machine();
    options.machine.simd_bits = bits;
    auto coder = coder_for(described, options);
    const auto made = coder.next(std::nullopt);
    REQUIRE(made);
    REQUIRE(made->source.find("level") != std::string::npos);
    const loaded kernel(made->source, made->flags);
    tensor<float> result(rows);
    call(kernel, {values.data()}, {result.data()});
    for (int64_t r = 0; r < 6; ++r) {
      const double peak = *std::max_element(row(r), row(r) + n);
      double powers = 0, sum = 0;
      for (int64_t k = 0; k < n; ++k) powers += std::exp(row(r)[k] - peak), sum += row(r)[k] - peak;
      const double exact = sum - static_cast<double>(n) * std::log(powers);
      INFO(bits << " bits, " << n << " elements, row " << r << ": " << result[static_cast<size_t>(r)] << " and exactly " << exact);
      if (r == 5) CHECK((result[5] < -3e38f)); // 200 times -3.4e38 is beyond float32
      else CHECK(std::fabs(result[static_cast<size_t>(r)] - exact) < 1e-6 * std::fabs(exact));
    }
    CHECK(result[6] == -INFINITY);
    for (size_t r : {7u, 8u, 9u}) CHECK(std::isnan(result[r]));
  }
}

TEST_CASE("running sums whose exponentials are wanted are rounded once, as Torch's are") {
  constexpr int64_t rows = 48, columns = 500;
  for (const int64_t dim : {1, 0})
    for (const bool wanted : {true, false}) {
      graph_text g;
      const auto x = g.input({rows, columns});
      const auto sums = g.node("aten.cumsum.default", {{"self", graph_text::ref(x)}, {"dim", dim}}, {rows, columns});
      const auto powers = g.node(wanted ? "aten.exp.default" : "aten.neg.default", {{"self", graph_text::ref(sums)}}, {rows, columns});
      const auto made = coder_for(g.finish({sums, powers})).next(std::nullopt);
      REQUIRE(made);
      const loaded kernel(made->source, made->flags, "-O2");
      auto in = random_floats(rows * columns, 5, -1, 1.2f);
      tensor<float> out(rows * columns), second(rows * columns);
      call(kernel, {in.data()}, {out.data(), second.data()});
      size_t other = 0;
      const int64_t lines = dim ? rows : columns, steps = dim ? columns : rows, step = dim ? 1 : columns, line = dim ? columns : 1;
      for (int64_t l = 0; l < lines; ++l) {
        double sum = 0;
        for (int64_t s = 0; s < steps; ++s) {
          const auto at = static_cast<size_t>(l * line + s * step);
          sum += in[at];
          other += out[at] != static_cast<float>(sum);
        }
      }
      INFO("along " << dim << (wanted ? ", with exponentials" : ", without"));
      if (wanted) CHECK(other < 5); // where a double's own last digits decide
      else CHECK(other > 1000);     // quicker, and as good as float32 needs elsewhere
    }
}
