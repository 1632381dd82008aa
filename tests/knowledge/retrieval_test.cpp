// Questions to a small compendium: what is found first, what is not in it, and what a stale, damaged or half-built index does.
#include "small_compendium.hpp"

using namespace pragma;
using namespace pragma::test;

TEST_CASE("a question that is a name answers with that entry first, in any spelling") {
  for (const char* text : {"branch-misses", "BRANCH_MISSES", "branch misses", "branchmisses", "what is branch-misses?", "What do branch misses mean",
                           "the branch-misses counter", "perf branch-misses", "branch-misses:u", "Branch Miss"}) {
    INFO(text);
    const auto found = ask(text);
    CHECK(first(found) == "perf/branch-misses");
    CHECK(found.in_scope);
    REQUIRE_FALSE(found.hits.empty());
    CHECK(found.hits[0].why == "name");
    CHECK(found.hits[0].score == 1);
  }
  CHECK(first(ask("why is smsp__thread_inst_executed_per_inst_executed low")) == "ncu/smsp__thread_inst_executed_per_inst_executed");
  CHECK(first(ask("smsp_thread_inst_executed_per_inst_executed.ratio")) == "ncu/smsp__thread_inst_executed_per_inst_executed");
  CHECK(first(ask("smsp__inst_executed.avg.per_cycle_active")) == "ncu/smsp__inst_executed.avg.per_cycle_active");
  CHECK(first(ask("smsp__inst_executed.sum")) == "ncu/smsp__inst_executed");
  CHECK(first(ask("what does Bcm count")) == "valgrind/bcm");
  CHECK(first(ask("Ir")) == "valgrind/ir");
  CHECK(first(ask("shared memory bank conflicts")) == "/bank conflict");
  CHECK(first(ask("cpu-cycles")) == "perf/cycles"); // an alias
  const auto two = ask("difference between D1mr and Bcm");
  REQUIRE(two.hits.size() >= 2);
  CHECK(two.hits[0].id == "valgrind/d1mr");
  CHECK(two.hits[1].id == "valgrind/bcm");
}

TEST_CASE("a name that is nearly right is found too") {
  for (const char* text : {"smsp__thread_inst_executed_per_instr_executed", "smsp__thread_insts_exec_per_inst_exec"}) {
    INFO(text);
    const auto found = ask(text);
    CHECK(first(found) == "ncu/smsp__thread_inst_executed_per_inst_executed");
    CHECK(found.in_scope);
  }
  const auto hits = small().find_name("brnach-misess");
  REQUIRE(hits);
  REQUIRE_FALSE(hits->empty());
  CHECK((*hits)[0].id == "perf/branch-misses");
  CHECK((*hits)[0].why == "fuzzy name");
}

TEST_CASE("names are looked up in any case and with any separators, then by their pieces") {
  auto ids = [](const std::string& name, const std::string& profiler = {}) {
    auto hits = small().find_name(name, profiler);
    if (!hits) FAIL(render(hits.error()));
    std::vector<std::string> all;
    for (const auto& h : *hits) all.push_back(h.id);
    return all;
  };
  CHECK(ids("l1 dcache load misses").at(0) == "perf/l1-dcache-load-misses");
  CHECK(ids("L1_DCACHE.LOAD:MISSES").at(0) == "perf/l1-dcache-load-misses");
  CHECK(ids("dcache-load-misses").at(0) == "perf/l1-dcache-load-misses");
  CHECK(ids("cycles").size() >= 2);
  CHECK(ids("cycles", "likwid").at(0) == "likwid/cycles");
  CHECK(ids("cycles", "perf").at(0) == "perf/cycles");
  CHECK(ids("bcm", "cachegrind").at(0) == "valgrind/bcm"); // the glossary's word for the profiler
  CHECK(small().find_name("LLC misses")->at(0).why == "name");
  CHECK(ids("l2_pf_hit").size() >= 1);
  CHECK(ids("").empty());
  CHECK(ids("---").empty());
  CHECK(ids("zzzzqqqq").empty());
  CHECK(small().find_name("cycles", "nsys").error().code == ec::not_found);
  CHECK(small().find_name(std::string(1 << 20, 'a')));
}

TEST_CASE("questions in words find what they are about") {
  CHECK(first(ask("which counter shows branches that were guessed wrong")) == "perf/branch-misses");
  CHECK(first(ask("how many bytes go to device memory")) == "ncu/dram__bytes");
  CHECK(first(ask("how often does the kernel switch threads")) == "perf/context-switches");
  CHECK(among(ask("threads of a warp taking different branches"), "ncu/branch_efficiency"));
}

