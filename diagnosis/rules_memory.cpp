// Rules about the memory side: the measured roofline, traffic, stores, access patterns.
#include "base/text.hpp"
#include "diagnosis/core_model.hpp"
#include "diagnosis/rule_context.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::rule {

namespace {

constexpr double line_bytes = 64;
constexpr double own_loops = 0.1;          ///< of the time: a kernel that only copies has none, and copying is its work
constexpr double lines_are_used = 0.5;     ///< of the confidence of strides, and of copies, whose lines are fetched about once
constexpr double no_alignment = 0.6;       ///< of the confidence, where what is told costs time, and whether the kernel can do without is not known
constexpr double most_slide = 50;          ///< percent of the accesses across lines that no alignment mends: above it the window is told of, and not the rows
constexpr double not_tried = 0.7;          ///< of the confidence, where addresses agree and nobody knows whether it costs anything
constexpr double notable_saving = 0.1;     ///< of the time
constexpr double not_the_tensors = 0.4;    ///< of the confidence: it can still be a buffer of the kernel's own
constexpr double notable_split = 0.08;     ///< of the time: from here on the cost by the hot loop's loads alone is evidence

/// "11.8 GB/s of the 12.9 GB/s that memory gives this mix of reads and writes"
std::string bandwidth_text(const facts& f) {
  const double possible = f.in.bytes / f.roof.attainable_seconds / 1e9;
  return "achieved " + short_number(f.roof.gbs) + " GB/s of the " + short_number(possible) + " GB/s measured for " +
         (f.level == "memory" ? "memory" : "the " + f.level + " cache");
}

/// What an experiment says of how much data costs at all: with the tensors in the first cache the time is gone.
void add_waiting(const facts& f, evidence_for& e) {
  if (const auto waiting = f.waiting())
    e.derived("experiment.cached_time", 100 * *f.cached, "%", provenance::measured, severity(limit::waiting_share, 100 * *waiting),
              "with all tensors in the first cache a call takes " + whole_percent(*f.cached) + " of the time: the rest waits for data");
}

/// Traffic costs nothing where the time does not depend on where the data lies. Memory of the candidate's own is not folded: pages that it touches count.
void scale_by_waiting(const facts& f, evidence_for& e) {
  if (f.cached && f.value_or("software.page_faults", 0) < at(limit::page_faults)) e.scale(f.memory_weight());
}

/// Time that the units, the chains and the caches do not explain: only then a cause that none of these models has can cost anything.
void add_unmodelled(const facts& f, evidence_for& e) {
  const auto rest = f.unmodelled();
  if (!rest) return e.scale(0.5);
  const double strength = severity(limit::unmodelled_share, 100 * *rest);
  if (strength <= 0) return e.scale(0.3);
  e.derived("experiment.cached_time", 100 * *f.cached, "%", provenance::measured, strength,
            "with all data in the first cache " + whole_percent(*rest) + " of the time is more than units and chains account for");
}

double best_gbs(const facts& f) {
  return f.in.best && f.in.best->time.candidate_seconds > 0 ? f.in.bytes / f.in.best->time.candidate_seconds / 1e9 : 0;
}

void add_bandwidth(const facts& f, evidence_for& e, double strength) {
  const double best = best_gbs(f);
  e.derived("achieved_gbs", f.roof.gbs, "GB/s", provenance::measured, strength, bandwidth_text(f), best, best > 0);
}

} // namespace

std::optional<finding> at_roofline(const facts& f) {
  if (!f.has_roof) return std::nullopt;
  evidence_for e(f, bottleneck::at_roofline);
  const double share = f.roof.share * 100;
  const double strength = severity(limit::at_roofline, share);
  if (strength <= 0) return std::nullopt;
  e.derived("roofline_share", share, "%", provenance::measured, 1,
            "one call takes " + format_seconds(f.seconds) + "; " + f.roof.limit + " allows " + format_seconds(f.roof.attainable_seconds) + " at the least");
  e.result().level = f.level;
  const bool suspect = f.roof.share > 1.05;
  return e.finish("The kernel runs at " + format_number(share, 0) + "% of the measured " + f.roof.limit + ": the hardware is the limit, not the code." +
                      (suspect ? " More than 100% means that the limit was measured too low, or that not all the work is done: measure the roofline again." : ""),
                  {"Stop here, or change what is computed: fewer bytes (a narrower dtype, fusion with the neighbouring operations).",
                   suspect ? "Measure the machine again with `pragma hardware --again`." : "More threads, where the limit is one core's bandwidth."});
}

