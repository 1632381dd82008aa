// Every default number of the project, with its unit and its reason. Configuration and flags override these.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pragma::defaults {

// -- the loop ------------------------------------------------------------------------------------------------------
inline constexpr int attempts = 15;                     ///< per task, as in the paper (IV.A)
inline constexpr int threads = 1;                       ///< one thread is what can be measured reliably (docs/measuring.md)
inline constexpr double stop_at_roofline_share = 0.95;  ///< nothing left to gain above this share of the measured roofline
inline constexpr int patience = 6;                      ///< attempts without a new best before the built-in coder gives up

// -- verification --------------------------------------------------------------------------------------------------
inline constexpr int verify_seeds = 5;                  ///< fresh seeds with the task's own inputs
inline constexpr double tolerance_float32 = 1e-4;       ///< relative to |oracle| + its mean absolute deviation
inline constexpr double tolerance_float64 = 1e-9;
inline constexpr double tolerance_float16 = 4e-3;       ///< four roundings: a result on the way is rounded by Torch, and need not be by a kernel
inline constexpr double tolerance_bfloat16 = 2e-2;
inline constexpr double reference_error_factor = 8;     ///< a candidate may be this many times as wrong as Torch itself
inline constexpr double call_timeout_seconds = 30;      ///< wall-clock limit of one call in verification (or 100x the reference)
inline constexpr size_t max_candidate_source = 1 << 20; ///< bytes of a source from outside: a file, a model, a tool

// -- the compiler --------------------------------------------------------------------------------------------------
inline constexpr double build_wall_seconds = 60;        ///< of a tool for which no other limit is given
inline constexpr double build_cpu_seconds = 60;
inline constexpr double build_seconds_a_mib = 720;      ///< on top, for each MiB of source: 220 were measured (48 s for 230 KiB); processors differ by a factor of three
inline constexpr double most_build_delay = 10;          ///< wall-clock time over CPU time: a machine with ten times as much work as processors
inline constexpr double module_seconds_a_mib = 960;     ///< of a Python module's first call, on top: all its kernels are compiled in it, 800 in a MiB
inline constexpr size_t max_built_source = 16 << 20;    ///< bytes of a source that is compiled at all; the built-in coder's grow with the graph
inline constexpr uint64_t build_memory_bytes = 4ull << 30;
inline constexpr uint64_t build_file_bytes = 256ull << 20;
inline constexpr size_t build_log_bytes = 256 << 10;

// -- timing --------------------------------------------------------------------------------------------------------
inline constexpr int warmups = 5;                       ///< as Triton's do_bench in the paper
inline constexpr int repetitions = 100;                 ///< at least this many calls of each side in total
inline constexpr double sample_seconds = 2e-3;          ///< one sample is a batch of calls at least this long
inline constexpr int blocks = 25;                       ///< alternating pairs of samples
inline constexpr double max_timing_seconds = 12;        ///< stop adding pairs after this
inline constexpr int min_accepted_blocks = 5;           ///< fewer is "no measurement"
inline constexpr double max_run_delay_share = 0.02;     ///< of wall; a pair above it is dropped (cpu-facts in docs/measuring.md)
inline constexpr int bootstrap_resamples = 2000;
inline constexpr double dispatch_bound_seconds = 50e-6; ///< a Torch call below this is mostly Python and dispatch, which our side does not pay in C

// -- LLM -----------------------------------------------------------------------------------------------------------
inline constexpr double llm_timeout_seconds = 300;      ///< reasoning models think long
inline constexpr int llm_retries = 4;
inline constexpr size_t llm_max_answer_bytes = 2 << 20; ///< a longer answer is cut off and refused
inline constexpr double llm_retry_seconds = 1;          ///< first wait before a retry; doubles each time, with jitter
inline constexpr double llm_max_wait_seconds = 120;     ///< a server that asks for more (Retry-After) is not waited for
inline constexpr size_t llm_max_quoted_answer_bytes = 64 << 10; ///< of a malformed answer that is sent back with the question why
inline constexpr double llm_chars_per_token = 4;        ///< estimate where an endpoint reports no usage
inline constexpr size_t prompt_log_bytes = 12 << 10;    ///< of a build or run log in a prompt; code is never cut

} // namespace pragma::defaults
