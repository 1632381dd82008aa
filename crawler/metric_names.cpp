#include "crawler/metric_names.hpp"

#include "base/text.hpp"
#include "crawler/charset.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace pragma {

namespace crawler {

namespace {

constexpr size_t longest_name = 160;   ///< bytes; NVIDIA's longest has 117
constexpr size_t longest_plain_name = 80, most_words = 6, most_names_in_cell = 8;

template <size_t N> bool among(const std::array<std::string_view, N>& sorted, std::string_view word) {
  return std::binary_search(sorted.begin(), sorted.end(), word);
}

// Cachegrind's and Callgrind's event names, which follow no rule, and abbreviations that everybody uses as a metric's name.
constexpr auto short_names = std::to_array<std::string_view>(
    {"AcCost1", "AcCost2", "Bc", "Bcm", "Bi", "Bim", "CPI", "D1mr", "D1mw", "DLdmr", "DLdmw", "DLmr", "DLmw", "Dr", "Dw", "Ge", "I1mr",
     "ILdmr", "ILmr", "IPC", "Ir", "MPKI", "SpLoss1", "SpLoss2", "allocCount", "allocSize", "duration_time", "sysCount", "sysCpuTime",
     "sysTime", "system_time", "user_time"});

// A piece of an identifier in lower or mixed case that says that something is counted: without one it is a function or a variable.
constexpr auto counted_pieces = std::to_array<std::string_view>(
    {"accesses",   "active",    "avg",         "bound",        "brn",     "bubbles", "busy",        "clk",         "clks",
     "conflict",   "conflicts", "cpi",         "cyc",          "cycle",   "cycles",  "duration",    "efficiency",  "elapsed",
     "evict",      "evictions", "executed",    "faults",       "flop",    "flops",   "gflops",      "hit",         "hits",
     "idle",       "inst",      "instr",       "instructions", "insts",   "ipc",     "issued",      "latency",     "loads",
     "migrations", "misp",      "mispred",     "mispredicted", "miss",    "misses",  "occupancy",   "occupied",    "ops",
     "pct",        "ratio",     "reads",       "refill",       "refs",    "replay",  "replays",     "requests",    "retired",
     "sectors",    "slots",     "speculation", "stall",        "stalled", "stalls",  "starvation",  "stores",      "switches",
     "throughput", "tma",       "topdown",     "transactions", "uops",    "util",    "utilisation", "utilization", "warps",
     "wavefronts", "waves",     "writes"});

constexpr auto denied_pieces = std::to_array<std::string_view>(
    {"callback", "cfg",      "class",  "config",  "create", "destroy", "dir",     "dump",    "file",  "files",   "flag", "flags",
     "func",     "function", "get",    "handle",  "help",   "init",    "install", "lib",     "list",  "main",    "mode", "name",
     "names",    "opt",      "option", "options", "opts",   "path",    "print",   "process", "ptr",   "script",  "set",  "show",
     "size",     "sort",     "start",  "stop",    "struct", "test",    "toggle",  "type",    "types", "version", "view"});

// The piece that makes a hyphenated word an event of perf ("branch-misses") rather than English ("floating-point").
constexpr auto counted_ends = std::to_array<std::string_view>(
    {"branches", "clock", "cycles", "faults", "hits", "instructions", "loads", "migrations", "misses", "prefetches", "references", "refs",
     "slots", "stalls", "stores", "switches", "uops", "walks"});

// Environment variables, macros and constants that are written like hardware events.
constexpr auto denied_prefixes = std::to_array<std::string_view>(
    {"ANNOTATE_", "ASAN_",    "AT_",   "CACHEGRIND_", "CALLGRIND_", "CALL_FN_", "CAP_",    "CC_",     "CL_",   "CLOCK_",
     "CLONE_",    "CMAKE_",   "DRD_",  "I_WRAP_",     "RUNNING_",   "CONFIG_",  "CUDA_",   "CXX_",    "GCC_",  "GIT_",
     "GL_",       "GNU_",     "HIP_",  "HSA_",        "HTTP_",      "IA32_",    "INT_",    "LC_",     "LD_",   "LLVM_",
     "MD_",       "MPI_",     "MSR_",  "NCCL_",       "NV_",        "OMP_",     "OMPI_",   "OPENMP_", "PERF_", "POSIX_",
     "PR_",       "PTHREAD_", "ROCM_", "ROCR_",       "ROCPROF_",   "RLIMIT_",  "SAMPLE_", "SIG_",    "SYS_",  "UINT_",
     "VALGRIND_", "VG_",      "VK_",   "XDG_",        "XML_"});
constexpr auto denied_suffixes =
    std::to_array<std::string_view>({"_DIR", "_FLAGS", "_H", "_HOME", "_HPP", "_MAX", "_MIN", "_NAME", "_OPTS", "_PATH", "_VERSION"});

constexpr auto file_endings = std::to_array<std::string_view>(
    {".a",   ".asm", ".bin", ".c",   ".cc",  ".cfg", ".com", ".conf", ".cpp", ".cs",  ".csv", ".cu",   ".cubin", ".db",  ".dll", ".exe",
     ".gz",  ".h",   ".hpp", ".htm", ".html", ".ini", ".io", ".java", ".js",  ".json", ".log", ".md",   ".net",  ".o",   ".org", ".out",
     ".pdf", ".pl",  ".png", ".proto", ".ptx", ".py", ".qdrep", ".rpm", ".rst", ".s",  ".sh",  ".so",   ".sqlite", ".svg", ".tar", ".txt",
     ".xml", ".yaml", ".yml", ".zip"});

bool upper(char c) { return c >= 'A' && c <= 'Z'; }
bool lower(char c) { return c >= 'a' && c <= 'z'; }

/// In lower case: "MemUnitStalled" -> mem unit stalled, "VALUBusy" -> valu busy, "l2_rqsts.miss" -> l2 rqsts miss.
std::vector<std::string> pieces_of(std::string_view word) {
  std::vector<std::string> all(1);
  for (size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (c == '_' || c == '.' || c == ':' || c == '-') {
      if (!all.back().empty()) all.emplace_back();
      continue;
    }
    const bool starts_hump =
        upper(c) && i > 0 &&
        (lower(word[i - 1]) || is_digit(word[i - 1]) || (upper(word[i - 1]) && i + 1 < word.size() && lower(word[i + 1])));
    if (starts_hump && !all.back().empty()) all.emplace_back();
    all.back() += upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  }
  if (all.back().empty()) all.pop_back();
  return all;
}

bool has_counted_piece(std::string_view word) {
  const auto pieces = pieces_of(word);
  if (pieces.size() < 2) return false;
  bool counted = false;
  for (const auto& piece : pieces) {
    if (among(denied_pieces, piece)) return false;
    counted |= among(counted_pieces, piece);
  }
  return counted;
}

/// "INST_RETIRED.ANY", "SQ_WAVES", "L1D_CACHE_REFILL".
bool is_upper_case_event(std::string_view word) {
  if (!upper(word[0]) || word.size() < 5 || word.find('_') == std::string_view::npos) return false;
  // "CPU_CLK_UNHALTED.THREAD:u" and "OFFCORE_RESPONSE:request=..." have lower-case tails behind the event.
  const auto head = word.substr(0, word.find(':'));
  for (const char c : head)
    if (lower(c) || c == '-') return false;
  return !head.ends_with('_') && !names_code(word);
}

/// "cache-misses", "L1-dcache-load-misses", "topdown-fe-bound".
bool is_hyphenated_event(std::string_view word) {
  if (word.find('_') != std::string_view::npos || word.find('.') != std::string_view::npos ||
      word.find(':') != std::string_view::npos)
    return false;
  const auto pieces = split(word, '-');
  if (pieces.size() < 2 || pieces.size() > 6) return false;
  for (const auto& piece : pieces)
    if (piece.empty()) return false;
  if (pieces[0] == "non" || pieces[0] == "cross" || pieces[0] == "multi" || pieces[0] == "sub") return false;
  return pieces[0] == "topdown" || among(counted_ends, pieces.back()) || (pieces[0] == "stalled" && pieces[1] == "cycles");
}

bool ends_like_file(std::string_view word) {
  const auto dot = word.rfind('.');
  return dot != std::string_view::npos && among(file_endings, ascii_lower(word.substr(dot)));
}

/// Characters between words: what is not ASCII and not a letter of some language.
bool separates(char32_t c) {
  return (c >= 0x80 && c <= 0xbf) || c == 0xd7 || c == 0xf7 || (c >= 0x2000 && c <= 0x2bff) || (c >= 0x3000 && c <= 0x303f) || c == 0xfffd;
}

constexpr std::string_view ends_of_words = ".:-/=";

} // namespace

bool names_code(std::string_view word) {
  for (const auto prefix : denied_prefixes)
    if (word.starts_with(prefix)) return true;
  for (const auto suffix : denied_suffixes)
    if (word.ends_with(suffix)) return true;
  return false;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  size_t start = std::string_view::npos;
  auto close = [&](size_t end) {
    if (start == std::string_view::npos) return;
    auto word = text.substr(start, end - start);
    start = std::string_view::npos;
    while (!word.empty() && ends_of_words.find(word.back()) != std::string_view::npos) word.remove_suffix(1);
    if (!word.empty()) words.push_back(word);
  };
  for (size_t i = 0; i < text.size();) {
    const size_t before = i;
    const char32_t c = next_code_point(text, i);
    const bool part = c < 0x80 ? std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
                                     ends_of_words.find(static_cast<char>(c)) != std::string_view::npos
                               : !separates(c);
    if (!part) close(before);
    else if (start == std::string_view::npos) start = before;
  }
  close(text.size());
  return words;
}

std::vector<std::string> metric_names_in(std::string_view text, size_t most) {
  std::vector<std::string> names;
  auto take = [&](std::string_view word) {
    if (names.size() < most && looks_like_metric(word) && std::find(names.begin(), names.end(), word) == names.end())
      names.emplace_back(word);
  };
  for (const auto word : words_of(text)) {
    if (word.find('/') == std::string_view::npos) {
      take(word);
      continue;
    }
    // "I1mr/ILmr" is two names; in a path not every piece is one.
    const auto parts = split(word, '/');
    if (std::all_of(parts.begin(), parts.end(), [](const auto& part) { return looks_like_metric(part); }))
      for (const auto& part : parts) take(part);
  }
  return names;
}

bool is_unit(std::string_view text) {
  static constexpr auto units = std::to_array<std::string_view>({"%",
                                                                 "1/s",
                                                                 "b",
                                                                 "b/s",
                                                                 "bit",
                                                                 "bits",
                                                                 "byte",
                                                                 "bytes",
                                                                 "bytes/s",
                                                                 "bytes/sec",
                                                                 "c",
                                                                 "celsius",
                                                                 "count",
                                                                 "counts",
                                                                 "cycle",
                                                                 "cycles",
                                                                 "cycles/inst",
                                                                 "events",
                                                                 "flop",
                                                                 "flop/s",
                                                                 "flops",
                                                                 "gb",
                                                                 "gb/s",
                                                                 "gbyte/s",
                                                                 "gbytes/s",
                                                                 "gflop",
                                                                 "gflop/s",
                                                                 "gflops",
                                                                 "ghz",
                                                                 "gib",
                                                                 "gib/s",
                                                                 "giop/s",
                                                                 "giops",
                                                                 "hertz",
                                                                 "hz",
                                                                 "inst",
                                                                 "instr",
                                                                 "instructions",
                                                                 "j",
                                                                 "joules",
                                                                 "k",
                                                                 "kb",
                                                                 "kb/s",
                                                                 "kbytes",
                                                                 "kernel",
                                                                 "khz",
                                                                 "kib",
                                                                 "kib/s",
                                                                 "kilobytes",
                                                                 "mb",
                                                                 "mb/s",
                                                                 "mbyte/s",
                                                                 "mbytes",
                                                                 "mbytes/s",
                                                                 "mflop/s",
                                                                 "mhz",
                                                                 "mib",
                                                                 "mib/s",
                                                                 "microseconds",
                                                                 "milliseconds",
                                                                 "ms",
                                                                 "nanoseconds",
                                                                 "ns",
                                                                 "ops",
                                                                 "ops/s",
                                                                 "pct",
                                                                 "percent",
                                                                 "percentage",
                                                                 "ratio",
                                                                 "register/thread",
                                                                 "requests",
                                                                 "s",
                                                                 "sec",
                                                                 "second",
                                                                 "seconds",
                                                                 "sector",
                                                                 "sectors",
                                                                 "slots",
                                                                 "tflop/s",
                                                                 "tflops",
                                                                 "threads",
                                                                 "transactions",
                                                                 "us",
                                                                 "usec",
                                                                 "w",
                                                                 "warp",
                                                                 "warps",
                                                                 "watts",
                                                                 "wavefronts",
                                                                 "waves"});
  const auto word = ascii_lower(trim(text));
  return !word.empty() && word.size() <= 40 && (among(units, word) || word == "µs");
}

std::string unit_in_brackets(std::string_view text) {
  const auto whole = trim(text);
  if (whole.size() < 3 || (whole.back() != ')' && whole.back() != ']')) return {};
  const auto open = whole.rfind(whole.back() == ')' ? '(' : '[');
  if (open == std::string::npos || open == 0) return {};
  const auto inside = trim(std::string_view(whole).substr(open + 1, whole.size() - open - 2));
  return is_unit(inside) ? inside : std::string();
}

std::vector<std::string> names_in_cell(std::string_view cell, bool certain) {
  auto bare = [](std::string_view text) {
    std::string name = one_line(text);
    if (!unit_in_brackets(name).empty()) name = trim(std::string_view(name).substr(0, name.find_last_of("([")));
    while (!name.empty() && std::string_view("\"'`*:,;").find(name.back()) != std::string_view::npos) name.pop_back();
    while (!name.empty() && std::string_view("\"'`*").find(name.front()) != std::string_view::npos) name.erase(0, 1);
    return name;
  };
  const auto whole = bare(cell);
  if (whole.empty() || whole.size() > 4 * longest_name) return {};
  if (looks_like_metric(whole)) return {whole};
  // "D1mr, D1mw", "cycles OR cpu-cycles", one name a line.
  std::string separated(cell);
  for (const std::string_view word : {" or ", " OR ", " and "})
    for (size_t at = separated.find(word); at != std::string::npos; at = separated.find(word, at)) separated.replace(at, word.size(), ",");
  for (auto& c : separated)
    if (c == '\n' || c == ';' || c == '/' || c == '|') c = ',';
  std::vector<std::string> names;
  for (const auto& part : split(separated, ',')) {
    const auto name = bare(part);
    if (!name.empty()) names.push_back(name);
  }
  if (names.size() >= 2 && names.size() <= most_names_in_cell &&
      std::all_of(names.begin(), names.end(), [](const auto& n) { return looks_like_metric(n); }))
    return names;
  if (!certain || whole.size() > longest_plain_name || whole.front() == '-' || whole.ends_with('.') ||
      whole.find(". ") != std::string::npos)
    return {};
  const auto words = std::count(whole.begin(), whole.end(), ' ') + 1;
  const bool letters = std::any_of(whole.begin(), whole.end(), [](char c) { return upper(c) || lower(c); });
  if (static_cast<size_t>(words) > most_words || !letters) return {};
  return {whole};
}

column column_of(std::string_view header) {
  const auto plain = ascii_lower(one_line(header));
  if (plain.empty() || plain.size() > 60) return column::other;
  std::vector<std::string> words;
  for (const auto word : words_of(plain)) words.emplace_back(word);
  auto any = [&](std::initializer_list<std::string_view> list) {
    return std::any_of(words.begin(), words.end(),
                       [&](const auto& word) { return std::find(list.begin(), list.end(), word) != list.end(); });
  };
  if (any({"description", "descriptions", "meaning", "explanation", "definition", "purpose", "briefdescription",
           "publicdescription", "remarks", "comment", "comments"}) ||
      plain.ends_with("_description") || plain == "what it measures" || plain == "details")
    return column::description;
  if (any({"unit", "units", "unitofmeasure", "metric_unit", "scaleunit"})) return column::unit;
  if (any({"formula", "expression", "equation", "calculation", "computation", "derivation", "expr", "metricexpr", "computed"}))
    return column::formula;
  if (any({"type", "group",  "groups", "value", "values",   "code",   "id",      "number",  "num",
           "no",   "select", "umask",  "set",   "category", "class",  "address", "mask",    "count",
           "avg",  "min",    "max",    "block", "level",    "option", "options", "modifier"}))
    return column::other;
  if (any({"metric", "metrics", "counter", "counters", "event", "events", "mnemonic", "eventname", "event_name", "metricname",
           "metric_name", "countername", "counter_name"}))
    return column::metric;
  if (any({"name", "symbol", "abbreviation", "acronym", "statistic", "statistics", "stat", "term", "field"})) return column::name;
  return column::other;
}

bool looks_like_header(const std::vector<std::string>& cells) {
  size_t known = 0;
  for (const auto& cell : cells) {
    if (cell.size() > 60 || cell.ends_with('.')) return false;
    known += column_of(cell) != column::other;
  }
  return known >= 2;
}

} // namespace crawler

