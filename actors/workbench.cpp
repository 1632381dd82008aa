#include "actors/workbench.hpp"
#include "actors/as_called.hpp"
#include "actors/machine_lease.hpp"

#include "base/language.hpp"
#include "base/text.hpp"
#include "diagnosis/rules.hpp"
#include "execution/contention.hpp"
#include "execution/triton_cache.hpp"
#include "timing/device_timing.hpp"
#include "kernels/kernel_names.hpp"
#include "kernels/parts.hpp"
#include "kernels/seeds.hpp"
#include "profilers/collect.hpp"
#include "profilers/hardware.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;
double since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

constexpr size_t kept_builds = 6;      ///< the best, the current and a few before
/// Part of max_timing_seconds for an attempt of a search: a rough figure is enough, since one that is close to the best is compared with it side by side.
constexpr double search_timing_share = 0.5;
/// A profiler may see a call's kernels take so much longer than we timed it, as it flushes the caches before each kernel and lets no two overlap;
/// beyond that the candidate's process told us wrong times.
constexpr double profiler_factor = 3, profiler_slack = 10e-6;
constexpr int confirm_waits = 3;       ///< pauses for a busy machine before a winner is timed all the same: this is the figure that is reported

/// Where the profiler saw no kernel of a call, or was cut off: asks it once more, for the names of kernels alone. The result is a reason to refuse the
/// candidate, which hides its kernels; empty where there is none.
expected<std::string> see_kernels_again(const build_output& built, reference& ref, const std::vector<json>& manifests, const std::atomic<bool>* cancel, profile& p) {
  if (!p.kernels.empty() && !p.cut) return std::string();
  if (p.kernels.empty()) { // the tool may see no kernels of anybody here (no right to read counters): then nobody is accused
    auto works = sees_calls(built, ref, manifests, cancel);
    if (!works) return fail(works.error());
    if (!*works) return std::string();
  }
  auto seen = see_call(built, ref, manifests, cancel);
  if (!seen) return fail(seen.error());
  if (seen->kernels.empty() && p.kernels.empty())
    return "a profiler that sees another module's kernels here did not see its own (" + join(seen->missing, "; ") + "): this measurement is not believed";
  if (seen->kernels.empty()) return std::string();
  p.kernels = std::move(seen->kernels);
  p.cut = seen->cut;
  p.device_seconds = seen->device_seconds;
  return std::string();
}

/// What the profiler saw from outside counts for more than what the candidate's process said of its time and of Torch's operators.
void check_against_profiler(const candidate& c, bool allow_torch, const std::string& hidden, measurement& result) {
  const auto refuse = [&](std::string reason) {
    result.verdict.stage = verdict_stage::audit;
    result.verdict.reason = std::move(reason);
  };
  const auto& p = result.profile;
  if (!hidden.empty()) return refuse(hidden);
  if (p.kernels.empty()) return;
  if (p.device_seconds > profiler_factor * p.time.candidate_seconds + profiler_slack)
    return refuse("the profiler saw its kernels run for " + format_seconds(p.device_seconds) + " a call, its process said " +
                  format_seconds(p.time.candidate_seconds) + ": this measurement is not believed");
  if (allow_torch) return;
  if (p.cut)
    return refuse("it launches more than " + std::to_string(most_launches) + " kernels in a call, and whose those after are no profiler was asked (--allow-torch accepts it)");
  if (const auto foreign = foreign_kernels(c.source, p.kernels); !foreign.empty())
    return refuse("it ran " + join(foreign, ", ") + ", which " + (foreign.size() == 1 ? "is no function" : "are no functions") +
                  " of the module: a library did that work (--allow-torch accepts it)");
  result.verdict.checked.push_back("the profiler saw kernels of the module only");
}

/// The next request gets a process of its own.
void end_kept_process(const build_output& built) {
  if (!built.kept) return;
  built.kept->runner.reset();
  built.kept->failure.reset();
}

void by_way_of_the_reference(const measure_request& request, measurement& result) {
  if (request.best_speedup.value <= 0) return;
  const auto& s = result.profile.time.speedup;
  result.against_best = result.profile.time;
  result.against_best.baseline = "best, by way of the reference";
  result.against_best.speedup = {s.value / request.best_speedup.value, s.low / request.best_speedup.high, s.high / request.best_speedup.low};
}

