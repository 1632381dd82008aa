// Programs that read what we do not: mandoc, pdftotext. Each runs as a child with limits on time, memory and output, in an
// empty folder, with an empty environment. Used by man.cpp and pdf.cpp.
#pragma once

#include "base/error.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pragma::crawler {

/// What the program wrote to standard output. `cwd`: its folder, which it should find its input in; `what`: the page, for messages.
/// `partial`: output of a program that failed is returned all the same if there is any (poppler says "syntax error" and goes on).
/// unsupported (not installed; names the Debian package), timeout, limit_exceeded, tool_failed.
expected<std::string> run_reader(const std::vector<std::string>& argv, std::string_view input, const std::filesystem::path& cwd,
                                 std::string_view what, std::string_view package, bool partial = false);

} // namespace pragma::crawler
