// Candidates in Python, with the CPU standing in for a device: the runner's protocol, the verdicts, the timing and its audits. What
// hostile modules try is in python_hostile_test.cpp.
#include "python_fixture.hpp"

#include <csignal>

using namespace pragma;
using namespace pragma::test;
using Catch::Contains;

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

namespace {

/// A process waits for its candidate, maybe in vain; then the candidate is built and started. Gives whether that process serves it.
bool waiting_process_serves(bool killed) {
  auto& b = python_bench::get();
  build_options options;
  auto shell = python_shell(options);
  REQUIRE(shell);
  auto waiting = runner_process::prepare(*shell, b.loaded.ref, {});
  REQUIRE(waiting);
  const int pid = waiting->pid();
  if (killed) ::kill(pid, SIGKILL);
  shell->kept->prepared = std::make_shared<runner_process>(std::move(*waiting));
  options.shell = &*shell;
  const auto output = build_candidate(module_of("return self.right(x, scale)"), options);
  REQUIRE(output);
  auto runner = runner_process::start(*output, b.loaded.ref, {});
  REQUIRE(runner);
  CHECK(runner->call(0, 1, 1, 20));
  return runner->pid() == pid;
}

} // namespace

TEST_CASE("A process that was started before its candidate was written serves it", "[python]") { CHECK(waiting_process_serves(false)); }

TEST_CASE("A waiting process that died is replaced", "[python]") { CHECK_FALSE(waiting_process_serves(true)); }

TEST_CASE("Results of earlier calls are gone: a device has no memory to spare for them", "[python]") {
  // 4 slots, one more while it is made: more were kept by a cycle that only the collector ends.
  const auto counting = module_of("import gc, weakref; gc.disable(); y = self.right(x, scale)\n"
                                  "        alive = [r for r in self.kept.get('all', []) if r() is not None] + [weakref.ref(y)]\n"
                                  "        self.kept['all'] = alive\n"
                                  "        if len(alive) > 6: raise MemoryError('%d results are kept' % len(alive))\n"
                                  "        return y");
  const auto v = timed(counting);
  INFO(v.reason << "\n" << v.log);
  CHECK_THAT(v.reason, !Contains("results are kept"));
  CHECK(v.passed());
}

TEST_CASE("Timing against the reference finds honest modules honest", "[python]") {
  const auto v = timed(module_of("return self.right(x, scale)"));
  INFO(v.reason);
  CHECK(v.passed());
  CHECK(v.checked.size() >= 3);
}
