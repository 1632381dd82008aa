// Causes and remedies for failed candidates: patterns over what compilers, the sandbox and the comparer say.
#include "base/language.hpp"
#include "base/text.hpp"
#include "diagnosis/conductor.hpp"
#include "diagnosis/repair_patterns.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <regex>

namespace pragma {

namespace {

constexpr size_t max_hints = 4;
constexpr size_t symptom_bytes = 200;

using diagnosis_detail::pattern;

const std::vector<pattern>& patterns() {
  static const std::vector<pattern> table = {
      // -- building: the more specific first ------------------------------------------------------------------------
      {"build", {"does not define extern \"C\" void pragma_kernel", "undefined reference to `pragma_kernel'"}, "", "",
       "The entry point is missing, has another name, or has C++ linkage.",
       "Include pragma_kernel.h and define exactly: extern \"C\" void pragma_kernel(const pragma_args* args)."},
      {"build", {"conflicting declaration of C function", "conflicting types for 'pragma_kernel'"}, "", "",
       "pragma_kernel is defined with other parameters than pragma_kernel.h declares.",
       "Keep the signature void pragma_kernel(const pragma_args* args); take pointers from args->inputs[i].data, args->params[i].data, args->outputs[i].data."},
      {"build", {"multiple definition of `main'", "redefinition of 'main'"}, "", "",
       "The source defines main(), but the runner that it is linked with has one.", "Remove main(): only pragma_kernel and helpers."},
      {"build", {"undefined reference to `omp_", "undefined reference to `GOMP_"}, "", "",
       "OpenMP functions are used but the program is built without OpenMP.",
       "Add -fopenmp to the flags (gcc), or drop the OpenMP calls and use args->threads."},
      {"build", {"-fopenmp is not available with clang"}, "", "", "clang's OpenMP library cannot be linked statically here.", "Build with gcc when threads are needed, or use -fopenmp-simd with clang."},
      {"build", {"undefined reference to"}, "", "",
       "A function is declared and called but defined nowhere: one source file is all there is, and only libc, libm, libstdc++ and OpenMP are linked.",
       "Define the function in this source (static inline), or use one from the standard library; MKL, SVML, Torch and intrinsics such as _mm256_exp_ps are not available."},
      {"build", {"target specific option mismatch", "requires target feature", "without 'avx", "enabled changes the ABI"}, "", "",
       "An intrinsic needs an instruction set that the flags do not switch on (or that this machine does not have).",
       "Add -march=native (or the exact -mavx2 -mfma, -mavx512f), and use only the vector width that the machine has."},
      {"build", {"'__m128' was not declared", "'__m256' was not declared", "'__m256i' was not declared", "'__m512' was not declared", "unknown type name '__m"}, "", "",
       "Vector types are used without their header.", "Add #include <immintrin.h>."},
      {"build", {"torch/", "pybind11/", "Python.h", "cuda_runtime.h", "mkl.h"}, "error", "",
       "The source includes Torch, Python, CUDA or MKL, none of which a candidate may use.",
       "Write plain C++ against pragma_kernel.h: tensors are raw pointers with shapes."},
      {"build", {"No such file or directory", "file not found"}, "", "",
       "A header does not exist here: only the system's C and C++ headers, immintrin.h, omp.h and pragma_kernel.h are there.", "Remove the include or replace it by a standard header."},
      {"build", {"is not a member of 'std'", "no member named", "use of undeclared identifier 'std'"}, "", "",
       "A standard header is missing.",
       "Add the header: <algorithm> for max/min, <cmath> for exp/sqrt, <vector>, <limits>, <cstring> for memcpy, <cstdint> for int64_t."},
      {"build", {"invalid controlling predicate", "invalid increment expression", "depends on the current loop control variable", "is not in canonical form", "for statement expected", "must be a for loop", "statement after '#pragma omp"}, "", "",
       "The loop behind #pragma omp for is not in the form that OpenMP needs.",
       "Write for (int64_t i = 0; i < n; i += step) with a loop-invariant bound, directly behind the pragma."},
      {"build", {"break statement used with OpenMP", "'break' statement cannot be used in OpenMP", "invalid exit from OpenMP", "cannot return from OpenMP region", "invalid branch to/from OpenMP"}, "", "",
       "An OpenMP loop must not be left by break, return or goto.", "Use a condition inside the loop, or take the early exit out of the parallel loop."},
      {"build", {"not specified in enclosing", "must have explicitly specified data sharing"}, "", "",
       "default(none) wants every variable to be listed.", "Remove default(none), or list the variables in shared(), firstprivate() and reduction()."},
      {"build", {"user defined reduction not found", "in 'reduction' clause", "reduction clause"}, "", "",
       "The variable of a reduction clause has a type without a built-in reduction (a vector, a struct, a pointer).",
       "Reduce over a plain float, int or array section (reduction(+:x[:n])), or let each thread keep a partial result and combine them after the loop."},
      {"build", {"invalid operands to binary expression"}, "#pragma omp", "",
       "The variable of the OpenMP loop or reduction has a type for which the operation does not exist.", "Reduce over plain numbers, and count loops with integers."},
      {"build", {"invalid conversion from 'void*'", "invalid conversion from 'const void*'", "of type 'void *"}, "", "",
       "pragma_tensor::data is a void pointer, which C++ does not convert by itself.",
       "Cast it: const float* x = static_cast<const float*>(args->inputs[0].data);"},
      {"build", {"assignment of read-only", "read-only variable is not assignable", "discards qualifiers"}, "", "",
       "The code writes through a pointer to const: inputs and parameters are read-only.", "Write to args->outputs or to a local buffer."},
      {"build", {"narrowing conversion", "cannot be narrowed"}, "", "",
       "A 64-bit value (a shape) initialises a narrower one inside braces.", "Use int64_t throughout, or static_cast<int>(...)."},
      {"build", {"must be an 8-bit immediate", "must be a constant integer", "8-bit immediate", "is not usable in a constant expression", "non-type template argument is not a constant expression", "invalid explicitly-specified argument for template"}, "", "",
       "An intrinsic or a template needs a compile-time constant, but gets a variable.",
       "Make it constexpr or a template parameter (the shapes of the task are fixed and may be written as constants), or branch over the few possible values."},
      {"build", {"cannot convert '__m"}, "", "",
       "Vectors of different kinds are mixed (__m256, __m256d, __m256i).", "Use the intrinsic of the right suffix (_ps, _pd, _epi32), or _mm256_castps_si256 and _mm256_castsi256_ps."},
      {"build", {"redefinition of", "redeclaration of", "was previously declared"}, "", "", "The same name is defined twice.", "Remove or rename one of them."},
      {"build", {"no matching function for call", "too few arguments to function", "too many arguments to function", "candidate function not viable", "cannot convert '"}, "", "",
       "A function is called with arguments that fit none of its versions.",
       "Check the number and types of the arguments; std::max and std::min need two of the same type (std::max<int64_t>(a, b))."},
      {"build", {"expected '}' at end of input", "expected '}'", "expected declaration", "unterminated"}, "", "",
       "A brace, bracket or comment is not closed: the answer may have been cut off.", "Give the whole source again, and balance the braces."},
      {"build", {"expected ';'", "expected ',' or ';'", "expected primary-expression", "stray '", "expected unqualified-id"}, "", "", "The source is not valid C++ at this place.", "Correct the syntax there; the first error matters, later ones often follow from it."},
      {"build", {"was not declared in this scope", "use of undeclared identifier", "unknown type name", "does not name a type"}, "", "",
       "A name is used that is declared nowhere: a missing include (sqrtf, expf: <cmath>; memcpy: <cstring>; omp_*: <omp.h>), a typing error, or a variable of another scope.",
       "Include the header or declare the name before its use."},
      {"build", {"is not allowed"}, "flag", "", "A compiler flag is not on the list of flags that only change the code.", "Use -O3, -march=native, -ffast-math and its parts, -funroll-loops, -fopenmp, -mprefer-vector-width=N, -D, --param; leave the others out."},
      {"build", {"took longer than", "out of memory", "virtual memory exhausted", "ended at its limits", "Killed signal", "template instantiation depth"}, "", "",
       "The compiler ran into its limits: too much code is generated (deep templates, huge unrolled loops, large constant tables).",
       "Unroll less, use loops instead of generated code, and fewer template instances."},
      {"build", {"static assertion failed", "static_assert failed"}, "", "", "A static_assert of the source does not hold.", "Correct the assumption, or remove the assertion."},

      // -- running ------------------------------------------------------------------------------------------------
      {"load run audit measure", {"forbidden system call", "SIGSYS"}, "", "",
       "The candidate made a system call that a kernel has no need for: files, processes, sockets, sleeping, signals, time.",
       "Compute only: no file or console I/O, no fork or exec, no clock, no environment. Threads through OpenMP or std::thread are allowed."},
      {"load run audit measure", {"SIGSEGV", "SIGBUS", "past the end of", "before the start of"}, "", "",
       "Memory was accessed that is not there: an index beyond a tensor (often in the last, partial vector or tile), an unaligned pointer given to an aligned load, or a write to inputs or parameters, which are read-only.",
       "Check all bounds for sizes that are no multiple of the vector width or tile, use loadu/storeu unless the address is aligned for certain, and write only to outputs."},
      {"load run audit measure", {"SIGILL"}, "", "",
       "An instruction that this CPU does not have was executed.", "Build with -march=native and use only instruction sets that the machine has (see the machine's description)."},
      {"load run audit measure", {"SIGFPE"}, "", "", "An integer was divided by zero, or floating-point traps were switched on.", "Check integer divisors (sizes, threads), and do not call feenableexcept."},
      {"load run audit measure", {"SIGABRT", "terminate called", "std::bad_alloc", "SIGKILL", "memory ran out"}, "", "",
       "The program gave up by itself or ran out of memory: an exception (std::bad_alloc), a failed assertion, a corrupted heap, or far too large temporaries.",
       "Keep temporaries small (a tile per thread), throw no exceptions, and check that no buffer is written beyond its end."},
      {"load run audit measure", {"did not come back", "timed out", "SIGXCPU", "took longer"}, "", "",
       "The call did not end in time: an endless loop (an unsigned counter that runs below zero, a step of zero), a deadlock between threads, or an algorithm far too slow.",
       "Check loop bounds and steps, take locks and barriers on every path, and use at most args->threads threads."},
      {"load run audit measure", {"ended its process by itself"}, "", "", "The candidate called exit() or returned from its process.", "Return from pragma_kernel; never call exit, abort or quick_exit."},
      {"load run audit measure", {"control channel"}, "", "", "The candidate used file descriptors that are not its own.", "Touch no file descriptors: no printf, no read or write."},
      {"load run audit measure", {"rounding mode", "flush-to-zero", "denormals-are-zero", "floating-point control"}, "", "",
       "The floating-point mode was changed and not restored: -ffast-math start-up code or _MM_SET_FLUSH_ZERO_MODE does that.",
       "Save MXCSR with _mm_getcsr() and restore it with _mm_setcsr() before returning, or leave it alone."},
      {"load", {"constructor", "before it said ready", "before the call"}, "", "", "The program failed before the first call: in a constructor of a global object or a static initialiser.", "Use no globals with constructors; initialise tables at compile time (constexpr) or on first use."},

      // -- comparing (see also compare_hints) -----------------------------------------------------------------------
      {"compare", {"caches by address"}, "", "", "The answer belongs to the inputs that lay at the same address before: results are kept by pointer.", "Compute from the contents on each call; keep no state between calls."},
      {"compare audit", {"gave different outputs", "keeps state between calls", "its first run on the same inputs was right"}, "", "",
       "Two runs on the same inputs differ: memory is read before it is written (an accumulator or buffer not initialised), threads race, or state is kept between calls.",
       "Initialise every accumulator and temporary on each call, give each thread its own, and use no static variables."},

      // -- audits -------------------------------------------------------------------------------------------------
      {"audit", {"caches answers by content", "skips work that it finds done"}, "", "", "The candidate recognises inputs or outputs that it has seen, and does not compute again.", "Do all the work on every call."},
      {"audit", {"changed its inputs", "changed the parameters"}, "", "", "Inputs and parameters must stay as they are.", "Copy what is to be changed into a local buffer, or write to the outputs."},
      {"audit", {"works in the background", "outside the measured time", "slows the reference down"}, "", "", "Threads go on working after the call has returned.", "Join or finish all work before returning: an OpenMP parallel region does so by itself."},
      {"audit", {"does not do the work on every call", "does not compute on every call", "exchanged"}, "", "", "Not every call of a batch does its work.", "Compute from the inputs' contents on every call, with no state between calls."},
      {"audit", {"is not believed", "allows: this measurement"}, "", "", "The time is shorter than the hardware allows: part of the work is not done, or the measurement was disturbed.", "Read every input element and write every output element on each call."},
      {"audit", {"cannot be verified"}, "", "", "The task's output hardly depends on its input, so that a wrong kernel would pass.", "Nothing in the candidate can help: choose another task, or inputs that vary."},
      {"measure", {"no measurement", "too few", "contended", "busy", "accepted"}, "", "", "Other work on the machine disturbed the timing.", "Try again when the machine is idle; the candidate itself is not at fault."},
  };
  return table;
}

bool has_word(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const bool starts = at == 0 || words[at - 1] == ' ', ends = at + word.size() == words.size() || words[at + word.size()] == ' ';
    if (starts && ends) return true;
  }
  return false;
}

/// The line that holds position `at`, cut to what is readable.
std::string line_at(const std::string& text, size_t at) {
  const auto start = text.rfind('\n', at), end = text.find('\n', at);
  const size_t from = start == std::string::npos ? 0 : start + 1;
  auto line = trim(std::string_view(text).substr(from, end == std::string::npos ? end : end - from));
  if (line.size() > symptom_bytes) line = line.substr(0, symptom_bytes) + "...";
  return printable(line);
}

/// Compilers quote with typographic marks in UTF-8 locales; the patterns use plain ones.
std::string plain_quotes(std::string text) {
  for (const char* mark : {"\u2018", "\u2019"})
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) text.replace(at, 3, "'");
  return text;
}

