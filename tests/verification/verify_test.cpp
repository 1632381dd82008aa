// The Verifier against a real reference process: right and wrong softmax kernels, tasks that cannot be verified, and
// candidates whose speed is not real.
#include "tests/fixtures/skip.hpp"
#include "tests/fixtures/kernel_sources.hpp"
#include "timing/timing.hpp"
#include "verification/verify.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <set>

using namespace pragma;
using namespace pragma::test;

namespace {

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The softmax task, its audit, and ways to judge a kernel on it; loaded once, Torch takes seconds to start.
struct bench {
  loaded_task loaded = loaded_task::load(softmax_task);
  task_audit audit;

  bench() {
    auto made = audit_task(loaded.task, loaded.ref, {});
    if (!made) FAIL(render(made.error()));
    audit = *made;
  }
  static bench& get() {
    static bench one;
    return one;
  }
  verdict judge(const std::string& kernel, verify_options options = {}) {
    const auto built = build(kernel);
    auto result = verify(loaded.task, audit, loaded.ref, built, options);
    if (!result) FAIL(render(result.error()));
    INFO(result->reason);
    return *result;
  }
  timed_verdict time(const std::string& kernel, timing_options options = {}) {
    const auto built = build(kernel);
    verdict earlier;
    earlier.stage = verdict_stage::passed;
    auto result = time_candidate(loaded.task, audit, loaded.ref, built, earlier, options);
    if (!result) FAIL(render(result.error()));
    return *result;
  }
};

const std::string honest = softmax_kernel("softmax(x, y, rows, cols);");

} // namespace

TEST_CASE("softmax can be verified: no null kernel passes") {
  const auto& audit = bench::get().audit;
  CHECK(audit.passing_nulls.empty());
  CHECK(audit.tightening == std::vector<double>{1});
  CHECK(why_unverifiable(audit.passing_nulls).empty());
  CHECK(audit.usable.size() == 7);
}

TEST_CASE("a right kernel passes on all input sets, quickly", "[alone]") {
  bench::get();
  const auto start = std::chrono::steady_clock::now();
  const auto v = bench::get().judge(honest);
  CHECK(v.passed());
  CHECK(v.worst_error < 1);
  CHECK(v.tolerance == defaults::tolerance_float32);
  CHECK(v.checked.size() >= 11);
  CHECK(v.binary.size() == 64);
  CHECK(v.mismatches.empty());
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 30);
}

TEST_CASE("wrong kernels fail with the element that shows it") {
  auto& b = bench::get();
  SECTION("zeros") {
    const auto v = b.judge(softmax_kernel("std::memset(y, 0, n * 4);"));
    CHECK(v.stage == verdict_stage::compare);
    CHECK(mentions(v.reason, "out0["));
    CHECK(mentions(v.reason, " is 0, expected "));
    CHECK(mentions(v.reason, "elements are wrong"));
    REQUIRE_FALSE(v.mismatches.empty());
    CHECK(v.mismatches[0].index.size() == 2);
    CHECK(v.mismatches[0].wrong_elements > 0);
    CHECK(v.mismatches[0].total_elements == 64 * 1024);
  }
  SECTION("a uniform distribution") {
    CHECK(b.judge(softmax_kernel("for (int64_t i = 0; i < n; ++i) y[i] = 1.0f / cols;")).stage == verdict_stage::compare);
  }
  SECTION("nothing written") {
    const auto v = b.judge(softmax_kernel(""));
    CHECK(v.stage == verdict_stage::compare);
    CHECK(mentions(v.reason, "was not written"));
  }
  SECTION("the last element forgotten") {
    const auto v = b.judge(softmax_kernel("float old = y[n - 1]; softmax(x, y, rows, cols); y[n - 1] = old;"));
    CHECK(v.stage == verdict_stage::compare);
    CHECK(mentions(v.reason, "out0[63, 1023] was not written"));
    CHECK(mentions(v.reason, "1 of 65536 elements is wrong"));
  }
  SECTION("overflow without subtracting the maximum: right on the task's own inputs, wrong on large ones") {
    const auto v = b.judge(softmax_kernel(
        "for (int64_t r = 0; r < rows; ++r) { float s = 0; for (int64_t c = 0; c < cols; ++c) s += y[r * cols + c] = std::exp(x[r * cols + c]);"
        " for (int64_t c = 0; c < cols; ++c) y[r * cols + c] /= s; }"));
    CHECK(v.stage == verdict_stage::compare);
    CHECK(mentions(v.reason, "large values"));
  }
  SECTION("half precision on the way") {
    CHECK(b.judge(softmax_kernel("softmax(x, y, rows, cols); for (int64_t i = 0; i < n; ++i) { uint32_t u; std::memcpy(&u, y + i, 4);"
                                 " u &= 0xffffe000u; std::memcpy(y + i, &u, 4); }")).stage == verdict_stage::compare);
  }
  SECTION("the outputs of another call") {
    const auto v = b.judge(softmax_kernel("static float* kept; if (!kept) { kept = (float*)std::malloc(n * 4); softmax(x, kept, rows, cols); }"
                                          " std::memcpy(y, kept, n * 4);"));
    CHECK(v.stage == verdict_stage::compare);
  }
}

