#include "crawler/cues.hpp"

#include "crawler/charset.hpp"
#include "diagnosis/finding.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace pragma::crawler {

namespace {

constexpr size_t most_diagnoses = 4;

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// `phrase` in `text` (both lower case) where a word begins; a phrase that ends in '*' may go on in the same word.
bool says(std::string_view text, std::string_view phrase) {
  const bool open = phrase.ends_with('*');
  if (open) phrase.remove_suffix(1);
  for (auto at = text.find(phrase); at != std::string_view::npos; at = text.find(phrase, at + 1)) {
    const auto end = at + phrase.size();
    if (at > 0 && word_char(text[at - 1])) continue;
    // "high-level" is not "high".
    if (!open && end < text.size() &&
        (word_char(text[end]) || (text[end] == '-' && end + 1 < text.size() && word_char(text[end + 1]))))
      continue;
    return true;
  }
  return false;
}

bool says_any(std::string_view text, std::initializer_list<std::string_view> phrases) {
  return std::any_of(phrases.begin(), phrases.end(), [&](auto phrase) { return says(text, phrase); });
}

std::string flat_lower(std::string_view text) { return one_line(ascii_lower(text)); }

std::string name_of(bottleneck b) { return json(b).get<std::string>(); }

} // namespace

const std::vector<std::string>& diagnosis_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (int i = 0; i <= static_cast<int>(bottleneck::redundant_work); ++i) all.push_back(name_of(static_cast<bottleneck>(i)));
    return all;
  }();
  return names;
}

std::string implied_unit(std::string_view description) {
  const auto text = flat_lower(description);
  const auto start = std::string_view(text).substr(0, 160); // what it is stands first; units of other things come later
  if (says_any(start, {"percent", "percentage", "fraction in percent"}) || start.find("(%)") != std::string_view::npos ||
      start.find(" in %") != std::string_view::npos)
    return "%";
  // "the number of instructions divided by the number of cycles" is in neither
  if (says_any(start, {"divided by", "dividing", "over the number of", "multiplied by"})) return {};
  if (says_any(start, {"bytes per second", "bytes/second", "bytes/sec"})) return "bytes/s";
  if (says_any(start, {"gb/s"})) return "GB/s";
  if (says_any(start, {"ratio of", "ratio between", "the ratio"})) return "ratio";
  if (says_any(start, {"in nanoseconds", "nanoseconds"})) return "ns";
  if (says_any(start, {"in microseconds", "microseconds"})) return "us";
  if (says_any(start, {"in milliseconds", "milliseconds"})) return "ms";
  if (says_any(start, {"in seconds", "number of seconds"})) return "s";
  if (says_any(start, {"per cycle", "per instruction", "per second", "per request"})) return {};
  const bool counts_cycles =
      start.starts_with("cycles ") || start.starts_with("core cycles") || start.starts_with("clock cycles") ||
      says_any(start, {"number of cycles", "number of clock cycles", "number of core cycles", "count of cycles", "counts cycles",
                       "counts the cycles", "counts core cycles", "total cycles", "elapsed cycles", "number of elapsed cycles",
                       "number of gpu cycles", "in cycles", "counts the number of cycles", "number of core clock cycles",
                       "number of reference cycles"});
  if (counts_cycles) return "cycles";
  if (start.starts_with("bytes ") ||
      says_any(start, {"number of bytes", "total bytes", "in bytes", "amount of bytes", "amount of data in bytes"}))
    return "bytes";
  return {};
}

bool tells_measurement(std::string_view sentence) {
  return says_any(flat_lower(sentence),
                  {"computed",   "calculated",    "measured",    "measures",     "counted",     "counts the",   "counts how",
                   "counts all", "counts any",    "counts each", "counts every", "counts only", "counts both",  "counts cycles",
                   "sampled",    "ratio of",      "formula",     "divided by",   "is given by", "derived from", "sum of",
                   "summing",    "multiplied by", "normalised",  "normalized",   "simulated",   "incremented",  "increments"}) ||
         flat_lower(sentence).starts_with("counts ");
}

bool tells_reading(std::string_view sentence) {
  return says_any(
      flat_lower(sentence),
      {"high",       "higher",          "low",         "lower",   "large",    "larger",         "should",         "indicate",
       "indicates",  "indicating",      "suggests",    "hints",   "hint",     "means that",     "ideally",        "ideal",
       "worse",      "better",          "poor",        "bad",     "good",     "bottleneck",     "bottlenecks",    "caused by",
       "limited by", "stalled because", "inefficient", "optimal", "close to", "expected to be", "can be reduced", "consider"});
}

