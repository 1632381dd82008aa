#include "verification/verify.hpp"

#include "base/language.hpp"
#include "base/text.hpp"
#include "reference/call_limit.hpp"
#include "verification/fingerprint.hpp"
#include "execution/runner_process.hpp"
#include "kernels/seeds.hpp"
#include "verification/slot_checker.hpp"

#include <algorithm>
#include <chrono>
#include <sys/mman.h>

namespace pragma {

namespace {

constexpr int sets_at_once = 4;             ///< in as many slots
constexpr double shortest_timeout = 2;     ///< seconds; also covers page faults of the first call
constexpr double shortest_device_timeout = 20; ///< the first call on other contents may tune, and Torch's record of operators is slow to start

using clock = std::chrono::steady_clock;
double since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

struct input_set {
  input_kind kind;
  int number; ///< from 1, of the own inputs
};

/// The parameters as the candidate sees them, for a fingerprint; nothing where there are none.
class parameter_view {
public:
  explicit parameter_view(const reference& ref) : bytes_(ref.params_layout().specs.empty() ? 0 : ref.params_layout().total_bytes()) {
    if (bytes_ == 0) return;
    void* at = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, ref.params_fd(), 0);
    if (at != MAP_FAILED) data_ = static_cast<const std::byte*>(at);
  }
  parameter_view(const parameter_view&) = delete;
  parameter_view& operator=(const parameter_view&) = delete;
  ~parameter_view() {
    if (data_) ::munmap(const_cast<std::byte*>(data_), bytes_);
  }
  uint64_t print() const { return data_ ? fingerprint(data_, bytes_) : 0; }

private:
  size_t bytes_ = 0;
  const std::byte* data_ = nullptr;
};

/// One verification under way. run() returns an error only for what the candidate is not to blame for.
class verification {
public:
  verification(const task& t, const task_audit& audit, reference& ref, const build_output& built, const verify_options& options)
      : task_(t), audit_(audit), ref_(ref), built_(built), options_(options),
        first_seed_(options.seed ? options.seed : seed_source().next()),
        checker_(t, ref, options.tolerance, audit.tightening), parameters_(ref) {
    for (int i = 1; i <= options.seeds; ++i) sets_.push_back({input_kind::own, i});
    for (auto kind : audit.usable)
      if (kind != input_kind::own && !options.own_inputs_only) sets_.push_back({kind, 0});
  }

  expected<verdict> run() {
    const auto start = clock::now();
    result_.binary = built_.binary_hash;
    result_.build_seconds = built_.seconds;
    for (size_t i = 0; i < task_.outputs.size() && result_.tolerance == 0; ++i) result_.tolerance = checker_.tolerance(i);
    auto done = all_groups();
    if (!done) return fail(done.error());
    if (runner_) result_.log = runner_->log();
    keep_worst(result_.mismatches);
    result_.verify_seconds = since(start);
    return result_;
  }

private:
  void stop(verdict_stage stage, std::string reason) {
    result_.stage = stage;
    result_.reason = std::move(reason);
    stopped_ = true;
  }

  /// A failure of the candidate becomes the verdict; any other is handed on.
  expected<void> blame(verdict_stage stage, const error& e, const std::string& where) {
    if (!is_candidates_fault(e)) return fail(e);
    result_.why_not = doubt_about(e);
    stop(stage, e.message + (where.empty() ? "" : " (" + where + ")") + (e.hint.empty() ? "" : ": " + e.hint));
    return {};
  }

