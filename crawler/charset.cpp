#include "crawler/charset.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <iconv.h>
#include <uchardet/uchardet.h>

namespace pragma::crawler {

namespace {

constexpr char32_t replacement = 0xfffd;
constexpr size_t look_inside_bytes = 4096;      ///< browsers look at 1,024; generators that put scripts first need more
constexpr size_t guess_bytes = 256u << 10;      ///< uchardet is sure long before that
constexpr size_t max_label_bytes = 40;
constexpr double rare_share = 0.05;             ///< fewer non-ASCII bytes than this: English with some accents or quotes

/// The name that iconv knows; empty for labels that are no charset or that must not be trusted (UTF-7 hides markup).
std::string iconv_name(std::string_view label) {
  auto name = ascii_lower(trim(label));
  std::erase_if(name, [](char c) { return c == '"' || c == '\''; });
  if (name.empty() || name.size() > max_label_bytes) return {};
  for (const char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.' && c != ':') return {};
  // As the WHATWG's encoding standard reads these labels: what pages mean by them, not what they say.
  struct alias { std::string_view label, name; };
  static constexpr alias aliases[] = {
      {"utf8", "UTF-8"},          {"utf-8", "UTF-8"},          {"unicode-1-1-utf-8", "UTF-8"}, {"ascii", "CP1252"},
      {"us-ascii", "CP1252"},     {"iso-8859-1", "CP1252"},    {"iso8859-1", "CP1252"},        {"iso_8859-1", "CP1252"},
      {"latin1", "CP1252"},       {"latin-1", "CP1252"},       {"l1", "CP1252"},               {"windows-1252", "CP1252"},
      {"x-user-defined", "CP1252"}, {"iso-8859-9", "CP1254"},  {"latin5", "CP1254"},           {"tis-620", "CP874"},
      {"shift_jis", "CP932"},     {"shift-jis", "CP932"},      {"sjis", "CP932"},              {"x-sjis", "CP932"},
      {"windows-31j", "CP932"},   {"ms_kanji", "CP932"},       {"x-euc-jp", "EUC-JP"},         {"gb2312", "GB18030"},
      {"gbk", "GB18030"},         {"x-gbk", "GB18030"},        {"gb_2312-80", "GB18030"},      {"euc-kr", "CP949"},
      {"ks_c_5601-1987", "CP949"}, {"uhc", "CP949"},           {"big5", "BIG5-HKSCS"},         {"x-x-big5", "BIG5-HKSCS"},
      {"utf-16", "UTF-16LE"},     {"utf-16le", "UTF-16LE"},    {"unicode", "UTF-16LE"},        {"ucs-2", "UTF-16LE"},
      {"utf-16be", "UTF-16BE"},   {"utf-32", "UTF-32LE"},      {"utf-7", ""},                  {"unicode-1-1-utf-7", ""},
  };
  for (const auto& a : aliases)
    if (a.label == name) return std::string(a.name);
  return name;
}

/// The first place from `at` on that is no UTF-8, or the end.
size_t end_of_utf8(std::string_view bytes, size_t at) {
  while (at < bytes.size()) {
    if (static_cast<signed char>(bytes[at]) >= 0) { // ASCII: most of most pages
      ++at;
      continue;
    }
    const size_t before = at;
    if (next_code_point(bytes, at) == replacement && at == before + 1) return before;
  }
  return at;
}

bool is_utf8(std::string_view bytes) { return end_of_utf8(bytes, 0) == bytes.size(); }

decoded_text from_utf8(std::string_view bytes) {
  decoded_text out{{}, "UTF-8", 0};
  out.text.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const auto end = end_of_utf8(bytes, i);
    out.text.append(bytes, i, end - i);
    i = end;
    if (i == bytes.size()) break;
    append_utf8(out.text, replacement);
    ++out.replaced;
    ++i;
  }
  return out;
}

/// False when iconv does not know `charset`.
bool convert(std::string_view bytes, const std::string& charset, decoded_text& out) {
  const iconv_t conversion = ::iconv_open("UTF-8", charset.c_str());
  if (conversion == reinterpret_cast<iconv_t>(-1)) return false;
  const size_t unit = charset.starts_with("UTF-16") ? 2 : charset.starts_with("UTF-32") ? 4 : 1;
  out = {{}, charset, 0};
  out.text.reserve(bytes.size() + bytes.size() / 8);
  char* from = const_cast<char*>(bytes.data()); // iconv's signature; it does not write there
  size_t left = bytes.size();
  std::array<char, 16384> buffer;
  while (left > 0) {
    char* to = buffer.data();
    size_t room = buffer.size();
    const size_t result = ::iconv(conversion, &from, &left, &to, &room);
    const int why = errno;
    out.text.append(buffer.data(), buffer.size() - room);
    if (result != static_cast<size_t>(-1) || why == E2BIG) continue;
    append_utf8(out.text, replacement);
    const size_t skip = std::min(left, unit);
    out.replaced += skip;
    from += skip;
    left -= skip;
  }
  char* to = buffer.data();
  size_t room = buffer.size();
  ::iconv(conversion, nullptr, nullptr, &to, &room); // what a stateful charset still holds back
  out.text.append(buffer.data(), buffer.size() - room);
  ::iconv_close(conversion);
  return true;
}

struct mark {
  std::string charset;
  size_t length = 0;
};

mark byte_order_mark(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("\xef\xbb\xbf"sv)) return {"UTF-8", 3};
  if (bytes.starts_with("\xff\xfe\0\0"sv)) return {"UTF-32LE", 4};
  if (bytes.starts_with("\0\0\xfe\xff"sv)) return {"UTF-32BE", 4};
  if (bytes.starts_with("\xff\xfe"sv)) return {"UTF-16LE", 2};
  if (bytes.starts_with("\xfe\xff"sv)) return {"UTF-16BE", 2};
  return {};
}

/// English in UTF-16 without a mark: every other byte is zero.
std::string zeros_of_utf16(std::string_view bytes) {
  const auto head = bytes.substr(0, 512);
  if (head.size() < 8) return {};
  size_t even = 0, odd = 0;
  for (size_t i = 0; i < head.size(); ++i)
    if (head[i] == '\0') ++(i % 2 == 0 ? even : odd);
  const size_t half = head.size() / 2;
  if (odd * 10 >= half * 7 && even * 10 < half) return "UTF-16LE";
  if (even * 10 >= half * 7 && odd * 10 < half) return "UTF-16BE";
  return {};
}

/// What a <meta charset>, <meta http-equiv> or XML declaration near the start says; empty when there is none.
std::string charset_inside(std::string_view bytes) {
  const auto head = ascii_lower(bytes.substr(0, look_inside_bytes));
  auto value_after = [](std::string_view text, std::string_view key) -> std::string_view {
    auto at = text.find(key);
    if (at == std::string_view::npos) return {};
    at = text.find_first_not_of(" \t\r\n", at + key.size());
    if (at == std::string_view::npos || text[at] != '=') return {};
    at = text.find_first_not_of(" \t\r\n\"'", at + 1);
    if (at == std::string_view::npos) return {};
    return text.substr(at, text.find_first_of(" \t\r\n\"';/>?", at) - at);
  };
  std::string found;
  if (head.starts_with("<?xml")) found = value_after(std::string_view(head).substr(0, head.find("?>")), "encoding");
  for (size_t at = head.find("<meta"); at != std::string::npos && found.empty(); at = head.find("<meta", at + 5))
    found = value_after(std::string_view(head).substr(at, head.find('>', at) - at), "charset");
  // Whoever could read this line as ASCII did not write UTF-16.
  return found.starts_with("utf-16") || found.starts_with("utf-32") ? "utf-8" : found;
}

std::string guess(std::string_view bytes) {
  size_t high = 0;
  for (const char c : bytes) high += static_cast<unsigned char>(c) >= 0x80;
  const auto detector = ::uchardet_new();
  std::string found;
  if (::uchardet_handle_data(detector, bytes.data(), std::min(bytes.size(), guess_bytes)) == 0) {
    ::uchardet_data_end(detector);
    found = ::uchardet_get_charset(detector);
  }
  ::uchardet_delete(detector);
  const auto lower = ascii_lower(found);
  if (lower.starts_with("utf-16") || lower.starts_with("utf-32") || lower.starts_with("iso-2022")) return found;
  // A few accents in English text are noise to a statistical detector, which then names any charset of the world.
  const bool rare = static_cast<double>(high) < rare_share * static_cast<double>(bytes.size());
  static constexpr std::string_view east_asian[] = {"shift_jis", "euc-jp", "gb18030",    "big5", "euc-kr",
                                                    "uhc",       "euc-tw", "hz-gb-2312", "johab"};
  if (std::find(std::begin(east_asian), std::end(east_asian), lower) != std::end(east_asian)) return found;
  return rare ? std::string() : found;
}

/// Characters that cannot be seen, or that change the order of others: text hidden from readers is meant for machines.
bool invisible(char32_t c) {
  struct range { char32_t first, last; };
  static constexpr range ranges[] = {{0x0, 0x1f},         {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},     {0x61c, 0x61c},
                                     {0x115f, 0x1160},    {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},   {0x202a, 0x202e},
                                     {0x2060, 0x206f},    {0x3164, 0x3164},   {0xe000, 0xf8ff},   {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},
                                     {0xfeff, 0xfeff},    {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},   {0xe0000, 0xe0fff},
                                     {0xf0000, 0x10ffff}};
  for (const auto& r : ranges)
    if (c >= r.first && c <= r.last) return true;
  return false;
}

bool is_space(char32_t c) {
  return c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x202f || c == 0x205f || c == 0x3000;
}

} // namespace

