// The payloads that agents exchange: plain structs with a JSON field list, so that the same list serves RocksDB, run.json
// and the wire. No CAF here; actors/wire.hpp makes them messages.
#pragma once

#include "base/tf32.hpp"
#include "diagnosis/conductor.hpp"
#include "diagnosis/scores.hpp"
#include "devices/backend.hpp"
#include "drop_in/drop_in.hpp"
#include "kernels/candidate.hpp"
#include "synthesis/search/won_schedule.hpp"
#include "kernels/task.hpp"
#include "kernels/verdict.hpp"
#include "llm/chat.hpp"

namespace pragma {

/// Conductor -> Verifier: start the reference and read the task.
struct load_request {
  std::string path;
  int threads = defaults::threads;
  int seeds = defaults::verify_seeds;
  std::string backend = "cpu";               ///< where candidates and the reference run
  int device = 0;
  std::string baseline = "eager";            ///< reference_options::baseline
  tf32_use tf32 = tf32_use::none;            ///< devices: on both sides
  bool allow_torch = false;
  bool call_drop_in = true;                  ///< the winner is tried and timed as a drop-in in a fresh Torch process
  bool part = false;                         ///< of a larger task, which gets the figure: here it is asked only whether a kernel is faster
  std::vector<json> manifests;               ///< profilers that the user registered (devices)
  device_choice where() const { return {backend, device}; }
};
PRAGMA_JSON(load_request, path, threads, seeds, backend, device, baseline, tf32, allow_torch, call_drop_in, part, manifests)

/// Verifier -> Conductor: the task and the machine that it will be measured on.
struct loaded_task {
  pragma::task task;
  machine_limits limits;
  std::string python, torch, baseline, cpu;
  std::vector<std::string> compilers, notes; ///< notes: audit of the task ("large inputs overflow in the reference: left out")
  std::vector<std::string> unverifiable;     ///< null kernels that would pass; not empty = the task cannot be verified
  double seconds = 0;
};
PRAGMA_JSON(loaded_task, task, limits, python, torch, baseline, cpu, compilers, notes, unverifiable, seconds)

/// Conductor -> Profiler: time this verified candidate, side by side with the best one if there is one.
struct measure_request {
  pragma::candidate candidate;
  pragma::verdict verdict;
  bool has_best = false;
  pragma::candidate best;
  interval best_speedup;                  ///< of the best, against the reference
  bool how_much = false;                  ///< ratios are wanted for themselves (`pragma profile`), not only whether this one is faster than the best: several processes give them
  bool best_contended = false;            ///< that was measured while other work ran: it is measured again
  int waits = 0;                          ///< pauses for a quiet machine: none in a search, whose winner is waited for when it is confirmed
  bool profile = true;
  double profile_seconds = 4;             ///< budget of all tools together
  std::vector<std::string> extra_metrics; ///< the user's, beside the default set; an unknown name is an error
  std::vector<std::string> asked_metrics; ///< the Conductor's, after its findings; those that the machine lacks are left out
};
PRAGMA_JSON(measure_request, candidate, verdict, has_best, best, best_speedup, how_much, best_contended, waits, profile, profile_seconds, extra_metrics, asked_metrics)

struct measurement {
  pragma::verdict verdict;                ///< after the audits that timing makes possible
  pragma::profile profile;                ///< profile.time is the timing against the reference; metrics empty without profiling
  bool compared = false;                  ///< against_best was measured side by side
  timing against_best;
  timing best_again;                      ///< the best against the reference, where that had been measured under contention; else without a value
  double time_seconds = 0, profile_seconds = 0;
  machine_limits limits;                  ///< of where it was measured, if they were measured again since the task was loaded; else without a peak
};
PRAGMA_JSON(measurement, verdict, profile, compared, against_best, best_again, time_seconds, profile_seconds, limits)

/// What the Conductor wants explained, by the names in a profile, and what the compendium knows of it.
struct look_up {
  std::vector<std::string> metrics;
};
PRAGMA_JSON(look_up, metrics)
struct looked_up {
  std::vector<citation> known;     ///< a metric that the compendium does not know is left out
};
PRAGMA_JSON(looked_up, known)

/// Profiler -> Conductor, at the end of a run: the winner in a fresh process with unseen seeds. This is the figure reported.
struct confirmation {
  pragma::verdict verdict;
  timing time;                            ///< the headline: the drop-in as a Torch program calls it, or `kernel` where it was not called so
  timing kernel;                          ///< the kernel alone: through the C interface, as replayed graphs
  bool as_called = false;                 ///< `time` is the drop-in's
  std::string drop_in;                    ///< what its check found
  called_numbers numbers;
  std::string not_called;                 ///< why it was not tried: nothing is wrong with it
  doubt call_doubt = doubt::none;         ///< machine_busy: it was tried, and others' work spoilt its time
  std::vector<operator_time> torch;       ///< where eager Torch's time goes; empty: not known
  machine_limits limits;                  ///< as in measurement
};
PRAGMA_JSON(confirmation, verdict, time, kernel, as_called, drop_in, numbers, not_called, call_doubt, torch, limits)

/// Conductor -> Coder, per attempt. The built-in coder reads the outcome, an LLM the brief.
struct code_request {
  pragma::brief brief;
  bool has_last = false;
  std::string last_candidate, failure;
  bool last_passed = false, last_was_best = false;
  double last_speedup = 0;
  std::vector<code_request> before;       ///< the others that were made side by side with the last one, in their order
};
PRAGMA_JSON(code_request, brief, has_last, last_candidate, failure, last_passed, last_was_best, last_speedup, before)

/// Conductor -> Coder, once per run.
struct coder_setup {
  pragma::task task;
  machine_limits limits;
  std::string kind = "builtin";           ///< "builtin", "llm" (any chat_model)
  int threads = defaults::threads;
  std::string search = "findings";  ///< "findings", "unguided", "random": synthesis/search/builtin.hpp
  bool seed_builtin = true;               ///< give an LLM the built-in's kernel to start from
  uint64_t seed = 1;
  std::vector<std::string> compilers;     ///< "gcc", "clang": those of the machine that builds; empty: not known
  std::vector<std::string> compiler_versions; ///< "gcc 12.2.0", for whoever writes for them
  bool algebra = true;                    ///< built-in coder: use simplifications that hold for all inputs
  tf32_use tf32 = tf32_use::none;         ///< devices
  bool allow_torch = false;
  bool cold = false;                      ///< built-in coder: ignore schedules that won on tasks like this one
  std::string known_schedule, known_from; ///< such a schedule, found by the Conductor in the run store
  llm_config llm;
  std::string transcript;                 ///< file
  bool resumed = false;
  chat_usage used;                        ///< resume: of the model, before; counts against its budgets
  std::vector<code_request> history;      ///< resume: the requests of the earlier attempts, to be lived through again
  std::vector<std::string> tried;         ///< ids of earlier candidates (resume): never given again
  std::vector<candidate> given;           ///< made beforehand, of kernels for parts of the task: these are tried, and nothing is written
};
PRAGMA_JSON(coder_setup, task, limits, kind, threads, search, seed_builtin, seed, compilers, compiler_versions, algebra, tf32, allow_torch, cold, known_schedule, known_from, llm, transcript, resumed, used, history, tried, given)

struct coded {
  bool exhausted = false;                 ///< nothing left to try
  pragma::candidate candidate;
  chat_usage usage;                       ///< of this attempt
  std::vector<finding> graph_findings;    ///< built-in coder: facts about the task's graph
  double seconds = 0;
};
PRAGMA_JSON(coded, exhausted, candidate, usage, graph_findings, seconds)

/// A part of a task that no kernel computes as a whole, as its own run left it.
struct part_record {
  std::string name;                       ///< "part 1"
  std::string what;                       ///< its operators, for people
  std::string run;                        ///< the run that made its kernel; empty: none (an equal part's kernel serves)
  double share = 0;                       ///< of the work of all parts that could be ours, guessed from bytes and operations
  interval speedup;                       ///< as called, against Torch on the same part, or where it could not be called so (open) the kernel's alone; 0: none
  double torch_seconds = 0, seconds = 0;  ///< of one call
  bool kept = false;                      ///< its kernel is in the drop-in
  bool open = false;                      ///< no figure as called was established: a busy machine
  std::string why_not;
};
PRAGMA_JSON(part_record, name, what, run, share, speedup, torch_seconds, seconds, kept, open, why_not)

/// Where a task was cut, and what became of it.
struct cut_record {
  std::vector<std::string> torch;         ///< operators that Torch keeps, with their lines: "topk in line 14"
  std::vector<std::string> why;           ///< for each of these: "aten.topk has no rule"; none in records from before there was this list
  std::vector<part_record> parts;
};
PRAGMA_JSON(cut_record, torch, why, parts)

/// Who wants what from a run.
struct run_request {
  std::string id;                         ///< empty: a new run; else resume that one
  std::string new_id;                     ///< of a new run, from whoever must know it beforehand; empty: the Conductor makes one
  load_request load;
  coder_setup coder;
  stop_rules stop;
  bool profile = true;
  double profile_seconds = 4;
  std::vector<std::string> extra_metrics;
  int parallel = 1;                       ///< candidates that are made and verified side by side
  std::string out_dir;                    ///< where the report goes
  std::string owner;                      ///< through a head: whose certificate began it; empty: in this process
  int priority = 0;                       ///< through a head: higher first
  std::string needs;                      ///< through a head: constraints on the node ("avx512,mem>=64G")
  cut_record cut;                         ///< with coder.given: where those come from
};
PRAGMA_JSON(run_request, id, new_id, load, coder, stop, profile, profile_seconds, extra_metrics, parallel, out_dir, owner, priority, needs, cut)

/// The run's header: what RocksDB keeps beside the iterations, and the "run" part of run.json.
struct run_header {
  std::string id, state = "running";      ///< "running", "finished", "interrupted", "left as it is" (there is nothing for a kernel to do), "failed"
  std::string started, finished, stop_reason;
  run_request request;
  loaded_task environment;
  int best_attempt = 0;                   ///< 0 = none passed
  bool confirmed = false;
  std::string not_confirmed;              ///< why nothing could be established about the winner
  confirmation final;                     ///< the figure that is reported
  std::string failure;                    ///< state "failed": why
  std::vector<finding> graph_findings;
  std::vector<rule_score> scores;         ///< of the rules on this machine, as this run began: they weigh its findings
  chat_usage usage;
  double wall_seconds = 0, load_seconds = 0, code_seconds = 0, build_seconds = 0, verify_seconds = 0, time_seconds = 0,
         profile_seconds = 0, confirm_seconds = 0, overhead_seconds = 0; ///< overhead: wall less all the others
};
PRAGMA_JSON(run_header, id, state, started, finished, stop_reason, request, environment, best_attempt, confirmed, not_confirmed, final, failure,
            graph_findings, scores, usage, wall_seconds, load_seconds, code_seconds, build_seconds, verify_seconds, time_seconds,
            profile_seconds, confirm_seconds, overhead_seconds)

/// What a list of runs shows of one; the store keeps it beside the header, which is a hundred times as long.
struct run_summary {
  std::string id, task;                   ///< the task's own name, or its file's where the run ended before the task was read
  std::string file;                       ///< the task's file, without folder and ending
  std::string state, started, stop_reason; ///< as in the header
  int best_attempt = 0;
  bool confirmed = false;
  interval speedup;                       ///< the figure that is reported, where it was confirmed
  double wall_seconds = 0;
  std::string owner;
  int priority = 0;
};
PRAGMA_JSON(run_summary, id, task, file, state, started, stop_reason, best_attempt, confirmed, speedup, wall_seconds, owner, priority)

/// Live progress for whoever watches (the CLI).
struct run_event {
  std::string what;                       ///< "loading", "loaded", "coding", "verifying", "measuring", "iteration", "confirming", "note"
  int attempt = 0;
  std::string text;
  iteration_record iteration;             ///< with "iteration"
  loaded_task loaded;                     ///< with "loaded"
  std::string time;                       ///< ISO, UTC
};
PRAGMA_JSON(run_event, what, attempt, text, iteration, loaded, time)

/// What is left when a run ends.
struct run_result {
  run_header header;
  std::vector<iteration_record> iterations;
};
PRAGMA_JSON(run_result, header, iterations)

} // namespace pragma
