#include "reference/reference.hpp"
#include "tests/fixtures/other_python.hpp"

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sys/mman.h>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

fs::path bad_task(const std::string& name) { return fs::path(TESTS_DIR) / "tasks" / (name + ".py"); }
fs::path example(const std::string& name) { return fs::path(TESTS_DIR).parent_path() / "examples" / (name + ".py"); }

reference& shared_reference() {
  static auto ref = [] {
    reference_options options;
    options.load_timeout_seconds = 60;
    options.max_task_bytes = 8ull << 30; // what is too large is so on every machine
    auto started = reference::start(options);
    if (!started) FAIL(render(started.error()));
    return std::move(*started);
  }();
  return ref;
}

task loaded(const fs::path& file, int slots = 2) {
  auto t = shared_reference().load(file, slots);
  if (!t) FAIL(render(t.error()));
  return *t;
}

error refused(const fs::path& file) {
  auto t = shared_reference().load(file, 2);
  REQUIRE_FALSE(t.has_value());
  return t.error();
}

std::span<const float> floats(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::span<const float> input(reference& ref, int slot, size_t index) {
  const auto& layout = ref.inputs_layout();
  const auto* at = ref.inputs_data() + layout.slot_bytes * static_cast<uint64_t>(slot) + layout.offsets[index];
  return {reinterpret_cast<const float*>(at), static_cast<size_t>(layout.specs[index].elements())};
}

bool has_note(const task& t, const std::string& words) {
  for (const auto& note : t.notes)
    if (note.find(words) != std::string::npos) return true;
  return false;
}

} // namespace

TEST_CASE("tensors of a layout start aligned and end before an unused page") {
  const auto layout = tensor_layout::of({{"a", dtype::float32, {3, 5}}, {"b", dtype::uint8, {4096}}, {"c", dtype::float32, {}}}, 3);
  for (size_t i = 0; i < layout.specs.size(); ++i) {
    CHECK(layout.offsets[i] % 64 == 0);
    const auto end = layout.offsets[i] + (layout.specs[i].bytes() + 63) / 64 * 64;
    CHECK(end % 4096 == 0);
    CHECK((i + 1 < layout.specs.size() ? layout.offsets[i + 1] : layout.slot_bytes) >= end + 4096);
  }
  CHECK(layout.total_bytes() == 3 * layout.slot_bytes);
}

TEST_CASE("an example is loaded, its outputs agree with the oracle, and it can be run") {
  auto& ref = shared_reference();
  const auto t = loaded(example("normalization_rms"), 3);
  CHECK(t.name == "normalization_rms");
  CHECK(t.category == "normalization");
  CHECK(t.id.size() == 64);
  REQUIRE(t.inputs.size() == 1);
  CHECK(t.inputs[0].name == "x");
  REQUIRE(t.params.size() == 1);
  CHECK(t.params[0].name == "gain");
  CHECK(t.flops > 0);
  CHECK(t.bytes == Approx(2.0 * 1024 * 1536 * 4 + 1536 * 4));
  CHECK(t.deterministic);
  CHECK(t.mutated.empty());
  CHECK_FALSE(t.graph.empty());
  CHECK(ref.slots() == 3);
  REQUIRE(ref.oracle_is_float64());
  REQUIRE(ref.make_inputs(1, 7, input_kind::own));
  const auto got = floats(ref.reference_output(1, 0));
  const auto expected_output = ref.oracle(1, 0);
  REQUIRE(got.size() == expected_output.size());
  double worst = 0, largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - expected_output[i]));
    largest = std::max(largest, std::abs(expected_output[i]));
  }
  CHECK(worst < 1e-4);
  CHECK(worst > 0); // the oracle is not a copy
  CHECK(largest > 1);
  CHECK(ref.run(0));
  CHECK(ref.run(5));
  CHECK(ref.baseline_name().find("torch") == 0);
  CHECK(ref.baseline_name().find("1 thread") != std::string::npos);
}

