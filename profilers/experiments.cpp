// Differential profiling: the candidate runs once more under conditions that take one possible cause away, and the time that is gone was that cause's.
// Needs no counter. The runner changes what lies round the code (execution/run_conditions.hpp), never the code; both runs alternate. The shortest time of each counts
// once a second one confirms it; where neighbours of a virtual machine never let it, the median of the rounds' ratios. Nothing of this enters the candidate's own time.
#include "base/files.hpp"
#include "base/text.hpp"
#include "profilers/running.hpp"
#include "timing/quantile.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace pragma {

namespace {

constexpr int fewest_rounds = 5, most_rounds = 20; ///< of each of the two, alternating
constexpr double of_memory = 0.1;             ///< the same where all of the time is memory's, which neighbours use
constexpr int fewest_pairs = 10;              ///< of rounds, where their ratios decide
constexpr double quartile_error = 1.58;       ///< half of a median's 95% interval, in distances of the quartiles over the root of the number
constexpr double most_of_one_thread = 1.5;    ///< as below, where no team can have ended on one core
constexpr double most_of_usual = 1.3;         ///< the experiment's usual time over the measured one: above the spread of runs
constexpr double of_the_effect = 0.2;         ///< the same, where both times lie far apart: of their difference
constexpr auto teams_sleep = std::chrono::milliseconds(15); ///< threads of the other process wait actively for some milliseconds after its last call
constexpr double round_seconds = 0.012;       ///< at least one call
constexpr uint64_t page = 4096;
constexpr uint64_t most_pieces = 16'384;      ///< mappings of one process: the kernel allows 65,530 in all
constexpr double least_for_huge_pages = 1 << 20; ///< bytes; fewer pages than the first-level TLB has entries cost nothing

struct experiment {
  const char* name;                           ///< of the metric, which is the time in % of the time without
  run_conditions how;
  std::string changed;                        ///< for the note
  working_team team = working_team::as_measured;
};

bool floats(const tensor_spec& s) { return s.dtype == dtype::float32 || s.dtype == dtype::float64 || s.dtype == dtype::float16 || s.dtype == dtype::bfloat16; }

/// Bytes of each tensor, so that all of them lie in the first-level cache, else in the second; 0 where neither can be.
uint64_t fold_for(const collect_context& context, std::string& level) {
  uint64_t tensors = 0, bytes = 0;
  for (const auto* layout : {&context.ref.inputs_layout(), &context.ref.params_layout(), &context.ref.outputs_layout()})
    for (const auto& s : layout->specs)
      if (floats(s)) {
        ++tensors;
        bytes += s.bytes() * static_cast<uint64_t>(std::max(1, layout->slots));
      }
  if (tensors == 0) return 0;
  const uint64_t least = (bytes / most_pieces + page) / page * page;
  // AMD's first level finds a line by its linear address: pages that are one in memory push each other out of it, and only the second level holds them.
  const int64_t first_level = context.facts.vendor == "AuthenticAMD" ? 0 : context.facts.l1d_bytes;
  for (const auto& [name, size] : {std::pair<const char*, int64_t>{"L1", first_level}, {"L2", context.facts.l2_bytes}}) {
    const uint64_t room = static_cast<uint64_t>(std::max<int64_t>(0, size)) / 2 / tensors / page * page, fold = std::max(room, page);
    if (fold < least || fold * tensors * 4 > static_cast<uint64_t>(std::max<int64_t>(0, size)) * 3) continue;
    level = name;
    return std::min<uint64_t>(fold, 16 * page);
  }
  return 0;
}

std::vector<experiment> experiments_for(const collect_context& context) {
  std::vector<experiment> all;
  std::string level;
  if (const auto fold = fold_for(context, level); fold > 0) {
    run_conditions c;
    c.fold_bytes = fold;
    c.fold_reads = c.fold_writes = true;
    // Of several threads the outputs would share lines, which go back and forth between their cores.
    if (context.options.threads <= 1) all.push_back({"cached_time", c, "all tensors folded onto " + format_bytes(static_cast<double>(fold)) + " each, which " + level + " holds"});
    c.fold_writes = false;
    all.push_back({"cached_reads_time", c, "inputs folded onto " + format_bytes(static_cast<double>(fold)) + " each, which " + level + " holds"});
  }
  run_conditions flush, ones, huge;
  flush.flush_denormals = true;
  all.push_back({"flushed_time", flush, "denormals flushed to zero"});
  ones.ones = true;
  all.push_back({"ones_time", ones, "every input is 1"});
  huge.huge_pages = true;
  if (context.the_task.bytes >= least_for_huge_pages) all.push_back({"huge_pages_time", huge, "tensors on pages of 2 MiB"});
  if (context.options.threads > 1) {
    const auto threads = std::to_string(context.options.threads);
    if (has_a_fixed_team(context.the_candidate.source)) all.push_back({"one_processor_time", {}, "all " + threads + " threads on one processor instead of " + threads, working_team::on_one_processor});
    else all.push_back({"one_thread_time", {}, "one thread instead of " + threads, working_team::one_thread});
  }
  return all;
}

/// What each byte of the task costs in order: all inputs and parameters are read and all outputs written once, in the order of memory.
/// Compiled like a candidate, so that pages, threads and neighbours are those of the candidate's own calls. Sums are exclusive-ors: no value is slow.
constexpr const char* in_order_source = R"(#include "pragma_kernel.h"
#if defined(STREAMS) && defined(__x86_64__)
#include <immintrin.h>
#endif
typedef long long vec __attribute__((vector_size(64), aligned(1), may_alias));
static const int sizes[] = {4, 8, 2, 2, 8, 4, 2, 1, 1, 1};
static long bytes_of(const pragma_tensor* t) {
  long n = sizes[t->dtype];
  for (int i = 0; i < t->ndim; ++i) n *= t->shape[i];
  return n;
}
struct stream {
  char* at;
  long vectors;
};
static void reads(char* from, long n) {
  vec a = {}, b = {}, c = {}, d = {};
  for (; n >= 4; n -= 4, from += 256) a ^= *(vec*)from, b ^= *(vec*)(from + 64), c ^= *(vec*)(from + 128), d ^= *(vec*)(from + 192);
  for (; n > 0; --n, from += 64) a ^= *(vec*)from;
  a ^= b ^ c ^ d;
  __asm__ volatile("" : : "r"(&a) : "memory");
}
static void writes(char* to, long n) {
#if defined(STREAMS) && defined(__AVX512F__)
  for (long v = 0; v < n; ++v) _mm512_stream_si512((__m512i*)to + v, _mm512_setzero_si512());
#elif defined(STREAMS) && defined(__AVX__)
  for (long v = 0; v < 2 * n; ++v) _mm256_stream_si256((__m256i*)to + v, _mm256_setzero_si256());
#elif defined(STREAMS) && defined(__x86_64__)
  for (long v = 0; v < 4 * n; ++v) _mm_stream_si128((__m128i*)to + v, _mm_setzero_si128());
#else
  for (; n >= 4; n -= 4, to += 256) {
    *(vec*)to = *(vec*)(to + 64) = *(vec*)(to + 128) = *(vec*)(to + 192) = (vec){};
    __asm__ volatile("" : : : "memory"); // no call of memset
  }
  for (; n > 0; --n, to += 64) *(vec*)to = (vec){};
#endif
}
/// The part of each tensor that belongs to a piece; all go forward together, 1 KiB of each in turn, so that as many streams are under way as in a kernel that goes over all of them at once.
static void piece_of(const stream* all, int inputs, int count, long piece, long pieces) {
  const long step = 16;
  long longest = 0;
  for (int i = 0; i < count; ++i) {
    const long n = all[i].vectors * (piece + 1) / pieces - all[i].vectors * piece / pieces;
    longest = n > longest ? n : longest;
  }
  for (long done = 0; done < longest; done += step)
    for (int i = 0; i < count; ++i) {
      const long first = all[i].vectors * piece / pieces, left = all[i].vectors * (piece + 1) / pieces - first - done;
      if (left <= 0) continue;
      char* at = all[i].at + 64 * (first + done);
      if (i < inputs) reads(at, left < step ? left : step);
      else writes(at, left < step ? left : step);
    }
}
extern "C" void pragma_kernel(const pragma_args* args) {
  static stream all[MOST];
  int count = 0;
  long longest = 0;
  const pragma_tensor* groups[] = {args->inputs, args->params, args->outputs};
  const int counts[] = {args->n_inputs, args->n_params, args->n_outputs};
  for (int g = 0; g < 3; ++g)
    for (int i = 0; i < counts[g] && count < MOST; ++i, ++count) {
      all[count].at = (char*)groups[g][i].data;
      all[count].vectors = bytes_of(groups[g] + i) / 64;
      longest = all[count].vectors > longest ? all[count].vectors : longest;
    }
  const long pieces = longest / 1024 + 1;
#pragma omp parallel for num_threads(args->threads) schedule(static) if (args->threads > 1)
  for (long p = 0; p < pieces; ++p) piece_of(all, args->n_inputs + args->n_params, count, p, pieces);
#if defined(STREAMS) && defined(__x86_64__)
  _mm_sfence();
#endif
}
)";

