// The cluster's private CA and its certificates (OpenSSL), so that mutual TLS costs the user two commands. A certificate says who a member is
// (its name) and what it may do (its role): docs/cluster.md has the table.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"
#include "cluster/roles.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace pragma {

/// A folder for --tls: what one member needs.
struct tls_files {
  std::filesystem::path ca, certificate, key;
  std::filesystem::path revoked;      ///< may be missing: the CA's list of revoked certificates
  static tls_files in(const std::filesystem::path& folder); ///< ca.pem, cert.pem, key.pem, crl.pem
};

struct certificate_facts {
  std::string name;                   ///< common name: the member's
  std::string role;                   ///< "head", "node", "user", "admin"; empty: none
  std::string issuer;
  std::string not_after;              ///< ISO time
  int days_left = 0;                  ///< negative: expired
  std::string serial;                 ///< hexadecimal
  std::vector<std::string> hosts;     ///< names and addresses under which a browser takes it for a server's; its own name is one
};
PRAGMA_JSON(certificate_facts, name, role, issuer, not_after, days_left, serial, hosts)

/// Makes a CA in `folder` (ca.pem and, for its owner only, ca-key.pem). invalid_argument when one is there already.
expected<certificate_facts> create_ca(const std::filesystem::path& folder, const std::string& cluster, int days = 3650);
/// Issues a key and certificate for a member into `folder`/`name`/ (ca.pem, cert.pem, key.pem). not_found: no CA there. `days` negative: expired
/// already; `starts_in_days`: for tests of clocks that differ. `hosts`: DNS names and IP addresses that a browser may call the member by.
expected<certificate_facts> issue_certificate(const std::filesystem::path& folder, const std::string& name, role what, int days = 825, int starts_in_days = 0,
                                              const std::vector<std::string>& hosts = {});
/// Writes `folder`/`name`/`name`.p12 (PKCS#12: key, certificate, CA), readable by its owner alone, which a browser imports with `password`; gives the
/// file. not_found: no such member; invalid_argument: the file is there.
expected<std::filesystem::path> write_for_browser(const std::filesystem::path& folder, const std::string& name, const std::string& password);
/// Puts the certificate in `folder`/`name`/cert.pem on the CA's list `folder`/crl.pem, which is made where there is none. Copy that to the head's
/// folder: it is read anew there.
expected<certificate_facts> revoke_certificate(const std::filesystem::path& folder, const std::string& name);
/// What a member must know before it listens or dials: all there, readable, the key is the certificate's, it was issued by this CA, is valid
/// now, and others cannot read the key. Each failure names the file and the remedy.
expected<certificate_facts> check_tls_files(const tls_files& files);

} // namespace pragma
