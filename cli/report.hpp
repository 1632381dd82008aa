// Self-contained HTML: the report of one run, and the table of a suite. No external resources; every text is escaped.
#pragma once

#include "base/json.hpp"

#include <string>

namespace pragma {

/// From run_document() (cli/outputs.cpp): {"run": {...}, "iterations": [...]}.
std::string render_html_report(const json& document);
/// From the suite document (cli/bench.cpp): {"tasks": [...], "categories": [...], "overall": {...}, ...}.
std::string render_suite_html(const json& suite);

} // namespace pragma