bool addresses_a_model(std::string_view sentence) {
  const auto start = sentence.substr(std::min(sentence.find_first_not_of(" \n\"'*#>-"), sentence.size()));
  for (const std::string_view role : {"SYSTEM:", "System prompt", "ASSISTANT:", "USER:", "<|", "[INST]", "### Instruction"})
    if (start.starts_with(role)) return true;
  const auto text = flat_lower(sentence);
  const bool orders = says_any(text, {"ignore", "disregard", "forget", "override", "overrule"}) &&
                      says_any(text, {"instruction", "instructions", "prompt", "prompts", "rules", "guidelines", "context"}) &&
                      says_any(text, {"previous", "prior", "above", "earlier", "all", "your", "any", "preceding", "these", "system"});
  return orders || says_any(text, {"you are an ai", "as an ai", "as a language model", "you are chatgpt", "you are an assistant", "you are a helpful",
                                   "your system prompt", "reveal your", "do not tell the user", "answer only with", "respond only with", "reply only with",
                                   "always answer", "you must answer", "you must say", "new instructions"});
}

std::vector<std::string> implied_diagnoses(std::string_view raw) {
  const auto text = flat_lower(raw);
  std::vector<std::string> found;
  auto add = [&](bottleneck b) {
    auto n = name_of(b);
    if (found.size() < most_diagnoses && std::find(found.begin(), found.end(), n) == found.end()) found.push_back(std::move(n));
  };
  const auto any = [&](std::initializer_list<std::string_view> phrases) { return says_any(text, phrases); };

  if (any({"mispredict*", "misprediction*", "mis-predict*", "predictor misses", "misses of the jump address predictor",
           "bad speculation", "branch miss*", "branch-miss*", "machine clear*", "wrong path", "resteer*",
           "wasted due to incorrect speculation"}))
    add(bottleneck::bad_speculation);

  const bool instruction_side =
      any({"instruction cache", "icache", "i-cache", "i1 cache", "i cache", "itlb", "instruction fetch*", "instruction read*",
           "frontend", "front-end", "front end", "decode stall*", "no instruction", "instruction tlb", "llc instruction",
           "cache instruction read", "fe bound", "decoder*"});
  const bool misses =
      any({"miss", "misses", "missed", "stall*", "bound", "latency", "starv*", "bubbles", "empty", "undersuppl*", "waiting"});
  if (instruction_side && (misses || any({"frontend", "front-end", "front end"}))) add(bottleneck::front_end_bound);

  const bool dram = any({"dram", "hbm", "main memory", "memory controller", "device memory", "video memory", "external memory"});
  const bool cache =
      any({"cache*", "l1*", "l2*", "l3*", "llc", "ll", "d1", "d cache", "last-level", "last level", "tlb", "dtlb", "page walk*"});
  if (any({"coalesc*", "uncoalesc*", "strided", "stride", "bank conflict*", "sectors per request", "spatial locality",
           "spatial loss", "partial sector*"}))
    add(bottleneck::strided_access);
  if (any({"memory bandwidth", "bandwidth bound", "bandwidth-bound", "bandwidth utili*", "bandwidth limited"}) ||
      (dram && any({"bandwidth", "throughput", "bytes", "sectors"})))
    add(bottleneck::memory_bandwidth_bound);
  if (any({"store bound", "store buffer*", "store bandwidth", "streaming store*", "non-temporal", "write-back traffic",
           "dirty miss*"}))
    add(bottleneck::store_bandwidth_bound);
  const bool data_misses = cache && any({"miss", "misses", "missed", "temporal locality", "page walk*", "refill*"}) &&
                           (!instruction_side || any({"data", "load*", "dtlb", "l2*", "l3*", "read or write"}));
  if (data_misses ||
      any({"memory latency", "long scoreboard", "latency bound", "waiting for memory", "waiting on memory", "stalled on memory",
           "memory bound", "load latency"}) ||
      (any({"stall*", "stalled"}) && (dram || any({"memory", "outstanding load*", "cache*"}))))
    add(bottleneck::memory_latency_bound);

  if (any({"divider*", "division*", "divide unit", "div unit", "square root*"})) add(bottleneck::divider_bound);
  if (any({"execution port*", "port pressure", "port utili*", "ports", "resource pressure", "pipe utili*", "functional unit*",
           "fma pipe", "issue slot utili*", "execution unit*"}))
    add(bottleneck::port_pressure);
  if (any({"register dependenc*", "data dependenc*", "dependency chain*", "dependent instruction*", "short scoreboard",
           "dependencies between instructions", "loop-carried"}))
    add(bottleneck::dependency_chain);
  if (any({"not vectori*", "vectori*", "vector width", "simd", "packed", "scalar floating*", "scalar single", "scalar double",
           "vector instruction*", "vector units"}))
    add(bottleneck::not_vectorized);
  if (any({"load imbalance", "imbalance", "false sharing", "hitm", "workload balance", "uneven"})) add(bottleneck::load_imbalance);
  if (any({"denormal*", "subnormal*", "fp assist*", "floating point assist*", "floating-point assist*", "microcode assist*"}))
    add(bottleneck::denormals);
  if (any({"context switch*", "context-switch*", "barrier*", "cpu migration*", "lock contention", "spin*"}))
    add(bottleneck::thread_overhead);
  if (any({"launch overhead", "call overhead", "launch latency"})) add(bottleneck::call_overhead);
  return found;
}

} // namespace pragma::crawler