TEST_CASE("a cache keyed by address is caught, and named") {
  const auto v = bench::get().judge(softmax_kernel(R"(
    static const float* keys[64]; static float* kept[64];
    for (int i = 0; i < 64; ++i) {
      if (keys[i] == x) { std::memcpy(y, kept[i], n * 4); return; }
      if (!keys[i]) { keys[i] = x; kept[i] = (float*)std::malloc(n * 4); softmax(x, kept[i], rows, cols); std::memcpy(y, kept[i], n * 4); return; }
    })"));
  CHECK(v.stage == verdict_stage::compare);
  CHECK(mentions(v.reason, "caches by address"));
}

TEST_CASE("a kernel that is not the same twice is caught") {
  const auto v = bench::get().judge(softmax_kernel("static int calls; softmax(x, y, rows, cols); y[5] *= 1 + 1e-6f * ++calls;"));
  CHECK(v.stage == verdict_stage::compare);
  CHECK(mentions(v.reason, "two runs on the same inputs"));
}

TEST_CASE("crashes and hangs are verdicts that name the input set", "[alone]") {
  auto& b = bench::get();
  SECTION("null pointer") {
    const auto v = b.judge(softmax_kernel("*(volatile int*)8 = 1;"));
    CHECK(v.stage == verdict_stage::run);
    CHECK(mentions(v.reason, "own inputs, seed 1"));
  }
  SECTION("endless loop") {
    verify_options options;
    options.call_timeout_seconds = 0.3;
    const auto v = b.judge(softmax_kernel("for (volatile int i = 0;; ++i) {}"), options);
    CHECK(v.stage == verdict_stage::run);
    CHECK(mentions(v.reason, "did not come back"));
  }
  SECTION("a write past the output") {
    CHECK(b.judge(softmax_kernel("softmax(x, y, rows, cols); y[n] = 1;")).stage == verdict_stage::run);
  }
  SECTION("a write to the input") {
    const auto v = b.judge(softmax_kernel("softmax(x, y, rows, cols); ((float*)x)[0] = 1;"));
    CHECK(v.stage == verdict_stage::run);
    CHECK(mentions(v.reason, "read-only"));
  }
}

TEST_CASE("the reference and the machine survive all of them") {
  CHECK(bench::get().judge(honest).passed());
}

TEST_CASE("integer outputs and several outputs") {
  auto both = loaded_task::load(R"(
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return torch.max(x, dim=1)
def get_inputs(): return [torch.randn(32, 100)]
def get_init_inputs(): return []
)");
  auto audit = audit_task(both.task, both.ref, {});
  REQUIRE(audit);
  CHECK(audit->passing_nulls.empty());
  const std::string kernel = R"(#include "pragma_kernel.h"
extern "C" void pragma_kernel(const pragma_args* a) {
  const float* x = (const float*)a->inputs[0].data; float* v = (float*)a->outputs[0].data; int64_t* at = (int64_t*)a->outputs[1].data;
  for (int r = 0; r < 32; ++r) { int b = 0; for (int c = 1; c < 100; ++c) if (x[r * 100 + c] OP x[r * 100 + b]) b = c; v[r] = x[r * 100 + b]; at[r] = b; }
})";
  auto first = kernel, last = kernel;
  first.replace(first.find("OP"), 2, ">");
  last.replace(last.find("OP"), 2, ">=");
  auto right = verify(both.task, *audit, both.ref, build(first), {});
  REQUIRE(right);
  INFO(right->reason);
  CHECK(right->passed());
  auto wrong = verify(both.task, *audit, both.ref, build(last), {});
  REQUIRE(wrong);
  CHECK(wrong->stage == verdict_stage::compare);
  REQUIRE_FALSE(wrong->mismatches.empty());
  CHECK(wrong->mismatches[0].output == both.task.outputs[1].name);
}