bool looks_like_metric(std::string_view word) {
  using namespace crawler;
  if (word.size() < 2 || word.size() > longest_name) return false;
  if (std::find(short_names.begin(), short_names.end(), word) != short_names.end()) return true;
  if (!upper(word[0]) && !lower(word[0])) return false;
  bool separated = false, capital_inside = false;
  for (size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    const bool separator = c == '_' || c == '.' || c == ':' || c == '-';
    if (!separator && !upper(c) && !lower(c) && !is_digit(c)) return false;
    if (separator && (i + 1 == word.size() || word[i + 1] == '-')) return false;
    separated |= separator;
    capital_inside |= i > 0 && upper(c) && (lower(word[i - 1]) || (upper(word[i - 1]) && i + 1 < word.size() && lower(word[i + 1])));
  }
  if (word.find("::") != std::string_view::npos || word.starts_with("http") || word.starts_with("www.") || ends_like_file(word))
    return false;
  // NVIDIA's unit__name, with or without rollups behind dots.
  if (const auto at = word.find("__"); at != std::string_view::npos && at > 0 && at + 2 < word.size()) {
    const auto unit = word.substr(0, at);
    if (std::all_of(unit.begin(), unit.end(), [](char c) { return lower(c) || is_digit(c); })) return true;
  }
  if (is_upper_case_event(word) || is_hyphenated_event(word)) return true;
  if (word.find('-') != std::string_view::npos) return false;
  if (!separated && !capital_inside) return false;
  if (word.find('_') == std::string_view::npos && separated) return false; // "e.g", "1.5.x", "sched:switch"
  return has_counted_piece(word);
}

} // namespace pragma