/// The verdict that a failed build is; nothing where the machine failed, and not the candidate. A compiler that is not here is a choice that the
/// candidate made, which another attempt can make otherwise.
std::optional<verdict> verdict_of_build(const error& e) {
  switch (e.code) {
    case ec::busy: return not_established(e);
    case ec::build_failed:
    case ec::no_compiler:
    case ec::invalid_argument:
    case ec::candidate_failed:
    case ec::timeout:
    case ec::limit_exceeded: break;
    default: return std::nullopt;
  }
  verdict refused;
  refused.stage = verdict_stage::build;
  refused.reason = e.message;
  refused.log = e.hint;
  return refused;
}

/// A check for which the machine had no process has established nothing.
expected<verdict> or_not_established(expected<verdict> checked) {
  if (!checked && checked.error().code == ec::busy) return not_established(checked.error());
  return checked;
}

} // namespace

std::string too_many_threads(int threads, int processors) {
  if (processors <= 0 || threads <= processors) return {};
  return std::to_string(threads) + " threads take turns on " + std::to_string(processors) + (processors == 1 ? " processor" : " processors") +
         ": what is measured is the scheduler, and --threads " + std::to_string(processors) + " is the most that makes sense here";
}

expected<loaded_task> workbench::load(const load_request& request) {
  const std::lock_guard lock(mutex_);
  const auto start = clock::now();
  reference_.reset();
  builds_.clear();
  next_.reset();
  request_ = request;
  reference_options options;
  options.threads = request.threads;
  options.device = request.where();
  options.baseline = request.baseline;
  torch_compiled_.reset();
  if (request.baseline != "eager") {
    auto folder = temp_dir::create("pragma-torch-compiled-");
    if (!folder) return fail(folder.error());
    torch_compiled_.emplace(std::move(*folder));
    options.torch_compiled = torch_compiled_->path();
  }
  options.tf32 = request.tf32;
  if (!request.where().on_device()) options.cpus = measuring_cpus(request.threads);
  options.cancel = cancel_;
  auto started = reference::start(options);
  if (!started) return fail(started.error());
  auto ref = std::make_unique<reference>(std::move(*started));
  auto loaded = ref->load(request.path);
  if (!loaded) return fail(loaded.error());

  loaded_task result;
  result.task = std::move(*loaded);
  search_checks_ = {};
  search_checks_.seeds = request.seeds;
  search_checks_.threads = request.threads;
  search_checks_.seed = seed_source().next() | 1;
  search_checks_.keep_sets = true;
  search_checks_.allow_torch = request.allow_torch;
  search_checks_.cancel = cancel_;
  auto audit = audit_task(result.task, *ref, search_checks_);
  if (!audit) return fail(audit.error());
  audit_ = std::move(*audit);
  result.notes = audit_.notes;
  if (auto crowded = too_many_threads(request.threads, static_cast<int>(std::thread::hardware_concurrency())); !crowded.empty() && !request.where().on_device())
    result.notes.push_back(std::move(crowded));
  result.unverifiable = audit_.passing_nulls;
  result.limits.backend = request.backend; // also where nothing can be measured: it says in which language the Coder writes
  auto limits = limits_of(*ref, result.task);
  if (limits) result.limits = std::move(*limits);
  else result.notes.push_back("no roofline: " + limits.error().message);
  result.python = ref->python().executable + " " + ref->python().version;
  result.torch = ref->python().torch;
  result.baseline = ref->baseline_name();
  request_.baseline = ref->baseline_way(); // of the best: the same one in all processes
  result.cpu = result.limits.cpu;
  for (const auto& [name, version] : compilers()) result.compilers.push_back(version);
  result.seconds = since(start);
  reference_ = std::move(ref);
  loaded_ = result;
  limits_again_ = false;
  prepare_next(); // of the first one
  return result;
}

expected<void> workbench::ensure_loaded() {
  // A reference that died (it goes with the thread that started it, when an agent is restarted) is brought back.
  if (reference_ && reference_->run(0)) return {};
  if (request_.path.empty()) return fail(ec::internal, "no task is loaded");
  const auto request = request_;
  if (auto again = load(request); !again) return fail(again.error());
  return {};
}

