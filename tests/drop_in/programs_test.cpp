// The drop-in in programs of many kinds (programs.py), with this machine's Torch and with a newer one where there is one.
#include "drop_in/drop_in.hpp"
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "reference/reference.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

const fs::path& here() {
  static const fs::path path = fs::path(TESTS_DIR) / "drop_in";
  return path;
}

/// The drop-in of a task with a kernel in C++, built. `deterministic`: two calls of the reference gave the same bits.
temp_dir built_of(const char* task_file, const char* kernel, bool deterministic = true) {
  auto ref = reference::start({});
  if (!ref) FAIL(render(ref.error()));
  auto t = ref->load(here() / task_file, 2);
  if (!t) FAIL(render(t.error()));
  t->deterministic = deterministic;
  auto source = read_file(here() / kernel);
  REQUIRE(source);
  candidate code;
  code.language = "c++";
  code.compiler = "gcc";
  code.source = *source;
  code.flags = {"-O2", "-march=native"};
  auto made = temp_dir::create("pragma-programs-");
  REQUIRE(made);
  if (auto done = write_drop_in(made->path(), *t, code, 1); !done) FAIL(render(done.error()));
  if (auto objects = build_objects(made->path(), code); !objects) FAIL(render(objects.error()));
  return std::move(*made);
}

/// Written and built once for all tests.
const fs::path& written() {
  static const auto folder = built_of("task_gate.py", "kernel_gate.cpp");
  return folder.path();
}

using names = std::vector<std::string>;

/// What became of these cases of programs.py, one after the other, each in a process of its own.
process_result programs(const std::string& python, const fs::path& folder, const names& cases, std::vector<std::pair<std::string, std::string>> env = {}) {
  process_spec spec;
  spec.argv = {python, "-B", (here() / "run_programs.py").string(), folder.string()};
  spec.argv.insert(spec.argv.end(), cases.begin(), cases.end());
  spec.env = std::move(env);
  spec.limits.wall_seconds = 240 + 30 * static_cast<double>(cases.size());
  auto ran = run_process(spec);
  if (!ran) FAIL(render(ran.error()));
  return *ran;
}

void right(const std::string& python, const fs::path& folder, const names& cases, std::vector<std::pair<std::string, std::string>> env = {}) {
  const auto ran = programs(python, folder, cases, std::move(env));
  INFO(python << "\n" << ran.out << ran.err);
  CHECK(ran.exit_code == 0);
  std::string all;
  for (const auto& name : cases) all += name + "\n";
  CHECK(ran.out == all); // each has run
}

std::string python_here() {
  auto python = find_python();
  if (!python) FAIL(render(python.error()));
  return python->executable;
}

/// The drop-in of task_gate.py with a module for devices; the processor stands in for one.
temp_dir for_a_device(const char* module) {
  auto ref = reference::start({});
  if (!ref) FAIL(render(ref.error()));
  auto t = ref->load(here() / "task_gate.py", 2);
  if (!t) FAIL(render(t.error()));
  candidate code;
  code.language = "triton";
  code.source = read_file(here() / module).value();
  auto folder = temp_dir::create("pragma-programs-device-");
  REQUIRE(folder);
  if (auto done = write_drop_in(folder->path(), *t, code, 1, {"cpu"}); !done) FAIL(render(done.error()));
  return std::move(*folder);
}

/// task_norm.py with a kernel, checked as a run checks it, and in a folder of its own.
struct norm_drop_in {
  temp_dir folder;
  expected<drop_in_result> checked;
};

norm_drop_in of_norm(const char* file, const std::string& language, const std::string& count) {
  auto ref = reference::start({});
  if (!ref) FAIL(render(ref.error()));
  auto t = ref->load(here() / "task_norm.py", 2);
  if (!t) FAIL(render(t.error()));
  REQUIRE(t->updates.size() == 3);
  REQUIRE(t->outputs.size() == 3);
  candidate code;
  code.language = language;
  code.source = read_file(here() / file).value();
  if (const auto at = code.source.find("UNBIASED"); at != std::string::npos) code.source.replace(at, 8, count);
  auto folder = temp_dir::create("pragma-programs-norm-");
  REQUIRE(folder);
  if (auto done = write_drop_in(folder->path(), *t, code, 1, {"cpu"}); !done) FAIL(render(done.error()));
  if (language == "c++")
    if (auto objects = build_objects(folder->path(), code); !objects) FAIL(render(objects.error()));
  drop_in_options options;
  options.language = language;
  auto checked = check_drop_in(folder->path(), *t, options);
  return {std::move(*folder), std::move(checked)};
}

