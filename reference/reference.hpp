// The reference process: Debian's Python with Torch, long-lived and warm, which loads the task file, makes inputs,
// computes expected outputs (float32 as the user would get them, and a float64 oracle) and runs the reference for
// timing. The candidate never shares a process with it. Used by verify, timing and the CLI.
#pragma once

#include "base/tf32.hpp"
#include "diagnosis/brief.hpp"
#include "devices/backend.hpp"
#include "kernels/task.hpp"

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

namespace pragma {

/// Kinds of input contents. `own` is the task's get_inputs() under a fresh seed; the others break luck.
/// Integer and boolean inputs keep the task's own distribution under every kind (they are labels, masks, indices).
enum class input_kind {
  own,           ///< as get_inputs() makes them
  large,         ///< own values times 30
  tiny,          ///< own values times 1e-3
  negative,      ///< -|own|
  near_one,      ///< uniform in [0.9, 1.1]: products and logs stay in range
  constant_rows, ///< one value per row of the last dimension
  ties           ///< few distinct values (multiples of 0.5): argmax and max meet ties
};
const char* name(input_kind kind);

struct python_info {
  std::string executable;      ///< the one chosen
  std::string version;         ///< "3.11.2"
  std::string torch;           ///< "1.13.0a0"
  std::vector<std::string> rejected; ///< "PATH/OF/python3: no module named torch"
};
/// Finds a Python that imports torch: $PRAGMA_PYTHON and no other; without it the active virtual environment's ($VIRTUAL_ENV, then $CONDA_PREFIX),
/// /usr/bin/python3, then every python3 on PATH. ec::not_found names each that was tried with the reason.
expected<python_info> find_python();

struct reference_options {
  int threads = 1;
  device_choice device;               ///< where Model runs
  std::string baseline = "eager";     ///< "eager", "compile" or "max-autotune" (torch.compile with its defaults, or in that mode), "best": the quickest of them here
  std::filesystem::path torch_compiled; ///< a folder for what torch.compile makes; empty: Torch's own, of all programs of this user
  tf32_use tf32 = tf32_use::none;     ///< on a device: where the reference may round factors of float32
  std::vector<int> cpus;              ///< pin the process there; empty = not pinned
  uint64_t max_task_bytes = 0;        ///< inputs + parameters + outputs, and any one tensor of a call; 0: what the machine (and the device) has free then
  uint64_t memory_bytes = 0;          ///< that checking one task may take; 0: most of what is available then
  double load_timeout_seconds = 120;  ///< for loading and tracing the task (importing torch may take longer)
  double call_timeout_seconds = 120;  ///< for one reference call; longer ends with a timeout that names the limit
  const std::atomic<bool>* cancel = nullptr; ///< Ctrl-C: long calls return ec::interrupted
};

/// One shared memory file for tensors: a header-less concatenation of `slots` groups of tensors, each tensor padded so
/// that it starts 64-byte aligned and ends (rounded up to 64) at a page boundary followed by one unused guard page.
struct tensor_layout {
  std::vector<tensor_spec> specs;
  std::vector<uint64_t> offsets;      ///< of each tensor within a slot, bytes
  uint64_t slot_bytes = 0;            ///< page multiple
  int slots = 1;
  uint64_t total_bytes() const { return slot_bytes * static_cast<uint64_t>(slots); }
  /// Lays the tensors out; the same rule in the runner (runner/runner.cpp) and in reference.py (which is told the offsets).
  static tensor_layout of(const std::vector<tensor_spec>& specs, int slots);
};

constexpr double least_device_share = 0.75; ///< of its time; 0.985 was measured on a free H100, 0.45 beside one other process
/// What is said where nothing can be measured: calls would wait for the others' work as it happens.
error device_is_shared_error();

class reference {
public:
  static constexpr int usual_slots = 4; ///< input sets that are timed in turn; more of small ones

  static expected<reference> start(const reference_options& options);
  reference(reference&&) noexcept;
  reference& operator=(reference&&) noexcept;
  ~reference();

  /// Loads and checks a task file. task_invalid with line and reason for: syntax error, missing Model/get_inputs/
  /// get_init_inputs, import of an absent module, shapes above max_task_bytes (found on fake tensors, before anything
  /// is allocated), outputs that are not tensors, NaN or Inf in the reference's output on its own inputs, reference
  /// slower than call_timeout_seconds. Creates the shared memory below. `slots` input sets can be held at once (0: 4, and more
  /// of small ones, so that no processor knows their branches by heart); fewer (slots() says how many) where one is larger than any cache or memory is short; where it is still short, the oracle is computed in
  /// pieces of the batch, and where that cannot be done either, the reference's own results stand for it: a note says so.
  expected<task> load(const std::filesystem::path& file, int slots = 0);
  /// Only describes (fake tensors, graph, shapes, flops, bytes); allocates nothing and creates no shared memory.
  expected<task> describe(const std::filesystem::path& file);