char32_t next_code_point(std::string_view utf8, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(utf8[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) {
    ++at;
    return first;
  }
  const size_t length = first >= 0xf5 ? 0 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  bool good = length != 0 && at + length <= utf8.size();
  char32_t c = good ? static_cast<char32_t>(first & (0xffu >> (length + 1))) : 0;
  for (size_t k = 1; good && k < length; ++k) {
    good = (byte(at + k) & 0xc0) == 0x80;
    c = (c << 6) | (byte(at + k) & 0x3fu);
  }
  if (good && length == 3) good = c >= 0x800 && (c < 0xd800 || c > 0xdfff);
  if (good && length == 4) good = c >= 0x10000 && c <= 0x10ffff;
  at += good ? length : 1;
  return good ? c : replacement;
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

decoded_text to_utf8(std::string_view bytes, std::string_view declared, bool look_inside) {
  const auto bom = byte_order_mark(bytes);
  decoded_text out;
  if (bom.length > 0) {
    const auto rest = bytes.substr(bom.length);
    if (bom.charset == "UTF-8") return from_utf8(rest);
    if (convert(rest, bom.charset, out)) return out;
  }
  const auto zeros = zeros_of_utf16(bytes);
  auto charset = iconv_name(declared);
  if (charset.empty() && look_inside && zeros.empty()) charset = iconv_name(charset_inside(bytes));
  // Servers say Latin-1 by default; text that happens to be valid UTF-8 with accents in it is UTF-8.
  if (charset == "CP1252" && is_utf8(bytes)) charset = "UTF-8";
  if (charset == "UTF-8" && zeros.empty()) return from_utf8(bytes);
  if (!charset.empty() && charset != "UTF-8" && convert(bytes, charset, out)) return out;
  if (!zeros.empty() && convert(bytes, zeros, out)) return out;
  if (is_utf8(bytes)) return from_utf8(bytes);
  charset = iconv_name(guess(bytes));
  if (!charset.empty() && charset != "UTF-8" && convert(bytes, charset, out)) return out;
  if (charset != "UTF-8" && convert(bytes, "CP1252", out)) return out;
  return from_utf8(bytes);
}

std::string clean_text(std::string_view utf8) {
  std::string out;
  out.reserve(utf8.size());
  for (size_t i = 0; i < utf8.size();) {
    const size_t before = i;
    while (i < utf8.size() && (utf8[i] == '\n' || utf8[i] == '\t' || (utf8[i] >= 0x20 && utf8[i] < 0x7f))) ++i;
    if (i > before) { // most text is nothing else: a run at a time
      out.append(utf8, before, i - before);
      continue;
    }
    const char32_t c = next_code_point(utf8, i);
    if (c == '\r') out += i < utf8.size() && utf8[i] == '\n' ? "" : "\n";
    else if (c == 0x85 || c == 0x2028 || c == 0x2029) out += '\n';
    else if (c == '\f' || c == '\v' || is_space(c)) out += ' ';
    else if (invisible(c)) continue;
    else if (c == replacement) append_utf8(out, replacement);
    else out.append(utf8.substr(before, i - before));
  }
  return out;
}

std::string strip_header_link(std::string_view text) {
  using namespace std::string_view_literals;
  auto out = trim(text);
  for (bool again = true; again;) {
    again = false;
    for (const auto sign : {"\xc2\xb6"sv /* pilcrow */, "\xf0\x9f\x94\x97"sv /* chain */, " #"sv}) {
      if (!out.ends_with(sign)) continue;
      out = trim(std::string_view(out).substr(0, out.size() - sign.size()));
      again = true;
    }
  }
  return out;
}

std::string one_line(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (space(text[i])) {
      ++i;
      continue;
    }
    const size_t start = i;
    while (i < text.size() && !space(text[i])) ++i;
    if (!out.empty()) out += ' ';
    out.append(text, start, i - start);
  }
  return out;
}

std::string tidy(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t empty = 0;
  for (size_t start = 0; start <= text.size();) {
    const auto end = std::min(text.find('\n', start), text.size());
    const auto line = text.substr(start, end - start);
    start = end + 1;
    // Code inside a definition keeps its four spaces: sentences are not looked for there.
    auto clean = line.starts_with("    ") ? trim(line).insert(0, trim(line).empty() ? "" : "    ") : one_line(line);
    if (clean.empty()) {
      ++empty;
      continue;
    }
    if (!out.empty()) out += empty > 0 ? "\n\n" : "\n";
    empty = 0;
    out += clean;
  }
  return out;
}

std::string tidy_code(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t empty = 0;
  for (size_t start = 0; start <= text.size();) {
    const auto end = std::min(text.find('\n', start), text.size());
    auto line = text.substr(start, end - start);
    start = end + 1;
    const auto last = line.find_last_not_of(" \t");
    line = last == std::string_view::npos ? std::string_view() : line.substr(0, last + 1);
    if (line.empty()) {
      ++empty;
      continue;
    }
    if (!out.empty()) out.append(std::min<size_t>(empty, 1) + 1, '\n');
    empty = 0;
    out += line;
  }
  return out;
}

std::string_view utf8_prefix(std::string_view utf8, size_t bytes) {
  if (utf8.size() <= bytes) return utf8;
  while (bytes > 0 && (static_cast<unsigned char>(utf8[bytes]) & 0xc0) == 0x80) --bytes;
  return utf8.substr(0, bytes);
}

} // namespace pragma::crawler
