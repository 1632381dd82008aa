// The one error type of the project and the expected<T> that fallible functions return.
// Everybody uses it; rendering for people happens in one place (render()).
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace pragma {

/// What kind of thing went wrong. Scripts see it as the exit code of `pragma` (see exit_code()).
enum class ec {
  invalid_argument,   ///< the user's words, flags or configuration are wrong
  not_found,          ///< a file, run, tool, metric or model that was named does not exist
  io_error,           ///< reading or writing failed (disk full, permission, broken pipe)
  parse_error,        ///< text that should have a format does not have it
  timeout,            ///< a limit in wall-clock time was reached
  limit_exceeded,     ///< memory, size or budget limits were reached
  task_invalid,       ///< the reference task cannot be used (syntax, missing Model, NaN, too large)
  unsupported,        ///< valid, but not supported here; the message names what
  build_failed,       ///< the compiler refused the candidate
  candidate_failed,   ///< the candidate crashed, hung, broke its sandbox or gave a wrong answer
  measurement_failed, ///< no trustworthy measurement could be taken
  tool_failed,        ///< a program that we ran (perf, valgrind, python) failed
  remote_failed,      ///< an HTTP endpoint or peer failed
  locked,             ///< somebody else holds the lock (RocksDB, device)
  interrupted,        ///< Ctrl-C
  internal,           ///< a bug in pragma
  no_compiler,        ///< the compiler that a candidate names is not installed on this machine
  busy,               ///< the machine has no process left for us now: nobody's fault, and it may have one in a moment
  left_as_it_is,      ///< nothing went wrong: no kernel for this task, or for a part of it, is faster than Torch, which computes it as before
  torch_only          ///< a task that Torch can run, and no kernel could be called or checked for: complex numbers, results that are no tensors, random numbers
};
constexpr ec last_code = ec::torch_only; ///< codes travel as numbers

/// Why, where somebody decides by it: messages are for people, and nobody looks for words in them.
enum class cause { unknown, out_of_memory, illegal_instruction };

/// message: what was tried, on what, and what happened. hint: what to do next (may be empty).
struct error {
  ec code = ec::internal;
  std::string message;
  std::string hint;
  cause why = cause::unknown;
};

template <class T> using expected = tl::expected<T, error>;

/// Shorthand for returning an error: `return fail(ec::not_found, "...", "...");`
inline tl::unexpected<error> fail(ec code, std::string message, std::string hint = {}) {
  return tl::unexpected<error>(error{code, std::move(message), std::move(hint), cause::unknown});
}
inline tl::unexpected<error> fail(error e) { return tl::unexpected<error>(std::move(e)); }

/// Lower-case name of a code, as JSON output shows it ("not_found").
const char* name(ec code);

/// "error: message\n  hint: ..." (no colours; the caller decides on those).
std::string render(const error& e);

/// Exit code for scripts: 0 left as it is, 2 bad usage, 3 not found/unsupported/no compiler/Torch only, 4 task invalid, 5 candidate or build failed,
/// 6 environment (io, tool, remote, locked, measurement, busy), 130 interrupted, 70 internal.
int exit_code(ec code);

} // namespace pragma
