// Candidates in Python, with the CPU standing in for a device: the runner's protocol, the verdicts, the timing and its audits. The
// modules here call Torch, which a stand-in must; on a device Triton does the work (bench/gpu).
#include "kernel_sources.hpp"
#include "kernels/timing.hpp"
#include "kernels/verify.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
using namespace pragma::test;
using Catch::Contains;

namespace {

/// Long enough that a call takes longer than a launch, short enough for a test.
const char* task_text = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
    def forward(self, x, scale):
        return torch.tanh(self.linear(x)) * scale

def get_inputs():
    return [torch.randn(64, 256), 2.0]

def get_init_inputs():
    return [256]
)";

const std::string head = R"(import os, sys, time
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.calls = 0
        self.kept = {}
    def right(self, x, scale):
        return torch.tanh(self.linear(x)) * scale
    def forward(self, x, scale):
)";

struct bench {
  loaded_task loaded = loaded_task::load(task_text);
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
};

candidate module_of(const std::string& forward) {
  candidate c;
  c.language = "triton";
  c.source = head + "        " + forward + "\n";
  return c;
}

build_output made(const candidate& c) {
  auto output = build_candidate(c, {});
  if (!output) FAIL(render(output.error()));
  return std::move(*output);
}

verdict judge(const candidate& c, bool allow_torch = true) {
  auto& b = bench::get();
  const auto output = made(c);
  verify_options options;
  options.seeds = 2;
  options.allow_torch = allow_torch;
  auto result = verify(b.loaded.task, b.audit, b.loaded.ref, output, options);
  if (!result) FAIL(render(result.error()));
  return *result;
}

/// Timed at once: what it does in a verification is another test.
verdict timed(const std::string& forward) {
  auto& b = bench::get();
  const auto output = made(module_of(forward));
  verdict earlier;
  earlier.stage = verdict_stage::passed;
  timing_options options;
  options.max_seconds = 0.5;
  options.blocks = 5;
  auto result = time_candidate(b.loaded.task, b.audit, b.loaded.ref, output, earlier, options);
  if (!result) FAIL(render(result.error()));
  if (result->result.passed()) CHECK(result->time.speedup.value > 0);
  return result->result;
}

} // namespace

TEST_CASE("A right module passes, with the reference's parameters and the task's constants", "[python]") {
  const auto v = judge(module_of("return self.right(x, scale)"));
  INFO(v.reason << "\n" << v.log);
  CHECK(v.passed());
  REQUIRE(v.torch_operators.size() >= 2);
  CHECK_THAT(v.torch_operators.front() + v.torch_operators.back(), Contains(":"));
}

TEST_CASE("What is left to Torch is named, and refused unless it is allowed", "[python]") {
  const auto v = judge(module_of("return self.right(x, scale)"), false);
  CHECK(v.stage == verdict_stage::audit);
  CHECK_THAT(v.reason, Contains("tanh") && Contains("to Torch"));
}

TEST_CASE("A module may take its parameters as a list", "[python]") {
  candidate c;
  c.language = "triton";
  c.source = R"(import torch
PRAGMA_PARAMS = True

class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
    def load_params(self, tensors):
        self.weight, self.bias = tensors
    def forward(self, x, scale):
        return torch.tanh(x @ self.weight.t() + self.bias) * scale
)";
  CHECK(judge(c).passed());
}

TEST_CASE("What is no module is refused before it runs", "[python]") {
  candidate c;
  c.language = "triton";
  c.source = "class ModelNew:\n  def forward(self:\n    pass\n";
  auto output = build_candidate(c);
  REQUIRE(!output);
  CHECK(output.error().code == ec::build_failed);
  CHECK_THAT(output.error().message, Contains("line 2"));
  c.source = "print('hello')\n";
  output = build_candidate(c);
  REQUIRE(!output);
  CHECK_THAT(output.error().message, Contains("ModelNew"));
}

TEST_CASE("A module that fails says why", "[python]") {
  auto v = judge(module_of("raise ValueError('no such block size')"));
  CHECK(v.stage == verdict_stage::load);
  CHECK_THAT(v.reason, Contains("raised ValueError in line 14") && Contains("no such block size"));
  v = judge(module_of("return self.right(x, scale).double()"));
  CHECK_THAT(v.reason, Contains("torch.float64"));
  v = judge(module_of("return self.right(x, scale)[:, :3]"));
  CHECK_THAT(v.reason, Contains("expected torch.float32 [64, 256]"));
  v = judge(module_of("return self.right(x, scale).t().contiguous().t()"));
  CHECK_THAT(v.reason, Contains("not contiguous"));
  v = judge(module_of("os._exit(0)"));
  CHECK_THAT(v.reason, Contains("ended its process by itself"));
}

TEST_CASE("Wrong modules are found out", "[python]") {
  CHECK(judge(module_of("return torch.zeros_like(x)")).stage == verdict_stage::compare);
  CHECK(judge(module_of("return torch.empty_like(x)")).stage == verdict_stage::compare);
  const auto v = judge(module_of("return self.kept.setdefault(x.data_ptr(), self.right(x, scale).clone())"));
  CHECK(v.stage == verdict_stage::compare);
  CHECK_THAT(judge(module_of("y = self.right(x, scale); x.zero_(); return y")).reason, Contains("changed its inputs"));
  // On a stand-in that is all CPU the outputs' descriptor is the only one that leads anywhere.
  CHECK(!judge(module_of("os.write(4, b'x' * 24); return self.right(x, scale)")).passed());
  CHECK(!judge(module_of("import socket; socket.create_connection(('127.0.0.1', 80)); return self.right(x, scale)")).passed());
}

TEST_CASE("The sandbox of a device lets a module write to its own folder only", "[python]") {
  auto v = judge(module_of("open('/tmp/pragma-was-here', 'w'); return self.right(x, scale)"));
  CHECK_THAT(v.reason, Contains("PermissionError"));
  v = judge(module_of("open(__file__, 'a'); return self.right(x, scale)"));
  CHECK_THAT(v.reason, Contains("PermissionError"));
  v = judge(module_of("open('here', 'w'); return self.right(x, scale)"));
  CHECK(v.passed());
  v = judge(module_of("import ctypes; ctypes.CDLL(None, use_errno=True).ptrace(16, os.getppid(), 0, 0) and sys.exit('denied'); return self.right(x, scale)"));
  CHECK(!v.passed());
}

TEST_CASE("Timing against the reference finds honest modules honest", "[python]") {
  const auto v = timed("return self.right(x, scale)");
  INFO(v.reason);
  CHECK(v.passed());
  CHECK(v.checked.size() >= 3);
}

TEST_CASE("Timing finds tricks out", "[python]") {
  // Every second call gives what the one before gave.
  auto v = timed("self.calls += 1\n        if self.calls % 2 == 0: return self.last\n        self.last = self.right(x, scale); return self.last");
  CHECK(!v.passed());
  // Answers are kept by the contents of the inputs.
  v = timed("k = float(x.sum())\n        if k not in self.kept: time.sleep(0.005); self.kept[k] = self.right(x, scale)\n        return self.kept[k].clone()");
  INFO(v.reason);
  CHECK(v.stage == verdict_stage::audit);
  CHECK_THAT(v.reason, Contains("keeps answers"));
  // The clock of its process stands still while it works.
  v = timed("t = time.perf_counter; y = self.right(x, scale); s = t()\n        while t() - s < 0.003: pass\n"
            "        import device; n = t(); device.time.perf_counter = lambda: 0.00001 * self.calls; self.calls += 1\n"
            "        return y");
  INFO(v.reason);
  CHECK(!v.passed());
}
