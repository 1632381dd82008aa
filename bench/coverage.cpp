// What the built-in coder makes of tasks before anything runs: is there a graph, does one kernel compute it, how long is its text and how long does it take to
// compile; where no kernel computes all of it, what the cut leaves to Torch.
//   build/bin/coverage [--build] TASK.py...      one line a task, tab-separated; the texts go to pragma-out/coverage
// No input is made: tasks may be larger than this machine. Another Torch: PRAGMA_PYTHON.
#include "base/files.hpp"
#include "base/text.hpp"
#include "bench/need.hpp"
#include "execution/build.hpp"
#include "reference/reference.hpp"
#include "synthesis/partition/cut.hpp"
#include "synthesis/search/builtin.hpp"

#include <algorithm>
#include <cstring>
#include <set>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

const fs::path folder = "pragma-out/coverage";

/// A kernel's text in `language` as the first attempt would have it, and what it cost to write (and, if wanted, to compile).
std::string written(const task& t, const std::string& language, bool build) {
  builtin_options options;
  options.language = language;
  options.machine.simd_bits = 512;
  options.machine.cache_bytes = {32 << 10, 2 << 20, 32 << 20};
  if (language == "triton") { // an H100's
    options.machine.backend = "cuda";
    options.machine.arch = "sm_90";
    options.machine.compute_units = 132;
    options.machine.shared_bytes = 227 << 10;
    options.machine.warp_size = 32;
  }
  const auto start = bench::clock_type::now();
  auto coder = builtin_coder::create(t, options);
  if (!coder) return "not: " + coder.error().message;
  const auto made = coder->next(std::nullopt);
  if (!made) return "nothing to offer";
  auto said = format_number(bench::since(start), 2) + " s, " + std::to_string(made->source.size() >> 10) + " KiB";
  bench::need(write_file_atomic(folder / (t.name + (language == "c++" ? ".cpp" : ".py")), made->source));
  if (!build || language != "c++") return said;
  const auto compile = bench::clock_type::now();
  const auto built = build_candidate(*made, {});
  return said + ", compiled in " + format_number(bench::since(compile), 1) + " s" + (built ? "" : ": " + built.error().message.substr(0, 200));
}

std::string parts_of_it(const task& t) {
  using namespace synthesis;
  const auto g = parse_graph(t.graph);
  if (!g) return g.error().message;
  const auto cut_at = cut(*g);
  if (!cut_at) return "not cut: " + cut_at.error().message;
  std::set<std::string> shapes;
  size_t ours = 0;
  for (const auto& p : cut_at->parts)
    if (p.ours) {
      ++ours;
      shapes.insert(shape_of(*g, p));
    }
  return std::to_string(ours) + " parts of ours, " + std::to_string(shapes.size()) + " different; Torch's: " + (cut_at->kept.empty() ? "nothing" : calls_of(cut_at->kept));
}

} // namespace

int main(int argc, char** argv) {
  bool build = false;
  int not_whole = 0;
  fs::create_directories(folder);
  reference_options options;
  options.max_task_bytes = uint64_t{1} << 40;
  auto torch = bench::need(reference::start(options));
  std::printf("task\ttrace\tnodes\tC++\tTriton\tcut\n");
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--build") == 0) {
      build = true;
      continue;
    }
    const fs::path file = argv[i];
    const auto start = bench::clock_type::now();
    const auto t = torch.describe(file);
    std::printf("%s\t%.1f s\t", file.stem().c_str(), bench::since(start));
    if (!t || t->graph.empty()) {
      std::printf("no graph: %s\n", t ? t->graph_error.c_str() : t.error().message.c_str());
      ++not_whole;
      if (!t) torch = bench::need(reference::start(options)); // one that was too slow is ended
      continue;
    }
    const auto cpp = written(*t, "c++", build), triton = written(*t, "triton", build);
    std::printf("%zu\t%s\t%s\t%s\n", json::parse(t->graph).at("nodes").size(), cpp.c_str(), triton.c_str(), parts_of_it(*t).c_str());
    std::fflush(stdout);
    not_whole += cpp.starts_with("not: ") || triton.starts_with("not: ");
  }
  return not_whole > 0 ? 1 : 0;
}