constexpr int most_tensors = 1024; ///< MOST of the source

/// All tensors together are what the task must move: an embedding's table, of which a call needs some rows, is not.
bool each_byte_is_needed(const collect_context& context) {
  double bytes = 0;
  int tensors = 0;
  for (const auto* layout : {&context.ref.inputs_layout(), &context.ref.params_layout(), &context.ref.outputs_layout()})
    for (const auto& s : layout->specs) {
      bytes += static_cast<double>(s.bytes());
      ++tensors;
    }
  return tensors <= most_tensors && bytes > 0 && bytes <= 1.05 * context.the_task.bytes;
}

/// One round more; false when the candidate failed.
bool run_round(running_candidate& running, std::vector<double>& times, bool in_a_team) {
  if (in_a_team) {
    std::this_thread::sleep_for(teams_sleep);
    if (!running.call(1)) return false; // wakes its own team
  }
  const auto calls = running.calls_for(round_seconds);
  if (!running.call(calls)) return false;
  const double seconds = running.runner.last_call().seconds / static_cast<double>(calls);
  times.push_back(seconds);
  return seconds > 0;
}

/// kB of anonymous huge pages that a process has; the kernel need not give any.
bool has_huge_pages(int pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  const auto at = text ? text->find("AnonHugePages:") : std::string::npos;
  return at != std::string::npos && std::atoll(text->c_str() + at + 14) > 0;
}

