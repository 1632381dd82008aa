// reStructuredText as documentation sources have it (Sphinx): sections, lists, definitions, tables of all five kinds, and the directives
// that describe things (option, describe, envvar, ...). Inline markup is reduced to its text. Not a validator: what it does not
// know it reads as text.
#include "crawler/charset.hpp"
#include "crawler/document_builder.hpp"
#include "crawler/rst_inline.hpp"
#include "crawler/rst_tables.hpp"

#include "base/csv.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

namespace pragma::crawler {

namespace {

using lines = std::vector<std::string>;

constexpr int max_body_depth = 16;            ///< of nested bodies; deeper ones are read as plain text
constexpr size_t tab_width = 8;

size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

/// A line of one punctuation character, four or more of them (three under a short title).
bool is_adornment(std::string_view line) {
  return line.size() >= 3 && std::ispunct(static_cast<unsigned char>(line[0])) && line.find_first_not_of(line[0]) == std::string_view::npos;
}

/// Lines [from, to) without their common indentation.
lines dedented(const lines& all, size_t from, size_t to) {
  size_t least = std::string::npos;
  for (size_t i = from; i < to; ++i)
    if (!all[i].empty()) least = std::min(least, indent_of(all[i]));
  lines out;
  for (size_t i = from; i < to; ++i) out.push_back(all[i].size() > least ? all[i].substr(least) : std::string());
  while (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

/// Length of "- ", "12. ", "(a) ", "#. " at the start; 0 when it is no list item.
size_t bullet_of(std::string_view line) {
  if (line.size() >= 2 && (line[0] == '-' || line[0] == '*' || line[0] == '+') && line[1] == ' ')
    return std::min(line.find_first_not_of(' ', 1), line.size());
  size_t i = line.starts_with('(');
  const size_t start = i;
  while (i < line.size() && i < start + 4 && std::isdigit(static_cast<unsigned char>(line[i]))) ++i;
  if (i == start && i < line.size() && (line[i] == '#' || std::isalpha(static_cast<unsigned char>(line[i])))) ++i;
  if (i == start || i + 1 >= line.size() || (line[i] != '.' && line[i] != ')') || line[i + 1] != ' ') return 0;
  return std::min(line.find_first_not_of(' ', i + 1), line.size());
}

class rst_reader {
public:
  explicit rst_reader(std::string_view url) : builder_(url) {
    source_ending_ = url.substr(0, url.find_first_of("?#")).ends_with(".rst.txt") ? ".rst.txt" : ".rst";
  }
  document read(const lines& all) {
    body(all, 0, nullptr);
    return builder_.finish();
  }

private:
  std::string plain(std::string_view text) {
    std::vector<std::string> targets;
    auto out = rst_plain_text(text, source_ending_, targets);
    for (const auto& target : targets) builder_.add_link(target, true);
    return out;
  }

  // -- where text goes: to the document, or into the description of something ----------------------------------------
  void put_paragraph(const std::string& text, std::string* into) {
    if (text.empty()) return;
    if (into) append(*into, text, "\n\n");
    else builder_.paragraph(text, take_label());
  }
  void put_code(const lines& code, std::string* into) {
    if (into) {
      for (const auto& line : code) append(*into, "    " + line, "\n");
    } else {
      builder_.code(join(code, "\n"), take_label());
    }
  }
  static void append(std::string& into, const std::string& text, std::string_view separator) {
    if (!into.empty()) into += separator;
    into += text;
  }
  void put_table(table t, std::string_view caption, std::string* into) {
    for (auto& cell : t.header) cell = one_line(plain(cell));
    for (auto& row : t.rows)
      for (auto& cell : row) cell = plain(cell);
    if (into)
      for (const auto& row : t.rows) append(*into, join(row, " | "), "\n");
    else builder_.add_table(std::move(t), caption, take_label());
  }
  std::string take_label() { return std::exchange(label_, {}); }

  // -- blocks --------------------------------------------------------------------------------------------------------
  void body(const lines& all, int depth, std::string* into) {
    if (depth > max_body_depth) return put_paragraph(plain(join(all, " ")), into);
    for (size_t i = 0; i < all.size() && !builder_.full();) {
      const auto& line = all[i];
      const std::string next = i + 1 < all.size() ? all[i + 1] : std::string();
      if (line.empty()) {
        ++i;
      } else if (line[0] == ' ') {
        const size_t end = indented_end(all, i);
        body(dedented(all, i, end), depth + 1, into);
        i = end;
      } else if (depth == 0 && is_adornment(line) && i + 2 < all.size() && !next.empty() && all[i + 2] == line) {
        section(trim(next), line[0], true);
        i += 3;
      } else if (depth == 0 && !next.empty() && is_adornment(next) && !is_adornment(line) &&
                 next.size() >= std::min<size_t>(line.size(), 4)) {
        section(line, next[0], false);
        i += 2;
      } else if (line.size() >= 4 && is_adornment(line)) {
        ++i; // a transition
      } else if (line == ".." || line.starts_with(".. ")) {
        explicit_markup(all, i, depth, into);
      } else if (line.starts_with("__ ")) {
        ++i; // an anonymous target
      } else if (is_grid_border(line)) {
        put_table(read_grid_table(all, i), {}, into);
      } else if (is_simple_border(line)) {
        put_table(read_simple_table(all, i), {}, into);
      } else if (bullet_of(line) > 0) {
        list_item(all, i, depth, into);
      } else if (line[0] == ':' && line.size() > 2 && line[1] != ' ' && line[1] != ':' &&
                 line.find(':', 1) != std::string::npos && rst_role_length(line) == 0) {
        field(all, i, depth, into);
      } else if (line.starts_with("| ") || line == "|") {
        std::string text;
        for (; i < all.size() && all[i].starts_with('|'); ++i) append(text, trim(std::string_view(all[i]).substr(1)), "\n");
        put_paragraph(plain(text), into);
      } else if (line.starts_with(">>>")) {
        const size_t start = i;
        while (i < all.size() && !all[i].empty()) ++i;
        put_code(dedented(all, start, i), into);
      } else if (!next.empty() && next[0] == ' ') {
        const size_t end = indented_end(all, i + 1);
        define(line, dedented(all, i + 1, end), depth, into);
        i = end;
      } else {
        paragraph(all, i, into);
      }
    }
  }

  /// Behind the indented block at `from`; empty lines inside belong to it.
  static size_t indented_end(const lines& all, size_t from) {
    size_t end = from;
    for (size_t i = from; i < all.size() && (all[i].empty() || all[i][0] == ' '); ++i)
      if (!all[i].empty()) end = i + 1;
    return std::max(end, from);
  }

  void section(std::string_view title, char adornment, bool over) {
    const std::pair<char, bool> style(adornment, over);
    auto it = std::find(styles_.begin(), styles_.end(), style);
    if (it == styles_.end()) it = styles_.insert(styles_.end(), style);
    const auto text = plain(title);
    auto anchor = take_label();
    if (anchor.empty()) anchor = docutils_id(text);
    builder_.heading(static_cast<int>(it - styles_.begin()) + 1, text, anchor);
  }

  void paragraph(const lines& all, size_t& i, std::string* into) {
    std::string text;
    while (i < all.size() && !all[i].empty() && all[i][0] != ' ') append(text, all[i++], " ");
    // "Like this::" announces a literal block.
    const bool literal = text.ends_with("::");
    if (literal) text.resize(text.size() - (text == "::" || text.ends_with(" ::") ? 2 : 1));
    put_paragraph(plain(trim(text)), into);
    if (!literal) return;
    size_t from = i;
    while (from < all.size() && all[from].empty()) ++from;
    if (from >= all.size() || all[from][0] != ' ') return;
    i = indented_end(all, from);
    put_code(dedented(all, from, i), into);
  }

  void list_item(const lines& all, size_t& i, int depth, std::string* into) {
    const size_t width = bullet_of(all[i]);
    lines item = {all[i].substr(width)};
    size_t end = i + 1;
    for (size_t k = i + 1; k < all.size() && (all[k].empty() || all[k][0] == ' '); ++k)
      if (!all[k].empty()) end = k + 1;
    const auto rest = dedented(all, i + 1, end);
    item.insert(item.end(), rest.begin(), rest.end());
    i = end;
    std::string text;
    body(item, depth + 1, &text);
    if (into) append(*into, "- " + text, "\n");
    else builder_.list_item(depth + 1, text, take_label());
  }

  /// ":name: text", of a document's head or of a list of fields.
  void field(const lines& all, size_t& i, int depth, std::string* into) {
    const auto colon = all[i].find(':', 1);
    const auto name = all[i].substr(1, colon - 1);
    lines rest = {trim(std::string_view(all[i]).substr(colon + 1))};
    const size_t end = indented_end(all, i + 1);
    const auto more = dedented(all, i + 1, end);
    rest.insert(rest.end(), more.begin(), more.end());
    i = end;
    std::string text;
    body(rest, depth + 1, &text);
    if (!text.empty()) put_paragraph(plain(name) + ": " + text, into);
  }

  void define(std::string_view term, const lines& description, int depth, std::string* into) {
    const auto name = plain(term.substr(0, term.find(" : "))); // behind " : " stands a classifier
    std::string text;
    const auto label = into ? std::string() : take_label();
    body(description, depth + 1, &text);
    if (into) append(*into, "- " + name + ": " + text, "\n");
    else builder_.definition(name, text, label);
  }

  // -- ".. name:: ..." -----------------------------------------------------------------------------------------------
  void explicit_markup(const lines& all, size_t& i, int depth, std::string* into) {
    const auto head = trim(std::string_view(all[i]).substr(2));
    const size_t end = indented_end(all, i + 1);
    const auto block = dedented(all, i + 1, end);
    i = end;
    if (head.starts_with('_')) {
      const auto colon = head.rfind(':');
      if (colon == head.size() - 1) label_ = docutils_id(std::string_view(head).substr(1, colon - 1));
      return;
    }
    if (head.starts_with('|')) return; // a substitution
    const auto colons = head.find("::");
    const bool directive = colons != std::string::npos && colons > 0 && head.substr(0, colons).find_first_of(" \t`") == std::string::npos;
    if (directive)
      return run_directive(ascii_lower(head.substr(0, colons)), trim(std::string_view(head).substr(colons + 2)), block, depth,
                           into);
    if (head.starts_with('[')) put_paragraph(plain(head + " " + join(block, " ")), into); // a footnote or citation
    // Anything else is a comment.
  }

  void run_directive(const std::string& name, const std::string& argument, const lines& block, int depth, std::string* into) {
    // Arguments go on below the first line, then come ":option: value" lines, an empty line, and the content.
    std::map<std::string, std::string> options;
    std::vector<std::string> arguments;
    if (!argument.empty()) arguments.push_back(argument);
    size_t i = 0;
    const bool admonition =
        one_of(name, {"note", "warning", "tip", "hint", "important", "attention", "caution", "danger", "error", "seealso",
                      "admonition", "versionadded", "versionchanged", "deprecated", "topic", "sidebar", "todo"});
    for (; i < block.size() && !block[i].empty(); ++i) {
      const auto& line = block[i];
      const auto colon = line[0] == ':' ? line.find(':', 1) : std::string::npos;
      if (colon != std::string::npos && rst_role_length(line) == 0)
        options[line.substr(1, colon - 1)] = trim(std::string_view(line).substr(colon + 1));
      else if (!admonition && !arguments.empty() && options.empty() && line[0] != ' ' && is_description(name)) arguments.push_back(line);
      else break;
    }
    while (i < block.size() && block[i].empty()) ++i;
    const lines content(block.begin() + static_cast<long>(i), block.end());

    if (admonition) {
      lines text;
      if (!argument.empty()) text.push_back(argument);
      const bool apart = (i > 0 && block[i - 1].empty()) || name == "admonition" || name == "topic" || name == "sidebar";
      if (apart) text.emplace_back();
      text.insert(text.end(), content.begin(), content.end());
      body(text, depth + 1, into);
    } else if (one_of(name, {"code-block", "code", "sourcecode", "parsed-literal", "math", "prompt", "console"})) {
      put_code(content, into);
    } else if (name == "toctree") {
      for (const auto& entry : content) {
        const auto angle = entry.rfind('<');
        auto target = angle != std::string::npos && entry.ends_with('>') ? entry.substr(angle + 1, entry.size() - angle - 2) : trim(entry);
        if (target.empty() || target == "self" || target.find('*') != std::string::npos) continue;
        const bool whole = target.find("://") != std::string::npos || target.ends_with(".rst") || target.ends_with(".md");
        builder_.add_link(whole ? target : target + source_ending_, true);
      }
    } else if (name == "list-table") {
      put_table(list_table(content, options), argument, into);
    } else if (name == "csv-table") {
      put_table(csv_table(content, options), argument, into);
    } else if (is_description(name)) {
      std::string text;
      const auto label = into ? std::string() : take_label();
      body(content, depth + 1, &text);
      const auto term = plain(join(arguments, ", "));
      if (into) append(*into, "- " + term + ": " + text, "\n");
      else builder_.definition(term, text, label);
    } else if (name == "rubric") {
      put_paragraph(plain(argument), into);
    } else if (one_of(name,
                      {"image",         "raw",        "include", "literalinclude", "index",        "meta",          "contents",
                       "highlight",     "program",    "module",  "currentmodule",  "default-role", "role",          "title",
                       "sectionauthor", "codeauthor", "replace", "unicode",        "date",         "tabularcolumns"})) {
      return;
    } else {
      body(content, depth + 1, into); // table, figure, container, only, tabs, ...: what they hold counts
    }
  }

  /// Directives whose argument is the name of something that their content describes.
  static bool is_description(std::string_view name) {
    if (one_of(name, {"option", "cmdoption", "describe", "object", "envvar", "confval", "function", "data", "attribute", "macro",
                      "type", "metric", "counter", "event", "setting"}))
      return true;
    const auto domain = name.substr(0, name.find(':'));
    return name.find(':') != std::string_view::npos && one_of(domain, {"c", "cpp", "py", "std", "js", "rst"});
  }

  static size_t count_of(const std::map<std::string, std::string>& options, const char* key) {
    const auto it = options.find(key);
    return it == options.end() || it->second.empty() || !std::isdigit(static_cast<unsigned char>(it->second[0]))
               ? 0
               : static_cast<size_t>(it->second[0] - '0');
  }

  /// A list of rows that are lists of cells: "* - a" begins a row, "  - b" another cell.
  table list_table(const lines& content, const std::map<std::string, std::string>& options) {
    table t;
    std::vector<std::vector<std::string>> rows;
    std::string* cell = nullptr;
    for (const auto& line : content) {
      const auto text = std::string_view(line).substr(indent_of(line));
      const bool begins_row = indent_of(line) == 0 && (line.starts_with("* -") || line.starts_with("- *") ||
                                                       line.starts_with("- -") || line.starts_with("* *"));
      const bool begins_cell = indent_of(line) > 0 && indent_of(line) <= 3 && !rows.empty() &&
                               (text.starts_with("- ") || text.starts_with("* ") || text == "-" || text == "*");
      if (begins_row) rows.emplace_back();
      if (begins_row || begins_cell) {
        if (rows.back().size() >= limits::table_columns) continue;
        rows.back().push_back(trim(begins_row ? std::string_view(line).substr(3) : text.substr(1)));
        cell = &rows.back().back();
      } else if (cell && !text.empty()) {
        append(*cell, std::string(text), "\n");
      }
    }
    header_rows(t, rows, count_of(options, "header-rows"));
    return t;
  }

  table csv_table(const lines& content, const std::map<std::string, std::string>& options) {
    table t;
    char separator = ',';
    if (const auto it = options.find("delim"); it != options.end() && !it->second.empty())
      separator = it->second == "tab" ? '\t' : it->second == "space" ? ' ' : it->second[0];
    auto cells_of = [&](std::string_view text, char between) {
      std::vector<std::vector<std::string>> rows;
      auto read = read_csv(text, between, builder_.result().base);
      if (!read) {
        builder_.note("a csv-table is left out: " + read.error().message);
        return rows;
      }
      for (auto& row : *read) rows.push_back(std::move(row.cells));
      return rows;
    };
    auto rows = cells_of(join(content, "\n"), separator);
    header_rows(t, rows, count_of(options, "header-rows"));
    if (const auto it = options.find("header"); it != options.end())
      if (auto header = cells_of(it->second, ','); !header.empty()) t.header = std::move(header.front());
    return t;
  }

  static void header_rows(table& t, std::vector<std::vector<std::string>>& rows, size_t count) {
    count = std::min(count, rows.size());
    if (count > 0) t.header = rows[count - 1];
    rows.erase(rows.begin(), rows.begin() + static_cast<long>(count));
    t.rows = std::move(rows);
  }

  document_builder builder_;
  std::vector<std::pair<char, bool>> styles_;  ///< of section titles, in the order in which they first appear: that is their level
  std::string label_, source_ending_;
};

} // namespace

expected<document> parse_rst(std::string_view utf8, std::string_view url) {
  if (utf8.size() > limits::source_bytes)
    return fail(ec::limit_exceeded,
                std::string(url) + ": " + format_bytes(static_cast<double>(utf8.size())) + " of reStructuredText is too much",
                "leave the page out with a deny pattern");
  lines all;
  for (const auto& raw : split(clean_text(utf8), '\n')) {
    std::string line;
    for (const char c : raw) {
      if (c == '\t') line.append(tab_width - line.size() % tab_width, ' ');
      else line += c;
    }
    const auto last = line.find_last_not_of(' ');
    line.resize(last == std::string::npos ? 0 : last + 1);
    all.push_back(std::move(line));
  }
  return rst_reader(url).read(all);
}

} // namespace pragma::crawler
