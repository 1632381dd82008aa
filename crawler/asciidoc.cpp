// AsciiDoc as manuals are written in it (perf's, Git's, gperftools'): titles in both styles, "term::" definitions, lists, tables between
// lines of "|===", listings. What it does not know it reads as text.
#include "crawler/charset.hpp"
#include "crawler/document_builder.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>

namespace pragma::crawler {

namespace {

/// `code`, *bold*, link:target[text] and the like as their text.
std::string plain(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '`' || (c == '+' && i + 1 < text.size() && text[i + 1] == '+')) continue;
    const bool starts = i == 0 || text[i - 1] == ' ' || text[i - 1] == '(';
    if (starts && (c == '*' || c == '_') && i + 1 < text.size() && text[i + 1] != ' ') {
      const auto end = text.find(c, i + 1);
      const bool closes = end != std::string_view::npos && end + 1 <= text.size() && (end + 1 == text.size() || !std::isalnum(static_cast<unsigned char>(text[end + 1])));
      if (closes) {
        out += text.substr(i + 1, end - i - 1);
        i = end;
        continue;
      }
    }
    if (starts && text.substr(i).starts_with("link:")) {
      const auto open = text.find('[', i), close = open == std::string_view::npos ? open : text.find(']', open);
      if (close != std::string_view::npos && close > open + 1) {
        out += text.substr(open + 1, close - open - 1);
        i = close;
        continue;
      }
    }
    out += c;
  }
  return out;
}

bool is_fence(std::string_view line) {
  return line.size() >= 4 && (line[0] == '-' || line[0] == '.' || line[0] == '+') && line.find_first_not_of(line[0]) == std::string_view::npos;
}

class asciidoc_reader {
public:
  explicit asciidoc_reader(std::string_view url) : builder_(url) {}

  document read(const std::vector<std::string>& lines) {
    for (size_t i = 0; i < lines.size() && !builder_.full(); ++i) {
      const auto line = std::string_view(lines[i]).substr(0, lines[i].find_last_not_of(" \t\r") + 1);
      const auto text = trim(line);
      if (text.empty() || text == "+") {
        joined_ = text == "+";
        close(joined_);
      } else if (const auto level = title_level(line); level > 0) {
        close();
        builder_.heading(static_cast<int>(level), plain(text.substr(level)), github_slug(trim(std::string_view(text).substr(level))));
      } else if (i + 1 < lines.size() && is_underline(text, lines[i + 1])) {
        close();
        const char mark = trim(lines[i + 1])[0];
        builder_.heading(mark == '=' ? 1 : mark == '-' ? 2 : 3, plain(text), github_slug(text));
        ++i;
      } else if (text == "|===") {
        close();
        i = read_table(lines, i + 1);
      } else if (is_fence(text)) {
        close(true);
        std::string code;
        for (++i; i < lines.size() && trim(lines[i]) != text; ++i) code += lines[i] + "\n";
        builder_.code(code);
      } else if (text[0] == ':' || text.starts_with("//") || (text[0] == '[' && text.back() == ']')) {
        continue; // attributes and comments
      } else if (const auto colons = term_end(text); colons != std::string::npos) {
        close();
        if (!term_.empty() && !defined_) term_ += ", " + plain(text.substr(0, colons)); // "-e::" above "--event=::"
        else term_ = plain(text.substr(0, colons));
        defined_ = false;
        text_ = trim(std::string_view(text).substr(std::min(text.find_first_not_of(':', colons), text.size())));
      } else if ((text[0] == '*' || text[0] == '-' || text[0] == '.') && text.size() > 2 && text.find_first_not_of("*-.") < text.size() &&
                 text[text.find_first_not_of("*-.")] == ' ') {
        close();
        term_.clear();
        item_ = true;
        text_ = trim(std::string_view(text).substr(text.find(' ')));
      } else {
        if (term_.empty() || line[0] == ' ' || line[0] == '\t' || !text_.empty() || joined_) {
          text_ += (text_.empty() ? "" : " ") + text;
        } else {
          term_.clear(); // a paragraph at the margin ends the list
          text_ = text;
        }
      }
    }
    close();
    return builder_.finish();
  }

private:
  static size_t title_level(std::string_view line) {
    const auto end = line.find_first_not_of('=');
    return end != std::string_view::npos && end >= 1 && end <= 6 && line[end] == ' ' ? end : 0;
  }
  static bool is_underline(const std::string& title, std::string_view below) {
    const auto line = trim(below);
    if (line.size() < 3 || std::string_view("=-~^").find(line[0]) == std::string_view::npos || line.find_first_not_of(line[0]) != std::string::npos) return false;
    const auto difference = line.size() > title.size() ? line.size() - title.size() : title.size() - line.size();
    return difference <= 2;
  }
  static size_t term_end(const std::string& text) {
    for (auto at = text.find("::"); at != std::string::npos; at = text.find("::", at + 2)) {
      const auto behind = text.find_first_not_of(':', at);
      if (at > 0 && (behind == std::string::npos || text[behind] == ' ')) return at;
    }
    return std::string::npos;
  }

