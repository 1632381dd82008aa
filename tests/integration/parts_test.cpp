// A task of which one operator stays Torch's, from `pragma optimize` to a program that calls the result.
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/subprocess.hpp"
#include "tests/fixtures/shared_cache.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <functional>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

constexpr const char* gate = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, best):
        super().__init__()
        self.gate = nn.Linear(32, 16)
        self.best = best

    def forward(self, x):
        scores = torch.softmax(self.gate(torch.tanh(torch.exp(x * 0.25) - 1.0) * torch.sigmoid(x)), dim=-1)
        best, places = torch.topk(scores, self.best, dim=-1)
        return torch.log1p(best / best.sum(dim=-1, keepdim=True)) * torch.tanh(best), places

def get_inputs():
    return [torch.randn(128, 32)]

def get_init_inputs():
    return [4]
)";
/// Nothing that a kernel could compute.
constexpr const char* only_torch = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.topk(x, 3, dim=-1)[0]

def get_inputs():
    return [torch.randn(64, 32)]

def get_init_inputs():
    return []
)";

/// Complex numbers: no kernel could give them.
constexpr const char* complex_result = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.fft.rfft(torch.tanh(x))

def get_inputs():
    return [torch.randn(16, 64)]

def get_init_inputs():
    return []
)";
/// Values decide how many there are.
constexpr const char* chosen_by_value = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)[x > 0]

def get_inputs():
    return [torch.randn(16, 64)]

def get_init_inputs():
    return []
)";
/// As a recurrent layer returns them.
constexpr const char* nested_results = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x + 1, (x * 2, x * 3)

def get_inputs():
    return [torch.randn(16, 64)]

def get_init_inputs():
    return []
)";

constexpr const char* in_dictionary = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return {"y": x + 1}

def get_inputs():
    return [torch.randn(16, 64)]

def get_init_inputs():
    return []
)";
/// Random numbers in forward(), also in eval mode.
constexpr const char* dropped = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5)

def get_inputs():
    return [torch.randn(16, 64)]

def get_init_inputs():
    return []
)";

/// Values decide the shapes: there is no graph.
constexpr const char* no_graph = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, labels):
        return torch.nn.functional.one_hot(labels).float() * 2

def get_inputs():
    return [torch.randint(0, 10, (64,))]

def get_init_inputs():
    return []
)";

process_result run(const std::vector<std::string>& argv, const fs::path& home) {
  test::home_with_limits(home);
  process_spec spec;
  spec.argv = argv;
  spec.env = {{"PRAGMA_HOME", home.string()}, {"NO_COLOR", "1"}};
  spec.limits.wall_seconds = 280;
  spec.max_output = 32 << 20;
  auto result = run_process(spec);
  REQUIRE(result);
  return *result;
}

} // namespace

