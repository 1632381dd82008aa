// The errors that emitted sources state are the errors that they have.
#include "kernel_fixture.hpp"

#include "synthesis/cpp/helpers/helpers.hpp"
#include "synthesis/ir/operators.hpp"

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
    {operation::tanh, std::tanh, -12, 12},
    {operation::erf, std::erf, -5, 5},
    {operation::sigmoid, sigmoid, -80, 80},
    {operation::log2, std::log2, 1e-6f, 1e6f},
    {operation::log10, std::log10, 1e-6f, 1e6f}};

double ulp_of(double exact) {
  const float f = std::fabs(static_cast<float>(exact));
  return std::nextafter(f, INFINITY) - static_cast<double>(f);
}

std::string source_of_all() {
  std::string body;
  std::set<std::string> used{"load", "store"};
  for (const auto& c : cases) {
    used.insert(c.helper());
    body += "extern \"C\" void " + c.name() + "(const float* x, float* y, int64_t n) {\n  for (int64_t i = 0; i < n; i += W) store(y + i, " + c.helper() +
            "(load(x + i, all_lanes{})), all_lanes{});\n}\n";
  }
  return "#include <cstdint>\n#include <cstring>\n#include <limits>\n#include <type_traits>\n#include <utility>\nnamespace {\n" +
         helpers_text(used, 8) + "}\n" + body;
}

} // namespace

TEST_CASE("emitted mathematics keeps the error that it states") {
  const loaded library(source_of_all(), {"-std=c++20", "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast"});
  constexpr size_t n = 1 << 16;
  for (const auto& c : cases) {
    INFO(c.name());
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
  const loaded library(source_of_all(), {"-std=c++20", "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast"});
  const auto value = [&](const char* name, float x) {
    tensor<float> in(8), out(8);
    for (size_t i = 0; i < 8; ++i) in[i] = x;
    library.function<void(const float*, float*, int64_t)>(name)(in.data(), out.data(), 8);
    return out[3];
  };
  const float inf = INFINITY;
  CHECK(value("run_exp", inf) == inf);
  CHECK(value("run_exp", -inf) == 0);
  CHECK(value("run_exp", 100) == inf);
  CHECK(value("run_exp_nonpositive", -inf) == 0);
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
}
