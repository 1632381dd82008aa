// The door of a page (web/) beyond loopback: TLS with a head's certificate, and visitors by the certificates of the same CA. The role decides, as in
// docs/cluster.md's table: a user sees its own runs, an admin all; nodes and heads have no business there.
#pragma once

#include "base/error.hpp"
#include "web/door.hpp"

#include <filesystem>
#include <memory>

namespace pragma {

/// `folder`: as for `pragma head --tls`. Its files are read anew when they change, so a revocation counts within a second. Errors as tls_context::load()'s;
/// invalid_argument for a certificate that is not a head's.
expected<std::shared_ptr<web::door>> open_page_door(const std::filesystem::path& folder);

} // namespace pragma
