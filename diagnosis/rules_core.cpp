// Rules about the core: vectorisation, chains, ports, dividers, branches, the front end.
#include "base/text.hpp"
#include "diagnosis/core_model.hpp"
#include "diagnosis/rule_context.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::rule {

namespace {

constexpr double divide_cycles = 5;      ///< per vector division or square root, see the table of thresholds
constexpr double float_bits = 32;
constexpr double main_loop = 0.6;        ///< of the time
constexpr double mispredicted_part = 0.25; ///< of the time that goes with the values: what the branches have to explain of it
constexpr double telling_loop = 0.25;    ///< of the time: a loop that is not the hot one is worth a finding from here on
constexpr double scalar_first = 0.5;     ///< of the confidence: single elements fill the units by their number, and vectors come first
constexpr int several_chains = 4;       ///< side by side
constexpr double lacking_chains = 2.5;  ///< times what the units need: from here on several are too few
constexpr double brought_nothing = 0.3;    ///< of the confidence, where the compiler did what the finding advises

/// Source line where the time goes, 0 = unknown.
int hot_line(const facts& f) {
  for (const char* name : {"hot_loop.line", "callgrind.hottest_line"})
    if (auto line = f.value(name); line && *line > 0) return static_cast<int>(*line);
  return 0;
}

/// The compiler's reason at (or within two lines of) the hot line; a loop that also has a vectorised version does not count.
const remark* missed_remark(const facts& f) {
  const int hot = hot_line(f);
  const remark* any = nullptr;
  bool vectorized_somewhere = false;
  for (const auto& r : f.in.current->remarks) {
    if (r.kind == "vectorized") vectorized_somewhere = true;
    if (r.kind != "missed") continue;
    bool other_version = false;
    for (const auto& v : f.in.current->remarks) other_version = other_version || (v.kind == "vectorized" && v.line == r.line);
    if (other_version) continue;
    if (hot > 0 && std::abs(r.line - hot) <= 2) return &r;
    if (!any) any = &r;
  }
  return hot == 0 && !vectorized_somewhere ? any : nullptr;
}

double divide_share(const facts& f) {
  if (!f.in.current->loops.empty()) return 100 * core::divider_share(f.loops.front(), f.in);
  const auto divides = f.value("hot_loop.divides"), cycles = f.value("llvm_mca.cycles_per_iteration");
  return divides && cycles && *cycles > 0 ? std::min(1.0, *divides * divide_cycles / *cycles) * 100 : 0;
}

/// The loop in which dividing takes most of the call; null where a profile has no loops of its own, or none divides for long enough.
const loop_cost* dividing_loop(const facts& f) {
  const loop_cost* most = nullptr;
  const auto time = [&](const loop_cost& l) { return l.share * core::divider_share(l, f.in); };
  for (const auto& l : f.in.current->loops)
    if (l.divides > 0 && (&l == &f.in.current->loops.front() || l.share >= telling_loop) && (!most || time(l) > time(*most))) most = &l;
  return most;
}

double latency_ratio(const facts& f) {
  if (!f.in.current->loops.empty()) return f.loops.front().least_cycles > 0 ? f.loops.front().cycles / f.loops.front().least_cycles : 0;
  const auto cycles = f.value("llvm_mca.cycles_per_iteration"), least = f.value("llvm_mca.block_rthroughput");
  return cycles && least && *least > 0 ? *cycles / *least : 0;
}

/// Where the hot loop alone explains the measured time, the core is the limit for certain.
void add_core_share(const facts& f, evidence_for& e) {
  if (e.any() && f.core_share > 0)
    e.derived(f.cached ? "experiment.cached_time" : "seconds_per_call", f.cached ? 100 * *f.cached : f.seconds, f.cached ? "%" : "s", f.cached ? provenance::measured : provenance::static_analysis, severity(limit::core_share, f.core_share * 100),
              "with all data in L1 the loop would take " + format_number(std::min(100.0, f.core_share * 100), 0) + "% of the measured time");
}

/// The compiler itself makes it quicker where it has the leave to.
void add_freed(evidence_for& e) { e.metric("experiment.freed_time", limit::recompiled, "the same source takes less time where the compiler may reorder sums and take full vectors"); }

/// What was tried comes first: another build of the same source, with the time that it took.
std::vector<std::string> after_what_was_tried(const facts& f, const char* experiment, const char* advice, std::vector<std::string> remedies) {
  if (const auto left = f.left_by(experiment); left && severity(limit::recompiled, 100 * *left) > 0)
    remedies.insert(remedies.begin(), advice + (": tried here, " + format_seconds(f.seconds) + " become " + format_seconds(*left * f.seconds) + " (its results were not compared)."));
  return remedies;
}

constexpr const char* freed_advice = "Build the same source with -O3 -ffast-math and vectors of full width (-mprefer-vector-width)";

/// Instructions of one call, measured where that is possible.
std::optional<std::pair<double, provenance>> instructions(const facts& f) {
  if (auto n = f.value("instructions")) return std::pair(*n, provenance::measured);
  if (auto n = f.value("callgrind.Ir")) return std::pair(*n, provenance::simulated);
  return std::nullopt;
}

} // namespace

