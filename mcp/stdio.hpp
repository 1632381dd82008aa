// One client over pipes: a message a line. Calls run side by side; everything else is answered in order.
#pragma once

#include "mcp/server.hpp"

namespace pragma::mcp {

/// Until `in` ends or `stop` turns true; calls in progress are then cancelled and waited for.
void serve_stdio(server& what, int in, int out, const std::atomic<bool>& stop);

} // namespace pragma::mcp
