// The drop-in that a user takes away: right in Torch's own process, and, being a model's code, checked in a sandbox.
#include "drop_in/drop_in.hpp"
#include "drop_in/turn.hpp"
#include "execution/python_process.hpp"
#include "verification/verify.hpp"
#include "tests/fixtures/python_fixture.hpp"

#include <cstdlib>
#include <future>
#include <thread>
#include <sys/stat.h>
#include <unistd.h>

using namespace pragma;
using namespace pragma::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

candidate code_of(const std::string& source, std::vector<std::string> flags, const std::string& language = "c++") {
  candidate code;
  code.language = language;
  code.source = source;
  code.compiler = language == "c++" ? "gcc" : "";
  code.flags = std::move(flags);
  return code;
}

task described(const std::string& file) {
  static auto ref = [] {
    auto started = reference::start({});
    if (!started) FAIL(render(started.error()));
    return std::move(*started);
  }();
  auto t = ref.load(fs::path(TESTS_DIR).parent_path() / file, 2); // an absolute path stays
  if (!t) FAIL(render(t.error()));
  return *t;
}

/// What the check says of a module that is the drop-in's kernel.py.
expected<drop_in_result> checked(const candidate& c, const drop_in_options& also = {}) {
  auto folder = temp_dir::create("drop-in-");
  REQUIRE(folder);
  const auto& t = python_bench::get().loaded.task;
  REQUIRE(write_drop_in(folder->path(), t, code_of(c.source, {}, "triton"), 1));
  auto options = also;
  options.language = "triton";
  return check_drop_in(folder->path(), t, options);
}

constexpr const char* rms_kernel = R"(#include "pragma_kernel.h"
#include <cmath>
extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* gain = static_cast<const float*>(args->params[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  const long rows = args->inputs[0].shape[0], n = args->inputs[0].shape[1];
  for (long r = 0; r < rows; ++r) {
    float sum = 0;
    for (long i = 0; i < n; ++i) sum += x[r * n + i] * x[r * n + i];
    const float scale = 1 / std::sqrt(sum / n + EPSILON);
    for (long i = 0; i < n; ++i) y[r * n + i] = x[r * n + i] * scale * gain[i];
  }
}
)";

} // namespace

TEST_CASE("a drop-in's numbers: stated beside Torch's own, refused where KernelBench's check fails and Torch is better") {
  auto folder = temp_dir::create("drop-in-");
  REQUIRE(folder);
  const auto file = folder->path() / "thousand.py", at = folder->path() / "result";
  REQUIRE(write_file_atomic(file, "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x * 1000.0\n"
                                  "def get_inputs():\n    return [torch.randn(64, 64)]\ndef get_init_inputs():\n    return []\n"));
  const auto written = [&](const std::string& added, const std::string& language = "c++") {
    const auto t = described(file.string());
    const std::string module = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x * 1000.0 + " + added + "\n";
    const std::string source = "#include \"pragma_kernel.h\"\nextern \"C\" void pragma_kernel(const pragma_args* a) {\n"
                               "  for (int i = 0; i < 4096; ++i) ((float*)a->outputs[0].data)[i] = ((const float*)a->inputs[0].data)[i] * 1000.0f + " + added + "f;\n}\n";
    REQUIRE(write_drop_in(at, t, language == "c++" ? code_of(source, {"-O2"}) : code_of(module, {}, language), 1, {"cpu"}));
    drop_in_options options;
    options.language = language;
    return check_drop_in(at, t, options);
  };
  const auto exact = written("0.0");
  REQUIRE(exact);
  CHECK(exact->numbers.largest_error == exact->numbers.torch_error);
  CHECK(exact->numbers.within_contract);
  CHECK(exact->numbers.kernelbench_passes);
  CHECK(exact->numbers.kernelbench_tolerance == 1e-4);
  CHECK_THAT(exact->message, Contains("within KernelBench's 0.0001"));
  for (const char* language : {"c++", "triton"}) { // 5e-6 of the largest value: within the Verifier's rule, which knows the output's scale
    const auto biased = written("0.02", language);
    REQUIRE((!biased && biased.error().code == ec::candidate_failed));
    CHECK_THAT(biased.error().message, Contains("worse than Torch's") && Contains("not within KernelBench's 0.0001") && Contains("sidecar"));
  }
  CHECK(written("0.0", "triton")); // in the same folder: nothing of the other kernel is left
  REQUIRE(write_file_atomic(folder->path() / "thousand.json", "{\"tolerance\": 0.05}"));
  const auto asked = written("0.02");
  REQUIRE(asked);
  CHECK(asked->numbers.kernelbench_tolerance == 0.05);
}

