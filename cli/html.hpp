// Pieces of a self-contained HTML page: escaping, the frame with its style, tables. For the reports only.
// Everything that comes from a task, a candidate or a tool is hostile: it passes through escape() on its way in.
#pragma once

#include "diagnosis/profile.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pragma::html {

/// Text as HTML: & < > " ' escaped, control characters and invalid UTF-8 replaced. Safe in text and in quoted attributes.
std::string escape(std::string_view text);
/// A whole page: doctype, style (light and dark by the reader's preference), a policy that forbids all loading, title, body.
/// `script`, ours and constant, is the only one that the policy lets run (by its hash); empty: none.
std::string page(std::string_view title, const std::string& body, std::string_view script = {});
/// <section> with a heading; `id` is ours. Nothing at all when the body is empty.
std::string section(std::string_view id, std::string_view heading, const std::string& body);
/// <details> that is closed unless `open`; `summary` is HTML.
std::string details(const std::string& summary, const std::string& body, bool open = false);
/// <pre> with a scrollbar of its own; escaped here. Cut after `max_bytes` with a line that says so.
std::string pre(std::string_view text, size_t max_bytes = 512 << 10);
/// Table of HTML cells. Columns [first, last) hold figures and are right-aligned. Nothing when there are no rows. On a telephone the cells of a row of
/// many columns stand one below the other, each with its column's name; "-" is left out there.
std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows, size_t first, size_t last);
/// <ul> of escaped lines; nothing when there are none.
std::string list(const std::vector<std::string>& lines);

/// "2.31x".
std::string times(double value);
/// "2.31x (2.25 to 2.38)".
std::string with_interval(const interval& i);
/// A number with its unit, digits by its size: "12.4 GB/s", "1.23 ms", "136 k".
std::string quantity(double value, const std::string& unit);

// Reading documents that may lack anything.
std::string text_at(const json& object, std::string_view key);
double number_at(const json& object, std::string_view key);
const json& object_at(const json& object, std::string_view key);  ///< an empty object when absent
const json& array_at(const json& object, std::string_view key);   ///< an empty array when absent
std::vector<std::string> texts_at(const json& object, std::string_view key);

} // namespace pragma::html
