#include "cluster/page_door.hpp"

#include "cluster/tls.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>

#include <openssl/ssl.h>

namespace pragma {

namespace {

constexpr auto files_pause = std::chrono::seconds(1); ///< between looks at the folder
const unsigned char session_name[] = "pragma page";

class page_door : public web::door {
public:
  page_door(std::filesystem::path folder, std::shared_ptr<const tls_context> first) : files_(tls_files::in(folder)), folder_(std::move(folder)), tls_(std::move(first)), stamp_(stamp_of(files_)) {}

  bool prepare(ssl_ctx_st& server) override {
    const auto now = current();
    SSL_CTX_set_num_tickets(&server, 0);
    SSL_CTX_set_session_cache_mode(&server, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(&server, 16 << 10);
    SSL_CTX_set_verify(&server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    // Each connection takes the files as they are now: key, certificate, CA.
    SSL_CTX_set_cert_cb(&server, &page_door::use_current, this);
    // A browser offers its user the certificates of this CA only.
    SSL_CTX_set_client_CA_list(&server, SSL_load_client_CA_file(files_.ca.c_str()));
    return SSL_CTX_set_min_proto_version(&server, TLS1_3_VERSION) == 1 && SSL_CTX_set_session_id_context(&server, session_name, sizeof session_name - 1) == 1 &&
           SSL_CTX_use_certificate(&server, SSL_CTX_get0_certificate(now->get())) == 1 && SSL_CTX_use_PrivateKey(&server, SSL_CTX_get0_privatekey(now->get())) == 1;
  }

  web::visitor who(const ssl_st& connection) override {
    const auto peer = peer_of(&connection, {});
    web::visitor guest;
    guest.name = peer.name;
    guest.sees_all = peer.what == role::admin;
    guest.refusal = refusal_of(connection, peer);
    return guest;
  }

  std::vector<std::string> names() override {
    auto names = current()->own().hosts; // its own name first, which rarely is one that others can look up
    if (!names.empty()) std::rotate(names.begin(), names.begin() + 1, names.end());
    return names;
  }

private:
  static int use_current(SSL* connection, void* self) {
    const auto now = static_cast<page_door*>(self)->current();
    if (!SSL_set_SSL_CTX(connection, now->get())) return 0;
    demand_certificate(connection);
    return 1;
  }

  std::string refusal_of(const ssl_st& connection, const identity& peer) {
    if (auto wrong = what_is_wrong(&connection, *current()); !wrong.empty()) return wrong;
    if (peer.what == role::user || peer.what == role::admin) return {};
    return "the certificate of " + peer.name + " is a " + name(peer.what) + "'s: the page is for users and admins (`pragma cluster ca issue NAME --role user`)";
  }

  std::shared_ptr<const tls_context> current() {
    const std::lock_guard lock(mutex_);
    const auto time = std::chrono::steady_clock::now();
    if (time - looked_ < files_pause) return tls_;
    looked_ = time;
    const auto now = stamp_of(files_);
    if (now == stamp_) return tls_;
    // Files that are half written or not a head's are not used; they are looked at again.
    if (auto fresh = tls_context::load(folder_); fresh && (*fresh)->own().role == "head") {
      tls_ = std::move(*fresh);
      stamp_ = now;
    }
    return tls_;
  }

  tls_files files_;
  std::filesystem::path folder_;
  std::mutex mutex_;
  std::shared_ptr<const tls_context> tls_;
  std::string stamp_;
  std::chrono::steady_clock::time_point looked_;
};

} // namespace

expected<std::shared_ptr<web::door>> open_page_door(const std::filesystem::path& folder) {
  auto tls = tls_context::load(folder);
  if (!tls) return fail(tls.error());
  if (const auto& own = (*tls)->own(); own.role != "head")
    return fail(ec::invalid_argument, "the certificate in " + folder.string() + " is for a " + own.role + ", and browsers would not take it for a server's", "`pragma cluster ca issue page --role head --host THIS_MACHINE` makes one that serves");
  return std::shared_ptr<web::door>(std::make_shared<page_door>(folder, std::move(*tls)));
}

} // namespace pragma