TEST_CASE("equal values leave a normalisation its rounding, and a wrong one nothing") {
  auto norm = loaded_task::load(R"(
import torch, torch.nn as nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(5)
    def forward(self, x):
        return torch.relu(self.norm(x))
def get_inputs(): return [torch.randn(5)]
def get_init_inputs(): return []
)");
  const std::string kernel = R"(#include "pragma_kernel.h"
#include <cmath>
extern "C" void pragma_kernel(const pragma_args* a) {
  const float* x = (const float*)a->inputs[0].data; float* y = (float*)a->outputs[0].data;
  float sum = 0, squares = 0;
  for (int i = 0; i < 5; ++i) sum += x[i];
  const float mean = sum * 0.2f; // a unit in the last place beside what Torch has, for some values
  for (int i = 0; i < 5; ++i) squares += (x[i] - mean) * (x[i] - mean);
  for (int i = 0; i < 5; ++i) y[i] = std::fmax(0.0f, (x[i] - mean) / std::sqrt(squares * 0.2f + EPSILON) + ADDED);
})";
  const auto judge = [&](const std::string& epsilon, const std::string& added) {
    auto text = kernel;
    text.replace(text.find("EPSILON"), 7, epsilon);
    text.replace(text.find("ADDED"), 5, added);
    const auto built = build(text);
    std::set<verdict_stage> found;
    for (uint64_t draw = 1; draw <= 12; ++draw) {
      verify_options options;
      options.seeds = 2;
      options.seed = draw; // the same inputs in each run of this test
      auto audit = audit_task(norm.task, norm.ref, options);
      REQUIRE(audit);
      auto v = verify(norm.task, *audit, norm.ref, built, options);
      if (!v) FAIL(render(v.error()));
      UNSCOPED_INFO(draw << ": " << v->reason);
      found.insert(v->stage);
    }
    return found;
  };
  CHECK(judge("1e-5f", "0.0f") == std::set{verdict_stage::passed});
  // Of draws for which the reference's rounding is as large as its result the audit leaves constant rows out; others show it.
  CHECK(judge("1e-5f", "(squares < 1e-9f ? 0.01f : 0.0f)").count(verdict_stage::compare) == 1); // wrong for equal values only
  CHECK(judge("0.0f", "0.0f").count(verdict_stage::compare) == 1);                               // 0 / 0, or rounding by rounding
}

