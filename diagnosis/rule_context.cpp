#include "diagnosis/rule_context.hpp"

#include "base/text.hpp"
#include "diagnosis/core_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <regex>
#include <set>

namespace pragma::rule {

namespace {

// How far one kind of evidence carries at its full strength. Several pieces add up as independent witnesses do:
// 1 - product of (1 - weight x strength). Without anything measured 0.7 is the ceiling (finding.hpp).
constexpr double weight_of[] = {0.9, 0.6, 0.5}; // measured, simulated, static
constexpr double ceiling_measured = 0.97, ceiling_unmeasured = 0.7;
constexpr double telling_share = 0.3;           ///< of the time: a loop with less is not what a finding about the core should be read from
constexpr double accesses_per_cycle = 2;        ///< of the first cache, on all cores since Haswell and Zen
constexpr double once = 1.2;                    ///< traffic over the bytes that must move: nothing to be saved
constexpr double nearly_all = 0.8;              ///< of the time
constexpr double minor_phase = 0.1;             ///< of the time: a loop of which nothing is known that does not spoil the sum
constexpr double mostly_vectors = 90;           ///< % of a loop's arithmetic
constexpr double bonus_of_getting_worse = 0.2; ///< of what is missing to certainty

bool mentions(std::string_view source, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](auto w) { return source.find(w) != std::string_view::npos; });
}

/// Source without comments, so that words in them are not taken for code.
std::string code_only(const std::string& source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source.compare(i, 2, "//") == 0) {
      while (i < source.size() && source[i] != '\n') ++i;
      if (i < source.size()) out += '\n';
    } else if (source.compare(i, 2, "/*") == 0) {
      const auto end = source.find("*/", i + 2);
      if (end == std::string::npos) break;
      i = end + 1;
    } else {
      out += source[i];
    }
  }
  return out;
}

/// Distinct variables in `x += ...`, `x = fmadd(.., x)`, `x = std::max(x, ...)`; a vector of them counts as several.
int count_accumulators(const std::string& code) {
  static constexpr size_t longest = 256 << 10; // std::regex recurses; a kernel is far shorter
  if (code.size() > longest) return 0;
  static const std::regex adds(R"((\b[A-Za-z_]\w*)(\[[^\]\n]{1,40}\])?\s*\+=)");
  static const std::regex folds(R"((\b[A-Za-z_]\w*)(\[[^\]\n]{1,40}\])?\s*=\s*(?:std::|_mm\d*_)(?:max|min|fma|fmadd|add|mul)\w*\s*\([^;\n]{0,160}\b\1\b)");
  static const std::regex steps(R"(^(?:i|j|k|l|m|n|r|c|row|col|p|ptr)$)"); // loop counters are no accumulators
  std::set<std::string> names;
  bool array = false;
  for (const auto* pattern : {&adds, &folds})
    for (std::sregex_iterator it(code.begin(), code.end(), *pattern), end; it != end; ++it) {
      if (std::regex_match((*it)[1].str(), steps)) continue;
      names.insert((*it)[1].str());
      array = array || (*it)[2].matched;
    }
  return array ? std::max<int>(4, static_cast<int>(names.size())) : static_cast<int>(names.size());
}

/// A last level whose bandwidth is the memory's: a virtual machine that is told of a cache which others use as well. How much of it is ours nobody
/// says. 16 times the second level is our choice: in a plain copy on one such machine outputs of that size lost nothing by plain stores, twice as much did.
bool shared_with_others(const machine_limits& limits) {
  const auto& gbs = limits.copy_gbs;
  return gbs.size() == 4 && gbs[2] < 1.3 * gbs[3];
}

/// Of the measured time, what the core needs by the time table with all data in L1.
double predicted_core_share(const facts& f) {
  double core = 0;
  for (const auto& p : f.table.phases) {
    if (p.line > 0 && p.core_seconds <= 0 && f.table.share(p) >= minor_phase) return 0; // what is known of the rest says nothing of this loop
    core += p.core_seconds;
  }
  return f.seconds > 0 ? core / f.seconds : 0;
}

