// emit_triton OUT TASK.py...: writes the module of each task's starting schedule to OUT/TASK.py and its graph to OUT/TASK.json, for looking at, for
// runs on a device and for compiling for one that is not here (triton_targets.py). --variants N: also N schedules drawn at random, as OUT/TASK.v1.py
// and so on. --cpp: C++, as OUT/TASK.cpp; --simd-bits N: for vectors of that size, --threads N: for as many
// threads, --caches: for caches of these sizes, --copy: as fast as this (GB/s of copies in L1, L2, L3, memory). A developer's tool.
#include "base/files.hpp"
#include "base/text.hpp"
#include "reference/reference.hpp"
#include "synthesis/search/builtin.hpp"

#include <iostream>

int main(int argc, char** argv) {
  using namespace pragma;
  if (argc < 3) {
    std::cerr << "usage: emit_triton OUT [--cpp] [--simd-bits N] [--threads N] [--caches L1,L2,L3] [--copy L1,L2,L3,MEMORY] [--variants N] TASK.py...\n";
    return 2;
  }
  const std::filesystem::path out = argv[1];
  std::filesystem::create_directories(out);
  reference_options options_of_torch;
  options_of_torch.max_task_bytes = uint64_t{64} << 30; // nothing is allocated: tasks for a device may be larger than this machine
  auto torch = reference::start(options_of_torch);
  if (!torch) {
    std::cerr << render(torch.error()) << "\n";
    return 1;
  }
  int variants = 0, failed = 0, simd_bits = 0, threads = 1;
  std::vector<int64_t> caches;
  std::vector<double> copy;
  bool cpp = false;
  for (int i = 2; i < argc; ++i) {
    if (std::string(argv[i]) == "--variants" && i + 1 < argc) {
      variants = std::stoi(argv[++i]);
      continue;
    }
    if (std::string(argv[i]) == "--simd-bits" && i + 1 < argc) {
      simd_bits = std::stoi(argv[++i]);
      continue;
    }
    if (std::string(argv[i]) == "--caches" && i + 1 < argc) {
      for (const auto& size : split(argv[++i], ',')) caches.push_back(std::stoll(size));
      continue;
    }
    if (std::string(argv[i]) == "--copy" && i + 1 < argc) {
      for (const auto& speed : split(argv[++i], ',')) copy.push_back(std::stod(speed));
      continue;
    }
    if (std::string(argv[i]) == "--threads" && i + 1 < argc) {
      threads = std::stoi(argv[++i]);
      continue;
    }
    if (std::string(argv[i]) == "--cpp") {
      cpp = true;
      continue;
    }
    const std::filesystem::path file = argv[i];
    const auto task = torch->describe(file);
    if (!task) {
      std::cerr << file.filename().string() << ": " << render(task.error()) << "\n";
      ++failed;
      continue;
    }
    if (auto written = write_file_atomic(out / (file.stem().string() + ".json"), "{\"graph\": " + task->graph + "}"); !written) {
      std::cerr << render(written.error()) << "\n";
      return 1;
    }
    for (int v = 0; v <= variants; ++v) {
      builtin_options options;
      options.language = cpp ? "c++" : "triton";
      if (v > 0) options.search = search_mode::random;
      options.seed = static_cast<uint64_t>(v);
      options.threads = threads;
      options.machine.cache_bytes = caches;
      options.machine.copy_gbs = copy;
      if (simd_bits > 0) options.machine.simd_bits = simd_bits;
      auto coder = builtin_coder::create(*task, options);
      const auto made = coder ? coder->next(std::nullopt) : std::nullopt;
      if (!made) {
        if (!coder) std::cerr << file.filename().string() << ": " << render(coder.error()) << "\n";
        failed += coder ? 0 : 1;
        break;
      }
      const auto name = file.stem().string() + (v > 0 ? ".v" + std::to_string(v) : "") + (cpp ? ".cpp" : ".py");
      if (auto written = write_file_atomic(out / name, made->source); !written) {
        std::cerr << render(written.error()) << "\n";
        return 1;
      }
    }
  }
  return failed > 0 ? 1 : 0;
}
