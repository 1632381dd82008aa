// Clients over streamable HTTP: POST /mcp. A call is answered by a stream of events, whose end by the client cancels it; everything else
// by one JSON object. Of the earlier revisions, `initialize` gives a session id, which keeps one client's request ids from another's.
#pragma once

#include "mcp/server.hpp"
#include "web/listener.hpp"

namespace pragma::mcp {

/// Registers the endpoint; `what` must outlive the listener's run.
void serve_http(server& what, web::listener& where);

} // namespace pragma::mcp