TEST_CASE("words for profilers and hardware set a scope, options filter") {
  const auto in_valgrind = ask("mispredicted branches in cachegrind");
  CHECK(in_valgrind.profiler == "valgrind");
  CHECK(first(in_valgrind) == "valgrind/bcm");
  CHECK(in_valgrind.hits[0].scope > 0);
  CHECK(ask("mispredicted branches in Nsight Compute").profiler == "ncu");

  const auto filtered = ask("branches that were mispredicted", 10, "perf");
  for (const auto& h : filtered.hits) CHECK((h.id.starts_with("perf/") || h.id.starts_with("/")));
  CHECK(first(ask("cycles", 5, "likwid")) == "likwid/cycles");
  const auto unknown = ask("cycles", 5, "vtune");
  CHECK_FALSE(unknown.in_scope);
  CHECK(unknown.why_not.find("vtune") != std::string::npos);

  for (const char* word : {"on Zen 4", "on zen4", "on Genoa"}) {
    const auto on_chip = ask(std::string("prefetches of the second level cache that hit ") + word);
    INFO(word);
    CHECK(on_chip.hardware == "zen 4");
    CHECK(first(on_chip) == "perf/l2_pf_hit@Zen 4");
  }
  const auto only = ask("l2_pf_hit", 5, "", "Milan");
  CHECK(first(only) == "perf/l2_pf_hit@Zen 3");
  CHECK(only.hits[0].family.empty()); // the others are filtered out
}

TEST_CASE("the entries of one name on many chips are one hit") {
  const auto found = ask("prefetches of the second level cache that hit");
  const auto chips = std::count_if(found.hits.begin(), found.hits.end(), [](const hit& h) { return h.id.starts_with("perf/l2_pf_hit@"); });
  CHECK(chips == 1);
  const auto it = std::find_if(found.hits.begin(), found.hits.end(), [](const hit& h) { return h.id.starts_with("perf/l2_pf_hit@"); });
  REQUIRE(it != found.hits.end());
  CHECK(it->family.size() == 3);
  CHECK(found.hits.size() == 5);
}

TEST_CASE("a family larger than the candidates does not push the others out") {
  auto entries = small_compendium();
  for (int i = 0; i < 400; ++i) {
    auto e = make("perf", "uops_retired", "Micro-operations that were retired, by port.");
    e.id = "perf/uops_retired@" + std::to_string(i);
    e.family = "uops_retired";
    entries.push_back(e);
  }
  for (int i = 0; i < 1000; ++i) entries.push_back(make("perf", "filler_" + std::to_string(i), "Something else, of which there are many."));
  auto dir = temp_dir::create("retrieval");
  REQUIRE(build(entries, dir->path()));
  const auto r = opened(dir->path());
  const auto found = r.ask({"micro-operations that were retired by a port", 5});
  REQUIRE(found);
  CHECK(found->hits.size() == 5);
  CHECK(among(*found, "perf/instructions"));
  const auto& hits = found->hits;
  const auto many = std::find_if(hits.begin(), hits.end(), [](const hit& h) { return h.id.starts_with("perf/uops_retired@"); });
  REQUIRE(many != hits.end());
  CHECK(many->family.size() == 399);
}

TEST_CASE("the glossary's abbreviations are understood, in both directions") {
  const auto found = ask("loads the LLC could not serve");
  REQUIRE(found.expansions.size() == 1);
  CHECK(found.expansions[0] == "llc -> last level cache");
  CHECK(among(found, "perf/cache-misses"));
  CHECK(among(ask("loads that missed the last level cache"), "perf/llc-load-misses"));
  CHECK(ask("can it be").expansions.empty()); // "be" is a word unless it is in capitals
  CHECK(ask("stalls of the BE").expansions.size() == 1);
}