std::optional<finding> too_many_passes(const facts& f) {
  evidence_for e(f, bottleneck::too_many_passes);
  if (severity(limit::stride_traffic, f.value_or("callgrind.l1_traffic_ratio", 1)) > 0 && (f.contracts() || !f.goes_in_order())) return std::nullopt; // strided_access says it, or a product reads its operands often
  double ratio = 1;
  std::string level;
  if (e.metric("callgrind.ll_traffic_ratio", limit::passes, "traffic to memory over the bytes that must move")) {
    ratio = *f.value("callgrind.ll_traffic_ratio");
    level = "memory";
  } else if (e.metric("callgrind.l1_traffic_ratio", limit::passes, "traffic into L1d over the bytes that must move")) {
    ratio = *f.value("callgrind.l1_traffic_ratio");
    level = "L2"; // or beyond: only L1 and the last level are simulated
  }
  if (f.in.bytes > 0 && (f.level == "memory" || f.level.empty())) {
    // Hardware counters of misses leave out what the prefetcher brought: what they do show is certain.
    for (const char* name : {"cache-misses", "L1-dcache-load-misses"})
      if (auto misses = f.value(name)) {
        const double measured = *misses * line_bytes / f.in.bytes;
        e.derived(name, *misses, "count", provenance::measured, severity(limit::passes, measured),
                  short_number(*misses) + " missed lines are " + short_number(measured) + " times the bytes that must move");
        ratio = std::max(ratio, measured);
      }
  }
  const bool copies = f.own_loops_share() >= own_loops && e.metric("samples.moving_share", limit::library_moving, "the C library copies or fills memory, a pass of its own over it");
  if (!e.any()) return std::nullopt;
  // The bytes that really move, set against the measured bandwidth: then it is also what takes the time.
  if (f.at_bandwidth)
    e.derived("roofline_share x traffic", f.roof.share * ratio * 100, "%", provenance::measured, severity(limit::bandwidth_share, f.roof.share * ratio * 100),
              "the bytes that really move take " + whole_percent(std::min(1.0, f.roof.share * ratio)) + " of the measured " + f.roof.limit);
  if (!copies) scale_by_waiting(f, e); // what copying takes was seen
  // Each byte comes into L1 once, copy or not: what the copy waits for, the loop behind it would wait for.
  else if (const auto traffic = f.value("callgrind.l1_traffic_ratio"); traffic && severity(limit::passes, *traffic) <= 0) e.scale(lines_are_used);
  e.result().level = level.empty() ? f.level : level;
  return e.finish(ratio > 1 ? "The data travels " + short_number(ratio) + " times although each byte is needed once: the kernel passes over it again after it has left the cache."
                            : "Memory is cleared or copied in passes of their own beside the kernel's loops, although each byte is needed once.",
                  {"Fuse the passes: compute running statistics (online maximum and sum, Welford's mean and variance, sum and sum of squares) in one pass.",
                   "Work through one row or tile completely while it is in L1 or L2 before going to the next one.",
                   "Keep intermediate results in registers or in a small buffer per row instead of a full-size array.",
                   "Recompute cheap values in the second pass rather than storing and loading them."});
}