/// The comparer's sentence taken apart: "out0[1, 3] is 0, expected 0.73 (large values); 5 of 100 elements are wrong".
struct difference {
  std::string got, wanted, input_set;
  bool unwritten = false;
  std::vector<long> index;
  double wrong = 1, total = 1;
};

std::optional<difference> parse_difference(const std::string& reason) {
  static const std::regex form(R"((\w+)(?:\[([\d, ]+)\])? (was not written|is ([^,\s]+)), expected ([^\s(]+) \(([^)]*)\)(?:; (\d+) of (\d+) element)?)");
  std::smatch m;
  const auto text = reason.substr(0, 2000);
  if (!std::regex_search(text, m, form)) return std::nullopt;
  difference d;
  d.unwritten = m[3].str().rfind("was not", 0) == 0;
  d.got = m[4].str();
  d.wanted = m[5].str();
  d.input_set = m[6].str();
  if (m[2].matched)
    for (const auto& part : split(m[2].str(), ',')) d.index.push_back(std::strtol(trim(part).c_str(), nullptr, 10));
  if (m[7].matched) {
    d.wrong = std::strtod(m[7].str().c_str(), nullptr);
    d.total = std::strtod(m[8].str().c_str(), nullptr);
  }
  return d;
}

/// What is said of wrong results in the words of a language: a row for each.
struct repair_words {
  std::string_view language;
  const std::vector<pattern>& (*patterns)();
  const char *layout, *unwritten, *border, *zero_over_zero, *finite_symptom, *finite_remedy, *precision, *all_wrong; ///< compare_hints() has the cause of each
};
constexpr repair_words repair_table[] = {
    {language_name::cpp, patterns,
     "Write exactly args->outputs[i].shape elements of args->outputs[i].dtype, row-major.",
     "Handle the remainder after the last full vector or tile, cover all rows for every thread count, and write every output.",
     "Check the sizes that are no multiple of the vector width, and the first and last index of each dimension.",
     " With -ffast-math remove -ffinite-math-only.",
     "The reference gives NaN or infinity here and the candidate a number: -ffast-math assumes that there are none, or a clamp hides them.",
     "Build with -fno-finite-math-only, and let NaN and infinity pass through as the reference does.",
     "Use a polynomial of higher degree or range reduction with two constants, several accumulators or double for long sums, and two passes or Welford's method for variances.",
     "Check the reference's forward() step by step, the order of args->inputs and args->params (parameters, then buffers), and that tensors are row-major."},
    {language_name::triton, diagnosis_detail::triton_patterns,
     "Return contiguous tensors of exactly the reference's shapes and dtypes, in its order.",
     "Cover all of the output with the grid (triton.cdiv), mask only what lies beyond it, and store every output.",
     "Check the masks where a size is no multiple of BLOCK, and that masked loads have the neutral element as other= (0 for sums, -inf for maxima).",
     " A row that is masked out whole has -inf as its maximum: -inf - -inf is NaN.",
     "The reference gives NaN or infinity here and the candidate a number: tl.maximum and tl.minimum drop NaN, or a clamp hides them.",
     "Use propagate_nan=tl.PropagateNan.ALL in tl.maximum and tl.minimum, and let NaN and infinity pass through as the reference does.",
     "Products: tl.dot with input_precision=\"ieee\" or \"tf32x3\" (the default is TF32), accumulators in float32; two passes or Welford's method for variances; partial sums over blocks instead of one long chain.",
     "Check the reference's forward() step by step, strides (in elements) and program ids, and the order of the parameters."},
};
const repair_words& words_in(const std::string& language) {
  for (const auto& row : repair_table)
    if (row.language == language) return row;
  return repair_table[0];
}

