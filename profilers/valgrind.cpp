// callgrind on a profiling twin: exact instruction counts, simulated caches and branch predictor, hottest lines. Slow
// (a hundred times), so it runs one call on one thread and only where that fits the budget; nothing is extrapolated.
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "profilers/running.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace pragma {

namespace formats {

namespace {

/// Names are written "(id) name" once and "(id)" from then on; files and functions number separately.
class name_table {
public:
  std::string resolve(std::string_view text) {
    if (text.empty() || text[0] != '(') return std::string(text);
    const auto close = text.find(')');
    if (close == std::string_view::npos) return std::string(text);
    const auto id = std::string(text.substr(0, close + 1));
    if (close + 2 <= text.size()) names_[id] = trim(text.substr(close + 1));
    return names_[id];
  }

private:
  std::map<std::string, std::string> names_;
};

/// "0x401ad0", "3", "+4", "-2" or "*" (unchanged), relative to the last position.
bool next_position(const std::string& word, uint64_t& position) {
  if (word == "*") return true;
  if (word.empty()) return false;
  const bool relative = word[0] == '+' || word[0] == '-';
  char* end = nullptr;
  const auto value = std::strtoull(word.c_str() + (relative ? 1 : 0), &end, 0);
  if (*end != '\0') return false;
  position = !relative ? value : word[0] == '+' ? position + value : position - value;
  return true;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (auto& word : split(line, ' '))
    if (!word.empty()) words.push_back(std::move(word));
  return words;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

} // namespace

expected<callgrind_output> parse_callgrind(std::string_view text) {
  callgrind_output out;
  name_table files, functions;
  std::string file, function_file, callee, callee_file;
  bool has_instr = false, has_line = true, after_calls = false;
  uint64_t address = 0, line = 0, own_line = 0;
  int number = 0;
  std::vector<double> totals, summary;
  for (const auto& raw : split(text, '\n')) {
    ++number;
    const auto text_line = trim(raw);
    if (text_line.empty() || text_line[0] == '#') continue;
    const auto bad = [&](const std::string& why) {
      return fail(ec::parse_error, "callgrind output, line " + std::to_string(number) + ": " + why + ": " + text_line.substr(0, 120));
    };
    const auto after = [&](size_t n) { return trim(text_line.substr(n)); };
    const auto numbers = [&](const std::string& list) {
      std::vector<double> values;
      for (const auto& word : words_of(list)) values.push_back(std::strtod(word.c_str(), nullptr));
      return values;
    };
    const char first = text_line[0];
    if ((first >= '0' && first <= '9') || first == '+' || first == '-' || first == '*') {
      const auto words = words_of(text_line);
      size_t at = 0;
      if (has_instr && (at >= words.size() || !next_position(words[at++], address))) return bad("not an address");
      if (has_line && (at >= words.size() || !next_position(words[at++], line))) return bad("not a line number");
      if (file == function_file) own_line = line;
      if (after_calls) { // the cost of the callee, with all that it called: not this line's own
        after_calls = false;
        if (!callee_file.empty() && callee_file != function_file && at < words.size())
          out.calls.push_back({base_name(function_file), callee, static_cast<int>(own_line), address, std::strtod(words[at].c_str(), nullptr)});
        callee_file.clear();
        continue;
      }
      if (at >= words.size() || out.events.empty()) continue;
      const double ir = std::strtod(words[at].c_str(), nullptr); // the first event is Ir
      out.lines[{base_name(file), static_cast<int>(line)}] += ir;
      out.own_lines[{base_name(function_file), static_cast<int>(own_line)}] += ir;
      if (has_instr) out.addresses[address] += ir;
    } else if (text_line.rfind("fl=", 0) == 0) {
      function_file = file = files.resolve(after(3));
    } else if (text_line.rfind("fi=", 0) == 0 || text_line.rfind("fe=", 0) == 0) {
      file = files.resolve(after(3));
    } else if (text_line.rfind("cfi=", 0) == 0 || text_line.rfind("cfl=", 0) == 0) {
      callee_file = files.resolve(after(4));
    } else if (text_line.rfind("cfn=", 0) == 0) {
      callee = functions.resolve(after(4));
    } else if (text_line.rfind("fn=", 0) == 0) {
      functions.resolve(after(3));
      file = function_file;
      own_line = 0;
    } else if (text_line.rfind("calls=", 0) == 0) {
      after_calls = true;
    } else if (text_line.rfind("positions:", 0) == 0) {
      const auto words = words_of(after(10));
      has_instr = std::find(words.begin(), words.end(), "instr") != words.end();
      has_line = std::find(words.begin(), words.end(), "line") != words.end();
    } else if (text_line.rfind("events:", 0) == 0) {
      out.events = words_of(after(7));
    } else if (text_line.rfind("summary:", 0) == 0) {
      summary = numbers(after(8));
    } else if (text_line.rfind("totals:", 0) == 0) {
      totals = numbers(after(7));
    } else if (text_line.rfind("desc:", 0) == 0 && text_line.find(" cache:") != std::string::npos) {
      out.caches.push_back(after(5));
    }
  }
  if (out.events.empty() || out.events[0] != "Ir") return fail(ec::parse_error, "callgrind output: no list of events that starts with Ir");
  const auto& sums = totals.empty() ? summary : totals;
  if (sums.empty()) return fail(ec::parse_error, "callgrind output: no totals (was it cut off?)");
  // Trailing zeros are left out.
  for (size_t i = 0; i < out.events.size(); ++i) out.totals[out.events[i]] = i < sums.size() ? sums[i] : 0;
  return out;
}

} // namespace formats

namespace {

constexpr double slowdown = 100;          // callgrind with cache and branch simulation against native code
constexpr double startup_seconds = 1.5;   // valgrind translating itself into being
constexpr double min_budget_seconds = 2;
constexpr uint64_t max_out_file = 256 << 20;

/// "size,associativity,line" with a power of two of sets, as the simulator wants them.
std::string cache_option(int level, const char* type, int64_t fallback_bytes) {
  auto geometry = read_cache_geometry(level, type);
  if (geometry.bytes <= 0) geometry = {fallback_bytes, 0, 0};
  const auto line = std::has_single_bit(static_cast<uint64_t>(std::max<int64_t>(geometry.line_bytes, 0))) && geometry.line_bytes >= 16 ? geometry.line_bytes : 64;
  auto ways = geometry.ways > 0 ? geometry.ways : 8;
  const auto sets = std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, geometry.bytes / (line * ways))));
  ways = std::max<int64_t>(1, geometry.bytes / (line * static_cast<int64_t>(sets)));
  return std::to_string(line * ways * static_cast<int64_t>(sets)) + "," + std::to_string(ways) + "," + std::to_string(line);
}

