// A machine that offers its hardware: dials the head, does the work it is given, dials again when the link is gone.
#pragma once

#include "cluster/messages.hpp"
#include "cluster/address.hpp"
#include "profilers/accelerators.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

namespace pragma {

class local_system;
class order_bench;

struct node_options {
  std::vector<address> heads;             ///< whichever serves
  std::optional<std::filesystem::path> tls;
  std::string name;                       ///< empty: the certificate's, else the host's
  std::filesystem::path tasks;            ///< folder for the texts of tasks
  int slots = 0;                          ///< jobs at once that measure nothing; 0: half of the CPUs, at least 1
  std::shared_ptr<order_bench> bench;     ///< who carries out the orders, with `facts` of what it offers; empty: node_bench, on what this machine is found to have
  std::optional<node_facts> facts;
  std::shared_ptr<local_system> system;   ///< for its agents; several nodes of a process share one; empty: one of its own
  std::function<void(bool)> on_joined = {}; ///< told when it has joined a head, and (false) when that is over
};

/// What this machine has, probed; `missing` gets what does not work and why. Speeds are told where an earlier run measured them; else the first task
/// that is loaded there measures them, under the lease: beside another measurement they would be kept as wrong as that one.
node_facts probe_this_machine(const node_options& options, std::vector<std::string>& missing);
/// Each device of a backend as one that can be leased by itself; without Triton none.
void offer(const accelerator_status& found, node_facts& facts, std::vector<std::string>& missing);

/// Serves until `stop`: then takes no new work, finishes what it has, and leaves. Errors that no waiting mends (certificates, another
/// version, no backend) end it; everything else is tried again with growing pauses. What happens is in the log.
expected<void> serve_node(const node_options& options, const std::atomic<bool>& stop);
/// The host below all containers and users of it: one kernel's boot. Empty where it is not told.
std::string machine_identity();

} // namespace pragma