TEST_CASE("words that are said of one thing find each other, and are no names") {
  const auto dir = temp_dir::create("retrieval");
  std::vector<entry> entries = {make("net", "tx_drop", "Packets that were dropped before they were transmitted."),
                                make("net", "rx_drop", "Packets that were dropped after they were received."),
                                make("net", "rx_error", "Packets that arrived with a wrong checksum."),
                                make("net", "queue_length", "Packets in the queue of the interface."),
                                make("", "latency", "The time from asking to having.")};
  REQUIRE(build(entries, dir->path()));
  const auto with = [&](const char* same) {
    const auto words = parse_glossary(std::string(R"({"same": {)") + same + "}}", "glossary.json");
    REQUIRE(words);
    const auto r = retriever::open(dir->path(), 1, {}, *words);
    REQUIRE(r);
    auto found = r->ask({"packets lost while sending", 4});
    REQUIRE(found);
    return *found;
  };
  CHECK(first(with("")) != "net/tx_drop");
  CHECK(first(with(R"("lost": ["dropped"], "transmitted": ["sending", "put on the wire"])")) == "net/tx_drop");
  CHECK(first(with(R"("lost": ["dropped"], "received": ["sending"])")) == "net/rx_drop");
  CHECK(with(R"("lost": ["dropped"])").expansions.empty());
}

TEST_CASE("one event is one hit: in another tool's list, and at several sizes") {
  const auto dir = temp_dir::create("retrieval");
  std::vector<entry> entries = small_compendium();
  for (const char* size : {"_4k", "_2m_4m", "_1g"})
    entries.push_back(make("spr", std::string("itlb_misses.walk_completed") + size, std::string("Completed walks of the page table for code, pages of ") + (size + 1) + "."));
  entries.push_back(make("spr", "itlb_misses.walk_completed", "Completed walks of the page table, caused by a fetch of code that no translation was known for, whatever the page."));
  entries.push_back(make("perf", "ld_blocks.store_forward", "Loads held up by an earlier store whose data could not be forwarded."));
  entries.push_back(make("spr", "LD_BLOCKS.STORE_FORWARD", "Loads held up since data of an earlier store could not be forwarded."));
  entries.push_back(make("npu", "memory_bound", "Share of the time in which vector units wait for the memory of the device."));
  entries.push_back(make("spr", "memory_bound", "Share of slots in which the pipeline waits for memory."));
  REQUIRE(build(entries, dir->path()));
  const auto r = opened(dir->path());
  const auto answer = [&](const char* text) {
    auto found = r.ask({text, 5});
    REQUIRE(found);
    return *found;
  };
  const auto count = [](const found_entries& found, const std::string& part) {
    return std::count_if(found.hits.begin(), found.hits.end(), [&](const hit& h) { return h.id.find(part) != std::string::npos; });
  };
  const auto walks = answer("completed walks of the page table for code");
  CHECK(first(walks) == "spr/itlb_misses.walk_completed"); // no size was asked for
  CHECK(count(walks, "walk_completed") == 1);
  CHECK(walks.hits.at(0).family.size() == 3);
  CHECK(first(answer("completed walks of the page table for code, pages of 1g")) == "spr/itlb_misses.walk_completed_1g");
  const auto blocked = answer("loads held up by an earlier store that could not be forwarded");
  CHECK(count(blocked, "store_forward") == 1);
  REQUIRE(blocked.hits.at(0).family.size() == 1);
  CHECK(blocked.hits[0].family[0].find("store_forward") != std::string::npos);
  // A name that two tools gave to two things is two hits; and a name that is asked for is what is asked for.
  CHECK(count(answer("share in which something has to wait for memory"), "memory_bound") == 2);
  CHECK(first(answer("itlb_misses.walk_completed_4k")) == "spr/itlb_misses.walk_completed_4k");
  auto named = r.find_name("ld_blocks.store_forward");
  REQUIRE(named);
  CHECK(std::count_if(named->begin(), named->end(), [](const hit& h) { return h.id.find("store_forward") != std::string::npos; }) == 2);
}

TEST_CASE("a word with a hyphen in a longer question does not ask for the concept of that name") {
  const auto dir = temp_dir::create("retrieval");
  auto entries = small_compendium();
  entries.push_back(make("", "top-down", "A way to split the slots of a pipeline."));
  entries.push_back(make("spr", "bad_speculation", "Top-down slots that were wasted by branches that the predictor guessed wrong."));
  REQUIRE(build(entries, dir->path()));
  const auto r = opened(dir->path());
  CHECK(first(*r.ask({"top-down slots wasted by branches that were guessed wrong", 3})) == "spr/bad_speculation");
  CHECK(first(*r.ask({"what is top-down?", 3})) == "/top-down");
}