namespace {

std::vector<std::string> scalar_remedies(const facts& f) {
  std::vector<std::string> all = {"Make the inner loop run over contiguous elements with a known trip count, __restrict pointers, and no calls, early exits or data-dependent branches; use min/max/select instead of if."};
  const bool known = !f.loops.empty();
  const int chains = known ? f.loops.front().chains : -1;
  if (f.calls_its_own()) all.push_back("Let the compiler put the function that the loop calls into the loop: define it in the same file, static inline, and pass no pointer to it.");
  else if (!known || f.loops.front().calls > 0)
    all.push_back(std::string("Replace scalar expf, tanhf, erff and the like by a vectorised polynomial") +
                  (f.has_flag("-ffast-math") ? "." : " (or build with -O3 -march=native -ffast-math -fno-math-errno so that libmvec is used)."));
  if (chains != 0)
    all.push_back("For a reduction allow reassociation: #pragma omp simd reduction(+:x), -fassociative-math with -fno-signed-zeros -fno-trapping-math, or several explicit vector accumulators.");
  all.push_back("Write the hot loop with AVX2 or AVX-512 intrinsics, with a masked or scalar remainder.");
  if (known && f.loops.front().calls > 0) std::swap(all[0], all[1]);
  return all;
}

} // namespace

std::optional<finding> not_vectorized(const facts& f) {
  evidence_for e(f, bottleneck::not_vectorized);
  std::string reason;
  if (f.scalar_hot_loop()) {
    const double scalar = 100 - f.value_or("hot_loop.vector_share", 0);
    e.derived("hot_loop.vector_share", 100 - scalar, "%", provenance::static_analysis, severity(limit::scalar_share, scalar),
              format_number(scalar, 0) + "% of the hot loop's floating-point arithmetic is scalar");
    if (auto calls = f.value("hot_loop.calls"); calls && *calls > 0) {
      e.derived("hot_loop.calls", *calls, "count", provenance::static_analysis, 0.8, short_number(*calls) + " function calls inside the hot loop");
      if (const auto* library = f.in.current->find("samples.library_share"))
        e.derived(library->name, library->value, "%", provenance::measured, severity(limit::scalar_time, library->value), format_number(library->value, 0) + "% of the time goes into functions that are called for single elements");
      const double outside = f.value_or("samples.outside_loops_share", 0) * f.outside_scalar_part();
      if (f.calls_its_own())
        e.derived("samples.outside_loops_share", outside, "%", provenance::measured, severity(limit::scalar_time, outside), format_number(outside, 0) + "% of the time goes into functions of its own that are called for single elements");
      reason = std::string(" A call in the loop (") + (f.calls_its_own() ? "of a function that the compiler cannot put into it" : "a scalar math function") + ") keeps the compiler from vectorising it.";
    }
  }
  if (!f.vector_hot_loop()) {
    if (const auto* r = missed_remark(f)) {
      auto text = trim(r->text);
      while (!text.empty() && (text.back() == '.' || text.back() == ';')) text.pop_back();
      e.derived("remark", r->line, "line", provenance::static_analysis, 0.8, "line " + std::to_string(r->line) + ": " + text);
      e.result().line = r->line;
      reason += " The compiler says of line " + std::to_string(r->line) + ": " + text + ".";
    }
    if (const auto n = instructions(f); n && f.elements > 0) {
      const double per_element = n->first / f.elements;
      if (e.any())
        e.derived("instructions per element", per_element, "count", n->second, severity(limit::instructions_per_element, per_element),
                  short_number(per_element) + " instructions per float32 element read or written");
    }
  } else if (f.in.limits) {
    const auto bits = f.value("hot_loop.vector_bits");
    // Where the core splits its widest vectors, the peak says that they gain nothing.
    if (bits && *bits > 0 && *bits * 2 <= f.in.limits->simd_bits && core::vector_gain(f.in, *bits) > 1) {
      e.derived("hot_loop.vector_bits", *bits, "bits", provenance::static_analysis, *bits * 4 <= f.in.limits->simd_bits ? 1 : 0.7,
                "vectors of " + short_number(*bits) + " bits on a machine that has " + std::to_string(f.in.limits->simd_bits));
      add_core_share(f, e);
      e.scale(f.core_weight());
      e.result().line = hot_line(f);
      const auto width = "-mprefer-vector-width=" + std::to_string(f.in.limits->simd_bits);
      std::vector<std::string> remedies;
      if (!f.has_flag(width)) remedies.push_back("Build with -O3 -march=native " + width + " so that the compiler takes the full width.");
      remedies.push_back("Write the hot loop with intrinsics of the full width.");
      return e.finish("The hot loop uses narrower vectors than this machine has.", after_what_was_tried(f, "experiment.freed_time", freed_advice, std::move(remedies)));
    }
  }
  if (!e.any()) return std::nullopt;
  add_freed(e);
  if (!e.result().line) e.result().line = hot_line(f);
  e.scale(std::max(0.3, f.core_weight()));
  return e.finish("The hot loop handles one element at a time where SIMD would handle " + short_number(f.in.limits && f.in.limits->simd_bits > 0 ? f.in.limits->simd_bits / float_bits : 8) + "." + reason,
                  after_what_was_tried(f, "experiment.freed_time", freed_advice, scalar_remedies(f)));
}