  expected<void> all_groups() {
    if (const auto why = why_unverifiable(audit_.passing_nulls); !why.empty()) {
      stop(verdict_stage::audit, why);
      return {};
    }
    runner_options run;
    run.threads = options_.threads;
    run.cpus = options_.cpus;
    run.cancel = options_.cancel;
    run.first_call_seconds = options_.load_seconds;
    if (built_.kept && built_.kept->runner && built_.kept->runner->usable()) {
      runner_ = std::move(built_.kept->runner); // handed back when it passes
    } else {
      if (built_.kept) built_.kept->runner.reset();
      if (built_.kept && built_.kept->failure) return blame(verdict_stage::load, *built_.kept->failure, "");
      auto runner = runner_process::start(built_, ref_, run);
      if (!runner && runner.error().code == ec::timeout && in_python(built_.language)) { // slow is not wrong
        stop(verdict_stage::not_established, runner.error().message + ": it may be slow to load, which is a limit of ours");
        result_.why_not = doubt::our_limit;
        return {};
      }
      if (!runner) return blame(verdict_stage::load, runner.error(), "");
      runner_ = std::make_shared<runner_process>(std::move(*runner));
    }
    result_.stage = verdict_stage::run;
    previous_.assign(static_cast<size_t>(ref_.slots()), 0);

    const auto slots = static_cast<size_t>(std::min(ref_.slots(), sets_at_once)); // the same memory gets other contents
    for (size_t first = 0; first < sets_.size() && !stopped_; first += slots)
      if (auto done = group(first, std::min(slots, sets_.size() - first)); !done) return done;
    if (stopped_) return {};
    result_.stage = verdict_stage::passed;
    if (built_.kept) built_.kept->runner = runner_;
    result_.reason = "right on " + std::to_string(sets_.size()) + " input sets";
    result_.checked.push_back("outputs filled with garbage before each call");
    result_.checked.push_back("same memory with other contents gives other outputs");
    result_.checked.push_back(options_.threads == 1 && task_.deterministic && !in_python(built_.language) ? "two runs give the same bits" : "two runs agree");
    result_.checked.push_back("inputs and parameters unchanged");
    return {};
  }

  /// Fills the first `count` slots with the sets from `first` on, and runs the candidate on them twice.
  expected<void> group(size_t first, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (options_.cancel && options_.cancel->load()) return fail(ec::interrupted, "the verification was interrupted");
      const auto& set = sets_[first + i];
      const auto seed = seed_of_set(first_seed_, static_cast<int>(set.kind), set.number);
      if (auto made = ref_.make_inputs(static_cast<int>(i), seed, set.kind, options_.keep_sets); !made) return fail(made.error());
      checker_.refresh(static_cast<int>(i), input_set_name(set.kind, set.number), set.kind);
    }
    if (timeout_ == 0)
      if (auto timed = choose_timeout(); !timed) return timed;
    const int slots = static_cast<int>(count);
    const auto& in = ref_.inputs_layout();
    const size_t input_bytes = in.slot_bytes * count;
    const uint64_t inputs_before = fingerprint(ref_.inputs_data(), input_bytes), parameters_before = parameters_.print();

    // First run: one call at a time, so that a crash or a hang names its input set.
    runner_->poison();
    auto before = probe_fill(ref_.outputs_layout(), runner_->outputs());
    for (int slot = 0; slot < slots && !stopped_; ++slot)
      if (auto called = runner_->call(slot, 1, 1, timeout_); !called)
        if (auto blamed = blame(verdict_stage::run, called.error(), checker_.input_set(slot)); !blamed) return blamed;
    if (stopped_) return {};
    if (leaves_work_to_torch()) return {};
    if (!read_outputs(slots, before, {})) return {};
    const auto prints = fingerprints(slots);

    // Second run: other garbage beneath, all calls in one batch, as timing does it. On a device each slot twice: nobody puts the inputs
    // back in between, so that who writes to them computes on its own traces, whatever its process says of them.
    const int calls = !in_python(built_.language) ? slots : 2 * slots;
    fill_outputs(ref_.outputs_layout(), runner_->outputs(), 0, slots);
    before = probe_fill(ref_.outputs_layout(), runner_->outputs());
    if (auto called = runner_->call(0, slots, calls, timeout_ * calls); !called)
      return blame(verdict_stage::run, called.error(), "second run on the same inputs");
    if (leaves_work_to_torch()) return {};
    if (!read_outputs(slots, before, prints)) return {};
    const auto again = fingerprints(slots);
    for (int slot = 0; slot < slots && options_.threads == 1 && task_.deterministic && !in_python(built_.language); ++slot)
      if (again[static_cast<size_t>(slot)] != prints[static_cast<size_t>(slot)]) {
        stop(verdict_stage::compare, "two runs on the same inputs gave different outputs (" + checker_.input_set(slot) +
                                         "), both within tolerance: it reads memory that it did not write, or keeps state between calls");
        break;
      }
    runner_->thaw();
    for (int slot = 0; slot < slots; ++slot) previous_[static_cast<size_t>(slot)] = prints[static_cast<size_t>(slot)];
    if (stopped_) return {};
    if (fingerprint(ref_.inputs_data(), input_bytes) != inputs_before) stop(verdict_stage::audit, "it changed its inputs");
    else if (parameters_.print() != parameters_before) stop(verdict_stage::audit, "it changed the parameters");
    else
      for (int slot = 0; slot < slots; ++slot) result_.checked.push_back(checker_.input_set(slot));
    return {};
  }