/// The same by the experiment with all data in the first cache. Streaming stores go to memory wherever their pages lie. Folded inputs repeat, and a
/// predictor of branches learns that: the time that depends on the values is taken out of both. Folded outputs of several threads lie in the same lines,
/// which then go back and forth between the cores: of those only the inputs are folded.
std::optional<double> measured_core_share(const facts& f) {
  const auto cached = f.left_by(f.in.threads > 1 && f.parallel_source ? "experiment.cached_reads_time" : "experiment.cached_time");
  if (!cached || f.streaming_stores) return std::nullopt;
  const double values = f.left_by("experiment.ones_time").value_or(1);
  return values < at(limit::without_surprises) / 100 ? std::min(1.0, *cached / values) : *cached;
}

} // namespace

const char* word(provenance how) {
  return how == provenance::measured ? "measured" : how == provenance::simulated ? "simulated" : "static";
}

std::string short_number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, std::fabs(value) >= 100 && std::fabs(value) < 1e6 ? "%.0f" : "%.3g", value);
  return buffer;
}

facts::facts(const diagnosis_input& input) : in(input) {
  const auto& p = *in.current;
  device = p.backend != "cpu" || (in.limits && in.limits->backend != "cpu");
  seconds = p.time.candidate_seconds > 0 ? p.time.candidate_seconds : value_or("seconds_per_call", 0);
  slower_than_best = in.best && in.best->time.speedup.value > 0 && p.time.speedup.value > 0 &&
                     p.time.speedup.value < in.best->time.speedup.value;
  elements = in.bytes / 4;
  const auto code = code_only(in.source);
  streaming_stores = mentions(code, {"_stream_", "nontemporal"}) || value_or("hot_loop.streaming_stores", 0) > 0;
  prefetches = mentions(code, {"_prefetch"});
  parallel_source = mentions(code, {"omp parallel", "std::thread", "pthread_create", "std::async", "std::jthread"});
  accumulators = count_accumulators(code);
  if (in.limits) {
    const auto& caches = in.limits->cache_bytes;
    for (auto bytes : caches) last_level_bytes = std::max(last_level_bytes, bytes);
    if (caches.size() == 3 && shared_with_others(*in.limits)) last_level_bytes = std::min(last_level_bytes, 16 * caches[1]);
  }
  if (in.written_bytes >= 0) {
    written_bytes = in.written_bytes;
  } else if (auto reads = value("callgrind.Dr"), writes = value("callgrind.Dw"); reads && writes && *reads + *writes > 0) {
    written_bytes = in.bytes * *writes / (*reads + *writes); // vector loads and stores are as wide as each other
  }
  if (in.limits && seconds > 0 && (in.bytes > 0 || in.flops > 0)) {
    roof = place_on_roofline(seconds, in, *in.limits);
    if (roof.skips_work) roof.share = roof.needed_share; // of the work as written nothing is known then
    has_roof = roof.attainable_seconds > 0;
    const auto at = roof.limit.find(" bandwidth");
    at_bandwidth = at != std::string::npos;
    if (at_bandwidth) level = roof.limit.substr(0, at);
    const auto in_order = value("experiment.in_order_time");
    bytes_measured = in_order.has_value();
    if (has_roof) least_seconds = std::max(roof.likely_seconds, in_order.value_or(0) / 100 * seconds);
  }
  if (!device) loops = core::loops_of(p);
  if (!device) table = table_of(in);
  if (value_or("hot_loop.calls", 0) > 0) mca_trust = 0.4;
  else core_share = predicted_core_share(*this);
  cached = measured_core_share(*this);
  if (cached) core_share = *cached;
  const bool from_memory = level.empty() || level == "memory";
  traffic_ratio = std::max(1.0, value_or(from_memory ? "callgrind.ll_traffic_ratio" : "callgrind.l1_traffic_ratio", 1));
}

const metric* facts::first(std::initializer_list<std::string_view> names) const {
  for (const auto name : names)
    if (const auto* m = in.current->find(name)) return m;
  return nullptr;
}

std::optional<double> facts::sum(std::initializer_list<std::string_view> names) const {
  std::optional<double> total;
  for (const auto name : names)
    if (const auto v = value(name)) total = total.value_or(0) + *v;
  return total;
}

std::optional<double> facts::left_by(std::string_view experiment) const {
  const auto percent = value(experiment);
  return percent ? std::optional<double>(std::clamp(*percent / 100, 0.0, 1.0)) : std::nullopt;
}