/// experiment.in_order_time: with the plain or the streaming stores, whichever take less; and experiment.streaming_time, the latter's time of the former's.
void in_order_metric(const collect_context& context, running_candidate& usual, source_result& out) {
  if (!each_byte_is_needed(context)) return;
  std::vector<metric> both;
  for (const bool streams : {false, true}) {
#if !defined(__x86_64__)
    if (streams) continue; // the compilers have no plain word for such stores elsewhere
#endif
    candidate c;
    c.source = in_order_source;
    c.compiler = context.the_candidate.compiler; // which is here
    c.flags = {"-O3", "-march=native", "-DMOST=" + std::to_string(most_tensors)};
    if (context.options.threads > 1) c.flags.push_back("-fopenmp"); // clang may have none that can be linked
    if (streams) c.flags.push_back("-DSTREAMS");
    build_options how;
    how.cancel = context.options.cancel;
    const auto built = build_candidate(c, how);
    if (!built) return out.missing.push_back("experiments: in_order_time: " + built.error().message);
    const collect_context same{context.the_task, context.the_candidate, *built, context.ref, context.time, context.facts, context.options, context.watch};
    auto running = start_running(same);
    if (!running) return out.missing.push_back("experiments: in_order_time: " + running.error().message);
    const auto times = in_turns(context, usual, *running, of_memory);
    if (!times) return out.missing.push_back("experiments: in_order_time: " + times.error().message);
    both.push_back(experiment_metric("experiment.in_order_time", *times, std::string("only its bytes, each input read and each output written once, in order") + (streams ? ", past the caches" : "")));
  }
  out.metrics.push_back(*std::min_element(both.begin(), both.end(), [](const metric& a, const metric& b) { return a.value < b.value; }));
  if (both.size() < 2) return;
  auto streaming = both[1];
  streaming.name = "experiment.streaming_time";
  streaming.value = 100 * both[1].value / both[0].value;
  streaming.note = "its bytes alone, past the caches instead of through them";
  out.metrics.push_back(std::move(streaming));
}

} // namespace

expected<compared_rounds> in_turns(const collect_context& context, running_candidate& usual, running_candidate& changed, double spread) {
  const bool in_a_team = context.options.threads > 1;
  std::vector<double> before, after;
  std::optional<compared_rounds> found;
  for (int round = 0; round < most_rounds && !found; ++round) {
    if (!run_round(usual, before, in_a_team)) return fail(ec::candidate_failed, "the usual run did not come back");
    if (!run_round(changed, after, in_a_team)) return fail(ec::measurement_failed, "the candidate did not come back");
    if (round + 1 >= fewest_rounds) found = compare_rounds(before, after, spread);
  }
  if (!found) return fail(ec::measurement_failed, "times differ from round to round: other work was running");
  if (!under_usual_conditions(found->usual, context.time.candidate_seconds, context.options.threads))
    return fail(ec::measurement_failed, "the usual run took " + format_seconds(found->usual) + ", and " + format_seconds(context.time.candidate_seconds) + " where it was measured");
  return *found;
}

