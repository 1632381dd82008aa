// Fenced code blocks of Markdown (CommonMark 4.5), written and read. Private to llm/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pragma::llm {

/// `content` in a fence longer than any run of backticks in it, so that nothing in it can end the block.
std::string fenced(std::string_view content, std::string_view language);

struct code_block {
  std::string language; ///< first word after the fence, lower case
  std::string content;
};

/// A Markdown text taken apart.
struct fenced_text {
  std::vector<code_block> blocks;
  std::vector<std::string> prose; ///< the lines outside the blocks
  bool unterminated = false;      ///< the last block has no closing fence
};
fenced_text take_apart(std::string_view text);

} // namespace pragma::llm
