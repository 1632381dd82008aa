// Text -> sentences, for cutting long paragraphs and for the extractive summariser. Rules for technical English: "e.g.", "1.5" and
// "smsp__cycles.avg" do not end one.
#pragma once

#include <string_view>
#include <vector>

namespace pragma::crawler {

/// In order, pointing into `text`, without white space at the ends. An empty line, a list item ("- ") and code (four spaces) end a
/// sentence as well; code is left out.
std::vector<std::string_view> sentences_of(std::string_view text);

} // namespace pragma::crawler