metric experiment_metric(const std::string& name, const compared_rounds& times, const std::string& changed) {
  return {name, 100 * times.changed / times.usual, "%", "experiment", provenance::measured, changed + ": " + format_seconds(times.changed) + " instead of " + format_seconds(times.usual)};
}

bool has_a_fixed_team(const std::string& source) {
  const auto has = [&](const char* word) { return source.find(word) != std::string::npos; };
  return has("omp_get_thread_num") && !has("omp_get_num_threads") && !has("->threads") && !has(".threads");
}

bool under_usual_conditions(double usual_seconds, double measured_seconds, int threads) { return usual_seconds <= (threads > 1 ? most_of_usual : most_of_one_thread) * measured_seconds; }

std::optional<compared_rounds> compare_rounds(const std::vector<double>& usual, const std::vector<double>& changed, double spread) {
  const auto shortest = [](std::vector<double> times) {
    std::partial_sort(times.begin(), times.begin() + 2, times.end());
    return std::pair(times[0], times[1]);
  };
  if (usual.size() < 2 || usual.size() != changed.size()) return std::nullopt;
  const auto allowed = [&](double ratio) { return std::max(spread, of_the_effect * std::abs(ratio - 1)); };
  const auto [before, before_again] = shortest(usual);
  const auto [after, after_again] = shortest(changed);
  if (std::max(before_again / before, after_again / after) - 1 <= allowed(after / before)) return compared_rounds{before, after};
  if (static_cast<int>(usual.size()) < fewest_pairs) return std::nullopt;
  std::vector<double> ratios;
  for (size_t i = 0; i < usual.size(); ++i) ratios.push_back(changed[i] / usual[i]);
  const double ratio = median_of(ratios), quarters = quantile(ratios, 0.75) - quantile(ratios, 0.25);
  if (quartile_error * quarters / std::sqrt(static_cast<double>(ratios.size())) > allowed(ratio) * ratio) return std::nullopt;
  const double middle = median_of(usual);
  return compared_rounds{middle, middle * ratio};
}

void experiment_metrics(const collect_context& context, source_result& out) {
  const auto leave_out = [&](const std::string& why) { out.missing.push_back("experiments: " + why); };
  if (!(context.time.candidate_seconds > 0) || context.time.candidate_seconds > longest_tried_call) return leave_out("a call takes longer than " + format_seconds(longest_tried_call));
  auto usual = start_running(context);
  if (!usual) return leave_out("cannot run the candidate: " + usual.error().message);
  in_order_metric(context, *usual, out);
  for (const auto& one : experiments_for(context)) {
    if (context.options.cancel && context.options.cancel->load()) return;
    auto changed = start_running(context, one.how, one.team);
    if (!changed) { // a kernel may rely on what was changed: that says nothing of it
      leave_out(std::string(one.name) + ": " + changed.error().message);
      continue;
    }
    if (one.how.fold_bytes > 0) changed->slots = 1;
    if (one.how.huge_pages && !has_huge_pages(changed->runner.pid())) {
      leave_out("the system gave no pages of 2 MiB");
      continue;
    }
    const auto times = in_turns(context, *usual, *changed, settled_experiment);
    if (times) out.metrics.push_back(experiment_metric(std::string("experiment.") + one.name, *times, one.changed));
    else leave_out(std::string(one.name) + ": " + times.error().message);
    if (!times && times.error().code == ec::candidate_failed) return;
  }
}

void apart_metric(const collect_context& context, source_result& out) {
  if (!(context.time.candidate_seconds > 0) || context.time.candidate_seconds > longest_tried_call) return;
  auto usual = start_running(context);
  run_conditions how;
  how.apart = true;
  auto changed = start_running(context, how);
  const auto times = usual && changed ? in_turns(context, *usual, *changed, settled_experiment) : fail(ec::measurement_failed, "cannot run the candidate");
  if (times) out.metrics.push_back(experiment_metric("experiment.apart_time", *times, "inputs and outputs at other places of their pages"));
  else out.missing.push_back("experiments: apart_time: " + times.error().message);
}

} // namespace pragma