std::optional<finding> divider(const facts& f) {
  const auto* loop = dividing_loop(f);
  const double share = loop ? 100 * core::divider_share(*loop, f.in) : divide_share(f), count = loop ? loop->divides : f.value_or("hot_loop.divides", 0);
  evidence_for e(f, bottleneck::divider_bound);
  e.derived("hot_loop.divides", count, "count", provenance::static_analysis, severity(limit::divide_share, share) * f.mca_trust,
            short_number(count) + " divisions or square roots take about " + format_number(share, 0) + "% of the loop's cycles");
  if (!e.any()) return std::nullopt;
  e.metric("topdown.core_bound", limit::core_bound, "the units for arithmetic are the limit");
  add_core_share(f, e);
  if (const auto estimated = f.left_by("experiment.reciprocal_time"); estimated && !e.metric("experiment.reciprocal_time", limit::recompiled, "the same source takes less time with estimates of reciprocals"))
    e.scale(brought_nothing);
  e.result().line = loop && loop->line > 0 ? loop->line : hot_line(f);
  e.scale(f.core_weight());
  return e.finish("Division and square root are not pipelined like multiplication: the divider is busy most of the time.",
                  after_what_was_tried(f, "experiment.reciprocal_time", "Build the same source with -ffast-math -mrecip",
                                       {"Multiply by the reciprocal: compute 1/x once outside the inner loop and multiply with it.",
                                        "Use a reciprocal estimate with one or two Newton steps (_mm256_rcp_ps, _mm256_rsqrt_ps) where the tolerance allows it.",
                                        "Combine two divisions into one: a/b + c/d = (a*d + c*b) / (b*d).",
                                        "Evaluate the function by a polynomial without a division."}));
}

namespace {

std::vector<std::string> chain_remedies(int chains) {
  std::vector<std::string> all;
  const auto now = chains > 0 ? " (now " + std::to_string(chains) + ")" : std::string();
  if (chains < 8) all.push_back("Use 4 to 8 independent accumulators" + now + " and combine them after the loop (latency x throughput of the FMA: 8 to 10 vectors in flight).");
  all.insert(all.end(), {"Unroll the loop over independent rows or columns, so that several chains run side by side.",
                         "For a scan split the row into blocks: prefix within each vector by shifts, then add the carry of the block before.",
                         "Shorten the chain: move everything that does not depend on it out of it."});
  return all;
}

} // namespace

