#include "profilers/collect.hpp"

#include "base/language.hpp"
#include "base/text.hpp"
#include "diagnosis/rules.hpp"
#include "profilers/running.hpp"
#include "profilers/sources.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace pragma {

namespace {

constexpr double telling_alias_share = 30; // percent
constexpr double static_reserve_seconds = 1; // kept back from callgrind for samples and llvm-mca
constexpr size_t most_loops = 4;
constexpr double least_loop_share = 0.02;

bool starts_with(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

/// Which sources a request needs: all of them by default, else only those with a name that was asked for.
class request {
public:
  explicit request(const collect_options& options) : all_(options.default_metrics) {
    wanted_.insert(options.extra_metrics.begin(), options.extra_metrics.end());
  }
  bool needs(const char* prefix) const {
    return all_ || std::any_of(wanted_.begin(), wanted_.end(), [&](const auto& name) { return starts_with(name, prefix); });
  }
  bool keeps(const std::string& name) const { return all_ || wanted_.count(name) != 0; }
  /// Names asked for that are perf's own and not in our default set.
  std::vector<std::string> perf_extras() const {
    const auto events = perf_events();
    std::vector<std::string> extras;
    for (const auto& name : wanted_)
      if (std::binary_search(events.begin(), events.end(), name)) extras.push_back(name);
    return extras;
  }

private:
  bool all_;
  std::set<std::string> wanted_;
};

/// The loops with most of the time, each with what llvm-mca says of it; the first one's figures are metrics as well. `sampled`: a loop without a
/// sample takes no time, whatever callgrind counted on its lines.
void add_loops(const collect_context& context, const request& wanted, const std::vector<formats::hot_loop>& loops, const std::optional<callgrind_run>& run, bool sampled,
               double limit, source_result& out) {
  const double total = run && run->counts.totals.count("Ir") ? run->counts.totals.at("Ir") : 0;
  for (size_t i = 0; i < loops.size() && i < most_loops; ++i) {
    const auto& loop = loops[i];
    const double part = sampled ? loop.share : total > 0 ? loop.weight / total : 0;
    if (i > 0 && part < least_loop_share) break;
    const auto modelled = model_loop(loop, context.facts, limit);
    if (!modelled) out.missing.push_back(modelled.error().message);
    out.loops.push_back(cost_of(loop, modelled ? &*modelled : nullptr, sampled ? 0 : total, run && run->same_code));
    if (i == 0 && modelled && wanted.needs("llvm_mca.")) mca_metrics(loop, *modelled, out);
  }
}

/// Remarks, disassembly, callgrind, llvm-mca: they all start from the candidate built again with -g.
void code_metrics(const collect_context& context, const request& wanted, source_result& out) {
  const bool recompiled = wanted.needs("experiment.freed_time") || wanted.needs("experiment.single_time") || wanted.needs("experiment.reciprocal_time");
  const bool loops_wanted = recompiled || wanted.needs("hot_loop.") || wanted.needs("llvm_mca.") || wanted.needs("samples.");
  if (!loops_wanted && !wanted.needs("callgrind.") && !wanted.needs("remarks.")) return;
  build_options build;
  build.extra_flags = {"-g"};
  build.want_remarks = true;
  build.cancel = context.options.cancel;
  auto with_lines = build_candidate(context.the_candidate, build);
  if (!with_lines) {
    out.missing.push_back("callgrind, llvm-mca, compiler remarks: the candidate does not build with -g: " + with_lines.error().message);
    return;
  }
  if (wanted.needs("remarks.")) remark_metrics(*with_lines, out);

  std::optional<callgrind_run> run;
  if (wanted.needs("callgrind.")) {
    if (context.options.progress) context.options.progress("callgrind");
    const stopwatch rest(context.watch.left() - static_reserve_seconds);
    const collect_context limited{context.the_task, context.the_candidate, context.built, context.ref, context.time, context.facts, context.options, rest};
    run = callgrind_metrics(limited, *with_lines, out);
  }
  if (!loops_wanted) return;
  if (context.options.progress) context.options.progress("hot loop");
  const double limit = std::max(2.0, context.watch.left());
  auto code = disassemble(*with_lines, limit);
  if (!code) {
    out.missing.push_back(code.error().message);
    return;
  }
  auto loops = find_loops(code->functions, run);
  const auto samples = take_samples(context, *with_lines, out);
  if (samples) attribute_samples(*samples, *code, loops, out);
  // A team of a fixed size does a part of its work where callgrind runs it with one thread.
  if (run && !run->same_code && !(context.options.threads > 1 && has_a_fixed_team(context.the_candidate.source))) {
    const auto twin = disassemble(run->twin, limit);
    if (twin) trips_by_twin(loops, twin->functions, run->counts.addresses);
    else out.missing.push_back("trips of loops: " + twin.error().message);
  }
  if (loops.empty()) {
    out.missing.push_back("llvm-mca: the candidate has no loop of its own (straight-line code, or all work is in library calls)");
    return;
  }
  if (wanted.needs("hot_loop.")) hot_loop_metrics(loops.front(), out);
  if (samples) address_metrics(*samples, loops.front(), out);
  const auto aliases = std::find_if(out.metrics.begin(), out.metrics.end(), [](const metric& m) { return m.name == "samples.alias_share"; });
  if (aliases != out.metrics.end() && aliases->value >= telling_alias_share && wanted.needs("experiment.")) apart_metric(context, out);
  add_loops(context, wanted, loops, run, samples.has_value(), limit, out);
  if (recompiled && !out.loops.empty()) recompiled_metrics(context, out.loops.front(), with_lines->seconds, out);
}

/// What needs the measured binary to run: software events and hardware counters.
void running_metrics(const collect_context& context, const request& wanted, source_result& out) {
  const auto obstacle = perf_obstacle(context.facts);
  const bool hardware = context.options.default_metrics || wanted.needs("topdown.") ||
                        std::any_of(context.options.extra_metrics.begin(), context.options.extra_metrics.end(),
                                    [](const std::string& name) { return name.find('.') == std::string::npos; });
  const auto extras = context.options.extra_metrics.empty() ? std::vector<std::string>() : wanted.perf_extras();
  if (hardware && !obstacle.empty()) out.missing.push_back(obstacle);
  const bool counters = hardware && obstacle.empty();
  if (!wanted.needs("software.") && !counters && extras.empty()) return;
  auto running = start_running(context);
  if (!running) {
    out.missing.push_back("software events: cannot run the candidate: " + running.error().message);
    return;
  }
  if (wanted.needs("software.")) software_metrics(context, *running, out);
  if (counters) {
    if (context.options.progress) context.options.progress("perf stat");
    perf_metrics(context, *running, out);
  }
  std::vector<std::string> open;
  for (const auto& name : extras)
    if (std::none_of(out.metrics.begin(), out.metrics.end(), [&](const metric& m) { return m.name == name; })) open.push_back(name);
  if (!open.empty()) perf_extra_metrics(context, open, *running, out);
}

/// The candidate under changed conditions: what other sources can only suspect.
void experiments(const collect_context& context, const request& wanted, source_result& out) {
  if (!wanted.needs("experiment.")) return;
  if (context.options.progress) context.options.progress("experiments");
  experiment_metrics(context, out);
}

bool cancelled(const collect_options& options) { return options.cancel && options.cancel->load(); }

} // namespace

void timer_metrics(const task& t, const timing& time, const machine_limits* limits, source_result& out, tf32_use tf32) {
  const double seconds = time.candidate_seconds;
  if (!(seconds > 0)) {
    out.missing.push_back("timer: no measured time");
    return;
  }
  const auto add = [&](const char* name, double value, const char* unit, const std::string& note) {
    if (std::isfinite(value)) out.metrics.push_back({name, value, unit, "timer", provenance::measured, note});
  };
  add("seconds_per_call", seconds, "s", "median, " + std::to_string(time.blocks_accepted) + " blocks, " + time.cache + (time.cache == "warm" ? " caches" : ""));
  if (t.bytes > 0) add("achieved_gbs", t.bytes / seconds / 1e9, "GB/s", "compulsory bytes / time");
  if (t.flops > 0) {
    add("achieved_gflops", t.flops / seconds / 1e9, "GFLOP/s", "the task's FLOPs / time");
    if (t.bytes > 0) add("arithmetic_intensity", t.flops / t.bytes, "FLOP/byte", "of the task, not of the code");
  }
  if (!limits) {
    out.missing.push_back("roofline: this machine's limits have not been measured (`pragma hardware`)");
    return;
  }
  const auto point = place_on_roofline(seconds, work_of(t, tf32), *limits);
  if (point.share > 0) add("roofline_share", 100 * point.share, "%", point.skips_work ? "as written: " + roofline_text(point) : "limit: " + point.limit);
}

expected<profile> collect(const task& t, const candidate& c, const build_output& built, reference& ref, const timing& time,
                          const machine_limits* limits, const collect_options& options) {
  if (in_python(built.language)) return collect_on_device(t, c, built, ref, time, limits, options);
  if (auto known = check_metric_names(device_choice{}, options.extra_metrics, options.manifests); !known) return fail(known.error());
  const auto facts = read_cpu_facts();
  if (!facts) return fail(facts.error());
  const stopwatch watch(options.max_seconds);
  const collect_context context{t, c, built, ref, time, *facts, options, watch};
  const request wanted(options);

  source_result found;
  timer_metrics(t, time, limits, found);
  if (options.progress) options.progress("software events");
  running_metrics(context, wanted, found);
  if (cancelled(options)) return fail(ec::interrupted, "profiling was interrupted");
  experiments(context, wanted, found);
  if (cancelled(options)) return fail(ec::interrupted, "profiling was interrupted");
  if (options.progress) options.progress("compiler remarks");
  code_metrics(context, wanted, found);
  if (cancelled(options)) return fail(ec::interrupted, "profiling was interrupted");
  manifest_metrics(context, found);
  if (cancelled(options)) return fail(ec::interrupted, "profiling was interrupted");

  profile p;
  p.candidate = c.id();
  p.binary = built.binary_hash;
  p.device = facts->model;
  p.time = time;
  for (auto& m : found.metrics)
    if (std::isfinite(m.value) && wanted.keeps(m.name)) p.metrics.push_back(std::move(m));
  p.remarks = std::move(found.remarks);
  p.notes = std::move(found.notes);
  p.told = std::move(found.told);
  p.loops = std::move(found.loops);
  for (auto& line : found.missing)
    if (std::find(p.missing.begin(), p.missing.end(), line) == p.missing.end()) p.missing.push_back(std::move(line));
  p.seconds = watch.elapsed();
  return p;
}

} // namespace pragma
