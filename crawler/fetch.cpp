#include "crawler/fetch.hpp"

#include "base/curl_handles.hpp"
#include "base/sigpipe.hpp"
#include "base/text.hpp"
#include "crawler/address.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include <unistd.h>

namespace pragma {

namespace {

constexpr size_t max_other_body = 64 << 10;    ///< read of an answer that brings no page, so that the connection can be used again
constexpr size_t max_validator_bytes = 1024;   ///< a longer ETag is not sent back
constexpr long slow_bytes_per_second = 16;     ///< a server that drips less for slow_seconds is given up
constexpr long slow_seconds = 30;

/// One transfer under way; libcurl's callbacks get its address.
struct exchange {
  transfer what;
  const fetch_options* options = nullptr;
  easy_ptr easy;
  slist_ptr headers;
  http_response response;
  header_collector head;
  size_t body_bytes = 0;
  bool too_long = false, unwanted = false, enough = false;
  std::string refused; ///< the address that was not connected to, and what it is
  char error[CURL_ERROR_SIZE] = "";
};

curl_socket_t open_socket(void* user, curlsocktype purpose, curl_sockaddr* address) {
  auto& x = *static_cast<exchange*>(user);
  if (purpose != CURLSOCKTYPE_IPCXN) return CURL_SOCKET_BAD;
  if (!x.what.allow_private) {
    const auto kind = x.options->special ? x.options->special(&address->addr) : special_address(&address->addr);
    if (!kind.empty()) {
      x.refused = address_text(&address->addr) + " (" + kind + ")";
      return CURL_SOCKET_BAD;
    }
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

size_t on_header(char* data, size_t size, size_t count, void* user) {
  auto& x = *static_cast<exchange*>(user);
  return x.head.take(data, size * count, x.response.headers);
}

bool is_no_document(const std::string& type) {
  const auto kind = ascii_lower(type);
  return kind.starts_with("image/") || kind.starts_with("audio/") || kind.starts_with("video/") || kind.starts_with("font/");
}

size_t on_data(char* data, size_t size, size_t count, void* user) {
  auto& x = *static_cast<exchange*>(user);
  const size_t bytes = size * count;
  if (x.body_bytes == 0) {
    long status = 0;
    curl_easy_getinfo(x.easy.get(), CURLINFO_RESPONSE_CODE, &status);
    x.response.status = static_cast<int>(status);
    const auto* type = x.response.header("content-type");
    if (status == 200 && x.what.documents_only && type && is_no_document(*type)) {
      x.unwanted = true;
      return 0;
    }
  }
  x.body_bytes += bytes;
  if (x.response.status != 200) {
    x.enough = x.body_bytes > max_other_body;
    return x.enough ? 0 : bytes;
  }
  if (x.body_bytes > x.what.max_bytes) {
    if (x.what.first_part) {
      x.response.body.append(data, x.what.max_bytes - x.response.body.size());
      x.enough = true;
    } else {
      x.too_long = true;
    }
    return 0;
  }
  x.response.body.append(data, bytes);
  return bytes;
}

/// What a server sent as a validator goes back into a request: nothing that could end the line.
bool is_clean(const std::string& value) {
  return !value.empty() && value.size() <= max_validator_bytes &&
         std::all_of(value.begin(), value.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

bool set_up(exchange& x) {
  auto* easy = x.easy.get();
  const auto& options = *x.options;
  bool good = append(x.headers, "Accept: text/html,application/xhtml+xml,text/markdown,text/plain,application/json,application/pdf,*/*;q=0.5");
  if (is_clean(x.what.etag)) good = append(x.headers, "If-None-Match: " + x.what.etag) && good;
  if (is_clean(x.what.last_modified)) good = append(x.headers, "If-Modified-Since: " + x.what.last_modified) && good;
  const auto set = [&](CURLoption option, auto value) { good = curl_easy_setopt(easy, option, value) == CURLE_OK && good; };
  set(CURLOPT_URL, x.what.url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
  set(CURLOPT_PROTOCOLS_STR, "http,https");
#else
  set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROXY, "");
  set(CURLOPT_PATH_AS_IS, 1L); // it is normalised, and must be what robots.txt was asked about
  set(CURLOPT_ERRORBUFFER, x.error);
  set(CURLOPT_USERAGENT, options.user_agent.c_str());
  set(CURLOPT_ACCEPT_ENCODING, "");
  set(CURLOPT_HTTPHEADER, x.headers.get());
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::max(1.0, options.transfer_seconds * 1e3)));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::max(1.0, options.connect_seconds * 1e3)));
  set(CURLOPT_LOW_SPEED_LIMIT, slow_bytes_per_second);
  set(CURLOPT_LOW_SPEED_TIME, slow_seconds);
  // Announced lengths; on_data counts what comes.
  if (!x.what.first_part) set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(x.what.max_bytes));
  set(CURLOPT_OPENSOCKETFUNCTION, open_socket);
  set(CURLOPT_OPENSOCKETDATA, &x);
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, &x);
  set(CURLOPT_WRITEFUNCTION, on_data);
  set(CURLOPT_WRITEDATA, &x);
  set(CURLOPT_PRIVATE, &x);
  return good;
}

