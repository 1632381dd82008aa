// Who is accused, and who is not: honest kernels on a machine that the test itself keeps busy, and tricks in every path that yields a figure.
#include "tests/fixtures/kernel_sources.hpp"
#include "timing/timing.hpp"
#include "verification/verify.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

using namespace pragma;
using namespace pragma::test;

namespace {

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct judged_task {
  loaded_task loaded;
  task_audit audit;

  explicit judged_task(const std::string& source, int slots = 4) : loaded(loaded_task::load(source, slots)) {
    auto made = audit_task(loaded.task, loaded.ref, {});
    if (!made) FAIL(render(made.error()));
    audit = *made;
  }
  static judged_task& softmax() {
    static judged_task one(softmax_task);
    return one;
  }
  timed_verdict time(const build_output& built, timing_options options = {}) {
    verdict earlier;
    earlier.stage = verdict_stage::passed;
    auto result = time_candidate(loaded.task, audit, loaded.ref, built, earlier, options);
    if (!result) FAIL(render(result.error()));
    return *result;
  }
  side_by_side compare(const build_output& challenger, const build_output& champion) {
    timing_options options;
    options.max_seconds = 3;
    auto result = compare_candidates(loaded.task, audit, loaded.ref, challenger, champion, options);
    if (!result) FAIL(render(result.error()));
    return *result;
  }
};

/// Twice as many busy threads as CPUs, half of them moving memory, while it lives.
class load {
public:
  load() {
    const unsigned count = 2 * std::max(1u, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < count; ++i)
      threads_.emplace_back([this, i] {
        std::vector<uint64_t> memory(i % 2 ? 1 << 22 : 16);
        for (uint64_t turn = 0; !over_; ++turn)
          for (size_t k = 0; k < memory.size() && !over_; ++k) memory[k] += turn;
      });
  }
  load(const load&) = delete;
  load& operator=(const load&) = delete;
  ~load() {
    over_ = true;
    for (auto& t : threads_) t.join();
  }

private:
  std::atomic<bool> over_ = false;
  std::vector<std::thread> threads_;
};

/// Writes past the caches, as kernels with large outputs do.
const std::string streaming_relu = R"(#include "pragma_kernel.h"
#include <immintrin.h>
extern "C" void pragma_kernel(const pragma_args* a) {
  const float* x = (const float*)a->inputs[0].data; float* y = (float*)a->outputs[0].data;
  const int64_t n = a->inputs[0].shape[0] * a->inputs[0].shape[1];
  for (int64_t i = 0; i < n; i += 4) _mm_stream_ps(y + i, _mm_max_ps(_mm_loadu_ps(x + i), _mm_setzero_ps()));
  _mm_sfence();
})";

std::string task_of(const std::string& result, const std::string& inputs) {
  return "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def forward(self, x):\n        return " + result + "\n\ndef get_inputs():\n    return " + inputs +
         "\n\ndef get_init_inputs():\n    return []\n";
}

const std::string relu_task = task_of("torch.relu(x)", "[torch.randn(1024, 1024)]");

const std::string row_sums_task = task_of("torch.sum(x * x, dim=1)", "[torch.randn(256, 16384)]");

/// Sixteen megabytes that caches keep between calls, and one number a row.
const std::string row_sums = R"(#include "pragma_kernel.h"
extern "C" void pragma_kernel(const pragma_args* a) {
  const float* x = (const float*)a->inputs[0].data; float* y = (float*)a->outputs[0].data;
  const int64_t rows = a->inputs[0].shape[0], n = a->inputs[0].shape[1];
  for (int64_t r = 0; r < rows; ++r, x += n) {
    float s[32] = {};
    for (int64_t i = 0; i < n; i += 32) for (int k = 0; k < 32; ++k) s[k] += x[i + k] * x[i + k];
    float all = 0;
    for (int k = 0; k < 32; ++k) all += s[k];
    y[r] = all;
  }
})";

const std::string sort_task = task_of("torch.sort(x, dim=1)[0]", "[torch.randn(4, 128)]");

