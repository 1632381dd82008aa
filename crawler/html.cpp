// HTML -> document, by libxml2's forgiving parser as a stream of events: there is no tree, so nothing is walked or freed recursively and
// memory does not grow with nesting. What a reader does not see (scripts, hidden elements) is left out, and what is not the
// page's own text (navigation, headers, footers) as well; of the latter the links are kept.
#include "crawler/charset.hpp"
#include "crawler/document_builder.hpp"
#include "crawler/html_table.hpp"
#include "crawler/html_tags.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstdarg>
#include <map>
#include <utility>

#include <libxml/HTMLparser.h>
#include <libxml/parser.h>

namespace pragma::crawler {

namespace {

// An end tag without a start costs libxml2 a walk over all open elements. This many steps are some seconds; real pages stay below 10^6.
constexpr uint64_t max_repair_steps = 500'000'000;
constexpr size_t max_text_run = 4u << 20; ///< bytes of one paragraph
constexpr size_t max_terms = 16;         ///< <dt> for one <dd>
constexpr size_t max_open_lists = 64;    ///< deeper definition lists and tables are read as plain text

enum class dropped : uint8_t { no, text, all };

class html_reader {
public:
  html_reader(std::string_view url, const html_options& options) : options_(options), builder_(url) {}

  void read(const std::string& text) {
    static const bool ready = (::xmlInitParser(), true); // once, whichever thread comes first
    parser_ = ready ? ::htmlNewParserCtxt() : nullptr;
    if (!parser_) return;
    htmlSAXHandler events{};
    events.startElement = [](void* self, const xmlChar* name, const xmlChar** attributes) { of(self).start(view(name), attributes); };
    events.endElement = [](void* self, const xmlChar* name) { of(self).end(view(name)); };
    events.characters = [](void* self, const xmlChar* data, int size) { of(self).characters({chars(data), static_cast<size_t>(size)}); };
    events.ignorableWhitespace = events.characters;
    events.cdataBlock = events.characters;
    *parser_->sax = events;
    parser_->userData = this;
    // No tree, no network, no second opinion about the charset: the text is UTF-8 by now.
    ::htmlCtxtUseOptions(parser_, HTML_PARSE_RECOVER | HTML_PARSE_NOWARNING | HTML_PARSE_NONET | HTML_PARSE_IGNORE_ENC);
    parser_->sax->error = &html_reader::repaired;
    const auto tree = ::htmlCtxtReadMemory(parser_, text.data(), static_cast<int>(text.size()), nullptr, "UTF-8",
                                           HTML_PARSE_RECOVER | HTML_PARSE_NOWARNING | HTML_PARSE_NONET | HTML_PARSE_IGNORE_ENC);
    if (tree) ::xmlFreeDoc(tree);
    ::htmlFreeParserCtxt(parser_);
    parser_ = nullptr;
    while (!frames_.empty()) leave();
    flush();
  }
  document_builder& builder() { return builder_; }
  document finish() {
    builder_.result().title = title_;
    return builder_.finish();
  }

private:
  struct frame {
    tag what = tag::inline_;
    bool acted = false;              // what `start` did has to be undone
    dropped drop = dropped::no;
    int level = 0;
    std::string name;
  };
  struct definition_list {
    std::vector<std::string> terms;
    std::string anchor;
    size_t block = document_builder::npos;
    bool in_term = false, in_text = false, had_text = false;
  };
  struct attributes_view {
    const xmlChar** list;
    const char* find(std::string_view name) const {
      for (const xmlChar** a = list; a && *a; a += 2)
        if (name == chars(a[0])) return a[1] ? chars(a[1]) : "";
      return nullptr;
    }
    std::string_view value(std::string_view name) const {
      const char* v = find(name);
      return v ? v : "";
    }
  };

  static html_reader& of(void* self) { return *static_cast<html_reader*>(self); }
  static const char* chars(const xmlChar* text) { return reinterpret_cast<const char*>(text); }
  static std::string_view view(const xmlChar* text) { return chars(text); }

  static void repaired(void* self, const char*, ...) {
    auto& me = of(self);
    me.repair_steps_ += me.frames_.size();
    if (me.repair_steps_ > max_repair_steps) me.stop("the markup is too broken to be repaired: the rest of the page is left out");
  }
  void stop(const char* why) {
    if (stopped_) return;
    stopped_ = true;
    builder_.note(why);
    ::xmlStopParser(parser_);
  }

