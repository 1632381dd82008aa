// The part of the metric catalogue that speaks of devices. Internal to diagnosis/: everybody else calls metric_catalogue().
#pragma once

#include "diagnosis/rules.hpp"

namespace pragma::diagnosis_detail {

const std::vector<metric_meaning>& device_metrics();

} // namespace pragma::diagnosis_detail
