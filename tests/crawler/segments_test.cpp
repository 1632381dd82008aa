// Documents cut into segments: metric records from tables and definitions, prose by headings, and the names that make the difference.
#include "page_helpers.hpp"
#include "tests/fixtures/skip.hpp"

#include <algorithm>
#include <set>

using namespace pragma;
using namespace pragma::test;

TEST_CASE("what looks like a metric's name, and what does not") {
  static const char* const names[] = {
    "Bcm", "Ir", "I1mr", "DLmr", "D1mw", "Bc", "Bi", "Bim", "AcCost1", "cache-misses", "branch-misses", "L1-dcache-load-misses", "task-clock",
    "stalled-cycles-frontend", "topdown-fe-bound", "context-switches", "smsp__cycles_active.avg", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__bytes_read.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "INST_RETIRED.ANY", "SQ_WAVES", "FETCH_SIZE", "CPU_CLK_UNHALTED.THREAD",
    "L1D_CACHE_REFILL", "tma_frontend_bound", "l2_rqsts.miss", "ex_ret_brn_misp", "achieved_occupancy", "duration_time", "VALUBusy", "MemUnitStalled",
    "L2CacheHit", "aic_mac_ratio", "IPC", "Frontend_Bound"};
  static const char* const others[] = {
    "", "a", "the", "Cachegrind", "cache", "misses", "floating-point", "command-line", "multi-threaded", "cross-references", "cg_annotate",
    "file_name", "--show", "-e", "main.cpp", "concord.c", "cachegrind.out", "/usr/lib/x.so", "https://h/x", "www.h.org", "1.2.3", "v1.2", "0x1f",
    "42", "e.g.", "i.e", "JavaScript", "OpenMP", "GitHub", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "VALGRIND_OPTS", "std::vector", "pthread_create",
    "__init__", "L2", "x86-64", "size_t", "getc.c:_IO_getc", "U.S.", "non-branches", "PERF_SAMPLE_READ", "a b", "sched:sched_switch", "CPU-bound",
    "file_read_cycles"};
  for (const auto* word : names) {
    INFO(word);
    CHECK(looks_like_metric(word));
  }
  for (const auto* word : others) {
    INFO(word);
    CHECK_FALSE(looks_like_metric(word));
  }
}

TEST_CASE("rows and definitions that name a metric are records with all their columns") {
  const auto all = cut(parsed(page_format::html, data_file("sphinx.html")));
  const auto* hits = find_record(all, "L1_HITS_ALL");
  REQUIRE(hits);
  CHECK(hits->kind == "row");
  CHECK(hits->anchor == "row-hits");
  CHECK(hits->url == "https://docs.example/guide/page.html");
  CHECK(hits->headings == std::vector<std::string>{"Counter reference \xe2\x80\x94 Some Profiler 2.0", "Cache counters"});
  CHECK(hits->record.description == "Accesses that the first level served.");
  CHECK(hits->record.fields == std::map<std::string, std::string>{{"Where Core", "yes"}, {"Where Slice", "lines"}});
  CHECK(hits->text == "Counter: L1_HITS_ALL\nWhere Core: yes\nWhere Slice: lines\nDescription: Accesses that the first level served.");
  const auto* fills = find_record(all, "L2_LINE_FILLS");
  REQUIRE(fills);
  CHECK(fills->kind == "definition");
  CHECK(fills->anchor == "counter-l2");
  CHECK(contains(fills->text, "High values indicate a working set that does not fit."));
  // An option is no metric, but can be asked for.
  REQUIRE(find_record(all, "--verbose"));
  CHECK(find_record(all, "--verbose")->record.kind == "option");
  CHECK(find_record(all, "--verbose")->record.description == "Print more.");
  CHECK(std::any_of(all.begin(), all.end(),
                    [](const auto& s) { return s.kind == "prose" && contains(s.text, "Counters of other levels follow."); }));
}

TEST_CASE("a column of names is found by its header, or by what stands in it") {
  auto records = [](const std::string& html) {
    std::set<std::string> found;
    for (const auto& s : cut(parsed(page_format::html, html)))
      if (s.has_record) found.insert(s.record.name + "[" + s.record.unit + "]");
    return found;
  };
  using names = std::set<std::string>;
  CHECK(records("<table><tr><th>Metric<th>Unit<th>Description<tr><td>L2 Hit Rate<td>%<td>Share of hits.</table>") ==
        names{"L2 Hit Rate[%]"});
  CHECK(records("<table><tr><th>Name<th>Meaning<tr><td>EX_A_MISS<td>one<tr><td>EX_B_MISS<td>two</table>") ==
        names{"EX_A_MISS[]", "EX_B_MISS[]"});
  CHECK(records("<table><tr><td>EX_A_MISS<td>one thing<tr><td>EX_B_MISS<td>another thing</table>") == names{"EX_A_MISS[]", "EX_B_MISS[]"});
  CHECK(records("<table><tr><th>Metric<th>Description<tr><td>Task Duration(us)<td>Time of the task.</table>") ==
        names{"Task Duration[us]"});
  CHECK(records("<table><tr><th>Event<th>Description<tr><td>D1mr, D1mw<td>Misses of reads and writes.</table>") ==
        names{"D1mr[]", "D1mw[]"});
  CHECK(records("<table><tr><th>Counter name<th>Event name<tr><td>PMC0<td>EX_RETIRED_ANY</table>") == names{"EX_RETIRED_ANY[]"});
  CHECK(records("<table><tr><th>Name<th>Description<tr><td>Alice<td>wrote it<tr><td>Bob<td>read it</table>").empty());
  CHECK(records("<table><tr><th>Option<th>Description<tr><td>--events<td>which to count</table>").empty());
  CHECK(records("<table><tr><th>Metric Type<th>Value<tr><td>counter<td>3</table>").empty());
  CHECK(records("<p>no table</p>").empty());
}

