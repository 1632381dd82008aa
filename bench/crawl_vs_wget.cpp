// How fast is a crawl with extraction against a mirror without? A local site of 1,000 pages, no politeness delay, and in turns our
// crawl (parse, segments, every page stored in an append-only file) and `wget --mirror` on the same server.
//
//   crawl_vs_wget [ROUNDS] [PAGES]
//
// Prints pages/s of each round and the median ratio; also CPU seconds (server included on both sides), which say more where other work
// shares the machine. Exit code 1 when a side did not get all pages.
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "crawler/crawl.hpp"

#include "site_server.hpp"
#include "stores.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <sys/resource.h>

using namespace pragma;

namespace {

using clock_type = std::chrono::steady_clock;

double since(clock_type::time_point start) { return std::chrono::duration<double>(clock_type::now() - start).count(); }

/// A page as documentation generators make them: navigation, sections with anchors, a table of metrics. Some 12 KB.
std::string page_text(int number, int pages) {
  static const char* words[] = {"instructions", "cycles",  "retired", "stalled",  "by",     "the",     "memory",  "subsystem", "per",    "warp",
                                "scheduler",    "counted", "when",    "requests", "reach",  "second",  "level",   "cache",     "and",    "miss",
                                "bandwidth",    "is",      "limited", "occupancy", "divided", "elapsed", "sampled", "register",  "spills", "to"};
  uint32_t state = static_cast<uint32_t>(number) * 2654435761u + 1;
  const auto random = [&] { return state = state * 1664525u + 1013904223u, state >> 16; };
  const auto sentence = [&](int length) {
    std::string out;
    for (int i = 0; i < length; ++i) out += std::string(i ? " " : "") + words[random() % std::size(words)];
    return out + ".";
  };
  const auto id = std::to_string(number);
  std::string out = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Metrics of unit " + id +
                    "</title></head><body><nav><ul>";
  for (int i = 0; i < 20; ++i) {
    const int to = (number + i * 37 + 1) % pages;
    out += "<li><a class=\"reference internal\" href=\"p" + std::to_string(to) + ".html\">Unit " + std::to_string(to) + "</a></li>";
  }
  for (const int to : {2 * number + 1, 2 * number + 2})
    if (to < pages) out += "<li><a href=\"p" + std::to_string(to) + ".html#metrics\">Below</a></li>";
  out += "</ul></nav><main><h1 id=\"top\">Metrics of unit " + id + "</h1>";
  for (int section = 0; section < 6; ++section) {
    out += "<section><h2 id=\"s" + std::to_string(section) + "\">Section " + std::to_string(section) + "</h2>";
    for (int paragraph = 0; paragraph < 4; ++paragraph) out += "<p>" + sentence(12) + " " + sentence(20) + " <code>unit" + id + "_busy</code> " + sentence(15) + "</p>";
    out += "</section>";
  }
  out += "<h2 id=\"metrics\">Metrics</h2><table><thead><tr><th>Metric</th><th>Unit</th><th>Description</th></tr></thead><tbody>";
  for (int row = 0; row < 12; ++row)
    out += "<tr><td><code>unit" + id + "__events_" + std::to_string(row) + ".sum</code></td><td>cycles</td><td>" + sentence(14) + "</td></tr>";
  return out + "</tbody></table></main></body></html>";
}

/// Of this process and the children that have ended.
double cpu_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    for (const auto& t : {usage.ru_utime, usage.ru_stime}) sum += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  }
  return sum;
}

struct measured {
  double seconds = 0, cpu = 0;
  int64_t pages = 0, segments = 0;
};

expected<measured> our_crawl(const std::string& url, const std::filesystem::path& folder) {
  test::test_store store((folder / "store").string());
  doc_source source;
  source.profiler = "bench";
  source.docs = {url};
  source.allow_private = true;
  source.delay_seconds = 0;
  source.max_pages = 1'000'000;
  source.max_depth = 1'000;
  const auto start = clock_type::now();
  const double cpu = cpu_seconds();
  auto result = crawl(source, store, {});
  if (!result) return fail(result.error());
  return measured{since(start), cpu_seconds() - cpu, result->fetched, result->segments};
}

expected<measured> wget_mirror(const std::string& url, const std::filesystem::path& folder) {
  process_spec spec;
  spec.argv = {"wget", "--mirror", "--quiet", "--directory-prefix", folder.string(), url};
  const auto start = clock_type::now();
  const double cpu = cpu_seconds();
  auto run = run_process(spec);
  if (!run) return fail(run.error());
  measured out;
  out.seconds = since(start);
  out.cpu = cpu_seconds() - cpu;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) out.pages += file.path().extension() == ".html" && file.path().filename() != "robots.txt";
  return out;
}

} // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  const int pages = argc > 2 ? std::atoi(argv[2]) : 1000;
  if (rounds < 1 || pages < 2) {
    std::fprintf(stderr, "usage: crawl_vs_wget [ROUNDS] [PAGES]\n");
    return 2;
  }
  test::site_server site;
  site.recording = false;
  size_t bytes = 0;
  for (int i = 0; i < pages; ++i) {
    auto text = page_text(i, pages);
    bytes += text.size();
    site.set("/docs/p" + std::to_string(i) + ".html", test::html(std::move(text)));
  }
  const auto url = site.url("/docs/p0.html");
  std::printf("%d pages, %s, served on loopback without delay\n", pages, format_bytes(static_cast<double>(bytes)).c_str());
  std::vector<double> ratios;
  double our_best = 0, wget_best = 0;
  bool all = true;
  for (int round = 0; round < rounds; ++round) {
    auto folder = temp_dir::create("pragma-crawl-bench-");
    if (!folder) {
      std::fprintf(stderr, "%s\n", render(folder.error()).c_str());
      return 6;
    }
    std::filesystem::create_directories(folder->path() / "ours");
    std::filesystem::create_directories(folder->path() / "wget");
    expected<measured> ours, wget;
    if (round % 2 == 0) {
      ours = our_crawl(url, folder->path() / "ours");
      wget = wget_mirror(url, folder->path() / "wget");
    } else {
      wget = wget_mirror(url, folder->path() / "wget");
      ours = our_crawl(url, folder->path() / "ours");
    }
    for (const auto* side : {&ours, &wget})
      if (!*side) {
        std::fprintf(stderr, "%s\n", render(side->error()).c_str());
        return 6;
      }
    const double our_rate = static_cast<double>(ours->pages) / ours->seconds, wget_rate = static_cast<double>(wget->pages) / wget->seconds;
    ratios.push_back(our_rate / wget_rate);
    our_best = std::max(our_best, our_rate);
    wget_best = std::max(wget_best, wget_rate);
    all = all && ours->pages == pages && wget->pages == pages;
    std::printf("round %d: crawl %.0f pages/s (%lld pages, %lld segments, %.2f CPU s), wget %.0f pages/s (%lld pages, %.2f CPU s), ratio %.2f\n", round + 1,
                our_rate, static_cast<long long>(ours->pages), static_cast<long long>(ours->segments), ours->cpu, wget_rate,
                static_cast<long long>(wget->pages), wget->cpu, ratios.back());
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf("median ratio %.2f (min %.2f, max %.2f) over %d rounds; best against best: crawl %.0f, wget %.0f pages/s, ratio %.2f\n",
              ratios[ratios.size() / 2], ratios.front(), ratios.back(), rounds, our_best, wget_best, our_best / wget_best);
  if (!all) std::fprintf(stderr, "a side did not get all pages\n");
  return all ? 0 : 1;
}
