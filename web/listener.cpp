#include "web/listener.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <httplib.h>

#include <algorithm>
#include <arpa/inet.h>
#include <fstream>
#include <random>
#include <sys/stat.h>
#include <thread>

namespace pragma::web {

namespace {

bool is_loopback(const std::string& host) { return host == "127.0.0.1" || host == "localhost" || host == "::1" || host == "[::1]"; }

/// "127.0.0.1:7450" without the port.
std::string host_of(const std::string& value) {
  const auto colon = value.rfind(':');
  return colon == std::string::npos || value.back() == ']' ? value : value.substr(0, colon);
}

/// "http://127.0.0.1:7450" -> its host.
std::string origin_host(const std::string& origin) {
  const auto scheme = origin.find("://");
  return scheme == std::string::npos ? std::string() : host_of(origin.substr(scheme + 3));
}

/// "10.0.0.5", "[fe80::1]": nobody's name server can point it elsewhere.
bool is_number(const std::string& host) {
  unsigned char bytes[16];
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || (bracketed && ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), bytes) == 1);
}

/// In a time that does not tell how much of it was right.
bool same_secret(const std::string& a, const std::string& b) {
  unsigned char different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) different = static_cast<unsigned char>(different | (a[i] ^ b[i]));
  return different == 0;
}

bool carries(const httplib::Request& request, const std::string& secret) {
  if (request.has_header("Authorization")) return same_secret(request.get_header_value("Authorization"), "Bearer " + secret);
  for (const auto& part : split(request.get_header_value("Cookie"), ';')) {
    const auto cookie = trim(part);
    if (cookie.starts_with("pragma=")) return same_secret(cookie.substr(7), secret);
  }
  return request.has_param("token") && same_secret(request.get_param_value("token"), secret);
}

} // namespace

std::string new_secret() {
  static constexpr char digits[] = "0123456789abcdef";
  std::random_device source;
  std::string text;
  for (int i = 0; i < 32; ++i) text += digits[source() & 15];
  return text;
}

expected<std::string> kept_secret(const std::filesystem::path& file) {
  if (auto known = read_file(file); known && trim(*known).size() >= 32) return trim(*known);
  const auto secret = new_secret();
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  const auto before = ::umask(0077);
  auto written = write_file_atomic(file, secret + "\n");
  ::umask(before);
  if (!written) return fail(written.error());
  std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, ignored);
  return secret;
}

namespace {

struct refused {
  int status;
  std::string why;                    ///< empty: let in
};

/// What a browser could be made to do for a page from elsewhere ends here: by the name that it was told (DNS rebinding), by its origin.
refused judged_on_loopback(const httplib::Request& request, const std::string& secret) {
  if (!is_loopback(host_of(request.get_header_value("Host")))) return {403, "this server answers to loopback names only"};
  if (request.has_header("Origin") && !is_loopback(origin_host(request.get_header_value("Origin")))) return {403, "not for pages of another origin"};
  if (!carries(request, secret)) return {401, "give the token: the address that pragma printed has it, and so may the header Authorization: Bearer TOKEN"};
  return {};
}

/// The same beyond loopback. A browser sends the certificate with whatever any page asks for, so pages of other origins are told apart by what browsers say of them.
refused judged_at_door(const httplib::Request& request, door& at) {
  const auto host = request.get_header_value("Host");
  const auto names = at.names();
  if (const auto name = host_of(host); !is_number(name) && !is_loopback(name) && std::find(names.begin(), names.end(), name) == names.end())
    return {403, "this server is not called '" + printable(name.substr(0, 80)) + "': a name must stand in its certificate (`pragma cluster ca issue NAME --role head --host NAME_OR_ADDRESS`)"};
  const auto site = request.get_header_value("Sec-Fetch-Site");
  const bool from_elsewhere = (site == "cross-site" || site == "same-site") && request.get_header_value("Sec-Fetch-Mode") != "navigate"; // a link may lead here
  if (from_elsewhere || (request.has_header("Origin") && request.get_header_value("Origin") != "https://" + host)) return {403, "not for pages of another origin"};
  if (!request.ssl) return {401, "there is no certificate"};
  return {403, at.who(*request.ssl).refusal};
}

} // namespace