TEST_CASE("what the compendium does not know, it says") {
  for (const char* text : {"how do I bake sourdough bread", "what is the capital of France", "who won the world cup in 1998", "xyzzy plugh"}) {
    INFO(text);
    const auto found = ask(text);
    CHECK_FALSE(found.in_scope);
    CHECK_FALSE(found.why_not.empty());
  }
  CHECK(ask("how do I bake sourdough bread").why_not.find("sourdough") != std::string::npos);
  for (const char* text : {"", "   ", "?", "what is the", "\"\"", "()"}) {
    INFO(text);
    CHECK_FALSE(ask(text).in_scope);
  }
}

TEST_CASE("hostile questions are answered like others") {
  for (const auto& text : {std::string("\" OR 1=1 --"), std::string("NEAR(branch misses, 2)"), std::string("branch* AND NOT (cache"), std::string("name : {x}"),
                           std::string("\xff\xfe branch \x80"), std::string(1 << 20, '"'), std::string(1 << 20, 'a'), "branch-misses" + std::string(1 << 20, ' '),
                           std::string("a\0b branch-misses", 17)}) {
    INFO(text.substr(0, 40));
    CHECK(small().ask({text}));
  }
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += "word" + std::to_string(i) + "-x ";
  CHECK(small().ask({many}));
  CHECK(small().ask({"branch", 0})->hits.size() == 1); // at least one
  CHECK(small().ask({"branch", 1'000'000}));
}

TEST_CASE("each half answers alone, and the explanation says what each gave") {
  const auto lexical = ask("branches that were guessed wrong", 5, "", "", retrieval_mode::lexical_only);
  const auto dense = ask("branches that were guessed wrong", 5, "", "", retrieval_mode::dense_only);
  const auto fused = ask("branches that were guessed wrong");
  CHECK(first(lexical) == "perf/branch-misses");
  CHECK(among(dense, "perf/branch-misses"));
  CHECK(lexical.hits[0].dense == 0);
  CHECK(lexical.hits[0].lexical == 1);
  CHECK(dense.hits[0].lexical == 0);
  CHECK(dense.hits[0].dense > 0);
  CHECK(fused.hits[0].lexical > 0);
  CHECK(fused.hits[0].dense > 0);
  CHECK(fused.evidence > 0);
  CHECK(std::is_sorted(fused.hits.begin(), fused.hits.end(), [](const hit& a, const hit& b) { return a.score > b.score; }));
}

TEST_CASE("an empty compendium and one of a single entry can be asked") {
  auto dir = temp_dir::create("retrieval");
  const auto none = build({}, dir->path());
  REQUIRE(none);
  CHECK(none->entries == 0);
  {
    const auto r = opened(dir->path());
    const auto found = r.ask({"branch misses"});
    REQUIRE(found);
    CHECK_FALSE(found->in_scope);
    CHECK(r.find_name("x")->empty());
  }
  REQUIRE(build({small_compendium()[0]}, dir->path(), 2));
  CHECK(opened(dir->path(), 2).ask({"branch-misses"})->hits.at(0).id == "perf/branch-misses");
}

TEST_CASE("an index of another generation or another embedder is refused") {
  auto dir = temp_dir::create("retrieval");
  CHECK(retriever::open(dir->path() / "none", 1, {}, {}).error().code == ec::not_found);
  CHECK(retriever::open(dir->path(), 1, {}, {}).error().code == ec::not_found);
  const auto info = build(small_compendium(), dir->path(), 7);
  REQUIRE(info);
  CHECK(info->entries == static_cast<int64_t>(small_compendium().size()));
  CHECK(info->generation == 7);
  CHECK(info->vectors == "flat");
  CHECK(info->bytes > 1000);
  CHECK(opened(dir->path(), 7).info().embedder == info->embedder);
  const auto stale = retriever::open(dir->path(), 8, {}, {});
  REQUIRE_FALSE(stale);
  CHECK(stale.error().code == ec::invalid_argument);
  CHECK(stale.error().message.find("generation 7") != std::string::npos);
  CHECK(stale.error().hint.find("kb build") != std::string::npos);
  embedding_config http;
  http.kind = "http";
  http.base_url = "http://127.0.0.1:1/v1";
  http.model = "other";
  const auto other = retriever::open(dir->path(), 7, http, {});
  REQUIRE_FALSE(other);
  CHECK(other.error().code == ec::invalid_argument);
  CHECK(other.error().message.find("other") != std::string::npos);
}

