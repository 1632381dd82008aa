// A task in parts, from the first run of the whole to a drop-in that is tried: tasks, kernels and verdicts are real, and the figures are the test's, so that nothing is timed.
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "cli/parts.hpp"
#include "cli/report.hpp"
#include "execution/build.hpp"
#include "kernels/parts.hpp"
#include "reference/reference.hpp"
#include "sandbox/sandbox.hpp"
#include "synthesis/search/builtin.hpp"
#include "tests/fixtures/other_python.hpp"
#include "tests/fixtures/skip.hpp"
#include "verification/verify.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

using namespace pragma;
using namespace pragma::test;
using namespace pragma::cli;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

/// Two layers of equal sizes, each with an epilogue of the same operators.
constexpr const char* two_layers = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(48, 48)
        self.second = nn.Linear(48, 48)

    def forward(self, x):
        x = self.first(x)
        x = torch.tanh(x) * torch.sigmoid(x) + torch.cos(x)
        x = self.second(x)
        return torch.tanh(x) * torch.sigmoid(x) + torch.cos(x)

def get_inputs():
    return [torch.randn(40, 48)]

def get_init_inputs():
    return []
)";

/// An operator that no kernel computes, between a large part and a small one.
constexpr const char* best_of = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        scores = torch.tanh(torch.exp(x * 0.25) - 1.0) * torch.sigmoid(x)
        best, _ = torch.topk(scores, 4, dim=-1)
        return torch.log1p(best * best) * torch.cos(best)

def get_inputs():
    return [torch.randn(40, 48)]

def get_init_inputs():
    return []
)";

/// Kernels beside a step of Torch's that makes another type and takes a tensor of it; %s: its text.
constexpr const char* around = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(0.5, 1.5, 64))
        %s

    def forward(self, x):
        wide = torch.tanh(torch.exp(x * 0.25) - 1.0) * torch.sigmoid(x) * self.gain
        wide = %s
        wide = torch.tanh(wide) * torch.sigmoid(wide)
        return torch.log1p(wide * wide) * torch.cos(wide)

def get_inputs():
    return [torch.randn(40, 64)]

def get_init_inputs():
    return []
)";

std::string around_with(const char* table, const char* step) {
  std::string text = around;
  for (const char* with : {table, step}) text.replace(text.find("%s"), 2, with);
  return text;
}

/// Runs whose kernels are the built-in coder's first, really built and verified. What a test asks of a run by its file's name: a figure as called, or a wrong kernel.
class made_up_figures : public engine {
public:
  std::map<std::string, double> figures;     ///< by the task's name; others gain 2
  std::set<std::string> wrong;               ///< the kernels of these compute something else
  std::set<std::string> uncalled;            ///< these have the kernel's figure alone, since the machine was busy
  std::set<std::string> unbelieved;          ///< ... since the drop-in's time was not believed
  std::set<std::string> stopped;             ///< by the user, before anything was tried
  size_t at_once = 1;                        ///< parts
  std::vector<std::string> runs;             ///< names of the tasks, in order
  std::vector<std::string> verdicts;         ///< of what was refused
  std::vector<operator_time> torch;          ///< where Torch's time goes in the whole
  stop_rules last_stop;                      ///< of the last run
  candidate together;                        ///< what was made of the parts
  task whole;

  made_up_figures() : ref_(started()) {}

  size_t side_by_side(const load_request&) const override { return at_once; }

