#include "base/http.hpp"

#include "base/curl_handles.hpp"
#include "base/sigpipe.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <memory>
#include <mutex>

namespace pragma {

namespace {

constexpr int poll_milliseconds = 50;          // how soon a cancel flag is noticed

/// What the callbacks share for one exchange.
struct exchange {
  const http_request* request = nullptr;
  CURL* handle = nullptr;
  http_response response;
  header_collector head;
  size_t body_bytes = 0;
  bool too_long = false;
};

size_t on_header(char* data, size_t size, size_t count, void* user) {
  auto& x = *static_cast<exchange*>(user);
  return x.head.take(data, size * count, x.response.headers);
}

size_t on_data(char* data, size_t size, size_t count, void* user) {
  auto& x = *static_cast<exchange*>(user);
  const size_t bytes = size * count;
  if (x.body_bytes + bytes > x.request->max_body_bytes) {
    x.too_long = true;
    return 0;
  }
  x.body_bytes += bytes;
  if (!x.request->on_body) {
    x.response.body.append(data, bytes);
    return bytes;
  }
  long status = 0;
  curl_easy_getinfo(x.handle, CURLINFO_RESPONSE_CODE, &status);
  x.response.status = static_cast<int>(status);
  if (x.request->on_body(x.response, std::string_view(data, bytes))) return bytes;
  x.response.stopped = true;
  return 0;
}

bool has_line_break(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos;
}

expected<slist_ptr> header_list(const http_request& request) {
  slist_ptr list;
  // No "Expect: 100-continue": small servers don't know it, and libcurl then waits a second for nothing.
  if (!append(list, "Expect:")) return fail(ec::internal, "out of memory for HTTP headers");
  for (const auto& [key, value] : request.headers) {
    if (key.empty() || has_line_break(key) || has_line_break(value))
      return fail(ec::invalid_argument, "HTTP header '" + printable(key.substr(0, 64)) + "' has an empty name or a line break in it");
    if (!append(list, key + (value.empty() ? ";" : ": " + value))) return fail(ec::internal, "out of memory for HTTP headers");
  }
  return list;
}

expected<void> check_request(const http_request& request) {
  static const std::vector<std::string> methods = {"GET", "HEAD", "POST", "PUT", "DELETE"};
  if (std::find(methods.begin(), methods.end(), request.method) == methods.end())
    return fail(ec::invalid_argument, "HTTP method '" + printable(request.method) + "' is not one of " + join(methods, ", "));
  const auto start = ascii_lower(std::string_view(request.url).substr(0, 8));
  if (!start.starts_with("http://") && !start.starts_with("https://"))
    return fail(ec::invalid_argument, "'" + public_url(request.url) + "' is not an http:// or https:// address");
  if (has_line_break(request.url)) return fail(ec::invalid_argument, "the address has a line break in it");
  return {};
}

void set_up(CURL* handle, const http_request& request, exchange& x, curl_slist* headers, char* error_buffer) {
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error_buffer);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "pragma/0.1");
  curl_easy_setopt(handle, CURLOPT_ACCEPT_ENCODING, "");
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max(1.0, request.timeout_seconds * 1e3)));
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::max(1.0, request.connect_timeout_seconds * 1e3)));
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, request.max_redirects > 0 ? 1L : 0L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, static_cast<long>(std::max(0, request.max_redirects)));
  if (!request.proxy_from_environment) curl_easy_setopt(handle, CURLOPT_PROXY, "");
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &x);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &x);
  if (request.method == "HEAD") {
    curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
  } else if (request.method != "GET" && (request.method != "DELETE" || !request.body.empty())) {
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    if (request.method != "POST") curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  } else if (request.method == "DELETE") {
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, "DELETE");
  }
}

tl::unexpected<error> failure(const http_request& request, const exchange& x, CURLcode code, const char* detail) {
  const auto where = request.method + " " + public_url(request.url);
  if (x.too_long)
    return fail(ec::limit_exceeded, where + ": the answer is longer than " +
                                        format_bytes(static_cast<double>(request.max_body_bytes)));
  if (x.head.too_many)
    return fail(ec::limit_exceeded, where + ": more than " + format_bytes(header_collector::max_bytes) + " of headers");
  if (code == CURLE_OPERATION_TIMEDOUT) {
    double connected = 0;
    curl_easy_getinfo(x.handle, CURLINFO_CONNECT_TIME, &connected);
    if (connected <= 0)
      return fail(ec::timeout, where + ": no connection within " +
                                   format_seconds(std::min(request.timeout_seconds, request.connect_timeout_seconds)),
                  "is the address right and the server up?");
    return fail(ec::timeout, where + ": no complete answer within " + format_seconds(request.timeout_seconds));
  }
  const std::string text = *detail ? std::string(detail) : std::string(curl_easy_strerror(code));
  std::string hint;
  if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST) hint = "is the address right and the server up?";
  if (code == CURLE_URL_MALFORMAT)
    return fail(ec::invalid_argument, "'" + public_url(request.url) + "' is not a valid address");
  return fail(ec::remote_failed, where + ": " + printable(text), hint);
}

} // namespace