TEST_CASE("a damaged index is refused with the file's name") {
  auto dir = temp_dir::create("retrieval");
  for (const char* name : {"lexical.sqlite", "vectors", "names", "texts", "model.lsa", "meta.json"}) {
    INFO(name);
    fs::remove_all(dir->path() / "i");
    REQUIRE(build(small_compendium(), dir->path() / "i"));
    opened(dir->path() / "i", 1, {}, true);
    const auto file = file_of(dir->path() / "i", name);
    const auto size = fs::file_size(file);
    {
      std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
      f.seekg(static_cast<std::streamoff>(size - 20)); // of the content: a full verification sees it
      const char c = static_cast<char>(f.get() ^ 0x10);
      f.seekp(static_cast<std::streamoff>(size - 20));
      f.put(c);
    }
    const auto damaged = retriever::open(dir->path() / "i", 1, {}, {}, true);
    REQUIRE_FALSE(damaged);
    CHECK(damaged.error().message.find(name) != std::string::npos);
    fs::resize_file(file, 30);
    const auto cut = retriever::open(dir->path() / "i", 1, {}, {});
    REQUIRE_FALSE(cut);
    CHECK(cut.error().code == ec::parse_error);
    CHECK(cut.error().message.find(name) != std::string::npos);
    if (std::string(name) == "meta.json") continue;
    fs::remove(file);
    CHECK(retriever::open(dir->path() / "i", 1, {}, {}).error().code == ec::parse_error);
    REQUIRE(build(small_compendium(), dir->path() / "i", 2)); // and can be built again in its place
    CHECK(opened(dir->path() / "i", 2).ask({"branch-misses"})->in_scope);
  }
}

TEST_CASE("a stamp that points elsewhere is refused, and nothing elsewhere is removed") {
  auto dir = temp_dir::create("retrieval");
  const auto folder = dir->path() / "i";
  REQUIRE(build(small_compendium(), folder));
  fs::create_directories(dir->path() / "precious");
  auto stamp = json::parse(*read_file(folder / "meta.json"));
  stamp["folder"] = "../precious";
  REQUIRE(write_file_atomic(folder / "meta.json", stamp.dump()));
  CHECK(retriever::open(folder, 1, {}, {}).error().code == ec::parse_error);
  REQUIRE(build(small_compendium(), folder));
  CHECK(fs::exists(dir->path() / "precious"));
}

TEST_CASE("an opened index stays usable while it is replaced") {
  auto dir = temp_dir::create("retrieval");
  REQUIRE(build(small_compendium(), dir->path(), 1));
  const auto old = opened(dir->path(), 1);
  REQUIRE(build({small_compendium()[7]}, dir->path(), 2));
  CHECK(index_folders(dir->path()) == 1);
  CHECK(old.ask({"branch-misses"})->hits.at(0).id == "perf/branch-misses");
  CHECK(opened(dir->path(), 2).info().entries == 1);
}

TEST_CASE("a build that is cancelled or fails leaves the old index") {
  auto dir = temp_dir::create("retrieval");
  const auto entries = small_compendium();
  REQUIRE(build(entries, dir->path(), 1));
  size_t at = 0;
  const std::atomic<bool> cancel{true};
  CHECK(retriever::build(corpus_of(entries, at), 2, {}, dir->path(), {}, &cancel).error().code == ec::interrupted);
  embedding_config nobody;
  nobody.kind = "http";
  nobody.base_url = "http://127.0.0.1:1/v1";
  nobody.model = "m";
  nobody.retries = 0;
  CHECK(retriever::build(corpus_of(entries, at), 2, nobody, dir->path()).error().code == ec::remote_failed);
  CHECK(index_folders(dir->path()) == 1);
  CHECK(opened(dir->path(), 1, {}, true).ask({"branch-misses"})->in_scope);
}

TEST_CASE("kill -9 in the middle of a build leaves the old index, and the next build cleans up") {
  auto dir = temp_dir::create("retrieval");
  REQUIRE(build(small_compendium(), dir->path(), 1));
  const bool late = GENERATE(false, true); // in the first pass, in the second
  auto child = child_process::start(self(late ? "child-builds-late" : "child-builds", dir->path()));
  REQUIRE(child);
  REQUIRE(child->read_line(30));
  CHECK(build(small_compendium(), dir->path(), 2).error().code == ec::locked); // it is at it
  child->kill();
  CHECK(index_folders(dir->path()) == 2);
  CHECK(opened(dir->path(), 1, {}, true).ask({"branch-misses"})->hits.at(0).id == "perf/branch-misses");
  REQUIRE(build(small_compendium(), dir->path(), 3));
  CHECK(index_folders(dir->path()) == 1);
  CHECK(opened(dir->path(), 3, {}, true).ask({"branch-misses"})->in_scope);
}