  dropped drop_of(tag what, const attributes_view& a) const {
    if (what == tag::invisible) return dropped::all;
    if (what == tag::html || what == tag::body || what == tag::meta) return dropped::no; // scripts hide the body until all is loaded
    if (a.list) {
      auto style = ascii_lower(a.value("style"));
      std::erase(style, ' ');
      if (a.find("hidden") || a.value("aria-hidden") == "true" || style.find("display:none") != std::string::npos ||
          style.find("visibility:hidden") != std::string::npos)
        return dropped::all;
    }
    if (what == tag::chrome || (what == tag::header && articles_ == 0)) return dropped::text; // an article's header holds its title
    if (!a.list) return dropped::no;
    const auto role = a.value("role");
    if (role == "navigation" || role == "banner" || role == "contentinfo" || role == "search") return dropped::text;
    for (const auto& word : split(a.value("class"), ' '))
      if (is_chrome_class(word, what)) return dropped::text;
    return dropped::no;
  }

  void start(std::string_view name, const xmlChar** list) {
    if (stopped_) return;
    const attributes_view a{list};
    const auto what = tag_of(name);
    const auto inherited = frames_.empty() ? dropped::no : frames_.back().drop;
    frames_.push_back({what, false, inherited == dropped::all ? inherited : std::max(inherited, drop_of(what, a)), 0, std::string(name)});
    auto& f = frames_.back();
    if (f.drop == dropped::all) return;
    take_meta(what, a);
    if (f.drop == dropped::text) return;
    if (is_block(what)) flush();
    take_anchor(what, a);
    enter(f, a);
    if (builder_.full()) stop("the rest of the page is left out");
  }

  /// What is of interest in dropped navigation, too: links, and the page's words about itself.
  void take_meta(tag what, const attributes_view& a) {
    auto& d = builder_.result();
    if (what == tag::a || what == tag::frame) {
      const auto target = a.value(what == tag::a ? "href" : "src");
      bool follow = true;
      for (const auto& word : split(ascii_lower(a.value("rel")), ' ')) follow &= word != "nofollow";
      if (!target.empty() && target.front() != '#') builder_.add_link(target, follow);
    } else if (what == tag::base && !has_base_ && !a.value("href").empty()) {
      has_base_ = true;
      if (auto base = absolute_url(a.value("href"), d.base); !base.empty()) d.base = std::move(base);
    } else if (what == tag::html) {
      d.language = utf8_prefix(one_line(a.value("lang")), 35);
    } else if (what == tag::meta) {
      const auto kind = ascii_lower(a.value("name"));
      if (kind != "robots" && kind != "pragma") return;
      for (const auto& word : split(ascii_lower(a.value("content")), ',')) {
        const auto rule = trim(word);
        if (rule == "noindex" || rule == "none") d.index = false;
        if (rule == "nofollow" || rule == "none") d.follow = false;
      }
    }
  }

  void take_anchor(tag what, const attributes_view& a) {
    auto id = a.value("id");
    if (id.empty() && what == tag::a) id = a.value("name");
    if (id.empty() || id.size() > limits::anchor_bytes || what == tag::html || what == tag::body) return;
    if (what == tag::table || what == tag::row) return; // begin_row() and enter() take those
    if (text_.empty()) pending_anchor_ = id;
    else if (text_anchor_.empty()) text_anchor_ = id;
  }

  bool cell_open() const { return !tables_.empty() && !tables_.back().layout && tables_.back().cell_open(); }

  void enter(frame& f, const attributes_view& a) {
    switch (f.what) {
      case tag::title: f.acted = !in_title_ && title_.empty(), in_title_ |= f.acted; break;
      case tag::article: f.acted = true, ++articles_; break;
      case tag::br:
        if (!text_.empty()) text_ += '\n';
        break;
      case tag::heading:
        if (cell_open()) open_layout();
        f.acted = true;
        f.level = std::exchange(heading_, f.name[1] - '0');
        break;
      case tag::pre: f.acted = true, ++pre_; break;
      case tag::list: f.acted = true, ++lists_; break;
      case tag::li: f.acted = true, ++items_, item_starts_ = true; break;
      case tag::dl:
        if (cell_open() || lists_of_definitions_.size() >= max_open_lists) break;
        f.acted = true;
        lists_of_definitions_.emplace_back();
        break;
      case tag::dt:
        if (cell_open() || lists_of_definitions_.empty()) break;
        f.acted = true;
        begin_term(lists_of_definitions_.back());
        break;
      case tag::dd:
        if (cell_open() || lists_of_definitions_.empty()) break;
        f.acted = true;
        lists_of_definitions_.back().in_term = false;
        lists_of_definitions_.back().in_text = lists_of_definitions_.back().had_text = true;
        break;
      case tag::block: // mandoc writes "term, indented text" this way where the page's author did not say that it is a list
        if (a.value("class") == "Bd-indent" && !cell_open() && lists_of_definitions_.size() < max_open_lists) enter_indented(f);
        break;
      case tag::table:
        if (cell_open()) open_layout();
        if (tables_.size() >= max_open_lists) break;
        f.acted = true;
        tables_.emplace_back();
        tables_.back().anchor = a.value("id").empty() ? pending_anchor_ : std::string(a.value("id"));
        tables_.back().layout = a.value("role") == "presentation";
        pending_anchor_.clear();
        break;
      case tag::table_head:
      case tag::table_body:
        if (!tables_.empty()) tables_.back().begin_section(f.what == tag::table_head);
        break;
      case tag::row:
        if (!tables_.empty() && !tables_.back().layout) tables_.back().begin_row(a.value("id").substr(0, limits::anchor_bytes));
        break;
      case tag::cell:
        if (tables_.empty() || tables_.back().layout) break;
        f.acted = true;
        tables_.back().begin_cell(f.name == "th", a.value("colspan"), a.value("rowspan"));
        if (tables_.back().full()) stop("a table has too many cells: the rest of the page is left out");
        break;
      case tag::caption: f.acted = true, ++captions_; break;
      default: break;
    }
  }

