#include "crawler/url.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include <arpa/inet.h>
#include <curl/curl.h>

namespace pragma {

namespace {

constexpr size_t max_url_bytes = 4096; ///< servers refuse longer ones (8 KiB is common for the whole request line)
constexpr size_t max_host_bytes = 253; ///< of DNS
constexpr size_t shown_bytes = 200;   ///< of an address in an error

bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_unreserved(char c) { return is_alpha(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~'; }
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string shown(std::string_view text) {
  return "'" + printable(text.substr(0, shown_bytes)) + (text.size() > shown_bytes ? "...'" : "'");
}

void append_byte(std::string& out, char c) {
  static constexpr char digits[] = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  out += '%';
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

/// pchar / "/" of RFC 3986.
const std::array<bool, 256>& path_bytes() {
  static const auto table = [] {
    std::array<bool, 256> t{};
    for (int c = 0; c < 256; ++c)
      t[static_cast<size_t>(c)] = c != 0 && (is_unreserved(static_cast<char>(c)) ||
                                             std::string_view("!$&'()*+,;=:@/").find(static_cast<char>(c)) != std::string_view::npos);
    return t;
  }();
  return table;
}

/// Escapes what must be, undoes escapes of unreserved characters, writes the others in upper case.
std::string normal_escapes(std::string_view text, bool in_query) {
  const auto& allowed = path_bytes();
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0) {
      const auto byte = static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      if (is_unreserved(byte))
        out += byte;
      else
        append_byte(out, byte);
      i += 2;
    } else if (allowed[static_cast<unsigned char>(c)] || (in_query && c == '?')) {
      out += c;
    } else {
      append_byte(out, c);
    }
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

/// As browsers do: line breaks and tabs inside an address are dropped.
std::string without_breaks(std::string_view text) {
  std::string out;
  for (const char c : trimmed(text))
    if (c != '\t' && c != '\r' && c != '\n') out += c;
  return out;
}

/// Length of "scheme" in "scheme:...", 0 when there is none.
size_t scheme_length(std::string_view text) {
  if (text.empty() || !is_alpha(text[0])) return 0;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == ':') return i;
    if (!is_alpha(text[i]) && !is_digit(text[i]) && text[i] != '+' && text[i] != '-' && text[i] != '.') return 0;
  }
  return 0;
}

struct curl_url_deleter {
  void operator()(CURLU* handle) const { ::curl_url_cleanup(handle); }
};
using curl_url_handle = std::unique_ptr<CURLU, curl_url_deleter>;

/// One part of an address as libcurl reads it; empty where there is none.
std::string part_of(CURLU* handle, CURLUPart part) {
  char* text = nullptr;
  if (::curl_url_get(handle, part, &text, 0) != CURLUE_OK) return {};
  std::string out = text;
  ::curl_free(text);
  return out;
}

/// An address, or a reference against the one that the handle has. `whole`: for the message.
expected<void> read_into(CURLU* handle, const std::string& text, std::string_view whole) {
  switch (const auto read = ::curl_url_set(handle, CURLUPART_URL, text.c_str(), CURLU_DISALLOW_USER)) {
  case CURLUE_OK: return {};
  case CURLUE_USER_NOT_ALLOWED: return fail(ec::invalid_argument, "an address with a user or password in it is not fetched");
  case CURLUE_BAD_FILE_URL: return fail(ec::invalid_argument, shown(whole) + " names a file of another machine");
  default: return fail(ec::invalid_argument, shown(whole) + " is no address: " + ::curl_url_strerror(read));
  }
}

/// The policy on hosts: what libcurl takes for a name, but plain ASCII, without the dot of the root, an IPv6 address in its one form.
expected<std::string> host_of(std::string host, std::string_view whole) {
  if (host.starts_with('[')) {
    in6_addr parsed{};
    char text[INET6_ADDRSTRLEN] = "";
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &parsed) != 1 || !::inet_ntop(AF_INET6, &parsed, text, sizeof text))
      return fail(ec::invalid_argument, shown(whole) + " has an IPv6 address that is none");
    return "[" + std::string(text) + "]";
  }
  if (host.ends_with('.')) host.pop_back();
  if (host.empty() || host.size() > max_host_bytes || host.starts_with('.')) return fail(ec::invalid_argument, shown(whole) + " has no host name");
  for (const char c : host)
    if (!is_alpha(c) && !is_digit(c) && c != '-' && c != '.' && c != '_')
      return fail(ec::invalid_argument, shown(whole) + " has a host name that is not plain ASCII", "write it in its xn-- form");
  return ascii_lower(host);
}

expected<page_url> page_of(CURLU* handle, std::string_view whole) {
  page_url url;
  url.scheme = part_of(handle, CURLUPART_SCHEME);
  if (url.web()) {
    auto host = host_of(part_of(handle, CURLUPART_HOST), whole);
    if (!host) return fail(host.error());
    url.host = std::move(*host);
    const auto port = part_of(handle, CURLUPART_PORT);
    const int number = port.empty() ? 0 : std::stoi(port); // libcurl gives 0 to 65535
    if (!port.empty() && number == 0) return fail(ec::invalid_argument, shown(whole) + " has a port that does not exist");
    url.port = number == (url.scheme == "https" ? 443 : 80) ? 0 : number;
    url.query = normal_escapes(part_of(handle, CURLUPART_QUERY), true);
  }
  url.path = part_of(handle, CURLUPART_PATH);
  if (url.path.empty()) url.path = "/";
  url.fragment = part_of(handle, CURLUPART_FRAGMENT);
  if (url.path.size() + url.query.size() > max_url_bytes) return fail(ec::invalid_argument, shown(whole) + " is longer than " + format_bytes(max_url_bytes));
  return url;
}

/// What libcurl is given: backslashes of web addresses turned, and of the path all escapes in their one form, so that dot segments are seen as such.
/// `before`: what stands before the path, as it is. Query and fragment as they were written, but what is no byte of an address.
std::string cleaned(std::string_view before, std::string_view rest, bool web) {
  const auto end = std::min(rest.find_first_of("?#"), rest.size());
  std::string path(rest.substr(0, end));
  if (web) std::replace(path.begin(), path.end(), '\\', '/');
  std::string out = std::string(before) + normal_escapes(path, false);
  for (const char c : rest.substr(end)) {
    if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f) append_byte(out, c);
    else out += c;
  }
  return out;
}