std::optional<finding> dependency_chain(const facts& f) {
  if (severity(limit::divide_share, divide_share(f)) > 0) return std::nullopt; // the divider explains the waiting
  const int chains = f.loops.empty() ? -1 : f.loops.front().chains;
  // No result goes from one trip to the next, or over too few operations for the time of a trip: what waits is hidden by the trips around it.
  const bool by_address = f.value_or("hot_loop.chained_loads", 0) > 0;
  if (!by_address && (chains == 0 || (chains > 0 && f.loops.front().chain_operations > 0 && !core::waits_for_itself(f.loops.front())))) return std::nullopt;
  evidence_for e(f, bottleneck::dependency_chain);
  // llvm-mca also counts waiting within an iteration, which out-of-order execution hides: only where the iterations
  // together take longer than the units need is there a chain from one to the next.
  const double ratio = latency_ratio(f);
  if (ratio == 0 || severity(limit::latency_ratio, ratio) > 0)
    e.metric("llvm_mca.register_dependencies", limit::register_dependencies, "cycles in which the next operation waits for the one before", f.mca_trust);
  e.derived("llvm_mca.cycles_per_iteration", f.value_or("llvm_mca.cycles_per_iteration", 0), "cycle", provenance::static_analysis, severity(limit::latency_ratio, ratio) * f.mca_trust,
            "an iteration takes " + short_number(ratio) + " times what the execution units would need");
  const bool slow = f.value("ipc") && severity(limit::low_ipc, *f.value("ipc")) > 0;
  const bool chain_seen = e.any();
  if (slow && (chain_seen || f.accumulators == 1) && severity(limit::core_bound, f.value_or("topdown.core_bound", 0)) > 0) {
    e.metric("topdown.core_bound", limit::core_bound, "the core waits for its own results");
    e.metric("ipc", limit::low_ipc, "few instructions per cycle", 0.5);
  }
  if (!e.any()) return std::nullopt;
  if (chains > 0)
    e.derived("hot_loop.chains", chains, "count", provenance::static_analysis, chains <= 2 ? 0.8 : 0.4,
              short_number(chains) + (chains == 1 ? " register carries" : " registers carry") + " results from one trip to the next");
  else if (f.accumulators == 1)
    e.derived("source", 1, "count", provenance::static_analysis, 0.6, "the source accumulates into a single variable");
  add_core_share(f, e);
  if (!by_address) add_freed(e);
  // Where several chains run side by side, those of the next row begin before the last of this one end: what little they lack is hidden.
  if (chains >= several_chains && ratio > 0 && ratio < lacking_chains) e.scale(nothing_to_follow);
  e.result().line = hot_line(f);
  e.scale(f.core_weight());
  return e.finish("Each iteration waits for the result of the one before: the latency of a loop-carried chain is the limit, not the number of execution units.",
                  after_what_was_tried(f, "experiment.freed_time", freed_advice, chain_remedies(chains)));
}