TEST_CASE("other seeds and kinds give other inputs and outputs; the same seed the same ones") {
  auto& ref = shared_reference();
  loaded(example("normalization_rms"));
  const auto contents = [&](int slot) {
    const auto x = input(ref, slot, 0);
    return std::vector<float>(x.begin(), x.end());
  };
  REQUIRE(ref.make_inputs(0, 1000, input_kind::own));
  REQUIRE(ref.make_inputs(1, 2000, input_kind::own));
  const auto first = contents(0);
  CHECK(first != contents(1));
  REQUIRE(ref.make_inputs(1, 1000, input_kind::own));
  CHECK(first == contents(1));
  REQUIRE(ref.make_inputs(1, 1000, input_kind::large));
  CHECK(contents(1)[5] == Approx(30 * first[5]));
  REQUIRE(ref.make_inputs(1, 1000, input_kind::negative));
  for (float v : contents(1)) REQUIRE(v <= 0);
  REQUIRE(ref.make_inputs(1, 1000, input_kind::near_one));
  for (float v : contents(1)) REQUIRE(std::abs(v - 1) <= 0.1001f);
  REQUIRE(ref.make_inputs(1, 1000, input_kind::constant_rows));
  CHECK(contents(1)[0] == contents(1)[1535]);
  REQUIRE(ref.make_inputs(1, 1000, input_kind::ties));
  for (float v : contents(1)) REQUIRE(v * 2 == std::round(v * 2));
}

TEST_CASE("a set that is kept comes back as it was, with its expected results, in any slot") {
  auto& ref = shared_reference();
  loaded(example("normalization_rms"));
  struct contents {
    std::vector<float> in, out;
    std::vector<double> oracle;
    bool operator==(const contents&) const = default;
  };
  const auto read = [&](int slot) {
    const auto x = input(ref, slot, 0);
    const auto y = floats(ref.reference_output(slot, 0));
    const auto o = ref.oracle(slot, 0);
    return contents{{x.begin(), x.end()}, {y.begin(), y.end()}, {o.begin(), o.end()}};
  };
  REQUIRE(ref.make_inputs(0, 77, input_kind::ties, true));
  const auto kept = read(0);
  REQUIRE(ref.make_inputs(0, 78, input_kind::own));
  CHECK_FALSE(read(0) == kept);
  std::fill_n(ref.inputs_data(), 64, std::byte{1}); // what a caller rewrites in a slot does not reach the kept set
  REQUIRE(ref.make_inputs(1, 77, input_kind::ties, true));
  CHECK(read(1) == kept);
  REQUIRE(ref.make_inputs(0, 77, input_kind::ties, true));
  CHECK(read(0) == kept);
  REQUIRE(ref.make_inputs(0, 77, input_kind::large, true)); // another kind is another set
  CHECK_FALSE(read(0) == kept);
}

TEST_CASE("what the task's inputs promise holds under every kind") {
  auto& ref = shared_reference();
  const auto t = loaded(bad_task("kinds"));
  for (auto kind : {input_kind::own, input_kind::large, input_kind::tiny, input_kind::negative, input_kind::near_one,
                    input_kind::constant_rows, input_kind::ties}) {
    INFO(name(kind));
    REQUIRE(ref.make_inputs(0, 5, kind));
    const auto p = input(ref, 0, 0), triangular = input(ref, 0, 2), symmetric = input(ref, 0, 3);
    for (int row = 0; row < 8; ++row) {
      double sum = 0;
      for (int i = 0; i < 16; ++i) sum += p[static_cast<size_t>(row * 16 + i)];
      CHECK(sum == Approx(1).margin(1e-3));
    }
    for (size_t i = 0; i < 16; ++i)
      for (size_t j = 0; j < 16; ++j) {
        if (j > i) CHECK(triangular[i * 16 + j] == 0);
        CHECK(symmetric[i * 16 + j] == symmetric[j * 16 + i]);
      }
  }
  CHECK(t.inputs[1].dtype == dtype::int64);
}

