#include "actors/as_called.hpp"

#include "base/files.hpp"
#include "base/language.hpp"
#include "base/seconds.hpp"
#include "base/text.hpp"
#include "devices/device_lease.hpp"
#include "drop_in/drop_in.hpp"
#include "execution/contention.hpp"
#include "kernels/parts.hpp"
#include "timing/comparison.hpp"
#include "timing/quantile.hpp"
#include "timing/timing.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <tuple>
#include <utility>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;

constexpr double measure_seconds = 1.5;          ///< in each
constexpr double called_budget = 60;             ///< seconds: after them no further process is started
constexpr double compiled_budget = 120;          ///< where each process compiles Model first
constexpr int later_seeds = 1;                   ///< unseen seeds on which the second process and those after it check the drop-in
constexpr double other_caches = 0.3; ///< one set of inputs, called again and again, against several in turn
constexpr double same_caches = 0.7;  ///< both after a flush: 0.97 to 1.09 of the kernel's own time in 16 tasks on H200s
constexpr double beside_another = 1.1; ///< what Torch's time beside the drop-in is of that by itself, at most

std::string called_model(const std::string& way) { return way == "eager" ? "Model" : way == "compile" ? "torch.compile(Model)" : "torch.compile(Model, mode=\"" + way + "\")"; }

/// The winner's code runs in the process that says these times: whatever it does there, Torch counts as about so quick as it was before that code was loaded (decisions/0079).
timing timing_of(const called_times& found, const load_request& request, const std::string& torch, double others) {
  timing t;
  const double beside = median_of(found.torch_seconds);
  const bool as_alone = beside > beside_another * found.torch_alone;
  auto torch_seconds = found.torch_seconds;
  if (as_alone)
    for (double& s : torch_seconds) s *= found.torch_alone / beside;
  t.contended = others > (request.where().on_device() ? most_others_of_a_device() : most_others(request.threads));
  t.baseline_seconds = median_of(torch_seconds);
  t.candidate_seconds = median_of(found.drop_in_seconds);
  t.speedup = bootstrap_ratio(torch_seconds, found.drop_in_seconds, 1);
  t.baseline = "Torch " + torch + ", " + called_model(request.baseline) + " called the same way, " + std::to_string(request.threads) + (request.threads == 1 ? " thread" : " threads");
  t.threads = request.threads;
  t.blocks_accepted = t.blocks_tried = static_cast<int>(torch_seconds.size());
  t.cache = found.protocol;
  if (t.contended) t.note = of_others(others);
  if (as_alone) t.note = "Torch took " + format_seconds(beside) + " beside the drop-in, and counts as it was by itself" + (t.note.empty() ? "" : "; ") + t.note;
  return t;
}

/// What the processes say by each protocol, and which of these says least for the drop-in: that is the figure.
class by_protocol {
public:
  explicit by_protocol(bool on_device) : put_together_(on_device ? together_on_a_device : together) {}

  bool fits(const std::vector<timing>& of_a_process) const { return taken_.empty() || of_a_process.size() == taken_.size(); }
  void add(std::vector<timing> of_a_process) {
    taken_.resize(of_a_process.size());
    for (size_t i = 0; i < taken_.size(); ++i) taken_[i].push_back(std::move(of_a_process[i]));
  }
  size_t processes() const { return taken_.empty() ? 0 : taken_.front().size(); }
  bool enough(comparison_goal asked) const { return !taken_.empty() && enough_called(taken_[least(figures())], asked); }
  static size_t least(const std::vector<timing>& all) {
    return static_cast<size_t>(std::min_element(all.begin(), all.end(), [](const timing& a, const timing& b) { return a.speedup.value < b.speedup.value; }) - all.begin());
  }
  timing figure() const {
    const auto all = figures();
    auto result = all[least(all)];
    for (size_t i = 0; i < all.size(); ++i)
      if (i != least(all)) result.note = all[i].cache + ": " + format_number(all[i].speedup.value, 2) + "x" + (result.note.empty() ? "" : "; ") + result.note;
    return result;
  }

private:
  std::vector<timing> figures() const {
    std::vector<timing> all;
    for (const auto& of_one : taken_) all.push_back(put_together_(of_one));
    return all;
  }

  std::vector<std::vector<timing>> taken_; ///< of each protocol, of each process
  timing (*put_together_)(std::vector<timing>);
};

/// A machine that was slow while the kernel was timed makes an honest call look impossible (decisions/0054): the kernel is timed once more, and the quicker time counts.
bool believable(const timing& called, bool flushed, kernel_timer& kernel_again, timing& kernel) {
  if (!possible(called, flushed, kernel) && kernel_again) {
    auto again = std::exchange(kernel_again, {})();
    if (again && again->candidate_seconds > 0 && again->candidate_seconds < kernel.candidate_seconds) kernel = std::move(*again);
  }
  return possible(called, flushed, kernel);
}

std::string not_believed(const timing& called, const timing& kernel) {
  return "its process says " + format_seconds(called.candidate_seconds) + " a call, which is not believed: the kernel alone was timed at " + format_seconds(kernel.candidate_seconds);
}

