// The catalogue of all agents: who can be told what, and what comes back. Read this to know the whole conversation.
// Every request is idempotent, so that a restarted or moved agent can be asked again.
#pragma once

#include "actors/wire.hpp"

namespace pragma {

using load_atom = caf::atom_constant<caf::atom("load")>;
using verify_atom = caf::atom_constant<caf::atom("verify")>;
using measure_atom = caf::atom_constant<caf::atom("measure")>;
using confirm_atom = caf::atom_constant<caf::atom("confirm")>;
using setup_atom = caf::atom_constant<caf::atom("setup")>;
using code_atom = caf::atom_constant<caf::atom("code")>;
using save_atom = caf::atom_constant<caf::atom("save")>;
using read_atom = caf::atom_constant<caf::atom("read")>;
using recall_atom = caf::atom_constant<caf::atom("recall")>;
using remember_atom = caf::atom_constant<caf::atom("remember")>;
using scores_atom = caf::atom_constant<caf::atom("scores")>;
using explain_atom = caf::atom_constant<caf::atom("explain")>;
using begin_atom = caf::atom_constant<caf::atom("begin")>;
using halt_atom = caf::atom_constant<caf::atom("halt")>;
using event_atom = caf::atom_constant<caf::atom("event")>;

/// Builds and checks candidates on the machine that has the hardware. No LLM.
using verifier_actor = caf::typed_actor<
    // Starts the reference, reads and audits the task. Needed once before anything else; again after a restart.
    caf::replies_to<load_atom, load_request>::with<loaded_task>,
    // Builds and verifies one candidate. A wrong candidate is a verdict, not an error.
    caf::replies_to<verify_atom, candidate>::with<verdict>>;

/// Times and profiles verified candidates on the same machine, under an exclusive lease of it.
using profiler_actor = caf::typed_actor<
    // Interleaved timing against the reference and the best version, audits, then metrics.
    caf::replies_to<measure_atom, measure_request>::with<measurement>,
    // The winner once more: fresh process, unseen seeds.
    caf::replies_to<confirm_atom, candidate>::with<confirmation>>;

/// Writes candidates: the built-in search, or a language model.
using coder_actor = caf::typed_actor<
    // A new task. The reply says who writes ("builtin", "openai:MODEL").
    caf::replies_to<setup_atom, coder_setup>::with<std::string>,
    // The next candidate for this brief.
    caf::replies_to<code_atom, code_request>::with<coded>>;

/// The durable record of runs (RocksDB).
using store_actor = caf::typed_actor<
    // The header alone (start, end).
    caf::replies_to<save_atom, run_header>::with<bool>,
    // One iteration with the header, in one synced batch. The next attempt starts only after the reply.
    caf::replies_to<save_atom, run_header, iteration_record>::with<bool>,
    // A run as it was left.
    caf::replies_to<read_atom, std::string>::with<run_result>,
    // Schedules that won on a family of tasks; adding one.
    caf::replies_to<recall_atom, std::string>::with<won_schedules>,
    caf::replies_to<remember_atom, std::string, won_schedule>::with<bool>,
    // What findings promised and brought on a machine; adding a run.
    caf::replies_to<scores_atom, std::string>::with<machine_scores>,
    caf::replies_to<scores_atom, std::string, scored_run>::with<bool>>;

/// The compendium, for reading.
using knowledge_actor = caf::typed_actor<
    // What metrics mean and tell, with the documentation that says so. An error (nothing was built, it cannot be read) costs the
    // run its citations, nothing else.
    caf::replies_to<explain_atom, look_up>::with<looked_up>>;

/// Gets the live events of a run.
using observer_actor = caf::typed_actor<caf::reacts_to<event_atom, run_event>>;

/// Runs the loop: supervises the others, diagnoses, judges, briefs the Coder.
using conductor_actor = caf::typed_actor<
    // Begins (or resumes, when the request has an id) a run and replies when it has ended.
    caf::replies_to<begin_atom, run_request>::with<run_result>,
    // Ends the run after what is in flight; the state is saved and can be resumed.
    caf::reacts_to<halt_atom>>;

} // namespace pragma
