// What limits a kernel, in a sentence that claims no more than the evidence does. For whoever shows one finding of several.
#pragma once

#include "diagnosis/finding.hpp"
#include "diagnosis/profile.hpp"

#include <string>
#include <vector>

namespace pragma {

constexpr double explaining_confidence = 0.5; ///< of a finding that is said to explain the time; below it other causes are as likely

/// False at a limit of the hardware, and for a finding that is not sure and whose removal is known to bring less than 5%: nobody should be told to follow it.
bool worth_following(const finding& f);

/// "port_pressure - The execution units ..." of the first finding, the surest. Where its confidence is below explaining_confidence, or there is none:
/// that it is at its limit, where that is what the finding says; else that no finding explains the time, which one comes nearest, and what the metrics of `measured` (may be null) rule out.
std::string what_limits(const std::vector<finding>& findings, const profile* measured);

} // namespace pragma