const names every = {"plain", "threads", "views", "parameters_change", "constructor", "constants", "other_module", "training", "shapes", "ambient",
                                 "subclass", "functorch", "forward_gradients", "modes", "hooks", "gradients", "recorded", "recorded_otherwise", "checkpointed", "trained_step_by_step", "copies", "freed",
                                 "jit_trace", "read_by_torch", "fork", "spawn", "no_compiler", "strict", "warns_once", "built_anew"};
const names of_compilers = {"compiled", "compiled_by_inductor", "compiled_models", "surroundings", "compiled_gradients", "compiled_steps", "other_gradients", "exported"};

} // namespace

TEST_CASE("A drop-in is right in any program: by its kernel, or else Torch's very bits") { right(python_here(), written(), every); }

TEST_CASE("A drop-in is right with a newer Torch, compiled and exported too") {
  const char* python = std::getenv("PRAGMA_OTHER_PYTHON");
  if (!python) {
    WARN("skipped: " << every.size() + std::size(of_compilers) << " programs, since PRAGMA_OTHER_PYTHON names no Python with a newer Torch");
    return;
  }
  auto all = every;
  all.insert(all.end(), std::begin(of_compilers), std::end(of_compilers));
  right(python, written(), all);
}

TEST_CASE("A drop-in of a task whose Torch differs from call to call in its last bits, as cuDNN's transposed convolutions do, has its kernel with gradients and compiled") {
  const auto folder = built_of("task_gate.py", "kernel_gate.cpp", false);
  right(python_here(), folder.path(), {"gradients", "recorded"});
  if (const char* python = std::getenv("PRAGMA_OTHER_PYTHON")) right(python, folder.path(), {"gradients", "compiled", "compiled_gradients"});
  else WARN("skipped: compiled programs, since PRAGMA_OTHER_PYTHON names no Python with a newer Torch");
}

TEST_CASE("Compiled GPU kernels are used where they fit, and Triton compiles where they do not") {
  const char* python = std::getenv("PRAGMA_OTHER_PYTHON");
  if (!python) {
    WARN("skipped: PRAGMA_OTHER_PYTHON names no Python with Torch and Triton");
    return;
  }
  process_spec spec;
  spec.argv = {python, "-B", (here() / "built.py").string(), (share_dir() / "python" / "pragma_built.py").string(), (fs::path(TESTS_DIR) / "synthesis" / "golden" / "softmax_long.py").string()};
  spec.limits.wall_seconds = 240;
  const auto ran = run_process(spec);
  REQUIRE(ran);
  if (ran->exit_code == 77) {
    WARN("skipped: " << python << " has no Triton");
    return;
  }
  INFO(ran->out << ran->err);
  CHECK(ran->exit_code == 0);
  CHECK(ran->out.find("all promises hold") != std::string::npos);
}

TEST_CASE("A drop-in for a device has the same guards, here with the processor as the device") {
  const auto folder = for_a_device("kernel_gate.py");
  right(python_here(), folder.path(), {"plain", "device_parameters", "constructor", "constants", "other_module", "training", "shapes", "subclass", "functorch", "modes", "hooks",
                                       "gradients", "recorded", "recorded_otherwise", "trained_step_by_step", "copies", "freed", "jit_trace", "read_by_torch", "strict", "warns_once"});
}

TEST_CASE("A device's kernels are launched by handle where nothing else would be done, here with the processor as the device") {
  const auto folder = for_a_device("kernel_launched.py");
  const auto run = [](std::vector<std::string> argv) {
    process_spec spec;
    spec.argv = std::move(argv);
    spec.limits.wall_seconds = 240;
    auto ran = run_process(spec);
    if (!ran) FAIL(render(ran.error()));
    INFO(ran->out << ran->err);
    CHECK(ran->exit_code == 0);
  };
  const auto library = (folder.path() / "launches.so").string();
  run({"cc", "-O1", "-shared", "-fPIC", "-o", library, (here() / "launches.c").string()});
  run({python_here(), "-B", (here() / "launches.py").string(), folder.path().string(), library});
  if (const char* python = std::getenv("PRAGMA_OTHER_PYTHON")) run({python, "-B", (here() / "compiled_launches.py").string(), folder.path().string(), library});
  else WARN("skipped: compiled programs, since PRAGMA_OTHER_PYTHON names no Python with a newer Torch");
}