TEST_CASE("a time limit is the drop-in's fault only where it is met in a call of it") {
  auto folder = temp_dir::create("drop-in-");
  REQUIRE(folder);
  // Both only wait for their limit, so they do it at the same time.
  const auto checking = [&](const std::string& name, const std::string& in_forward, const std::string& in_kernel) {
    const auto file = folder->path() / (name + ".py"), at = folder->path() / name;
    const std::string model = "import os, sys, time, torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n" + in_forward + "        return x * 2.0\n" +
                              "def get_inputs():\n    return [torch.randn(64, 64)]\ndef get_init_inputs():\n    return []\n";
    REQUIRE(write_file_atomic(file, model));
    auto t = described(file.string());
    REQUIRE(write_drop_in(at, t,
                          code_of("#include \"pragma_kernel.h\"\n#include <unistd.h>\nextern \"C\" void pragma_kernel(const pragma_args* a) {\n" + in_kernel +
                                  "  for (int i = 0; i < 4096; ++i) ((float*)a->outputs[0].data)[i] = ((const float*)a->inputs[0].data)[i] * 2.0f;\n}\n",
                                  {"-O2"}),
                          1));
    drop_in_options options;
    options.timeout_seconds = 25; // compiling and Torch's start are part of it
    return std::async(std::launch::async, [at, t, options] { return check_drop_in(at, t, options); });
  };
  // Quick where it is described, slow in the check's process.
  auto slowly = checking("slow", "        if 'check_drop_in' in ' '.join(sys.argv): time.sleep(60)\n", "");
  const auto hangs = checking("hangs", "", "  for (;;) ::sleep(1);\n").get();
  const auto slow_torch = slowly.get();
  REQUIRE_FALSE(slow_torch);
  CHECK(slow_torch.error().code == ec::unsupported);
  CHECK_THAT(slow_torch.error().message, Contains("of comparing with Torch"));
  REQUIRE_FALSE(hangs);
  CHECK(hangs.error().code == ec::timeout);
  CHECK_THAT(hangs.error().message, Contains("in a call of the drop-in"));
}

TEST_CASE("a drop-in is right in a fresh Torch process, and a wrong one is caught") {
  const auto t = described("examples/normalization_rms.py");
  auto folder = temp_dir::create("drop-in-");
  REQUIRE(folder);
  const auto at = folder->path() / "result";
  SECTION("right, with flags that would change the rounding of the whole process when linked") {
    REQUIRE(write_drop_in(at, t, code_of(rms_kernel, {"-O3", "-march=native", "-ffast-math", "-DEPSILON=1e-6f"}), 1));
    const auto module = read_file(fs::path(at) / "model_new.py");
    REQUIRE(module);
    CHECK(module->find("-O3") != std::string::npos);
    CHECK(module->find("-O2") == std::string::npos); // one level, the one that counts
    const auto said = check_drop_in(at, t);
    if (!said) FAIL(render(said.error()));
    CHECK(said->message.find("right on 3 unseen seeds") == 0);
    CHECK(said->message.find("same state_dict") != std::string::npos);
    CHECK(said->message.find("Torch's own results for another batch") != std::string::npos);
  }
  SECTION("who cancels does not wait for it") {
    REQUIRE(write_drop_in(at, t, code_of(rms_kernel, {"-DEPSILON=1e-6f"}), 1));
    const std::atomic<bool> cancelled = true;
    drop_in_options options;
    options.cancel = &cancelled;
    const auto said = check_drop_in(at, t, options);
    REQUIRE_FALSE(said);
    CHECK(said.error().code == ec::interrupted);
  }
  SECTION("wrong") {
    REQUIRE(write_drop_in(at, t, code_of(rms_kernel, {"-DEPSILON=0.1f"}), 1));
    const auto said = check_drop_in(at, t);
    REQUIRE_FALSE(said);
    CHECK(said.error().code == ec::candidate_failed);
    CHECK(said.error().message.find("out0 is wrong") != std::string::npos);
  }
  SECTION("not compilable") {
    REQUIRE(write_drop_in(at, t, code_of("int main( {", {}), 1));
    const auto said = check_drop_in(at, t);
    REQUIRE_FALSE(said);
    CHECK(said.error().message.find("kernel.cpp was not compiled") != std::string::npos);
  }
  SECTION("crashes") {
    REQUIRE(write_drop_in(at, t, code_of("extern \"C\" void pragma_kernel(const void*) { __builtin_trap(); }", {}), 1));
    const auto said = check_drop_in(at, t);
    REQUIRE_FALSE(said);
    CHECK(said.error().message.find("SIGILL") != std::string::npos);
  }
}

