#include "diagnosis/source_parts.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>
#include <vector>

namespace pragma {

namespace {

constexpr size_t most_regions = 3; ///< that are named together; a helper of more is named alone
constexpr std::string_view entry_point = "pragma_kernel", region_mark = "// Region ", pass_mark = "// pass";

bool of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool is_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if ((at == 0 || !of_name(text[at - 1])) && (at + word.size() == text.size() || !of_name(text[at + word.size()]))) return true;
  return false;
}

/// A function, or a lambda that has a name.
struct scope {
  std::string name;
  int first = 0, last = 0; ///< lines
  bool lambda = false;
  bool holds(int line) const { return first <= line && line <= last; }
};

/// The text with comments, directives and the contents of literals as blanks; lines stay where they are.
std::string code_alone(std::string_view source) {
  std::string out(source);
  const auto blank = [&](size_t from, size_t to) {
    for (size_t i = from; i < std::min(to, out.size()); ++i)
      if (out[i] != '\n') out[i] = ' ';
  };
  const auto end_of = [&](std::string_view mark, size_t from) {
    const auto at = source.find(mark, from);
    return at == std::string_view::npos ? source.size() : at + mark.size();
  };
  bool starts_line = true;
  for (size_t i = 0; i < source.size();) {
    const char c = source[i];
    size_t end = i + 1;
    if (source.substr(i, 2) == "//") {
      blank(i, end = source.find('\n', i) == std::string_view::npos ? source.size() : source.find('\n', i));
    } else if (source.substr(i, 2) == "/*") {
      blank(i, end = end_of("*/", i + 2));
    } else if (c == '#' && starts_line) {
      do end = end_of("\n", end);
      while (end >= 2 && end < source.size() && source[end - 2] == '\\');
      blank(i, end);
    } else if (source.substr(i, 2) == "R\"" && (i == 0 || !of_name(source[i - 1]))) {
      const auto open = source.find('(', i);
      if (open != std::string_view::npos) blank(i, end = end_of(")" + std::string(source.substr(i + 2, open - i - 2)) + "\"", open));
    } else if (c == '"' || (c == '\'' && (i == 0 || !of_name(source[i - 1])))) { // else the apostrophe in 1'000
      while (end < source.size() && source[end] != c && source[end] != '\n') end += source[end] == '\\' ? 2 : 1;
      blank(i + 1, end);
      ++end;
    }
    starts_line = source[std::min(end, source.size()) - 1] == '\n' || (starts_line && std::isspace(static_cast<unsigned char>(c)));
    i = end;
  }
  return out;
}

/// The name before the first parameter list of what stands before a brace; "" = there is none, or it is no plain name.
std::string function_of(std::string_view head) {
  static const std::set<std::string_view> no_functions = {"__attribute__", "alignas", "decltype", "noexcept", "requires", "if", "for", "while", "switch", "sizeof"};
  if (is_word(head, "operator")) return {};
  if (const auto open = head.find("template"); open != std::string_view::npos && trim(head.substr(0, open)).empty()) {
    size_t i = head.find('<', open);
    for (int depth = 0; i < head.size(); ++i) { // its parameters may have defaults
      depth += head[i] == '<' ? 1 : head[i] == '>' ? -1 : 0;
      if (depth == 0) break;
    }
    head = head.substr(std::min(i, head.size()));
  }
  for (size_t i = 0; i < head.size(); ++i) {
    if (head[i] == '=') return {};
    if (head[i] != '(') continue;
    size_t end = i;
    while (end > 0 && std::isspace(static_cast<unsigned char>(head[end - 1]))) --end;
    size_t begin = end;
    while (begin > 0 && of_name(head[begin - 1])) --begin;
    const auto name = head.substr(begin, end - begin);
    if (!name.empty() && !no_functions.count(name)) return std::string(name);
    for (int depth = 0; i < head.size(); ++i) { // its parentheses are no parameters
      depth += head[i] == '(' ? 1 : head[i] == ')' ? -1 : 0;
      if (depth == 0) break;
    }
  }
  return {};
}

/// NAME of "auto NAME = [...": a lambda's.
std::string lambda_of(std::string_view head) {
  const auto open = head.find('[');
  const auto equals = open == std::string_view::npos ? open : head.substr(0, open).find_last_not_of(" \n");
  if (equals == std::string_view::npos || head[equals] != '=') return {};
  auto name = trim(head.substr(0, equals));
  const auto before = name.find_last_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  if (before == std::string::npos || !is_word(name.substr(0, before), "auto")) return {};
  return name.substr(before + 1);
}

/// All functions and named lambdas, in the order of their ends; nothing where braces do not match.
std::vector<scope> scopes_of(const std::string& code) {
  struct opened {
    scope what;
    bool outside; ///< a namespace or a type: functions may stand in it
  };
  std::vector<opened> open;
  std::vector<scope> found;
  size_t head = 0;
  int line = 1;
  for (size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    if (c == '\n') ++line;
    if (c != '{' && c != '}' && c != ';') continue;
    const auto before = std::string_view(code).substr(head, i - head);
    head = i + 1;
    if (c == '{') {
      const bool outside = open.empty() || open.back().outside;
      opened one{{outside ? function_of(before) : lambda_of(before), line, 0, !outside}, false};
      one.outside = outside && one.what.name.empty() && before.find('=') == std::string_view::npos &&
                    (is_word(before, "namespace") || is_word(before, "struct") || is_word(before, "class") || is_word(before, "union") || is_word(before, "extern"));
      open.push_back(std::move(one));
    } else if (c == '}') {
      if (open.empty()) return {};
      open.back().what.last = line;
      if (!open.back().what.name.empty()) found.push_back(open.back().what);
      open.pop_back();
    }
  }
  return open.empty() ? found : std::vector<scope>();
}

/// Where in the built-in coder's text a line stands.
struct place {
  int region = 0;
  std::string kind, step; ///< "matrix product"; "pass 1: peak"
  auto key() const { return std::tie(region, kind, step); }
};

/// "matrix product, m x n x k = ..." and "64 x 200 (reduced) (vectorised)" as a word.
std::string kind_of(const std::string& title) {
  if (!title.empty() && std::isalpha(static_cast<unsigned char>(title.front()))) return title.substr(0, title.find(','));
  for (const auto& [mark, kind] : {std::pair("(scanned)", "scan"), std::pair("(window)", "window"), std::pair("(reduced)", "reduction")})
    if (title.find(mark) != std::string::npos) return kind;
  return "element-wise";
}

class built_in_text {
public:
  built_in_text(const std::vector<std::string>& lines, std::vector<std::string> code, const std::vector<scope>& scopes) : code_(std::move(code)), scopes_(scopes) {
    const scope* function = nullptr;
    place at;
    for (size_t i = 0; i < lines.size(); ++i) {
      const int line = static_cast<int>(i) + 1;
      if (const auto* now = function_at(line); now != function) {
        function = now;
        at = {};
      }
      const auto said = trim(lines[i]);
      if (function && said.starts_with(region_mark)) at = {region_of(said, *function), kind_of(trim(said.substr(std::min(said.size(), said.find(':') + 1)))), ""};
      if (said.starts_with(pass_mark)) at.step = said.substr(3, said.find(" as one") == std::string::npos ? std::string::npos : said.find(':') - 3);
      places_.push_back(at);
      if (std::any_of(scopes_.begin(), scopes_.end(), [&](const scope& s) { return s.lambda && s.name == "finish" && s.holds(line); })) places_.back().step = "tail";
    }
  }

