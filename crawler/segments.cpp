// A document -> segments: what belongs to one heading, in pieces of a size that a summariser can take in; and each row, definition or
// catalogue record that names a metric by itself, with all that its table says of it.
#include "crawler/charset.hpp"
#include "crawler/definitions.hpp"
#include "crawler/metric_names.hpp"
#include "crawler/parsers.hpp"
#include "crawler/sentences.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace pragma {

using namespace crawler;

namespace {

constexpr size_t wanted_bytes = 1500;      ///< of one segment of prose; cut at the paragraph that reaches it
constexpr size_t most_bytes = 2200;        ///< a paragraph longer than this is cut at sentences
constexpr size_t code_bytes = 1500;        ///< of one listing; the rest of it tells nothing new
constexpr size_t least_bytes = 12;         ///< shorter prose ("See also.") is no segment
constexpr size_t max_segments = 50'000;    ///< of one page, catalogues aside
constexpr size_t max_record_text = 12'000;

bool same_words(std::string_view a, std::string_view b) { return ascii_lower(a) == ascii_lower(b); }

class cutter {
public:
  cutter(const document& d, std::string profiler, std::string url, std::string fetched)
      : d_(d), profiler_(std::move(profiler)), url_(std::move(url)), fetched_(std::move(fetched)) {}

  std::vector<segment> cut() {
    for (const auto& b : d_.blocks) {
      if (made_.size() >= max_segments) break;
      switch (b.what) {
        case block::type::heading: heading(b); break;
        case block::type::paragraph:
          led_in_ = leads_into_metrics(b.text);
          prose(b.text, b.anchor, "\n\n");
          break;
        case block::type::list_item: item(b); break;
        case block::type::code: code(b); break;
        case block::type::definition: definition(b); break;
        case block::type::table: rows(b); break;
      }
    }
    flush();
    for (const auto& r : d_.records) record(r);
    return std::move(made_);
  }

private:
  void heading(const block& b) {
    flush();
    led_in_ = false;
    std::erase_if(headings_, [&](const auto& h) { return h.first >= b.level; });
    headings_.emplace_back(b.level, b.text);
  }

  std::vector<std::string> path() const {
    std::vector<std::string> all;
    if (!d_.title.empty()) all.push_back(d_.title);
    for (const auto& [level, text] : headings_) {
      // "Cachegrind - Valgrind manual" as the title and "Cachegrind" as the first heading say one thing.
      if (all.size() == 1 && !d_.title.empty() &&
          (same_words(text, all[0]) || ascii_lower(all[0]).starts_with(ascii_lower(text) + " ")))
        continue;
      all.push_back(text);
    }
    return all;
  }

  /// `keep`: what is announced by the text before it (list items, code) is not separated from that so soon.
  void prose(const std::string& text, const std::string& anchor, std::string_view separator) {
    const bool keep = separator == "\n";
    if (!text_.empty() && text_.size() + text.size() > (keep ? most_bytes : wanted_bytes)) flush();
    if (text.size() > most_bytes) return long_text(text, anchor);
    if (text_.empty()) anchor_ = anchor;
    else text_ += separator;
    text_ += text;
    if (text_.size() >= (keep ? most_bytes : wanted_bytes)) flush();
  }

  void long_text(std::string_view text, const std::string& anchor) {
    size_t start = 0, end = 0;
    auto take = [&](size_t to) {
      text_ = trim(text.substr(start, to - start));
      anchor_ = anchor;
      flush();
      start = to;
    };
    for (const auto sentence : sentences_of(text)) {
      const auto sentence_end = static_cast<size_t>(sentence.data() - text.data()) + sentence.size();
      if (end > start && sentence_end - start > wanted_bytes) take(end);
      end = sentence_end;
      // A "sentence" without an end: cut at a space, or anywhere.
      while (end - start > most_bytes) {
        const auto piece = utf8_prefix(text.substr(start, end - start), wanted_bytes);
        const auto space = piece.find_last_of(" \n");
        take(start + (space == std::string_view::npos || space < wanted_bytes / 2 ? std::max<size_t>(piece.size(), 1) : space + 1));
      }
    }
    if (end > start) take(end);
  }

  void code(const block& b) {
    std::string listing;
    for (const auto& line : split(b.text, '\n')) {
      if (listing.size() + line.size() > code_bytes) {
        if (listing.empty()) listing = "    " + std::string(utf8_prefix(line, code_bytes));
        listing += "\n    ...";
        break;
      }
      listing += (listing.empty() ? "    " : "\n    ") + line;
    }
    if (text_.empty()) anchor_ = b.anchor;
    else text_ += "\n\n";
    text_ += listing; // stays with the paragraph before it
    if (text_.size() >= most_bytes) flush();
  }

  void definition(const block& b) {
    const bool leads_in = leads_into_metrics(b.text);
    if (b.term.starts_with('-')) led_in_ = false; // the next switch of the tool
    const bool done = define(b.term, b.text, b.anchor);
    led_in_ = led_in_ || leads_in;
    if (done) return;
    if (b.term.empty()) return prose(b.text, b.anchor, "\n\n");
    if (b.text.empty()) return prose(b.term, b.anchor, "\n\n");
    ++unread_;
    const bool short_text = b.text.find('\n') == std::string::npos && b.text.size() < wanted_bytes;
    prose(b.term + (short_text ? ": " : "\n\n") + b.text, b.anchor, "\n\n");
  }