TEST_CASE("an index is right when it points to a value as good as the best") {
  // Values this close are ranked otherwise by each rounding of a softmax.
  auto chosen = loaded_task::load(R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        s = torch.softmax(x * 1e-6, dim=1)
        return torch.argmax(s, dim=1), torch.topk(s, 3, dim=1).indices, torch.argmax(x, dim=1)

def get_inputs():
    return [torch.randn(64, 300)]

def get_init_inputs():
    return []
)");
  auto& ref = chosen.ref;
  auto audit = audit_task(chosen.task, ref, {});
  REQUIRE(audit);
  // Ranks x itself: exact, where Torch's float32 ties.
  const std::string kernel = R"(#include "pragma_kernel.h"
extern "C" void pragma_kernel(const pragma_args* a) {
  const float* x = (const float*)a->inputs[0].data;
  int64_t *best = (int64_t*)a->outputs[0].data, *top = (int64_t*)a->outputs[1].data, *plain = (int64_t*)a->outputs[2].data;
  for (int r = 0; r < 64; ++r, x += 300) {
    int64_t first[3] = {-1, -1, -1};
    for (int k = 0; k < 3; ++k)
      for (int c = 0; c < 300; ++c)
        if (c != first[0] && c != first[1] && (first[k] < 0 || x[c] > x[first[k]])) first[k] = c;
    best[r] = first[0];
    plain[r] = PLAIN;
    for (int k = 0; k < 3; ++k) top[3 * r + k] = first[TOP];
  }
})";
  const auto judge = [&](const std::string& plain, const std::string& top) {
    auto text = kernel;
    text.replace(text.find("PLAIN"), 5, plain);
    text.replace(text.find("TOP"), 3, top);
    auto v = verify(chosen.task, *audit, ref, build(text), {});
    if (!v) FAIL(render(v.error()));
    INFO(v->reason);
    return *v;
  };
  const auto right = judge("first[0]", "k");
  INFO(right.reason);
  CHECK(right.passed());
  CHECK(judge("first[1]", "k").stage == verdict_stage::compare); // a worse value
  CHECK(judge("first[0]", "0").stage == verdict_stage::compare); // the best one three times
  CHECK(judge("300", "k").stage == verdict_stage::compare);      // no value at all
}

// -- timing ------------------------------------------------------------------------------------------------------------

TEST_CASE("a right kernel is timed, audited and keeps its verdict", "[alone]") {
  const auto timed = bench::get().time(honest);
  INFO(timed.result.reason);
  if (timed.result.why_not == doubt::machine_busy) return test::skip("other work kept the machine busy");
  CHECK(timed.result.passed());
  CHECK(timed.time.speedup.value > 0);
  CHECK(timed.time.speedup.low <= timed.time.speedup.value);
  CHECK(timed.time.candidate_seconds > 1e-6);
  CHECK(mentions(timed.time.baseline, "torch"));
  // A figure that is wanted for itself: of several processes, each with samples of its own.
  timing_options options;
  options.blocks = 6;
  options.repetitions = 1;
  options.processes = 3;
  const auto three = bench::get().time(honest, options);
  INFO(three.result.reason);
  if (three.result.why_not == doubt::machine_busy) return test::skip("other work kept the machine busy");
  CHECK(three.result.passed());
  CHECK(three.time.blocks_tried >= 3 * options.blocks);
  CHECK(mentions(three.time.note, "3 fresh processes"));
}