TEST_CASE("Buffers that forward() updates are left as Model leaves them, by a kernel and on a device") {
  std::vector<std::string> pythons{python_here()};
  if (const char* other = std::getenv("PRAGMA_OTHER_PYTHON")) pythons.emplace_back(other);
  for (const auto& [file, language] : {std::pair{"kernel_norm.cpp", "c++"}, std::pair{"kernel_norm.py", "triton"}}) {
    const auto made = of_norm(file, language, "63");
    if (!made.checked) FAIL(render(made.checked.error()));
    CHECK(made.checked->message.find("buffers as Model leaves them") != std::string::npos);
    for (const auto& python : pythons) {
      process_spec spec;
      spec.argv = {python, "-B", (here() / "updates.py").string(), made.folder.path().string()};
      spec.limits.wall_seconds = 240;
      const auto ran = run_process(spec);
      if (!ran) FAIL(render(ran.error()));
      INFO(python << " " << file << "\n" << ran->out << ran->err);
      CHECK(ran->exit_code == 0);
    }
  }
  // The variance of the batch, where Torch's running variance is that of the population.
  const auto wrong = of_norm("kernel_norm.cpp", "c++", "64");
  REQUIRE(!wrong.checked);
  CHECK(wrong.checked.error().message.find("out2 is wrong") != std::string::npos);
}

/// A script of this folder on a drop-in, with each Python there is.
static void run_on(const fs::path& folder, const char* script) {
  std::vector<std::string> pythons{python_here()};
  if (const char* other = std::getenv("PRAGMA_OTHER_PYTHON")) pythons.emplace_back(other);
  for (const auto& python : pythons) {
    process_spec spec;
    spec.argv = {python, "-B", (here() / script).string(), folder.string()};
    spec.limits.wall_seconds = 240;
    const auto ran = run_process(spec);
    if (!ran) FAIL(render(ran.error()));
    INFO(python << "\n" << ran->out << ran->err);
    CHECK(ran->exit_code == 0);
  }
}

TEST_CASE("What a model keeps beside its state, and what a program does to it, decides as it does in Model") {
  run_on(built_of("task_kept.py", "kernel_gate.cpp").path(), "kept.py");
}

TEST_CASE("What is kept where no dictionary of a layer shows a change is watched as well, and gradients reach weights there") {
  run_on(built_of("task_watched.py", "kernel_gate.cpp").path(), "watched.py");
}

TEST_CASE("Layers that share their weights get the reference's gradients, and Torch where they no longer share them") {
  run_on(built_of("task_tied.py", "kernel_tied.cpp").path(), "tied.py");
}

TEST_CASE("A result that glibc takes from the system at each call lies on large pages") { run_on(built_of("task_large.py", "kernel_large.cpp").path(), "large.py"); }