std::optional<finding> strided_access(const facts& f) {
  evidence_for e(f, bottleneck::strided_access);
  // A product reads its operands many times: where its loads go in order, traffic is reuse, and no line is fetched in vain.
  const bool reuse = f.goes_in_order() || (f.contracts() && f.value("samples.strided_share") && severity(limit::strided_share, *f.value("samples.strided_share")) <= 0);
  if (!reuse) e.metric("callgrind.l1_traffic_ratio", limit::stride_traffic, "most of each 64-byte line is fetched and not used");
  e.metric("samples.strided_share", limit::strided_share, "loads that go to another line at each trip and take less than a line there");
  const auto loads = f.value("callgrind.Dr"), misses = f.value("callgrind.D1mr");
  const bool scalar_loads = f.scalar_hot_loop() && f.value_or("hot_loop.vector_bits", 0) <= 0; // a vector's load misses more often
  if (scalar_loads && loads && misses && *loads > 0) {
    const double rate = *misses / *loads * 100;
    e.derived("callgrind.D1mr / callgrind.Dr", rate, "%", provenance::simulated, severity(limit::stride_miss_rate, rate),
              short_number(rate) + "% of the scalar loads miss L1d, where sequential float32 would miss 6%");
  }
  if (scalar_loads) e.metric("l1d_miss_rate", limit::stride_miss_rate, "sequential scalar loads would miss 6%");
  if (const auto gathers = f.value("hot_loop.gathers"); gathers && *gathers > 0)
    e.derived("hot_loop.gathers", *gathers, "count", provenance::static_analysis, 0.9, short_number(*gathers) + " gather instructions in the hot loop load one element each");
  if (e.any()) add_waiting(f, e);
  scale_by_waiting(f, e);
  // The rest of each line is used before it is gone from the first level: nothing is fetched in vain, and what is left are misses in another order than the prefetcher likes.
  const auto traffic = f.value("callgrind.l1_traffic_ratio");
  if (traffic && severity(limit::stride_traffic, *traffic) <= 0 && f.value_or("hot_loop.gathers", 0) <= 0) e.scale(lines_are_used);
  e.result().level = f.level;
  if (auto line = f.value("hot_loop.line")) e.result().line = static_cast<int>(*line);
  return e.finish("Neighbouring iterations touch elements that lie far apart, so each cache line is fetched for little of its content and SIMD loads need gathers.",
                  {"Reorder the loops so that the innermost one runs over the last (contiguous) dimension; for a reduction over another dimension keep one accumulator per column in a row of registers.",
                   "Process several neighbouring columns at once, so that a whole 64-byte line is used on each visit.",
                   "Tile both dimensions so that the touched lines stay in L1; transpose a tile in registers or in a small buffer where both orders are needed.",
                   "Hoist index arithmetic and use plain pointers with unit stride, so that the compiler sees contiguous access."});
}

std::optional<finding> store_bandwidth(const facts& f) {
  if (f.streaming_stores || f.written_bytes <= 0 || f.in.bytes <= 0 || f.last_level_bytes <= 0) return std::nullopt;
  const auto streamed = f.value("experiment.streaming_time");
  const double gains = streamed ? severity(limit::with_streaming, *streamed) : 0;
  if (streamed && gains <= 0) return std::nullopt;
  // Outputs stay in a cache until the next call only beside all that the call reads; up to twice its size a part of them does. How much of a cache a virtual machine has it may not know.
  if (!streamed && f.in.bytes <= 2 * static_cast<double>(f.last_level_bytes)) return std::nullopt;
  if (f.has_roof && f.level == "L1") return std::nullopt;
  const double stored = f.written_bytes / f.in.bytes;
  const double weight = severity(limit::stored_share, stored * 100);
  if (weight <= 0) return std::nullopt;
  evidence_for e(f, bottleneck::store_bandwidth_bound);
  e.derived("source", f.written_bytes, "bytes", provenance::static_analysis, weight,
            format_bytes(f.written_bytes) + " are written per call, which moves " + format_bytes(f.in.bytes) + " (the last-level cache: " + format_bytes(static_cast<double>(f.last_level_bytes)) + "), and no store is a streaming one");
  if (streamed) e.metric("experiment.streaming_time", limit::with_streaming, "its bytes alone take less time past the caches than through them");
  // What its bytes take alone is what stores can save a part of.
  if (const auto alone = f.left_by("experiment.in_order_time"); streamed && alone && *alone * (100 / *streamed - 1) < notable_saving) e.scale(0.3);
  if (f.storing()) {
    if (severity(limit::storing_share, 100 * *f.storing()) <= 0) return std::nullopt;
    e.derived("experiment.cached_reads_time", 100 * *f.left_by("experiment.cached_reads_time"), "%", provenance::measured, severity(limit::storing_share, 100 * *f.storing()),
              "with inputs and outputs in the first cache " + whole_percent(*f.storing()) + " of the time is gone that inputs alone leave");
  } else if (f.has_roof) {
    const double strength = severity(limit::store_bandwidth_share, f.roof.share * 100);
    if (strength > 0) add_bandwidth(f, e, strength);
    else if (!streamed) e.scale(0.5); // far below the bandwidth something else comes first
  }
  e.result().level = "memory";
  return e.finish("Ordinary stores first read each line that they are about to overwrite: " + whole_percent(stored / (1 + stored)) + " of the traffic is such reading, and the output cannot stay in the cache anyway.",
                  {"Write the output with streaming stores (_mm256_stream_ps or _mm512_stream_ps on 32- or 64-byte aligned addresses, or __builtin_nontemporal_store with clang), then _mm_sfence().",
                   "Store whole 64-byte lines in order: partial or interleaved streaming stores are slower than plain ones.",
                   "Keep plain stores for what is read again soon."});
}

