// The knowledge store, manifests and consolidation.
#include "base/files.hpp"
#include "knowledge/consolidate.hpp"
#include "knowledge/knowledge_store.hpp"
#include "knowledge/library.hpp"
#include "knowledge/record_store.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

struct folder {
  temp_dir dir = std::move(*temp_dir::create("pragma-ks-"));
  fs::path store() const { return dir.path() / "knowledge"; }
  knowledge_store open(knowledge_store::mode m = knowledge_store::mode::read_write) const {
    auto opened = knowledge_store::open(store(), m);
    REQUIRE(opened);
    return std::move(*opened);
  }
};

segment piece(const std::string& text, const std::string& url = "https://host/a.html") {
  segment s;
  s.profiler = "perf";
  s.url = url;
  s.anchor = "top";
  s.headings = {"Events"};
  s.text = text;
  s.fetched = "2026-01-02T03:04:05Z";
  s.id = segment_id(s);
  return s;
}

page_record page(const std::string& url, page_state state = page_state::fetched) {
  page_record p;
  p.url = url;
  p.state = state;
  return p;
}

summary telling(const segment& s, const claim& c) {
  summary made;
  made.segment = s.id;
  made.by = "test 1";
  made.claims = {c};
  return made;
}

claim about(const std::string& name, const std::string& meaning) {
  claim c;
  c.name = name;
  c.meaning = meaning;
  c.quote = meaning;
  return c;
}

std::vector<segment> all_segments(const knowledge_store& store, const std::string& profiler) {
  std::vector<segment> all;
  REQUIRE(store.each_segment(profiler, [&](segment s) -> expected<void> {
    all.push_back(std::move(s));
    return {};
  }));
  return all;
}

entry starter(const std::string& name, const std::string& unit = "") {
  entry e;
  e.profiler = "perf";
  e.name = name;
  e.unit = unit;
  e.meaning = "what we say of " + name;
  return e;
}

} // namespace

TEST_CASE("a page is committed with its segments and the pages that it names, and replaced as a whole") {
  folder f;
  {
    auto store = f.open();
    REQUIRE(store.commit("perf", page("https://host/a.html"), std::vector{piece("one"), piece("two")}, {page("https://host/b.html", page_state::queued)}));
    REQUIRE(store.commit("perf", page("https://host/ab.html"), std::vector{piece("other", "https://host/ab.html")}, {}));
    REQUIRE(store.commit("perf", page("https://host/a.html", page_state::unchanged), std::nullopt, {}));
  }
  auto store = f.open();
  auto pages = store.pages("perf");
  REQUIRE(pages);
  REQUIRE(pages->size() == 3);
  CHECK(all_segments(store, "perf").size() == 3);
  CHECK(all_segments(store, "per").empty()); // no profiler's records stand in another's range
  REQUIRE(store.commit("perf", page("https://host/a.html"), std::vector{piece("new")}, {}));
  const auto left = all_segments(store, "perf");
  REQUIRE(left.size() == 2);
  CHECK(left[0].text == "new");
  CHECK(store.profilers_with_segments().value() == std::vector<std::string>{"perf"});
  REQUIRE(store.remove_profiler("perf"));
  CHECK(store.pages("perf")->empty());
  CHECK(all_segments(store, "perf").empty());
}

TEST_CASE("summaries are kept by content and version; what nothing needs is removed") {
  folder f;
  auto store = f.open();
  const auto used = piece("used"), unused = piece("unused");
  REQUIRE(store.commit("perf", page("https://host/a.html"), std::vector{used}, {}));
  REQUIRE(store.put_summaries({telling(used, about("cycles", "core cycles")), telling(unused, about("x", "y"))}));
  CHECK(store.get_summary(used.id, "test 1").value().has_value());
  CHECK_FALSE(store.get_summary(used.id, "test 2").value().has_value());
  CHECK(store.collect_garbage().value() == 1);
  CHECK(store.get_summary(used.id, "test 1").value().has_value());
  CHECK_FALSE(store.get_summary(unused.id, "test 1").value().has_value());
}

TEST_CASE("the generation counts changes of content, not of dates") {
  folder f;
  auto store = f.open();
  auto e = starter("cycles");
  e.id = entry_id("perf", "cycles");
  e.sources = {{"https://host/a.html#top", "id", "quote", "2026-01-01T00:00:00Z", "test 1"}};
  const auto first = store.put_entries({e}, "test 1").value();
  CHECK(first.generation == 1);
  e.sources[0].fetched = "2027-01-01T00:00:00Z";
  CHECK(store.put_entries({e}, "test 1")->generation == 1);
  CHECK(store.put_entries({e}, "test 1")->content_hash == first.content_hash);
  e.meaning = "another";
  CHECK(store.put_entries({e}, "test 1")->generation == 2);
  CHECK(store.get_entry("perf/cycles").value()->meaning == "another");
  CHECK(store.put_entries({}, "test 1")->entries == 0);
  CHECK(store.entry_ids()->empty());
}