  expected<run_result> run(const run_request& request, std::function<void(const run_event&)> on_event, const std::atomic<bool>&) override {
    begun_ += request.load.part;
    for (int i = 0; i < 2000 && request.load.part && begun_ < at_once; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::lock_guard lock(one_by_one_); // there is one reference
    if (request.load.part) CHECK(begun_ >= at_once); // each has waited for the others that there should be
    run_result result;
    auto& h = result.header;
    h.id = request.id.empty() ? request.new_id : request.id;
    h.request = request;
    h.state = "finished";
    const auto name = fs::path(request.load.path).stem().string();
    runs.push_back(name);
    CHECK(request.load.part == (name.find("_part_") != std::string::npos)); // its confirmation is a short one
    last_stop = request.stop;
    candidate code;
    if (stopped.contains(name)) h.state = "interrupted";
    if (stopped.contains(name)) return result;
    if (!request.coder.given.empty()) {
      code = together = request.coder.given.front();
      h.environment.task = whole;
    } else {
      auto loaded = ref_.load(request.load.path, 2);
      if (!loaded) return fail(loaded.error());
      if (whole.name.empty()) whole = *loaded;
      h.environment.task = *loaded;
      run_event event;
      event.what = "loaded";
      event.loaded = h.environment;
      on_event(event);
      auto coder = builtin_coder::create(*loaded, {});
      if (!coder) return fail(coder.error());
      code = *coder->next(std::nullopt);
      if (wrong.contains(name)) code.source = "#include \"pragma_kernel.h\"\nextern \"C\" void pragma_kernel(const pragma_args* a) { ((float*)a->outputs[0].data)[0] = 7; }\n";
      const auto verdict = judged(*loaded, code);
      iteration_record record;
      record.number = 1;
      static_cast<candidate&>(record.code) = code;
      record.verdict = verdict;
      result.iterations.push_back(record);
      if (!verdict.passed()) {
        verdicts.push_back(verdict.reason);
        return result;
      }
    }
    if (result.iterations.empty()) {
      iteration_record record;
      record.number = 1;
      static_cast<candidate&>(record.code) = code;
      record.verdict.stage = verdict_stage::passed;
      result.iterations.push_back(record);
    }
    const double figure = figures.contains(name) && request.coder.given.empty() ? figures.at(name) : 2;
    h.best_attempt = 1;
    h.confirmed = true;
    h.final.verdict = result.iterations.front().verdict;
    h.final.as_called = !uncalled.contains(name) && !unbelieved.contains(name);
    if (uncalled.contains(name)) h.final.call_doubt = doubt::machine_busy;
    if (!h.final.as_called) h.final.not_called = uncalled.contains(name) ? "the machine was busy when the drop-in was called" : "its process says 1 us a call, which is not believed";
    h.final.torch = torch;
    h.final.time.speedup = {figure, figure * 0.9, figure * 1.1};
    return result;
  }

private:
  static reference started() {
    auto ref = reference::start({});
    if (!ref) FAIL(render(ref.error()));
    return std::move(*ref);
  }

  verdict judged(const task& t, const candidate& code) {
    auto built = build_candidate(code);
    if (!built) FAIL(render(built.error()));
    verify_options options;
    options.seeds = 1;
    const auto audit = audit_task(t, ref_, options);
    if (!audit) FAIL(render(audit.error()));
    auto found = verify(t, *audit, ref_, *built, options);
    if (!found) FAIL(render(found.error()));
    return *found;
  }

  std::atomic<size_t> begun_ = 0;
  std::mutex one_by_one_;
  reference ref_;
};

struct folder_with_task {
  temp_dir place;
  run_request request;

  folder_with_task(const std::string& name, const std::string& text) : place(*temp_dir::create("pragma-parts-run-")) {
    const auto file = place.path() / (name + ".py");
    REQUIRE(write_file_atomic(file, text));
    request.load.path = file.string();
    request.load.threads = 1;
    request.new_id = name;
    request.out_dir = (place.path() / "out").string();
  }
  run_result run(made_up_figures& machine) {
    const watch_run silent = [](const std::string&, int) { return [](const run_event&) {}; };
    auto result = run_whole(machine, request, silent);
    if (!result) FAIL(render(result.error()));
    return std::move(*result);
  }
  /// What is made of the parts, as a program uses it: on unseen inputs against Model.
  void check(const made_up_figures& machine) {
    const auto at = place.path() / "drop_in";
    REQUIRE(write_drop_in(at, machine.whole, machine.together, 1));
    const auto checked = check_drop_in(at, machine.whole);
    if (!checked) FAIL(render(checked.error()));
    CHECK_THAT(checked->message, Contains("right on 3 unseen seeds"));
  }
  /// A program that uses it.
  void program(const std::string& file) {
    process_spec spec;
    spec.argv = {find_python().value().executable, "-B", std::string(TESTS_DIR) + "/drop_in/" + file, (place.path() / "drop_in").string()};
    spec.limits.wall_seconds = 200;
    const auto ran = run_process(spec);
    REQUIRE(ran);
    INFO(ran->out << ran->err);
    CHECK(ran->exit_code == 0);
  }
};

using names = std::vector<std::string>;

/// Steps that make and take another type than kernels have, with a tensor of it in the model: all around them is ours, and the whole is right.
void check_foreign(const char* type, const std::string& text) {
  CAPTURE(type, text);
  folder_with_task here("turned", text);
  made_up_figures machine;
  const auto result = here.run(machine);
  CHECK(machine.runs == names{"turned", "turned_part_1", "turned_part_2", "turned"});
  REQUIRE(machine.whole.params.size() == 1);
  CHECK(machine.whole.params[0].name == "gain");
  CHECK(machine.whole.foreign == names{"turn"});
  const auto& cut = result.header.request.cut;
  REQUIRE(cut.parts.size() == 2);
  CHECK((cut.parts[0].kept && cut.parts[1].kept));
  CHECK_THAT(join(cut.why, "; "), Contains("no kernel has the type " + std::string(type)));
  here.check(machine);
}

const std::string quantized = around_with("self.register_buffer('turn', torch.quantize_per_tensor(torch.linspace(-1, 1, 64), 0.01, 0, torch.qint8))",
                                          "torch.dequantize(torch.quantize_per_tensor(wide, 0.01, 0, torch.qint8)) + torch.dequantize(self.turn)");
constexpr const char* complex_parameter = "self.turn = nn.Parameter(torch.polar(torch.ones(32), torch.linspace(0, 3, 32)))";
constexpr const char* complex_step = "torch.view_as_real(torch.view_as_complex(wide.reshape(-1, 32, 2)) * self.turn * (1 + 0.5j)).flatten(1)";

} // namespace