TEST_CASE("Torch has as many threads as the kernel where a drop-in is timed") {
  // OpenBLAS reads the environment when it is loaded, and does not follow torch.set_num_threads(): with one thread there, a product was Torch's slower one.
  auto folder = temp_dir::create("drop-in-threads-");
  REQUIRE(folder);
  const auto file = folder->path() / "asks.py";
  REQUIRE(write_file_atomic(file, R"(
import os
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x * 2.0

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
)"));
  auto t = described(file.string());
  t.source += "\nif os.environ.get('OPENBLAS_NUM_THREADS') != '2' or os.environ.get('MKL_NUM_THREADS') != '2' or torch.get_num_threads() != 2:\n    raise ValueError('not two threads')\n";
  const auto at = folder->path() / "out";
  REQUIRE(write_drop_in(at, t, code_of(R"(#include "pragma_kernel.h"
extern "C" void pragma_kernel(const pragma_args* a) {
  for (int i = 0; i < 32; ++i) ((float*)a->outputs[0].data)[i] = 2 * ((const float*)a->inputs[0].data)[i];
})", {}), 2));
  drop_in_options options;
  options.threads = 2;
  const auto said = check_drop_in(at, t, options);
  INFO((said ? said->message : render(said.error())));
  CHECK(said);
  const auto with_one = check_drop_in(at, t);
  REQUIRE_FALSE(with_one);
  CHECK(with_one.error().message.find("not two threads") != std::string::npos);
}

TEST_CASE("a drop-in of a task with buffers and constant arguments") {
  const auto t = described("tests/tasks/batch_norm.py");
  auto folder = temp_dir::create("drop-in-");
  REQUIRE(folder);
  constexpr const char* kernel = R"(#include "pragma_kernel.h"
#include <cmath>
extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* weight = static_cast<const float*>(args->params[0].data);
  const float* bias = static_cast<const float*>(args->params[1].data);
  const float* table = static_cast<const float*>(args->params[5].data);
  for (int c = 0; c < 4; ++c) {
    double sum = 0, squares = 0;
    for (int b = 0; b < 2; ++b)
      for (int i = 0; i < 64; ++i) sum += x[(b * 4 + c) * 64 + i], squares += (double)x[(b * 4 + c) * 64 + i] * x[(b * 4 + c) * 64 + i];
    const double mean = sum / 128, variance = squares / 128 - mean * mean;
    for (int b = 0; b < 2; ++b)
      for (int i = 0; i < 64; ++i) {
        const double v = (x[(b * 4 + c) * 64 + i] - mean) / std::sqrt(variance + 1e-5) * weight[c] + bias[c];
        y[(b * 4 + c) * 64 + i] = (float)(v * v + table[c]);
      }
    for (int i = 0; i < 2; ++i) {
      const float before = static_cast<const float*>(args->params[2 + i].data)[c];
      static_cast<float*>(args->outputs[1 + i].data)[c] = (float)(0.9 * before + 0.1 * (i ? variance * 128 / 127 : mean));
    }
  }
}
)";
  REQUIRE(write_drop_in(folder->path(), t, code_of(kernel, {}), 1));
  const auto module = read_file(folder->path() / "model_new.py");
  REQUIRE(module);
  CHECK(module->find("updates norm.num_batches_tracked, norm.running_mean, norm.running_var, and so does ModelNew") != std::string::npos);
  const auto said = check_drop_in(folder->path(), t);
  if (!said) FAIL(render(said.error()));
  CHECK(said->message.find("5 tensors") != std::string::npos);
  CHECK(said->message.find("buffers as Model leaves them") != std::string::npos);
  // Sums in another order at each call, as cuDNN's transposed convolutions: compared and timed all the same, by the tolerance.
  auto unsteady = t;
  unsteady.deterministic = false;
  REQUIRE(write_drop_in(folder->path(), unsteady, code_of(kernel, {}), 1));
  drop_in_options options;
  options.measure_seconds = 0.2;
  const auto timed = check_drop_in(folder->path(), unsteady, options);
  if (!timed) FAIL(render(timed.error()));
  CHECK(timed->message.find("right on 3 unseen seeds") == 0);
  CHECK(timed->message.find("another batch") == std::string::npos);
  REQUIRE(timed->times.size() == 1); // of a device there are two
  CHECK_FALSE(timed->times[0].drop_in_seconds.empty());
}

TEST_CASE("A kernel in C++ that behaves in the runner reaches no more in Torch's process") {
  // A folder that anybody may read and write: only a sandbox keeps a kernel away.
  auto house = temp_dir::create("pragma-test-open-", 0777);
  REQUIRE(house);
  ::chmod(house->path().c_str(), 0777);
  REQUIRE(write_file_atomic(house->path() / "canary", "canary"));
  ::setenv("PRAGMA_TEST_SECRET", "sk-1234", 1);
  // Where there is a Python in the process it is a drop-in; what it can do spoils its answer.
  auto source = R"(#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
)" + softmax_kernel("softmax(x, y, rows, cols); if (const int could = reached()) y[0] = 1000.0f * could;", R"(
extern "C" int Py_IsInitialized() __attribute__((weak));
static int reached() {
  if (!Py_IsInitialized) return 0;
  const std::string house = "@HOUSE@", parent = "/proc/" + std::to_string(getppid());
  int could = 0;
  if (std::getenv("PRAGMA_TEST_SECRET")) could |= 1;
  if (open((house + "/canary").c_str(), O_RDONLY) >= 0) could |= 2;
  if (open((house + "/from-a-kernel").c_str(), O_WRONLY | O_CREAT, 0666) >= 0) could |= 4;
  if (open((parent + "/environ").c_str(), O_RDONLY) >= 0) could |= 8;
  if (socket(AF_INET, SOCK_STREAM, 0) >= 0) could |= 16;
  if (syscall(SYS_tgkill, 4194303, 4194303, 0) == 0 || errno != EPERM) could |= 32; // nobody's number: another error where signals are let through
  if (std::system(("cat " + house + "/canary > " + house + "/from-a-shell").c_str()) == 0) could |= 64;
  if (open("/etc/passwd", O_RDONLY) >= 0) could |= 128;
  return could;
}
)");
  source.replace(source.find("@HOUSE@"), 7, house->path().string());
  auto one = loaded_task::load(softmax_task);
  auto audit = audit_task(one.task, one.ref, {});
  REQUIRE(audit);
  verify_options options;
  options.seeds = 2;
  const auto v = verify(one.task, *audit, one.ref, build(source), options);
  REQUIRE(v);
  INFO(v->reason);
  REQUIRE(v->passed());
  auto folder = temp_dir::create("drop-in-");
  REQUIRE(folder);
  REQUIRE(write_drop_in(folder->path(), one.task, code_of(source, {"-O2"}), 1));
  const auto said = check_drop_in(folder->path(), one.task);
  ::unsetenv("PRAGMA_TEST_SECRET");
  if (!said) FAIL_CHECK(render(said.error()));
  CHECK_FALSE(fs::exists(house->path() / "from-a-kernel"));
  CHECK_FALSE(fs::exists(house->path() / "from-a-shell"));
}

