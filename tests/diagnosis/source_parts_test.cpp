// Lines of sources by name: the built-in coder's regions, passes and helpers; functions of others.
#include "diagnosis/rules.hpp"
#include "diagnosis/source_parts.hpp"
#include "diagnosis/time_table.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

#include <catch2/catch.hpp>

using namespace pragma;

namespace {

/// The first line that has this text; 0 = none.
int line_with(const std::string& source, const std::string& text) {
  const auto lines = split(source, '\n');
  for (size_t i = 0; i < lines.size(); ++i)
    if (lines[i].find(text) != std::string::npos) return static_cast<int>(i) + 1;
  return 0;
}

std::string part_with(const std::string& source, const std::string& text) {
  const int line = line_with(source, text);
  INFO(text);
  REQUIRE(line > 0);
  return part_of(source, line);
}

/// The golden attention kernel, with helpers in their place.
std::string attention() {
  auto text = read_file(std::filesystem::path(TESTS_DIR) / "synthesis" / "golden" / "attention_causal_blocks.cpp");
  REQUIRE(text);
  const std::string mark = "// (helpers)\n";
  const auto at = text->find(mark);
  REQUIRE(at != std::string::npos);
  return text->replace(at, mark.size(), R"(template <int M, int64_t Row> __attribute__((always_inline)) inline void multiply_rows(int64_t depth, const float* a) {
  for (int r = 0; r < M; ++r) use(a[r * Row]);
}
inline vf exp_polynomial(vf x) {
  return x * 0.5f; // hot
}
inline vf v_exp_nonpositive(vf x) { return exp_polynomial(x); }
template <int N> inline void pack_columns(float* to, const char* braces = "{{") {
#if defined(__AVX512F__) // {
  to[N] = 1'000;
#endif
}
inline vf never_called(vf x) {
  return x + 1; // alone
}
)");
}

} // namespace

TEST_CASE("lines of the built-in coder's regions are named by region and pass") {
  const auto source = attention();
  CHECK(part_with(source, "MR = 6") == "region 1 (matrix product)");
  CHECK(part_with(source, "take_peak(peak1") == "region 2 (pass 1: peak)");
  CHECK(part_with(source, "sum4 = keep(lanes") == "region 2 (pass 2: sum)");
  CHECK(part_with(source, "v3 * inverse4") == "region 2 (pass 3: results)");
  CHECK(part_with(source, "MR = 4") == "region 3 (matrix product)");
  CHECK(part_with(source, "unmasked = [&]") == "region 1 (tail)");
  CHECK(part_with(source, "const float* x0") == ""); // of the entry point, before any region
}

TEST_CASE("lines of helpers are named by what they do and the regions that call them") {
  const auto source = attention();
  CHECK(part_with(source, "use(a[r * Row])") == "regions 1 and 3 (product)");
  CHECK(part_with(source, "// hot") == "region 2 (pass 2: sum, exp_polynomial)"); // called by what that pass calls
  CHECK(part_with(source, "to[N] = 1'000") == "regions 1 and 3 (packing)");
  CHECK(part_with(source, "// alone") == "never_called");
}

TEST_CASE("many regions are functions, each counted by its own name") {
  const std::string source = "namespace {\ninline float v_tanh(float x) {\n  return x; // tanh\n}\n__attribute__((noinline)) void region_7(const float* __restrict x) {\n"
                             "  // Region 1: 64 x 200 (vectorised)\n  {\n    y = v_tanh(x); // line\n  }\n}\n}\nextern \"C\" void pragma_kernel(const pragma_args* args) {\n  region_7(x0);\n}\n";
  CHECK(part_with(source, "// line") == "region 7 (element-wise)");
  CHECK(part_with(source, "// tanh") == "region 7 (tanh)");
}

TEST_CASE("of other sources the function or the named lambda counts, where it can be read") {
  const std::string source = "struct rows {\n  float sum(int n) const {\n    return n; // method\n  }\n};\n"
                             "namespace mine {\ntemplate <int N = 4>\nstatic inline __attribute__((target(\"avx2\"))) float dot_rows(const float* a)\n{\n"
                             "  const char* text = R\"x(}}})x\";\n  if (a) { /* { */\n    return a['{']; // inner\n  }\n}\n}\nfloat table[] = {1, // table\n 2};\n"
                             "extern \"C\" void pragma_kernel(const pragma_args* args) {\n  const auto softmax = [&](int i) {\n    for (;;) {\n      y[i] = 1; // lambda\n    }\n  };\n"
                             "  for (;;) y = 2; // entry\n}\n";
  CHECK(part_with(source, "// inner") == "dot_rows");
  CHECK(part_with(source, "// method") == "sum");
  CHECK(part_with(source, "// lambda") == "softmax");
  CHECK(part_with(source, "// entry") == "");
  CHECK(part_with(source, "// table") == "");
  CHECK(part_of(source, 0) == "");
  CHECK(part_of(source, 1000) == "");
  CHECK(part_of("void f() {\n  x; }\n}\n", 2) == ""); // braces that do not match say nothing
  for (const char* torn : {"\"", "R\"(", "/*", "#if \\", "'", "void f(", "auto = [", "R\"", "// Region", "// Region 1\n{"}) CHECK_NOTHROW(part_of(torn, 1));
}

TEST_CASE("the table and the findings of a loop say which part it is") {
  profile p;
  p.time.candidate_seconds = 1e-3;
  loop_cost loop;
  loop.line = line_with(attention(), "use(a[r * Row])");
  loop.share = 0.9;
  loop.how = provenance::measured;
  loop.cycles = 40;
  loop.least_cycles = 8;
  loop.flops = 16;
  loop.trips = 7e4;
  loop.instructions = 8;
  loop.vector_bits = 256;
  loop.vector_share = 100;
  loop.fused = 1;
  loop.chains = 1;
  loop.chain_operations = 10;
  p.loops = {loop};
  p.metrics = {{"hot_loop.line", static_cast<double>(loop.line), "line", "objdump", provenance::static_analysis, ""},
               {"llvm_mca.register_dependencies", 90, "%", "llvm-mca 14", provenance::static_analysis, ""},
               {"llvm_mca.cycles_per_iteration", 40, "cycles", "llvm-mca 14", provenance::static_analysis, ""}};
  machine_limits limits;
  limits.cache_bytes = {32 << 10, 512 << 10, 16 << 20};
  limits.copy_gbs = limits.read_gbs = {200, 100, 50, 10};
  limits.peak_gflops = 96;
  limits.clock_ghz = 3;
  limits.simd_bits = 256;
  diagnosis_input in;
  in.current = &p;
  in.limits = &limits;
  in.source = attention();
  in.bytes = 1 << 20;
  in.flops = 7e4 * 16;
  const auto table = table_of(in);
  REQUIRE_FALSE(table.phases.empty());
  CHECK(table.phases.front().part == "regions 1 and 3 (product)");
  const auto lines = table_lines(table);
  REQUIRE(lines.size() > 1);
  CHECK_THAT(lines[1], Catch::Contains("90% regions 1 and 3 (product), loop at line " + std::to_string(loop.line) + ": "));
  bool named = false;
  for (const auto& f : diagnose(in))
    if (f.line == loop.line) {
      named = true;
      CHECK(f.part == "regions 1 and 3 (product)");
      CHECK(place_of(f) == ", regions 1 and 3 (product), line " + std::to_string(loop.line));
    }
  CHECK(named);
}
