// Words that name metrics, and words of table headers: what segments.cpp finds records by, what the extractive summariser reads prose
// by, and what the grounding check holds a model's answer against. looks_like_metric() itself is in document.hpp.
#pragma once

#include "crawler/document.hpp"

namespace pragma::crawler {

/// The words of a text that may be names, in order: letters, digits and _ . : - / = within, punctuation at the ends taken off. They
/// point into `text`.
std::vector<std::string_view> words_of(std::string_view text);

/// The distinct words that look_like_metric(), in order of appearance, at most `most`.
std::vector<std::string> metric_names_in(std::string_view text, size_t most = 64);

/// The names that a table cell or a definition's term holds: one, or several with separators where each looks like a metric. Quotes
/// and a unit in brackets are taken off. Empty: it is no name. `certain`: the column's header says that names stand here, so a
/// few words with spaces will do ("L2 Cache Hit Rate").
std::vector<std::string> names_in_cell(std::string_view cell, bool certain);

/// Macros, environment variables and constants, which are written like hardware events.
bool names_code(std::string_view word);

/// A unit in brackets at the end ("Duration (us)", "Bandwidth [GB/s]"); empty when there is none.
std::string unit_in_brackets(std::string_view text);

/// True for what measurements are given in: "%", "cycles", "GB/s", "us", "count".
bool is_unit(std::string_view text);

enum class column { other, metric, name, unit, description, formula };
/// What a column holds, as its header says: `metric` says it outright ("Metric", "Counter name"), `name` may be of anything.
column column_of(std::string_view header);
/// At least two cells are words that headers are made of, and none is long.
bool looks_like_header(const std::vector<std::string>& cells);

} // namespace pragma::crawler