namespace {

/// What kind of operation a scheduling model's unit takes, by the names that LLVM's models use for Intel's and AMD's cores.
enum class unit_kind { unknown, load, store, shuffle };
unit_kind kind_of_unit(const std::string& name) {
  const auto ends = [&](std::initializer_list<std::string_view> all) {
    return std::any_of(all.begin(), all.end(), [&](auto e) { return name.size() >= e.size() && name.compare(name.size() - e.size(), e.size(), e) == 0; });
  };
  if (ends({"Port2", "Port3", "Port23", "Port11"}) || name.find("AGU") != std::string::npos || name.find("Load") != std::string::npos || name.find("LSU") != std::string::npos) return unit_kind::load;
  if (ends({"Port4", "Port7", "Port8", "Port9", "Port49", "Port78", "Port237"}) || name.find("Store") != std::string::npos || name.find("FPSt") != std::string::npos) return unit_kind::store;
  if (ends({"Port5", "Port15"})) return unit_kind::shuffle;
  return unit_kind::unknown;
}

std::string busy_units_sentence(const facts& f) {
  if (f.has_roof && !f.at_bandwidth && severity(limit::peak_share, f.roof.share * 100) > 0) return "The arithmetic units are busy: the kernel runs near the measured peak.";
  const auto share = format_number(std::min(100.0, f.core_share * 100), 0);
  if (severity(limit::core_share, f.core_share * 100) > 0) return "The execution units limit the loop: what they need for it as written accounts for " + share + "% of the measured time.";
  return "The execution units are the narrowest part of the loop" + (f.core_share > 0 ? ", but what they need for it accounts for only " + share + "% of the measured time." : ".");
}

/// The hot loop widens numbers, and that was not seen to cost nothing.
bool widening_costs(const facts& f) {
  const auto single = f.value("experiment.single_time");
  return !f.loops.empty() && f.loops.front().widened > 0 && (!single || severity(limit::recompiled, *single) > 0);
}

/// Only what fits the kernel and is not fulfilled already.
/// `nothing_left`: the kernel has all of it; what remains is other mathematics.
std::vector<std::string> port_remedies(const facts& f, bool& nothing_left) {
  std::vector<std::string> all;
  if (!f.loops.empty()) {
    const auto& l = f.loops.front();
    const double bits = std::max(32, l.vector_bits), arithmetic = l.flops > 0 ? l.flops / (bits / float_bits) : 0;
    const double loads = l.loaded_bytes * 8 / bits;
    const auto kind = kind_of_unit(l.port);
    // Only of a product a value is used again by the results beside it; elsewhere each load is an operation's own.
    const bool multiplies = f.in.contracts && f.contracts();
    if (multiplies && (kind == unit_kind::load || (l.fused > 0 && loads > 0.6 * l.fused)))
      all.push_back("Load less for each operation: keep a larger tile of results in registers, so that each value that is loaded is used by more multiply-adds.");
    if (multiplies && (kind == unit_kind::store || l.stored_bytes > 0)) all.push_back("Store results once, after the loop: keep them in registers while they are added to.");
    if (10 * l.shuffles > l.instructions) all.push_back("Replace shuffles (" + std::to_string(l.shuffles) + " in a trip) by loads with broadcast, or by another layout of a packed operand.");
    if (!f.contracts() && f.operations_per_element() >= 8) all.push_back("Execute fewer operations for each element: a polynomial of lower degree as far as the tolerance allows, constants hoisted out of the loop.");
    if (widening_costs(f)) all.push_back("Compute in float32, of which a vector holds twice as many numbers; where a sum needs more digits, keep several sums, or only the sum in double precision.");
    if (l.fused == 0 && l.multiplies != 0 && l.flops > 0 && f.operations_per_element() >= 2 && !f.has_flag("-ffast-math")) all.push_back("Use fused multiply-add instead of multiply and add.");
    // Comparisons, masks and whole numbers of a vector are the loop's work, though they are no arithmetic of floating-point numbers.
    const bool works_on_vectors = 2 * l.vector_instructions >= l.instructions;
    if (l.instructions > 0 && arithmetic > 0 && l.instructions > 2.5 * (arithmetic + loads) && !works_on_vectors)
      all.push_back("Most instructions of the loop are neither arithmetic nor loads of its data: unroll it, and take addresses and conditions out of it.");
  }
  // What few operations an element has it may need.
  const bool fewer = !f.contracts() && f.operations_per_element() >= 8 && severity(limit::element_operations, f.operations_per_element()) <= 0;
  nothing_left = all.size() <= static_cast<size_t>(fewer);
  // Width has a finding of its own.
  if (!f.loops.empty() && core::vector_gain(f.in, std::max(32, f.loops.front().vector_bits)) > 1)
    all.push_back("Use wider vectors: " + std::to_string(f.loops.front().vector_bits) + " bits of " + std::to_string(f.in.limits ? f.in.limits->simd_bits : 256) + ".");
  if (all.empty()) all.push_back("Find a formulation with fewer operations (algebra, work that can be skipped): the units are used as well as they can be.");
  return all;
}

} // namespace