/// Branches on its data, and works where its outputs lie.
const std::string sort_kernel = R"(#include "pragma_kernel.h"
#include <algorithm>
extern "C" void pragma_kernel(const pragma_args* a) {
  const float* x = (const float*)a->inputs[0].data; float* y = (float*)a->outputs[0].data;
  const int64_t rows = a->inputs[0].shape[0], n = a->inputs[0].shape[1];
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    std::copy(x, x + n, y);
    std::sort(y, y + n);
  }
})";

} // namespace

TEST_CASE("an honest kernel that sorts a few rows in its outputs is judged on more of them than a processor knows by heart", "[judgement]") {
  judged_task sorting(sort_task, 0);
  CHECK(sorting.loaded.ref.slots() == 32);
  timing_options options;
  options.max_seconds = 1;
  const auto timed = sorting.time(build(sort_kernel), options);
  INFO(timed.result.reason);
  CHECK((timed.result.passed() || timed.result.why_not == doubt::machine_busy));
}

TEST_CASE("a kernel that cannot bear other inputs in the middle of a call is neither accused nor believed", "[judgement]") {
  // Reads each row twice, as who counts first and fills then, and compares bits: one changed element is enough.
  const std::string unsteady = R"(#include "pragma_kernel.h"
extern "C" void pragma_kernel(const pragma_args* a) {
  const float* x = (const float*)a->inputs[0].data; float* y = (float*)a->outputs[0].data;
  const int64_t rows = a->inputs[0].shape[0], n = a->inputs[0].shape[1];
  for (int64_t r = 0; r < rows; ++r, x += n) {
    float sum = 0;
    uint64_t once = 0, twice = 0;
    for (int64_t i = 0; i < n; ++i) { sum += x[i] * x[i]; once = 31 * once + ((const uint32_t*)x)[i]; }
    for (volatile int64_t i = 0; i < n; i = i + 1) twice = 31 * twice + ((const uint32_t*)x)[i];
    if (once != twice) __builtin_trap();
    y[r] = sum;
  }
})";
  judged_task sums(row_sums_task);
  const auto built = build(unsteady, {"-O2", "-fno-strict-aliasing"});
  timing_options options;
  options.max_seconds = 1;
  int not_believed = 0;
  for (int look = 0; look < 3 && !not_believed; ++look) { // other work may keep the exchange from the middle of a call
    const auto timed = sums.time(built, options);
    INFO(timed.result.reason);
    CHECK((timed.result.passed() || !timed.result.established()));
    not_believed += !timed.result.established();
  }
  CHECK(not_believed > 0);
}

TEST_CASE("a trick is found on a busy machine, too", "[judgement]") {
  auto source = read_file(std::string(TESTS_DIR) + "/hostile/slice_sampled_rows.cpp");
  REQUIRE(source);
  auto task = read_file(std::string(TESTS_DIR) + "/hostile/task.py");
  REQUIRE(task);
  judged_task softsign(*task, 0);
  const auto built = build(*source, {"-O2", "-fno-tree-vectorize"});
  const load busy;
  timing_options options;
  options.max_seconds = 0.5;
  options.waits = 0;
  const auto timed = softsign.time(built, options);
  INFO(timed.result.reason);
  CHECK_FALSE(timed.result.passed());
}

TEST_CASE("an honest kernel with streaming stores is accused by no load", "[judgement]") {
  judged_task relu(relu_task);
  const auto built = build(streaming_relu);
  const load busy;
  timing_options options;
  options.max_seconds = 1;
  options.waits = 0;
  const auto timed = relu.time(built, options);
  INFO(timed.result.reason);
  CHECK((timed.result.passed() || !timed.result.established()));
}

TEST_CASE("an honest kernel whose data caches keep is accused by no load", "[judgement]") {
  judged_task sums(row_sums_task);
  const auto built = build(row_sums, {"-O3", "-march=native", "-ffast-math"});
  timing_options options;
  options.max_seconds = 1;
  options.waits = 0;
  const auto quiet = sums.time(built, options);
  INFO(quiet.result.reason);
  CHECK((quiet.result.passed() || !quiet.result.established()));
  const load busy;
  const auto timed = sums.time(built, options);
  INFO(timed.result.reason);
  CHECK((timed.result.passed() || !timed.result.established()));
}

