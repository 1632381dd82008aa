#include "crawler/sitemap.hpp"

#include "base/text.hpp"
#include "crawler/gunzip.hpp"

#include <algorithm>
#include <memory>
#include <mutex>

#include <libxml/parser.h>
#include <libxml/xmlreader.h>

namespace pragma {

namespace {

constexpr size_t max_text_bytes = 4096; ///< of one address or date

struct reader_deleter {
  void operator()(xmlTextReader* reader) const { xmlFreeTextReader(reader); }
};

std::string local_name(xmlTextReader* reader) {
  const auto* text = xmlTextReaderConstLocalName(reader);
  return text ? reinterpret_cast<const char*>(text) : "";
}

expected<sitemap> parse_list(std::string_view bytes) {
  sitemap out;
  while (!bytes.empty()) {
    const auto end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    const auto line = trim(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (!line.starts_with("http://") && !line.starts_with("https://")) {
      if (line.empty()) continue;
      return fail(ec::parse_error, "neither an XML sitemap nor a list of addresses");
    }
    if (out.entries.size() == max_sitemap_entries) {
      out.truncated = true;
      break;
    }
    out.entries.push_back({line, ""});
  }
  if (out.entries.empty()) return fail(ec::parse_error, "an empty sitemap");
  return out;
}

} // namespace

expected<sitemap> parse_sitemap(std::string_view bytes) {
  std::string unpacked;
  if (is_gzip(bytes)) {
    auto text = gunzip(bytes, max_sitemap_bytes);
    if (!text) return fail(text.error());
    unpacked = std::move(*text);
    bytes = unpacked;
  }
  if (bytes.size() > max_sitemap_bytes)
    return fail(ec::limit_exceeded, "a sitemap of more than " + format_bytes(static_cast<double>(max_sitemap_bytes)));
  const auto start = bytes.find_first_not_of(" \t\r\n");
  const auto mark = bytes.starts_with("\xEF\xBB\xBF") || bytes.starts_with("\xFE\xFF") || bytes.starts_with("\xFF\xFE");
  if (!mark && (start == std::string_view::npos || bytes[start] != '<')) return parse_list(bytes);
  if (!mark) bytes.remove_prefix(start); // a declaration must come first; servers add empty lines
  // A sitemap needs no DTD, and without one there are no entities to expand.
  if (bytes.find("<!DOCTYPE") != std::string_view::npos) return fail(ec::parse_error, "a sitemap with a DTD is not read");

  static std::once_flag once;
  std::call_once(once, [] { xmlInitParser(); });
  const std::unique_ptr<xmlTextReader, reader_deleter> reader(
      xmlReaderForMemory(bytes.data(), static_cast<int>(bytes.size()), nullptr, nullptr,
                         XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_NOCDATA));
  if (!reader) return fail(ec::internal, "libxml2 could not be started");

  sitemap out;
  bool known = false;
  sitemap_entry entry;
  std::string* text = nullptr; // where the text of the element that we are in goes
  int code = 0;
  while ((code = xmlTextReaderRead(reader.get())) == 1) {
    const int type = xmlTextReaderNodeType(reader.get());
    const int depth = xmlTextReaderDepth(reader.get());
    if (type == XML_READER_TYPE_DOCUMENT_TYPE) return fail(ec::parse_error, "a sitemap with a DTD is not read");
    if (type == XML_READER_TYPE_ELEMENT) {
      text = nullptr;
      const auto element = local_name(reader.get());
      if (depth == 0) {
        out.index = element == "sitemapindex";
        known = out.index || element == "urlset";
        if (!known) return fail(ec::parse_error, "XML, but no sitemap: its root is <" + printable(element.substr(0, 60)) + ">");
      } else if (depth == 1) {
        entry = {};
      } else if (depth == 2 && !xmlTextReaderIsEmptyElement(reader.get())) {
        text = element == "loc" ? &entry.url : element == "lastmod" ? &entry.modified : nullptr;
      }
    } else if (type == XML_READER_TYPE_TEXT || type == XML_READER_TYPE_CDATA || type == XML_READER_TYPE_SIGNIFICANT_WHITESPACE) {
      const auto* value = xmlTextReaderConstValue(reader.get());
      if (text && value && text->size() <= max_text_bytes) *text += reinterpret_cast<const char*>(value);
    } else if (type == XML_READER_TYPE_END_ELEMENT) {
      text = nullptr;
      if (depth != 1) continue;
      entry.url = trim(entry.url);
      entry.modified = trim(entry.modified);
      if (entry.url.empty() || entry.url.size() > max_text_bytes) continue;
      if (out.entries.size() == max_sitemap_entries) {
        out.truncated = true;
        return out;
      }
      out.entries.push_back(entry);
    }
  }
  if (code < 0) {
    if (!known || out.entries.empty()) return fail(ec::parse_error, "broken XML instead of a sitemap");
    out.truncated = true;
  }
  return out;
}

} // namespace pragma
