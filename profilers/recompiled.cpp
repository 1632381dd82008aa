// Differential profiling of the code itself: the candidate's source, compiled once more with a leave that its author did not give, beside the binary that was measured. What the
// compiler then makes better by itself is what its finding promises, measured instead of modelled (decision 0084). What it does not make better says nothing: it may not know how.
// Nobody looks at the results, which may differ by what the leave allows.
#include "base/text.hpp"
#include "profilers/running.hpp"

#include <algorithm>
#include <cmath>

namespace pragma {

namespace {

constexpr double longest_build = 4;       ///< seconds: another three of them would be felt
constexpr double longest_batch = 3;       ///< seconds of what takes milliseconds: code that waits for a sum to settle may never end under -ffast-math
constexpr double waits_for_itself = 1.3;  ///< a trip's cycles over what the units need
constexpr double mostly_scalar = 50;      ///< % of the hot loop's arithmetic that is packed, at the most

struct recompilation {
  const char* name;                       ///< of the metric
  std::vector<std::string> flags;         ///< behind the candidate's own
  bool single = false;                    ///< `double` in the source means float
  std::string changed;                    ///< for the note
};

/// What the hot loop may be lacking, by what it looks like.
std::vector<recompilation> recompilations_for(const collect_context& context, const loop_cost& hot) {
  std::vector<recompilation> all;
  const bool scalar = hot.calls > 0 || (hot.vector_share >= 0 && hot.vector_share < mostly_scalar);
  const bool narrow = hot.vector_share >= mostly_scalar && 2 * hot.vector_bits <= context.facts.simd_bits;
  const bool chained = hot.chains > 0 && hot.cycles > waits_for_itself * hot.least_cycles;
  if (scalar || narrow || chained) {
    recompilation freed{"experiment.freed_time", {"-O3", "-ftree-vectorize", "-ffast-math", "-fno-reciprocal-math"}, false, "compiled with leave to reorder sums, and to take full vectors"};
#if defined(__x86_64__)
    if (context.facts.simd_bits > 128) freed.flags.push_back("-mprefer-vector-width=" + std::to_string(context.facts.simd_bits));
#endif
    all.push_back(std::move(freed));
  }
  if (hot.widened > 0)
    all.push_back({"experiment.single_time", context.the_candidate.compiler == "gcc" ? std::vector<std::string>{"-fsingle-precision-constant"} : std::vector<std::string>{}, true,
                   "compiled with float in place of double"});
#if defined(__x86_64__) // elsewhere the compilers have other words for it
  if (hot.divides > 0)
    all.push_back({"experiment.reciprocal_time", {"-funsafe-math-optimizations", "-fno-associative-math", "-ffinite-math-only", context.the_candidate.compiler == "gcc" ? "-mrecip" : "-mrecip=all"}, false,
                   "compiled with leave to multiply by estimates of reciprocals"});
#endif
  return all;
}

} // namespace

std::string in_single_precision(const std::string& source) {
  constexpr const char* word = "#define double float\n";
  const auto last = source.rfind("\n#include");
  if (last == std::string::npos) return (source.starts_with("#include") ? source.substr(0, source.find('\n') + 1) + word + source.substr(source.find('\n') + 1) : word + source);
  const auto end = source.find('\n', last + 1);
  return end == std::string::npos ? source : source.substr(0, end + 1) + word + source.substr(end + 1);
}

void recompiled_metrics(const collect_context& context, const loop_cost& hot, double build_seconds, source_result& out) {
  const auto all = recompilations_for(context, hot);
  if (all.empty() || !(context.time.candidate_seconds > 0) || context.time.candidate_seconds > longest_tried_call) return;
  if (build_seconds > longest_build) return out.missing.push_back("experiments: compiling takes " + format_seconds(build_seconds) + ": too long to try other flags");
  auto usual = start_running(context);
  if (!usual) return out.missing.push_back("experiments: cannot run the candidate: " + usual.error().message);
  for (const auto& one : all) {
    if (context.options.cancel && context.options.cancel->load()) return;
    const auto leave_out = [&](const std::string& why) { out.missing.push_back("experiments: " + std::string(one.name).substr(std::string("experiment.").size()) + ": " + why); };
    auto code = context.the_candidate;
    if (one.single) code.source = in_single_precision(code.source);
    build_options how;
    how.extra_flags = one.flags;
    how.cpu_seconds = 2 * longest_build; // a source may ask what it is compiled with
    how.cancel = context.options.cancel;
    const auto built = build_candidate(code, how);
    if (!built) {
      leave_out("it does not compile that way");
      continue;
    }
    if (built->binary_hash == context.built.binary_hash) { // all of it was allowed before
      out.metrics.push_back({one.name, 100, "%", "experiment", provenance::measured, one.changed + ": the same machine code"});
      continue;
    }
    const collect_context same{context.the_task, code, *built, context.ref, context.time, context.facts, context.options, context.watch};
    auto changed = start_running(same, {}, working_team::as_measured, longest_batch);
    const auto times = changed ? in_turns(context, *usual, *changed, settled_experiment) : fail(changed.error());
    if (times) out.metrics.push_back(experiment_metric(one.name, *times, one.changed));
    else leave_out(times.error().message);
    if (!times && times.error().code == ec::candidate_failed) return;
  }
}

} // namespace pragma