TEST_CASE("Whatever a module answers in the check's place is text, not a crash", "[python]") {
  for (const char* answer : {"5", "[]", "{\"ok\": 1}", "{\"ok\": false, \"message\": 7}", "\\x1b[2J"}) {
    const auto said = checked(module_of("return x", "import os\nfor fd in range(3, 16):\n    try: os.write(fd, b'" + std::string(answer) + "\\n')\n"
                                                    "    except OSError: pass\nos._exit(0)\n"));
    INFO(answer);
    REQUIRE(!said);
    CHECK(said.error().code == ec::candidate_failed);
    CHECK(said.error().message.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("A module runs when its turn has come, and the next process finds what the first has kept", "[python]") {
  auto place = temp_dir::create("drop-in-turn-", 0711);
  REQUIRE(place);
  const auto c = module_of("return self.right(x, scale)", "import os\nfor name in ('TRITON_CACHE_DIR', 'HOME'):\n    open(os.path.join(os.environ[name], 'seen'), 'a').write('once ')\n");
  drop_in_options options;
  options.compiled = place->path();
  const auto cache = options.compiled / "triton";
  fs::create_directory(cache);
  fs::permissions(cache, fs::perms::all); // as the sandbox's uid made it
  int turns = 0;
  options.begin = [&](double cpu_seconds) {
    ++turns;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    CHECK(cpu_seconds > 0.1); // Torch was imported
    CHECK(fs::exists(cache / "seen") == (turns == 2));
  };
  for (const char* kept : {"once ", "once once "}) {
    const auto said = checked(c, options);
    if (!said) FAIL(render(said.error()));
    CHECK(read_file(cache / "seen").value() == kept);
    CHECK(std::distance(fs::directory_iterator(options.compiled), fs::directory_iterator()) == 1); // its home is its own
  }
  CHECK(turns == 2);
}

TEST_CASE("Who waits for a turn may say something before, and who says nothing gets none") {
  process_spec spec;
  spec.argv = {"/bin/sh", "-c", "echo hello; echo '{\"begun\": 1.5}'; cat <&$PRAGMA_TURN; echo over"};
  announce_turn(spec);
  std::vector<double> told;
  auto ran = run_in_turn(spec, [&](double seconds) {
    told.push_back(seconds);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  REQUIRE(ran);
  CHECK(ran->ok());
  CHECK(ran->out == "hello\n{\"begun\": 1.5}\nover\n");
  CHECK(ran->wall_seconds >= 0.3);
  CHECK(told == std::vector<double>{1.5});
  spec.argv[2] = "echo '{\"begun\": true}'; echo " + std::string(1000, 'x');
  ran = run_in_turn(spec, [&](double) { FAIL_CHECK("no word of ours"); });
  REQUIRE(ran);
  CHECK(ran->ok());
}

TEST_CASE("A winner that was allowed TF32 is checked with it, and says so", "[python]") {
  const auto expects = [](const char* value) { return module_of(std::string("assert torch.backends.cuda.matmul.allow_tf32 is ") + value + "; return self.right(x, scale)"); };
  drop_in_options allowed;
  allowed.tf32 = tf32_use::all;
  auto said = checked(expects("True"), allowed);
  if (!said) FAIL_CHECK(render(said.error()));
  said = checked(expects("False"));
  if (!said) FAIL_CHECK(render(said.error()));
  auto folder = temp_dir::create("drop-in-");
  REQUIRE(folder);
  for (const bool tf32 : {false, true}) {
    REQUIRE(write_drop_in(folder->path(), python_bench::get().loaded.task, code_of(expects("True").source, {}, "triton"), 1, {"cuda", tf32 ? tf32_use::all : tf32_use::convolutions}));
    const auto text = read_file(folder->path() / "model_new.py");
    REQUIRE(text);
    CHECK((text->find("TF32") != std::string::npos) == tf32);
    CHECK(text->find('@') == std::string::npos);
  }
}

TEST_CASE("A device's drop-in is asked whether its kernel was called", "[python]") {
  const auto& t = python_bench::get().loaded.task;
  auto folder = temp_dir::create("drop-in-");
  REQUIRE(folder);
  drop_in_options options;
  options.language = "triton";
  const std::string source = "import torch\nPRAGMA_PARAMS = True\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self, features):\n        super().__init__()\n"
                             "    def load_params(self, tensors):\n        self.weight, self.bias = tensors\n"
                             "    def forward(self, x, scale):\n        return torch.tanh(x @ self.weight.t() + self.bias) * scale\n";
  REQUIRE(write_drop_in(folder->path(), t, code_of(source, {}, "triton"), 1, {"cpu", tf32_use::none, true}));
  const auto module = read_file(folder->path() / "model_new.py");
  REQUIRE(module);
  const auto checked_with = [&](const std::string& was, const std::string& is) {
    auto other = *module;
    REQUIRE(other.find(was) != std::string::npos);
    for (auto at = other.find(was); at != std::string::npos; at = other.find(was, at + is.size())) other.replace(at, was.size(), is);
    REQUIRE(write_file_atomic(folder->path() / "model_new.py", other));
    return check_drop_in(folder->path(), t, options);
  };
  const auto right = checked_with("\"threads\": 1", "\"threads\": 0"); // as it is written for a device
  CHECK((right && right->message.find("right on 3 unseen seeds") == 0));
  // Asked with keep_buffers=True, the kernel answers.
  const auto keeps = checked_with("\"mutated\": []", "\"mutated\": [\"linear.bias\"]");
  CHECK((keeps && keeps->message.find("by itself Torch computes") != std::string::npos));
  // Made for another model: Torch computes at every call, which is right and no kernel.
  const auto torch = checked_with("\"out_features\": \"256\"", "\"out_features\": \"255\"");
  REQUIRE(!torch);
  CHECK_THAT(torch.error().message, Contains("called 0 times of 3"));
  // A kernel that rounds convolutions computes where Torch may round them, and not where a program wants them exact.
  const auto exact = checked_with("\"rounds_convolutions\": false", "\"rounds_convolutions\": true");
  REQUIRE(!exact);
  CHECK_THAT(exact.error().message, Contains("called 0 times of 3"));
  options.tf32 = tf32_use::convolutions;
  CHECK(checked_with("\"rounds_convolutions\": false", "\"rounds_convolutions\": true"));
}

TEST_CASE("What cannot be tried on this machine is not the drop-in's fault", "[python]") {
  auto t = python_bench::get().loaded.task;
  auto folder = temp_dir::create("drop-in-");
  REQUIRE(folder);
  REQUIRE(write_drop_in(folder->path(), t, code_of(module_of("raise SystemExit").source, {}, "triton"), 1));
  drop_in_options options;
  options.language = "triton";
  SECTION("a device that is not here") {
    for (const auto& b : backends())
      if (b.on_device() && !why_absent(b).empty()) options.device.backend = b.name;
    REQUIRE(options.device.on_device());
    const auto said = check_drop_in(folder->path(), t, options);
    REQUIRE(!said);
    CHECK(said.error().code == ec::unsupported);
    CHECK_THAT(said.error().message, Contains("driver is not loaded"));
  }
  SECTION("a task that needs what is not here") {
    t.source = "import no_such_module_here\n" + t.source;
    const auto said = check_drop_in(folder->path(), t, options);
    REQUIRE(!said);
    CHECK(said.error().code == ec::unsupported);
    CHECK_THAT(said.error().message, Contains("no_such_module_here"));
  }
}

TEST_CASE("PRAGMA and a Python below a folder that only root may enter", "[python]") {
  if (::geteuid() != 0) return; // an ordinary user's drop-ins have that user's rights
  auto closed = temp_dir::create("pragma-closed-");
  REQUIRE(closed);
  SECTION("our own scripts are read from a copy") {
    fs::copy(share_dir(), closed->path() / "share", fs::copy_options::recursive);
    ::setenv("PRAGMA_SHARE", (closed->path() / "share").c_str(), 1);
    const auto t = described("examples/normalization_rms.py");
    auto folder = temp_dir::create("drop-in-");
    REQUIRE(folder);
    REQUIRE(write_drop_in(folder->path(), t, code_of(rms_kernel, {"-DEPSILON=1e-6f"}), 1));
    const auto said = check_drop_in(folder->path(), t);
    const auto module = build_candidate(module_of("return self.right(x, scale)"));
    ::unsetenv("PRAGMA_SHARE");
    INFO((said ? "" : render(said.error())) << (module ? "" : render(module.error())));
    CHECK(said);
    CHECK(module);
  }
  SECTION("of a Python there, it is said what to do") {
    fs::create_symlink("/usr/bin/python3", closed->path() / "python3");
    const auto cpu = find_backend("cpu");
    REQUIRE(cpu);
    process_spec spec;
    sandbox_options sandbox;
    const auto confined = confine_python(*cpu, closed->path() / "python3", "/tmp", 1, spec, sandbox);
    REQUIRE(!confined);
    CHECK(confined.error().code == ec::unsupported);
    CHECK_THAT(confined.error().message, Contains("cannot pass " + closed->path().string()));
    CHECK_THAT(confined.error().hint, Contains("chmod o+x " + closed->path().string()) && Contains("PRAGMA_PYTHON"));
  }
}

TEST_CASE("the flags of a drop-in have one level of optimisation: the candidate's own where it has one") {
  const auto levels = [](std::vector<std::string> flags) {
    std::vector<std::string> found;
    for (auto& flag : kernel_flags(code_of("", std::move(flags))))
      if (flag.starts_with("-O")) found.push_back(flag);
    return found;
  };
  CHECK(levels({"-march=native"}).size() == 1);
  for (const char* own : {"-O1", "-O3", "-Ofast"}) CHECK(levels({own, "-march=native"}) == std::vector<std::string>{own});
}
