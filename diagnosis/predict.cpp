#include "diagnosis/predict.hpp"

#include "diagnosis/core_model.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::rule {

namespace {

constexpr double usual_reach = 1.35;       ///< times what bytes and arithmetic need at the measured bandwidth and peak: what good loops take (11 pairs of bench/diagnosis_truth on three machines: 1.1 to 2.1, median 1.43)
constexpr double notable_gain = 0.10;         ///< of the time; a finding that promises less explains little of it
constexpr double negligible_gain = 0.02;
constexpr double least_factor = 0.3;          ///< of the confidence, for a finding that promises nothing
constexpr double usual_operations = 34;        ///< for each element: between exp()'s 25 and tanh()'s 45 (thresholds.cpp)
constexpr double notable_copying = 0.05;      ///< of the time
constexpr double half_of_it = 50;             ///< %
constexpr double most_of_calls = 64;          ///< times faster than calls of scalar functions: no more is promised
constexpr double newton_instructions = 3;     ///< instead of a division: an estimate and one step more

/// What the core and the bytes need, of vectors: the larger where the bytes were measured beside the call, else the sum. Neither is right for every kernel: decision 0073 says of which.
double together(const facts& f, double core, double bytes) { return f.bytes_measured ? std::max(core, bytes) : core + bytes; }

/// A loop, its phase of the table, and what the model has for other versions of it.
struct what_if {
  const facts& f;
  const loop_cost* loop = nullptr;
  const time_phase* phase = nullptr;
  double part = 1;

  /// `line`: of the loop that is meant where it is not the hot one.
  explicit what_if(const facts& given, int line = 0) : f(given) {
    if (f.loops.empty()) return;
    const auto meant = std::find_if(f.loops.begin(), f.loops.end(), [&](const loop_cost& l) { return line > 0 && l.line == line; });
    loop = meant != f.loops.end() ? &*meant : &f.loops.front();
    for (const auto& p : f.table.phases)
      if (p.core_seconds + p.move_seconds + p.least_seconds > 0 && p.line == loop->line && (!phase || p.seconds > phase->seconds)) phase = &p;
    double in_loops = 0;
    for (const auto& p : f.table.phases) in_loops += p.line > 0 ? p.seconds : 0;
    if (phase && in_loops > 0) part = phase->seconds / in_loops;
  }
  bool known() const { return loop && phase && loop->cycles > 0; }

  /// Single elements that wait for nothing become vectors: several sums, and a choice instead of a branch, are both written so.
  double as_vectors() const { return scalar() ? core::vector_gain(f.in, 32) : 1; }
  bool scalar() const { return loop && loop->vector_share == 0 && loop->calls == 0; }

  /// The least that the loop's work takes: its arithmetic at the peak, its bytes once and in order, of which it has the part that it has of all loops' time.
  double least() const { return f.contracts() ? phase->least_seconds : std::max(phase->least_seconds, f.least_seconds * part); }
  /// What the loop's bytes need: of a product each byte once, as more results at a time share what is loaded; where that was measured, each byte once as well, since what is read again comes from nearer.
  double moving() const { return f.contracts() ? phase->least_seconds : f.bytes_measured ? f.least_seconds * part : phase->move_seconds; }

