// What retrieval costs at 1,000, 10,000 and 100,000 entries (synthetic names over real structure): building (seconds, peak
// memory, bytes on disk), asking inside a process (p50, p99, split), and from cold: start, open, ask.
//   retrieval_speed [COUNT...]
#include "bench/need.hpp"
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "knowledge/retrieval.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

using namespace pragma;
using namespace pragma::bench;
namespace fs = std::filesystem;

namespace {

struct part {
  const char *piece, *words;
};
constexpr std::array<part, 16> units = {{{"smsp", "sub-partition of the multiprocessor"}, {"sm", "streaming multiprocessor"}, {"l1tex", "first level and texture cache"},
    {"lts", "slice of the second level cache"}, {"dram", "device memory"}, {"l2", "second level cache"}, {"llc", "last level cache"}, {"tlb", "translation buffer"},
    {"mem", "memory subsystem"}, {"idq", "decode queue"}, {"uops", "micro-operations"}, {"fe", "front end"}, {"be", "back end"}, {"noc", "mesh between cores"},
    {"pcie", "link to the host"}, {"nvlink", "link between devices"}}};
constexpr std::array<part, 16> objects = {{{"inst", "instructions"}, {"warps", "warps"}, {"sectors", "sectors"}, {"requests", "requests"}, {"loads", "loads"},
    {"stores", "stores"}, {"bytes", "bytes"}, {"cycles", "cycles"}, {"branches", "branches"}, {"walks", "page walks"}, {"prefetches", "prefetches"},
    {"evictions", "evicted lines"}, {"snoops", "snoops"}, {"fills", "line fills"}, {"wavefronts", "wavefronts"}, {"transactions", "transactions"}}};
constexpr std::array<part, 12> events = {{{"executed", "that were executed"}, {"retired", "that were retired"}, {"issued", "that were issued"}, {"stalled", "that had to wait"},
    {"hit", "that were found there"}, {"missed", "that were not found there"}, {"active", "in which work was under way"}, {"replayed", "that were issued again"},
    {"throttled", "held back for lack of credit"}, {"pending", "outstanding at any moment"}, {"dropped", "given up before they ended"}, {"merged", "joined with one under way"}}};
constexpr std::array<part, 12> causes = {{{"global", "to global memory"}, {"shared", "to shared memory"}, {"local", "to spilled registers"}, {"texture", "of texture fetches"},
    {"const", "to constants"}, {"barrier", "behind a barrier"}, {"scoreboard", "for a result of memory"}, {"dispatch", "at dispatch"}, {"remote", "of another socket"},
    {"demand", "that the program asked for"}, {"spec", "on a path that was given up"}, {"any", "of any kind"}}};
constexpr std::array<const char*, 8> readings = {{"A high value points to latency that nothing hides.", "A low share means that the unit is idle.",
    "High values together with low bandwidth suggest small, scattered accesses.", "Compare it with the cycles of the same unit.",
    "Above a tenth it is worth a look at the loop order.", "It grows with the working set.", "It is no problem by itself.", "Blocking or tiling lowers it."}};

/// Entry i of the synthetic compendium, the same every time. The mixed-radix digits of i choose the pieces; beyond the product a port is added.
entry synthetic(size_t i) {
  entry e;
  size_t digits = i * 2654435761u % 1'000'003 + i / 1'000'003 * 1'000'003; // neighbours should not look alike
  auto take = [&](size_t base) {
    const size_t digit = digits % base;
    digits /= base;
    return digit;
  };
  const auto &u = units[take(units.size())], &o = objects[take(objects.size())], &v = events[take(events.size())], &c = causes[take(causes.size())];
  const auto extra = digits;
  const size_t style = i % 3;
  const std::string port = extra ? "p" + std::to_string(extra) : "";
  if (style == 0) e.name = std::string(u.piece) + "__" + o.piece + "_" + v.piece + "_" + c.piece + (port.empty() ? "" : "_" + port);
  else if (style == 1) {
    e.name = std::string(u.piece) + "_" + o.piece + "." + v.piece + "_" + c.piece + (port.empty() ? "" : "_" + port);
    std::transform(e.name.begin(), e.name.end(), e.name.begin(), [](unsigned char x) { return static_cast<char>(std::toupper(x)); });
  } else e.name = std::string(u.piece) + "-" + o.piece + "-" + v.piece + "-" + c.piece + (port.empty() ? "" : "-" + port);
  constexpr std::array<const char*, 3> profilers = {{"ncu", "intel", "perf"}};
  e.profiler = profilers[style];
  e.id = e.profiler + "/" + e.name;
  e.unit = o.piece;
  e.meaning = std::string("Counts ") + o.words + " " + v.words + " in the " + u.words + ", " + c.words + (port.empty() ? "." : ", on port " + std::to_string(extra) + ".");
  e.measurement = std::string("Sum over all instances of the ") + u.words + "; multiplexed when more than eight events are collected.";
  e.reading = readings[i % readings.size()];
  if (i % 10 == 0) e.family = e.name;
  return e;
}

retriever::corpus corpus_of(size_t count, size_t& at, entry& current) {
  return {[&at] { at = 0; }, [count, &at, &current]() -> const entry* {
            if (at == count) return nullptr;
            current = synthetic(at++);
            return &current;
          }};
}

std::vector<std::string> questions_for(size_t entries) {
  std::mt19937 random(5);
  std::vector<std::string> all;
  for (int i = 0; i < 200; ++i) {
    const auto e = synthetic(random() % entries);
    const auto words = split(e.meaning, ' ');
    std::string text = i % 4 == 0 ? "what does " + e.name + " mean" : "why are there so many";
    if (i % 4 != 0)
      for (const auto& w : words)
        if (random() % 3 != 0) text += " " + w;
    all.push_back(text);
  }
  return all;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(share * static_cast<double>(values.size())))];
}