/// The candidate without what only newer instruction sets understand.
candidate for_valgrind(candidate c) {
  std::erase_if(c.flags, [](const std::string& flag) {
    for (const char* start : {"-march=", "-mtune=", "-mprefer-vector-width", "-mavx512", "-mamx", "-mavx10"})
      if (flag.rfind(start, 0) == 0) return true;
    return false;
  });
  return c;
}

struct attempt_result {
  expected<formats::callgrind_output> counts = fail(ec::internal, "");
  bool unknown_instruction = false;
};

attempt_result run_callgrind(const collect_context& context, const build_output& twin) {
  attempt_result result;
  auto folder = temp_dir::create("pragma-callgrind-", 0711);
  if (!folder) {
    result.counts = fail(folder.error());
    return result;
  }
  const auto out_file = folder->path() / "counts";
  runner_options options;
  options.threads = 1;
  options.scratch = folder->path();
  options.cancel = context.options.cancel;
  options.wrapper = {"valgrind", "--tool=callgrind", "--quiet", "--toggle-collect=pragma_kernel", "--dump-after=pragma_kernel",
                     "--cache-sim=yes", "--branch-sim=yes", "--dump-instr=yes", "--dump-line=yes", "--vgdb=no",
                     "--callgrind-out-file=" + out_file.string(), "--I1=" + cache_option(1, "Instruction", 32 << 10),
                     "--D1=" + cache_option(1, "Data", 32 << 10), "--LL=" + cache_option(3, "Unified", 8 << 20)};
  auto slots = filled_slots(context.ref);
  if (!slots) {
    result.counts = fail(slots.error());
    return result;
  }
  auto runner = runner_process::start(twin, context.ref, options);
  if (!runner) {
    result.counts = fail(runner.error());
    result.unknown_instruction = runner.error().why == cause::illegal_instruction;
    return result;
  }
  const auto limit = std::max(0.5, context.watch.left());
  if (auto called = runner->call(0, 1, 1, limit); !called) {
    const auto log = runner->log();
    result.unknown_instruction = log.find("nrecognised instruction") != std::string::npos || called.error().why == cause::illegal_instruction;
    if (called.error().code == ec::timeout)
      result.counts = fail(ec::timeout, "one call took more than the " + format_seconds(limit) + " that were left");
    else
      result.counts = fail(ec::tool_failed, called.error().message + (log.empty() ? "" : ": " + cut_lines(log, 1, 1, 240)));
    return result;
  }
  // Dumped when the kernel returned, before the runner answered: ".1" is the first dump.
  auto text = read_file(out_file.string() + ".1", max_out_file);
  if (!text) {
    result.counts = fail(ec::tool_failed, "valgrind left no counts (" + text.error().message + ")");
    return result;
  }
  result.counts = formats::parse_callgrind(*text);
  if (result.counts && result.counts->totals["Ir"] <= 0)
    result.counts = fail(ec::tool_failed, "no instruction of pragma_kernel was seen");
  return result;
}