/// In a process that has the device for itself from its first call on: a call from Python that meets another process's slice of time is milliseconds late. `others`: share of
/// the machine that others used meanwhile.
expected<drop_in_result> checked_alone(const std::filesystem::path& folder, const task& t, drop_in_options options, double& others) {
  device_lease lease;
  std::optional<others_watch> watch;
  auto start = clock::now();
  options.begin = [&](double cpu_seconds) {
    lease = lease_device(options.device, options.cancel);
    watch.emplace(std::vector<pid_t>{}, cpu_seconds);
    start = clock::now();
  };
  auto found = check_drop_in(folder, t, options);
  others = watch ? watch->seconds() / std::max(seconds_since(start), 1e-9) : 0;
  return found;
}

/// What a process found, but for its times: a refusal, why there is no figure, or what the first one says for people.
expected<void> settle(const expected<drop_in_result>& found, bool first, confirmation& result) {
  if (!found && found.error().code == ec::unsupported) {
    result.not_called = found.error().message;
    return {};
  }
  if (!found && (found.error().code == ec::candidate_failed || found.error().code == ec::timeout)) {
    result.verdict.why_not = doubt_about(found.error());
    result.verdict.stage = result.verdict.why_not == doubt::none ? verdict_stage::audit : verdict_stage::not_established; // how much memory others hold is not its doing
    result.verdict.reason = "as a drop-in, " + found.error().message;
    return {};
  }
  if (!found) return fail(found.error());
  if (first) {
    result.drop_in = found->message;
    result.numbers = found->numbers;
  }
  if (found->times.empty())
    result.not_called = found->not_timed.empty() ? "it was not timed" : found->not_timed;
  return {};
}

} // namespace

bool possible(const timing& called, bool flushed, const timing& kernel) {
  const bool same = flushed && kernel.cache.starts_with("flushed");
  return called.candidate_seconds >= (same ? same_caches : other_caches) * kernel.candidate_seconds;
}

expected<void> can_time_parts(const load_request& request) {
  const std::string why = "whether kernels for parts of a task are faster shows in a program that calls the drop-in and Model beside each other: ";
  if (!request.call_drop_in) return fail(ec::unsupported, why + "--no-check forbids that", "leave --no-check away");
  return {};
}

expected<written_winner> write_winner(const task& t, const candidate& c, const load_request& request, const std::atomic<bool>* cancel, const std::filesystem::path& compiled) {
  auto place = temp_dir::create("pragma-called-");
  if (!place) return fail(place.error());
  const auto device = find_backend(request.backend);
  if (!device) return fail(device.error());
  if (auto written = write_drop_in(place->path(), t, c, request.threads, {device->torch_device, request.tf32, request.allow_torch}); !written) return fail(written.error());
  const auto language = language_of_kernels(c);
  if (!language) return fail(language.error());
  drop_in_options options;
  options.language = *language;
  options.device = request.where();
  options.tf32 = request.tf32;
  options.baseline = request.baseline;
  options.threads = request.threads;
  options.cancel = cancel;
  options.compiled = compiled; // while one of these processes compiles nobody else has the device
  // Where they cannot be made, each process compiles and tunes (decisions/0062). A part has one or two processes.
  const bool tuned = c.source.find("triton.autotune") != std::string::npos;
  if (in_python(*language) && !request.part && (tuned || c.language == parts_language)) std::ignore = make_kernels(place->path(), options);
  return written_winner{std::move(*place), std::move(options)};
}

expected<void> call_drop_in(const written_winner& winner, const task& t, const load_request& request, const std::string& torch, confirmation& result, int most, kernel_timer kernel_again) {
  auto options = winner.options;
  options.measure_seconds = measure_seconds;
  const auto asked = request.part ? comparison_goal::is_first_faster : comparison_goal::how_much;
  const auto start = clock::now();
  by_protocol taken(request.where().on_device());
  for (int process = 0; process < most; ++process) {
    if (taken.enough(asked) || (process > 0 && seconds_since(start) > (request.baseline == "eager" ? called_budget : compiled_budget))) break;
    if (options.cancel && options.cancel->load()) return fail(ec::interrupted, "the drop-in's figure was interrupted");
    double others = 0;
    auto found = checked_alone(winner.place.path(), t, options, others);
    if (auto settled = settle(found, process == 0, result); !settled || !result.verdict.passed()) return settled;
    if (!result.not_called.empty()) {
      if (taken.processes() == 0) return {};
      result.not_called.clear(); // the earlier ones have said something
      break;
    }
    std::vector<timing> called;
    for (const auto& times : found->times) called.push_back(timing_of(times, request, torch, others));
    if (!taken.fits(called)) {
      result.not_called = "its processes were not timed by the same protocols";
      return {};
    }
    const auto least = by_protocol::least(called);
    taken.add(called);
    // What is given is looked at, and what was seen after a flush. No other protocol that says more: warm caches may be far quicker than what the kernel was timed with.
    for (size_t i = 0; i < called.size(); ++i) {
      const bool flushed = found->times[i].flushed;
      if ((i != least && !flushed) || believable(called[i], flushed, kernel_again, result.kernel)) continue;
      result.not_called = not_believed(called[i], result.kernel);
      return {};
    }
    options.seeds = later_seeds;
    options.once_more = true;
  }
  result.time = taken.figure();
  if (!believable(result.time, false, kernel_again, result.kernel)) { // it is put together of several processes
    result.not_called = not_believed(result.time, result.kernel);
    return {};
  }
  note_processes(result.time, taken.processes());
  result.as_called = true;
  return {};
}

} // namespace pragma