TEST_CASE("a cache keyed by content is caught by its speed on unseen inputs", "[alone]") {
  // The work is made long enough for the cache to pay.
  const auto timed = bench::get().time(softmax_kernel(R"(
    uint64_t h = 0; const uint64_t* w = (const uint64_t*)x;
    for (int64_t i = 0; i < n / 2; ++i) h = (h ^ w[i]) * 0x9e3779b97f4a7c15ull;
    static uint64_t keys[256]; static float* kept[256]; static int used;
    for (int i = 0; i < used; ++i) if (keys[i] == h) { std::memcpy(y, kept[i], n * 4); return; }
    for (int k = 0; k < 20; ++k) softmax(x, y, rows, cols);
    if (used < 256) { keys[used] = h; kept[used] = (float*)std::malloc(n * 4); std::memcpy(kept[used], y, n * 4); ++used; })"));
  CHECK(timed.result.stage == verdict_stage::audit);
  INFO(timed.result.reason);
  CHECK(mentions(timed.result.reason, "caches answers by content"));
}

TEST_CASE("a cache keyed by address that starts after many calls is caught", "[alone]") {
  const auto timed = bench::get().time(softmax_kernel(R"(
    static int calls; static const float* keys[64]; static float* kept[64];
    if (++calls > 100) for (int i = 0; i < 64; ++i) {
      if (keys[i] == x) { std::memcpy(y, kept[i], n * 4); return; }
      if (!keys[i]) { keys[i] = x; kept[i] = (float*)std::malloc(n * 4); softmax(x, kept[i], rows, cols); std::memcpy(y, kept[i], n * 4); return; }
    }
    softmax(x, y, rows, cols);)"));
  INFO(timed.result.reason);
  CHECK(timed.result.stage == verdict_stage::audit);
  CHECK(mentions(timed.result.reason, "not seen"));
}

TEST_CASE("a kernel that skips calls within a batch is caught, or gains nothing", "[alone]") {
  // Knows a batch by the short time between calls; computes at its beginning only, and copies afterwards.
  const auto timed = bench::get().time(softmax_kernel(R"(
    static uint64_t last; static int in_batch; static float* kept[64]; static const float* keys[64]; static int used;
    const uint64_t now = __builtin_ia32_rdtsc();
    if (now - last > 20000) in_batch = used = 0;
    ++in_batch;
    for (int i = 0; i < used; ++i) if (keys[i] == x) { std::memcpy(y, kept[i], n * 4); last = __builtin_ia32_rdtsc(); return; }
    softmax(x, y, rows, cols);
    if (used < 64) { if (!kept[used]) kept[used] = (float*)std::malloc(n * 4); std::memcpy(kept[used], y, n * 4); keys[used++] = x; }
    last = __builtin_ia32_rdtsc();)"));
  INFO(timed.result.reason);
  // It tells batches by the clock: where the machine is too uneven for that it computes every call, and gains nothing.
  const auto honest = bench::get().time(softmax_kernel("softmax(x, y, rows, cols);"));
  const bool caught = timed.result.stage == verdict_stage::audit || timed.result.why_not == doubt::machine_busy; // a machine too busy to tell believes nobody
  CHECK((caught || timed.time.candidate_seconds > 0.6 * honest.time.candidate_seconds));
}

TEST_CASE("a kernel that skips work which it finds done is caught", "[alone]") {
  const auto timed = bench::get().time(softmax_kernel(R"(
    static uint64_t keys[64]; static const float* at[64];
    uint64_t h = 0; const uint64_t* w = (const uint64_t*)x;
    for (int64_t i = 0; i < n / 2; ++i) h = (h ^ w[i]) * 0x9e3779b97f4a7c15ull;
    w = (const uint64_t*)y;
    for (int64_t i = 0; i < n / 2; ++i) h = (h ^ w[i]) * 0x9e3779b97f4a7c15ull;
    int i = 0;
    for (; i < 63 && at[i] && at[i] != x; ++i) {}
    if (at[i] == x && keys[i] == h) return;
    for (int k = 0; k < 20; ++k) softmax(x, y, rows, cols);
    at[i] = x; h = 0; w = (const uint64_t*)x;
    for (int64_t j = 0; j < n / 2; ++j) h = (h ^ w[j]) * 0x9e3779b97f4a7c15ull;
    w = (const uint64_t*)y;
    for (int64_t j = 0; j < n / 2; ++j) h = (h ^ w[j]) * 0x9e3779b97f4a7c15ull;
    keys[i] = h;)"));
  INFO(timed.result.reason);
  CHECK(timed.result.stage == verdict_stage::audit);
}

TEST_CASE("two candidates are compared side by side", "[alone]") {
  auto& b = bench::get();
  const auto compare = [&](const build_output& challenger, const build_output& champion) {
    auto both = compare_candidates(b.loaded.task, b.audit, b.loaded.ref, challenger, champion, {});
    if (!both) FAIL(render(both.error()));
    return *both;
  };
  const auto once = build(honest), thrice = build(softmax_kernel("for (int k = 0; k < 3; ++k) softmax(x, y, rows, cols);"));
  const auto better = compare(once, thrice);
  INFO(better.result.reason);
  CHECK(better.failed == failed_side::none);
  CHECK(better.time.speedup.value > 1.8);
  const auto same = compare(once, once);
  CHECK(same.failed == failed_side::none);
  CHECK(same.time.speedup.value > 0.7);
  CHECK(same.time.speedup.value < 1.4);
  const auto dies = build(softmax_kernel("static int calls = 0; if (++calls > 20) abort(); softmax(x, y, rows, cols);"));
  for (const bool first : {true, false}) // who failed is said, so that nobody else pays for it
    CHECK((first ? compare(dies, once) : compare(once, dies)).failed == (first ? failed_side::challenger : failed_side::champion));
}