std::optional<finding> port_pressure(const facts& f) {
  evidence_for e(f, bottleneck::port_pressure);
  if (f.has_roof && !f.at_bandwidth) {
    const double share = f.roof.share * 100;
    e.derived("roofline_share", share, "%", provenance::measured, severity(limit::peak_share, share),
              "achieved " + short_number(f.roof.gflops) + " GFLOP/s, " + format_number(share, 0) + "% of the measured peak");
  }
  const auto hot = std::find_if(f.table.phases.begin(), f.table.phases.end(), [&](const time_phase& p) { return p.line > 0 && p.line == hot_line(f); });
  const bool refuted = hot != f.table.phases.end() && hot->core_seconds > refuted_by * hot->seconds;
  const bool chained = f.in.current->loops.empty() ? severity(limit::latency_ratio, latency_ratio(f)) > 0 : core::waits_for_itself(f.loops.front());
  const bool waits = chained || severity(limit::divide_share, divide_share(f)) > 0;
  if (!waits && !refuted) {
    e.metric("llvm_mca.resource_pressure", limit::resource_pressure, "cycles in which an execution port was full", 0.8 * f.mca_trust);
    e.metric("llvm_mca.top_port_pressure", limit::port_pressure, "use of the busiest port", 0.6 * f.mca_trust);
    if (hot != f.table.phases.end() && hot->by == bound::execution_units && hot->core_seconds > 0)
      e.derived("llvm_mca.cycles_per_iteration", f.value_or("llvm_mca.cycles_per_iteration", 0), "cycle", provenance::static_analysis, 0.5 * std::min(1.0, hot->core_seconds / hot->seconds),
                "the units need " + format_seconds(hot->core_seconds) + " of the loop's " + format_seconds(hot->seconds));
    if (const double operations = f.operations_per_element(); !f.contracts() && operations > 0 && f.loops.front().stored_bytes > 0)
      e.derived("hot_loop.flops", f.loops.front().flops, "FLOP", provenance::static_analysis, severity(limit::element_operations, operations),
                short_number(operations) + " operations for each element that is stored, where a vectorised exp() or tanh() takes 25 to 45");
    if (widening_costs(f)) {
      e.derived("hot_loop.flops", f.loops.front().flops, "FLOP", provenance::static_analysis, 1, "they are of numbers that are widened to double precision first: half as many in a vector");
      e.metric("experiment.single_time", limit::recompiled, "the same source takes less time with float in place of double");
    }
    add_core_share(f, e);
  }
  const auto ipc = f.value("ipc");
  if (ipc && severity(limit::high_ipc, *ipc) > 0) e.metric("topdown.core_bound", limit::core_bound, "the execution units are full");
  e.metric("topdown.retiring", limit::retiring, "the pipeline is full of useful work: fewer instructions is the only way");
  if (!e.any()) return std::nullopt;
  e.result().line = hot_line(f);
  e.scale(f.core_weight());
  bool nothing_left = false;
  auto remedies = port_remedies(f, nothing_left);
  if (nothing_left && f.value("samples.count")) e.scale(nothing_to_follow);
  if (f.scalar_hot_loop()) e.scale(scalar_first);
  return e.finish(busy_units_sentence(f), after_what_was_tried(f, "experiment.single_time", "Compute in float32 what is computed in double precision", std::move(remedies)));
}

namespace {

constexpr const char* tail_sentence = "The vectorised loop does little of the work: most of it goes into scalar remainders or into the set-up of a loop with few iterations.";

std::vector<std::string> tail_remedies() {
  return {"Handle the remainder with a masked vector operation, or with one overlapping vector at the end of the row.",
          "Where rows are short, vectorise across rows (or collapse the loops) instead of along them.",
          "Make the trip count a compile-time constant that is a multiple of the vector width (the shapes are fixed), and use smaller unroll factors.",
          "Hoist set-up work (horizontal sums, constants, address computation) out of the outer loop."};
}

/// The hottest loop is scalar, and one of vectors was made of the same line: what is left behind them.
bool is_remainder(const facts& f) {
  const auto& first = f.loops.front();
  return std::any_of(f.loops.begin() + 1, f.loops.end(), [&](const loop_cost& l) { return l.line == first.line && l.line > 0 && l.vector_bits >= 128 && l.vector_share > 0; });
}

/// By the samples: a vector loop that is there, and the time in scalar loops and outside of all loops.
std::optional<finding> scalar_time(const facts& f) {
  if (f.scalar_hot_loop() && !f.loops.empty() && f.loops.front().share >= main_loop && !is_remainder(f)) return std::nullopt; // no tail: not_vectorized says it
  double vector = f.value_or("samples.outside_vectors_share", 0); // the bodies of outer loops
  double scalar = f.value_or("samples.outside_loops_share", 0) - vector;
  for (const auto& l : f.loops) (l.vector_share > 0 || (l.vector_share < 0 && l.vector_bits >= 128) ? vector : scalar) += 100 * l.share; // copies have no arithmetic
  if (vector <= 0 && f.value_or("remarks.vectorized_loops", 0) <= 0) return std::nullopt;
  evidence_for e(f, bottleneck::scalar_tail);
  e.derived("samples.outside_loops_share", scalar, "%", provenance::measured, severity(limit::scalar_time, scalar),
            format_number(scalar, 0) + "% of the time go into scalar loops and what lies outside of all loops, beside a vector loop with " + format_number(vector, 0) + "%");
  e.scale(f.core_weight());
  return e.finish(tail_sentence, tail_remedies());
}

} // namespace

