// Bytes in all sorts of charsets come out as clean text, and what nobody can see is gone.
#include "crawler/charset.hpp"
#include "page_helpers.hpp"

using namespace pragma;
using namespace pragma::crawler;
using namespace pragma::test;

namespace {

const std::string kyasshu_sjis = "\x83\x4c\x83\x83\x83\x62\x83\x56\x83\x85"; // "cache" in katakana
const std::string kyasshu = "\xe3\x82\xad\xe3\x83\xa3\xe3\x83\x83\xe3\x82\xb7\xe3\x83\xa5";

std::string utf16(std::string_view ascii, bool little) {
  std::string out;
  for (const char c : ascii) {
    if (!little) out += '\0';
    out += c;
    if (little) out += '\0';
  }
  return out;
}

} // namespace

TEST_CASE("Shift-JIS is read as declared, as the page says, and by guessing") {
  CHECK(to_utf8(kyasshu_sjis, "Shift_JIS", false).text == kyasshu);
  const auto page = "<html><head><meta charset=shift_jis></head><body><p>" + kyasshu_sjis + " miss</p></body></html>";
  CHECK(contains(text_of(parsed(page_format::html, page)), kyasshu + " miss"));
  // The server's word goes before the page's.
  const auto wrong_meta = "<meta charset=\"iso-8859-1\"><p>" + kyasshu_sjis + "</p>";
  const auto d = parsed(page_format::html, wrong_meta, "https://docs.example/", "shift_jis");
  CHECK(contains(text_of(d), kyasshu));
  CHECK(d.charset == "CP932");

  std::string long_text;
  for (int i = 0; i < 60; ++i)
    long_text +=
        kyasshu_sjis + "\x82\xcc\x83\x7e\x83\x58\x82\xf0\x90\x94\x82\xa6\x82\xdc\x82\xb7\x81\x42"; // "counts the cache's misses."
  CHECK(contains(to_utf8(long_text, "", false).text, kyasshu));
}

TEST_CASE("Latin-1 without a declaration, and UTF-8 that is declared as Latin-1") {
  const std::string latin = "Gr\xf6\xdf" "e des Caches in Bytes; na\xefve counting of caf\xe9 accesses";
  CHECK(contains(to_utf8(latin, "", false).text, "Gr\xc3\xb6\xc3\x9f" "e"));
  CHECK(to_utf8(latin, "", false).replaced == 0);
  CHECK(contains(to_utf8(latin, "iso-8859-1", false).text, "caf\xc3\xa9"));
  const std::string utf = "Gr\xc3\xb6\xc3\x9f" "e";
  CHECK(to_utf8(utf, "ISO-8859-1", false).text == utf);
  CHECK(to_utf8(utf, "\"utf-8\"", false).charset == "UTF-8");
}

TEST_CASE("UTF-16 with and without a byte order mark, also where the server says something else") {
  const std::string text = "counts the cycles of the core";
  CHECK(to_utf8("\xff\xfe" + utf16(text, true), "utf-8", true).text == text);
  CHECK(to_utf8("\xfe\xff" + utf16(text, false), "", true).text == text);
  CHECK(to_utf8(utf16(text, true), "", true).text == text);
  CHECK(to_utf8(utf16(text, false), "utf-8", true).text == text);
  CHECK(to_utf8("\xef\xbb\xbf" + text, "", true).text == text);
}

TEST_CASE("invalid UTF-8 is replaced, counted and noted; the rest of the page survives") {
  const auto out = to_utf8("a\xff" "b\xc0\xaf" "c\xed\xa0\x80" "d\xe3\x82", "utf-8", false);
  CHECK(out.replaced == 8);
  CHECK(contains(out.text, "\xef\xbf\xbd" "b"));
  CHECK(out.text.substr(0, 1) == "a");
  const auto d = parsed(page_format::html, "<p>cache \xff\xfe misses</p><p>second</p>", "https://docs.example/", "utf-8");
  CHECK(contains(text_of(d), "second"));
  REQUIRE_FALSE(d.notes.empty());
  CHECK(d.notes.back() == "2 bytes that are not valid UTF-8 replaced");
}

TEST_CASE("charsets that hide markup, and names that are no charset, are not followed") {
  CHECK(to_utf8("+ADw-script+AD4-", "utf-7", false).text == "+ADw-script+AD4-");
  CHECK(to_utf8("plain", "no-such-charset", false).text == "plain");
  CHECK(to_utf8("plain", "UTF-8//IGNORE", false).text == "plain");
  CHECK(to_utf8("", "", true).text.empty());
  CHECK(to_utf8(std::string(1, '\xe3'), "shift_jis", false).text == "\xef\xbf\xbd"); // cut in the middle of a character
}

TEST_CASE("what cannot be seen is taken out, and every kind of space is one") {
  CHECK(clean_text("cache\xe2\x80\x8b_mis\xc2\xad" "ses") == "cache_misses");             // zero-width space, soft hyphen
  CHECK(clean_text("a\xe2\x80\xae" "b\xe2\x81\xa6" "c") == "abc");                           // bidirectional controls
  CHECK(clean_text("x\xf3\xa0\x81\x81\xf3\xa0\x81\x82y") == "xy");                         // tag characters
  CHECK(clean_text("Heading\xef\x83\x81") == "Heading");                                   // U+F0C1
  CHECK(clean_text("a\xc2\xa0" "b\xe3\x80\x80" "c") == "a b c");
  CHECK(clean_text("a\r\nb\rc\x01\x1b[0m") == "a\nb\nc[0m");
  CHECK(strip_header_link("Counters \xc2\xb6") == "Counters");
  CHECK(strip_header_link("Counters #") == "Counters");
  CHECK(strip_header_link("C#") == "C#");
  CHECK(one_line("  a \n\t b ") == "a b");
  CHECK(utf8_prefix("a\xc3\xa9", 2) == "a");
}