TEST_CASE("Torch's products stay where a kernel of the whole is slower, and equal epilogues around them get one kernel by one run") {
  folder_with_task here("two_layers", two_layers);
  made_up_figures machine;
  machine.figures["two_layers"] = 0.7;
  const auto result = here.run(machine);
  CHECK(machine.runs == names{"two_layers", "two_layers_part_1", "two_layers"});
  CHECK(machine.last_stop.attempts == 2); // one was used for the whole: with one alone the run that goes on would end before it tries its parts
  CHECK(stop_reason(machine.last_stop, result.iterations, 1e6).empty());
  const auto& cut = result.header.request.cut;
  CHECK(cut.torch == names{"addmm in line 11", "addmm in line 13"});
  REQUIRE(cut.parts.size() == 1);
  CHECK(cut.parts[0].kept);
  CHECK(cut.parts[0].speedup.value == 2);
  CHECK_THAT(cut.parts[0].what, Contains("tanh, sigmoid, mul, cos, add, line 12, 2 times"));
  const auto made = parts_of(machine.together);
  REQUIRE(made);
  REQUIRE(made->regions.size() == 2);
  CHECK(made->regions[0].code.source == made->regions[1].code.source);
  std::vector<int> whose;
  for (const auto& step : made->steps) whose.push_back(step.region);
  CHECK(whose == std::vector<int>{-1, 0, -1, 1});
  here.check(machine);
}

TEST_CASE("beside products that take nearly all of Torch's time no part is tried, as nobody would see what it gains") {
  for (const auto& [products, tried] : std::map<double, bool>{{0.97, true}, {0.995, false}}) {
    CAPTURE(products);
    folder_with_task here("two_layers", two_layers);
    made_up_figures machine;
    machine.figures["two_layers"] = 0.7;
    machine.torch = {{"linear", 2, products, 2}, {"tanh", 2, 1 - products, 2}};
    const auto result = here.run(machine);
    CHECK(machine.runs == (tried ? names{"two_layers", "two_layers_part_1", "two_layers"} : names{"two_layers"}));
    CHECK(result.header.final.time.speedup.value == (tried ? 2 : 0.7)); // Torch's model stays: no drop-in below 1 is written
  }
}

TEST_CASE("a kernel of the whole that is faster as called is what a task gets: nothing is cut") {
  folder_with_task here("two_layers", two_layers);
  made_up_figures machine;
  machine.figures["two_layers"] = 1.2;
  const auto result = here.run(machine);
  CHECK(machine.runs == names{"two_layers"});
  CHECK(result.header.request.cut.parts.empty());
}