std::optional<finding> scalar_tail(const facts& f) {
  const auto loop = f.value("hot_loop.instructions"), bits = f.value("hot_loop.vector_bits");
  const auto n = instructions(f);
  if (f.value("samples.count")) return scalar_time(f);
  if (!f.vector_hot_loop() || !loop || !bits || *bits < 128 || !n || f.elements <= 0) return std::nullopt;
  evidence_for e(f, bottleneck::scalar_tail);
  // As if the loop were not unrolled: an upper bound of what it needs for all the elements, and in a product for all the arithmetic.
  const double flops = f.loops.empty() ? 0 : f.loops.front().flops;
  const double loop_needs = std::max(*loop * f.elements / (*bits / float_bits), f.contracts() && flops > 0 ? *loop * f.in.flops / flops : 0);
  const double ratio = loop_needs > 0 ? n->first / loop_needs : 0;
  e.derived("instructions / expected", ratio, "ratio", n->second, severity(limit::outside_hot_loop, ratio),
            "a call executes " + short_number(ratio) + " times the instructions that its vector loop needs for all elements");
  if (!e.any()) return std::nullopt;
  if (auto branches = f.value("callgrind.Bc")) {
    const double per_element = *branches / f.elements;
    e.derived("callgrind.Bc", *branches, "count", provenance::simulated, severity(limit::branches_per_element, per_element),
              short_number(per_element) + " conditional branches per element, where a vector loop needs " + short_number(float_bits / *bits));
  }
  e.scale(f.core_weight());
  return e.finish(tail_sentence, tail_remedies());
}

std::optional<finding> front_end(const facts& f) {
  evidence_for e(f, bottleneck::front_end_bound);
  const bool measured = e.metric("topdown.frontend_bound", limit::frontend_bound, "slots in which no instruction was delivered");
  if (measured) e.metric("topdown.fetch_latency", limit::fetch_latency, "waiting for instruction fetches", 0.5);
  const auto misses = f.value("callgrind.I1mr"), executed = f.value("callgrind.Ir");
  if (misses && executed && *executed > 0) {
    const double rate = *misses / *executed * 100;
    e.derived("callgrind.I1mr", *misses, "count", provenance::simulated, severity(limit::instruction_miss_rate, rate), short_number(rate) + "% of the instruction fetches miss L1i");
  }
  e.metric("hot_loop.instructions", limit::loop_instructions, "more than the micro-op cache of many cores holds", 0.8);
  if (!e.any()) return std::nullopt;
  e.scale(f.core_weight());
  return e.finish("The core waits for instructions: the code is too large or jumps too much for the instruction cache and the decoders.",
                  {"Unroll less and inline less; let one compact loop do the work (-fno-unroll-loops, -O2).",
                   "Replace specialised copies of a loop by one loop with the general case.",
                   "Take rare cases out of the hot loop, into a function of their own."});
}

