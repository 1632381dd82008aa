// What reference::limits() measured, kept for later processes: a file for each device, driver and Torch in cache_home(). Read by known_limits() (reference.hpp).
#pragma once

#include "reference/reference.hpp"

namespace pragma {

/// Without a place to keep them they are measured again: no error.
void keep_limits(const machine_limits& limits, const device_choice& device, const std::string& device_name, const std::string& torch);

} // namespace pragma