std::optional<finding> memory_bandwidth(const facts& f) {
  evidence_for e(f, bottleneck::memory_bandwidth_bound);
  if (f.at_bandwidth) {
    const double strength = severity(limit::bandwidth_share, f.roof.share * 100);
    if (strength > 0) add_bandwidth(f, e, strength);
    if (strength > 0) add_waiting(f, e);
  }
  const bool far_below = f.at_bandwidth && severity(limit::low_bandwidth_share, f.roof.share * f.traffic_ratio * 100) > 0;
  if (!far_below) e.metric("topdown.memory_bound", limit::memory_bound, "slots that wait for data");
  e.scale(f.memory_weight());
  // Each byte moves once: near the measured bandwidth the kernel is at its limit, and far from it what keeps it from there is not known.
  if (f.moves_bytes_once()) e.scale(nothing_to_follow);
  e.result().level = f.level;
  const std::string where = f.level.empty() ? "memory" : f.level == "memory" ? "memory" : f.level + " cache";
  std::vector<std::string> remedies;
  if (f.level == "memory" || f.level.empty()) {
    if (f.traffic_ratio > at(limit::passes) || !f.value("callgrind.ll_traffic_ratio")) remedies.push_back("Move fewer bytes: fuse operations so that each input is read once and each output written once.");
    if (!f.prefetches) remedies.push_back("Issue software prefetches a few lines ahead, and work on large contiguous pieces so that the hardware prefetcher and the TLB keep up.");
    remedies.push_back("Read two to four streams at a time (for example several rows) to have more misses in flight.");
    if (f.streaming_stores && f.written_bytes > 0 && f.last_level_bytes > 0 && f.written_bytes < static_cast<double>(f.last_level_bytes))
      remedies.insert(remedies.begin(), "Use plain stores: the output fits into the last-level cache, and streaming stores push it out to memory.");
  } else {
    remedies.push_back("Tile so that a piece that is used again stays in a faster cache than " + f.level + ".");
    if (!f.vector_hot_loop() || (!f.loops.empty() && core::vector_gain(f.in, f.loops.front().vector_bits) > 1)) remedies.push_back("Use the widest vector loads and stores, and keep values in registers between the operations.");
    if (f.traffic_ratio > at(limit::passes)) remedies.push_back("Fuse operations so that intermediate results need no store and load.");
  }
  return e.finish("The time goes into moving data between the core and " + std::string(where == "memory" ? "" : "the ") + where + ".", std::move(remedies));
}

