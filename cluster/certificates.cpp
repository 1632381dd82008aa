#include "cluster/certificates.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

namespace pragma {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t max_pem_bytes = 1u << 20;
constexpr long backdated_seconds = 3600;  ///< clocks of a cluster differ
constexpr size_t max_name_bytes = 64;     ///< X.509's own limit of a common name
constexpr int serial_bytes = 16;
const std::string role_prefix = "pragma-"; ///< of the organisational unit that names a role

template <auto F> struct freed {
  template <class T> void operator()(T* p) const { F(p); }
};
using key_ptr = std::unique_ptr<EVP_PKEY, freed<EVP_PKEY_free>>;
using x509_ptr = std::unique_ptr<X509, freed<X509_free>>;
using bio_ptr = std::unique_ptr<BIO, freed<BIO_free_all>>;
using store_ptr = std::unique_ptr<X509_STORE, freed<X509_STORE_free>>;
using context_ptr = std::unique_ptr<X509_STORE_CTX, freed<X509_STORE_CTX_free>>;
using extension_ptr = std::unique_ptr<X509_EXTENSION, freed<X509_EXTENSION_free>>;
using crl_ptr = std::unique_ptr<X509_CRL, freed<X509_CRL_free>>;
using names_ptr = std::unique_ptr<GENERAL_NAMES, freed<GENERAL_NAMES_free>>;
using number_ptr = std::unique_ptr<BIGNUM, freed<BN_free>>;

void free_stack(STACK_OF(X509) * stack) { sk_X509_free(stack); } // not what is in it

std::string openssl_says() {
  char text[256] = "no reason given";
  if (const auto code = ERR_get_error()) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return text;
}
tl::unexpected<error> trouble(const std::string& doing) { return fail(ec::internal, "OpenSSL could not " + doing + ": " + openssl_says()); }

expected<void> check_name(const std::string& name) {
  const bool good = !name.empty() && name.size() <= max_name_bytes && name.front() != '.' && name.front() != '-' &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
                    });
  if (good) return {};
  return fail(ec::invalid_argument, "'" + printable(name.substr(0, 80)) + "' cannot be a member's name",
              "use 1 to " + std::to_string(max_name_bytes) + " letters, digits, '-', '_' and '.'");
}

/// Owner-only from the first byte on, and never over an existing file.
expected<void> write_secret(const fs::path& path, const std::string& content) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return fail(ec::io_error, "cannot create " + path.string() + ": " + std::strerror(errno));
  size_t done = 0;
  while (done < content.size()) {
    const auto n = ::write(fd, content.data() + done, content.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  const bool synced = done == content.size() && ::fsync(fd) == 0;
  ::close(fd);
  if (synced) return {};
  ::unlink(path.c_str());
  return fail(ec::io_error, "cannot write " + path.string() + ": " + std::strerror(errno));
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(std::max(0L, size))};
}
std::string pem_of(X509* certificate) {
  bio_ptr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  return text_of(bio.get());
}
std::string pem_of(EVP_PKEY* key) {
  bio_ptr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return text_of(bio.get());
}

expected<std::string> read_pem(const fs::path& path, const char* what) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    return fail(ec::not_found, std::string("no ") + what + " in " + path.string(), "`pragma cluster ca init DIR` and `pragma cluster ca issue NAME` make all three files");
  return read_file(path, max_pem_bytes);
}
expected<x509_ptr> read_certificate(const fs::path& path, const char* what) {
  auto text = read_pem(path, what);
  if (!text) return fail(text.error());
  bio_ptr bio(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  x509_ptr certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!certificate) {
    openssl_says();
    return fail(ec::parse_error, path.string() + " is no certificate in PEM form", std::string("it should be the ") + what);
  }
  return certificate;
}
expected<key_ptr> read_key(const fs::path& path) {
  auto text = read_pem(path, "private key");
  if (!text) return fail(text.error());
  bio_ptr bio(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  const auto no_password = [](char*, int, int, void*) { return 0; }; // never ask on the terminal
  key_ptr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  if (!key) {
    openssl_says();
    return fail(ec::parse_error, path.string() + " is no unencrypted private key in PEM form");
  }
  return key;
}

std::string common_name(const X509_NAME* name) {
  char text[max_name_bytes + 1] = "";
  X509_NAME_get_text_by_NID(const_cast<X509_NAME*>(name), NID_commonName, text, sizeof text);
  return printable(text);
}

std::string role_of(const X509_NAME* subject) {
  char text[max_name_bytes + 1] = "";
  X509_NAME_get_text_by_NID(const_cast<X509_NAME*>(subject), NID_organizationalUnitName, text, sizeof text);
  const std::string unit = text;
  const auto known = unit.starts_with(role_prefix) ? role_named(unit.substr(role_prefix.size())) : role::none;
  return known == role::none ? std::string() : name(known);
}

/// The alternative names of the subject: DNS names, and IP addresses as text.
std::vector<std::string> hosts_of(const X509* certificate) {
  std::vector<std::string> hosts;
  const names_ptr names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int kind = 0;
    const auto* value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &kind));
    const auto* bytes = ASN1_STRING_get0_data(value);
    char text[INET6_ADDRSTRLEN] = "";
    if (kind == GEN_DNS) hosts.push_back(printable(std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(ASN1_STRING_length(value)))));
    else if (kind == GEN_IPADD && ::inet_ntop(ASN1_STRING_length(value) == 4 ? AF_INET : AF_INET6, bytes, text, sizeof text)) hosts.emplace_back(text);
  }
  return hosts;
}