expected<std::shared_ptr<build_output>> workbench::built(const candidate& c, bool more_follow) {
  const auto id = c.id();
  for (auto it = builds_.begin(); it != builds_.end(); ++it)
    if (it->first == id) {
      builds_.splice(builds_.begin(), builds_, it);
      return builds_.front().second;
    }
  build_options options;
  options.device = request_.where();
  options.tf32 = request_.tf32;
  options.cancel = cancel_;
  const auto shell = std::exchange(next_, std::nullopt);
  if (shell && in_python(c.language)) options.shell = &*shell;
  auto output = build_candidate(c, options);
  if (more_follow && more_follow_) prepare_next();
  if (!output) return fail(output.error());
  builds_.emplace_front(id, std::make_shared<build_output>(std::move(*output)));
  if (builds_.size() > kept_builds) builds_.pop_back();
  return builds_.front().second;
}

timing_options workbench::timing_for(const verify_options& checks) {
  timing_options options;
  options.input_seed = checks.seed;
  options.keep_sets = checks.keep_sets;
  options.threads = request_.threads;
  options.cancel = cancel_;
  options.beyond_limits = beyond_limits();
  return options;
}

device_choice workbench::where() {
  const std::lock_guard lock(mutex_);
  return request_.where();
}

expected<verdict> workbench::verify(const candidate& c) {
  // Launching kernels takes the processor: a check on a device waits for who measures that. One in C++ is noticed by its timing.
  std::optional<machine_lease> lease;
  if (const auto device = where(); device.on_device()) lease.emplace(device, turns_, cancel_);
  const std::lock_guard lock(mutex_);
  if (auto ready = ensure_loaded(); !ready) return fail(ready.error());
  if (c.language == parts_language) return verify_parts(c);
  const auto start = clock::now();
  auto binary = built(c, true);
  if (!binary) {
    auto refused = verdict_of_build(binary.error());
    if (!refused) return fail(binary.error());
    refused->build_seconds = since(start);
    return std::move(*refused);
  }
  const double build_seconds = since(start);
  warm(**binary);
  auto result = or_not_established(pragma::verify(loaded_.task, audit_, *reference_, **binary, search_checks_));
  if (!result) {
    reference_.reset(); // the reference or the machine failed: the next request starts it afresh
    return fail(result.error());
  }
  result->build_seconds = build_seconds;
  result->verify_seconds = since(start) - build_seconds;
  return result;
}

void workbench::prepare_next() {
  if (!request_.where().on_device() || !reference_) return;
  build_options options;
  options.device = request_.where();
  options.tf32 = request_.tf32;
  auto shell = python_shell(options);
  if (!shell) return; // whoever builds the next one sees why
  runner_options run;
  run.threads = request_.threads;
  run.cancel = cancel_;
  if (auto launched = runner_process::prepare(*shell, *reference_, run)) {
    shell->kept->prepared = std::make_shared<runner_process>(std::move(*launched));
    next_ = std::move(*shell);
  }
}

void workbench::warm(const build_output& built, const build_output* beside) {
  if (!in_python(built.language)) return;
  const auto options = timing_for(search_checks_);
  const auto running = keep_running(built, *reference_, options);
  // Any other failure is not lost: whoever needs the process has the verdict.
  const bool full = !running && (running.error().code == ec::tool_failed || running.error().why == cause::out_of_memory);
  if (!full || release_others(&built, beside) == 0) return;
  end_kept_process(built);
  (void)keep_running(built, *reference_, options);
}

int workbench::release_others(const build_output* one, const build_output* other) {
  int released = next_ ? 1 : 0;
  next_.reset();
  for (const auto& [id, built] : builds_) {
    if (built.get() == one || built.get() == other || !built->kept || !built->kept->runner) continue;
    built->kept->runner.reset();
    ++released;
  }
  return released;
}

void workbench::release_processes(const std::string& best) {
  for (size_t i = 1; i < builds_.size(); ++i) { // not of the latest
    auto it = std::next(builds_.begin(), static_cast<std::ptrdiff_t>(i));
    if (it->first != best && it->second->kept) it->second->kept->runner.reset();
  }
}

