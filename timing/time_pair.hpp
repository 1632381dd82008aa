// The one place where a candidate is timed: against the reference, against the best, to confirm a winner. Fresh processes, inputs that they
// have not seen, both sides alternately with the other one standing still, and then all audits of each candidate among the two.
#pragma once

#include "timing/timing_audit.hpp"

namespace pragma {

struct contender {
  const build_output* built = nullptr; ///< none: the reference
  std::string name;                    ///< "candidate", "challenger", "best"
};

struct timed_pair {
  timing time;                         ///< of the first over the second; without a value where something was found before it was timed
  std::optional<finding_of_audit> found;
  size_t side = 0;                     ///< whose
  std::string log;
  std::vector<std::string> checked;    ///< the audits that were passed, where nothing was found
};

/// Programs of the host. Never fails because of a candidate: that is a finding.
expected<timed_pair> time_pair(const task& t, const task_audit& audit, reference& ref, const contender& first, const contender& second,
                               const timing_options& options);

/// A time that this machine cannot reach, of a candidate on a host or on a device. Asking may measure the machine's limits (timing_options::beyond_limits): no candidate
/// may run meanwhile.
std::optional<finding_of_audit> unbelievable(double seconds, const timing_options& options);

} // namespace pragma