/// "DNS:head,DNS:gpu.example.org,IP:10.0.0.5"
expected<std::string> alternative_names(const std::string& name, const std::vector<std::string>& hosts) {
  auto text = "DNS:" + name;
  for (const auto& host : hosts) {
    unsigned char bytes[16];
    const bool address = ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
    if (auto good = check_name(host); !address && !good) return fail(ec::invalid_argument, "'" + printable(host.substr(0, 80)) + "' is no host name and no IP address", "as in --host gpu.example.org --host 10.0.0.5");
    text += (address ? ",IP:" : ",DNS:") + host;
  }
  return text;
}

} // namespace

certificate_facts facts_of(X509* certificate) {
  certificate_facts facts;
  facts.role = role_of(X509_get_subject_name(certificate));
  facts.name = common_name(X509_get_subject_name(certificate));
  facts.issuer = common_name(X509_get_issuer_name(certificate));
  std::tm when{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &when) == 1) {
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &when);
    facts.not_after = text;
    int days = 0, seconds = 0;
    if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate)) == 1) facts.days_left = seconds < 0 && days == 0 ? -1 : days;
  }
  number_ptr number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  if (char* hex = number ? BN_bn2hex(number.get()) : nullptr) {
    facts.serial = hex;
    OPENSSL_free(hex);
  }
  facts.hosts = hosts_of(certificate);
  return facts;
}

namespace {

bool add_extension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  extension_ptr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

struct pair {
  key_ptr key;
  x509_ptr certificate;
};

/// `ca` empty: signs itself. `alternatives`: as alternative_names() gives them.
expected<pair> make_pair(const std::string& name, role what, int days, int starts_in_days, const pair* ca, const std::string& alternatives) {
  pair made;
  made.key.reset(EVP_EC_gen("P-256"));
  made.certificate.reset(X509_new());
  auto* x = made.certificate.get();
  if (!made.key || !x) return trouble("make a key");
  unsigned char serial[serial_bytes];
  if (RAND_bytes(serial, sizeof serial) != 1) return trouble("draw a serial number");
  serial[0] &= 0x7f; // positive
  number_ptr number(BN_bin2bn(serial, sizeof serial, nullptr));
  bool good = number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(x)) && X509_set_version(x, 2) == 1 &&
              X509_time_adj_ex(X509_getm_notBefore(x), starts_in_days, starts_in_days == 0 ? -backdated_seconds : 0, nullptr) &&
              X509_time_adj_ex(X509_getm_notAfter(x), days, 0, nullptr) && X509_set_pubkey(x, made.key.get()) == 1;
  auto* subject = X509_get_subject_name(x);
  good = good && X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0) == 1;
  // The role stands in the subject, signed with it: an organisational unit, which every tool shows.
  if (ca) good = good && X509_NAME_add_entry_by_txt(subject, "OU", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>((role_prefix + pragma::name(what)).c_str()), -1, -1, 0) == 1;
  X509* issuer = ca ? ca->certificate.get() : x;
  good = good && X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1;
  if (ca) {
    good = good && add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(x, issuer, NID_key_usage, "critical,digitalSignature") &&
           add_extension(x, issuer, NID_ext_key_usage, what == role::head ? "serverAuth,clientAuth" : "clientAuth") && // a head may follow another
           add_extension(x, issuer, NID_subject_alt_name, alternatives.c_str());
  } else {
    good = good && add_extension(x, issuer, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
           add_extension(x, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
  }
  good = good && add_extension(x, issuer, NID_subject_key_identifier, "hash") && add_extension(x, issuer, NID_authority_key_identifier, "keyid:always");
  good = good && X509_sign(x, ca ? ca->key.get() : made.key.get(), EVP_sha256()) > 0;
  if (!good) return trouble("make the certificate of " + name);
  return made;
}

expected<void> make_folder(const fs::path& folder) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) return fail(ec::io_error, "cannot create " + folder.string() + ": " + problem.message());
  fs::permissions(folder, fs::perms::owner_all, problem);
  return {};
}

} // namespace