/// Whole numbers on both sides: positions, most likely. A whole float prints alike, but seldom on both sides of a failed comparison.
bool index_output(const difference& d) {
  const auto whole = [](const std::string& text) { return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos; };
  return !d.unwritten && whole(d.got) && whole(d.wanted) && d.wrong < d.total;
}

void compare_hints(const std::string& reason, const repair_words& in, std::vector<repair_hint>& hints) {
  const auto d = parse_difference(reason);
  const auto say = [&](std::string cause, std::string remedy) { hints.push_back({line_at(reason, 0), std::move(cause), std::move(remedy)}); };
  if (reason.find("shape") != std::string::npos || reason.find("dtype") != std::string::npos)
    say("The output has another shape or type than the reference's.",
        in.layout);
  if (!d) return;
  const double got = std::strtod(d->got.c_str(), nullptr), wanted = std::strtod(d->wanted.c_str(), nullptr);
  const bool got_nan = d->got.find("nan") != std::string::npos, got_inf = d->got.find("inf") != std::string::npos;
  const bool wanted_finite = d->wanted.find("nan") == std::string::npos && d->wanted.find("inf") == std::string::npos;
  const bool few = d->total > 8 && d->wrong <= d->total / 8, all = d->total > 8 && d->wrong >= d->total * 0.99;
  const bool large = d->input_set.find("large") != std::string::npos, tiny = d->input_set.find("tiny") != std::string::npos;

  if (d->unwritten)
    say("Output elements were never written: the loops do not reach them" + std::string(few ? " (often the last ones, which do not fill a vector or tile)." : "."),
        in.unwritten);
  else if (few && index_output(*d))
    say("Only " + std::to_string(static_cast<long>(d->wrong)) + " of " + std::to_string(static_cast<long>(d->total)) + " indices are wrong: two values lie so close that the candidate's way of computing them turns their order round.",
        "Compare values that are computed as exactly as the reference's: the same order of operations where it decides, float64 or compensated sums for near ties, no approximation of a function before the comparison (compare its argument where the function is monotone); the smaller index among equal values.");
  else if (few && !large && !tiny)
    say("Only " + std::to_string(static_cast<long>(d->wrong)) + " of " + std::to_string(static_cast<long>(d->total)) + " elements are wrong: a border case, most likely the remainder loop, the edge of a window or tile, or padding.",
        in.border);
  if (got_nan && wanted_finite)
    say(large ? "Infinity minus infinity or infinity over infinity: exp() overflowed on large values." : "0/0, infinity minus infinity, the root or logarithm of a negative number, or an element that was read without having been set.",
        "Subtract the row's maximum before exp(); clamp the argument of a polynomial exp to [-87.3, 88.7]; keep variances from going below zero; initialise all buffers." +
            std::string(in.zero_over_zero));
  else if (got_inf && wanted_finite)
    say("An intermediate result overflowed, for example exp(x) for x > 88.7 or a square of a large value.",
        "Use the stable form: subtract the maximum before exp(), log1p(exp(-|x|)) + max(x, 0) for softplus, tanh(x) = sign(x) * (1 - 2 / (exp(2|x|) + 1)).");
  else if (!d->unwritten && got == 0 && wanted != 0 && wanted_finite)
    say("The output is 0 where it should not be: it was cleared but not computed, the wrong buffer was written, or an underflow (exp of a very negative number) was divided by.",
        "Follow one element through the code: which loop writes it, and from which accumulator.");
  else if (!wanted_finite && !got_nan && !got_inf)
    say(in.finite_symptom,
        in.finite_remedy);
  else if (!d->unwritten && wanted != 0 && std::isfinite(got / wanted)) {
    const double ratio = got / wanted;
    const double whole = std::round(std::fabs(ratio) >= 1 ? ratio : 1 / ratio);
    if (std::fabs(ratio + 1) < 1e-3) say("The sign is wrong.", "Check subtractions, negations and the formula's sign.");
    else if (std::fabs(whole) >= 2 && std::fabs((std::fabs(ratio) >= 1 ? ratio : 1 / ratio) / whole - 1) < 1e-3)
      say("The value is off by the factor " + format_number(ratio, std::fabs(ratio) >= 1 ? 0 : 6) + ": a mean without its division (or with the wrong count), a sum counted several times, a missing or doubled scale.",
          "Check what is divided by (all elements, rows, or n - 1), and that each element is added once.");
    else if (std::fabs(ratio - 1) < 2e-2)
      say("The value is nearly right: precision is lost by an approximation, by a long float32 sum in one variable, or by cancellation (mean of squares minus square of the mean).",
          in.precision);
  }
  if (d->input_set.find("tied") != std::string::npos)
    say("It fails where values are equal: the reference takes the first of them.", "Keep the smaller index among equal values: compare with > (not >=) in order, and when partial results are combined prefer the lower index.");
  if (d->input_set.find("negative") != std::string::npos)
    say("It fails on negative inputs only: a maximum that starts at 0 instead of -infinity, or a formula that holds for positive values only.", "Start a maximum at -infinity (or the first element), and check the branch for x < 0.");
  if (d->input_set.find("constant rows") != std::string::npos)
    say("It fails on constant rows: a variance that is not quite zero (or negative) is divided by.", "Compute the variance from the differences to the mean, and add epsilon before the root as the reference does.");
  if (tiny && !index_output(*d))
    say("It fails on tiny inputs: cancellation, an epsilon in the wrong place, or flushed denormals.", "Use expm1 and log1p forms near zero, put epsilon where the reference has it, and do not flush denormals.");
  if (all && hints.empty())
    say("All elements are wrong: the formula, the order of inputs and parameters, or the memory layout differs from the reference.",
        in.all_wrong);
}

} // namespace