transfer_result result_of(exchange& x, CURLcode code) {
  transfer_result out;
  out.id = x.what.id;
  long status = 0;
  curl_easy_getinfo(x.easy.get(), CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(x.easy.get(), CURLINFO_TOTAL_TIME, &x.response.seconds);
  x.response.status = static_cast<int>(status);
  x.response.url = x.what.url;
  out.response = std::move(x.response);
  const auto detail = printable(*x.error ? x.error : curl_easy_strerror(code));
  const auto end = [&](transfer_end how, std::string problem) {
    out.end = how;
    out.problem = std::move(problem);
  };
  if (x.unwanted) {
    const auto* type = out.response.header("content-type");
    end(transfer_end::not_a_document, "no parser for the type " + printable(type ? type->substr(0, 100) : ""));
  } else if (x.too_long || (code == CURLE_FILESIZE_EXCEEDED && status == 200)) {
    end(transfer_end::too_long, "longer than " + format_bytes(static_cast<double>(x.what.max_bytes)));
  } else if (x.head.too_many) {
    end(transfer_end::too_long, "more than " + format_bytes(header_collector::max_bytes) + " of headers");
  } else if (code == CURLE_OK || code == CURLE_FILESIZE_EXCEEDED || x.enough) {
    out.end = transfer_end::answered;
  } else if (!x.refused.empty() && status == 0) {
    end(transfer_end::refused_address, "leads to " + x.refused + ", which is not a public address");
  } else if (code == CURLE_OPERATION_TIMEDOUT) {
    double connected = 0; // of a connection that is used again CONNECT_TIME stays 0
    curl_easy_getinfo(x.easy.get(), CURLINFO_PRETRANSFER_TIME, &connected);
    if (connected <= 0)
      end(transfer_end::unreachable, "no connection within " + format_seconds(x.options->connect_seconds));
    else
      end(transfer_end::timed_out, "no complete answer: " + detail);
  } else if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT || code == CURLE_SSL_CONNECT_ERROR ||
             code == CURLE_PEER_FAILED_VERIFICATION) {
    end(transfer_end::unreachable, detail);
  } else {
    end(transfer_end::broken, detail);
  }
  return out;
}

} // namespace

struct fetcher::state {
  fetch_options options;
  slist_ptr resolve;
  multi_ptr multi;
  std::vector<easy_ptr> idle;
  std::unordered_map<CURL*, std::unique_ptr<exchange>> running;

  ~state() {
    const sigpipe_guard guard;
    for (auto& [easy, x] : running) curl_multi_remove_handle(multi.get(), easy);
    running.clear();
    idle.clear();
    multi.reset();
  }
};

fetcher::fetcher(std::unique_ptr<state> s) : state_(std::move(s)) {}
fetcher::fetcher(fetcher&&) noexcept = default;
fetcher::~fetcher() = default;

expected<fetcher> fetcher::create(fetch_options options) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  auto s = std::make_unique<state>();
  s->options = std::move(options);
  s->multi.reset(curl_multi_init());
  if (!s->multi) return fail(ec::internal, "libcurl could not be started");
  curl_multi_setopt(s->multi.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(std::max<size_t>(1, s->options.connections)));
  for (const auto& entry : s->options.resolve)
    if (!append(s->resolve, entry)) return fail(ec::internal, "out of memory for libcurl");
  return fetcher(std::move(s));
}

expected<void> fetcher::start(transfer what) {
  const sigpipe_guard guard;
  auto x = std::make_unique<exchange>();
  x->what = std::move(what);
  x->options = &state_->options;
  if (state_->idle.empty()) {
    x->easy.reset(curl_easy_init());
  } else {
    x->easy = std::move(state_->idle.back());
    state_->idle.pop_back();
    curl_easy_reset(x->easy.get());
  }
  if (!x->easy || !set_up(*x)) return fail(ec::internal, "libcurl could not set up a transfer");
  if (state_->resolve) curl_easy_setopt(x->easy.get(), CURLOPT_RESOLVE, state_->resolve.get());
  if (curl_multi_add_handle(state_->multi.get(), x->easy.get()) != CURLM_OK) return fail(ec::internal, "libcurl could not add a transfer");
  auto* key = x->easy.get();
  state_->running.emplace(key, std::move(x));
  return {};
}

size_t fetcher::active() const { return state_->running.size(); }

std::vector<transfer_result> fetcher::wait(double seconds) {
  const sigpipe_guard guard;
  std::vector<transfer_result> ended;
  const auto work = [&] {
    int running = 0, left = 0;
    curl_multi_perform(state_->multi.get(), &running);
    while (const CURLMsg* message = curl_multi_info_read(state_->multi.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      auto* easy = message->easy_handle;
      const auto code = message->data.result; // the message is gone with the handle
      const auto found = state_->running.find(easy);
      if (found == state_->running.end()) continue;
      ended.push_back(result_of(*found->second, code));
      curl_multi_remove_handle(state_->multi.get(), easy);
      state_->idle.push_back(std::move(found->second->easy));
      state_->running.erase(found);
    }
  };
  work();
  if (!ended.empty() || seconds <= 0) return ended;
  curl_multi_poll(state_->multi.get(), nullptr, 0, std::max(1, static_cast<int>(std::min(seconds, 3600.0) * 1e3)), nullptr);
  work();
  return ended;
}

} // namespace pragma
