// A compendium of a few entries, built and opened, for tests of retrieval.
#pragma once

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "knowledge/retrieval.hpp"
#include "stub_server.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

namespace pragma::test {

namespace fs = std::filesystem;

inline entry make(const std::string& profiler, const std::string& name, const std::string& meaning, std::vector<std::string> aliases = {}) {
  entry e;
  e.profiler = profiler;
  e.name = name;
  e.id = profiler + "/" + name;
  std::transform(e.id.begin(), e.id.end(), e.id.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  e.meaning = meaning;
  e.aliases = std::move(aliases);
  return e;
}

inline std::vector<entry> small_compendium() {
  std::vector<entry> all = {
      make("perf", "branch-misses", "Branches that the predictor guessed wrong, so that work in flight was thrown away."),
      make("perf", "branches", "Branch instructions that were retired.", {"branch-instructions"}),
      make("perf", "cache-misses", "Accesses that the last level cache could not serve.", {"LLC misses"}),
      make("perf", "cache-references", "Accesses that reached the last level cache."),
      make("perf", "LLC-load-misses", "Loads that missed the last cache before memory."),
      make("perf", "L1-dcache-load-misses", "Loads that missed the first data cache."),
      make("perf", "dTLB-load-misses", "Loads whose address translation was not in the data TLB.", {"data TLB misses"}),
      make("perf", "cycles", "Clock cycles of the core.", {"cpu-cycles"}),
      make("perf", "instructions", "Instructions retired."),
      make("perf", "page-faults", "Pages that were not mapped when the program touched them."),
      make("perf", "context-switches", "How often the kernel gave the core to another thread."),
      make("likwid", "cycles", "Core clock cycles in likwid's groups."),
      make("valgrind", "Bcm", "Conditional branches mispredicted in the simulation.", {"conditional branches mispredicted"}),
      make("valgrind", "Bc", "Conditional branches executed in the simulation."),
      make("valgrind", "D1mr", "Reads that miss the simulated first data cache."),
      make("valgrind", "Ir", "Instructions read, which is instructions executed."),
      make("ncu", "smsp__inst_executed", "Warp instructions that were executed."),
      make("ncu", "smsp__inst_executed.avg.per_cycle_active", "Warp instructions executed per active cycle."),
      make("ncu", "smsp__thread_inst_executed_per_inst_executed", "Threads that were active in an executed warp instruction."),
      make("ncu", "sm__warps_active", "Warps that are resident on a multiprocessor."),
      make("ncu", "dram__bytes", "Bytes moved to and from device memory."),
      make("ncu", "lts__t_sector_hit_rate", "Share of sectors found in the second level cache."),
      make("ncu", "branch_efficiency", "Share of branches in which all threads of a warp went the same way."),
      make("", "occupancy", "Resident warps over the most that a multiprocessor can hold.", {"achieved occupancy"}),
      make("", "bank conflict", "Threads of a warp that access different words of the same bank of shared memory wait for each other.", {"shared memory bank conflict"}),
      make("", "roofline", "A bound on performance by peak arithmetic and memory bandwidth against arithmetic intensity."),
  };
  for (const char* chip : {"Zen 3", "Zen 4", "Sapphire Rapids", "Ice Lake"}) {
    auto e = make("perf", std::string("l2_pf_hit_") + chip[0] + chip[4], "Prefetches of the second level cache that hit.");
    e.name = "l2_pf_hit";
    e.id = std::string("perf/l2_pf_hit@") + chip;
    e.hardware = {chip};
    e.family = "l2_pf_hit";
    all.push_back(e);
  }
  return all;
}

inline glossary small_glossary() {
  auto g = parse_glossary(R"({"_comment": "for tests",
    "expansions": {"llc": ["last level cache"], "misprediction": ["branch guessed wrong"], "be": ["back end"]},
    "profilers": {"ncu": ["nsight compute"], "valgrind": ["cachegrind", "callgrind"]},
    "hardware": {"zen 3": ["milan"], "zen 4": ["genoa"], "sapphire rapids": ["spr"]}})", "glossary.json");
  if (!g) FAIL(render(g.error()));
  return *g;
}

inline retriever::corpus corpus_of(const std::vector<entry>& entries, size_t& at) {
  return {[&at] { at = 0; }, [&]() -> const entry* { return at < entries.size() ? &entries[at++] : nullptr; }};
}

inline expected<index_info> build(const std::vector<entry>& entries, const fs::path& folder, int64_t generation = 1, const embedding_config& config = {}) {
  size_t at = 0;
  return retriever::build(corpus_of(entries, at), generation, config, folder);
}

inline retriever opened(const fs::path& folder, int64_t generation = 1, const embedding_config& config = {}, bool verify = false) {
  auto r = retriever::open(folder, generation, config, small_glossary(), verify);
  if (!r) FAIL(render(r.error()));
  return std::move(*r);
}

/// The small compendium, built once.
const retriever& small() {
  static const auto dir = temp_dir::create("retrieval");
  static const retriever r = [] {
    const auto info = build(small_compendium(), dir->path());
    if (!info) FAIL(render(info.error()));
    return opened(dir->path());
  }();
  return r;
}

inline found_entries ask(const std::string& text, size_t count = 5, const std::string& profiler = {}, const std::string& hardware = {},
                  retrieval_mode mode = retrieval_mode::fused) {
  auto found = small().ask({text, count, profiler, hardware}, mode);
  if (!found) FAIL(render(found.error()));
  return *found;
}

inline std::string first(const found_entries& found) { return found.hits.empty() ? "" : found.hits[0].id; }

inline bool among(const found_entries& found, const std::string& id) {
  return std::any_of(found.hits.begin(), found.hits.end(), [&](const hit& h) { return h.id == id; });
}

inline process_spec self(const std::string& name, const fs::path& folder) {
  process_spec spec;
  spec.argv = {fs::read_symlink("/proc/self/exe").string(), "[" + name + "]"};
  spec.env = {{"RETRIEVAL_FOLDER", folder.string()}};
  spec.limits.wall_seconds = 60;
  return spec;
}

inline fs::path folder_of_child() {
  const char* folder = std::getenv("RETRIEVAL_FOLDER");
  return folder ? folder : "";
}

inline size_t index_folders(const fs::path& folder) {
  size_t count = 0;
  for (const auto& item : fs::directory_iterator(folder)) count += item.path().filename().string().starts_with("index-");
  return count;
}

inline fs::path file_of(const fs::path& folder, const std::string& name) {
  for (const auto& item : fs::recursive_directory_iterator(folder))
    if (item.path().filename() == name) return item.path();
  return {};
}

} // namespace pragma::test