TEST_CASE("prose is cut at headings and paragraphs, never lost") {
  std::string html = "<title>Manual</title><h1 id=top>First</h1>";
  for (int i = 0; i < 10; ++i) {
    html += "<p id=p" + std::to_string(i) + ">Paragraph " + std::to_string(i);
    for (int k = 0; k < 60; ++k) html += " word" + std::to_string(k);
    html += ".</p>";
  }
  html += "<pre>listing of the last paragraph</pre><h2 id=sub>Second</h2><p>Short words here.</p><h1 id=next>Third</h1><p>Other "
          "words here.</p>";
  const auto all = cut(parsed(page_format::html, html));
  std::string together;
  for (const auto& s : all) {
    CHECK(s.text.size() <= 2200);
    CHECK(s.kind == "prose");
    together += s.text + "\n";
  }
  for (int i = 0; i < 10; ++i) CHECK(contains(together, "Paragraph " + std::to_string(i) + " "));
  CHECK(all.front().anchor == "p0");
  CHECK(all.front().headings == std::vector<std::string>{"Manual", "First"});
  const auto second = std::find_if(all.begin(), all.end(), [](const auto& s) { return contains(s.text, "Short words"); });
  REQUIRE(second != all.end());
  CHECK(second->headings == std::vector<std::string>{"Manual", "First", "Second"});
  CHECK(second->anchor == "sub");
  CHECK(all.back().headings == std::vector<std::string>{"Manual", "Third"});
  const auto listing = std::find_if(all.begin(), all.end(), [](const auto& s) { return contains(s.text, "    listing of"); });
  REQUIRE(listing != all.end());
  CHECK(contains(listing->text, "Paragraph 9"));
}

TEST_CASE("one endless paragraph is cut at sentences, one endless word somewhere") {
  std::string sentences;
  for (int i = 0; i < 400; ++i) sentences += "Sentence number " + std::to_string(i) + " ends here. ";
  const auto all = cut(parsed(page_format::html, "<p>" + sentences + "</p>"));
  CHECK(all.size() > 5);
  for (const auto& s : all) {
    CHECK(s.text.size() <= 2200);
    CHECK(s.text.starts_with("Sentence"));
    CHECK(s.text.ends_with("here."));
  }
  std::string word, together;
  for (int i = 0; word.size() < 50'000; ++i) word += "x" + std::to_string(i);
  for (const auto& s : cut(parsed(page_format::html, "<p>" + word + "</p>"))) together += s.text;
  CHECK(together == word);
}

TEST_CASE("a segment is the same wherever its page lies, and another when any word of it changes") {
  const auto d = parsed(page_format::html, data_file("sphinx.html"));
  const auto here = segments_of(d, "p", "https://a/x.html", "2026-01-01");
  const auto there = segments_of(d, "p", "https://b/y.html", "2026-02-02");
  REQUIRE(here.size() == there.size());
  std::set<std::string> ids;
  for (size_t i = 0; i < here.size(); ++i) {
    CHECK(here[i].id == there[i].id);
    CHECK(here[i].id.size() == 64);
    ids.insert(here[i].id);
  }
  CHECK(ids.size() == here.size());
  auto s = here.front();
  const auto before = segment_id(s);
  s.text += ".";
  CHECK(segment_id(s) != before);
  s = here.front();
  s.profiler = "q";
  CHECK(segment_id(s) != before);
  s = here.front();
  s.headings = {"a", "bc"};
  auto other = s;
  other.headings = {"ab", "c"};
  CHECK(segment_id(s) != segment_id(other));
}

TEST_CASE("Valgrind's manual of this machine: the list of event names, with its place") {
  const std::string file = "/usr/share/doc/valgrind/html/cg-manual.html";
  auto bytes = read_file(file);
  if (!bytes) {
    pragma::test::skip(std::string(file) + " is not there (package valgrind)");
    return;
  }
  const auto d = parsed(page_format::html, *bytes, "file://" + file);
  const auto all = segments_of(d, "valgrind", "file://" + file, "2026-01-01");
  const auto events = std::find_if(all.begin(), all.end(), [](const auto& s) {
    return contains(s.text, "Conditional branches executed (Bc) and conditional branches mispredicted (Bcm).");
  });
  REQUIRE(events != all.end());
  const bool newer = contains(events->headings.back(), "Cache and Branch Simulation"); // Valgrind 3.21 moved the list
  CHECK(events->anchor == (newer ? "cg-manual.cache-branch-sim" : "cg-manual.overview"));
  CHECK(events->headings.back() == (newer ? "5.2.11. Cache and Branch Simulation" : "5.1. Overview"));
  if (!newer) CHECK(contains(events->text, "Cachegrind gathers the following statistics"));
  CHECK_FALSE(std::any_of(all.begin(), all.end(), [](const auto& s) { return contains(s.text, "Table of Contents"); }));
  CHECK(std::any_of(d.links.begin(), d.links.end(), [](const auto& l) { return contains(l.target, "/cl-manual.html"); }));
}
