#include "crawler/url.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <arpa/inet.h>

namespace pragma {

namespace {

constexpr size_t max_url_bytes = 4096; ///< servers refuse longer ones (8 KiB is common for the whole request line)
constexpr size_t max_host_bytes = 253; ///< of DNS
constexpr size_t shown_bytes = 200;   ///< of an address in an error

bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_unreserved(char c) { return is_alpha(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~'; }
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
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

/// RFC 3986, 5.2.4; `path` begins with '/'.
std::string without_dot_segments(std::string_view path) {
  std::string out;
  for (size_t at = 0; at < path.size();) {
    const auto end = std::min(path.find('/', at + 1), path.size());
    const auto segment = path.substr(at + 1, end - at - 1);
    const bool last = end == path.size();
    if (segment == ".") {
      if (last) out += '/';
    } else if (segment == "..") {
      const auto parent = out.rfind('/');
      out.erase(parent == std::string::npos ? 0 : parent);
      if (last) out += '/';
    } else {
      out += '/';
      out += segment;
    }
    at = end;
  }
  return out.empty() ? "/" : out;
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

/// Sets path, query and fragment from "path?query#fragment"; the path is absolute or empty.
void set_target(page_url& url, std::string_view rest) {
  const auto hash = rest.find('#');
  url.fragment = hash == std::string_view::npos ? "" : std::string(rest.substr(hash + 1));
  rest = rest.substr(0, hash);
  const auto question = rest.find('?');
  url.query = question == std::string_view::npos ? "" : normal_escapes(rest.substr(question + 1), true);
  std::string path(rest.substr(0, question));
  if (url.web())
    for (auto& c : path)
      if (c == '\\') c = '/';
  if (url.scheme == "file") url.query.clear();
  url.path = path.empty() ? "/" : without_dot_segments(normal_escapes(path, false));
}

expected<void> set_authority(page_url& url, std::string_view authority, std::string_view whole) {
  if (authority.find('@') != std::string_view::npos)
    return fail(ec::invalid_argument, "an address with a user or password in it is not fetched");
  std::string_view host = authority, port;
  if (authority.starts_with('[')) {
    const auto close = authority.find(']');
    if (close == std::string_view::npos) return fail(ec::invalid_argument, shown(whole) + " has a '[' without ']'");
    host = authority.substr(0, close + 1);
    port = authority.substr(close + 1);
    if (!port.empty() && port[0] != ':') return fail(ec::invalid_argument, shown(whole) + " has text behind its ']'");
  } else if (const auto colon = authority.rfind(':'); colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (!port.empty()) port.remove_prefix(1);
  for (const char c : port)
    if (!is_digit(c) || port.size() > 5) return fail(ec::invalid_argument, shown(whole) + " has a port that is no number");
  const int number = port.empty() ? 0 : std::stoi(std::string(port));
  if (number > 65535 || (!port.empty() && number == 0))
    return fail(ec::invalid_argument, shown(whole) + " has a port that does not exist");
  url.port = number == (url.scheme == "https" ? 443 : 80) ? 0 : number;

  if (host.starts_with('[')) {
    in6_addr parsed{};
    char text[INET6_ADDRSTRLEN] = "";
    if (::inet_pton(AF_INET6, std::string(host.substr(1, host.size() - 2)).c_str(), &parsed) != 1 ||
        !::inet_ntop(AF_INET6, &parsed, text, sizeof text))
      return fail(ec::invalid_argument, shown(whole) + " has an IPv6 address that is none");
    url.host = "[" + std::string(text) + "]";
    return {};
  }
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.empty() || host.size() > max_host_bytes || host.starts_with('.'))
    return fail(ec::invalid_argument, shown(whole) + " has no host name");
  for (const char c : host)
    if (!is_alpha(c) && !is_digit(c) && c != '-' && c != '.' && c != '_')
      return fail(ec::invalid_argument, shown(whole) + " has a host name that is not plain ASCII", "write it in its xn-- form");
  url.host = lower(host);
  return {};
}

expected<page_url> parse_man(std::string_view rest, std::string_view whole) {
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
  url.scheme = lower(std::string_view(text).substr(0, length));
  std::string_view rest = std::string_view(text).substr(length + 1);
  if (url.scheme == "man") return parse_man(rest, text);
  if (url.scheme != "http" && url.scheme != "https" && url.scheme != "file")
    return fail(ec::unsupported, shown(text) + ": addresses of the kind " + printable(url.scheme) + ": are not fetched");

  std::string slashes(rest.substr(0, 2));
  if (url.web())
    for (auto& c : slashes)
      if (c == '\\') c = '/';
  if (slashes != "//") {
    if (url.scheme == "file" && rest.starts_with('/')) {
      set_target(url, rest);
      return url;
    }
    return fail(ec::invalid_argument, shown(text) + " lacks the // behind its scheme");
  }
  rest.remove_prefix(2);
  const auto end = std::min(rest.find_first_of(url.web() ? "/\\?#" : "/?#"), rest.size());
  const auto authority = rest.substr(0, end);
  if (url.scheme == "file") {
    if (!authority.empty() && lower(authority) != "localhost")
      return fail(ec::invalid_argument, shown(text) + " names a file of another machine");
  } else if (auto good = set_authority(url, authority, text); !good) {
    return fail(good.error());
  }
  set_target(url, rest.substr(end));
  return url;
}

expected<page_url> resolve_url(const page_url& base, std::string_view given) {
  const auto reference = without_breaks(given);
  if (reference.size() > max_url_bytes)
    return fail(ec::invalid_argument, shown(reference) + " is longer than " + format_bytes(max_url_bytes));
  if (scheme_length(reference) > 0) return parse_url(reference);
  std::string_view rest = reference;
  page_url url = base;
  if (rest.empty() || rest[0] == '#') {
    url.fragment = rest.empty() ? "" : std::string(rest.substr(1));
    return url;
  }
  if (base.scheme == "man") return fail(ec::unsupported, shown(reference) + " is relative, which a manual page has no base for");
  const auto slash = [&](size_t at) { return at < rest.size() && (rest[at] == '/' || (base.web() && rest[at] == '\\')); };
  if (slash(0) && slash(1)) return parse_url(base.scheme + "://" + std::string(rest.substr(2)));
  if (slash(0)) {
    set_target(url, rest);
  } else if (rest[0] == '?') {
    set_target(url, base.path + std::string(rest));
  } else {
    set_target(url, folder_of(base) + std::string(rest));
  }
  if (url.path.size() + url.query.size() > max_url_bytes)
    return fail(ec::invalid_argument, shown(reference) + " is longer than " + format_bytes(max_url_bytes));
  return url;
}

expected<page_url> parse_root(std::string_view text) {
  const auto root = trimmed(text);
  if (root.empty()) return fail(ec::invalid_argument, "a documentation root is empty", "give an address, a file, a folder or man:NAME.SECTION");
  // "notes.txt" and "C:x" have no "//"; only the four schemes, or something with "://", are addresses.
  const auto length = scheme_length(root);
  const auto scheme = lower(root.substr(0, length));
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
  url.path = without_dot_segments(escaped.empty() ? "/" : escaped);
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