  void enter_indented(frame& f) {
    if (!lists_of_definitions_.empty() && lists_of_definitions_.back().in_text) return;
    const auto index = builder_.last_paragraph_as_term();
    if (index == document_builder::npos) return;
    f.acted = true;
    definition_list list;
    list.block = index;
    list.in_text = list.had_text = true;
    lists_of_definitions_.push_back(std::move(list));
  }

  void begin_term(definition_list& list) {
    if (list.had_text) {
      close_definition(list);
      list = {};
    }
    list.in_term = true;
    list.in_text = false;
  }

  void close_definition(definition_list& list) {
    if (list.block == document_builder::npos && !list.terms.empty())
      list.block = builder_.definition(join(list.terms, ", "), {}, list.anchor);
  }

  /// The table turned out to be layout: what was read of it becomes paragraphs.
  void open_layout() {
    auto& t = tables_.back();
    for (const auto& text : t.take_texts()) builder_.paragraph(text, t.anchor);
    t.layout = true;
  }

  void end(std::string_view name) {
    if (stopped_ || frames_.empty()) return;
    // libxml2 closes innermost first; whatever else it says is not one of ours.
    size_t up = 1;
    while (up <= frames_.size() && up <= 16 && frames_[frames_.size() - up].name != name) ++up;
    if (up > frames_.size() || up > 16) return;
    for (; up > 0; --up) leave();
  }

  void leave() {
    const auto f = frames_.back();
    if (f.drop != dropped::no) {
      frames_.pop_back();
      return;
    }
    if (is_block(f.what)) flush();
    frames_.pop_back();
    switch (f.what) {
      case tag::title:
        if (f.acted) in_title_ = false;
        break;
      case tag::article: --articles_; break;
      case tag::heading: heading_ = f.level; break;
      case tag::pre: --pre_; break;
      case tag::list: --lists_; break;
      case tag::li: --items_; break;
      case tag::dl:
        if (!f.acted || lists_of_definitions_.empty()) break;
        close_definition(lists_of_definitions_.back());
        lists_of_definitions_.pop_back();
        break;
      case tag::dt:
        if (f.acted && !lists_of_definitions_.empty()) lists_of_definitions_.back().in_term = false;
        break;
      case tag::dd:
        if (f.acted && !lists_of_definitions_.empty()) lists_of_definitions_.back().in_text = false;
        break;
      case tag::block:
        if (f.acted && !lists_of_definitions_.empty()) lists_of_definitions_.pop_back();
        break;
      case tag::cell:
        if (f.acted && !tables_.empty()) tables_.back().end_cell();
        break;
      case tag::row:
        if (!tables_.empty() && !tables_.back().layout) tables_.back().end_row();
        break;
      case tag::caption: --captions_; break;
      case tag::table: {
        if (!f.acted || tables_.empty()) break;
        auto t = std::move(tables_.back());
        tables_.pop_back();
        if (t.layout) break;
        auto cells = t.finish();
        builder_.add_table(std::move(cells), t.caption, t.anchor);
        break;
      }
      default: break;
    }
  }