  /// Ends what is open; `more`: its definition goes on behind.
  void close(bool more = false) {
    if (!text_.empty()) {
      if (!term_.empty()) {
        if (!defined_) at_ = builder_.definition(term_, plain(text_));
        else builder_.extend(at_, plain(text_));
        defined_ = true;
      } else if (item_) {
        builder_.list_item(1, plain(text_));
      } else {
        builder_.paragraph(plain(text_));
      }
      text_.clear();
      item_ = false;
    }
    if (!more && term_.empty()) item_ = false;
  }

  /// Cells begin with '|'; a line that begins otherwise goes on with the cell above. A row is as long as the first.
  size_t read_table(const std::vector<std::string>& lines, size_t i) {
    std::vector<std::string> cells;
    size_t columns = 0;
    bool header = false;
    const size_t first = i;
    for (; i < lines.size() && trim(lines[i]) != "|==="; ++i) {
      const auto text = trim(lines[i]);
      if (text.empty()) {
        if (columns == 0 && !cells.empty()) {
          columns = cells.size();
          header = i == first + 1;
        }
        continue;
      }
      size_t at = 0;
      while (at < text.size()) {
        const auto bar = text.find('|', at);
        const auto piece = trim(std::string_view(text).substr(at, bar == std::string::npos ? bar : bar - at));
        if (!piece.empty() && !cells.empty()) cells.back() += (cells.back().empty() ? "" : " ") + piece;
        if (bar == std::string::npos) break;
        cells.emplace_back();
        at = bar + 1;
      }
      if (cells.size() > limits::table_cells) break;
    }
    if (columns == 0) columns = cells.size();
    table t;
    for (size_t k = 0; columns > 0 && k < cells.size(); k += columns) {
      std::vector<std::string> row;
      for (size_t c = k; c < std::min(k + columns, cells.size()); ++c) row.push_back(plain(cells[c]));
      if (k == 0 && header && cells.size() > columns && columns > 1 && row.back().size() < 60 && row.back().find('.') == std::string::npos) t.header = std::move(row);
      else t.rows.push_back(std::move(row));
    }
    builder_.add_table(std::move(t), {}, {});
    return i;
  }

  document_builder builder_;
  std::string term_, text_;
  size_t at_ = 0;
  bool item_ = false, defined_ = false;
  bool joined_ = false;                 ///< behind a "+", which joins the next paragraph to the definition
};

} // namespace

expected<document> parse_asciidoc(std::string_view utf8, std::string_view url) {
  if (utf8.size() > limits::source_bytes)
    return fail(ec::limit_exceeded, std::string(url) + ": " + format_bytes(static_cast<double>(utf8.size())) + " of AsciiDoc is too much",
                "leave the page out with a deny pattern");
  return asciidoc_reader(url).read(split(clean_text(utf8), '\n'));
}

} // namespace pragma::crawler