TEST_CASE("a reader works beside the writer, and a second writer is told who holds it") {
  folder f;
  auto writer = f.open();
  REQUIRE(writer.put_entries({starter("cycles")}, "test 1"));
  auto reader = f.open(knowledge_store::mode::read_only);
  CHECK(reader.state()->generation == 1);
  auto second = knowledge_store::open(f.store(), knowledge_store::mode::read_write);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ec::locked);
  CHECK(second.error().hint.find("pragma ask") != std::string::npos);
  CHECK(reader.put_manifest({}).error().code == ec::internal);
}

TEST_CASE("a process that is killed loses nothing that it committed") {
  folder f;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto store = knowledge_store::open(f.store(), knowledge_store::mode::read_write);
    if (!store) ::_exit(1);
    for (int i = 0; i < 50; ++i)
      if (!store->commit("perf", page("https://host/" + std::to_string(i)), std::vector{piece("text " + std::to_string(i))}, {})) ::_exit(2);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  auto store = f.open();
  CHECK(store.pages("perf")->size() == 50);
  CHECK(all_segments(store, "perf").size() == 50);
}

TEST_CASE("a flipped byte in the store is noticed, and the message says what to do") {
  folder f;
  {
    auto store = f.open();
    std::vector<entry> many;
    for (int i = 0; i < 400; ++i) {
      auto e = starter("metric_" + std::to_string(i));
      e.id = entry_id("perf", e.name);
      e.meaning = std::string(3000, static_cast<char>('a' + i % 26));
      many.push_back(e);
    }
    REQUIRE(store.put_entries(many, "test 1"));
  }
  { auto again = f.open(); } // the log becomes a table
  bool flipped = false;
  for (const auto& file : fs::directory_iterator(f.store())) {
    if (file.path().extension() != ".sst" || fs::file_size(file.path()) < 20'000) continue;
    std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(10'000);
    const char c = static_cast<char>(bytes.get() ^ 0x40);
    bytes.seekp(10'000);
    bytes.put(c);
    flipped = true;
  }
  REQUIRE(flipped);
  auto store = knowledge_store::open(f.store(), knowledge_store::mode::read_write);
  const auto verified = store ? store->verify() : expected<void>(fail(store.error()));
  REQUIRE_FALSE(verified);
  CHECK(verified.error().code == ec::io_error);
  CHECK_FALSE(verified.error().hint.empty());
}

TEST_CASE("a newer schema is refused") {
  folder f;
  { auto store = f.open(); }
  {
    auto raw = record_store::open(f.store(), record_store::mode::read_write, {"knowledge store", {}, 99, "", "", "", ""});
    REQUIRE(raw);
    REQUIRE(raw->write("pretend", [](record_store::batch& b) { b.put("default", "schema", "99"); }));
  }
  const auto opened = knowledge_store::open(f.store(), knowledge_store::mode::read_write);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ec::parse_error);
  CHECK(opened.error().message.find("99") != std::string::npos);
}

TEST_CASE("manifests: unknown keys, bad names, bad addresses are named") {
  const auto message = [](const char* text) {
    const auto m = parse_manifest(text, "x.json");
    REQUIRE_FALSE(m);
    return m.error().message + "|" + m.error().hint;
  };
  CHECK(message(R"({"name": "x", "docs": {"root": ["https://a/"]}})").find("roots") != std::string::npos);
  CHECK(message(R"({"name": "X Y", "docs": {"roots": ["https://a/"]}})").find("'X Y'") != std::string::npos);
  CHECK(message(R"({"name": "x", "docs": {"roots": ["file:///etc/passwd"]}})").find("file:///etc/passwd") != std::string::npos);
  CHECK(message(R"({"name": "x"})").find("no documentation") != std::string::npos);
  CHECK(message(R"({"name": "x", "catalogue": [{"argv": [], "format": "json"}]})").find("argv") != std::string::npos);
  CHECK(message(R"({"name": "x", "catalogue": [{"argv": ["a"], "format": "xml"}]})").find("xml") != std::string::npos);
  CHECK(message("{").find("line 1") != std::string::npos);
  auto good = parse_manifest(R"({"_comment": "c", "name": "x", "docs": {"roots": ["https://a/"], "local": ["/nowhere/at/all"]}})", "x.json");
  REQUIRE(good);
  std::vector<std::string> missing;
  CHECK(source_of(*good, missing).docs == std::vector<std::string>{"https://a/"});
  CHECK(missing == std::vector<std::string>{"/nowhere/at/all"});
}

TEST_CASE("consolidation: the starter leads, documentation completes it, units that contradict both stand") {
  consolidation all;
  auto ours = starter("cache-misses", "count");
  ours.aliases = {"LLC misses"};
  all.add_starter(ours);
  const auto a = piece("cache-misses: last level cache misses", "https://host/a.html"), b = piece("LLC misses in percent", "https://host/b.html");
  auto first = about("Cache-Misses", "Accesses that missed the last level cache.");
  first.measurement = "Counted by the core's PMU.";
  first.diagnoses = {"memory_latency_bound"};
  auto second = about("LLC misses", "Share of accesses that missed.");
  second.unit = "%";
  all.add(a, telling(a, first));
  all.add(b, telling(b, second));
  all.add(a, telling(a, first)); // told twice, cited once
  const auto entries = all.finish();
  REQUIRE(entries.size() == 1);
  const auto& e = entries[0];
  CHECK(e.id == "perf/cache-misses");
  CHECK(e.meaning == ours.meaning);
  CHECK(e.measurement == "Counted by the core's PMU.");
  CHECK(e.diagnoses == std::vector<std::string>{"memory_latency_bound"});
  REQUIRE(e.conflicts.size() == 1);
  CHECK(e.conflicts[0].field == "unit");
  CHECK(e.conflicts[0].value == "%");
  CHECK(e.conflicts[0].url == "https://host/b.html#top");
  REQUIRE(e.sources.size() == 2);
  CHECK(e.sources[0].url == "https://host/a.html#top");
  CHECK(e.sources[0].quote == first.quote);
}

TEST_CASE("consolidation: one plain word in the tables of two units is two metrics") {
  consolidation all;
  const auto row = [](const std::string& text, const std::string& heading, const std::string& url) {
    auto s = piece(text, url);
    s.kind = "row";
    s.headings = {"Metrics", heading};
    return s;
  };
  const auto l1 = row("Utilization busy L1", "Vector L1 cache", "https://host/l1.html"), l2 = row("Utilization busy L2", "L2 cache", "https://host/l2.html");
  all.add(l1, telling(l1, about("Utilization", "Cycles in which the vector L1 cache was busy.")));
  all.add(l2, telling(l2, about("Utilization", "Cycles in which the L2 cache was busy.")));
  all.add(l2, telling(l2, about("Utilization", "Cycles in which the L2 cache was busy.")));
  all.add(l1, telling(l1, about("TCC_HIT", "Hits.")));
  all.add(l2, telling(l2, about("TCC_HIT", "Requests that hit."))); // an identifier is one metric wherever it stands
  const auto entries = all.finish();
  REQUIRE(entries.size() == 3);
  CHECK(entries[1].name == "Utilization");
  CHECK(entries[1].meaning == "Cycles in which the vector L1 cache was busy.");
  CHECK(entries[2].name == "Utilization (L2 cache)");
  CHECK(entries[2].meaning == "Cycles in which the L2 cache was busy.");
  CHECK(entries[2].aliases == std::vector<std::string>{"Utilization"});
  CHECK(entries[2].sources.size() == 1);
}

TEST_CASE("consolidation: a name without any meaning is no entry; percent and % do not contradict") {
  consolidation all;
  const auto s = piece("text");
  all.add(s, telling(s, about("lonely", "")));
  auto one = about("ipc", "Instructions per cycle."), two = about("IPC", "The same.");
  one.unit = "percent";
  two.unit = "%";
  all.add(s, telling(s, one));
  all.add(s, telling(s, two));
  const auto entries = all.finish();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].name == "ipc");
  CHECK(entries[0].conflicts.empty());
  CHECK(entries[0].meaning == "Instructions per cycle.");
}

TEST_CASE("registered profilers that collect on a backend are handed to its runs, without their documentation", "[knowledge]") {
  folder f;
  library_paths paths;
  paths.store = f.store();
  CHECK(registered_collectors(paths, "cuda")->empty()); // nothing was ever registered
  {
    auto store = f.open();
    profiler_manifest m;
    m.name = "mine";
    m.backend = {"cuda", "rocm"};
    m.docs.local = {"/usr/share/doc/mine"};
    m.collect = {{"programs", {"mine"}}};
    REQUIRE(store.put_manifest(m));
    m.name = "documented-only";
    m.collect = nullptr;
    REQUIRE(store.put_manifest(m));
  }
  const auto found = registered_collectors(paths, "cuda");
  REQUIRE(found);
  REQUIRE(found->size() == 1);
  CHECK((*found)[0]["name"] == "mine");
  CHECK((*found)[0]["collect"]["programs"][0] == "mine");
  CHECK_FALSE((*found)[0].contains("docs"));
  CHECK(registered_collectors(paths, "ascend")->empty());
}
