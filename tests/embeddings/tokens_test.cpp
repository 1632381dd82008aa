// What counts as a word, and which spellings are the same name.
#include "embeddings/tokens.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace pragma;

namespace {

std::vector<std::string> texts(std::string_view text) {
  std::vector<std::string> all;
  for (const auto& t : tokens_of(text)) all.push_back(t.text);
  return all;
}

bool has(const std::vector<std::string>& list, const std::string& text) { return std::find(list.begin(), list.end(), text) != list.end(); }

using list = std::vector<std::string>;

} // namespace

TEST_CASE("a name is found in whatever way it is spelt") {
  for (const char* spelling : {"L1-dcache-load-misses", "l1_dcache_load_misses", "L1.dcache:load-MISSES", "l1DcacheLoadMisses",
                               "L1\xe2\x80\x91" "dcache\xe2\x80\x91load\xe2\x80\x91misses", "L1-dcache-lo\xc2\xad" "ad-misses"}) {
    INFO(spelling);
    CHECK(fold_name(spelling) == "l1dcacheloadmisses");
    CHECK(has(texts(spelling), "l1dcacheloadmisses"));
    CHECK(has(texts(spelling), "dcach"));
    CHECK(has(texts(spelling), "miss"));
  }
  CHECK(fold_name("in\xef\xac\x82ight") == "inflight"); // a ligature from a PDF
  CHECK(fold_name("\xc2\xb5ops") == "uops");
  CHECK(fold_name("\xce\xbcops") == "uops");
}

TEST_CASE("rollup suffixes and perf's modifiers are not part of the metric") {
  CHECK(base_metric("sm__throughput.avg.pct_of_peak_sustained_elapsed") == "sm__throughput");
  CHECK(base_metric("dram__bytes.sum.per_second") == "dram__bytes");
  CHECK(base_metric("smsp__inst_executed.sum") == "smsp__inst_executed");
  CHECK(base_metric("smsp__cycles_active.avg.peak_sustained") == "smsp__cycles_active");
  CHECK(base_metric("MEM_LOAD_RETIRED.L1_HIT") == "MEM_LOAD_RETIRED.L1_HIT");
  CHECK(base_metric("cycles:u") == "cycles");
  CHECK(base_metric("instructions:ukH") == "instructions");
  CHECK(base_metric("std::max") == "std::max");
  CHECK(base_metric(".sum") == ".sum");
  CHECK(base_metric("").empty());
  CHECK(texts("smsp__inst_executed.avg.per_cycle_active") == texts("smsp__inst_executed"));
}

TEST_CASE("pieces end at separators and changes of case, plurals of abbreviations stay whole") {
  CHECK(pieces_of("smsp__thread_inst_executed") == list{"smsp", "thread", "inst", "executed"});
  CHECK(pieces_of("TLBMisses") == list{"tlb", "misses"});
  CHECK(pieces_of("L2CacheHit") == list{"l2", "cache", "hit"});
  CHECK(pieces_of("numBytes") == list{"num", "bytes"});
  CHECK(pieces_of("sm_90") == list{"sm", "90"});
  CHECK(texts("TLBs SMs") == list{"tlb", "sm"});
  CHECK(texts("Bcm D1mr") == list{"bcm", "d1mr"});
}

TEST_CASE("prose is stemmed and loses its stop words") {
  CHECK(texts("What does the number of mispredicted branches mean?") == texts("number mispredicted branch"));
  CHECK(texts("cachegrind's misses don't matter") == list{"cachegrind", "miss", "matter"});
  CHECK(texts("which of the is it").empty());
  CHECK(texts("out-of-order").front() == "outoford");
  CHECK(texts("a b c 3") == list{"3"}); // single letters say nothing, a digit may be Zen 3's
  CHECK(stem_word("executed") == stem_word("executes"));
  CHECK(stem_word("sm90s") == "sm90s");
}

TEST_CASE("hostile bytes give tokens without syntax, and bounded ones") {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  for (const auto& text : {all, all + all, std::string("\xff\xfe\x80 a\xc3"), std::string("\"x\" NEAR(y z) * -a:b^c"), std::string(3, '\0')})
    for (const auto& t : texts(text))
      for (const char c : t) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
        CHECK(plain);
      }
  const auto long_word = texts(std::string(1 << 20, 'x'));
  REQUIRE(long_word.size() == 1);
  CHECK(long_word[0].size() <= 128);
  CHECK(fold_name(std::string(1 << 20, 'x')).size() <= 512);
  CHECK(tokens_of(std::string(1 << 20, '-')).empty());
}
