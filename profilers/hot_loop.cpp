// The candidate's machine code: disassembled with line numbers, and what its hot loop consists of.
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "profilers/sources.hpp"

#include <algorithm>

namespace pragma {

namespace {

constexpr double least_latency = 3;      // cycles of an addition that the next trip waits for; uops.info: 3 to 4 from Skylake to Sapphire Rapids and Zen 2 to 4
constexpr size_t max_listing = 64 << 20; // a static executable disassembles to about 5 MB

} // namespace

std::string objdump_version() {
  static const std::string version = [] {
    process_spec spec;
    spec.argv = {"objdump", "--version"};
    spec.limits.wall_seconds = 10;
    const auto run = run_process(spec);
    if (!run || !run->ok()) return std::string();
    const auto first = split(run->out, '\n').front();
    return trim(first.substr(first.rfind(' ') + 1));
  }();
  return version;
}

expected<disassembled> disassemble(const build_output& built, double wall_seconds) {
#if !defined(__x86_64__)
  (void)built;
  (void)wall_seconds;
  return fail(ec::unsupported, "objdump: only x86-64 code is analysed");
#else
  if (find_program("objdump").empty()) return fail(ec::not_found, "objdump: not installed (apt install binutils)");
  process_spec spec;
  spec.argv = {"objdump", "-d", "-l", "--no-show-raw-insn", built.executable.string()};
  spec.env = {{"LC_ALL", "C"}};
  spec.max_output = max_listing;
  spec.limits.wall_seconds = wall_seconds;
  const auto run = run_process(spec);
  if (!run) return fail(run.error());
  if (!run->ok())
    return fail(ec::tool_failed, "objdump: " + describe_end(*run, wall_seconds) + " " + cut_lines(printable(run->err), 2, 0, 240));
  disassembled found;
  auto all = formats::parse_objdump(run->out);
  for (const auto& f : all)
    if (!f.body.empty()) found.names[f.body.front().address] = f.name;
  found.functions = formats::functions_of(std::move(all), candidate_file_name);
  if (found.functions.empty()) return fail(ec::tool_failed, "objdump: no code of the candidate found in its executable");
  return found;
#endif
}

std::vector<formats::hot_loop> find_loops(const std::vector<formats::code_function>& functions, const std::optional<callgrind_run>& run) {
  if (!run) return formats::innermost_loops(functions);
  std::map<uint64_t, double> at_address;
  std::map<std::pair<std::string, int>, double> at_line = run->counts.own_lines;
  if (run->same_code) at_address = run->counts.addresses;
  for (const auto& call : run->counts.calls) {
    if (starts_threads(call.callee)) continue;
    at_address[call.address] += call.ir;
    at_line[{call.file, call.line}] += call.ir;
  }
  std::vector<formats::hot_loop> loops;
  if (run->same_code)
    loops = formats::innermost_loops(functions, [&](const formats::instruction& i) {
      const auto found = at_address.find(i.address);
      return found == at_address.end() ? 0.0 : found->second;
    });
  else // another -march moved the addresses: lines still agree
    loops = formats::innermost_loops(functions, [&](const formats::instruction& i) {
      const auto found = at_line.find({candidate_file_name, i.own_line});
      return found == at_line.end() ? 0.0 : found->second;
    });
  // The disassembly of a static executable has no names for the C library's dispatched functions; callgrind has.
  for (auto& loop : loops)
    for (const auto& i : loop.body)
      for (const auto& call : run->counts.calls)
        if (run->same_code && call.address == i.address &&
            std::find(loop.called.begin(), loop.called.end(), call.callee) == loop.called.end())
          loop.called.push_back(call.callee);
  return loops;
}

void trips_by_twin(std::vector<formats::hot_loop>& loops, const std::vector<formats::code_function>& twin, const std::map<uint64_t, double>& executed) {
  const auto count_of = [&](const formats::instruction& i) {
    const auto found = executed.find(i.address);
    return found == executed.end() ? 0.0 : found->second;
  };
  struct work {
    double flops = 0, bytes = 0;
  };
  std::map<int, work> done, per_trip; ///< by line: of all trips; of one trip of each of the loops, weighted by the trips that its time allows
  for (const auto& l : formats::innermost_loops(twin, count_of)) {
    double trips = 0; // of the instructions that each trip runs
    for (const auto& i : l.body) trips = std::max(trips, count_of(i));
    if (l.calls > 0 || l.line <= 0) continue;
    done[l.line].flops += trips * l.flops;
    done[l.line].bytes += trips * (l.loaded_bytes + l.stored_bytes);
  }
  const bool sampled = std::any_of(loops.begin(), loops.end(), [](const auto& l) { return l.share > 0; });
  const auto weight = [&](const formats::hot_loop& l) { return l.calls > 0 || l.line <= 0 || l.instructions <= 0 ? 0.0 : (sampled ? l.share : 1.0) / l.instructions; };
  for (const auto& l : loops) {
    per_trip[l.line].flops += weight(l) * l.flops;
    per_trip[l.line].bytes += weight(l) * (l.loaded_bytes + l.stored_bytes);
  }
  for (auto& l : loops) {
    const auto& all = done[l.line];
    const auto& one = per_trip[l.line];
    l.twin_trips = all.flops > 0 && one.flops > 0 ? weight(l) * all.flops / one.flops : all.bytes > 0 && one.bytes > 0 ? weight(l) * all.bytes / one.bytes : 0;
  }
}

void hot_loop_metrics(const formats::hot_loop& loop, source_result& out) {
  const auto tool = "objdump " + objdump_version();
  const std::string note = "loop at line " + std::to_string(loop.line) +
                           (loop.share > 0 ? ", " + format_number(100 * loop.share, 0) + "% of the samples of its time" : loop.weight > 0 ? ", found by instructions executed (callgrind)" : ", chosen by its arithmetic");
  const auto add = [&](const char* name, double value, const char* unit, const std::string& more = {}) {
    out.metrics.push_back({std::string("hot_loop.") + name, value, unit, tool, provenance::static_analysis, more.empty() ? note : more});
  };
  if (loop.line > 0) add("line", loop.line, "line");
  add("instructions", loop.instructions, "count");
  add("vector_bits", loop.vector_bits, "bits");
  if (loop.has_vector_share()) add("vector_share", loop.vector_share(), "%");
  add("divides", loop.divides, "count");
  add("gathers", loop.gathers, "count");
  add("calls", loop.calls, "count", loop.called.empty() ? "" : "calls " + join(loop.called, ", "));
  add("streaming_stores", loop.streaming_stores, "count");
  add("stores", loop.stores, "count");
  add("chains", loop.chains, "count", loop.memory_chain ? "through memory; " + note : "");
  if (loop.flops > 0) add("flops", loop.flops, "FLOP");
  add("fused", loop.fused, "count");
  add("blocked_loads", blocked_loads(loop), "count");
  add("chained_loads", chained_loads(loop), "count");
  const auto changed = updates_of(loop);
  add("updates_by_value", changed.updates, "count", "in " + std::to_string(changed.tables) + (changed.tables == 1 ? " table; " : " tables; ") + note);
  add("tables", changed.tables, "count");
}

loop_cost cost_of(const formats::hot_loop& loop, const modelled_loop* modelled, double total_instructions, bool same_code) {
  loop_cost c;
  c.function = loop.function;
  c.line = loop.line;
  if (loop.share > 0) {
    c.share = loop.share;
    c.how = provenance::measured;
  } else if (loop.weight > 0 && total_instructions > 0) {
    c.share = std::min(1.0, loop.weight / total_instructions);
    c.how = provenance::simulated;
  }
  // Of a twin for another instruction set the counts are not this loop's. What it calls is in its weight, too.
  if (same_code && loop.calls == 0 && loop.weight > 0 && loop.instructions > 0) c.trips = loop.weight / loop.instructions;
  c.twin_trips = loop.twin_trips;
  if (modelled) {
    // llvm-mca forgets on some cores what a copied register waits for (LLVM 14's model of Zen 3, whose copies take no time).
    c.cycles = std::max(modelled->figures.cycles / modelled->figures.iterations, loop.chains > 0 ? least_latency * loop.chain_operations : 0.0);
    c.least_cycles = modelled->figures.block_rthroughput;
    c.port = modelled->figures.top_port;
  }
  c.flops = loop.flops;
  c.loaded_bytes = loop.loaded_bytes;
  c.stored_bytes = loop.stored_bytes;
  c.streamed_bytes = loop.streamed_bytes;
  c.instructions = loop.instructions;
  c.vector_bits = loop.vector_bits;
  c.divides = loop.divides;
  c.gathers = loop.gathers;
  c.calls = loop.calls;
  c.fused = loop.fused;
  c.multiplies = loop.multiplies;
  c.shuffles = loop.shuffles;
  c.vector_instructions = loop.vector_instructions;
  c.widened = 2 * loop.of_doubles > loop.packed_arithmetic + loop.scalar_arithmetic ? loop.widening : 0;
  c.branches = loop.branches;
  c.chains = loop.chains;
  c.chain_operations = loop.chain_operations;
  if (loop.has_vector_share()) c.vector_share = loop.vector_share();
  return c;
}

} // namespace pragma