  void item(const block& b) {
    // The bullet that begins with a metric's name, "- heap_size: bytes of ...", is a definition as well.
    if (const auto parts = split_definition(b.text); parts && define(parts->term, parts->text, b.anchor)) return;
    prose("- " + b.text, b.anchor, "\n");
  }

  bool define(const std::string& term, const std::string& text, const std::string& anchor) {
    auto what = what_is_defined(term, text, announced());
    const auto sets = [](const auto& h) { return announces_settings(h.second); };
    if (what.kind == "metric" && !announced() && std::any_of(headings_.begin(), headings_.end(), sets)) what.kind = "option";
    if (what.names.empty()) return false;
    flush();
    for (const auto& n : what.names) {
      metric_record r;
      r.name = n;
      r.kind = what.kind;
      r.unit = what.kind == "metric" ? unit_in_brackets(term) : std::string();
      r.description = one_line(utf8_prefix(text, max_record_text));
      if (!what.also.empty()) r.fields.emplace("Also", join(what.also, ", "));
      if (what.kind == "option" && one_line(term) != n) r.fields.emplace("Usage", one_line(term));
      emit("definition", anchor, term + ": " + r.description, &r);
    }
    return true;
  }

  void rows(const block& b) {
    const auto& t = b.cells;
    table_reader reader(t, announced(b.text));
    std::string plain = b.text; // the caption
    if (reader.defines()) flush();
    for (size_t i = 0; i < t.rows.size() && made_.size() < max_segments; ++i) {
      const auto& anchor = i < t.anchors.size() && !t.anchors[i].empty() ? t.anchors[i] : b.anchor;
      if (reader.defines()) {
        const auto made = reader.row(i);
        for (const auto& r : made.records) emit("row", anchor, made.text, &r);
        if (!made.records.empty() || made.continues) continue;
      }
      // A row that names no metric is text, under its table's header.
      std::vector<std::string> cells;
      for (const auto& cell : t.rows[i])
        if (!cell.empty()) cells.push_back(one_line(cell));
      if (cells.empty()) continue;
      ++unread_;
      if (plain.empty() && !t.header.empty() && !reader.defines()) plain = join(t.header, " | ");
      if (plain.size() > wanted_bytes) {
        prose(plain, b.anchor, "\n\n");
        plain.clear();
      }
      plain += (plain.empty() ? "" : "\n") + join(cells, " | ");
    }
    if (!plain.empty() && plain != b.text) prose(plain, b.anchor, "\n\n");
  }

  /// A heading above, the paragraph before, or the table's caption says that metrics stand here.
  bool announced(std::string_view caption = {}) const {
    return led_in_ || (!headings_.empty() && announces_metrics(headings_.back().second)) || announces_metrics(caption);
  }

  void record(const metric_record& r) {
    std::string text = r.name + (r.description.empty() ? "" : ": " + r.description);
    if (!r.unit.empty()) text += "\nUnit: " + r.unit;
    for (const auto& [header, value] : r.fields) // a register's zero tells nobody anything
      if (text.size() + value.size() < max_record_text && value != "0" && value != "0x00" && value != "null") text += "\n" + header + ": " + value;
    emit("catalogue", {}, text, &r);
  }

  void flush() {
    auto text = std::exchange(text_, {});
    const auto unread = std::exchange(unread_, 0);
    if (text.size() >= least_bytes) emit("prose", anchor_, text, nullptr, unread);
  }

  void emit(const char* kind, const std::string& anchor, std::string_view text, const metric_record* r, int64_t unread = 0) {
    segment s;
    s.profiler = profiler_;
    s.url = url_;
    s.anchor = anchor;
    s.headings = path();
    s.kind = kind;
    s.text = utf8_prefix(text, max_record_text + 4096);
    if (r) {
      s.has_record = true;
      s.record = *r;
    }
    s.fetched = fetched_;
    s.unread = unread;
    s.id = segment_id(s);
    if (seen_.insert(s.id).second) made_.push_back(std::move(s)); // a page may say the same twice
  }

  const document& d_;
  const std::string profiler_, url_, fetched_;
  std::vector<std::pair<int, std::string>> headings_;
  std::string text_, anchor_;
  bool led_in_ = false;              ///< what came before says that a list of metrics comes next
  int64_t unread_ = 0;               ///< of what stands in text_
  std::vector<segment> made_;
  std::set<std::string> seen_;
};

} // namespace

std::string segment_id(const segment& s) {
  // Each part with its length, so that no two different segments are written alike.
  std::string all;
  auto add = [&](std::string_view part) { all += std::to_string(part.size()) + ":" + std::string(part); };
  add(s.profiler);
  add(std::to_string(s.headings.size()));
  for (const auto& h : s.headings) add(h);
  add(s.kind);
  add(s.text);
  add(s.has_record ? "record" : "");
  add(s.record.name);
  add(s.record.unit);
  add(s.record.description);
  if (s.record.kind != "metric") add(s.record.kind);
  for (const auto& [header, value] : s.record.fields) {
    add(header);
    add(value);
  }
  return sha256_hex(all);
}

std::vector<segment> segments_of(const document& d, const std::string& profiler, const std::string& url, const std::string& fetched) {
  return cutter(d, profiler, url, fetched).cut();
}

expected<std::vector<segment>> catalogue_segments(page_format format, std::string_view text, const std::string& profiler,
                                                  const std::string& origin, const std::string& fetched) {
  auto d = parse_page(format, text, origin, {});
  if (!d) return fail(d.error());
  return segments_of(*d, profiler, origin, fetched);
}

} // namespace pragma