TEST_CASE("Each built object is right, and without any that fits Torch computes") {
  const auto objects = read_file(written() / "built" / "objects.json");
  REQUIRE(objects);
  const auto built = parse_json(*objects, "objects.json").value()["names"].get<names>();
#ifdef __x86_64__
  CHECK(built.size() == 4);
#endif
  int tried = 0;
  for (const auto& name : built) {
    const auto ran = programs(python_here(), written(), {"no_compiler"}, {{"PRAGMA_DROP_IN_OBJECT", name}});
    if (ran.err.find("no_compiler: signal 4") != std::string::npos) continue; // a level that this processor has not
    INFO(name << "\n" << ran.err);
    CHECK(ran.exit_code == 0);
    ++tried;
  }
  CHECK(tried >= 2);
  auto bare = temp_dir::create("pragma-programs-bare-");
  REQUIRE(bare);
  fs::copy(written(), bare->path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  for (const auto& name : built) fs::remove(bare->path() / "built" / ("kernel-" + name + ".so"));
  const auto ran = programs(python_here(), bare->path(), {"no_kernel"}, {{"PATH", "/nowhere"}, {"XDG_CACHE_HOME", bare->path().string()}});
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
}

TEST_CASE("An exported library is compiled into an example, and its numbers are the drop-in's") {
  auto out = temp_dir::create("pragma-export-");
  REQUIRE(out);
  const auto files = export_drop_in("cpp", written(), out->path(), "gate", python_here());
  if (!files) FAIL(render(files.error()));
  process_spec compile;
  compile.cwd = out->path().string();
  compile.argv = {"g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "example.cpp", "-L.", "-lgate", "-Wl,-rpath,$ORIGIN", "-o", "example"};
  auto ran = run_process(compile);
  REQUIRE(ran);
  INFO(ran->err);
  REQUIRE(ran->ok());
  process_spec run;
  run.argv = {(out->path() / "example").string()};
  ran = run_process(run);
  REQUIRE(ran);
  // ((relu(sum of x w + b) + 0.5) * 4 + shift + 3 of the example's made-up numbers, by hand: x = 0.25 k, w = 0.125 k, k = i % 7 - 3.
  CHECK(ran->out == "out0[0] = 35.75\n");
  CHECK_FALSE(export_drop_in("cpp", out->path(), out->path(), "gate", python_here()));
  CHECK_FALSE(export_drop_in("wheel", written(), out->path(), "../gate", python_here()));
}

TEST_CASE("An exported wheel is installed into a fresh environment and is right there") {
  auto out = temp_dir::create("pragma-wheel-");
  REQUIRE(out);
  const auto files = export_drop_in("wheel", written(), out->path(), "gate", python_here());
  if (!files) FAIL(render(files.error()));
  REQUIRE(files->size() == 1);
  const auto call = [](std::vector<std::string> argv) {
    process_spec spec;
    spec.argv = std::move(argv);
    spec.limits.wall_seconds = 240;
    auto ran = run_process(spec);
    REQUIRE(ran);
    INFO(ran->out << ran->err);
    REQUIRE(ran->ok());
    return ran->out;
  };
  const auto environment = (out->path() / "environment").string();
  call({python_here(), "-m", "venv", "--system-site-packages", environment});
  call({environment + "/bin/pip", "install", "--quiet", "--no-index", "--no-deps", files->front()});
  const auto said = call({environment + "/bin/python", "-c", R"(import torch
torch.set_num_threads(1)
from gate import ModelNew
model = ModelNew(64, strict=True)
with torch.no_grad(): model(torch.randn(16, 64), 2.0)
print(model.stats()["hits"]))"});
  CHECK(said == "1\n");
}

TEST_CASE("A drop-in of an earlier version, which had fewer files, is exported as it is") {
  auto earlier = temp_dir::create("pragma-earlier-");
  REQUIRE(earlier);
  REQUIRE(copy_drop_in(written(), earlier->path()));
  REQUIRE(fs::remove(earlier->path() / "pragma_launch.h"));
  const auto files = drop_in_files(earlier->path());
  CHECK(std::find(files.begin(), files.end(), "pragma_launch.h") == files.end());
  CHECK(files.size() + 1 == drop_in_files(written()).size());
  CHECK(export_drop_in("wheel", earlier->path(), earlier->path() / "export", "gate", python_here()));
}

TEST_CASE("A drop-in as one Python file is right where nothing else of it is, imported and as a text that is executed") {
  auto out = temp_dir::create("pragma-one-file-");
  REQUIRE(out);
  const auto files = export_drop_in("file", written(), out->path(), "gate", python_here());
  if (!files) FAIL(render(files.error()));
  REQUIRE(files->size() == 1);
  const auto again = temp_dir::create("pragma-one-file-");
  REQUIRE(export_drop_in("file", written(), again->path(), "gate", python_here()));
  CHECK(read_file(files->front()).value() == read_file(again->path() / "gate.py").value());
  process_spec run;
  run.argv = {python_here(), "-B", (here() / "one_file.py").string(), files->front()};
  run.env = {{"TMPDIR", out->path().string()}};
  run.limits.wall_seconds = 240;
  const auto ran = run_process(run);
  REQUIRE(ran);
  INFO(ran->out << ran->err);
  CHECK(ran->exit_code == 0);
  CHECK(ran->out == "right\n");
  for (const auto& left : fs::directory_iterator(out->path())) CHECK(left.path().filename() == "gate.py"); // what was unpacked is gone
}

TEST_CASE("cuda_event is timed as KernelBench's evaluator calls a model, with gradients recorded, and as for inference where memory is short") {
  process_spec spec;
  spec.argv = {python_here(), "-B", (here() / "called.py").string(), (share_dir() / "python").string()};
  spec.limits.wall_seconds = 240;
  const auto ran = run_process(spec);
  REQUIRE(ran);
  INFO(ran->out << ran->err);
  CHECK(ran->exit_code == 0);
}
