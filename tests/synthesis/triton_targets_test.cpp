// What Triton's own compiler says of our modules for GPUs that are not here: NVIDIA's from sm_80 to sm_100, AMD's gfx90a and gfx942. The coder
// writes for each device's own sizes. Needs a Python with the package triton ($PRAGMA_TRITON_PYTHON, else $PRAGMA_OTHER_PYTHON): no Torch, no GPU.
#include "tests/fixtures/skip.hpp"
#include "golden.hpp"
#include "triton_python.hpp"

#include "base/subprocess.hpp"
#include "base/text.hpp"

using namespace pragma;
using namespace pragma::test;
namespace fs = std::filesystem;

namespace {

struct device {
  const char* name;
  const char* backend;
  int units;
  int64_t shared;
  int warp;
};

// Units and shared memory: NVIDIA's A100, H100 and B200 data sheets, AMD's MI250X (one die) and MI300X.
const device devices[] = {{"sm_80", "cuda", 108, 163 << 10, 32}, {"sm_90", "cuda", 132, 227 << 10, 32}, {"sm_100", "cuda", 148, 227 << 10, 32},
                          {"gfx90a", "rocm", 110, 64 << 10, 64}, {"gfx942", "rocm", 304, 64 << 10, 64}};

/// One of each kind of region and contraction.
const std::vector<std::string> shapes{"gelu",           "softmax_long", "layer_norm",  "cumsum_rows",     "max_pool_places", "max_with_places", "cross_entropy",  "double",
                                      "integers",       "batch_norm",   "convolution", "depthwise",       "convolution_transposed", "linear",    "product_in_triangle", "attention"};

/// A golden graph of n x n matrices, large enough for the largest tiles, and for factors that are split for tensor cores.
golden_shape large(const std::string& name, const std::string& type) {
  constexpr int64_t n = 2048;
  auto shape = golden(name, "triton");
  auto graph = json::parse(shape.described.graph);
  for (const auto* part : {"inputs", "nodes"})
    for (auto& tensor : graph[part]) {
      tensor["shape"] = {n, n};
      tensor["dtype"] = type;
    }
  shape.name = "large_" + name + "_" + type;
  shape.described.graph = graph.dump();
  return shape;
}

struct modules {
  temp_dir dir = std::move(*temp_dir::create("pragma-targets-"));
  std::vector<std::string> arguments; ///< of triton_targets.py

  void add(const golden_shape& shape, const candidate& c, const std::string& variant) {
    const auto module = dir.path() / (shape.name + "_" + variant + ".py"), graph = dir.path() / (shape.name + ".json");
    REQUIRE(write_file_atomic(module, c.source));
    REQUIRE(write_file_atomic(graph, "{\"graph\": " + shape.described.graph + "}"));
    arguments.push_back(module.string());
    arguments.push_back(graph.string());
  }
};

golden_shape on(const device& d, golden_shape shape) {
  auto& m = shape.options.machine;
  m.backend = d.backend;
  m.arch = d.name;
  m.compute_units = d.units;
  m.shared_bytes = d.shared;
  m.warp_size = d.warp;
  return shape;
}

} // namespace

TEST_CASE("Triton compiles our modules for GPUs that are not here", "[targets]") {
  const auto python = python_with("triton");
  if (python.empty())
    return skip(std::to_string(std::size(devices)) + " targets, since neither PRAGMA_TRITON_PYTHON nor PRAGMA_OTHER_PYTHON names a Python with the package triton");
  for (const auto& d : devices) {
    modules written;
    for (const auto& name : shapes) {
      const auto shape = on(d, golden(name, "triton"));
      written.add(shape, *coder_of(shape).next(std::nullopt), "start");
    }
    for (const auto* name : {"product", "product_in_triangle"})
      for (const auto* type : {"float32", "float16", "bfloat16"}) {
        const auto shape = on(d, large(name, type));
        written.add(shape, *coder_of(shape).next(std::nullopt), "start");
      }
    auto drawn_from = on(d, large("product", "float32"));
    drawn_from.options.search = search_mode::random; // what moves can make of it
    auto coder = coder_of(drawn_from);
    for (int i = 0; i < 3; ++i)
      if (const auto drawn = coder.next(std::nullopt)) written.add(drawn_from, *drawn, "random" + std::to_string(i));
    process_spec spec;
    spec.argv = {python, TESTS_DIR "/synthesis/triton_targets.py", d.name};
    spec.argv.insert(spec.argv.end(), written.arguments.begin(), written.arguments.end());
    spec.limits.wall_seconds = 300;
    const auto ran = run_process(spec);
    REQUIRE(ran);
    INFO(d.name << "\n" << ran->out << ran->err);
    CHECK(ran->ok());
    CHECK(std::count(ran->out.begin(), ran->out.end(), '\n') == static_cast<long>(written.arguments.size() / 2));
  }
}

TEST_CASE("no move leads to what a device cannot start", "[targets]") {
  for (const auto& d : devices) {
    auto shape = on(d, large("product", "float32"));
    shape.options.search = search_mode::random;
    auto coder = coder_of(shape);
    for (int i = 0; i < 100; ++i) {
      const auto made = coder.next(std::nullopt);
      if (!made) break;
      const auto schedule = json::parse(made->schedule)["regions"][0];
      INFO(d.name << ": " << schedule.dump());
      if (d.backend == std::string("rocm")) CHECK(schedule["precision"] == "ieee");
      auto blocks = schedule["alternatives"];
      blocks.push_back(schedule["block"]);
      for (const auto& b : blocks) {
        const auto side = std::max(b["lanes"].get<int64_t>(), b["columns"].get<int64_t>());
        const auto tiles = b["lanes"].get<int64_t>() + b["columns"].get<int64_t>() + (schedule["split_first"].get<bool>() ? side : 0);
        CHECK(tiles * b["steps"].get<int64_t>() * b["stages"].get<int64_t>() * 4 <= d.shared);
        CHECK(b["warps"].get<int>() * d.warp <= 1024);
      }
    }
  }
}
