#include "crawler/scope.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

namespace pragma {

namespace {

struct segment_rule {
  const char* name;
  std::vector<std::string> patterns; ///< for one segment of the path, in lower case, a last .html or the like taken off
};

const std::vector<segment_rule>& segment_rules() {
  static const std::vector<segment_rule> rules = {
      {"licence page",
       {"license", "licence", "licenses", "licences", "licensing", "license.*", "licence.*", "*-license", "*_license", "*-licence",
        "*-licenses", "*_licenses", "copying", "copying.*", "copyright", "copyrights", "eula", "*-eula", "gpl", "lgpl", "gfdl", "legal",
        "legal-notice*", "notices", "third-party-notices", "third_party_notices", "trademarks", "privacy", "privacy-policy",
        "terms-of-use", "terms-of-service"}},
      {"news page", {"news", "news.*", "*.news", "*.news.*", "whatsnew", "whats-new", "what-s-new", "whats_new", "blog", "announcements"}},
      {"release notes",
       {"release-notes*", "release_notes*", "releasenotes*", "*-release-notes", "*_release_notes", "*-releasenotes", "relnotes*",
        "changelog*", "change-log*", "*-changelog", "*_changelog", "changes", "changes.*"}},
      {"page of people", {"authors", "*.authors", "contributors", "credits", "acknowledgements", "acknowledgments"}},
      {"search page", {"search", "search-results", "searchresults", "search.*"}},
      {"login page", {"login", "log-in", "signin", "sign-in", "signup", "sign-up", "logout", "log-out", "account", "accounts", "oauth", "sso"}},
      {"generated index", {"genindex", "genindex-*", "modindex", "py-modindex", "*-modindex"}},
      {"source listing", {"_sources", "_modules", "_static", "_images", "_downloads", "doxygen_sources"}},
  };
  return rules;
}

/// The rule that a segment falls under, or nullptr. Asked for each link of each page, so words without `*` are looked up at once.
const segment_rule* rule_of(std::string_view segment) {
  struct index {
    std::unordered_map<std::string_view, const segment_rule*> words;
    std::vector<std::pair<std::string_view, const segment_rule*>> patterns;
  };
  static const index all = [] {
    index i;
    for (const auto& rule : segment_rules())
      for (const auto& pattern : rule.patterns) {
        if (pattern.find('*') == std::string::npos)
          i.words.emplace(pattern, &rule);
        else
          i.patterns.emplace_back(pattern, &rule);
      }
    return i;
  }();
  if (const auto found = all.words.find(segment); found != all.words.end()) return found->second;
  for (const auto& [pattern, rule] : all.patterns) // most differ in their first letter or in the last
    if (glob_match(pattern, segment)) return rule;
  return nullptr;
}

// Extensions of files that no parser reads. What a server calls by another name is seen by its type and first bytes.
const std::vector<std::string>& binary_extensions() {
  static const std::vector<std::string> list = {
      "png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "ico", "bmp", "tif", "tiff", "eps", "ps", "mp3", "mp4", "m4v", "webm", "avi",
      "mov", "ogg", "wav", "zip", "gz", "tgz", "xz", "bz2", "zst", "7z", "rar", "tar", "jar", "whl", "deb", "rpm", "apk", "exe", "msi",
      "dmg", "iso", "img", "bin", "run", "so", "dll", "o", "a", "class", "pyc", "woff", "woff2", "ttf", "otf", "eot", "css", "js", "mjs",
      "map", "wasm", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "odp", "epub", "inv", "ipynb", "parquet", "npz", "ncu-rep",
      "nsys-rep"};
  return list;
}

std::string_view last_segment(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view extension(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? std::string_view() : name.substr(dot + 1);
}

bool is_page_extension(std::string_view e) {
  static const std::vector<std::string_view> list = {"html", "htm", "xhtml", "php", "md", "rst", "txt", "pdf", "asp", "aspx", "jsp"};
  return std::find(list.begin(), list.end(), e) != list.end();
}

bool has_scheme(std::string_view pattern) {
  return pattern.find("://") != std::string_view::npos || pattern.starts_with("man:");
}

bool fits(const std::string& pattern, const page_url& url) {
  const std::string text = has_scheme(pattern) ? url.text() : url.target();
  return glob_match(pattern.ends_with('/') ? pattern + "*" : pattern, text);
}

/// "" or the built-in rule, for the part of the path that lies below the root.
std::string built_in(std::string_view rest, const page_url& url) {
  const auto path = ascii_lower(rest);
  const auto last = last_segment(path);
  const auto type = extension(last);
  const bool web = url.web();
  if (web && std::find(binary_extensions().begin(), binary_extensions().end(), type) != binary_extensions().end())
    return "built-in rule: binary, style or script file (." + std::string(type) + ")";
  for (const auto& whole : split(path, '/')) {
    std::string_view segment = whole;
    if (is_page_extension(extension(segment))) segment = segment.substr(0, segment.rfind('.'));
    if (segment.empty()) continue;
    if (const auto* rule = rule_of(segment)) return "built-in rule: " + std::string(rule->name) + " (" + printable(segment) + ")";
  }
  if (url.query.empty()) return {};
  for (const auto& part : split(ascii_lower(url.query), '&')) {
    const auto key = part.substr(0, part.find('='));
    if (key == "q" || key == "search" || key == "query") return "built-in rule: search page (?" + printable(key) + "=)";
    if (key == "oldid" || key == "diff" || key == "printable" || part == "action=edit" || part == "action=history" || key == "replytocom")
      return "built-in rule: wiki action page (?" + printable(part) + ")";
  }
  return {};
}

bool default_port_both(const page_url& a, const page_url& b) { return a.port == 0 && b.port == 0; }

/// http and https of one host are one site.
bool same_site(const page_url& a, const page_url& b) {
  return a.web() && b.web() && a.host == b.host && (default_port_both(a, b) || (a.port == b.port && a.scheme == b.scheme));
}

} // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, after_star = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

expected<crawl_scope> crawl_scope::from(const doc_source& source) {
  crawl_scope scope;
  if (source.docs.empty())
    return fail(ec::invalid_argument, "source '" + printable(source.profiler) + "' has no documentation root", "add one with --docs");
  for (const auto& text : source.docs) {
    auto root = parse_root(text);
    if (!root) return fail(ec::invalid_argument, "documentation root " + root.error().message, root.error().hint);
    base b{*root, folder_of(*root)};
    if (root->scheme == "file") {
      auto path = file_path(*root);
      if (!path) return fail(path.error());
      std::error_code ignored;
      if (std::filesystem::is_directory(*path, ignored)) b.folder = root->path == "/" ? "/" : root->path + "/";
    } else if (root->web() && root->path.back() != '/' && extension(last_segment(root->path)).empty()) {
      b.folder = root->path + "/"; // "https://host/docs": what lies below, not the whole host
    }
    scope.roots_.push_back(*root);
    scope.bases_.push_back(std::move(b));
  }
  for (const auto* list : {&source.allow, &source.deny})
    for (const auto& pattern : *list)
      if (trim(pattern).empty()) return fail(ec::invalid_argument, "an empty allow or deny pattern", "write what it should match, as in '/docs/*'");
  scope.allow_ = source.allow;
  scope.deny_ = source.deny;
  return scope;
}

bool crawl_scope::below_a_root(const page_url& url, std::string* rest) const {
  for (const auto& b : bases_) {
    const bool same = url.web() ? same_site(url, b.root) : url.scheme == b.root.scheme;
    if (!same) continue;
    if (url.scheme == "man" ? url.path == b.root.path : url.path.starts_with(b.folder) || url.path == b.root.path) {
      *rest = url.path.starts_with(b.folder) && url.scheme != "man" ? url.path.substr(b.folder.size()) : std::string(last_segment(url.path));
      return true;
    }
  }
  return false;
}

bool crawl_scope::allowed(const page_url& url) const {
  return std::any_of(allow_.begin(), allow_.end(), [&](const std::string& pattern) {
    if (has_scheme(pattern)) return fits(pattern, url);
    const bool at_home = std::any_of(roots_.begin(), roots_.end(), [&](const page_url& root) {
      return url.web() ? same_site(url, root) : url.scheme == root.scheme;
    });
    return at_home && fits(pattern, url);
  });
}

std::string crawl_scope::refused(const page_url& url) const {
  for (const auto& pattern : deny_)
    if (fits(pattern, url)) return "denied by the pattern '" + printable(pattern) + "'";
  if (std::find_if(roots_.begin(), roots_.end(), [&](const page_url& r) { return r.text() == url.text(); }) != roots_.end()) return {};
  std::string rest = url.path;
  const bool below = below_a_root(url, &rest);
  if (url.scheme == "file" && !below) return "a local file outside the folders of the source";
  if (allow_.empty() ? !below : !allowed(url)) {
    if (!allow_.empty()) return "fits no allow pattern (" + printable(join(allow_, ", ").substr(0, 200)) + ")";
    return url.scheme == "man" ? "a manual page that is no root" : "outside the folder of every root";
  }
  if (url.scheme == "file")
    for (const auto& segment : split(rest, '/'))
      if (segment.starts_with('.')) return "built-in rule: hidden file (" + printable(segment) + ")";
  return url.scheme == "man" ? "" : built_in(rest, url);
}

std::vector<std::string> crawl_scope::rules() const {
  std::vector<std::string> out;
  if (allow_.empty()) {
    for (const auto& b : bases_) {
      if (b.root.scheme == "man")
        out.push_back("only " + b.root.text());
      else
        out.push_back("only below " + (b.root.web() ? b.root.origin() : std::string("file://")) + b.folder);
    }
  } else {
    for (const auto& pattern : allow_)
      out.push_back("only " + printable(pattern) + (has_scheme(pattern) ? "" : " on the roots' hosts"));
  }
  for (const auto& pattern : deny_) out.push_back("not " + printable(pattern));
  std::vector<std::string> names;
  for (const auto& rule : segment_rules()) names.push_back(rule.name);
  out.push_back("not (built-in, except a root itself): " + join(names, ", ") + ", wiki action page, binary, style or script file, hidden file");
  return out;
}

bool crawl_scope::names_host(const page_url& url) const {
  if (std::any_of(roots_.begin(), roots_.end(), [&](const page_url& root) { return root.web() && root.host == url.host; })) return true;
  return std::any_of(allow_.begin(), allow_.end(), [&](const std::string& pattern) {
    const auto start = pattern.find("://");
    if (start == std::string::npos) return false;
    const auto end = std::min(pattern.find('/', start + 3), pattern.size());
    if (pattern.substr(0, end).find('*') != std::string::npos) return false; // "http://*": a stranger's page could pick any host
    auto parsed = parse_url(pattern.substr(0, end));
    return parsed && parsed->host == url.host;
  });
}

} // namespace pragma