std::optional<finding> memory_latency(const facts& f) {
  if (f.in.threads > 1 && !f.in.source.empty() && !f.parallel_source) return std::nullopt; // the limits are those of all threads
  // What goes page by page in order gains by large pages, too, but no other order of the loops would help it.
  const bool jumps = !f.value("samples.far_share") || severity(limit::far_share, *f.value("samples.far_share")) > 0;
  if (const auto left = f.value("experiment.huge_pages_time"); left && jumps && severity(limit::with_huge_pages, *left) > 0) {
    evidence_for pages(f, bottleneck::memory_latency_bound);
    pages.metric("experiment.huge_pages_time", limit::with_huge_pages, "the rest is address translation");
    pages.result().level = "TLB";
    if (!f.value("samples.far_share")) pages.scale(0.5); // whether the loop jumps is not known
    return pages.finish("Addresses wait for their translation: the loop touches more pages than the TLB holds.", {"Touch few pages at a time: block the loops so that a tile spans few 4 KiB pages, or pack it into contiguous memory."});
  }
  const bool below = !f.at_bandwidth || severity(limit::low_bandwidth_share, f.roof.share * f.traffic_ratio * 100) > 0;
  if (!below) return std::nullopt;
  evidence_for e(f, bottleneck::memory_latency_bound);
  if (f.at_bandwidth) e.metric("topdown.memory_bound", limit::memory_bound, "slots that wait for data although only " + whole_percent(f.roof.share) + " of the bandwidth is used");
  const auto misses = f.value("dTLB-load-misses"), instructions = f.value("instructions");
  if (misses && instructions && *instructions > 0) {
    const double per_thousand = *misses / *instructions * 1000;
    e.derived("dTLB-load-misses", *misses, "count", provenance::measured, severity(limit::tlb_misses, per_thousand),
              short_number(per_thousand) + " TLB misses in 1000 instructions");
  }
  if (f.value("samples.far_share") && f.unmodelled() && severity(limit::unmodelled_share, 100 * *f.unmodelled()) > 0 && severity(limit::far_share, *f.value("samples.far_share")) > 0) {
    e.metric("samples.far_share", limit::far_share, "each trip of the loop needs the translation of another page");
    add_unmodelled(f, e);
  }
  add_waiting(f, e);
  const double chained = f.value_or("hot_loop.chained_loads", 0);
  if (chained > 0 && f.waiting())
    e.derived("hot_loop.chained_loads", chained, "count", provenance::static_analysis, severity(limit::waiting_share, 100 * *f.waiting()), "the address of a load follows from what it loaded in the trip before, so that none begins before the one before it is done");
  // Loads in order are fetched ahead by the hardware: it is not their latency.
  const bool in_order = f.value("samples.far_share") && f.value("samples.strided_share") && severity(limit::far_share, *f.value("samples.far_share")) <= 0 &&
                        severity(limit::strided_share, *f.value("samples.strided_share")) <= 0 && f.value_or("hot_loop.gathers", 0) <= 0;
  if (in_order && chained == 0) e.scale(0.5);
  else if (f.cached && chained == 0 && !f.value("samples.far_share")) e.scale(0.6); // in which order they go is not known
  if (severity(limit::strided_share, f.value_or("samples.strided_share", 0)) > 0) e.scale(0.7); // strided_access says why they wait
  const auto gathers = f.value("hot_loop.gathers");
  const bool beyond_l2 = f.in.limits && f.in.limits->cache_bytes.size() > 1 && f.in.bytes > static_cast<double>(f.in.limits->cache_bytes[1]);
  if (gathers && *gathers > 0 && beyond_l2)
    e.derived("hot_loop.gathers", *gathers, "count", provenance::static_analysis, 0.6, "gathers over " + format_bytes(f.in.bytes) + ", which L2 does not hold");
  e.result().level = f.level;
  return e.finish("Loads wait for data one after the other while the bandwidth is mostly idle: too few misses are in flight, or their addresses come too late.",
                  {"Access memory in order, in long contiguous runs, so that the hardware prefetcher works.",
                   "Prefetch in software (__builtin_prefetch) some hundred cycles ahead where addresses are known early.",
                   "Handle several independent rows or chains at once to have more misses in flight.",
                   "Touch few pages at a time: block the loops so that a tile spans few 4 KiB pages."});
}

std::optional<finding> split_access(const facts& f) {
  evidence_for e(f, bottleneck::split_access);
  if (!e.metric("samples.split_share", limit::split_share, "wide loads and stores that cross a line", 0.7)) return std::nullopt;
  const double cost = f.split_cost();
  if (cost >= notable_split && f.waiting() && severity(limit::waiting_share, 100 * *f.waiting()) <= 0)
    e.derived("samples.split_share", *f.value("samples.split_share"), "%", provenance::static_analysis, 0.6, "their second accesses take about " + whole_percent(cost) + " of the time");
  else add_unmodelled(f, e);
  if (const double sliding = f.value_or("samples.sliding_share", 0); sliding > most_slide) { // a window has to be read so: whether it needs so many loads nobody has tried
    e.derived("samples.sliding_share", sliding, "%", provenance::measured, 0.05, "of these come to the same bytes at other places of their lines, as a window does: no alignment serves all");
    e.scale(no_alignment);
    return e.finish("Loads of a window begin anywhere in a cache line: most cross into the next one, and take two accesses.",
                    {"Load each line once and make the shifted vectors in registers (valignd; vpermt2ps for other steps), where the units that shuffle are idle.",
                     "Make wide windows of narrow ones: the result of 2k neighbours from two of k, so that each element takes a few loads, not one for each neighbour.",
                     "Handle several outputs in a trip, so that each load serves all of them."});
  }
  return e.finish("Loads and stores cross cache lines, and each such one takes two accesses.",
                  {"Let each row begin on a line: pad the rows of a buffer of your own to multiples of 64 bytes and align it (alignas(64)).",
                   "Where the rows are the task's, start each one with a masked vector up to the next line."});
}

