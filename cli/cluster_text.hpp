// A cluster's status as lines for a person. Pure.
#pragma once

#include "cluster/messages.hpp"

namespace pragma::cli {

std::vector<std::string> status_lines(const cluster_status& status);

} // namespace pragma::cli