TEST_CASE("a task with an operator of Torch's gets kernels for its parts, and a drop-in that is right in any program", "[alone]") {
  auto place = *temp_dir::create("pragma-parts-test-");
  const auto task = place.path() / "gate.py", out = place.path() / "out", home = place.path() / "home";
  std::ofstream(task) << gate;
  // Best: what is quickest of what this Torch has; the whole is held against it, and the parts against eager Torch.
  const auto result = run({PRAGMA_EXE, "optimize", task.string(), "--out", out.string(), "--attempts", "2", "--seeds", "1", "--no-profile", "--json", "--baseline", "best"}, home);
  INFO(result.err << result.out);
  if (result.exit_code == 6) {
    WARN("the machine was too busy to establish a figure");
    return;
  }
  REQUIRE(result.exit_code == 0);
  const auto document = parse_json(result.out, "the run");
  REQUIRE(document);
  const auto& whole = (*document)["run"];
  REQUIRE(whole.contains("cut"));
  CHECK(whole["cut"]["torch"] == json{"topk in line 12"});
  CHECK(whole["cut"]["parts"].size() == 2);
  CHECK(whole["confirmed"] == true);
  CHECK(whole["final"]["as_called"] == true);
  CHECK(whole["final"]["timing"]["speedup"]["low"].get<double>() > 1);
  CHECK(fs::exists(out / "regions" / "part_1" / "report.html"));
  const auto python = whole["environment"]["python"].get<std::string>();
  const auto program = run({python.substr(0, python.find(' ')), std::string(TESTS_DIR) + "/drop_in/parts.py", out.string()}, home);
  INFO(program.err << program.out);
  CHECK(program.exit_code == 0);
  const auto alone = place.path() / "alone";
  const auto exported = run({PRAGMA_EXE, "export", out.string(), "--one-file", "--name", "model_new", "--out", alone.string(), "--json"}, home);
  INFO(exported.err << exported.out);
  CHECK(parse_json(exported.out, "the files").value()["files"] == json{(alone / "model_new.py").string()});
  fs::copy_file(out / "task_reference.py", alone / "task_reference.py");
  const auto as_one_file = run({python.substr(0, python.find(' ')), std::string(TESTS_DIR) + "/drop_in/parts.py", alone.string()}, home);
  INFO(as_one_file.err << as_one_file.out);
  CHECK(as_one_file.exit_code == 0);

  // The record of somebody else: a region that is not there, and text of Python's where a type should be.
  const auto attacked = [&](const std::function<void(json&)>& change) {
    auto changed = *document;
    auto& code = changed["iterations"].back()["code"];
    auto made = parse_json(code["source"].get<std::string>(), "parts").value();
    for (auto& step : made["steps"]) change(step);
    code["source"] = made.dump();
    REQUIRE(write_file_atomic(place.path() / "changed.json", changed.dump()));
    return run({PRAGMA_EXE, "verify", task.string(), (place.path() / "changed.json").string()}, home);
  };
  const auto absent = attacked([](json& step) {
    if (step["region"] == 0) step["region"] = 99;
  });
  INFO(absent.err << absent.out);
  CHECK(absent.exit_code == 2);
  const auto trace = place.path() / "trace";
  const auto injected = attacked([&](json& step) {
    if (step["nodes"].is_array())
      for (auto& node : step["nodes"]) {
        node["args"]["dtype"] = "float32 if open('" + trace.string() + "', 'w') else 0";
        if (node["op"] == "aten.topk.default") node["args"]["k"] = {{"ref", "nowhere"}};
      }
  });
  INFO(injected.err << injected.out);
  CHECK(injected.exit_code == 5);
  CHECK_FALSE(fs::exists(trace));
}

TEST_CASE("a drop-in's check judges indices by what they point to") {
  const auto share = fs::path(PRAGMA_EXE).parent_path().parent_path() / "share" / "pragma" / "python";
  const auto python = std::getenv("PRAGMA_PYTHON") ? std::string(std::getenv("PRAGMA_PYTHON")) : std::string("/usr/bin/python3");
  const auto program = run({python, std::string(TESTS_DIR) + "/drop_in/indices.py", share.string()}, temp_dir::create("pragma-parts-test-")->path());
  INFO(program.err << program.out);
  CHECK(program.exit_code == 0);
}

TEST_CASE("a drop-in's check knows what falls on the other side of a tie") {
  const auto share = fs::path(PRAGMA_EXE).parent_path().parent_path() / "share" / "pragma" / "python";
  const auto python = std::getenv("PRAGMA_PYTHON") ? std::string(std::getenv("PRAGMA_PYTHON")) : std::string("/usr/bin/python3");
  const auto program = run({python, std::string(TESTS_DIR) + "/drop_in/ties.py", share.string()}, temp_dir::create("pragma-parts-test-")->path());
  INFO(program.err << program.out);
  CHECK(program.exit_code == 0);
}

TEST_CASE("where Torch's operators are all there is, the task is left as it is") {
  auto place = *temp_dir::create("pragma-parts-test-");
  const auto task = place.path() / "best.py", out = place.path() / "out";
  std::ofstream(task) << only_torch;
  const auto result = run({PRAGMA_EXE, "optimize", task.string(), "--out", out.string(), "--attempts", "1", "--seeds", "1", "--no-profile"}, place.path() / "home");
  INFO(result.err << result.out);
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("left as it is, and as fast") != std::string::npos);
  CHECK(result.err.find("topk") != std::string::npos);
  CHECK_FALSE(fs::exists(out / "model_new.py"));
}

