// What a call would take without a bottleneck, by the time table: the prediction that a finding stands or falls with. Internal to diagnosis/.
#pragma once

#include "diagnosis/rule_context.hpp"

namespace pragma::rule {

/// Sets seconds and seconds_without, where the model can say; lowers the confidence of a finding whose removal would gain next to nothing.
void predict(const facts& f, finding& found);

namespace device {
/// Seconds of one call of a device without what `found` names; 0 = no prediction. predict() keeps it between the roofline and the time measured.
double seconds_without(const facts& f, const finding& found);
} // namespace device

} // namespace pragma::rule