tls_files tls_files::in(const fs::path& folder) { return {folder / "ca.pem", folder / "cert.pem", folder / "key.pem", folder / "crl.pem"}; }

expected<certificate_facts> create_ca(const fs::path& folder, const std::string& cluster, int days) {
  if (auto good = check_name(cluster); !good) return fail(good.error());
  std::error_code ignored;
  if (fs::exists(folder / "ca-key.pem", ignored) || fs::exists(folder / "ca.pem", ignored))
    return fail(ec::invalid_argument, folder.string() + " has a CA already", "`pragma cluster ca issue NAME` issues from it; another CA needs another folder");
  if (auto made = make_folder(folder); !made) return fail(made.error());
  auto ca = make_pair(cluster, role::none, days, 0, nullptr, {});
  if (!ca) return fail(ca.error());
  if (auto kept = write_secret(folder / "ca-key.pem", pem_of(ca->key.get())); !kept) return fail(kept.error());
  if (auto kept = write_file_atomic(folder / "ca.pem", pem_of(ca->certificate.get())); !kept) return fail(kept.error());
  return facts_of(ca->certificate.get());
}

namespace {

expected<pair> read_ca(const fs::path& folder) {
  auto key = read_key(folder / "ca-key.pem");
  if (!key) return fail(key.error());
  auto certificate = read_certificate(folder / "ca.pem", "CA's certificate");
  if (!certificate) return fail(certificate.error());
  pair ca{std::move(*key), std::move(*certificate)};
  if (X509_check_private_key(ca.certificate.get(), ca.key.get()) == 1) return ca;
  openssl_says();
  return fail(ec::invalid_argument, "ca-key.pem and ca.pem in " + folder.string() + " do not belong together");
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &utc);
  return text;
}

} // namespace

expected<certificate_facts> issue_certificate(const fs::path& folder, const std::string& name, role what, int days, int starts_in_days, const std::vector<std::string>& hosts) {
  if (auto good = check_name(name); !good) return fail(good.error());
  if (what == role::none) return fail(ec::invalid_argument, "a certificate needs a role", "head, node, user or admin");
  const auto alternatives = alternative_names(name, hosts);
  if (!alternatives) return fail(alternatives.error());
  auto read = read_ca(folder);
  if (!read) return fail(read.error());
  const auto ca = std::move(*read);
  const auto to = folder / name;
  std::error_code ignored;
  if (fs::exists(to / "key.pem", ignored))
    return fail(ec::invalid_argument, to.string() + " has a key already", "remove the folder to issue anew, or choose another name");
  if (auto made = make_folder(to); !made) return fail(made.error());
  auto member = make_pair(name, what, days, starts_in_days, &ca, *alternatives);
  if (!member) return fail(member.error());
  if (auto kept = write_secret(to / "key.pem", pem_of(member->key.get())); !kept) return fail(kept.error());
  if (auto kept = write_file_atomic(to / "cert.pem", pem_of(member->certificate.get())); !kept) return fail(kept.error());
  if (auto kept = write_file_atomic(to / "ca.pem", pem_of(ca.certificate.get())); !kept) return fail(kept.error());
  return facts_of(member->certificate.get());
}

expected<fs::path> write_for_browser(const fs::path& folder, const std::string& name, const std::string& password) {
  if (auto good = check_name(name); !good) return fail(good.error());
  const auto files = tls_files::in(folder / name);
  auto certificate = read_certificate(files.certificate, "member's certificate");
  if (!certificate) return fail(certificate.error());
  auto ca = read_certificate(files.ca, "CA's certificate");
  if (!ca) return fail(ca.error());
  auto key = read_key(files.key);
  if (!key) return fail(key.error());
  const auto file = folder / name / (name + ".p12");
  std::error_code ignored;
  if (fs::exists(file, ignored)) return fail(ec::invalid_argument, file.string() + " is there already", "remove it to write it anew, with another password");
  const std::unique_ptr<STACK_OF(X509), freed<free_stack>> others(sk_X509_new_null());
  if (!others || sk_X509_push(others.get(), ca->get()) <= 0) return trouble("make a PKCS#12 file");
  const std::unique_ptr<PKCS12, freed<PKCS12_free>> made(PKCS12_create(password.c_str(), name.c_str(), key->get(), certificate->get(), others.get(), 0, 0, 0, 0, 0));
  bio_ptr out(BIO_new(BIO_s_mem()));
  if (!made || !out || i2d_PKCS12_bio(out.get(), made.get()) != 1) return trouble("make a PKCS#12 file");
  if (auto kept = write_secret(file, text_of(out.get())); !kept) return fail(kept.error());
  return file;
}