namespace {

/// Rows a multiple of 4 KiB apart: whole lines are read, and each is gone from the first level before the loop comes back to its neighbour.
std::optional<finding> one_set(const facts& f) {
  const auto traffic = f.value("callgrind.l1_traffic_ratio"), strided = f.value("samples.strided_share");
  if (!traffic || !strided || !(f.seconds > 0) || severity(limit::strided_share, *strided) > 0 || severity(limit::stride_traffic, *traffic) <= 0) return std::nullopt;
  evidence_for e(f, bottleneck::address_aliasing);
  if (!e.metric("samples.one_set_share", limit::one_set_share, "loads move by a multiple of 4 KiB at each trip", 0.6)) return std::nullopt;
  e.metric("callgrind.l1_traffic_ratio", limit::stride_traffic, "their lines share few places of L1 and push each other out");
  double units = 0; // what they need; experiments do not fold the kernel's own buffers
  for (const auto& p : f.table.phases) units += p.core_seconds;
  e.scale(std::clamp(2 * (1 - units / f.seconds), 0.0, 1.0));
  e.result().level = "L1";
  return e.finish("The loop goes over rows that lie a multiple of 4 KiB apart: their lines share a few places of the first-level cache, and are gone before they are used again.",
                  {"Make rows of a buffer of your own a line longer, so that they begin at other places of their pages.",
                   "Work on a block of rows that L1 holds in spite of it (as many rows as it has ways), or copy the block together first."});
}

} // namespace

std::optional<finding> address_aliasing(const facts& f) {
  evidence_for e(f, bottleneck::address_aliasing);
  if (!e.metric("samples.alias_share", limit::alias_share, "loads with the low 12 bits of a store just before them", 0.6)) return one_set(f);
  const bool tried = f.value("experiment.apart_time").has_value();
  const bool seen = tried && e.metric("experiment.apart_time", limit::with_tensors_apart, "with inputs and outputs at other places of their pages the same instructions take less time");
  if (tried && !seen) e.scale(not_the_tensors);
  if (!tried) {
    add_unmodelled(f, e);
    e.scale(not_tried);
  }
  if (!seen && severity(limit::strided_share, f.value_or("samples.strided_share", 0)) > 0) e.scale(not_tried); // what jumps from page to page meets such addresses, and waits for another reason
  return e.finish("Loads wait for stores that they have nothing to do with: their addresses agree in the low 12 bits (4 KiB aliasing).",
                  {"Move one of the buffers by a few lines within its page, so that what is loaded does not lie a little behind, modulo 4096, what is stored.",
                   "Load some vectors ahead of the stores: unroll, all loads first."});
}

namespace {

/// Counters in one table, changed at places that the values choose, in a loop whose time nothing else explains.
std::optional<finding> one_table(const facts& f) {
  if (f.value_or("hot_loop.updates_by_value", 0) <= 0 || f.value_or("hot_loop.tables", 0) != 1 || f.seconds <= 0) return std::nullopt;
  const auto* hot = f.longest_loop();
  if (!hot || hot->core_seconds <= 0) return std::nullopt;
  const double rest = 100 * (hot->seconds - std::max(hot->core_seconds, hot->move_seconds)) / f.seconds;
  if (severity(limit::unmodelled_share, rest) <= 0) return std::nullopt;
  evidence_for e(f, bottleneck::store_forwarding);
  e.derived("hot_loop.updates_by_value", f.value_or("hot_loop.updates_by_value", 0), "count", provenance::static_analysis, severity(limit::unmodelled_share, rest),
            "numbers of one table are changed in memory, at places that the values choose, and " + format_number(rest, 0) + "% of the time is explained by nothing else");
  e.result().line = hot->line;
  return e.finish("Numbers of one table are changed in memory, one value after the other: where two in succession are the same place, the second waits for the first's store.",
                  {"Let the values go to several tables in turn, and add the tables at the end.", "Sort or group the values first, so that each place is changed once."});
}

} // namespace

std::optional<finding> store_forwarding(const facts& f) {
  if (auto found = one_table(f)) return found;
  const auto blocked = f.value("hot_loop.blocked_loads");
  if (!blocked || *blocked <= 0) return std::nullopt;
  evidence_for e(f, bottleneck::store_forwarding);
  e.derived("hot_loop.blocked_loads", *blocked, "count", provenance::static_analysis, 1, short_number(*blocked) + " loads of the hot loop are wider than the stores before them to the same place");
  add_unmodelled(f, e);
  return e.finish("Loads need bytes of several stores that are still on their way to the cache, and wait until all are there (store forwarding is blocked).",
                  {"Load with the width that was stored, or build the vector in registers (insert, unpack, permute, set) instead of in memory.",
                   "Put some hundred cycles of other work between the stores and the load."});
}

} // namespace pragma::rule