  const python_info& python() const;
  /// What is timed; with "best" known once a task is loaded.
  /// "torch 1.13.0a0 eager, no_grad, 1 thread, ATen AVX2, BLAS libopenblasp-r0.3.21.so"
  std::string baseline_name() const;
  /// "eager", "compile" or "max-autotune": what `baseline` says, or, where that is "best", the one that was the quickest.
  std::string baseline_way() const;
  int slots() const;

  /// File descriptors of the memory that the candidate may see: parameters (1 slot) and inputs (`slots` slots).
  /// Both are sealed against new writable mappings, so the candidate can only map them read-only.
  int params_fd() const;
  int inputs_fd() const;
  const tensor_layout& params_layout() const;
  const tensor_layout& inputs_layout() const;
  /// Our own writable view of the inputs (to rewrite them in an audit); same layout as inputs_fd().
  std::byte* inputs_data();

  /// Fills input slot `slot` from `seed` and computes the reference's output and the oracle for it. `keep`: remembers all of
  /// it (up to a limit of memory), so that asking again with `keep` only copies.
  expected<void> make_inputs(int slot, uint64_t seed, input_kind kind, bool keep = false);
  /// Seconds that the latest set took that had to be made.
  double make_seconds() const;
  /// Drops what was kept.
  void forget_sets();

  /// The reference's own output for `slot`, in the output's dtype (private memory, never shared with a candidate).
  std::span<const std::byte> reference_output(int slot, size_t output) const;
  /// The float64 oracle for `slot` (floating outputs only; for integer outputs it is empty).
  std::span<const double> oracle(int slot, size_t output) const;
  /// What indices in an integer output point to, in float64: of argmax, argmin, max, min, topk, sort and argsort.
  struct pointed_to {
    std::vector<double> got, best;   ///< values at the candidate's and at the reference's indices; NaN: outside, or chosen twice
    std::vector<double> spread;      ///< mean absolute deviation of the values that were chosen from
    bool first = false;              ///< of equal values Torch documents the first
  };
  /// `positions` of elements in the output for what lies in `slot`. Nothing: the output is no result of such an operator.
  expected<std::optional<pointed_to>> point_to(int slot, size_t output, const std::vector<int64_t>& positions, const std::vector<int64_t>& indices);
  /// Those of `positions` at which neither the reference's rounding on inputs beside these (reference/python/neighbours.py; outputs of few elements) nor a step of it (a rounding, a
  /// comparison, a choice) that may fall on either side explains `got`: reference/python/steps.py says how. `allowed`: the error that nothing has to explain, 0 for whole numbers.
  expected<std::vector<int64_t>> not_explained(int slot, size_t output, const std::vector<int64_t>& positions, const std::vector<double>& got, const std::vector<double>& allowed);
  /// True when a float64 oracle could be computed; else oracle() holds the float32 result widened.
  bool oracle_is_float64() const;
  const tensor_layout& outputs_layout() const;

  /// Runs the reference `calls` times in a row, cycling through slots [0, slots()), on private tensors that alias the
  /// input slots, and returns when done. The caller's clock times it (protocol overhead is about 10 us; run(0) measures it).
  expected<void> run(int64_t calls);
  /// How eager Torch's time is shared out among its operators, the longest first; empty where its profiler says nothing and where a call takes seconds. Takes
  /// a second; after it, on a device, calls may take longer than before.
  expected<std::vector<operator_time>> operators();
  // On a device only.
  /// Seconds of `calls` calls by the device's clock, each after a flush of the last-level cache; `graph`: replayed, see capture().
  expected<double> time(int64_t calls, bool graph);
  /// Graphs of a call for each slot; false when the reference cannot be captured.
  expected<bool> capture();
  /// How much of the device's time is the reference's when it works without a pause, in (0, 1]; below least_device_share others work on it, too.
  expected<double> device_share();
  /// What the device is, and its bandwidths, peaks and shortest launch, measured now (about 3 s) or by an earlier process with the
  /// same device, driver and Torch (cached in cache_home()). Measuring again can only raise a figure. measurement_failed where another process works on the device.
  expected<machine_limits> limits(bool remeasure = false);
  const device_choice& device() const;
  /// The loaded task's file.
  const std::filesystem::path& task_file() const;
  /// pid of the Python process, for schedstat.
  int pid() const;

private:
  struct impl;
  explicit reference(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

/// What reference::limits() measured earlier on this machine, for a device by its name and the Torch that drives it; nothing: not yet.
std::optional<machine_limits> known_limits(const device_choice& device, const std::string& device_name, const std::string& torch);

} // namespace pragma
