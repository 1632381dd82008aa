// The deliverable: model_new.py, which a Torch program uses in place of the task's Model. Written at the end of a run and tried in a fresh
// Torch process, where its speed is that which a program gets. Used by the CLI and the workers. docs/drop_in.md.
#pragma once

#include "base/json.hpp"
#include "base/tf32.hpp"
#include "devices/backend.hpp"
#include "kernels/candidate.hpp"
#include "kernels/task.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace pragma {

/// Of a module in Python, which runs on a device.
struct device_rules {
  std::string torch_device = "cuda";      ///< Torch's name of it; "cpu" where the processor stands in for one
  tf32_use tf32 = tf32_use::none;         ///< where factors of float32 may be rounded
  bool allow_torch = false;               ///< forward() may leave operators to Torch: then its kernels are not launched by handle
};

/// Writes model_new.py: a drop-in `ModelNew` with the same constructor and forward as the task's Model, which calls the kernel where all that
/// it was made for holds, and computes with Model.forward where not. A kernel in C++ is kernel.cpp beside it; a Triton module is kernel.py;
/// `rules` are said there.
expected<void> write_drop_in(const std::filesystem::path& folder, const task& t, const candidate& code, int threads, const device_rules& rules = {});

/// Builds the kernel of a written drop-in for this processor and for x86-64-v2, -v3 and -v4, into built/: the names of those that were
/// built. not_found without a compiler; of a Triton module nothing.
expected<std::vector<std::string>> build_objects(const std::filesystem::path& folder, const candidate& code);

/// The files in `folder` that belong to the drop-in, relative to it.
std::vector<std::string> drop_in_files(const std::filesystem::path& folder);
/// Copies them and nothing else of the user's folder, so that a sandbox's uid can read them.
expected<void> copy_drop_in(const std::filesystem::path& from, const std::filesystem::path& to);

/// As others take it, into `out`: `kind` "wheel" (pip install), "file" (one Python file) or "cpp" (a header, a shared object, an example). The files that were made.
/// `name`: of the package or library, letters, digits and underscores. `python`: any Python 3.
expected<std::vector<std::string>> export_drop_in(const std::string& kind, const std::filesystem::path& folder, const std::filesystem::path& out,
                                                  const std::string& name, const std::string& python);

/// How a drop-in compiles its kernel.cpp: "g++" or "clang++", and all flags.
std::string driver_name(const candidate& code);
std::vector<std::string> kernel_flags(const candidate& code);

struct drop_in_options {
  std::string language = "c++";       ///< of the kernel (base/language.hpp)
  device_choice device;
  tf32_use tf32 = tf32_use::none;     ///< where Torch's own products, too, are those of TF32
  std::string baseline = "eager";     ///< what is timed beside it: "eager", "compile" or "max-autotune" (reference_options::baseline)
  std::filesystem::path torch_compiled; ///< reference_options::torch_compiled of the same task: each process gets a copy, so that none of them writes what the next one takes for Torch's code
  double measure_seconds = 0;         ///< above 0: calls of both sides are timed as well, for about so long
  int threads = 1;                    ///< Torch's and the kernel's
  int seeds = 3;                      ///< unseen ones, on which it is compared with Torch
  bool once_more = false;             ///< it has passed: what it does where the kernel does not fit, which is Torch's own, is not tried again
  double timeout_seconds = 120;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(double cpu_seconds)> begin; ///< called when Torch is there and before anything of the drop-in runs, with what its process has used so far; it waits for the end of it. Empty: on a device it takes the lease there
  std::filesystem::path compiled;     ///< build_output::scratch of the same module: what Triton has compiled there is used, and added to. Empty: nothing is
};
/// A drop-in's numbers on unseen seeds, as a user can check them. Errors: against the task in float64, as parts of the largest value.
struct called_numbers {
  double largest_error = -1;          ///< the drop-in's; -1: not looked at (no floating-point output)
  double torch_error = -1;            ///< Torch's own on the same inputs
  double kernelbench_tolerance = 0;   ///< atol and rtol of KernelBench's allclose against Torch's results, or the sidecar's where that asks for less
  bool kernelbench_passes = false;
  bool within_contract = false;       ///< its error is at most twice Torch's own, or 1e-6 where Torch is exact (half types: their epsilon)
};
PRAGMA_JSON(called_numbers, largest_error, torch_error, kernelbench_tolerance, kernelbench_passes, within_contract)
/// Both sides as a program calls them.
struct called_times {
  std::string protocol;               ///< how they were taken, for people
  bool flushed = false;               ///< before each call the caches are, as before a kernel's own on a device
  double torch_alone = 0;             ///< seconds of a call of Model, as it is or compiled, by the same protocol in the same process, while nothing of the drop-in was loaded
  std::vector<double> torch_seconds, drop_in_seconds; ///< per call, pairs that were taken one after the other
};
struct drop_in_result {
  std::string message;                ///< what was found, for people
  called_numbers numbers;
  std::vector<called_times> times;    ///< one for each protocol, none of them empty
  std::string not_timed;              ///< why there are no times, where there could have been
};
/// Runs a copy of model_new.py in a fresh Torch process on unseen seeds against the task, and says what was found. In the sandbox: policy `device`
/// for a module, `compiler` for C++ (docs/sandbox.md). candidate_failed and timeout: the drop-in's fault; unsupported: it cannot be tried on this
/// machine (no such device, no Torch), and nothing of it has run.
expected<drop_in_result> check_drop_in(const std::filesystem::path& folder, const task& t, const drop_in_options& options = {});

/// Compiles the Triton kernels of a written drop-in for the GPU `options.device`, into built/ (python/pragma_built.py). Names of the kernels. The drop-in's own process makes them: whoever
/// uses them compares them with Torch first. unsupported: not here, or not these kernels; whatever the error, the drop-in is left without compiled kernels and compiles where it runs.
expected<std::vector<std::string>> make_kernels(const std::filesystem::path& folder, const drop_in_options& options);
/// make_kernels(), and check_drop_in() with them.
expected<std::vector<std::string>> build_kernels(const std::filesystem::path& folder, const task& t, const drop_in_options& options);

} // namespace pragma