std::optional<double> facts::unmodelled() const {
  if (!cached || mca_trust < 1) return std::nullopt;
  double modelled = 0;
  for (const auto& p : table.phases) {
    const bool known = p.line > 0 && p.core_seconds > 0;
    if (p.line > 0 && !known && table.share(p) >= minor_phase) return std::nullopt;
    modelled += known ? p.core_seconds : p.seconds; // what lies outside of the loops is not theirs
  }
  if (modelled > refuted_by * seconds) return std::nullopt;
  return seconds > 0 && modelled > 0 ? std::optional<double>(std::max(0.0, *cached - modelled / seconds)) : std::nullopt;
}

double facts::split_cost() const {
  const auto share = value("samples.split_share");
  if (!share || loops.empty() || loops.front().cycles <= 0 || loops.front().vector_bits < 128) return 0;
  const auto& l = loops.front();
  const double second_accesses = *share / 100 * (l.loaded_bytes + l.stored_bytes) * 8 / l.vector_bits / accesses_per_cycle;
  return l.share * second_accesses / (l.cycles + second_accesses);
}

bool facts::moves_bytes_once() const {
  if (const auto traffic = value(level == "memory" ? "callgrind.ll_traffic_ratio" : "callgrind.l1_traffic_ratio")) return *traffic < once;
  const bool in_order = value("samples.far_share") && *value("samples.far_share") + value_or("samples.strided_share", 0) <= 0;
  double in_loops = 0;
  for (const auto& l : loops) in_loops += l.share;
  return in_order && !contracts() && !loops.empty() && loops.front().share >= nearly_all * in_loops;
}

bool facts::goes_in_order() const {
  const auto strided = value("samples.strided_share");
  return strided && severity(limit::strided_share, *strided) <= 0 && !loops.empty() &&
         std::all_of(loops.begin(), loops.end(), [](const loop_cost& l) { return l.share < minor_phase || (l.gathers == 0 && l.vector_share >= mostly_vectors); });
}

double facts::outside_scalar_part() const {
  const double outside = value_or("samples.outside_loops_share", 0);
  return outside > 0 ? std::clamp(1 - value_or("samples.outside_vectors_share", 0) / outside, 0.0, 1.0) : 1;
}

bool facts::calls_its_own() const {
  const double outside = value_or("samples.outside_loops_share", 0);
  return !loops.empty() && loops.front().calls > 0 && severity(limit::scalar_time, outside) > 0 && value_or("samples.library_share", 0) < outside / 2;
}

double facts::own_loops_share() const {
  double sum = 0;
  for (const auto& l : loops) sum += l.how == provenance::measured ? l.share : 0;
  return sum;
}

std::optional<double> facts::storing() const {
  if (in.threads > 1 && parallel_source) return std::nullopt; // outputs of several threads are not folded
  const auto reads = left_by("experiment.cached_reads_time");
  return cached && reads ? std::optional<double>(std::max(0.0, *reads - *cached)) : std::nullopt;
}

std::optional<double> facts::thread_gain() const {
  const auto one = value("experiment.one_thread_time");
  return one && in.threads > 1 ? std::optional<double>(std::clamp(*one / 100 / in.threads, 0.0, 1.0)) : std::nullopt;
}

std::optional<double> facts::processor_gain() const {
  const auto one = value("experiment.one_processor_time");
  return one && in.threads > 1 ? std::optional<double>(std::clamp(*one / 100 / in.threads, 0.0, 1.0)) : thread_gain();
}

bool facts::has_flag(std::string_view start) const {
  return std::any_of(in.flags.begin(), in.flags.end(), [&](const std::string& flag) { return flag.rfind(start, 0) == 0; });
}

double facts::operations_per_element() const {
  if (loops.empty()) return 0;
  const auto& l = loops.front();
  // A number stored at the end of a row of vectors, or loaded for all of them, is no element of the loop.
  const double vector = std::max(32, l.vector_bits) / 8.0, moved = l.stored_bytes >= vector ? l.stored_bytes : l.loaded_bytes >= vector ? l.loaded_bytes : 0;
  return moved > 0 ? l.flops / (moved / 4) : 0;
}

const time_phase* facts::longest_loop() const {
  const auto found = std::find_if(table.phases.begin(), table.phases.end(), [](const time_phase& p) { return p.line > 0; });
  return found == table.phases.end() ? nullptr : &*found;
}

bool facts::scalar_hot_loop() const {
  if (auto share = value("hot_loop.vector_share")) return severity(limit::scalar_share, 100 - *share) > 0;
  auto bits = value("hot_loop.vector_bits");
  return bits && *bits == 0;
}