expected<void> workbench::compare(const measure_request& request, const build_output& challenger, measurement& result) {
  auto champion = built(request.best, true);
  if (!champion) return fail(champion.error());
  expected<side_by_side> both;
  auto options = timing_for(search_checks_);
  // Twice, the second time each in a fresh process: what one of them died of (memory that others used up, a machine that was busy when it
  // was started again) may be nobody's fault.
  for (int attempt = 0; attempt < 2; ++attempt) {
    warm(challenger, champion->get());
    warm(**champion, &challenger); // after it: where only one finds room, the challenger has been timed
    both = compare_candidates(loaded_.task, audit_, *reference_, challenger, **champion, options, request.how_much ? comparison_goal::how_much : comparison_goal::is_first_faster);
    if (!both || both->failed == failed_side::none) break;
    end_kept_process(challenger);
    end_kept_process(**champion);
  }
  if (!both) return fail(both.error());
  // The memory that it was timed with is there no more: the best's process has it.
  if (both->failed == failed_side::challenger && both->result.why_not == doubt::out_of_memory) both->failed = failed_side::champion;
  if (both->failed == failed_side::challenger) {
    const auto& v = both->result;
    result.verdict.stage = v.stage;
    result.verdict.why_not = v.why_not;
    result.verdict.reason = v.reason + " (beside the best, twice)";
    result.verdict.mismatches = v.mismatches;
    return {};
  }
  if (both->failed == failed_side::champion || !both->result.established()) {
    by_way_of_the_reference(request, result);
    result.against_best.note = "the two could not be compared side by side: " + both->result.reason;
    return {};
  }
  result.against_best = std::move(both->time);
  result.compared = true;
  return {};
}

expected<void> workbench::time_best_again(const measure_request& request, measurement& result) {
  auto champion = built(request.best, true);
  if (!champion) return fail(champion.error());
  verdict known;
  known.stage = verdict_stage::passed;
  auto options = timing_for(search_checks_);
  options.waits = request.waits;
  auto again = time_candidate(loaded_.task, audit_, *reference_, **champion, known, options);
  if (!again) return fail(again.error());
  if (again->result.passed() && !again->time.contended) result.best_again = std::move(again->time);
  return {};
}

expected<measurement> workbench::measure(const measure_request& request) {
  const machine_lease lease(where(), turns_, cancel_);
  const std::lock_guard lock(mutex_);
  if (auto ready = ensure_loaded(); !ready) return fail(ready.error());
  if (request.candidate.language == parts_language) return measure_parts(request);
  const auto start = clock::now();
  auto binary = built(request.candidate, true);
  if (!binary) return fail(binary.error());
  measurement result;
  auto search_timing = timing_for(search_checks_);
  search_timing.max_seconds *= search_timing_share;
  search_timing.waits = request.waits;
  if (request.how_much) search_timing.processes = fresh_processes;
  warm(**binary);
  auto timed = time_candidate(loaded_.task, audit_, *reference_, **binary, request.verdict, search_timing);
  if (!timed) return fail(timed.error());
  result.verdict = std::move(timed->result);
  result.profile.candidate = request.candidate.id();
  result.profile.binary = (*binary)->binary_hash;
  result.profile.device = loaded_.cpu;
  result.profile.backend = request_.backend;
  result.profile.time = timed->time;
  const auto& t = loaded_.task;
  // Side by side with the best only where it could be better: far slower needs no second measurement.
  if (request.has_best && request.best_contended)
    if (auto done = time_best_again(request, result); !done) return fail(done.error());
  const auto& best_speedup = result.best_again.speedup.value > 0 ? result.best_again.speedup : request.best_speedup;
  const bool contended = timed->time.contended || (request.best_contended && result.best_again.speedup.value <= 0);
  if (result.verdict.passed() && request.has_best && (contended || timed->time.speedup.high >= 0.9 * best_speedup.low)) {
    if (auto done = compare(request, **binary, result); !done) return fail(done.error());
  } else if (request.has_best) {
    by_way_of_the_reference(request, result);
  }
  result.time_seconds = since(start);
  if (limits_again_) result.limits = loaded_.limits;
  release_processes(request.has_best ? request.best.id() : std::string());
  if (result.verdict.passed() && request.profile) {
    const auto profile_start = clock::now();
    collect_options options;
    options.threads = request_.threads;
    options.extra_metrics = request.extra_metrics;
    for (const auto& name : request.asked_metrics)
      if (check_metric_names(request_.where(), {name}, request_.manifests)) options.extra_metrics.push_back(name);
    options.max_seconds = request.profile_seconds;
    options.allow_torch = request_.allow_torch;
    options.manifests = request_.manifests;
    options.cancel = cancel_;
    auto profiled = collect(t, request.candidate, **binary, *reference_, timed->time, &loaded_.limits, options);
    if (!profiled) return fail(profiled.error());
    result.profile = std::move(*profiled);
    result.profile_seconds = since(profile_start);
    if (in_python(request.candidate.language)) {
      auto hidden = see_kernels_again(**binary, *reference_, request_.manifests, cancel_, result.profile);
      if (!hidden) return fail(hidden.error());
      check_against_profiler(request.candidate, request_.allow_torch, *hidden, result);
    }
  }
  return result;
}