std::optional<finding> bad_speculation(const facts& f) {
  evidence_for e(f, bottleneck::bad_speculation);
  e.metric("topdown.bad_speculation", limit::bad_speculation, "slots spent on work that was thrown away");
  e.metric("topdown.branch_mispredicts", limit::branch_mispredicts, "of it by mispredicted branches", 0.5);
  if (f.in.threads <= 1) e.metric("topdown.machine_clears", limit::machine_clears, "of it by machine clears", 0.5);
  const auto cost = [&](const char* misses_name, const char* instructions_name, provenance how) {
    const auto misses = f.value(misses_name), executed = f.value(instructions_name);
    if (!misses || !executed || *executed <= 0) return false;
    const double share = *misses * core::mispredict_cycles / *executed * 100;
    const double strength = severity(limit::mispredict_cost, share);
    e.derived(misses_name, *misses, "count", how, strength, short_number(*misses) + " mispredicted branches cost about " + short_number(share) + " cycles per 100 instructions");
    return strength > 0;
  };
  if (cost("branch-misses", "instructions", provenance::measured)) e.metric("branch_miss_rate", limit::branch_miss_rate, "", 0.5);
  const auto values = f.left_by("experiment.ones_time"), flushed = f.left_by("experiment.flushed_time");
  const bool tried = values && flushed;
  // Where the only branch of a loop of vectors goes back to its beginning, no value decides it.
  const bool branches_by_values = !(f.vector_hot_loop() && !f.loops.empty() && f.loops.front().branches == 0 && f.loops.front().how == provenance::measured && f.loops.front().share >= main_loop);
  // What denormals take is not the branches'. Nor is what takes longer than all branches that a simple predictor gets wrong: those of real cores are better.
  const auto wrong = f.value("callgrind.Bcm");
  const double clock = core::hertz(f.in);
  const bool can_cost = !wrong || !std::isfinite(clock) || *wrong * core::mispredict_cycles / clock / std::max(1, f.in.threads) >= mispredicted_part * (1 - values.value_or(1)) * f.seconds;
  if (tried && branches_by_values && can_cost && severity(limit::without_surprises, 100 * *values / std::max(*flushed, *values)) > 0)
    e.metric("experiment.ones_time", limit::without_surprises, "with other values in the inputs the same instructions take less time");
  if (cost("callgrind.Bcm", "callgrind.Ir", provenance::simulated)) e.metric("callgrind.branch_miss_rate", limit::simulated_branch_miss_rate, "", 0.5);
  if (!e.any()) return std::nullopt;
  if (tried && severity(limit::without_surprises, *values * 100) <= 0) e.scale(0.3); // whatever is predicted wrongly costs no time
  e.result().line = hot_line(f);
  return e.finish("Branches that depend on the data go the unpredicted way and the work behind them is thrown away.",
                  {"Compute both sides and select: std::min, std::max, a conditional expression on values, _mm256_blendv_ps, masks.",
                   "Take conditions that do not change out of the loop (one loop for each case).",
                   "Vectorise the loop: masks have no branches.",
                   "For argmax keep the maximum and its index by compare and blend."});
}

namespace {

constexpr const char* denormals_sentence = "Instructions take far longer than their latencies: arithmetic on denormal numbers falls back to microcode on many cores.";

std::vector<std::string> denormal_remedies() {
  return {"Avoid values below 1.2e-38: clamp the argument of exp() from below (results under 1e-30 do not matter next to 1), scale before squaring tiny numbers.",
                   "Flush denormals inside the call and restore the mode before it returns (_mm_getcsr, _mm_setcsr with FTZ and DAZ): a changed mode that outlives the call is refused.",
                   "Initialise padding and accumulators with 0, not with tiny numbers."};
}

} // namespace

std::optional<finding> denormals(const facts& f) {
  evidence_for e(f, bottleneck::denormals);
  if (const auto flushed = f.value("experiment.flushed_time")) {
    if (!e.metric("experiment.flushed_time", limit::without_denormals, "with denormals flushed to zero the same instructions take less time")) return std::nullopt;
    return e.finish(denormals_sentence, denormal_remedies());
  }
  const bool memory_idle = !f.has_roof || severity(limit::low_bandwidth_share, f.roof.share * f.traffic_ratio * 100) > 0;
  const bool faults = f.value_or("software.page_faults", 0) >= at(limit::page_faults);
  const auto n = instructions(f);
  if (n && n->first > 0 && f.seconds > 0 && memory_idle && !faults && severity(limit::divide_share, divide_share(f)) <= 0) {
    const double cpu_seconds = f.seconds * std::max(1, f.in.threads);
    const double per_instruction = cpu_seconds / n->first;
    const double strength = severity(limit::seconds_per_instruction, per_instruction);
    // The time is measured; that it goes into denormals is only a guess, so this never counts in full.
    e.derived("seconds per instruction", per_instruction, "s", provenance::measured, 0.6 * strength,
              format_seconds(per_instruction) + " per instruction although the data comes from the cache or at a fraction of the bandwidth");
    if (strength > 0) e.metric("topdown.heavy_operations", limit::heavy_operations, "microcode assists count here", 0.8);
  }
  return e.finish(denormals_sentence, denormal_remedies());
}

} // namespace pragma::rule
