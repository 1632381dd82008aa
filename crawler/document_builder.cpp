#include "crawler/document_builder.hpp"

#include "base/text.hpp"
#include "crawler/charset.hpp"
#include "crawler/metric_names.hpp"

#include <algorithm>

#include <libxml/globals.h>
#include <libxml/uri.h>

namespace pragma::crawler {

namespace {

constexpr size_t max_term_bytes = 400, max_heading_bytes = 300, max_cell_bytes = 20'000, max_notes = 20;
constexpr size_t longest_term_paragraph = 100; ///< of a paragraph that is taken for the term of what is indented below it

std::string clean_anchor(std::string_view anchor) {
  auto out = one_line(clean_text(anchor));
  // Spaces are not allowed in an id, but pages have them, and browsers find them when encoded.
  std::string encoded;
  for (const char c : utf8_prefix(out, limits::anchor_bytes)) encoded += c == ' ' ? std::string("%20") : std::string(1, c);
  return encoded;
}

} // namespace

document_builder::document_builder(std::string_view url) { d_.base = url; }

std::string document_builder::anchor_or_above(std::string_view anchor) {
  auto own = clean_anchor(anchor);
  if (!own.empty()) return own;
  for (auto it = headings_.rbegin(); it != headings_.rend(); ++it)
    if (!it->second.empty()) return it->second;
  return {};
}

size_t document_builder::append(block b) {
  if (full_) return npos;
  size_t bytes = b.text.size() + b.term.size();
  for (const auto& row : b.cells.rows)
    for (const auto& cell : row) bytes += cell.size();
  if (text_bytes_ + bytes > limits::text_bytes) {
    full_ = true;
    note("cut at " + format_bytes(static_cast<double>(limits::text_bytes)) + " of text");
    return npos;
  }
  if (d_.blocks.size() >= limits::blocks) {
    full_ = true;
    note("cut after " + std::to_string(limits::blocks) + " paragraphs");
    return npos;
  }
  text_bytes_ += bytes;
  d_.blocks.push_back(std::move(b));
  return d_.blocks.size() - 1;
}

void document_builder::heading(int level, std::string_view text, std::string_view anchor) {
  block b;
  b.what = block::type::heading;
  b.level = std::clamp(level, 1, 9);
  b.text = utf8_prefix(strip_header_link(one_line(clean_text(text))), max_heading_bytes);
  if (b.text.empty()) return;
  std::erase_if(headings_, [&](const auto& h) { return h.first >= b.level; });
  b.anchor = anchor_or_above(anchor);
  headings_.emplace_back(b.level, b.anchor);
  append(std::move(b));
}

void document_builder::paragraph(std::string_view text, std::string_view anchor) {
  block b;
  b.text = tidy(clean_text(text));
  if (b.text.empty()) return;
  b.anchor = anchor_or_above(anchor);
  append(std::move(b));
}

void document_builder::code(std::string_view text, std::string_view anchor) {
  block b;
  b.what = block::type::code;
  b.text = tidy_code(clean_text(text));
  if (b.text.empty()) return;
  b.anchor = anchor_or_above(anchor);
  append(std::move(b));
}

void document_builder::list_item(int level, std::string_view text, std::string_view anchor) {
  block b;
  b.what = block::type::list_item;
  b.level = std::max(level, 1);
  b.text = tidy(clean_text(text));
  if (b.text.empty()) return;
  b.anchor = anchor_or_above(anchor);
  append(std::move(b));
}

size_t document_builder::definition(std::string_view term, std::string_view text, std::string_view anchor) {
  block b;
  b.what = block::type::definition;
  b.term = utf8_prefix(strip_header_link(one_line(clean_text(term))), max_term_bytes);
  b.text = tidy(clean_text(text));
  if (b.term.empty() && b.text.empty()) return npos;
  b.anchor = anchor_or_above(anchor);
  return append(std::move(b));
}

void document_builder::extend(size_t index, std::string_view text) {
  if (full_ || index >= d_.blocks.size()) return;
  const auto more = tidy(clean_text(text));
  if (more.empty()) return;
  auto& into = d_.blocks[index].text;
  if (text_bytes_ + more.size() > limits::text_bytes) {
    full_ = true;
    note("cut at " + format_bytes(static_cast<double>(limits::text_bytes)) + " of text");
    return;
  }
  text_bytes_ += more.size();
  if (!into.empty()) into += more.starts_with("- ") || more.starts_with("    ") ? "\n" : "\n\n";
  into += more;
}

void document_builder::add_table(table cells, std::string_view caption, std::string_view anchor) {
  auto clean = [](std::string& cell) { cell = utf8_prefix(tidy(clean_text(cell)), max_cell_bytes); };
  std::for_each(cells.header.begin(), cells.header.end(), [&](auto& cell) { clean(cell), cell = one_line(cell); });
  for (auto& row : cells.rows) std::for_each(row.begin(), row.end(), clean);
  cells.anchors.resize(cells.rows.size());
  for (auto& a : cells.anchors) a = clean_anchor(a);
  if (cells.header.empty() && cells.rows.size() > 1 && looks_like_header(cells.rows.front())) {
    cells.header = std::move(cells.rows.front());
    for (auto& cell : cells.header) cell = one_line(cell);
    cells.rows.erase(cells.rows.begin());
    cells.anchors.erase(cells.anchors.begin());
  }
  size_t empty = 0;
  for (size_t i = 0; i < cells.rows.size(); ++i) {
    const bool blank = std::all_of(cells.rows[i].begin(), cells.rows[i].end(), [](const auto& cell) { return cell.empty(); });
    if (blank) {
      ++empty;
    } else if (empty > 0) {
      cells.rows[i - empty] = std::move(cells.rows[i]);
      cells.anchors[i - empty] = std::move(cells.anchors[i]);
    }
  }
  cells.rows.resize(cells.rows.size() - empty);
  cells.anchors.resize(cells.rows.size());
  if (cells.rows.empty()) return;
  block b;
  b.what = block::type::table;
  b.text = one_line(clean_text(caption));
  b.anchor = anchor_or_above(anchor);
  b.cells = std::move(cells);
  append(std::move(b));
}

void document_builder::add_link(std::string_view target, bool follow) {
  if (d_.links.size() >= limits::links) {
    if (d_.links.size() == limits::links) note("more than " + std::to_string(limits::links) + " links: the rest is not followed");
    return;
  }
  auto url = absolute_url(target, d_.base);
  if (url.empty() || !seen_links_.insert(url).second) return;
  d_.links.push_back({std::move(url), follow});
}

void document_builder::note(std::string text) {
  if (d_.notes.size() < max_notes && std::find(d_.notes.begin(), d_.notes.end(), text) == d_.notes.end())
    d_.notes.push_back(std::move(text));
}

size_t document_builder::last_paragraph_as_term() {
  if (d_.blocks.empty()) return npos;
  auto& last = d_.blocks.back();
  if (last.what != block::type::paragraph || last.text.size() > longest_term_paragraph || last.text.find('\n') != std::string::npos ||
      last.text.ends_with('.') || last.text.ends_with(':'))
    return npos;
  last.what = block::type::definition;
  last.term = std::move(last.text);
  last.text.clear();
  return d_.blocks.size() - 1;
}

document document_builder::finish() {
  d_.title = one_line(clean_text(utf8_prefix(d_.title, max_heading_bytes)));
  d_.title = strip_header_link(d_.title);
  if (d_.title.empty())
    for (const auto& b : d_.blocks)
      if (b.what == block::type::heading) {
        d_.title = b.text;
        break;
      }
  return std::move(d_);
}

std::string absolute_url(std::string_view target, const std::string& base) {
  auto wanted = trim(target);
  // Line breaks inside an address are taken out, spaces and characters beyond ASCII encoded, as browsers do.
  std::string encoded;
  for (const char c : wanted) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\r' || c == '\t') continue;
    if (byte <= 0x20 || byte >= 0x7f || c == '"' || c == '<' || c == '>' || c == '\\' || c == '^' || c == '`' || c == '{' ||
        c == '|' || c == '}') {
      static constexpr char digits[] = "0123456789ABCDEF";
      (encoded += '%') += digits[byte >> 4];
      encoded += digits[byte & 15];
    } else {
      encoded += c;
    }
  }
  if (encoded.empty() || encoded.size() > limits::url_bytes) return {};
  xmlChar* built = ::xmlBuildURI(reinterpret_cast<const xmlChar*>(encoded.c_str()), reinterpret_cast<const xmlChar*>(base.c_str()));
  if (!built) return {};
  std::string url(reinterpret_cast<const char*>(built));
  ::xmlFree(built);
  const auto scheme = ascii_lower(url.substr(0, url.find(':')));
  if (scheme != "http" && scheme != "https" && scheme != "file" && scheme != "man") return {};
  return url.size() <= limits::url_bytes ? url : std::string();
}

std::string github_slug(std::string_view heading) {
  std::string out;
  for (size_t i = 0; i < heading.size();) {
    const size_t before = i;
    const char32_t c = next_code_point(heading, i);
    if (c == ' ') out += '-';
    else if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_') out += static_cast<char>(c);
    // Beyond ASCII letters stay and punctuation goes; the blocks of punctuation are few.
    else if (c >= 0xaa && !(c >= 0x2000 && c <= 0x2bff) && !(c >= 0x3000 && c <= 0x3004) && c != 0xab && c != 0xbb && c != 0xb7 &&
             c != 0xd7 && c != 0xf7)
      out.append(heading.substr(before, i - before));
  }
  return out;
}

std::string docutils_id(std::string_view text) {
  std::string out;
  for (const char c : ascii_lower(text)) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9' && !out.empty());
    if (good) out += c;
    else if (!out.empty() && out.back() != '-') out += '-';
  }
  while (out.ends_with('-')) out.pop_back();
  return out;
}

} // namespace pragma::crawler
