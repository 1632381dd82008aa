#include "reference/reference.hpp"

#include "base/files.hpp"
#include "base/memory.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/utc.hpp"
#include "diagnosis/roofline.hpp"
#include "reference/limits_cache.hpp"
#include "sandbox/memory_file.hpp"
#include "reference/python_search.hpp"
#include "reference/reference_process.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <set>

namespace pragma {

namespace fs = std::filesystem;

namespace {

using clock = std::chrono::steady_clock;

constexpr double compile_seconds = 600;            // for torch.compile and its autotuning, on a busy machine
constexpr double oracle_factor = 100;              // float64 convolutions have no fast path in Torch
constexpr double memory_share = 0.9;               // of what is available now, for one task: its parts are counted one by one
constexpr uint64_t unknown_memory = 8ull << 30;    // where the system does not say how much there is
constexpr uint64_t alive_at_once = 3;              // tensors as large as the largest of a call: what an operator reads, writes, and the name before it
constexpr double longest_profiled_call = 2;        // s: the profile of Torch's operators takes two or more calls
constexpr uint64_t most_kept_bytes = 6ull << 30;   // of input sets that are kept with their expected results
constexpr double kept_share = 0.25;                // of what a task leaves free
constexpr int most_pieces = 64;                    // of the batch, for a float64 oracle that does not fit at once
constexpr int min_slots = 2;                       // verification needs two contents at once
constexpr int most_slots = 32;                     // more than usual of small sets: a predictor of branches learns a few thousand elements by heart ...
constexpr uint64_t content = 512 << 10;            // ... bytes of inputs and outputs in all slots: not this much, and a cache of the second level holds it
constexpr uint64_t large_set = 256ull << 20;       // bytes of inputs and outputs: no cache holds even one, so few slots do

constexpr const char* kind_names[] = {"own", "large", "tiny", "negative", "near_one", "constant_rows", "ties"};

json layout_json(const tensor_layout& layout) {
  return {{"specs", layout.specs}, {"offsets", layout.offsets}, {"slot_bytes", layout.slot_bytes}};
}

} // namespace

const char* name(input_kind kind) { return kind_names[static_cast<int>(kind)]; }

tensor_layout tensor_layout::of(const std::vector<tensor_spec>& specs, int slots) {
  constexpr uint64_t line = 64, page = 4096;
  tensor_layout layout;
  layout.specs = specs;
  layout.slots = slots;
  uint64_t at = 0;
  for (const auto& spec : specs) {
    const uint64_t padded = std::max((spec.bytes() + line - 1) / line * line, line);
    const uint64_t pages = (padded + page - 1) / page * page;
    layout.offsets.push_back(at + pages - padded);
    at += pages + page; // the guard page
  }
  layout.slot_bytes = at;
  return layout;
}

// -- the process -------------------------------------------------------------------------------------------------------

struct reference::impl {
  impl(const reference_options& given, reference_process started) : options(given), process(std::move(started)) { options.threads = std::max(options.threads, 1); }

  reference_options options;
  reference_process process;
  std::string way = "eager";      ///< what is timed
  std::string baseline = "eager"; ///< what is timed, as the reference process names it
  int n_slots = 0;
  fs::path task_path;
  bool float64_oracle = false, loaded = false;
  double call_seconds = 0, make_seconds = 0;
  tensor_layout params_layout, inputs_layout, outputs_layout, oracle_layout;
  std::vector<int> oracle_index; // output -> position in the oracle's layout, -1 for integers
  memory_file params, inputs, outputs, oracle;

  /// An input set with its expected results, as it lay in a slot.
  struct kept_set {
    uint64_t seed;
    input_kind kind;
    std::vector<std::byte> bytes;
  };
  std::vector<kept_set> kept;
  uint64_t kept_bytes = 0, kept_limit = 0;
  std::set<int> written;      // slots whose results have been computed
  uint64_t largest_bytes = 0; // that one call allocates at once, in its own type; 0: not known

