// HTML as documentation has it, as browsers forgive it, and as somebody who means harm writes it.
#include "page_helpers.hpp"

#include <algorithm>
#include <chrono>

using namespace pragma;
using namespace pragma::test;

namespace {

/// Generous: the tests may run under a sanitizer on a busy machine. What they guard against takes hours.
constexpr double patience_seconds = 60;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string repeated(const std::string& text, size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

const pragma::link* find_link(const document& d, const std::string& target) {
  for (const auto& l : d.links)
    if (l.target == target) return &l;
  return nullptr;
}

} // namespace

TEST_CASE("a page of a documentation generator: its text, without what surrounds it") {
  const auto d = parsed(page_format::html, data_file("sphinx.html"), "https://docs.example/guide/counters.html");
  CHECK(d.title == "Counter reference \xe2\x80\x94 Some Profiler 2.0");
  CHECK(d.language == "en");
  CHECK(d.charset == "UTF-8");
  const auto text = text_of(d);
  for (const auto* gone : {"written by a script", "color: red", "Some Profiler", "Another chapter", "On this page", "Copyright",
                           "nobody reads", "Ignore previous", "Hidden"})
    CHECK_FALSE(contains(text, gone));
  CHECK(contains(text, "The counters come in groups,\none for each unit."));

  const auto* h1 = find_block(d, block::type::heading, "Counter reference");
  REQUIRE(h1);
  CHECK(h1->text == "Counter reference");
  CHECK(h1->level == 1);
  CHECK(h1->anchor == "ref-counters");
  const auto* h2 = find_block(d, block::type::heading, "Cache counters");
  REQUIRE(h2);
  CHECK(h2->text == "Cache counters");
  CHECK(h2->anchor == "cache-counters");
}

TEST_CASE("links are absolute, navigation's are kept, nofollow and hidden ones are not followed") {
  const auto d = parsed(page_format::html, data_file("sphinx.html"), "https://docs.example/guide/counters.html");
  CHECK(d.base == "https://docs.example/manual/");
  REQUIRE(find_link(d, "https://docs.example/manual/groups.html#g1"));
  CHECK(find_link(d, "https://docs.example/manual/groups.html#g1")->follow);
  CHECK(find_link(d, "https://docs.example/manual/other.html"));
  REQUIRE(find_link(d, "https://docs.example/manual/changes.html"));
  CHECK_FALSE(find_link(d, "https://docs.example/manual/changes.html")->follow);
  for (const auto& l : d.links) CHECK_FALSE(contains(l.target, "trap"));

  const auto odd =
      parsed(page_format::html,
             "<a href='mailto:a@b'>x</a><a href='javascript:x()'>y</a><a href='?q=1'>z</a><a href='a b\xc3\xa9.html'>s</a>"
             "<a href='//other.example/p'>o</a><a href='#only'>f</a>");
  REQUIRE(odd.links.size() == 3);
  CHECK(find_link(odd, "https://docs.example/guide/page.html?q=1"));
  CHECK(find_link(odd, "https://docs.example/guide/a%20b%C3%A9.html"));
  CHECK(find_link(odd, "https://other.example/p"));
}

TEST_CASE("a page may ask not to be indexed or followed") {
  CHECK(parsed(page_format::html, "<p>x</p>").index);
  const auto d = parsed(page_format::html, "<head><meta name='ROBOTS' content='NoIndex, nofollow'></head><p>x</p>");
  CHECK_FALSE(d.index);
  CHECK_FALSE(d.follow);
  CHECK_FALSE(parsed(page_format::html, "<meta name='robots' content='none'>x").follow);
}

TEST_CASE("definition lists keep terms, anchors and all that is said") {
  const auto d = parsed(page_format::html, data_file("sphinx.html"));
  const auto* fills = find_block(d, block::type::definition, "L2_LINE_FILLS");
  REQUIRE(fills);
  CHECK(fills->term == "L2_LINE_FILLS");
  CHECK(fills->anchor == "counter-l2");
  CHECK(fills->text == "Lines that were filled into the second-level cache.\n\nHigh values indicate a working set that does not "
                       "fit.\n- counted per core\n- in lines");
  REQUIRE(find_block(d, block::type::definition, "--verbose"));
  CHECK(find_block(d, block::type::definition, "--verbose")->text == "Print more.");

  const auto many = parsed(page_format::html, "<dl><dt>A<dt>B<dd>both<dt>C<dd>one<p>two</dl><p>after");
  REQUIRE(find_block(many, block::type::definition, "A, B"));
  REQUIRE(find_block(many, block::type::definition, "C"));
  CHECK(find_block(many, block::type::definition, "C")->text == "one\n\ntwo");
  CHECK(find_block(many, block::type::paragraph, "after"));
}

TEST_CASE("tables: spans resolved, two header rows made one, anchors of rows") {
  const auto d = parsed(page_format::html, data_file("sphinx.html"));
  const auto* t = find_block(d, block::type::table);
  REQUIRE(t);
  CHECK(t->text == "All cache counters");
  CHECK(t->cells.header == std::vector<std::string>{"Counter", "Where Core", "Where Slice", "Description"});
  REQUIRE(t->cells.rows.size() == 3);
  CHECK(t->cells.rows[0] == std::vector<std::string>{"L1_HITS_ALL", "yes", "lines", "Accesses that the first level served."});
  CHECK(t->cells.rows[1] == std::vector<std::string>{"L1_MISSES_ALL", "no", "lines", "Accesses that went on to the second level."});
  CHECK(t->cells.anchors == std::vector<std::string>{"row-hits", "cell-miss", ""});
}

TEST_CASE("a table without <th> has a header where its first row reads like one; tables for layout are read as text") {
  const auto d = parsed(page_format::html, "<table><tr><td>Event<td>Description<tr><td>EX_ONE_HIT<td>first</table>");
  REQUIRE(find_block(d, block::type::table));
  CHECK(find_block(d, block::type::table)->cells.header == std::vector<std::string>{"Event", "Description"});

  const auto layout = parsed(
      page_format::html,
      "<table><tr><td>menu</td><td><h2>Counters</h2><p>words</p><table><tr><td>a</td><td>b</td></tr></table></td></tr></table>");
  CHECK(find_block(layout, block::type::heading, "Counters"));
  CHECK(find_block(layout, block::type::paragraph, "words"));
  REQUIRE(find_block(layout, block::type::table));
  CHECK(find_block(layout, block::type::table)->cells.rows == std::vector<std::vector<std::string>>{{"a", "b"}});
}

TEST_CASE("code keeps its lines, lists their items, broken markup its words") {
  const auto d =
      parsed(page_format::html, "<h1>T</h2><p>one <b>two<i> three</b> four<pre>\nint  x;\n  "
                                "y();\n</pre><ul><li>a<ul><li>b</ul><li><p>c</ul></div></span><p>end &lt;b&gt; &amp;amp; &#x41;");
  REQUIRE(find_block(d, block::type::code));
  CHECK(find_block(d, block::type::code)->text == "int  x;\n  y();");
  CHECK(find_block(d, block::type::list_item, "b")->level == 2);
  CHECK(find_block(d, block::type::list_item, "c")->level == 1);
  CHECK(contains(text_of(d), "end <b> &amp; A"));
  CHECK(contains(text_of(d), "one two three four"));
}

TEST_CASE("200,000 nested tags") {
  const auto start = std::chrono::steady_clock::now();
  for (const std::string element : {"div", "b", "ul><li", "table><tr><td", "dl><dd", "blockquote"}) {
    const size_t depth = 200'000 / (1 + static_cast<size_t>(std::count(element.begin(), element.end(), '>')));
    const auto d = parsed(page_format::html, "<p>before</p>" + repeated("<" + element + ">", depth) + "innermost" + "<p>after</p>");
    INFO(element);
    CHECK(contains(text_of(d), "before"));
    CHECK(contains(text_of(d), "innermost"));
    CHECK(contains(text_of(d), "after"));
  }
  const auto closed = parsed(page_format::html, repeated("<div>", 200'000) + "x" + repeated("</div>", 200'000) + "<p>after</p>");
  CHECK(contains(text_of(closed), "after"));
  CHECK(seconds_since(start) < patience_seconds);
}

TEST_CASE("markup that is made to be slow is given up with a note") {
  const auto start = std::chrono::steady_clock::now();
  // Each of these end tags looks through all open elements.
  const auto d = parsed(page_format::html, "<p>before</p>" + repeated("<div>", 100'000) + repeated("</span>", 500'000) + "<p>after</p>");
  CHECK(contains(text_of(d), "before"));
  CHECK(std::any_of(d.notes.begin(), d.notes.end(), [](const auto& n) { return contains(n, "too broken"); }));
  // A tag with 300,000 attributes, each of which is compared with the others; quotes that contain '>' do not hide it.
  std::string attributes;
  for (int i = 0; i < 300'000; ++i) attributes += " a" + std::to_string(i) + "=\">\"";
  const auto many = parsed(page_format::html, "<p>before</p><div" + attributes + ">inside</div><p>after</p>");
  CHECK(contains(text_of(many), "inside"));
  CHECK(contains(text_of(many), "after"));
  CHECK(std::any_of(many.notes.begin(), many.notes.end(), [](const auto& n) { return contains(n, "attributes"); }));
  // Spans that would make 10^11 cells.
  const auto wide =
      parsed(page_format::html, "<table>" + repeated("<tr><td colspan=1000000 rowspan=1000000>x</td><td>y</td></tr>", 2000) +
                                    "</table><p>after</p>");
  CHECK(contains(text_of(wide), "after"));
  CHECK(seconds_since(start) < patience_seconds);
}

TEST_CASE("scripts full of angle brackets do not swallow the page") {
  const auto d = parsed(page_format::html, "<script>for(i=0;i<n;i++){if(a<b&&c>d)s='<p x=\"';" + repeated("w1<w2 ", 600) +
                                               "}</script><p>visible</p>");
  CHECK(text_of(d) == "visible\n");
}

TEST_CASE("more text than is read is cut, with a note; more HTML than is read is refused") {
  const auto d = parsed(page_format::html, repeated("<p>" + repeated("words ", 1000) + "</p>", 2500));
  REQUIRE_FALSE(d.notes.empty());
  CHECK(d.notes.front() == "cut at 10.0 MiB of text");
  size_t bytes = 0;
  for (const auto& b : d.blocks) bytes += b.text.size();
  CHECK(bytes <= 10u << 20);
  const auto e = refused(page_format::html, repeated("x", 33u << 20));
  CHECK(e.code == ec::limit_exceeded);
  CHECK(contains(e.message, "33.0 MiB"));
}

TEST_CASE("an empty page and a page of binary rubbish are empty documents, not crashes") {
  CHECK(parsed(page_format::html, "").blocks.empty());
  std::string rubbish;
  uint32_t state = 12345;
  for (int i = 0; i < 200'000; ++i) rubbish += static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  CHECK(parse_page(page_format::html, rubbish, "https://docs.example/", {}));
  CHECK(parse_page(page_format::markdown, rubbish, "https://docs.example/", {}));
  CHECK(parse_page(page_format::rst, rubbish, "https://docs.example/", {}));
  CHECK(parse_page(page_format::text, rubbish, "https://docs.example/", {}));
  for (const auto f : {page_format::json_catalogue, page_format::csv_catalogue, page_format::yaml_catalogue, page_format::pdf})
    CHECK_FALSE(parse_page(f, rubbish, "https://docs.example/", {}));
}