  /// One call with `cycles` a trip instead of the loop's own; the bytes still have to move. The loop's measured time is scaled by the model's.
  double with_cycles(double cycles) const {
    const double now = core::cycles_of(*loop, f.in);
    if (!(now > 0)) return 0;
    const double core = phase->core_seconds > 0 ? phase->core_seconds : phase->seconds;
    const double left = core * std::min(1.0, cycles / now), then = scalar() ? together(f, left, moving()) : std::max(left, moving()), before = std::max(core, then);
    return f.seconds - phase->seconds + phase->seconds * std::min(1.0, then / before);
  }
};

double core_of(const time_table& t) {
  double sum = 0;
  for (const auto& p : t.phases) sum += p.core_seconds;
  return sum;
}

/// The same without what lies outside of its loops.
double core_of_loops(const time_table& t) {
  double sum = 0;
  for (const auto& p : t.phases) sum += p.line > 0 ? p.core_seconds : 0;
  return sum;
}

double seconds_of(const time_table& t, bound by) {
  double sum = 0;
  for (const auto& p : t.phases)
    if (p.by == by) sum += p.seconds;
  return sum;
}

/// Time with `factor` of the traffic that there is now: the core's part stays.
double with_traffic(const facts& f, double factor) {
  if (!f.has_roof || !f.at_bandwidth || factor >= 1) return 0;
  const double moving = std::min(1.0, f.roof.needed_share * f.traffic_ratio) * f.seconds;
  const double core = std::min(f.seconds, core_of(f.table));
  return std::max({f.seconds - moving * (1 - factor), core, moving * factor});
}

/// The hot loop's work in the order of memory: each byte comes once, and full vectors do the arithmetic; both overlap in part only. What its waiting costs now is
/// no figure of the model. Of a product the arithmetic at the peak: in order it has tiles, and another loop.
double in_order(const facts& f, const what_if& w) {
  if (!w.phase) return with_traffic(f, 1 / f.traffic_ratio);
  const double gain = w.loop->vector_share > 0 ? 1 : core::vector_gain(f.in, 32);
  const double now = core::cycles_of(*w.loop, f.in), unchained = now > 0 ? core::least_cycles_of(*w.loop, f.in) / now : 1; // neighbours have sums of their own
  const double core = f.contracts() ? 0 : w.phase->core_seconds * unchained / gain;
  return f.seconds - w.phase->seconds + std::min(w.phase->seconds, usual_reach * together(f, core, w.least()));
}

/// Each byte once: what is left is the core's time, by the experiment with all data in L1, where passes cost nothing but their instructions.
double in_one_pass(const facts& f) {
  // What has been copied or cleared in a pass of its own lies in memory that the experiment does not fold: the loops' own work is left, and the bytes.
  const double copying = f.value_or("samples.moving_share", 0) / 100;
  if (const double own = core_of_loops(f.table); copying > notable_copying && own > 0 && f.has_roof) return std::min(f.seconds * (1 - copying), together(f, own, f.least_seconds));
  if (f.cached && f.has_roof) return std::max(f.seconds * std::min(*f.cached, 1 - copying), f.least_seconds);
  const double passes = with_traffic(f, 1 / f.traffic_ratio);
  return copying > 0 ? std::min(passes > 0 ? passes : f.seconds, f.seconds * (1 - copying)) : passes;
}

/// Streaming stores do not read the lines that they overwrite: of the time that waits for data, that part of the bytes is gone.
double without_reading_lines(const facts& f) {
  const double out = f.written_bytes, all = f.in.bytes;
  if (all <= 0) return 0;
  const double waits = f.waiting().value_or(f.has_roof ? std::min(1.0, f.roof.needed_share * (all + out) / all) : 0);
  const double left = f.seconds * (1 - waits * out / (all + out));
  const bool seen = f.bytes_measured && f.cached; // with streaming stores, where those are quicker
  return seen ? std::min(left, std::max(f.least_seconds, *f.cached * f.seconds)) : left;
}

double without_scalar_code(const facts& f, const what_if& w) {
  // A loop whose arithmetic is scalar but for a remainder of vectors counts as scalar.
  const bool vectors = w.loop && w.loop->vector_share >= half_of_it;
  const double gain = core::vector_gain(f.in, vectors ? w.loop->vector_bits : 32);
  const double peak_operations = f.in.limits ? f.in.limits->peak_gflops * 1e9 / 2 : 0; // a multiply-add is one
  const double called = f.calls_its_own() ? f.outside_scalar_part() : 0;
  double kept = 0, moved = 0;
  for (const auto& p : f.table.phases) {
    const bool own = w.phase && p.line == w.phase->line;
    if (called > 0 && p.by == bound::unknown && p.line == 0) { // the function that the loop calls for each element
      moved += p.seconds * called / gain;
      kept += p.seconds * (1 - called);
      continue;
    }
    if (p.by == bound::calls && p.line == 0 && peak_operations > 0) // the C library's scalar functions may take far more than a vector's: then a usual function's operations for each result
      moved += std::min(p.seconds / gain, std::max(f.written_bytes / 4 * usual_operations / peak_operations, p.seconds / most_of_calls));
    else if (p.by == bound::calls || own) moved += f.contracts() ? std::min(p.seconds / gain, p.least_seconds) : p.seconds / gain;
    else kept += p.seconds;
  }
  if (moved <= 0) return 0;
  const double least = f.has_roof && f.at_bandwidth ? f.least_seconds : 0;
  return kept + (vectors ? std::max(least, moved) : together(f, moved, least)); // vectors of part of the width hide their waiting already
}

double without_divisions(const facts& f, const what_if& w) {
  if (!w.known()) return 0;
  const double rest = (w.loop->instructions + newton_instructions * w.loop->divides) / core::instructions_per_cycle;
  return w.with_cycles(std::max({rest, core::cycles_of(*w.loop, f.in) - core::divider_cycles(*w.loop, f.in), 1.0}));
}

/// The least of those that are known; 0 where none is.
double least_of(std::initializer_list<double> seconds) {
  double least = 0;
  for (double s : seconds)
    if (s > 0 && (least <= 0 || s < least)) least = s;
  return least;
}

/// What the loops need by the model, for the core and for data; what the model does not know stays as it is. 0 where there is no loop.
double by_core_and_bytes(const facts& f) {
  double sum = 0;
  bool known = false;
  for (const auto& p : f.table.phases) {
    const bool model = p.line > 0 && p.core_seconds > 0;
    known = known || p.line > 0;
    sum += model ? std::min(p.seconds, together(f, p.core_seconds, p.move_seconds)) : p.seconds;
  }
  return known ? sum : 0;
}

/// The same without what the threads spend in OpenMP's library and in the system, which is waiting for each other.
double without_waiting(const facts& f) {
  double outside = 0;
  for (const auto& p : f.table.phases)
    if (p.line == 0 && (p.by == bound::calls || p.by == bound::system)) outside += p.seconds;
  const double own = by_core_and_bytes(f);
  return own > outside ? own - outside : 0;
}

/// A vector that is put together in registers: neither the narrow stores, as many as what the loop loads in single elements, nor the wait for them.
double in_registers(const facts& f, const what_if& w) {
  if (!w.known()) return f.unmodelled() ? f.seconds * (1 - *f.unmodelled()) : 0;
  const double narrow = w.loop->loaded_bytes / 4, left = std::max(1.0, w.loop->instructions - 2 * narrow) / core::instructions_per_cycle;
  return f.seconds - w.phase->seconds + std::min(w.phase->seconds, together(f, w.phase->core_seconds * std::min(1.0, left / core::cycles_of(*w.loop, f.in)), w.least()));
}

/// What an experiment took from the time is what its cause costs.
double by_experiment(const facts& f, std::string_view name) {
  const auto left = f.left_by(name);
  return left ? f.seconds * *left : 0;
}

/// What the compiler did where it had the leave to is what a finding promises, but for what the compiler does not know how to do: then the model's word counts.
double as_tried(const facts& f, std::string_view experiment, double by_model) {
  const auto left = f.left_by(experiment);
  return left && severity(limit::recompiled, 100 * *left) > 0 ? f.seconds * *left : by_model;
}

/// Without a prediction of its own a class gives 0.
double seconds_without(const facts& f, const finding& found) {
  const what_if w(f);
  switch (found.what) {
    case bottleneck::dependency_chain: return as_tried(f, "experiment.freed_time", w.known() ? w.with_cycles(core::least_cycles_of(*w.loop, f.in) / w.as_vectors()) : 0);
    case bottleneck::not_vectorized: return as_tried(f, "experiment.freed_time", without_scalar_code(f, w));
    case bottleneck::divider_bound: {
      // Fewer divisions gain more than quicker ones, which are all that a compiler has.
      const double without = without_divisions(f, what_if(f, found.line));
      return least_of({without, as_tried(f, "experiment.reciprocal_time", without)});
    }
    case bottleneck::port_pressure:
      if (const double single = as_tried(f, "experiment.single_time", 0); single > 0) return single;
      // A function that takes far more operations than usual ones is replaced by one that takes their number.
      if (const double each = f.operations_per_element(); w.phase && !f.contracts() && severity(limit::element_operations, each) > 0)
        return f.seconds - w.phase->seconds + std::max(w.moving(), w.phase->seconds * usual_operations / each);
      // Fewer loads, shuffles or address operations: down to what the arithmetic alone needs. Fewer multiply-adds are another algorithm.
      return w.known() && w.phase->core_seconds > 0 && w.phase->least_seconds > 0 ? f.seconds - w.phase->seconds + std::max(w.phase->least_seconds, w.moving()) : 0;
    case bottleneck::too_many_passes: return in_one_pass(f);
    case bottleneck::memory_bandwidth_bound: return f.has_roof && f.at_bandwidth ? f.least_seconds : 0;
    case bottleneck::strided_access: return in_order(f, w);
    case bottleneck::store_bandwidth_bound: return without_reading_lines(f);
    case bottleneck::denormals:
      if (const double left = by_experiment(f, "experiment.flushed_time"); left > 0) return left;
      [[fallthrough]];
    case bottleneck::memory_latency_bound:
      if (found.level == "TLB") return w.phase ? in_order(f, w) : by_experiment(f, "experiment.huge_pages_time");
      if (w.phase && severity(limit::strided_share, f.value_or("samples.strided_share", 0)) > 0) return in_order(f, w);
      return w.phase && w.phase->core_seconds > 0 ? f.seconds - std::max(0.0, w.phase->seconds - std::max(w.phase->core_seconds, w.phase->move_seconds)) : 0;
    case bottleneck::redundant_work: {
      const double system = seconds_of(f.table, bound::system);
      return system > 0 ? f.seconds - system : 0;
    }
    case bottleneck::split_access: return f.seconds * (1 - (f.split_cost() > 0 ? f.split_cost() : f.unmodelled().value_or(0)));
    case bottleneck::address_aliasing:
      if (found.level == "L1") return by_core_and_bytes(f); // rows that share places of L1
      if (const double left = by_experiment(f, "experiment.apart_time"); left > 0) return left;
      return f.unmodelled() ? f.seconds * (1 - *f.unmodelled()) : 0;
    case bottleneck::store_forwarding: return in_registers(f, w);
    case bottleneck::thread_overhead: return least_of({f.thread_gain() ? f.seconds * *f.thread_gain() : 0, without_waiting(f)});
    case bottleneck::false_sharing:
      return least_of({f.processor_gain() ? f.seconds * *f.processor_gain() : 0, f.unmodelled() ? f.seconds * (1 - *f.unmodelled()) : 0, by_core_and_bytes(f)});
    case bottleneck::load_imbalance: {
      const auto used = f.value("software.cpus_utilized");
      return used && f.in.threads > 1 ? least_of({f.seconds * std::min(1.0, *used / f.in.threads), f.thread_gain() ? f.seconds * *f.thread_gain() : 0}) : 0;
    }
    case bottleneck::bad_speculation: {
      if (const double left = by_experiment(f, "experiment.ones_time"); left > 0) return left / w.as_vectors();
      const auto misses = f.first({"branch-misses", "callgrind.Bcm"});
      const double lost = misses ? misses->value * core::mispredict_cycles / core::hertz(f.in) / std::max(1, f.in.threads) : 0;
      return lost > 0 && lost < f.seconds ? f.seconds - lost : 0;
    }
    case bottleneck::scalar_tail: {
      double scalar = 0;
      const double scalar_part = f.outside_scalar_part();
      for (const auto& p : f.table.phases) {
        const auto loop = std::find_if(f.loops.begin(), f.loops.end(), [&](const loop_cost& l) { return l.line == p.line && l.vector_share == 0; });
        if (p.by == bound::unknown && p.line == 0) scalar += p.seconds * scalar_part * (1 - 1 / core::vector_gain(f.in, 32));
        else if (p.line > 0 && loop != f.loops.end()) scalar += p.seconds * (1 - 1 / core::vector_gain(f.in, 32));
      }
      return scalar > 0 ? f.seconds - scalar : 0;
    }
    default: return 0;
  }
}

} // namespace

void predict(const facts& f, finding& found) {
  if (!(f.seconds > 0) || found.what == bottleneck::at_roofline) return;
  double without = f.device ? device::seconds_without(f, found) : seconds_without(f, found);
  if (!(without > 0) || !std::isfinite(without)) return;
  // Whatever is removed, each byte has to move once and the arithmetic to be done, at what this machine does at most.
  // A contraction on other units than those that bound it now has another roofline, which its prediction keeps to.
  if (f.has_roof && found.what != bottleneck::tensor_cores_idle) without = std::max(without, f.least_seconds);
  found.seconds = f.seconds;
  found.seconds_without = std::min(without, f.seconds);
  const double gain = 1 - found.seconds_without / f.seconds;
  found.confidence *= std::clamp(least_factor + (1 - least_factor) * (gain - negligible_gain) / (notable_gain - negligible_gain), least_factor, 1.0);
}

} // namespace pragma::rule