  struct slot_part {
    std::byte* at;
    uint64_t bytes;
  };
  std::array<slot_part, 3> parts_of(int slot) {
    const auto part = [&](memory_file& file, const tensor_layout& layout) {
      return slot_part{file.data() + layout.slot_bytes * static_cast<uint64_t>(slot), layout.slot_bytes};
    };
    return {part(inputs, inputs_layout), part(outputs, outputs_layout), part(oracle, oracle_layout)};
  }
  bool recall(int slot, uint64_t seed, input_kind kind) {
    for (const auto& set : kept) {
      if (set.seed != seed || set.kind != kind) continue;
      const auto* from = set.bytes.data();
      for (const auto& [at, bytes] : parts_of(slot)) {
        std::memcpy(at, from, bytes);
        from += bytes;
      }
      return true;
    }
    return false;
  }
  void remember(int slot, uint64_t seed, input_kind kind) {
    uint64_t size = 0;
    for (const auto& part : parts_of(slot)) size += part.bytes;
    if (kept_bytes + size > kept_limit) return;
    kept_set set{seed, kind, {}};
    set.bytes.reserve(size);
    for (const auto& [at, bytes] : parts_of(slot)) set.bytes.insert(set.bytes.end(), at, at + bytes);
    kept_bytes += size;
    kept.push_back(std::move(set));
  }

  /// Input sets that are timed in turn.
  int slots_of(const task& t) const {
    uint64_t set = 1;
    for (const auto* specs : {&t.inputs, &t.outputs})
      for (const auto& spec : *specs) set += spec.bytes();
    return options.device.on_device() ? reference::usual_slots : static_cast<int>(std::clamp<uint64_t>(content / set, uint64_t{reference::usual_slots}, most_slots));
  }

  void lay_out(const task& t, int slots) {
    std::vector<tensor_spec> wide;
    oracle_index.clear();
    for (const auto& spec : t.outputs) {
      oracle_index.push_back(is_floating(spec.dtype) ? static_cast<int>(wide.size()) : -1);
      if (is_floating(spec.dtype)) wide.push_back({spec.name, dtype::float64, spec.shape});
    }
    params_layout = tensor_layout::of(t.params, 1);
    inputs_layout = tensor_layout::of(t.inputs, slots);
    outputs_layout = tensor_layout::of(t.outputs, slots);
    oracle_layout = tensor_layout::of(wide, slots);
    n_slots = slots;
    written.clear();
  }

  /// Shared memory, the candidate's outputs, what audits of its speed keep of a slot (known inputs with their answers, and new ones), Torch's own copies (two models, results in both types) and what it allocates on the way to them.
  /// `pieces`: of the batch, in which the float64 model computes its results; 0: it does not.
  uint64_t needed(int pieces) const {
    const auto once = [](const tensor_layout& l) { return l.slot_bytes; };
    const uint64_t results = 2 * once(outputs_layout), wide = 2 * once(oracle_layout), between = alive_at_once * largest_bytes;
    const uint64_t in_float64 = pieces == 0 ? 0 : std::max(pieces == 1 ? wide : 2 * wide, 2 * between) / static_cast<uint64_t>(pieces);
    return 4 * params_layout.total_bytes() + inputs_layout.total_bytes() + 2 * outputs_layout.total_bytes() + oracle_layout.total_bytes() +
           2 * (once(inputs_layout) + once(outputs_layout)) + 3 * once(inputs_layout) + (pieces == 0 ? std::max(results + wide, between) : pieces == 1 ? results + in_float64 : std::max(results + in_float64, between));
  }

  /// Bytes that one task may take here and now.
  double available() const {
    if (options.memory_bytes) return static_cast<double>(options.memory_bytes);
    return static_cast<double>(available_memory().value_or(unknown_memory)) * memory_share;
  }

  /// The same for one call of the reference and its float64 twin, beside what writing their results for a slot takes the first time; 0: no limit (a driver's address space is no memory).
  uint64_t may_take(int slot) {
    if (options.device.on_device()) return 0;
    const uint64_t results = written.insert(slot).second ? outputs_layout.slot_bytes + oracle_layout.slot_bytes : 0;
    return std::max(static_cast<uint64_t>(available()), results + 1) - results;
  }