expected<page_url> parse_man_address(std::string_view rest, std::string_view whole) {
  std::string name(rest.substr(0, rest.find('#')));
  // "perf-stat(1)" is what people write.
  if (const auto open = name.find('('); open != std::string::npos && name.ends_with(')'))
    name = name.substr(0, open) + "." + name.substr(open + 1, name.size() - open - 2);
  const auto dot = name.rfind('.');
  bool good = dot != std::string::npos && dot > 0 && dot + 1 < name.size() && name.front() != '.' && name.front() != '-';
  good = good && is_alpha(name[dot + 1]) + is_digit(name[dot + 1]) == 1;
  for (const char c : name)
    good = good && (is_alpha(c) || is_digit(c) || std::string_view("-._+:@").find(c) != std::string_view::npos);
  if (!good) return fail(ec::invalid_argument, shown(whole) + " is no manual page", "write man:NAME.SECTION, as in man:perf-stat.1");
  page_url url;
  url.scheme = "man";
  url.path = name;
  const auto hash = rest.find('#');
  if (hash != std::string_view::npos) url.fragment = std::string(rest.substr(hash + 1));
  return url;
}

} // namespace

std::string page_url::origin() const {
  if (!web()) return {};
  return scheme + "://" + host + (port ? ":" + std::to_string(port) : "");
}

std::string page_url::target() const { return query.empty() ? path : path + "?" + query; }

std::string page_url::text() const {
  if (scheme == "man") return "man:" + path;
  if (scheme == "file") return "file://" + path;
  return origin() + target();
}