  /// Notes what the latest calls left to Torch; true when that ended the verification.
  bool leaves_work_to_torch() {
    result_.torch_operators = runner_->torch_operators();
    if (result_.torch_operators.empty() || options_.allow_torch) return false;
    stop(verdict_stage::audit, "it leaves " + join(result_.torch_operators, ", ") + " to Torch: a kernel was asked for (--allow-torch accepts it)");
    return true;
  }

  std::vector<uint64_t> fingerprints(int slots) const {
    std::vector<uint64_t> prints;
    for (int slot = 0; slot < slots; ++slot) prints.push_back(slot_fingerprint(ref_.outputs_layout(), runner_->outputs(), slot));
    return prints;
  }

  /// Freezes the candidate and compares; leaves it frozen. False when that ended the verification. `right`: fingerprints
  /// of outputs that were found right in the first run, empty in that run.
  bool read_outputs(int slots, const fill_probe& before, const std::vector<uint64_t>& right) {
    const bool first_run = right.empty();
    if (!runner_->freeze()) {
      stop(verdict_stage::run, "the candidate " + runner_->end() + " before its outputs could be read");
      return false;
    }
    if (first_run)
      if (const auto overrun = runner_->overrun(); !overrun.empty()) {
        stop(verdict_stage::run, "the candidate " + overrun);
        return false;
      }
    bool stale = false;
    for (int slot = 0; slot < slots; ++slot) {
      if (!first_run && slot_fingerprint(ref_.outputs_layout(), runner_->outputs(), slot) == right[static_cast<size_t>(slot)]) continue;
      auto outcome = checker_.check(slot, runner_->outputs(), before);
      result_.worst_error = std::max(result_.worst_error, outcome.worst);
      const auto last = previous_[static_cast<size_t>(slot)];
      if (!outcome.right() && last != 0 && slot_fingerprint(ref_.outputs_layout(), runner_->outputs(), slot) == last) stale = true;
      for (auto& m : outcome.mismatches) result_.mismatches.push_back(std::move(m));
    }
    if (result_.mismatches.empty()) return true;
    keep_worst(result_.mismatches);
    auto reason = sentence(result_.mismatches.front());
    if (stale) reason += "; that is its answer to the inputs which lay at the same address before: it caches by address";
    else if (!first_run) reason += "; its first run on the same inputs was right";
    stop(verdict_stage::compare, std::move(reason));
    return false;
  }

  expected<void> choose_timeout() {
    timeout_ = options_.call_timeout_seconds;
    if (timeout_ > 0) return {};
    const auto limit = limit_of_call(ref_, !in_python(built_.language) ? shortest_timeout : shortest_device_timeout);
    if (!limit) return fail(limit.error());
    timeout_ = limit->seconds;
    return {};
  }

  const task& task_;
  const task_audit& audit_;
  reference& ref_;
  const build_output& built_;
  const verify_options& options_;
  uint64_t first_seed_;
  slot_checker checker_;
  parameter_view parameters_;
  std::shared_ptr<runner_process> runner_;
  std::vector<input_set> sets_;
  std::vector<uint64_t> previous_; ///< fingerprints of each slot's outputs in the group before; 0 = none
  double timeout_ = 0;
  bool stopped_ = false;
  verdict result_;
};

} // namespace

expected<verdict> verify(const task& t, const task_audit& audit, reference& ref, const build_output& built,
                         const verify_options& options) {
  return verification(t, audit, ref, built, options).run();
}

} // namespace pragma