bool facts::vector_hot_loop() const {
  if (auto share = value("hot_loop.vector_share")) return severity(limit::scalar_share, 100 - *share) == 0;
  auto bits = value("hot_loop.vector_bits");
  return bits && *bits > 0;
}

double facts::core_weight() const {
  // Where the loop would take far less by the model even with its data in L1, what the model has (units, chains) is not what takes the time.
  // What is said of a loop counts by the time that it takes.
  const bool sampled = value("samples.count") && !loops.empty();
  const double called = sampled && loops.front().calls > 0 ? value_or("samples.library_share", 0) / 100 : 0; // what it calls is its own
  const double loop_weight = sampled ? std::clamp((loops.front().share + called) / telling_share, 0.3, 1.0) : 1;
  if (cached) return loop_weight * std::clamp(*cached * 100 / at(limit::core_share), 0.15, 1.0) * std::clamp(1.3 - 1.5 * unmodelled().value_or(0) / std::max(0.01, *cached), 0.3, 1.0);
  double weight = loop_weight;
  // Whichever side needs more of the time by the model is the limit: bandwidth that the core's own time covers is not what it waits for.
  if (has_roof && at_bandwidth && core_share < roof.share * traffic_ratio) weight *= std::clamp((1 - std::min(1.0, roof.share * traffic_ratio)) / 0.5, 0.15, 1.0);
  if (core_share > 0) weight *= std::clamp(core_share * 100 / at(limit::core_share), 0.15, 1.0);
  return weight;
}

double facts::memory_weight() const {
  if (cached) return std::clamp(*waiting() * 100 / at(limit::waiting_share), 0.15, 1.0);
  const double moving = roof.share * traffic_ratio;
  if (!at_bandwidth || core_share * 100 < at(limit::core_share) || core_share <= moving) return 1;
  return std::clamp(moving / std::min(1.0, core_share), 0.15, 1.0) * 0.7;
}

bool evidence_for::metric(std::string_view name, limit which, const std::string& reading, double weight) {
  const auto* m = f_.in.current->find(name);
  if (!m) return false;
  const double strength = severity(which, m->value);
  if (strength <= 0) return false;
  evidence e;
  e.metric = m->name;
  e.value = m->value;
  e.unit = m->unit;
  const auto unit = m->unit.empty() || m->unit == "count" || m->unit == "ratio" ? "" : " " + m->unit;
  e.text = m->name + " = " + short_number(m->value) + unit + " (" + word(m->how);
  bool got_worse = false;
  if (const auto* b = f_.in.best ? f_.in.best->find(name) : nullptr) {
    e.best_value = b->value;
    e.has_best = true;
    e.text += "; best version: " + short_number(b->value) + unit;
    const bool high_is_bad = row(which).full > row(which).value;
    got_worse = high_is_bad ? m->value >= b->value * at(limit::worsened) : m->value * at(limit::worsened) <= b->value;
  }
  e.text += ")";
  if (!reading.empty()) e.text += ": " + reading;
  add(std::move(e), m->how, strength * weight, got_worse);
  return true;
}

void evidence_for::derived(std::string name, double value, std::string unit, provenance how, double strength, std::string text, double best, bool has_best) {
  if (strength <= 0) return;
  add({std::move(name), value, std::move(unit), best, has_best, text + " (" + word(how) + ")"}, how, strength, false);
}

void evidence_for::add(evidence e, provenance how, double strength, bool got_worse) {
  unexplained_ *= 1 - weight_of[static_cast<size_t>(how)] * std::min(1.0, strength);
  measured_ = measured_ || how == provenance::measured;
  if (got_worse && worse_.empty()) worse_ = e.metric;
  finding_.proof.push_back(std::move(e));
}

std::optional<finding> evidence_for::finish(std::string why, std::vector<std::string> remedies) {
  if (!any()) return std::nullopt;
  double confidence = (1 - unexplained_) * doubt_;
  if (f_.slower_than_best && !worse_.empty()) {
    confidence += (1 - confidence) * bonus_of_getting_worse;
    why += " It got worse: " + worse_ + " is further off than in the best version, and this version is slower.";
  }
  finding_.confidence = std::min(confidence, measured_ ? ceiling_measured : ceiling_unmeasured);
  if (finding_.confidence < at(limit::least_confidence)) return std::nullopt;
  finding_.why = std::move(why);
  finding_.remedies = std::move(remedies);
  return finding_;
}

} // namespace pragma::rule