const std::string* http_response::header(std::string_view name) const {
  const auto wanted = ascii_lower(name);
  for (const auto& [key, value] : headers)
    if (key == wanted) return &value;
  return nullptr;
}

void redact(std::string& text, const std::string& key, const std::string& shown) {
  constexpr size_t shortest_secret = 6;
  if (key.size() < shortest_secret) return;
  for (auto at = text.find(key); at != std::string::npos; at = text.find(key, at + shown.size())) text.replace(at, key.size(), shown);
}

std::string public_url(std::string_view url) {
  std::string out(url.substr(0, std::min(url.find_first_of("?#"), size_t{2048})));
  const auto scheme = out.find("://");
  const auto start = scheme == std::string::npos ? 0 : scheme + 3;
  const auto path = out.find('/', start);
  const auto at = out.rfind('@', path == std::string::npos ? std::string::npos : path);
  if (at != std::string::npos && at >= start) out.erase(start, at + 1 - start);
  return printable(out);
}

std::optional<double> retry_after_seconds(const http_response& response) {
  const auto* value = response.header("retry-after");
  if (!value || value->empty()) return std::nullopt;
  double seconds = 0;
  const auto [end, problem] = std::from_chars(value->data(), value->data() + value->size(), seconds);
  if (problem == std::errc{} && end == value->data() + value->size())
    return std::isfinite(seconds) && seconds >= 0 ? std::optional<double>(seconds) : std::nullopt;
  const time_t when = curl_getdate(value->c_str(), nullptr);
  if (when == -1) return std::nullopt;
  return std::max(0.0, std::difftime(when, std::time(nullptr)));
}

expected<http_response> http_send(const http_request& request) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  if (auto good = check_request(request); !good) return fail(good.error());
  auto headers = header_list(request);
  if (!headers) return fail(headers.error());

  exchange x;
  char error_buffer[CURL_ERROR_SIZE] = "";
  multi_ptr multi(curl_multi_init());
  easy_ptr easy(curl_easy_init());
  if (!multi || !easy) return fail(ec::internal, "libcurl could not be started");
  x.request = &request;
  x.handle = easy.get();
  set_up(easy.get(), request, x, headers->get(), error_buffer);

  // The multi interface, although there is one transfer: curl_easy_perform looks at its progress callback (and so at a
  // cancel flag) only once a second while nothing arrives.
  const sigpipe_guard guard;
  if (curl_multi_add_handle(multi.get(), easy.get()) != CURLM_OK) return fail(ec::internal, "libcurl could not add a transfer");
  struct remover {
    CURLM* multi;
    CURL* easy;
    ~remover() { curl_multi_remove_handle(multi, easy); }
  } remove_at_end{multi.get(), easy.get()};

  CURLcode code = CURLE_OK;
  for (int running = 1; running > 0;) {
    if (request.cancel && request.cancel->load())
      return fail(ec::interrupted, request.method + " " + public_url(request.url) + " was cancelled");
    if (curl_multi_perform(multi.get(), &running) != CURLM_OK) return fail(ec::internal, "libcurl failed in a transfer");
    if (running > 0) curl_multi_poll(multi.get(), nullptr, 0, poll_milliseconds, nullptr);
  }
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi.get(), &left))
    if (message->msg == CURLMSG_DONE) code = message->data.result;

  if (code != CURLE_OK && !x.response.stopped) return failure(request, x, code, error_buffer);
  long status = 0;
  char* answered = nullptr;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(easy.get(), CURLINFO_EFFECTIVE_URL, &answered);
  curl_easy_getinfo(easy.get(), CURLINFO_TOTAL_TIME, &x.response.seconds);
  x.response.status = static_cast<int>(status);
  if (answered) x.response.url = answered;
  return std::move(x.response);
}

} // namespace pragma