void add_counts(const collect_context& context, const formats::callgrind_output& counts, const std::string& twin_hash, source_result& out) {
  const auto tool = "callgrind " + valgrind_version();
  const std::string note = "one call, one thread, twin " + twin_hash.substr(0, 12);
  const auto add = [&](const std::string& name, double value, const std::string& unit, const std::string& more = {}) {
    out.metrics.push_back({"callgrind." + name, value, unit, tool, provenance::simulated, more.empty() ? note : more + "; " + note});
  };
  auto total = [&](const char* event) {
    const auto found = counts.totals.find(event);
    return found == counts.totals.end() ? 0.0 : found->second;
  };
  for (const auto& event : counts.events) add(event, total(event.c_str()), "count");
  const double accesses = total("Dr") + total("Dw"), branches = total("Bc") + total("Bi");
  const double d1 = total("D1mr") + total("D1mw"), ll = total("DLmr") + total("DLmw");
  if (accesses > 0) {
    add("d1_miss_rate", 100 * d1 / accesses, "%");
    add("ll_miss_rate", 100 * ll / accesses, "%");
  }
  if (branches > 0) add("branch_miss_rate", 100 * (total("Bcm") + total("Bim")) / branches, "%");
  double outputs = 0;
  for (const auto& spec : context.the_task.outputs) outputs += static_cast<double>(spec.elements());
  if (outputs > 0) add("instructions_per_output", total("Ir") / outputs, "count");
  const auto line = std::max<int64_t>(16, read_cache_geometry(1, "Data").line_bytes > 0 ? read_cache_geometry(1, "Data").line_bytes : 64);
  const double bytes = context.the_task.bytes;
  if (bytes > static_cast<double>(context.facts.l1d_bytes) && bytes > 0)
    add("l1_traffic_ratio", d1 * static_cast<double>(line) / bytes, "ratio");
  if (bytes > static_cast<double>(context.facts.l3_bytes) && context.facts.l3_bytes > 0)
    add("ll_traffic_ratio", ll * static_cast<double>(line) / bytes, "ratio");

  std::map<int, double> lines;
  for (const auto& [place, ir] : counts.own_lines)
    if (place.first == candidate_file_name) lines[place.second] += ir;
  for (const auto& call : counts.calls)
    if (call.file == candidate_file_name && !starts_threads(call.callee)) lines[call.line] += call.ir;
  int hottest = 0;
  double most = 0;
  for (const auto& [number, ir] : lines)
    if (ir > most) {
      most = ir;
      hottest = number;
    }
  if (hottest > 0 && total("Ir") > 0) {
    add("hottest_line", hottest, "line", format_number(100 * most / total("Ir"), 0) + "% of all instructions");
    add("hottest_line_share", 100 * most / total("Ir"), "%", "line " + std::to_string(hottest));
  }
}

} // namespace

bool starts_threads(const std::string& function) {
  return function.rfind("GOMP_", 0) == 0 || function.rfind("__kmpc_", 0) == 0 || function.rfind("gomp_", 0) == 0;
}

std::string valgrind_version() {
  static const std::string version = [] {
    process_spec spec;
    spec.argv = {"valgrind", "--version"};
    spec.limits.wall_seconds = 10;
    const auto run = run_process(spec);
    if (!run || !run->ok()) return std::string();
    const auto text = trim(run->out); // "valgrind-3.19.0"
    return text.substr(text.find('-') + 1);
  }();
  return version;
}

std::optional<callgrind_run> callgrind_metrics(const collect_context& context, const build_output& with_lines, source_result& out) {
  const auto say = [&](const std::string& why) {
    out.missing.push_back("callgrind: " + why);
    return std::nullopt;
  };
  if (valgrind_version().empty()) return say("valgrind is not installed (apt install valgrind)");
  const double estimate = startup_seconds + context.time.candidate_seconds * context.options.threads * slowdown;
  if (context.watch.left() < min_budget_seconds || estimate > context.watch.left())
    return say("one call would take about " + format_seconds(estimate) + ", and of the time for tools " + (context.watch.left() > 0 ? format_seconds(context.watch.left()) : "nothing") + " is left (--profile-seconds)");

  callgrind_run run;
  run.twin = with_lines;
  run.same_code = true;
  bool try_own = context.facts.simd_bits <= 256; // valgrind up to 3.25 does not know AVX-512
  attempt_result attempt;
  if (try_own) attempt = run_callgrind(context, run.twin);
  if (!try_own || attempt.unknown_instruction) {
    const bool avx2 = context.facts.simd_bits >= 256;
    build_options build;
    build.extra_flags = {"-g", avx2 ? "-march=x86-64-v3" : "-march=x86-64-v2"};
    build.wall_seconds = std::max(1.0, context.watch.left());
    build.cancel = context.options.cancel;
    auto twin = build_candidate(for_valgrind(context.the_candidate), build);
    if (!twin) return say("no twin that valgrind can run (" + build.extra_flags[1] + "): " + twin.error().message);
    run.twin = std::move(*twin);
    run.same_code = false;
    attempt = run_callgrind(context, run.twin);
  }
  if (!attempt.counts) return say(attempt.counts.error().message);
  run.counts = std::move(*attempt.counts);
  add_counts(context, run.counts, run.twin.binary_hash, out);
  return run;
}

} // namespace pragma