expected<certificate_facts> revoke_certificate(const fs::path& folder, const std::string& name) {
  if (auto good = check_name(name); !good) return fail(good.error());
  auto ca = read_ca(folder);
  if (!ca) return fail(ca.error());
  auto certificate = read_certificate(folder / name / "cert.pem", "member's certificate");
  if (!certificate) return fail(certificate.error());
  const auto list = folder / "crl.pem";
  std::error_code ignored;
  crl_ptr crl;
  if (fs::exists(list, ignored)) {
    auto text = read_file(list, max_pem_bytes);
    if (!text) return fail(text.error());
    bio_ptr bio(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
    crl.reset(PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr));
    if (!crl) return fail(ec::parse_error, list.string() + " is no list of revoked certificates: " + openssl_says(), "restore it: an empty list would let them in again");
  } else {
    crl.reset(X509_CRL_new());
    if (!crl || X509_CRL_set_version(crl.get(), 1) != 1 || X509_CRL_set_issuer_name(crl.get(), X509_get_subject_name(ca->certificate.get())) != 1) return trouble("make a list");
  }
  const std::unique_ptr<ASN1_TIME, freed<ASN1_TIME_free>> now(X509_gmtime_adj(nullptr, 0));
  X509_REVOKED* known = nullptr;
  bool good = now != nullptr;
  if (good && X509_CRL_get0_by_serial(crl.get(), &known, X509_get_serialNumber(certificate->get())) == 0) {
    X509_REVOKED* entry = X509_REVOKED_new();
    good = entry && X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(certificate->get())) == 1 && X509_REVOKED_set_revocationDate(entry, now.get()) == 1 &&
           X509_CRL_add0_revoked(crl.get(), entry) == 1;
  }
  good = good && X509_CRL_set1_lastUpdate(crl.get(), now.get()) == 1 && X509_CRL_sort(crl.get()) == 1 && X509_CRL_sign(crl.get(), ca->key.get(), EVP_sha256()) > 0;
  if (!good) return trouble("revoke the certificate of " + name);
  bio_ptr out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509_CRL(out.get(), crl.get());
  if (auto kept = write_file_atomic(list, text_of(out.get())); !kept) return fail(kept.error());
  return facts_of(certificate->get());
}

expected<certificate_facts> check_tls_files(const tls_files& files) {
  auto ca = read_certificate(files.ca, "CA's certificate");
  if (!ca) return fail(ca.error());
  auto certificate = read_certificate(files.certificate, "member's certificate");
  if (!certificate) return fail(certificate.error());
  auto key = read_key(files.key);
  if (!key) return fail(key.error());
  struct stat status {};
  if (::stat(files.key.c_str(), &status) == 0 && (status.st_mode & 077) != 0)
    return fail(ec::invalid_argument, "others can read the private key " + files.key.string(), "chmod 600 " + files.key.string());
  const auto facts = facts_of(certificate->get());
  if (X509_check_private_key(certificate->get(), key->get()) != 1) {
    openssl_says();
    return fail(ec::invalid_argument, "the key " + files.key.string() + " is not that of the certificate " + files.certificate.string(),
                "take both from one `pragma cluster ca issue`");
  }
  store_ptr store(X509_STORE_new());
  context_ptr context(X509_STORE_CTX_new());
  if (!store || !context || X509_STORE_add_cert(store.get(), ca->get()) != 1 ||
      X509_STORE_CTX_init(context.get(), store.get(), certificate->get(), nullptr) != 1)
    return trouble("check a certificate");
  if (X509_verify_cert(context.get()) != 1) {
    const int why = X509_STORE_CTX_get_error(context.get());
    const auto text = std::string(X509_verify_cert_error_string(why));
    const bool expired = why == X509_V_ERR_CERT_HAS_EXPIRED;
    if (why == X509_V_ERR_CERT_NOT_YET_VALID)
      return fail(ec::invalid_argument, "the certificate " + files.certificate.string() + " or its CA is not valid yet: this machine's clock says " + now_text() + " UTC", "set the clock, then try again");
    return fail(ec::invalid_argument,
                expired ? "the certificate " + files.certificate.string() + " or its CA expired (" + facts.not_after + ")"
                        : "the certificate " + files.certificate.string() + " is not one of the CA " + files.ca.string() + ": " + text,
                expired ? "issue another one: `pragma cluster ca issue NAME`" : "all members need certificates of the same CA");
  }
  return facts;
}

} // namespace pragma
