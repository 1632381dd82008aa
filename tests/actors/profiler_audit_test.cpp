// What a profiler saw of a module against what its process said, with the CPU standing in for a device and a shell for a profiler.
#include "tests/fixtures/skip.hpp"
#include "tests/fixtures/python_fixture.hpp"
#include "actors/workbench.hpp"
#include "base/text.hpp"

using namespace pragma;
using namespace pragma::test;
using Catch::Contains;

namespace {

/// Runs its target, and writes down what that says it launched: lines in a file "launches". A target that keeps no such list launched "fill".
json shell_profiler(const std::string& name, const std::string& first = "") {
  const std::string script = first + R"(most=$1; shift; "$@" && (
echo Step,Kernel,time; echo ,,ns; n=0
[ -e "$TMPDIR/launches" ] || echo fill > "$TMPDIR/launches"
while read kernel && [ $n -lt $most ]; do n=$((n+1)); echo $n,$kernel,1000; done < "$TMPDIR/launches") > "$0")";
  const json pass = {{"name", "times"},
                     {"argv", json::array({"{program}", "-c", script, "{scratch}/seen.csv", "{max_launches}", "{target}"})},
                     {"extra", true},
                     {"metrics", {{"time", "ns"}}},
                     {"outputs", json::array({{{"file", "seen.csv"}, {"unit_row", true}, {"columns", {{"launch", "Step"}, {"kernel", "Kernel"}}}}})}};
  return {{"name", name},
          {"title", "a shell"},
          {"backend", json::array({"cpu"})},
          {"collect", {{"program", json::array({"/bin/sh"})}, {"time", "time"}, {"passes", json::array({pass})}}}};
}

/// A module that leaves nothing to Torch; `launches`: Python, what its calls launch. Only a profiler's run has another TMPDIR than the build's scratch folder.
candidate launching(const std::string& launches) {
  return module_of(R"(watched = os.path.basename(os.environ["TMPDIR"]) != "scratch"
        with open(os.environ["TMPDIR"] + "/launches", "w") as f:
            for name in )" + launches + R"(: f.write(name + "\n")
        w, b = self.linear.weight.detach().numpy(), self.linear.bias.detach().numpy()
        y = torch.empty((x.shape[0], w.shape[0]))
        y.numpy()[...] = numpy.tanh(x.numpy() @ w.T + b) * scale
        return y)",
                   "import numpy\ndef jit(f): return f\n@jit\ndef press(): pass\n");
}

verdict measured(const json& profiler, const candidate& c) {
  auto folder = temp_dir::create("pragma-test-");
  REQUIRE(folder);
  REQUIRE(write_file_atomic(folder->path() / "task.py", python_task));
  workbench bench;
  load_request request;
  request.path = (folder->path() / "task.py").string();
  request.seeds = 1;
  request.manifests = {profiler};
  auto loaded = bench.load(request);
  if (!loaded) FAIL(render(loaded.error()));
  auto v = bench.verify(c);
  if (!v) FAIL(render(v.error()));
  INFO(v->reason << "\n" << v->log);
  REQUIRE(v->passed());
  measure_request measure;
  measure.candidate = c;
  measure.verdict = *v;
  auto result = bench.measure(measure);
  if (!result) FAIL(render(result.error()));
  return result->verdict;
}

const char* all_own = "the profiler saw kernels of the module only";

} // namespace

TEST_CASE("A module whose kernels a profiler sees is believed", "[profiler]") {
  const auto v = measured(shell_profiler("all-seeing"), launching("['press']"));
  INFO(v.reason);
  CHECK(v.passed());
  CHECK_THAT(join(v.checked, "; "), Contains(all_own));
}

TEST_CASE("A module that fails where a profiler looks is not believed", "[profiler]") {
  const auto v = measured(shell_profiler("all-seeing"), launching("['press'] if not watched else os._exit(0)"));
  INFO(v.reason);
  CHECK(v.stage == verdict_stage::audit);
  CHECK_THAT(v.reason, Contains("did not see its own"));
}

TEST_CASE("A profiler that sees nothing of anybody accuses nobody", "[profiler]") {
  const auto v = measured(shell_profiler("blind", "exit 1; "), launching("['press']"));
  INFO(v.reason);
  CHECK(v.passed());
  CHECK_THAT(join(v.checked, "; "), !Contains(all_own));
}

TEST_CASE("Kernels behind more launches than a profiler usually looks at are named", "[profiler]") {
  auto v = measured(shell_profiler("all-seeing"), launching("['press'] * 80 + ['sgemm']"));
  INFO(v.reason);
  if (v.why_not == doubt::machine_busy) return test::skip("other work kept the machine busy");
  CHECK(v.stage == verdict_stage::audit);
  CHECK_THAT(v.reason, Contains("sgemm, which is no function of the module"));
  v = measured(shell_profiler("all-seeing"), launching("['press'] * 80"));
  INFO(v.reason);
  CHECK(v.passed());
  CHECK_THAT(join(v.checked, "; "), Contains(all_own));
}