TEST_CASE("a part whose kernel is wrong stays Torch's, and the report says why, of it and of what no kernel computes") {
  folder_with_task here("best_of", best_of);
  made_up_figures machine;
  machine.wrong = {"best_of_part_2"};
  const auto result = here.run(machine);
  CHECK(machine.runs == names{"best_of", "best_of_part_1", "best_of_part_2", "best_of"});
  const auto& cut = result.header.request.cut;
  REQUIRE(cut.parts.size() == 2);
  CHECK(cut.parts[0].kept);
  CHECK_FALSE(cut.parts[1].kept);
  REQUIRE(machine.verdicts.size() == 1);
  CHECK_THAT(machine.verdicts[0], Contains("out0"));
  CHECK(cut.parts[1].why_not == "no kernel was accepted: " + machine.verdicts[0]);
  const auto made = parts_of(machine.together);
  REQUIRE(made);
  CHECK(made->regions.size() == 1);
  const auto report = render_html_report(run_document(result));
  CHECK_THAT(report, Contains("Torch: no kernel was accepted: "));
  CHECK_THAT(report, Contains("topk in line 7") && Contains("Torch: aten.topk has no rule"));
  here.check(machine);
}

TEST_CASE("a part that gains nothing stays Torch's") {
  folder_with_task here("best_of", best_of);
  made_up_figures machine;
  machine.figures["best_of_part_1"] = 1.05; // its interval reaches below 1
  const auto result = here.run(machine);
  const auto& cut = result.header.request.cut;
  REQUIRE(cut.parts.size() == 2);
  CHECK_FALSE(cut.parts[0].kept);
  CHECK(cut.parts[0].why_not == "Torch is as fast");
  CHECK(cut.parts[1].kept);
  here.check(machine);
}

TEST_CASE("a part that a busy machine kept from being timed as called is tried in the whole where its kernel is faster: undecided is not slower") {
  for (const auto& [figure, tried] : std::map<double, bool>{{2, true}, {1.05, false}}) {
    CAPTURE(figure);
    folder_with_task here("best_of", best_of);
    made_up_figures machine;
    machine.uncalled = {"best_of_part_1"};
    machine.figures["best_of_part_1"] = figure;
    const auto result = here.run(machine);
    const auto& cut = result.header.request.cut;
    REQUIRE(cut.parts.size() == 2);
    CHECK(cut.parts[0].kept == tried);
    CHECK(cut.parts[0].open);
    CHECK(cut.parts[0].why_not == "not timed as called: the machine was busy when the drop-in was called");
    CHECK((cut.parts[1].kept && !cut.parts[1].open));
    CHECK(parts_of(machine.together)->regions.size() == (tried ? 2 : 1));
    CHECK_THAT(render_html_report(run_document(result)), Contains(tried ? "a kernel of its own; not timed as called" : "Torch: not timed as called"));
    here.check(machine);
  }
}

TEST_CASE("a part whose drop-in says times that are not believed stays Torch's") {
  folder_with_task here("best_of", best_of);
  made_up_figures machine;
  machine.unbelieved = {"best_of_part_1"};
  const auto result = here.run(machine);
  CHECK_FALSE(result.header.request.cut.parts.at(0).kept);
  CHECK_THAT(result.header.request.cut.parts.at(0).why_not, Contains("not believed"));
  CHECK(parts_of(machine.together)->regions.size() == 1);
}

TEST_CASE("parts that run side by side give what they give one after the other, in their order") {
  folder_with_task here("best_of", best_of);
  made_up_figures machine;
  machine.at_once = 2;
  machine.figures["best_of_part_1"] = 1.05; // its interval reaches below 1
  const auto result = here.run(machine);
  REQUIRE(machine.runs.size() == 4);
  CHECK(machine.runs.front() == "best_of");
  CHECK(machine.runs.back() == "best_of");
  const auto& cut = result.header.request.cut;
  REQUIRE(cut.parts.size() == 2);
  CHECK((cut.parts[0].name == "part 1" && !cut.parts[0].kept && cut.parts[0].run == "best_of-part1"));
  CHECK((cut.parts[1].name == "part 2" && cut.parts[1].kept && cut.parts[1].run == "best_of-part2"));
  here.check(machine);
}

TEST_CASE("a run that the user stops in a part, be it the last one, says nothing of the task") {
  for (const std::string part : {"best_of_part_1", "best_of_part_2"}) {
    folder_with_task here("best_of", best_of);
    made_up_figures machine;
    machine.stopped = {part};
    machine.figures["best_of_part_1"] = 1.05;
    const auto result = run_whole(machine, here.request, [](const std::string&, int) { return [](const run_event&) {}; });
    REQUIRE(!result);
    CHECK(result.error().code == ec::interrupted);
    CHECK(result.error().hint == "go on with: pragma resume best_of");
    CHECK(machine.runs.back() == part);
  }
}