std::vector<repair_hint> repairs_for(const verdict& v, const std::string& language) {
  std::vector<repair_hint> hints;
  if (v.passed()) return hints;
  const auto stage = json(v.stage).get<std::string>();
  // The reason is the verifier's own sentence; the log may be megabytes of a hostile program's text.
  const auto text = plain_quotes(v.reason.substr(0, 4096) + "\n" + v.log.substr(0, 256 << 10));
  const auto& in = words_in(language);
  for (const auto& p : in.patterns()) {
    if (hints.size() >= max_hints) break;
    if (*p.stages && !has_word(p.stages, stage)) continue;
    if (*p.also && text.find(p.also) == std::string::npos) continue;
    if (*p.unless && text.find(p.unless) != std::string::npos) continue;
    for (const char* phrase : p.any) {
      const auto at = text.find(phrase);
      if (at == std::string::npos) continue;
      const bool known = std::any_of(hints.begin(), hints.end(), [&](const repair_hint& h) { return h.symptom == line_at(text, at); });
      if (!known) hints.push_back({line_at(text, at), p.cause, p.remedy});
      break;
    }
  }
  if (v.stage == verdict_stage::compare) compare_hints(v.reason, in, hints);
  if (hints.size() > max_hints) hints.resize(max_hints);
  if (hints.empty())
    hints.push_back({line_at(text, 0), "The candidate failed at the stage '" + stage + "' for a reason that is not among the known ones.",
                     "Read the log, correct the first error, and change as little else as possible."});
  return hints;
}

} // namespace pragma