int build(size_t count, const fs::path& folder) {
  size_t at = 0;
  entry current;
  const auto start = clock_type::now();
  auto last = start;
  std::string phase = "words", times;
  const auto info = need(retriever::build(corpus_of(count, at, current), 1, {}, folder, [&](std::string_view what, int64_t, int64_t) {
    if (what == phase) return;
    times += phase + " " + format_seconds(since(last)) + ", ";
    phase = what;
    last = clock_type::now();
  }));
  std::printf("%.3f %llu %s %s%s %s\n", since(start), static_cast<unsigned long long>(info.bytes), info.vectors.c_str(), times.c_str(), phase.c_str(),
              format_seconds(since(last)).c_str());
  return 0;
}

/// As `pragma ask` opens it: with the shipped glossary, whose words are searched as well.
retriever open_index(const fs::path& folder) {
  const auto file = share_dir() / "glossary.json";
  return need(retriever::open(folder, 1, {}, need(parse_glossary(need(read_file(file)), file.string()))));
}

int ask_many(size_t count, const fs::path& folder) {
  const auto index = open_index(folder);
  const auto questions = questions_for(count);
  std::vector<double> all, lexical, dense, fusion;
  for (int round = 0; round < 2; ++round) // the first warms up
    for (const auto& text : questions) {
      const auto start = clock_type::now();
      const auto found = need(index.ask({text}));
      if (round == 0) continue;
      all.push_back(since(start));
      lexical.push_back(found.seconds.lexical);
      dense.push_back(found.seconds.dense);
      fusion.push_back(found.seconds.fusion);
    }
  for (const auto& [name, values] : {std::pair{"all", &all}, std::pair{"lexical", &lexical}, std::pair{"dense", &dense}, std::pair{"fusion", &fusion}})
    std::printf("  ask %-8s p50 %9s  p99 %9s\n", name, format_seconds(quantile(*values, 0.5)).c_str(), format_seconds(quantile(*values, 0.99)).c_str());
  return 0;
}

int ask_once(const fs::path& folder, const std::string& text) {
  const auto index = open_index(folder);
  const auto found = need(index.ask({text}));
  std::printf("%s\n", found.hits.empty() ? "" : found.hits[0].id.c_str());
  return 0;
}

process_result run_self(std::vector<std::string> arguments) {
  process_spec spec;
  spec.argv = {fs::read_symlink("/proc/self/exe").string()};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  auto result = need(run_process(spec));
  if (!result.ok()) {
    std::fprintf(stderr, "%s%s", result.out.c_str(), result.err.c_str());
    std::exit(1);
  }
  return result;
}

} // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 3 && arguments[0] == "build") return build(std::strtoull(arguments[1].c_str(), nullptr, 10), arguments[2]);
  if (arguments.size() == 3 && arguments[0] == "ask") return ask_many(std::strtoull(arguments[1].c_str(), nullptr, 10), arguments[2]);
  if (arguments.size() == 3 && arguments[0] == "cold") return ask_once(arguments[1], arguments[2]);
  std::vector<size_t> counts;
  for (const auto& a : arguments) counts.push_back(std::strtoull(a.c_str(), nullptr, 10));
  if (counts.empty()) counts = {1'000, 10'000, 100'000};
  for (const size_t count : counts) {
    if (count == 0) {
      std::fprintf(stderr, "usage: retrieval_speed [COUNT...]\n");
      return 2;
    }
    const auto dir = need(temp_dir::create("retrieval-speed"));
    const auto folder = dir.path().string();
    const auto built = run_self({"build", std::to_string(count), folder});
    const double seconds = std::strtod(built.out.c_str(), nullptr);
    std::printf("%zu entries: built in %s (CPU %s, %.2f ms an entry), peak %s; %s", count, format_seconds(seconds).c_str(), format_seconds(built.cpu_seconds).c_str(),
                1e3 * built.cpu_seconds / static_cast<double>(count), format_bytes(static_cast<double>(built.max_rss_bytes)).c_str(), built.out.c_str());
    std::printf("%s", run_self({"ask", std::to_string(count), folder}).out.c_str());
    std::vector<double> cold, cold_cpu;
    for (int i = 0; i < 21; ++i) {
      const auto result = run_self({"cold", folder, questions_for(count)[static_cast<size_t>(i)]});
      cold.push_back(result.wall_seconds);
      cold_cpu.push_back(result.cpu_seconds);
    }
    std::printf("  cold: start, open, ask   p50 %9s  worst %9s  (CPU p50 %s)\n", format_seconds(quantile(cold, 0.5)).c_str(),
                format_seconds(quantile(cold, 1)).c_str(), format_seconds(quantile(cold_cpu, 0.5)).c_str());
    std::fflush(stdout);
  }
  return 0;
}