  void characters(std::string_view data) {
    if (stopped_ || (!frames_.empty() && frames_.back().drop != dropped::no)) return;
    if (in_title_) {
      if (title_.size() < 4096) title_ += data;
      return;
    }
    if (text_.size() > max_text_run) flush();
    const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
    for (size_t i = 0; i < data.size();) {
      const size_t start = i;
      if (is_space(data[i])) {
        if (pre_ == 0) {
          space_ = true;
          ++i;
          continue;
        }
        ++i; // as it stands, a character at a time
      } else {
        if (!pending_anchor_.empty() && text_anchor_.empty()) text_anchor_ = std::exchange(pending_anchor_, {});
        while (i < data.size() && !is_space(data[i])) ++i;
      }
      if (space_ && !text_.empty() && text_.back() != '\n') text_ += ' ';
      space_ = false;
      text_.append(data, start, i - start);
    }
  }

  /// The text so far becomes a block, or part of the cell, term or definition that is open.
  void flush() {
    auto text = std::exchange(text_, {});
    auto anchor = std::exchange(text_anchor_, {});
    space_ = false;
    if (trim(text).empty()) {
      if (pending_anchor_.empty()) pending_anchor_ = std::move(anchor);
      return;
    }
    bool item = items_ > 0 && std::exchange(item_starts_, false);
    const bool bullet = pre_ == 0 && text.starts_with("\xe2\x80\xa2"); // mandoc's lists of man pages that were made from AsciiDoc
    if (bullet) text.erase(0, 3), item = true;
    if (heading_ > 0) {
      if (anchor.empty() && options_.slug_anchors) anchor = slug(text);
      builder_.heading(heading_, text, anchor);
    } else if (captions_ > 0 && !tables_.empty()) {
      tables_.back().caption += (tables_.back().caption.empty() ? "" : " ") + text;
    } else if (cell_open()) {
      tables_.back().add_text(item ? "- " + text : text, anchor);
    } else if (!lists_of_definitions_.empty() && lists_of_definitions_.back().in_term) {
      auto& list = lists_of_definitions_.back();
      if (list.anchor.empty()) list.anchor = std::move(anchor);
      if (list.terms.size() < max_terms) list.terms.push_back(strip_header_link(one_line(clean_text(text))));
    } else if (!lists_of_definitions_.empty() && lists_of_definitions_.back().in_text) {
      auto& list = lists_of_definitions_.back();
      if (pre_ > 0) text = indented(text);
      else if (item) text = "- " + text;
      if (list.block == document_builder::npos) list.block = builder_.definition(join(list.terms, ", "), text, list.anchor);
      else builder_.extend(list.block, text);
    } else if (pre_ > 0) {
      builder_.code(text, anchor);
    } else if (items_ > 0 || bullet) {
      builder_.list_item(std::max(lists_, 1), text, anchor);
    } else {
      builder_.paragraph(text, anchor);
    }
  }

  static std::string indented(std::string_view code) {
    std::string out;
    for (const auto& line : split(tidy_code(clean_text(code)), '\n')) out += "    " + line + "\n";
    return out;
  }

  std::string slug(std::string_view heading) {
    auto plain = github_slug(strip_header_link(one_line(clean_text(heading))));
    if (plain.empty()) return plain;
    const int before = slugs_[plain]++;
    return before == 0 ? plain : plain + "-" + std::to_string(before);
  }

  html_options options_;
  document_builder builder_;
  htmlParserCtxtPtr parser_ = nullptr;
  std::vector<frame> frames_;
  std::vector<html_table> tables_;
  std::vector<definition_list> lists_of_definitions_;
  std::map<std::string, int> slugs_;
  std::string text_, text_anchor_, pending_anchor_, title_;
  int heading_ = 0, pre_ = 0, lists_ = 0, items_ = 0, articles_ = 0, captions_ = 0;
  uint64_t repair_steps_ = 0;
  bool space_ = false, in_title_ = false, has_base_ = false, item_starts_ = false, stopped_ = false;
};

} // namespace

expected<document> parse_html(std::string_view utf8, std::string_view url, const html_options& options) {
  if (utf8.size() > limits::source_bytes)
    return fail(ec::limit_exceeded,
                std::string(url) + ": the page has " + format_bytes(static_cast<double>(utf8.size())) +
                    " of HTML, more than the " + format_bytes(static_cast<double>(limits::source_bytes)) + " that are read",
                "lower max_page_bytes of the source, or leave the page out with a deny pattern");
  html_reader reader(url, options);
  size_t removed = 0;
  const auto text = without_monstrous_tags(utf8, removed);
  if (removed > 0)
    reader.builder().note(std::to_string(removed) + " tag(s) with more than " + std::to_string(max_attributes) +
                          " attributes left out");
  reader.read(text);
  return reader.finish();
}

} // namespace pragma::crawler
