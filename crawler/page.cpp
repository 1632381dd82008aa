// Which format a page has, and the one way into its parser.
#include "crawler/charset.hpp"
#include "crawler/document_builder.hpp"
#include "crawler/gunzip.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace pragma {

using namespace crawler;

namespace {

constexpr size_t first_bytes = 1024;       ///< what the content is judged by, as browsers do

bool any_of(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// The last ending of the path in lower case, without the dot; ".gz" and Sphinx's ".rst.txt" are looked through.
std::string ending_of(std::string_view url) {
  auto path = url.substr(0, url.find_first_of("?#"));
  if (const auto scheme = path.find("://"); scheme != std::string_view::npos) {
    const auto slash = path.find('/', scheme + 3);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash);
  }
  auto file = ascii_lower(path.substr(path.rfind('/') + 1));
  if (file.ends_with(".gz")) file.resize(file.size() - 3);
  if (file.ends_with(".rst.txt") || file.ends_with(".md.txt")) file.resize(file.size() - 4);
  const auto dot = file.rfind('.');
  return dot == std::string::npos || dot == 0 ? std::string() : file.substr(dot + 1);
}

page_format by_ending(const std::string& ending) {
  if (any_of(ending, {"html", "htm", "xhtml", "shtml"})) return page_format::html;
  if (any_of(ending, {"md", "markdown", "mdx"})) return page_format::markdown;
  if (ending == "rst") return page_format::rst;
  if (any_of(ending, {"adoc", "asciidoc"})) return page_format::asciidoc;
  if (ending == "pdf") return page_format::pdf;
  if (ending == "json") return page_format::json_catalogue;
  if (any_of(ending, {"csv", "tsv"})) return page_format::csv_catalogue;
  if (any_of(ending, {"yaml", "yml"})) return page_format::yaml_catalogue;
  if (any_of(ending, {"txt", "text"})) return page_format::text;
  if (any_of(ending, {"man", "mdoc"}) || (ending.size() <= 3 && !ending.empty() && ending[0] >= '1' && ending[0] <= '8' &&
                                          (ending.size() == 1 || ending[1] == 'p' || ending[1] == 'x')))
    return page_format::man;
  return page_format::unknown;
}

bool is_binary_ending(const std::string& ending) {
  return any_of(ending,
                {"png",   "jpg", "jpeg", "gif", "svg",  "webp", "ico",  "bmp", "mp4",  "webm", "mp3",  "wav", "zip", "tar",
                 "gz",    "tgz", "bz2",  "xz",  "zst",  "7z",   "rar",  "jar", "whl",  "exe",  "msi",  "deb", "rpm", "dmg",
                 "iso",   "bin", "so",   "dll", "o",    "a",    "js",   "mjs", "css",  "map",  "woff", "ttf", "otf", "eot",
                 "woff2", "inv", "xml",  "rss", "atom", "doc",  "docx", "ppt", "pptx", "xls",  "xlsx"});
}

/// What the server says; unknown where it says little.
page_format by_type(const std::string& type) {
  if (any_of(type, {"text/html", "application/xhtml+xml"})) return page_format::html;
  if (any_of(type, {"text/markdown", "text/x-markdown"})) return page_format::markdown;
  if (any_of(type, {"text/x-rst", "text/prs.fallenstein.rst"})) return page_format::rst;
  if (any_of(type, {"application/pdf", "application/x-pdf"})) return page_format::pdf;
  if (any_of(type, {"application/json", "text/json"}) || type.ends_with("+json")) return page_format::json_catalogue;
  if (any_of(type, {"text/csv", "text/tab-separated-values", "application/csv"})) return page_format::csv_catalogue;
  if (any_of(type, {"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"})) return page_format::yaml_catalogue;
  if (any_of(type, {"text/troff", "application/x-troff-man", "application/x-troff"})) return page_format::man;
  return page_format::unknown;
}

page_format by_content(std::string_view bytes) {
  auto head = bytes.substr(0, first_bytes);
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  if (head.find("%PDF-") != std::string_view::npos) return page_format::pdf;
  const auto utf16 = head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff");
  if (!utf16 && head.find('\0') != std::string_view::npos) return page_format::unknown;
  const auto start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return page_format::text;
  head.remove_prefix(start);
  const auto lower = ascii_lower(head);
  if (lower.starts_with("<!doctype html") || lower.find("<html") != std::string::npos || lower.starts_with("<head") ||
      lower.starts_with("<body"))
    return page_format::html;
  if (lower.starts_with("<?xml") || lower.starts_with("<!doctype")) return page_format::unknown;
  if (head.starts_with(".TH ") || head.starts_with(".Dd ") || head.starts_with(".\\\"") || head.starts_with("'\\\"") ||
      head.starts_with(".so ") || head.find("\n.TH ") != std::string_view::npos || head.find("\n.Dd ") != std::string_view::npos)
    return page_format::man;
  if (head.front() == '{' ||
      (head.front() == '[' && head.find_first_of("{]", 1) != std::string_view::npos && head.find("](") == std::string_view::npos))
    return page_format::json_catalogue;
  // "perf-stat(1)" underlined: a manual page before AsciiDoc made one of it, which many projects call .txt.
  const auto line = head.substr(0, head.find('\n'));
  const auto under = head.substr(std::min(line.size() + 1, head.size()));
  if (line.size() > 4 && line.ends_with(')') && line[line.size() - 3] == '(' && is_digit(line[line.size() - 2]) && under.find_first_not_of('=') >= line.size() - 1 &&
      under.starts_with("===="))
    return page_format::asciidoc;
  if (head.starts_with("==PROF==") || head.starts_with("\"Metric Name\"")) return page_format::csv_catalogue;
  return page_format::text;
}

} // namespace

