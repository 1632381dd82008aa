#include "actors/examine.hpp"

#include "base/text.hpp"
#include "verification/verify.hpp"

namespace pragma {

diagnosis_input diagnosis_of(const loaded_task& loaded, const load_request& load, const profile& current, const profile* best, const std::string& source,
                             const std::vector<std::string>& flags) {
  diagnosis_input input;
  input.current = &current;
  input.best = best;
  input.limits = loaded.limits.peak_gflops > 0 ? &loaded.limits : nullptr;
  input.source = source;
  input.flags = flags;
  static_cast<roofline_work&>(input) = work_of(loaded.task, load.tf32);
  input.threads = load.threads;
  return input;
}

json document(const examination& e) {
  json all = {{"task", e.task}, {"device", e.device}, {"baseline", e.baseline}, {"candidate", e.candidate}, {"verdict", e.verdict}};
  if (!e.measured) return all;
  all["profile"] = e.profile;
  all["findings"] = e.findings;
  if (e.table.seconds > 0) all["time_table"] = e.table;
  if (e.compared) all["against"] = {{"candidate", e.against}, {"timing", e.side_by_side}};
  return all;
}

expected<loaded_task> load_checked(workbench& bench, const load_request& load) {
  auto loaded = bench.load(load);
  if (loaded && !loaded->unverifiable.empty())
    return fail(unverifiable_task(loaded->unverifiable));
  return loaded;
}

expected<examination> examine(workbench& bench, const loaded_task& loaded, const load_request& load, const examine_request& request,
                              const std::function<void(const std::string&)>& on_step) {
  const auto step = [&](const char* what) {
    if (on_step) on_step(what);
  };
  examination e;
  e.task = loaded.task.name;
  e.device = loaded.limits.cpu;
  e.baseline = loaded.baseline;
  e.candidate = request.candidate.id();
  e.language = request.candidate.language;
  step("building and verifying");
  auto checked = bench.verify(request.candidate);
  if (!checked) return fail(checked.error());
  e.verdict = std::move(*checked);
  if (!e.verdict.passed() || !request.measure) return e;

  measure_request wanted;
  wanted.candidate = request.candidate;
  wanted.verdict = e.verdict;
  wanted.waits = 1;
  wanted.how_much = true;
  wanted.profile = request.profile;
  wanted.profile_seconds = request.profile_seconds;
  wanted.extra_metrics = request.extra_metrics;
  if (request.against) {
    step("building and verifying the other one");
    auto right = bench.verify(*request.against);
    if (!right) return fail(right.error());
    if (!right->passed())
      return fail(ec::candidate_failed, request.against_name + " is not right: " + right->reason, "a time is only compared with that of a right kernel");
    wanted.has_best = true;
    wanted.best = *request.against;
    e.against = request.against->id();
  }
  step(request.profile ? "timing and profiling" : "timing");
  auto measured = bench.measure(wanted);
  if (!measured) return fail(measured.error());
  e.measured = true;
  e.verdict = std::move(measured->verdict);
  e.profile = std::move(measured->profile);
  e.compared = measured->compared;
  e.side_by_side = std::move(measured->against_best);
  if (e.verdict.passed() && request.profile) {
    e.with = {work_of(loaded.task, load.tf32), measured->limits.peak_gflops > 0 ? measured->limits : loaded.limits, request.candidate.source, request.candidate.flags, load.threads};
    const auto input = diagnosis_of(e.with, e.profile);
    e.findings = diagnose(input);
    e.table = table_of(input);
  }
  return e;
}

} // namespace pragma
