// The catalogue of the head's agents: what they can be told, by the Conductors in its process and by the gate, which speaks for members
// elsewhere. Nothing here crosses a wire: what does is in messages.hpp and roles.cpp.
#pragma once

#include "actors/interfaces.hpp"
#include "cluster/messages.hpp"

namespace pragma {

template <> inline constexpr bool is_wire_type<work_order> = true;
template <> inline constexpr bool is_wire_type<work_answer> = true;
template <> inline constexpr bool is_wire_type<job_needs> = true;
template <> inline constexpr bool is_wire_type<node_hello> = true;
template <> inline constexpr bool is_wire_type<node_welcome> = true;
template <> inline constexpr bool is_wire_type<heartbeat> = true;
template <> inline constexpr bool is_wire_type<cluster_status> = true;
template <> inline constexpr bool is_wire_type<run_order> = true;
template <> inline constexpr bool is_wire_type<run_news> = true;
template <> inline constexpr bool is_wire_type<text_slice> = true;
template <> inline constexpr bool is_wire_type<cluster_run> = true;
template <> inline constexpr bool is_wire_type<std::vector<cluster_run>> = true;
template <> inline constexpr bool is_wire_type<caller> = true;

using do_atom = caf::atom_constant<caf::atom("do")>;
using forget_atom = caf::atom_constant<caf::atom("forget")>;
using join_atom = caf::atom_constant<caf::atom("join")>;
using beat_atom = caf::atom_constant<caf::atom("beat")>;
using done_atom = caf::atom_constant<caf::atom("done")>;
using drain_atom = caf::atom_constant<caf::atom("drain")>;
using leave_atom = caf::atom_constant<caf::atom("leave")>;
using submit_atom = caf::atom_constant<caf::atom("submit")>;
using status_atom = caf::atom_constant<caf::atom("status")>;
using release_atom = caf::atom_constant<caf::atom("release")>;
using cancel_atom = caf::atom_constant<caf::atom("cancel")>;
using hold_atom = caf::atom_constant<caf::atom("hold")>;
using start_atom = caf::atom_constant<caf::atom("start")>;
using news_atom = caf::atom_constant<caf::atom("news")>;
using fetch_atom = caf::atom_constant<caf::atom("fetch")>;
using list_atom = caf::atom_constant<caf::atom("list")>;
using ask_atom = caf::atom_constant<caf::atom("ask")>;
using recover_atom = caf::atom_constant<caf::atom("recover")>;
using tick_atom = caf::atom_constant<caf::atom("tick")>;

/// On a machine with hardware; on the head, what stands for it (gate.cpp).
using node_actor = caf::typed_actor<
    // Work for a device. The answer comes as a message of its own (done), so that nobody waits for a link.
    caf::reacts_to<do_atom, work_order, std::string>,
    // A run is over, or ended: what is under way of it ends.
    caf::reacts_to<forget_atom, std::string>>;

/// On the head, for users. Who asks is always said: runs are their owner's.
using scheduler_actor = caf::typed_actor<
    // Begins a run, or goes on with one; replies with its id at once.
    caf::replies_to<start_atom, run_order, caller>::with<std::string>,
    // What happened in a run since an event.
    caf::replies_to<news_atom, std::string, uint64_t, caller>::with<run_news>,
    // The record of a run (run_result as CBOR) from an offset.
    caf::replies_to<fetch_atom, std::string, uint64_t, caller>::with<text_slice>,
    caf::replies_to<list_atom, caller>::with<std::vector<cluster_run>>,
    // A question to the compendium and the answer, as JSON texts.
    caf::replies_to<ask_atom, std::string>::with<std::string>,
    // Ends a run after what is in flight (halt) or at once (cancel); it can be resumed.
    caf::replies_to<halt_atom, std::string, caller>::with<bool>,
    caf::replies_to<cancel_atom, std::string, caller>::with<bool>,
    // At the start: goes on with the runs that an earlier head left. Replies with their number.
    caf::replies_to<recover_atom>::with<uint64_t>,
    // No new runs from now on.
    caf::reacts_to<hold_atom>>;

/// On the head, for nodes: places work.
using cluster_actor = caf::typed_actor<
    caf::replies_to<join_atom, node_hello, node_actor>::with<node_welcome>,
    // True: known. False: join again.
    caf::replies_to<beat_atom, heartbeat>::with<bool>,
    caf::reacts_to<done_atom, work_answer>,
    // No more work for this node, please; then: it is gone.
    caf::reacts_to<drain_atom, std::string>,
    caf::reacts_to<leave_atom, std::string>,
    // The reply comes when a node has done it.
    caf::replies_to<submit_atom, work_order, job_needs>::with<work_answer>,
    caf::reacts_to<forget_atom, std::string>,
    // As forget, and whoever waits for the run's jobs is told that it was interrupted.
    caf::reacts_to<cancel_atom, std::string>,
    // Only what waits for a node; what nodes have in hand goes on.
    caf::reacts_to<halt_atom, std::string>,
    // Whether a node that is here could do it.
    caf::replies_to<ask_atom, job_needs>::with<bool>,
    caf::replies_to<status_atom>::with<cluster_status>,
    // Lets a node out of quarantine.
    caf::replies_to<release_atom, std::string>::with<bool>,
    // Gives out no more work; replies with the number of jobs in flight.
    caf::replies_to<hold_atom>::with<uint64_t>,
    caf::reacts_to<tick_atom>>;

} // namespace pragma
