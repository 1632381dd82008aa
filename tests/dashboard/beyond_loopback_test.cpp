// The page for others: a real server with the cluster's certificates, and libcurl as its clients, who have the certificates of everybody there is.
#include "made_up.hpp"

#include "base/files.hpp"
#include "cluster/certificates.hpp"
#include "cluster/page_door.hpp"

#include <catch2/catch.hpp>
#include <curl/curl.h>

#include <thread>

using namespace pragma;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

struct answer {
  long status = 0;
  std::string body, trouble;
};

size_t keep(char* data, size_t one, size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, one * count);
  return one * count;
}

struct open_site {
  temp_dir dir = std::move(*temp_dir::create("pragma-page-"));
  fs::path ca = dir.path() / "ca";
  test::made_up runs;
  std::atomic<bool> stop = false;
  std::optional<web::listener> where;
  std::thread thread;

  open_site() {
    REQUIRE(create_ca(ca, "test"));
    REQUIRE(issue_certificate(ca, "page", role::head, 30, 0, {"page.test", "127.0.0.1"}));
    for (const auto& [name, what] : {std::pair{"me", role::user}, {"boss", role::admin}, {"gpu1", role::node}, {"other-head", role::head}}) REQUIRE(issue_certificate(ca, name, what));
    REQUIRE(issue_certificate(ca, "late", role::user, -1));
    auto door = open_page_door(ca / "page");
    REQUIRE(door);
    web::listen_options options;
    options.address = "0.0.0.0";
    options.door = *door;
    auto opened = web::listener::open(options);
    REQUIRE(opened);
    where.emplace(std::move(*opened));
    dashboard::serve(*where, runs.source(), PRAGMA_PAGE);
    thread = std::thread([this] { where->run(stop); });
  }
  ~open_site() {
    stop = true;
    thread.join();
  }

  /// As `member` (a folder below the CA's; empty: without a certificate), under the name `host`.
  answer get(const fs::path& member, const std::string& path, const std::vector<std::string>& headers = {}, const std::string& host = "page.test", const fs::path& trusted = {}) const {
    answer got;
    CURL* curl = curl_easy_init();
    REQUIRE(curl);
    const auto port = std::to_string(where->port());
    curl_slist *resolve = curl_slist_append(nullptr, (host + ":" + port + ":127.0.0.1").c_str()), *list = nullptr;
    for (const auto& h : headers) list = curl_slist_append(list, h.c_str());
    const auto set = [&](CURLoption option, const std::string& value) { curl_easy_setopt(curl, option, value.c_str()); };
    set(CURLOPT_URL, "https://" + host + ":" + port + path);
    set(CURLOPT_CAINFO, ((trusted.empty() ? ca : trusted) / "ca.pem").string());
    if (!member.empty()) {
      set(CURLOPT_SSLCERT, (member / "cert.pem").string());
      set(CURLOPT_SSLKEY, (member / "key.pem").string());
    }
    curl_easy_setopt(curl, CURLOPT_RESOLVE, resolve);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &got.body);
    if (const auto code = curl_easy_perform(curl); code != CURLE_OK) got.trouble = curl_easy_strerror(code);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &got.status);
    curl_slist_free_all(resolve);
    curl_slist_free_all(list);
    curl_easy_cleanup(curl);
    return got;
  }
  answer as(const char* member, const std::string& path, const std::vector<std::string>& headers = {}) const { return get(ca / member, path, headers); }
};

std::vector<std::string> ids(const answer& got) {
  std::vector<std::string> all;
  for (const auto& r : json::parse(got.body)) all.push_back(r["id"]);
  return all;
}

} // namespace

TEST_CASE("page beyond loopback: a user sees its own runs, an admin all; nodes, heads and strangers nothing") {
  open_site s;
  CHECK(s.where->address() == "https://page.test:" + std::to_string(s.where->port())); // as people type it
  CHECK(s.as("me", "/").status == 200);
  CHECK(ids(s.as("me", "/api/runs")) == std::vector<std::string>{"live"});
  CHECK(ids(s.as("boss", "/api/runs")).size() == 4);
  CHECK(s.as("me", "/api/runs/live").status == 200);
  for (const char* path : {"/api/runs/ordinary", "/api/runs/ordinary/attempts/4", "/api/runs/big"}) {
    CHECK(s.as("me", path).status == 404); // another's is not there
    CHECK(s.as("boss", path).status == 200);
  }
  const auto mine = json::parse(s.as("me", "/api/cluster").body), all = json::parse(s.as("boss", "/api/cluster").body);
  CHECK(mine["members"].size() == 1);
  CHECK(mine["runs"].size() == 1);
  CHECK(all["runs"].size() == 2);
  for (const char* who : {"gpu1", "other-head"}) {
    const auto refused = s.as(who, "/api/runs");
    CHECK(refused.status == 403);
    CHECK_THAT(refused.body, Contains("for users and admins"));
  }
  CHECK_FALSE(s.get({}, "/").trouble.empty()); // TLS itself ends it
  CHECK_FALSE(s.get({}, "/?token=" + std::string(32, '0')).trouble.empty());
  REQUIRE(create_ca(s.dir.path() / "foreign", "foreign"));
  REQUIRE(issue_certificate(s.dir.path() / "foreign", "boss", role::admin));
  CHECK_FALSE(s.get(s.dir.path() / "foreign" / "boss", "/", {}, "page.test", s.ca).trouble.empty());
}