const char* name(page_format format) {
  switch (format) {
    case page_format::html: return "html";
    case page_format::markdown: return "markdown";
    case page_format::man: return "man";
    case page_format::pdf: return "pdf";
    case page_format::rst: return "rst";
    case page_format::asciidoc: return "asciidoc";
    case page_format::json_catalogue: return "json";
    case page_format::csv_catalogue: return "csv";
    case page_format::yaml_catalogue: return "yaml";
    case page_format::text: return "text";
    case page_format::unknown: return "unknown";
  }
  return "unknown";
}

page_format format_of(std::string_view url, std::string_view content_type, std::string_view bytes) {
  if (url.starts_with("man:")) return page_format::man;
  const auto type = ascii_lower(trim(content_type.substr(0, content_type.find(';'))));
  if (const auto said = by_type(type); said != page_format::unknown) return said;
  // Pictures, scripts, archives: their type says enough, and a text that pretends to be one is not worth a second look.
  for (const std::string_view family : {"image/", "audio/", "video/", "font/"})
    if (type.starts_with(family)) return page_format::unknown;
  if (any_of(type, {"text/css", "text/javascript", "application/javascript", "application/zip", "application/x-tar"}))
    return page_format::unknown;
  const auto ending = ending_of(url);
  const auto content = by_content(bytes);
  if (const auto named = by_ending(ending); named != page_format::unknown) {
    // Release "1.3" is not section 3 of the manual, and a picture may be called page.html.
    if (named == page_format::man && content != page_format::man && !is_gzip(bytes)) return content;
    if (content == page_format::unknown && named != page_format::pdf && !is_gzip(bytes) && !bytes.empty())
      return page_format::unknown;
    return named == page_format::text && content == page_format::asciidoc ? content : named;
  }
  if (is_binary_ending(ending) && content != page_format::html) return page_format::unknown;
  return content;
}

expected<document> parse_page(page_format format, std::string_view bytes, std::string_view url, std::string_view declared_charset) {
  std::string unpacked;
  if (is_gzip(bytes)) {
    auto out = gunzip(bytes, limits::child_output_bytes);
    if (!out) return fail(out.error().code, std::string(url) + ": " + out.error().message, out.error().hint);
    unpacked = std::move(*out);
    bytes = unpacked;
  }
  if (format == page_format::pdf) return parse_pdf(bytes, url);
  if (format == page_format::unknown)
    return fail(ec::unsupported,
                std::string(url) + ": neither HTML, Markdown, reStructuredText, AsciiDoc, a man page, PDF, text nor a catalogue of metrics",
                "leave it out with a deny pattern");
  const bool looks_inside = format == page_format::html;
  const auto decoded = to_utf8(bytes, declared_charset, looks_inside);
  auto d = [&]() -> expected<document> {
    switch (format) {
      case page_format::html: return parse_html(decoded.text, url);
      case page_format::markdown: return parse_markdown(decoded.text, url);
      case page_format::man: return parse_man(decoded.text, url);
      case page_format::rst: return parse_rst(decoded.text, url);
      case page_format::asciidoc: return parse_asciidoc(decoded.text, url);
      case page_format::json_catalogue: return parse_json_catalogue(decoded.text, url);
      case page_format::csv_catalogue: return parse_csv_catalogue(decoded.text, url);
      case page_format::yaml_catalogue: return parse_yaml_catalogue(decoded.text, url);
      default:
        if (is_perf_list(decoded.text)) return parse_perf_list(decoded.text, url);
        if (is_performance_group(decoded.text)) return parse_performance_group(decoded.text, url);
        return parse_text(decoded.text, url);
    }
  }();
  if (!d) return d;
  d->charset = decoded.charset;
  if (decoded.replaced > 0)
    d->notes.push_back(std::to_string(decoded.replaced) + (decoded.replaced == 1 ? " byte that is" : " bytes that are") +
                       " not valid " + decoded.charset + " replaced");
  return d;
}

namespace crawler {

expected<document> parse_text(std::string_view utf8, std::string_view url) {
  document_builder builder(url);
  std::string group;
  bool code = true;
  auto close = [&] {
    if (code) builder.code(group);
    else builder.paragraph(one_line(group));
    group.clear();
    code = true;
  };
  for (size_t start = 0; start < utf8.size() && !builder.full();) {
    const auto end = std::min(utf8.find('\n', start), utf8.size());
    const auto line = utf8.substr(start, end - start);
    start = end + 1;
    if (trim(line).empty()) {
      close();
      continue;
    }
    code &= line.front() == ' ' || line.front() == '\t';
    group += line;
    group += '\n';
  }
  close();
  return builder.finish();
}

} // namespace crawler

} // namespace pragma
