// One notion of a definition for every format: a term and what is said of it, whether that stood in a table with or without a header, in a
// definition list, behind a bullet or in a list of options. segments.cpp and catalogue_csv.cpp ask here what a place defines.
#pragma once

#include "crawler/document.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pragma::crawler {

/// True for descriptions of something that is counted or measured: "Number of ...", "Total bytes ...", "cycles in which ...".
bool speaks_of_quantity(std::string_view text);

/// True for descriptions of something that a user chooses: "Whether to ...", "If true, ...", "Enables ...".
bool sets_something(std::string_view text);

/// One word that no language has: generic.heap_size, Instructions_Retired_Any, CStateResidency. Not a path, a call or a file.
bool identifier_shaped(std::string_view term);

/// True where a heading or caption says that metrics are listed below it.
bool announces_metrics(std::string_view heading);
/// "Environment", "Config file": what stands below sets something and counts nothing.
bool announces_settings(std::string_view heading);
/// "The following values are displayed:", "in the following format": a list of what a tool prints comes next. Not a list of what it takes.
bool leads_into_metrics(std::string_view paragraph);

/// "NAME: text", "NAME - text", "NAME (unit) -- text" at the start of a list item; nothing where the front is no term.
struct term_and_text {
  std::string term, text;
};
std::optional<term_and_text> split_definition(std::string_view item);

/// What a term stands for: the names of metrics, or an option with its spellings. Empty: neither.
struct defined {
  std::string kind = "metric";           ///< metric_record::kind
  std::vector<std::string> names;        ///< of an option: one name, the longest spelling; the others are in `also`
  std::vector<std::string> also;
};
/// `announced`: a heading above says that metrics are defined here, so a few plain words will do.
defined what_is_defined(std::string_view term, std::string_view text, bool announced);

/// Which column of a table names what its rows are about, and what the others say.
class table_reader {
public:
  /// `about`: caption and headings.
  table_reader(const table& t, bool announced);
  bool defines() const { return name_column_ != none; }
  /// How many of the table's rows defined something or went on with the row before; the rest is text.
  size_t unread() const { return unread_; }
  struct row_record {
    std::vector<metric_record> records;  ///< one for each name
    std::string text;                    ///< the row as "Header: cell" lines
    bool continues = false;              ///< the row goes on with the one before
  };
  row_record row(size_t i);

private:
  static constexpr size_t none = static_cast<size_t>(-1);
  size_t find_name_column() const;
  double share_of_names(size_t column, bool certain) const;
  bool tells(size_t column) const;
  bool goes_on(size_t i) const;
  bool is_setting(const std::vector<std::string>& cells) const;
  std::vector<std::string> names_of(const std::string& cell) const;
  std::vector<std::string> whole_row(size_t i) const;

  const table& t_;
  bool announced_ = false, certain_ = false, shaped_ = false;
  size_t columns_ = 0, name_column_ = none, description_ = none;
  size_t unread_ = 0;
};

} // namespace pragma::crawler