TEST_CASE("page beyond loopback: expired and revoked certificates are refused with the reason, also on a stream that is open") {
  open_site s;
  const auto late = s.as("late", "/api/runs");
  CHECK(late.status == 403);
  CHECK_THAT(late.body, Contains("expired"));
  answer stream;
  std::thread looking([&] { stream = s.as("me", "/api/events"); });
  REQUIRE(revoke_certificate(s.ca, "me"));
  fs::copy_file(s.ca / "crl.pem", s.ca / "page" / "crl.pem");
  looking.join(); // the server ended it
  CHECK(stream.trouble != "Timeout was reached");
  const auto revoked = s.as("me", "/api/runs");
  CHECK(revoked.status == 403);
  CHECK_THAT(revoked.body, Contains("is revoked"));
  CHECK(s.as("boss", "/api/runs").status == 200);
}

TEST_CASE("page beyond loopback: no page of another origin, no other name (DNS rebinding); numbers and the certificate's names are answered") {
  open_site s;
  const auto own = "Origin: https://page.test:" + std::to_string(s.where->port());
  CHECK(s.as("boss", "/api/runs", {own, "Sec-Fetch-Site: same-origin"}).status == 200);
  CHECK(s.as("boss", "/", {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}).status == 200); // a link from elsewhere
  for (const char* header : {"Origin: https://evil.test", "Origin: http://page.test", "Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"}) {
    INFO(header);
    CHECK(s.as("boss", "/api/runs", {header}).status == 403);
  }
  for (const char* name : {"evil.test", "page.test.evil.test", "127.0.0.1.evil.test", ""}) {
    INFO(name);
    CHECK(s.as("boss", "/api/runs", {std::string("Host:") + (*name ? std::string(" ") + name : std::string())}).status >= 400);
  }
  CHECK(s.get(s.ca / "boss", "/api/runs", {}, "127.0.0.1").status == 200);
  CHECK(s.get(s.ca / "boss", "/api/runs", {}, "page").status == 200); // its own name
  CHECK_FALSE(s.get(s.ca / "boss", "/", {}, "evil.test").trouble.empty()); // the certificate does not carry that name
}

TEST_CASE("page beyond loopback: only a head's certificate serves; without one an address off loopback is refused with advice") {
  open_site s;
  const auto refused = open_page_door(s.ca / "me");
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().hint, Contains("--role head"));
  CHECK(open_page_door(s.dir.path() / "nothing").error().code == ec::not_found);
  web::listen_options bare;
  bare.address = "0.0.0.0";
  const auto open = web::listener::open(bare);
  REQUIRE_FALSE(open);
  CHECK(open.error().code == ec::invalid_argument);
  CHECK_THAT(open.error().hint, Contains("--listen-tls") && Contains("ssh -L"));
}

TEST_CASE("page beyond loopback: a member's PKCS#12 file lets libcurl in; without the password it is of no use") {
  open_site s;
  const auto file = write_for_browser(s.ca, "boss", "secret");
  REQUIRE(file);
  CHECK((fs::status(*file).permissions() & (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none);
  CHECK(write_for_browser(s.ca, "boss", "again").error().code == ec::invalid_argument);
  CHECK(write_for_browser(s.ca, "nobody", "secret").error().code == ec::not_found);
  CHECK(write_for_browser(s.ca, "../ca/boss", "secret").error().code == ec::invalid_argument);
  for (const auto& [password, good] : {std::pair{"secret", true}, {"wrong", false}}) {
    CURL* curl = curl_easy_init();
    std::string body;
    curl_easy_setopt(curl, CURLOPT_URL, ("https://127.0.0.1:" + std::to_string(s.where->port()) + "/api/runs").c_str());
    curl_easy_setopt(curl, CURLOPT_CAINFO, (s.ca / "ca.pem").c_str());
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_SSLCERTTYPE, "P12");
    curl_easy_setopt(curl, CURLOPT_SSLCERT, file->c_str());
    curl_easy_setopt(curl, CURLOPT_KEYPASSWD, password);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
    CHECK((curl_easy_perform(curl) == CURLE_OK && json::parse(body).size() == 4) == good);
    curl_easy_cleanup(curl);
  }
}
