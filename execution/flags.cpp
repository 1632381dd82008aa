// check_flags(): which compiler flags a candidate may ask for. An allow-list of whole flags, since a compiler driver has
// many that read, write or run something else (-fplugin=, -B, @file, -specs=, -wrapper, -fuse-ld=, -Wl,...).
#include "base/text.hpp"
#include "execution/build.hpp"

#include <algorithm>
#include <array>
#include <regex>

namespace pragma {

namespace {

constexpr size_t max_flags = 64, max_flag_bytes = 200;

/// Optimisations that only change code. Each is allowed as -fNAME and -fno-NAME.
constexpr std::array optimisations = {
    "aggressive-loop-optimizations", "align-functions", "align-jumps", "align-labels", "align-loops", "associative-math",
    "auto-inc-dec", "branch-count-reg", "branch-probabilities", "builtin", "caller-saves", "code-hoisting",
    "combine-stack-adjustments", "common", "cprop-registers", "crossjumping", "cse-follow-jumps", "cx-fortran-rules",
    "cx-limited-range", "dce", "delete-null-pointer-checks", "devirtualize", "dse", "early-inlining", "exceptions",
    "excess-precision=fast", "excess-precision=standard", "expensive-optimizations", "fast-math", "finite-loops",
    "finite-math-only", "float-store", "forward-propagate", "fp-contract=fast", "fp-contract=off", "fp-contract=on",
    "gcse", "gcse-after-reload", "gcse-las", "gcse-lm", "gcse-sm", "graphite", "graphite-identity", "guess-branch-probability",
    "hoist-adjacent-loads", "if-conversion", "if-conversion2", "indirect-inlining", "inline", "inline-functions",
    "inline-functions-called-once", "inline-small-functions", "ipa-cp", "ipa-cp-clone", "ipa-icf", "ipa-modref", "ipa-pta",
    "ipa-pure-const", "ipa-ra", "ipa-sra", "ira-hoist-pressure", "ira-loop-pressure", "ivopts", "jump-tables",
    "keep-inline-functions", "lax-vector-conversions", "live-range-shrinkage", "loop-block", "loop-interchange",
    "loop-nest-optimize", "loop-parallelize-all", "loop-strip-mine", "loop-unroll-and-jam", "math-errno", "merge-all-constants",
    "merge-constants", "modulo-sched", "modulo-sched-allow-regmoves", "move-loop-invariants", "move-loop-stores",
    "non-call-exceptions", "omit-frame-pointer", "openmp", "openmp-simd", "optimize-sibling-calls", "partial-inlining",
    "peel-loops", "peephole", "peephole2", "plt", "predictive-commoning", "prefetch-loop-arrays", "reciprocal-math",
    "ree", "rename-registers", "reorder-blocks", "reorder-blocks-and-partition", "reorder-functions", "rerun-cse-after-loop",
    "rounding-math", "rtti", "sched-interblock", "sched-pressure", "sched-spec", "schedule-insns", "schedule-insns2",
    "section-anchors", "sel-sched-pipelining", "selective-scheduling", "selective-scheduling2", "short-enums",
    "shrink-wrap", "signaling-nans", "signed-char", "signed-zeros", "single-precision-constant", "slp-vectorize",
    "split-ivs-in-unroller", "split-loops", "split-paths", "split-wide-types", "ssa-phiopt", "stack-protector", "stdarg-opt",
    "store-merging", "strict-aliasing", "strict-overflow", "thread-jumps", "threadsafe-statics", "tracer", "trapping-math",
    "trapv", "tree-bit-ccp", "tree-ccp", "tree-ch", "tree-coalesce-vars", "tree-copy-prop", "tree-dce", "tree-dominator-opts",
    "tree-dse", "tree-forwprop", "tree-fre", "tree-loop-distribute-patterns", "tree-loop-distribution", "tree-loop-if-convert",
    "tree-loop-im", "tree-loop-ivcanon", "tree-loop-linear", "tree-loop-optimize", "tree-loop-vectorize", "tree-partial-pre",
    "tree-phiprop", "tree-pre", "tree-pta", "tree-reassoc", "tree-scev-cprop", "tree-sink", "tree-slp-vectorize",
    "tree-slsr", "tree-sra", "tree-switch-conversion", "tree-tail-merge", "tree-ter", "tree-vectorize", "tree-vrp",
    "unconstrained-commons", "unroll-all-loops", "unroll-loops", "unsafe-math-optimizations", "unsigned-char",
    "unswitch-loops", "unwind-tables", "asynchronous-unwind-tables", "variable-expansion-in-unroller", "vect-cost-model", "vectorize",
    "version-loops-for-strides", "visibility-inlines-hidden", "web", "wrapv", "wrapv-pointer", "zero-initialized-in-bss",
    "approx-func", "honor-nans", "honor-infinities", "fast-math", "slp-vectorize", "denormal-fp-math=ieee"};

/// The -f options of the list that take a value.
const std::regex& valued() {
  static const std::regex pattern("-f(align-(functions|jumps|labels|loops)=[0-9:]+|vect-cost-model=(unlimited|dynamic|cheap|very-cheap)"
                                  "|simd-cost-model=(unlimited|dynamic|cheap|very-cheap)|inline-limit=[0-9]+|fp-model=(precise|strict|fast)"
                                  "|ffp-exception-behavior=[a-z]+|constexpr-(depth|loop-limit|ops-limit)=[0-9]{1,9}|template-depth=[0-9]{1,5}"
                                  "|tree-parallelize-loops=[0-9]{1,3}|max-errors=[0-9]{1,4})");
  return pattern;
}

const std::regex& others() {
  static const std::regex pattern(
      "-O([0-3sgz]|fast)?"
      "|-(march|mtune|mcpu)=[A-Za-z0-9.+_-]+"
      "|-mprefer-vector-width=(none|128|256|512)|-mrecip(=[a-z0-9,!:-]+)?|-mveclibabi=(svml|acml)|-mfpmath=(sse|387|both)"
      "|-m(no-)?(avx[a-z0-9.-]*|sse[a-z0-9.]*|ssse3|fma4?|bmi2?|f16c|popcnt|lzcnt|adx|aes|vaes|pclmul|vpclmulqdq|amx-[a-z0-9]+|gfni|sha|movbe"
      "|prefetchw[a-z0-9]*|prfchw|vzeroupper|fsgsbase|rdrnd|rdseed|clflushopt|clwb|cldemote|movdir64b|movdiri|mwaitx|tbm|xop|lwp|mmx|3dnow"
      "|xsave[a-z]*|sahf|cx16|red-zone|stackrealign|80387|fancy-math-387|ieee-fp|align-double|tune-ctrl|outline-atomics)"
      "|-mpreferred-stack-boundary=[0-9]+|-mbranch-cost=[0-9]+|-mmemcpy-strategy=[a-z0-9:,-]+|-mmemset-strategy=[a-z0-9:,-]+"
      "|-msve-vector-bits=[a-z0-9]+"
      "|-std=(c|gnu)\\+\\+(11|14|17|1z|20|2a|23|2b)"
      "|-[DU][A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?"
      "|--param=[a-z0-9-]+=[0-9]+"
      "|-w|-W(no-)?[a-z0-9+-]*[a-z0-9+](=[0-9a-z-]+)?"
      "|-g[0-3]?|-ggdb[0-3]?|-gdwarf(-[2-5])?|-gline-tables-only|-gno-column-info"
      "|-pthread|-pedantic|-fno-lto");
  return pattern;
}

/// Why the usual suspects are refused; the rest is simply "not on the list".
std::string reason(const std::string& flag) {
  static const std::array<std::pair<const char*, const char*>, 19> reasons = {{
      {"-fplugin", "it loads code into the compiler"},
      {"-B", "it makes the driver run other programs"},
      {"@", "it reads further flags from a file"},
      {"-specs", "it reprograms the compiler driver"},
      {"--specs", "it reprograms the compiler driver"},
      {"-wrapper", "it runs another program"},
      {"-Wl,", "linker options are not the candidate's to set"},
      {"-Xlinker", "linker options are not the candidate's to set"},
      {"-fuse-ld", "linker options are not the candidate's to set"},
      {"-T", "linker scripts are not the candidate's to set"},
      {"-Wa,", "assembler options are not the candidate's to set"},
      {"-I", "a candidate is one source file; only the system's headers and pragma_kernel.h are there"},
      {"-i", "a candidate is one source file; only the system's headers and pragma_kernel.h are there"},
      {"-L", "no further libraries are linked"},
      {"-l", "no further libraries are linked (the C, C++, math and OpenMP libraries always are)"},
      {"-o", "PRAGMA decides where the output goes"},
      {"-x", "a candidate is C++"},
      {"-fdump", "it writes files"},
      {"-save-temps", "it writes files"},
  }};
  for (const auto& [start, why] : reasons)
    if (flag.rfind(start, 0) == 0) return why;
  if (!flag.empty() && flag[0] != '-') return "it is not a flag: a candidate is one source file";
  return "it is not on the list of flags that only change the code";
}

bool allowed(const std::string& flag) {
  if (flag.rfind("-Wl", 0) == 0 || flag.rfind("-Wa", 0) == 0 || flag.rfind("-Wp", 0) == 0) {
    // -Wall, -Walign..., -Wparentheses are warnings; -Wl / -Wa / -Wp alone or with a comma pass options on.
    if (flag.size() < 4 || flag[3] == ',') return false;
  }
  if (flag.rfind("-f", 0) == 0) {
    auto name = flag.substr(2);
    if (name.rfind("no-", 0) == 0) name = name.substr(3);
    if (std::find(optimisations.begin(), optimisations.end(), name) != optimisations.end()) return true;
    if (std::regex_match(flag, valued())) return true;
  }
  return std::regex_match(flag, others());
}

} // namespace

expected<void> check_flags(const std::vector<std::string>& flags) {
  if (flags.size() > max_flags)
    return fail(ec::invalid_argument, std::to_string(flags.size()) + " compiler flags, at most " + std::to_string(max_flags) + " are taken");
  for (size_t i = 0; i < flags.size(); ++i) {
    const auto& flag = flags[i];
    auto shown = printable(flag.substr(0, max_flag_bytes));
    std::replace(shown.begin(), shown.end(), '\n', ' ');
    if (flag == "--param" && i + 1 < flags.size() && allowed("--param=" + flags[i + 1])) {
      ++i;
      continue;
    }
    if (flag.size() > max_flag_bytes || !allowed(flag))
      return fail(ec::invalid_argument, "compiler flag '" + shown + "' is not allowed: " + reason(flag),
                  "allowed are -O, -march and other -m<isa>, -f<optimisation>, -ffast-math, -fopenmp, -D, -U, --param, -std, -W and -g flags");
  }
  return {};
}

} // namespace pragma