expected<page_url> parse_url(std::string_view given) {
  const auto text = without_breaks(given);
  if (text.size() > max_url_bytes) return fail(ec::invalid_argument, shown(text) + " is longer than " + format_bytes(max_url_bytes));
  const auto length = scheme_length(text);
  if (length == 0) return fail(ec::invalid_argument, shown(text) + " is no address");
  page_url url;
  url.scheme = ascii_lower(std::string_view(text).substr(0, length));
  std::string_view rest = std::string_view(text).substr(length + 1);
  if (url.scheme == "man") return parse_man_address(rest, text);
  if (url.scheme != "http" && url.scheme != "https" && url.scheme != "file")
    return fail(ec::unsupported, shown(text) + ": addresses of the kind " + printable(url.scheme) + ": are not fetched");

  const bool web = url.web();
  std::string slashes(rest.substr(0, 2));
  if (web) std::replace(slashes.begin(), slashes.end(), '\\', '/');
  size_t authority = 0; // bytes of "//host:port"
  if (slashes == "//") authority = std::min(rest.find_first_of(web ? "/\\?#" : "/?#", 2), rest.size());
  else if (web || !rest.starts_with('/')) return fail(ec::invalid_argument, shown(text) + " lacks the // behind its scheme");
  if (web && authority == 2) return fail(ec::invalid_argument, shown(text) + " has no host name");
  if (rest.substr(0, authority).find('%') != std::string_view::npos) // libcurl would decode it
    return fail(ec::invalid_argument, shown(text) + " has a host name that is not plain ASCII", "write it in its xn-- form");
  const curl_url_handle handle(::curl_url());
  if (!handle) return fail(ec::limit_exceeded, "no memory for an address");
  const auto before = url.scheme + "://" + (authority ? std::string(rest.substr(2, authority - 2)) : std::string());
  if (auto read = read_into(handle.get(), cleaned(before, rest.substr(authority), web), text); !read) return fail(read.error());
  return page_of(handle.get(), text);
}

expected<page_url> resolve_url(const page_url& base, std::string_view given) {
  const auto reference = without_breaks(given);
  if (reference.size() > max_url_bytes)
    return fail(ec::invalid_argument, shown(reference) + " is longer than " + format_bytes(max_url_bytes));
  if (scheme_length(reference) > 0) return parse_url(reference);
  if (reference.empty() || reference[0] == '#') {
    auto url = base;
    url.fragment = reference.empty() ? "" : reference.substr(1);
    return url;
  }
  if (base.scheme == "man") return fail(ec::unsupported, shown(reference) + " is relative, which a manual page has no base for");
  const auto slash = [&](size_t at) { return at < reference.size() && (reference[at] == '/' || (base.web() && reference[at] == '\\')); };
  if (slash(0) && slash(1)) return parse_url(base.scheme + "://" + reference.substr(2));
  const curl_url_handle handle(::curl_url());
  if (!handle) return fail(ec::limit_exceeded, "no memory for an address");
  if (auto read = read_into(handle.get(), base.text(), base.text()); !read) return fail(read.error());
  if (auto read = read_into(handle.get(), cleaned("", reference, base.web()), reference); !read) return fail(read.error());
  return page_of(handle.get(), reference);
}

expected<page_url> parse_root(std::string_view text) {
  const auto root = trimmed(text);
  if (root.empty()) return fail(ec::invalid_argument, "a documentation root is empty", "give an address, a file, a folder or man:NAME.SECTION");
  // "notes.txt" and "C:x" have no "//"; only the four schemes, or something with "://", are addresses.
  const auto length = scheme_length(root);
  const auto scheme = ascii_lower(root.substr(0, length));
  if (length > 0 && (scheme == "man" || scheme == "file" || scheme == "http" || scheme == "https" || root.substr(length).starts_with("://"))) {
    auto url = parse_url(root);
    if (url) url->fragment.clear();
    return url;
  }
  std::error_code problem;
  auto path = std::filesystem::absolute(std::filesystem::path(root), problem).lexically_normal().string();
  if (problem) return fail(ec::invalid_argument, shown(root) + " is no path: " + problem.message());
  if (path.find('\0') != std::string::npos) return fail(ec::invalid_argument, shown(root) + " is no path: it has a NUL in it");
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return file_url(path);
}

page_url file_url(std::string_view absolute_path) {
  page_url url;
  url.scheme = "file";
  std::string escaped;
  const auto& allowed = path_bytes();
  for (const char c : absolute_path) {
    if (allowed[static_cast<unsigned char>(c)])
      escaped += c;
    else
      append_byte(escaped, c);
  }
  url.path = escaped.empty() ? "/" : escaped;
  return url;
}

expected<std::string> file_path(const page_url& url) {
  std::string out;
  for (size_t i = 0; i < url.path.size(); ++i) {
    char c = url.path[i];
    if (c == '%' && i + 2 < url.path.size()) {
      c = static_cast<char>(hex_value(url.path[i + 1]) * 16 + hex_value(url.path[i + 2]));
      i += 2;
    }
    if (c == '\0') return fail(ec::invalid_argument, shown(url.path) + " has an encoded NUL in it");
    out += c;
  }
  return out;
}

std::string folder_of(const page_url& url) { return url.path.substr(0, url.path.rfind('/') + 1); }

uint64_t link_id(std::string_view url) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : url) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ull;
  }
  return hash;
}

} // namespace pragma