  expected<task> ask(const fs::path& file) {
    std::error_code ignored;
    const auto absolute = fs::absolute(file, ignored);
    if (!fs::is_regular_file(absolute, ignored))
      return fail(ec::not_found, "no task file " + file.string(), "give the path of a KernelBench-format .py file");
    auto reply = process.exchange({{"do", "describe"}, {"file", absolute.string()}, {"max_bytes", options.max_task_bytes ? options.max_task_bytes : static_cast<uint64_t>(available())}},
                          "loading and tracing " + file.string(), options.load_timeout_seconds);
    if (!reply) {
      auto e = reply.error();
      if (e.code == ec::timeout) e.code = ec::task_invalid;
      return fail(e);
    }
    task_path = absolute;
    largest_bytes = reply->value("largest_bytes", uint64_t{0});
    return from_json_value<task>((*reply)["task"], "task");
  }
};

reference::reference(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
reference::reference(reference&&) noexcept = default;
reference& reference::operator=(reference&&) noexcept = default;
reference::~reference() = default;

expected<reference> reference::start(const reference_options& options) {
  const auto script = share_dir() / "python" / "reference.py";
  std::error_code ignored;
  if (!fs::exists(script, ignored))
    return fail(ec::not_found, "the reference's script is not installed: " + script.string(),
                "set PRAGMA_SHARE to the folder that has it");
  // The first Python that looks as if it had Torch is tried in earnest; only if that fails each is asked to import it.
  auto python = likely_python();
  if (python.executable.empty() || python.torch.empty()) {
    expected<reference_process> p = fail(ec::not_found, "no Python with Torch");
    if (!python.executable.empty()) p = reference_process::start(options, python);
    if (p) {
      remember_python(p->python);
      return reference(std::make_unique<impl>(options, std::move(*p)));
    }
    if (p.error().code != ec::tool_failed && p.error().code != ec::not_found) return fail(p.error());
    auto found = find_python();
    if (!found) return fail(found.error());
    python = std::move(*found);
  }
  auto p = reference_process::start(options, python);
  if (!p) return fail(p.error());
  return reference(std::make_unique<impl>(options, std::move(*p)));
}

expected<task> reference::describe(const fs::path& file) { return impl_->ask(file); }

expected<task> reference::load(const fs::path& file, int slots) {
  auto& p = *impl_;
  if (p.loaded)
    if (auto released = p.process.exchange({{"do", "release"}}, "leaving the earlier task", p.options.load_timeout_seconds); !released)
      return fail(released.error());
  p.loaded = false;
  forget_sets();
  p.params = {}, p.inputs = {}, p.outputs = {}, p.oracle = {};
  auto t = p.ask(file);
  if (!t) return t;
  if (slots <= 0) slots = p.slots_of(*t);
  p.lay_out(*t, slots);
  if (p.inputs_layout.slot_bytes + p.outputs_layout.slot_bytes > large_set) p.lay_out(*t, slots = std::min(slots, min_slots));
  const int asked = slots;
  const auto available = p.available();
  const auto fits = [&](int pieces) { return static_cast<double>(p.needed(pieces)) <= available; };
  while (slots > min_slots && !fits(1)) p.lay_out(*t, --slots);
  int pieces = 1;
  while (pieces < most_pieces && !fits(pieces)) pieces *= 2;
  if (!fits(pieces)) pieces = 0;
  const auto needed = static_cast<double>(p.needed(pieces));
  if (needed > available)
    return fail(ec::task_invalid,
                t->path + ": checking this task takes about " + format_bytes(needed) +
                  " of memory; " + format_bytes(available) + " can be used here now",
                "make the shapes smaller (a sidecar with \"constants\" does it without touching the file)");
  p.kept_limit = std::min(most_kept_bytes, static_cast<uint64_t>(kept_share * std::max(0.0, available - needed)));
  if (const auto note = passed_over(p.process.python); !note.empty()) t->notes.push_back(note);
  if (slots < asked) t->notes.push_back("memory is short: " + std::to_string(slots) + " input sets at once");

  struct wanted {
    memory_file& file;
    const char* what;
    const tensor_layout& layout;
  };
  for (auto& [file_, what, layout] : {wanted{p.params, "params", p.params_layout}, wanted{p.inputs, "inputs", p.inputs_layout},
                                      wanted{p.outputs, "reference", p.outputs_layout}, wanted{p.oracle, "oracle", p.oracle_layout}}) {
    auto made = memory_file::create(what, layout.total_bytes());
    if (!made) return fail(made.error());
    file_ = std::move(*made);
  }
  if (auto sent = p.process.send_files({p.params.fd(), p.inputs.fd(), p.outputs.fd(), p.oracle.fd()}); !sent) return fail(sent.error());
  const std::string doing = "creating the model and its inputs (" + t->name + ")";
  auto mapped = p.process.exchange({{"do", "map"},
                            {"slots", slots},
                            {"params", layout_json(p.params_layout)},
                            {"inputs", layout_json(p.inputs_layout)},
                            {"outputs", layout_json(p.outputs_layout)},
                            {"oracle", layout_json(p.oracle_layout)}},
                           doing, p.options.load_timeout_seconds);
  if (!mapped) return fail(mapped.error());
  for (auto* file_ : {&p.params, &p.inputs})
    if (auto sealed = file_->seal_writes(); !sealed) return fail(sealed.error());
  // Nobody else is to get at these two: the mappings stay, the descriptors go.
  p.outputs.close_fd();
  p.oracle.close_fd();

  const auto slow = [&](error e) {
    if (e.code == ec::timeout) {
      e.code = ec::task_invalid;
      e.message = t->path + ": the reference is too slow: " + e.message;
    }
    return fail(std::move(e));
  };
  auto trial = p.process.exchange({{"do", "trial"}}, "one reference call (" + t->name + ")", p.options.call_timeout_seconds);
  if (!trial) return slow(trial.error());
  p.call_seconds = trial->value("seconds", 0.0);
  auto checked = p.process.exchange({{"do", "check"}, {"pieces", pieces}, {"bytes", p.may_take(0)}}, "checking the reference (" + t->name + ")",
                            p.options.load_timeout_seconds + (3 + oracle_factor) * p.call_seconds + (p.options.baseline == "eager" ? 0 : compile_seconds));
  if (!checked) return slow(checked.error());
  p.baseline = checked->value("baseline", p.options.baseline);
  p.way = checked->value("way", p.options.baseline);
  p.float64_oracle = checked->value("oracle_float64", false);
  t->deterministic = checked->value("deterministic", true);
  t->mutated = checked->value("mutated", t->mutated);
  for (const auto& note : checked->value("notes", std::vector<std::string>{})) t->notes.push_back(note);
  p.loaded = true;
  return t;
}

const python_info& reference::python() const { return impl_->process.python; }

std::string reference::baseline_way() const { return impl_->way; }

std::string reference::baseline_name() const {
  const auto& p = *impl_;
  const int n = p.options.threads;
  if (p.options.device.on_device())
    return "torch " + p.process.python.torch + " " + p.baseline + ", no_grad, " + p.process.device_name +
           (p.options.tf32 == tf32_use::all ? ", TF32" : p.options.tf32 == tf32_use::convolutions ? ", TF32 in convolutions" : ", no TF32");
  return "torch " + p.process.python.torch + " " + p.baseline + ", no_grad, " + std::to_string(n) + (n == 1 ? " thread" : " threads") +
         (p.process.torch_capability.empty() ? "" : ", ATen " + p.process.torch_capability) + (p.process.blas.empty() ? "" : ", BLAS " + p.process.blas);
}

int reference::slots() const { return impl_->n_slots; }
int reference::params_fd() const { return impl_->params.fd(); }
int reference::inputs_fd() const { return impl_->inputs.fd(); }
const tensor_layout& reference::params_layout() const { return impl_->params_layout; }
const tensor_layout& reference::inputs_layout() const { return impl_->inputs_layout; }
const tensor_layout& reference::outputs_layout() const { return impl_->outputs_layout; }
std::byte* reference::inputs_data() { return impl_->inputs.data(); }
bool reference::oracle_is_float64() const { return impl_->float64_oracle; }
int reference::pid() const { return impl_->process.pid(); }

expected<void> reference::make_inputs(int slot, uint64_t seed, input_kind kind, bool keep) {
  auto& p = *impl_;
  if (!p.loaded || slot < 0 || slot >= p.n_slots)
    return fail(ec::internal, "make_inputs: slot " + std::to_string(slot) + " of " + std::to_string(p.loaded ? p.n_slots : 0));
  if (keep && p.recall(slot, seed, kind)) return {};
  const auto start = clock::now();
  if (auto filled = p.process.exchange({{"do", "fill"}, {"slot", slot}, {"seed", seed >> 1}, {"kind", pragma::name(kind)}},
                               std::string("making inputs of kind '") + pragma::name(kind) + "'", p.options.call_timeout_seconds);
      !filled)
    return fail(filled.error());
  auto reply = p.process.exchange({{"do", "compute"}, {"slot", slot}, {"bytes", p.may_take(slot)}},
                          std::string("computing the expected output for inputs of kind '") + pragma::name(kind) + "'",
                          p.options.call_timeout_seconds + oracle_factor * p.call_seconds);
  if (!reply) return fail(reply.error());
  p.float64_oracle = reply->value("oracle_float64", p.float64_oracle);
  p.make_seconds = std::chrono::duration<double>(clock::now() - start).count();
  if (keep) p.remember(slot, seed, kind);
  return {};
}

double reference::make_seconds() const { return impl_->make_seconds; }

void reference::forget_sets() {
  impl_->kept.clear();
  impl_->kept_bytes = 0;
}

std::span<const std::byte> reference::reference_output(int slot, size_t output) const {
  const auto& p = *impl_;
  const auto& layout = p.outputs_layout;
  if (!p.loaded || slot < 0 || slot >= p.n_slots || output >= layout.specs.size()) return {};
  return {p.outputs.data() + layout.slot_bytes * static_cast<uint64_t>(slot) + layout.offsets[output],
          layout.specs[output].bytes()};
}

std::span<const double> reference::oracle(int slot, size_t output) const {
  const auto& p = *impl_;
  if (!p.loaded || slot < 0 || slot >= p.n_slots || output >= p.oracle_index.size() || p.oracle_index[output] < 0) return {};
  const auto index = static_cast<size_t>(p.oracle_index[output]);
  const auto& layout = p.oracle_layout;
  const auto* at = p.oracle.data() + layout.slot_bytes * static_cast<uint64_t>(slot) + layout.offsets[index];
  return {reinterpret_cast<const double*>(at), static_cast<size_t>(layout.specs[index].elements())};
}

expected<std::optional<reference::pointed_to>> reference::point_to(int slot, size_t output, const std::vector<int64_t>& positions, const std::vector<int64_t>& indices) {
  auto& p = *impl_;
  auto reply = p.process.exchange({{"do", "point_to"}, {"slot", slot}, {"output", output}, {"positions", positions}, {"indices", indices}},
                          "looking up what a candidate's indices point to", p.options.call_timeout_seconds + oracle_factor * p.call_seconds);
  if (!reply) return fail(reply.error());
  const auto& found = (*reply)["found"];
  if (!found.is_object()) return std::nullopt;
  pointed_to result;
  for (const auto& value : found.at("got")) result.got.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  result.best = found.at("best").get<std::vector<double>>();
  result.spread = found.at("spread").get<std::vector<double>>();
  result.first = found.at("first").get<bool>();
  if (result.got.size() != positions.size() || result.best.size() != positions.size() || result.spread.size() != positions.size())
    return fail(ec::internal, "the reference answered for another number of indices");
  return result;
}

expected<std::vector<int64_t>> reference::not_explained(int slot, size_t output, const std::vector<int64_t>& positions, const std::vector<double>& got, const std::vector<double>& allowed) {
  auto& p = *impl_;
  constexpr double runs = 13 + 24; // of steps.py and neighbours.py
  auto reply = p.process.exchange({{"do", "not_explained"}, {"slot", slot}, {"output", output}, {"positions", positions}, {"got", got}, {"allowed", allowed},
                           {"factor", defaults::reference_error_factor}},
                          "asking which wrong elements a step explains", p.options.call_timeout_seconds + runs * oracle_factor * p.call_seconds);
  if (!reply) return fail(reply.error());
  return (*reply)["left"].get<std::vector<int64_t>>();
}

const fs::path& reference::task_file() const { return impl_->task_path; }
const device_choice& reference::device() const { return impl_->options.device; }

expected<double> reference::time(int64_t calls, bool graph) {
  auto& p = *impl_;
  if (!p.loaded) return fail(ec::internal, "reference::time before load");
  auto reply = p.process.exchange({{"do", "time"}, {"calls", calls}, {"graph", graph}}, std::to_string(calls) + " timed reference calls",
                          p.options.call_timeout_seconds + 2 * static_cast<double>(calls) * std::max(p.call_seconds, 1e-3));
  if (!reply) return fail(reply.error());
  return reply->value("seconds", 0.0);
}

expected<std::vector<operator_time>> reference::operators() {
  auto& p = *impl_;
  if (!p.loaded) return fail(ec::internal, "reference::operators before load");
  if (p.call_seconds > longest_profiled_call) return std::vector<operator_time>{};
  auto reply = p.process.exchange({{"do", "operators"}}, "the profile of Torch's operators", p.options.call_timeout_seconds);
  if (!reply) return fail(reply.error());
  return from_json_value<std::vector<operator_time>>((*reply)["operators"], "Torch's operators");
}

expected<bool> reference::capture() {
  auto reply = impl_->process.exchange({{"do", "capture"}}, "capturing the reference", impl_->options.load_timeout_seconds);
  if (!reply) return fail(reply.error());
  return reply->value("captured", false);
}

error device_is_shared_error() {
  return {ec::measurement_failed, "another process works on this device: calls would wait for its work as it happens, so that no time means anything",
          "end what else uses the device, or choose another one (--device)"};
}

expected<double> reference::device_share() {
  auto reply = impl_->process.exchange({{"do", "share"}}, "finding out who else works on the device", impl_->options.call_timeout_seconds);
  if (!reply) return fail(reply.error());
  return reply->value("share", 1.0);
}

expected<machine_limits> reference::limits(bool remeasure) {
  auto& p = *impl_;
  if (!remeasure)
    if (auto known = known_limits(p.options.device, p.process.device_name, p.process.python.torch)) return *known;
  auto reply = p.process.exchange({{"do", "limits"}}, "measuring the limits of " + p.process.device_name, p.options.load_timeout_seconds);
  if (!reply) return fail(reply.error());
  auto limits = from_json_value<machine_limits>((*reply)["limits"], "limits");
  if (!limits) return limits;
  const auto share = device_share();
  if (!share) return fail(share.error());
  if (*share < least_device_share) return fail(device_is_shared_error());
  limits->backend = p.options.device.backend;
  limits->cores = limits->compute_units;
  limits->measured_at = utc_now();
  if (const auto known = known_limits(p.options.device, p.process.device_name, p.process.python.torch)) limits = better_of(std::move(*limits), *known);
  keep_limits(*limits, p.options.device, p.process.device_name, p.process.python.torch);
  return limits;
}

expected<void> reference::run(int64_t calls) {
  auto& p = *impl_;
  if (!p.loaded) return fail(ec::internal, "reference::run before load");
  return p.process.run(calls, std::to_string(calls) + " reference calls", p.options.call_timeout_seconds + 2 * static_cast<double>(calls) * std::max(p.call_seconds, 1e-3));
}

} // namespace pragma