TEST_CASE("complex numbers, those of half precision and quantized tensors are Torch's, and a drop-in's kernels are all around them") {
  check_foreign("complex64", around_with(complex_parameter, complex_step));
  check_foreign("complex32", around_with("self.register_buffer('turn', torch.view_as_complex(torch.linspace(-1, 1, 64).half().reshape(32, 2)))",
                                         "(torch.view_as_real(torch.view_as_complex(wide.half().reshape(-1, 32, 2))).float() + torch.view_as_real(self.turn).float()).flatten(1)"));
  if (!find_python().value().torch.starts_with("1.")) return; // the fake tensors of later ones are not quantized
  check_foreign("qint8", quantized);
}

TEST_CASE("float8 and unsigned integers of later versions of Torch are Torch's as well") {
  const auto newer = newer_python();
  if (newer.empty()) return test::skip("float8 inside of a task, since PRAGMA_OTHER_PYTHON names no Python with a newer Torch that generated code may start");
  with_python there(newer);
  check_foreign("float8_e4m3fn", around_with("self.register_buffer('turn', torch.linspace(-1, 1, 64).to(torch.float8_e4m3fn))", "wide.to(torch.float8_e4m3fn).float() + self.turn.float()"));
  check_foreign("float8_e5m2", around_with("self.turn = torch.linspace(-1, 1, 64).to(torch.float8_e5m2)", "wide.to(torch.float8_e5m2).float() * self.turn.float()"));
  check_foreign("uint16", around_with("self.register_buffer('turn', torch.arange(64).to(torch.uint16))", "(wide * 100).abs().to(torch.uint16).float() + self.turn.float()"));
  check_foreign("complex64", around_with(complex_parameter, complex_step));
  folder_with_task here("quantized", quantized); // its fake tensors are not quantized
  made_up_figures machine;
  const auto result = run_whole(machine, here.request, [](const std::string&, int) { return [](const run_event&) {}; });
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ec::left_as_it_is);
  CHECK_THAT(result.error().message, Contains("of other shapes or types than was traced"));
}

TEST_CASE("a parameter of a type that no kernel has is read as it is when the drop-in is called, and has its gradient") {
  names pythons = {""};
  if (const auto newer = newer_python(); !newer.empty()) pythons.push_back(newer);
  for (const auto& other : pythons) {
    std::optional<with_python> there;
    if (!other.empty()) there.emplace(other);
    folder_with_task here("turned", around_with(complex_parameter, complex_step));
    made_up_figures machine;
    here.run(machine);
    here.check(machine);
    here.program("foreign.py");
  }
}

TEST_CASE("inputs that share memory: right as a kernel and in programs; where forward() writes to one, a program's call is Torch's, and a task of such inputs is left as it is") {
  const auto text = [](const char* before, const char* inputs) {
    return std::string("import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x, y):\n        ") + before + "\n        return torch.tanh(x) + y * 2.0\n\ndef get_inputs():\n    x = torch.randn(64, 64)\n    return " +
           inputs + "\n\ndef get_init_inputs():\n    return []\n";
  };
  for (const char* inputs : {"[x, x.t()]", "[x, x]", "list(torch.cat([x, x + 1]).split(64))", "[x, x.clone()]"})
    for (const char* before : {"pass", "x.mul_(2.0)"}) {
      CAPTURE(inputs, before);
      folder_with_task here("shared", text(before, inputs));
      made_up_figures machine;
      const watch_run silent = [](const std::string&, int) { return [](const run_event&) {}; };
      const auto result = run_whole(machine, here.request, silent);
      if (std::string(before) != "pass" && std::string(inputs) != "[x, x.clone()]") {
        REQUIRE_FALSE(result);
        CHECK(result.error().code == ec::left_as_it_is);
        CHECK_THAT(result.error().message, Contains("share memory"));
        continue;
      }
      if (!result) FAIL(render(result.error()));
      INFO(join(machine.verdicts, "; "));
      REQUIRE(result->header.confirmed); // its kernel was verified
      machine.together = result->iterations.front().code;
      here.check(machine);
      here.program("shared.py");
    }
}
