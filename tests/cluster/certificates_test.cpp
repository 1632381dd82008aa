// The cluster's CA: what it issues is accepted, everything else is refused with its reason.
#include "base/files.hpp"
#include "cluster/certificates.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

struct authority {
  temp_dir dir = std::move(*temp_dir::create("pragma-ca-"));
  fs::path folder = dir.path() / "ca";
  authority() { REQUIRE(create_ca(folder, "test-cluster")); }
  tls_files member(const std::string& name, int days = 30) {
    REQUIRE(issue_certificate(folder, name, role::node, days));
    return tls_files::in(folder / name);
  }
};

std::string refusal(const tls_files& files) {
  const auto checked = check_tls_files(files);
  REQUIRE_FALSE(checked);
  return checked.error().message;
}

} // namespace

TEST_CASE("a member's files are accepted, with name and expiry; keys are for their owner only") {
  authority ca;
  const auto files = ca.member("node-1");
  const auto facts = check_tls_files(files);
  REQUIRE(facts);
  CHECK(facts->name == "node-1");
  CHECK(facts->role == "node");
  CHECK(facts->issuer == "test-cluster");
  CHECK(facts->days_left >= 29);
  CHECK(facts->days_left <= 30);
  for (const auto& key : {files.key, ca.folder / "ca-key.pem"}) {
    struct stat status {};
    REQUIRE(::stat(key.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
  }
  CHECK_FALSE(fs::exists(ca.folder / "node-1" / "ca-key.pem"));
}

TEST_CASE("nothing that exists is overwritten, and names cannot leave the folder") {
  authority ca;
  ca.member("a");
  CHECK(create_ca(ca.folder, "again").error().code == ec::invalid_argument);
  CHECK(issue_certificate(ca.folder, "a", role::node).error().code == ec::invalid_argument);
  for (const char* name : {"", "../b", "a/b", ".hidden", "-x", "with space", "new\nline"}) CHECK(issue_certificate(ca.folder, name, role::node).error().code == ec::invalid_argument);
  CHECK(issue_certificate(ca.dir.path() / "elsewhere", "b", role::node).error().code == ec::not_found);
}

TEST_CASE("each thing that can be wrong is named") {
  authority ca, other;
  const auto good = ca.member("good");
  const auto stranger = other.member("good");

  auto files = good;
  files.certificate = stranger.certificate;
  files.key = stranger.key;
  CHECK(refusal(files).find("not one of the CA") != std::string::npos);

  files = good;
  files.key = stranger.key;
  CHECK(refusal(files).find("is not that of the certificate") != std::string::npos);

  const auto expired = ca.member("late", -1);
  CHECK(refusal(expired).find("expired") != std::string::npos);

  files = good;
  files.ca = ca.dir.path() / "none.pem";
  CHECK(refusal(files).find("none.pem") != std::string::npos);

  const auto garbage = ca.dir.path() / "garbage.pem";
  REQUIRE(write_file_atomic(garbage, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"));
  files = good;
  files.certificate = garbage;
  CHECK(refusal(files).find("garbage.pem is no certificate") != std::string::npos);
  files = good;
  files.key = garbage;
  CHECK(refusal(files).find("no unencrypted private key") != std::string::npos);

  REQUIRE(::chmod(good.key.c_str(), 0644) == 0);
  CHECK(refusal(good).find("others can read") != std::string::npos);
}

TEST_CASE("a clock that is behind is named, not the CA") {
  authority ca;
  REQUIRE(issue_certificate(ca.folder, "early", role::node, 30, 2));
  const auto said = refusal(tls_files::in(ca.folder / "early"));
  CHECK(said.find("not valid yet") != std::string::npos);
  CHECK(said.find("clock says") != std::string::npos);
}

TEST_CASE("revoking twice is as once, of nobody an error, and the list grows") {
  authority ca;
  ca.member("a");
  ca.member("b");
  REQUIRE(revoke_certificate(ca.folder, "a"));
  const auto one = read_file(ca.folder / "crl.pem").value().size();
  REQUIRE(revoke_certificate(ca.folder, "a"));
  CHECK(read_file(ca.folder / "crl.pem").value().size() < one + 16); // a signature differs by some bytes, an entry is longer
  REQUIRE(revoke_certificate(ca.folder, "b"));
  CHECK(read_file(ca.folder / "crl.pem").value().size() > one + 24);
  CHECK(revoke_certificate(ca.folder, "nobody").error().code == ec::not_found);
  REQUIRE(write_file_atomic(ca.folder / "crl.pem", "damaged"));
  CHECK_FALSE(revoke_certificate(ca.folder, "a")); // a fresh list would let everybody in again
}
