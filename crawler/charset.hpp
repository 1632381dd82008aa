// Bytes of a page -> clean UTF-8. Every parser's text passes here twice: to_utf8() finds out what the bytes are written in, and
// clean_text() takes out what a reader does not see but an index or a model would. Used by the parsers of this room.
#pragma once

#include "base/text.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace pragma::crawler {

struct decoded_text {
  std::string text;              ///< valid UTF-8, without a byte order mark
  std::string charset;           ///< what it was decoded from, as iconv names it
  size_t replaced = 0;           ///< bytes that meant nothing in that charset; each became U+FFFD
};

/// Looks, in this order, at: a byte order mark, `declared` (may be empty), a <meta charset> or an XML declaration in the first
/// bytes (`look_inside`), whether all is valid UTF-8, uchardet's guess. Never fails: the last resort is windows-1252.
decoded_text to_utf8(std::string_view bytes, std::string_view declared, bool look_inside);

/// The character at `at`, which moves on; U+FFFD and one byte where the bytes are not UTF-8.
char32_t next_code_point(std::string_view utf8, size_t& at);
void append_utf8(std::string& out, char32_t c);

/// Without control characters (but line feed and tab), zero-width and bidirectional controls, tag characters, variation selectors
/// and private-use characters (icon fonts); every kind of space is a space, every kind of line end a line feed.
std::string clean_text(std::string_view utf8);

/// Without the pilcrow, chain or hash sign that documentation generators hang onto headings as a link to themselves.
std::string strip_header_link(std::string_view text);

/// Runs of white space become one space; none at the ends.
std::string one_line(std::string_view text);

/// Spaces collapsed within lines, none at their ends, at most one empty line in a row.
std::string tidy(std::string_view text);

/// Lines without spaces at their ends, no empty lines at the start and the end; columns stay.
std::string tidy_code(std::string_view text);


/// At most `bytes` of it, never half a character.
std::string_view utf8_prefix(std::string_view utf8, size_t bytes);

} // namespace pragma::crawler