namespace {

void build_and_stop(int in_pass) {
  const auto entries = small_compendium();
  size_t at = 0;
  int pass = 0;
  retriever::corpus c;
  c.rewind = [&] {
    at = 0;
    ++pass;
  };
  c.next = [&]() -> const entry* {
    if (pass == in_pass && at == entries.size() / 2) {
      (void)!::write(STDOUT_FILENO, "here\n", 5);
      ::pause();
    }
    return at < entries.size() ? &entries[at++] : nullptr;
  };
  (void)retriever::build(c, 9, {}, folder_of_child());
}

} // namespace

TEST_CASE("builds until killed", "[.][child-builds]") { build_and_stop(1); }
TEST_CASE("builds until killed, late", "[.][child-builds-late]") { build_and_stop(2); }

TEST_CASE("vectors of an endpoint: built in batches, asked once a question, and left out when it is gone") {
  auto dir = temp_dir::create("retrieval");
  embedding_config config;
  config.kind = "http";
  config.model = "letters";
  config.retries = 0;
  config.batch = 8;
  {
    // Each text becomes the counts of its letters.
    test::stub_server server([](const test::stub_request& request, size_t) {
      json data = json::array();
      const auto body_sent = json::parse(request.body);
      for (const auto& text : body_sent["input"]) {
        std::vector<double> counts(26, 0.0);
        for (const char c : text.get<std::string>())
          if (c >= 'a' && c <= 'z') ++counts[static_cast<size_t>(c - 'a')];
        json item = json::object();
        item["index"] = data.size();
        item["embedding"] = counts;
        data.push_back(item);
      }
      test::stub_reply reply;
      json body = json::object();
      body["data"] = data;
      reply.body = body.dump();
      return reply;
    });
    config.base_url = server.url();
    const auto info = build(small_compendium(), dir->path(), 1, config);
    if (!info) FAIL(render(info.error()));
    CHECK(info->embedder == "http letters 26");
    const auto r = opened(dir->path(), 1, config);
    const auto asked = server.requests().size();
    const auto found = r.ask({"branches that were guessed wrong"});
    REQUIRE(found);
    CHECK(server.requests().size() == asked + 1);
    CHECK(found->notes.empty());
    CHECK(found->hits.at(0).dense > 0);
    auto other = config;
    other.dimension = 27;
    CHECK(retriever::open(dir->path(), 1, other, {}).error().code == ec::invalid_argument);
  }
  const auto r = opened(dir->path(), 1, config); // opening asks nobody
  const auto found = r.ask({"branches that were guessed wrong"});
  REQUIRE(found);
  CHECK(first(*found) == "perf/branch-misses");
  REQUIRE(found->notes.size() == 1);
  CHECK(found->notes[0].find("without vectors") != std::string::npos);
}

TEST_CASE("a glossary names the key that is wrong") {
  const auto unknown = parse_glossary(R"({"expansion": {}})", "glossary.json");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ec::invalid_argument);
  CHECK(unknown.error().message.find("glossary.json") != std::string::npos);
  CHECK(unknown.error().hint.find("expansions") != std::string::npos);
  CHECK(parse_glossary(R"({"expansions": {"llc": "last level cache"}})", "g").error().message.find("llc") != std::string::npos);
  CHECK(parse_glossary(R"({"expansions": {"llc": [1]}})", "g").error().code == ec::parse_error);
  CHECK(parse_glossary(R"({"expansions": {"llc": [" "]}})", "g").error().code == ec::parse_error);
  CHECK(parse_glossary(R"({"hardware": []})", "g").error().code == ec::parse_error);
  CHECK(parse_glossary("{", "g").error().code == ec::parse_error);
  const auto good = parse_glossary(R"({"_x": 1, "expansions": {"_note": "y", " llc ": [" last level cache "]}})", "g");
  REQUIRE(good);
  REQUIRE(good->expansions.size() == 1);
  CHECK(good->expansions[0].first == "llc");
  CHECK(good->expansions[0].second == std::vector<std::string>{"last level cache"});
  CHECK(good->profilers.empty());
}