TEST_CASE("a task whose results no kernel could give is left as it is, and other commands say why they cannot use it") {
  auto place = *temp_dir::create("pragma-parts-test-");
  for (const auto& [text, words] : {std::pair{complex_result, "complex64"}, std::pair{nested_results, "returns a tuple, not a tensor"}, std::pair{chosen_by_value, "was traced"}}) {
    const auto task = place.path() / "task.py", out = place.path() / "out", kernel = place.path() / "kernel.cpp";
    std::ofstream(task) << text;
    std::ofstream(kernel) << "#include \"pragma_kernel.h\"\nvoid pragma_kernel(const pragma_args*) {}\n";
    const auto result = run({PRAGMA_EXE, "optimize", task.string(), "--out", out.string(), "--attempts", "1", "--seeds", "1", "--no-profile"}, place.path() / "home");
    INFO(result.err << result.out);
    CHECK(result.exit_code == 0);
    CHECK(result.err.find("left as it is, and as fast") != std::string::npos);
    CHECK(result.err.find(words) != std::string::npos);
    CHECK_FALSE(fs::exists(out / "model_new.py"));
    const auto verified = run({PRAGMA_EXE, "verify", task.string(), kernel.string()}, place.path() / "home");
    INFO(verified.err << verified.out);
    CHECK(verified.exit_code == 3);
    CHECK(verified.err.find(words) != std::string::npos);
  }
}

TEST_CASE("a task of which no graph can be made is left as it is, with the line that is in the way") {
  auto place = *temp_dir::create("pragma-parts-test-");
  const auto task = place.path() / "labels.py", out = place.path() / "out";
  std::ofstream(task) << no_graph;
  const auto result = run({PRAGMA_EXE, "optimize", task.string(), "--out", out.string(), "--attempts", "1", "--seeds", "1", "--no-profile"}, place.path() / "home");
  INFO(result.err << result.out);
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("left as it is, and as fast") != std::string::npos);
  CHECK(result.err.find("line 6") != std::string::npos);
  CHECK_FALSE(fs::exists(out / "model_new.py"));
}

TEST_CASE("a suite leaves as they are the tasks that optimize leaves as they are") {
  auto place = *temp_dir::create("pragma-parts-test-");
  const auto suite = place.path() / "suite", out = place.path() / "out", home = place.path() / "home";
  fs::create_directories(suite);
  const std::vector<std::pair<std::string, const char*>> tasks = {{"best", only_torch}, {"complex", complex_result}, {"dictionary", in_dictionary}, {"dropout", dropped}, {"labels", no_graph}, {"nested", nested_results}};
  for (const auto& [name, text] : tasks) {
    std::ofstream(suite / (name + ".py")) << text;
    const auto alone = run({PRAGMA_EXE, "optimize", (suite / (name + ".py")).string(), "--out", (out / name).string(), "--attempts", "1", "--seeds", "1", "--no-profile"}, home);
    INFO(name << ": " << alone.err << alone.out);
    CHECK(alone.exit_code == 0);
    CHECK(alone.err.find("left as it is, and as fast") != std::string::npos);
  }
  std::ofstream(suite / "syntax.py") << "class Model(\n";
  const auto result = run({PRAGMA_EXE, "bench", suite.string(), "--out", (out / "bench").string(), "--attempts", "1", "--seeds", "1", "--no-profile", "--json"}, home);
  INFO(result.err << result.out);
  const auto document = parse_json(result.out, "the suite");
  REQUIRE(document);
  REQUIRE((*document)["tasks"].size() == tasks.size() + 1);
  for (const auto& t : (*document)["tasks"]) {
    INFO(t.dump());
    CHECK(t["status"] == (t["name"] == "syntax" ? "invalid" : "left as it is"));
    CHECK_FALSE(t["reason"].get<std::string>().empty());
  }
}

TEST_CASE("parts that may not be timed as called are left to Torch: no machine is called busy for it") {
  auto place = *temp_dir::create("pragma-parts-test-");
  const auto task = place.path() / "gate.py", out = place.path() / "out";
  std::ofstream(task) << gate;
  const auto result = run({PRAGMA_EXE, "optimize", task.string(), "--out", out.string(), "--attempts", "1", "--seeds", "1", "--no-profile", "--no-check"}, place.path() / "home");
  INFO(result.err << result.out);
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("leave --no-check away") != std::string::npos);
  CHECK_FALSE(fs::exists(out / "regions")); // nothing was tried for it
  CHECK_FALSE(fs::exists(out / "model_new.py"));
}