TEST_CASE("inputs and parameters can be mapped by others read-only and no other way") {
  auto& ref = shared_reference();
  loaded(example("normalization_rms"));
  for (int fd : {ref.inputs_fd(), ref.params_fd()}) {
    CHECK(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    void* at = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
    REQUIRE(at != MAP_FAILED);
    CHECK(::mprotect(at, 4096, PROT_READ | PROT_WRITE) != 0);
    ::munmap(at, 4096);
    CHECK(::ftruncate(fd, 0) != 0);
  }
}

TEST_CASE("buffers, plain tensor attributes and constants are part of the task; its history is not") {
  auto& ref = shared_reference();
  const auto t = loaded(bad_task("batch_norm"));
  std::vector<std::string> names, updates;
  for (const auto& p : t.params) names.push_back(p.name);
  for (const auto& u : t.updates) updates.push_back(u.name + " " + std::to_string(u.output) + " " + std::to_string(u.add));
  CHECK(names == std::vector<std::string>{"norm.weight", "norm.bias", "norm.running_mean", "norm.running_var",
                                          "norm.num_batches_tracked", "table"});
  CHECK(t.mutated == std::vector<std::string>{"norm.num_batches_tracked", "norm.running_mean", "norm.running_var"});
  CHECK(updates == std::vector<std::string>{"norm.running_mean 1 0", "norm.running_var 2 0", "norm.num_batches_tracked -1 1"});
  CHECK(t.outputs.size() == 3);
  CHECK(t.scalars == std::vector<std::string>{"1=2"});
  CHECK(t.training_mode);
  REQUIRE(t.inputs.size() == 1);
  REQUIRE(ref.make_inputs(0, 3, input_kind::own));
  const auto before = std::vector<float>(floats(ref.reference_output(0, 0)).begin(), floats(ref.reference_output(0, 0)).end());
  REQUIRE(ref.run(10));
  REQUIRE(ref.make_inputs(0, 3, input_kind::own));
  const auto now = floats(ref.reference_output(0, 0));
  CHECK(std::equal(before.begin(), before.end(), now.begin(), now.end()));
}

TEST_CASE("what forward() does after eval() is known: the same, or something else, which a note says") {
  const auto notes = [](const task& t) { return std::any_of(t.notes.begin(), t.notes.end(), [](const auto& n) { return n.find("after eval()") != std::string::npos; }); };
  const auto same = loaded(example("normalization_rms"));
  CHECK(same.constants.at("same_in") == json{false});
  CHECK(!notes(same));
  const auto other = loaded(bad_task("batch_norm"));
  CHECK(other.constants.at("same_in") == json::array());
  CHECK(notes(other));
}

TEST_CASE("two outputs of different types, with an oracle for the floating one") {
  auto& ref = shared_reference();
  const auto t = loaded(bad_task("two_outputs"));
  REQUIRE(t.outputs.size() == 2);
  CHECK(t.outputs[1].dtype == dtype::int64);
  CHECK(ref.oracle(0, 0).size() == 8);
  CHECK(ref.oracle(0, 1).empty());
}

TEST_CASE("a task that casts to float32 has a float64 oracle all the same: the cast is followed in float64") {
  auto& ref = shared_reference();
  const auto t = loaded(bad_task("casts"));
  CHECK(ref.oracle_is_float64());
  CHECK_FALSE(has_note(t, "no float64 oracle"));
  CHECK(ref.oracle(0, 0)[0] != floats(ref.reference_output(0, 0))[0]);
}

TEST_CASE("unusual but usable tasks") {
  auto& ref = shared_reference();
  SECTION("a layer that would draw random numbers, told not to") { CHECK(loaded(bad_task("dropout_eval")).deterministic); }
  SECTION("dropout behind the only recurrent layer, which draws nothing") { CHECK_FALSE(has_note(loaded(bad_task("recurrent_dropout_unused")), "draws random numbers")); }
  SECTION("a mask that the first call makes and keeps") {
    const auto t = loaded(bad_task("keeps_mask"));
    CHECK_FALSE(t.graph.empty());
    CHECK_FALSE(has_note(t, "after eval()"));
  }
  SECTION("a task that prints does not break the protocol") {
    loaded(bad_task("prints"));
    CHECK(ref.run(100));
  }
  SECTION("a forward that writes to its input") {
    const auto t = loaded(bad_task("mutates_input"));
    CHECK(has_note(t, "writes to its inputs"));
    REQUIRE(ref.make_inputs(0, 3, input_kind::own));
    const float x = input(ref, 0, 0)[0];
    REQUIRE(ref.run(3));
    CHECK(input(ref, 0, 0)[0] == x);
    CHECK(floats(ref.reference_output(0, 0))[0] == Approx(2 * x + 1));
  }
  SECTION("values decide what is computed: no graph, but it runs") {
    const auto t = loaded(bad_task("data_dependent"));
    CHECK(t.graph.empty());
    CHECK_FALSE(t.graph_error.empty());
    CHECK(ref.run(1));
  }
  SECTION("inputs from NumPy, and changed defaults that do not reach the next task") {
    const auto t = loaded(bad_task("numpy_inputs"));
    REQUIRE(t.inputs.size() == 2);
    CHECK(t.inputs[0].dtype == dtype::float64);
    CHECK_FALSE(t.graph.empty());
    CHECK(ref.make_inputs(1, 3, input_kind::own));
    CHECK(loaded(bad_task("two_outputs")).inputs[0].dtype == dtype::float32);
  }
  SECTION("describing another task leaves the loaded one as it is") {
    loaded(bad_task("two_outputs"));
    const auto other = ref.describe(example("others_pinball_loss"));
    REQUIRE(other);
    CHECK(other->category == "others");
    CHECK(ref.run(2));
    CHECK(ref.make_inputs(0, 1, input_kind::own));
  }
  SECTION("a sidecar reduces the shapes and overrides what was counted") {
    const auto t = loaded(bad_task("reduced"));
    CHECK(t.inputs[0].shape == std::vector<int64_t>{32, 64});
    CHECK(t.flops == 32 * 64);
    CHECK(t.tolerance == Approx(1e-5));
    CHECK(has_note(t, "made smaller"));
  }
}

TEST_CASE("what a recurrent module computes is counted") {
  auto& ref = shared_reference();
  const auto t = ref.describe(bad_task("gru"));
  REQUIRE(t);
  // Two layers of a GRU with 16 units over 5 x 3 vectors of 8: a product with the weights of input and state in each step.
  const double products = 2.0 * 15 * 3 * 16 * ((8 + 16) + (16 + 16));
  CHECK(t->flops >= products);
  CHECK(t->flops < 1.5 * products);
  // Of many steps: one node, which does not draw random numbers without a dropout, whatever the mode.
  const auto large = ref.describe(bad_task("recurrent_long"));
  REQUIRE(large);
  CHECK(large->graph.find("aten.gru.input") != std::string::npos);
  CHECK(large->graph.find("\"random\": true") == std::string::npos);
  CHECK(large->constants.value("same_in", json::array()).size() == 1);
  const double of_gru = 2.0 * 70 * 71 * 2 * 18 * (5 + 6 + 12 + 6), of_others = 2.0 * 70 * 71 * (28 * (12 + 7) + 4 * (7 + 4));
  CHECK(large->flops >= of_gru + of_others);
  CHECK(large->flops < 1.1 * (of_gru + of_others));
}

TEST_CASE("the graph says what the reference computes: replayed operator by operator it gives the same results") {
  const auto python = find_python();
  REQUIRE(python);
  process_spec spec;
  spec.argv = {python->executable, TESTS_DIR "/reference/replay_graph.py", (share_dir() / "python").string()};
  for (const char* name : {"zoo", "batch_norm", "dropout", "two_outputs", "casts", "mutates_input", "numpy_inputs", "kinds", "views", "recurrent", "recurrent_long", "cross_entropy", "weight_norm"})
    spec.argv.push_back(bad_task(name).string());
  for (const auto& file : fs::directory_iterator(example("").parent_path()))
    if (file.path().extension() == ".py") spec.argv.push_back(file.path().string());
  spec.env = {{"PYTHONDONTWRITEBYTECODE", "1"}, {"OMP_NUM_THREADS", "1"}};
  spec.limits.wall_seconds = 120;
  const auto ran = run_process(spec);
  REQUIRE(ran);
  INFO(ran->out + ran->err);
  CHECK(ran->exit_code == 0);
}

TEST_CASE("a model that casts itself when it is made is traced without being run, with this Torch and a newer one") {
  const auto python = find_python();
  REQUIRE(python);
  std::vector<std::string> all{python->executable};
  if (const auto newer = test::newer_python(); !newer.empty()) all.push_back(newer);
  for (const auto& one : all) {
    process_spec spec;
    spec.argv = {one, TESTS_DIR "/reference/cast_in_init.py", (share_dir() / "python").string()};
    spec.env = {{"PYTHONDONTWRITEBYTECODE", "1"}, {"OMP_NUM_THREADS", "1"}};
    spec.limits.wall_seconds = 120;
    const auto ran = run_process(spec);
    REQUIRE(ran);
    INFO(one << ": " << ran->out + ran->err);
    CHECK(ran->exit_code == 0);
  }
}

TEST_CASE("bad tasks are refused with the line and the reason, and the process lives on") {
  const std::vector<std::array<std::string, 2>> cases = {
    {"syntax_error", "syntax_error.py:7: syntax error"},
    {"missing_model", "no Model is defined"},
    {"absent_module", "line 3: ModuleNotFoundError: No module named 'a_module_that_is_absent'"},
    {"huge_input", "needs 93.13 GiB"},
    {"huge_intermediate", "the largest intermediate tensor 100.58 GiB"},
    {"nan_reference", "holds NaN at index [0, 0]"},
    {"wrong_output", "returns a dict, not a tensor"},
    {"number_output", "returns a float, not a tensor"},
    {"empty_output", "returns a tensor of shape (8, 0), which has no elements"},
    {"raises", "line 8: ValueError: no such luck"},
    {"bad_sidecar", "unknown key 'tolerence'"},
    {"dropout_layer", "nn.Dropout 'drop' is in training mode; call self.eval()"},
    {"dropout", "forward() draws random numbers"},
    {"recurrent_dropout", "forward() draws random numbers, so that no two calls agree and no kernel can be checked: nn.LSTM 'layers' is in training mode"},
    {"sparse_output", "forward() returns a sparse tensor (torch.sparse_coo)"},
    {"sparse_input", "get_inputs() returns a sparse tensor (torch.sparse_coo) at position 0"},
    {"keeps_state", "forward() writes to self.hidden on each call"},
    {"keeps_results", "forward() writes to self.calls, self.weights on each call"},
    {"no_tensor_input", "get_inputs() returns no tensor"},
    {"no_input", "get_inputs() returns no tensor"},
  };
  for (const auto& [file, words] : cases) {
    INFO(file);
    const auto e = refused(bad_task(file));
    INFO(render(e));
    const bool of_torch = std::set<std::string>{"wrong_output", "dropout_layer", "dropout", "recurrent_dropout", "sparse_output", "sparse_input", "keeps_state", "keeps_results"}.contains(file); // which Torch can run
    CHECK(e.code == (of_torch ? ec::torch_only : ec::task_invalid));
    CHECK(e.message.find(words) != std::string::npos);
  }
  CHECK(refused(bad_task("huge_numpy")).message.find("MemoryError") != std::string::npos);
  CHECK(refused(bad_task("missing_model")).hint.find("Modle") != std::string::npos);
  CHECK(refused(bad_task("no_such_file")).code == ec::not_found);
  loaded(example("normalization_rms"));
}

TEST_CASE("inputs whose shapes depend on the seed are refused when they change") {
  auto& ref = shared_reference();
  loaded(bad_task("changing_shapes"));
  bool failed = false;
  for (uint64_t seed = 0; seed < 20 && !failed; seed += 2) {
    auto made = ref.make_inputs(0, seed, input_kind::own);
    if (!made) CHECK(made.error().message.find("other shapes") != std::string::npos);
    failed = !made;
  }
  CHECK(failed);
}

TEST_CASE("a task that hangs or ends its process costs that process only") {
  reference_options options;
  SECTION("hangs") {
    options.load_timeout_seconds = 3;
    auto ref = reference::start(options);
    REQUIRE(ref);
    const auto t = ref->load(bad_task("slow"));
    REQUIRE_FALSE(t);
    CHECK(t.error().code == ec::task_invalid);
    CHECK(t.error().message.find("no result after") != std::string::npos);
    CHECK_FALSE(ref->load(example("normalization_rms")));
  }
  SECTION("exits with status 0") {
    auto ref = reference::start(options);
    REQUIRE(ref);
    const auto t = ref->load(bad_task("exits"));
    REQUIRE_FALSE(t);
    CHECK(t.error().code == ec::task_invalid);
    CHECK(t.error().message.find("exit code 0") != std::string::npos);
  }
  SECTION("Ctrl-C") {
    std::atomic<bool> cancel{true};
    options.cancel = &cancel;
    auto ref = reference::start(options);
    REQUIRE_FALSE(ref);
    CHECK(ref.error().code == ec::interrupted);
  }
}