  std::string part_of(int line) const {
    const auto* function = function_at(line);
    if (!function) return {};
    if (place_of(line).region > 0) return text(place_of(line), {});
    return function->name == entry_point ? std::string() : helper(*function);
  }

private:
  const scope* function_at(int line) const {
    const auto found = std::find_if(scopes_.begin(), scopes_.end(), [&](const scope& s) { return !s.lambda && s.holds(line); });
    return found == scopes_.end() ? nullptr : &*found;
  }

  /// A function region_N counts its regions anew.
  static int region_of(const std::string& comment, const scope& function) {
    const std::string own = "region_";
    return std::atoi(function.name.starts_with(own) ? function.name.c_str() + own.size() : comment.c_str() + region_mark.size());
  }

  /// By the last comments of the function above the line; region 0 = there are none.
  const place& place_of(int line) const { return places_[static_cast<size_t>(line) - 1]; }

  static std::string text(const place& at, const std::string& what) {
    const auto inside = at.step.empty() ? what.empty() ? at.kind : what : at.step + (what.empty() ? "" : ", " + what);
    return "region " + std::to_string(at.region) + " (" + inside + ")";
  }

  /// What a helper does, by its name, and for which regions: those that call it, or call what calls it.
  std::string helper(const scope& function) const {
    const auto& name = function.name;
    const std::string what = name.starts_with("multiply_") ? "product" : name.starts_with("pack_") ? "packing" : name.starts_with("v_") ? name.substr(2) : name;
    std::set<std::string> callers = {name};
    std::vector<place> places;
    for (bool more = true; more;) {
      more = false;
      places.clear();
      for (size_t i = 0; i < code_.size(); ++i) {
        if (std::none_of(callers.begin(), callers.end(), [&](const auto& c) { return is_word(code_[i], c); })) continue;
        const int line = static_cast<int>(i) + 1;
        const auto* by = function_at(line);
        if (place_of(line).region > 0) places.push_back(place_of(line));
        else if (by && by->name != entry_point) more = callers.insert(by->name).second || more;
      }
    }
    std::set<int> regions;
    for (const auto& p : places) regions.insert(p.region);
    if (regions.empty() || regions.size() > most_regions) return what;
    if (regions.size() == 1) {
      auto at = places.front();
      if (std::any_of(places.begin(), places.end(), [&](const place& p) { return p.key() != at.key(); })) at.step.clear();
      return text(at, what);
    }
    std::string list;
    for (const int r : regions) list += (list.empty() ? "" : r == *regions.rbegin() ? " and " : ", ") + std::to_string(r);
    return "regions " + list + " (" + what + ")";
  }

  std::vector<std::string> code_;
  const std::vector<scope>& scopes_;
  std::vector<place> places_; ///< of each line
};

} // namespace

std::string part_of(std::string_view source, int line) {
  const auto lines = split(source, '\n');
  if (line <= 0 || static_cast<size_t>(line) > lines.size()) return {};
  const auto code = code_alone(source);
  const auto scopes = scopes_of(code);
  if (source.find(region_mark) != std::string_view::npos) return built_in_text(lines, split(code, '\n'), scopes).part_of(line);
  const scope* innermost = nullptr;
  for (const auto& s : scopes)
    if (s.holds(line) && (!innermost || s.first > innermost->first)) innermost = &s;
  return !innermost || innermost->name == entry_point ? std::string() : innermost->name;
}

} // namespace pragma