TEST_CASE("threads that spin between calls slow nobody down, and are no offence", "[judgement]") {
  // As a pool of threads does that waits actively for its next work.
  const auto spinning = build(softmax_kernel(R"(
    static std::atomic<int64_t> turn{0}, done{0};
    static const float* from; static float* to; static int64_t half, width;
    static std::thread* helper = new std::thread([] {
      for (int64_t seen = 0;;) {
        if (turn.load() == seen) continue;
        ++seen;
        softmax(from, to, half, width);
        done = seen;
      }
    });
    (void)helper;
    from = x + rows / 2 * cols; to = y + rows / 2 * cols; half = rows - rows / 2; width = cols;
    const int64_t mine = turn.load() + 1;
    turn = mine;
    softmax(x, y, rows / 2, cols);
    while (done.load() != mine) {})", "#include <atomic>\n#include <thread>\n"));
  timing_options options;
  options.threads = 2;
  options.max_seconds = 2;
  const auto timed = judged_task::softmax().time(spinning, options);
  INFO(timed.result.reason);
  CHECK((timed.result.passed() || !timed.result.established()));
}

TEST_CASE("a comparison with the best has the audits of every other figure", "[judgement]") {
  auto& task = judged_task::softmax();
  const auto honest = build(softmax_kernel("softmax(x, y, rows, cols);"));
  // The command that is being carried out lies on the stack of the runner: this one tells a long batch, and returns at once.
  const auto reader = build(softmax_kernel(R"(
    struct command { uint64_t nonce; int32_t first, count; int64_t calls; uint32_t operation, flags; };
    const uint64_t* stack = (const uint64_t*)__builtin_frame_address(0);
    for (int i = 0; i < 96; ++i) {
      const command* c = (const command*)(stack + i);
      if (c->nonce >> 48 && c->first >= 0 && c->first < 64 && c->count >= 1 && c->count <= 64 && c->calls > 4 * c->count && c->calls < 100000000) return;
    }
    softmax(x, y, rows, cols);)"));
  auto both = task.compare(reader, honest);
  INFO(both.result.reason);
  CHECK(both.failed == failed_side::challenger);
  both = task.compare(honest, reader);
  CHECK(both.failed == failed_side::champion);
  // Computes the first and the last round of a batch and nothing between: right wherever anybody looks, so that its times must tell.
  const auto peeks = build(softmax_kernel(R"(
    struct command { uint64_t nonce; int32_t first, count; int64_t calls; uint32_t operation, flags; };
    static uint64_t nonce = 0; static int64_t done = 0;
    const uint64_t* stack = (const uint64_t*)__builtin_frame_address(0);
    for (int i = 0; i < 96; ++i) {
      const command* c = (const command*)(stack + i);
      if (!(c->nonce >> 48 && c->first >= 0 && c->first < 64 && c->count >= 1 && c->count <= 64 && c->calls >= 1 && c->calls < 100000000)) continue;
      if (c->nonce != nonce) { nonce = c->nonce; done = 0; }
      const int64_t round = done++ / c->count, rounds = c->calls / c->count;
      if (rounds > 4 && round > 0 && round < rounds - 1) return;
      break;
    }
    softmax(x, y, rows, cols);)"));
  // Where a call is slow, samples are too short for the trick, and its times are honest.
  both = task.compare(peeks, honest);
  INFO(both.result.reason);
  CHECK((both.failed == failed_side::challenger || !both.result.established() || both.time.speedup.value < 1.3));
}

TEST_CASE("a time that the machine cannot reach is no figure, and no offence", "[judgement]") {
  timing_options options;
  options.max_seconds = 0.5;
  options.waits = 0;
  options.first_wait = 0.05; // no later moment mends it
  options.beyond_limits = [](double) { return std::string("memory bandwidth"); };
  const auto timed = judged_task::softmax().time(build(softmax_kernel("softmax(x, y, rows, cols);")), options);
  CHECK(timed.result.stage == verdict_stage::not_established);
  CHECK(timed.result.why_not == doubt::unbelievable);
  CHECK(mentions(timed.result.reason, "memory bandwidth"));
}