expected<confirmation> workbench::confirm(const candidate& c) {
  const machine_lease lease(where(), turns_, cancel_);
  const std::lock_guard lock(mutex_);
  if (auto ready = ensure_loaded(); !ready) return fail(ready.error());
  if (c.language == parts_language) return confirm_parts(c, most_called);
  const auto before = std::find_if(builds_.begin(), builds_.end(), [id = c.id()](const auto& one) { return one.first == id; });
  auto searched = before == builds_.end() ? nullptr : before->second;
  builds_.clear(); // a binary of its own, not the one that was searched with
  auto binary = built(c, false); // nobody's start disturbs the figure that is reported
  if (!binary) return fail(binary.error());
  if (searched && in_python(c.language) && !searched->scratch.empty()) { // decisions/0065
    end_kept_process(*searched);
    take_compiled(searched->scratch / "triton", (*binary)->scratch / "triton");
  }
  searched.reset();
  // Unseen sets of the task's own inputs, for this verdict and for the timing: the other kinds were judged in the search.
  warm(**binary);
  reference_->forget_sets();
  auto checks = search_checks_;
  checks.seed = seed_source().next() | 1;
  checks.own_inputs_only = true;
  auto checked = or_not_established(pragma::verify(loaded_.task, audit_, *reference_, **binary, checks));
  if (!checked) return fail(checked.error());
  confirmation result;
  result.verdict = std::move(*checked);
  if (!result.verdict.passed()) return result;
  auto options = timing_for(checks);
  if (request_.part) {
    options.max_seconds *= search_timing_share; // no figure of its own is reported
  } else {
    options.waits = confirm_waits;
    options.processes = fresh_processes;
  }
  auto timed = time_candidate(loaded_.task, audit_, *reference_, **binary, result.verdict, options);
  if (!timed) return fail(timed.error());
  result.verdict = std::move(timed->result);
  result.time = result.kernel = std::move(timed->time);
  if (limits_again_) result.limits = loaded_.limits;
  if (!result.verdict.passed()) return result;
  const auto leave_device = [&] {
    if (!request_.where().on_device()) return;
    reference_.reset(); // a profiler leaves its hooks in the driver: nothing is timed in that process any more
    end_kept_process(**binary);
    next_.reset(); // the drop-in has the device's memory for itself: a program's
  };
  if (!request_.part)
    if (auto operators = reference_->operators()) result.torch = std::move(*operators); // for the story: a run does without
  leave_device();
  if (!request_.call_drop_in) {
    result.not_called = "it was not asked for (--no-check)";
    return result;
  }
  auto winner = write_winner(loaded_.task, c, request_, cancel_, (*binary)->scratch);
  if (!winner) return fail(winner.error());
  if (torch_compiled_) winner->options.torch_compiled = torch_compiled_->path();
  const auto kernel_again = [&]() -> expected<timing> {
    if (auto ready = ensure_loaded(); !ready) return fail(ready.error());
    auto again = time_candidate(loaded_.task, audit_, *reference_, **binary, result.verdict, options);
    leave_device();
    if (!again) return fail(again.error());
    return again->result.passed() ? again->time : result.kernel;
  };
  if (auto called = call_drop_in(*winner, loaded_.task, request_, loaded_.torch, result, most_called, kernel_again); !called) return fail(called.error());
  return result;
}

} // namespace pragma