constexpr time_t kept_idle_seconds = 1; ///< of a connection that asks nothing more: a stop waits so long

struct listener::impl {
  listen_options options;
  std::unique_ptr<httplib::Server> server;
  int port = 0;
  std::atomic<bool> stopping = false;
};

listener::listener(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
listener::listener(listener&&) noexcept = default;
listener::~listener() = default;
httplib::Server& listener::server() { return *impl_->server; }
int listener::port() const { return impl_->port; }
const std::atomic<bool>& listener::stopping() const { return impl_->stopping; }
std::string listener::address() const {
  const auto& o = impl_->options;
  const auto host = o.door && !o.door->names().empty() ? o.door->names().front() : o.address;
  return (o.door ? "https://" : "http://") + (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + std::to_string(impl_->port);
}
visitor listener::who(const httplib::Request& request) const { return impl_->options.door && request.ssl ? impl_->options.door->who(*request.ssl) : visitor(); }

expected<listener> listener::open(const listen_options& options) {
  if (!options.door && !is_loopback(options.address))
    return fail(ec::invalid_argument, "will not listen on " + options.address + " without certificates: others could read this machine's kernels and run code",
                "listen on 127.0.0.1, and reach it from elsewhere by `ssh -L PORT:127.0.0.1:PORT THIS_MACHINE`; `pragma dashboard` has --listen-tls, too");
  auto made = std::make_unique<impl>();
  made->options = options;
  if (options.door) made->server = std::make_unique<httplib::SSLServer>([&](SSL_CTX& context) { return options.door->prepare(context); });
  else made->server = std::make_unique<httplib::Server>();
  auto& server = *made->server;
  if (!server.is_valid()) return fail(ec::invalid_argument, "OpenSSL cannot serve with these certificates");
  server.new_task_queue = [threads = options.threads] { return new httplib::ThreadPool(static_cast<size_t>(threads)); };
  server.set_payload_max_length(options.most_body);
  server.set_keep_alive_max_count(1000);
  server.set_keep_alive_timeout(kept_idle_seconds);
  server.set_pre_routing_handler([secret = options.secret, door = options.door](const httplib::Request& request, httplib::Response& response) {
    if (const auto judged = door ? judged_at_door(request, *door) : judged_on_loopback(request, secret); !judged.why.empty()) {
      response.status = judged.status;
      response.set_content(judged.why + "\n", "text/plain");
      return httplib::Server::HandlerResponse::Handled;
    }
    if (!door && request.has_param("token")) response.set_header("Set-Cookie", "pragma=" + secret + "; HttpOnly; SameSite=Strict; Path=/");
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cache-Control", "no-store");
    if (door) response.set_header("Cross-Origin-Resource-Policy", "same-origin");
    return httplib::Server::HandlerResponse::Unhandled;
  });
  if (options.port == 0) {
    made->port = server.bind_to_any_port(options.address);
    if (made->port <= 0) return fail(ec::io_error, "cannot listen on " + options.address);
  } else {
    if (!server.bind_to_port(options.address, options.port))
      return fail(ec::io_error, "cannot listen on " + options.address + ":" + std::to_string(options.port), "another program may have that port: choose one with --port, or 0 for any");
    made->port = options.port;
  }
  return listener(std::move(made));
}

void listener::run(const std::atomic<bool>& stop) {
  std::atomic<bool> over = false;
  std::thread watcher([&] {
    while (!stop && !over) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    impl_->stopping = true;
    impl_->server->stop();
  });
  impl_->server->listen_after_bind();
  over = true;
  watcher.join();
}

} // namespace pragma::web
