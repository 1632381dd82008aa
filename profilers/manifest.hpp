// How to collect metrics with a tool that PRAGMA has no code for: the section "collect" of its manifest (configs/profilers/README.md has
// the keys), parsed and checked. Read by by_manifest.cpp, which runs the tool, and by `pragma profiler add`, which refuses a wrong one.
#pragma once

#include "base/json.hpp"

#include <map>

namespace pragma {

/// A fact in a file of the system that stands in the way, such as a driver's setting.
struct probe_check {
  std::string file, pattern;          ///< regular expression that is searched in it
  bool unless_capable = false;        ///< no obstacle for a process with CAP_SYS_ADMIN
  std::string reason, remedy;
};
PRAGMA_JSON(probe_check, file, pattern, unless_capable, reason, remedy)

struct probe_rules {
  std::vector<std::string> argv;      ///< prints the version; empty: the program's being there is enough
  std::string version;                ///< regular expression; its first group is the version
  std::vector<probe_check> checks;
};
PRAGMA_JSON(probe_rules, argv, version, checks)

/// Text that a tool prints when it could not measure, and what that means.
struct obstacle_rule {
  std::string text, reason, remedy;
};
PRAGMA_JSON(obstacle_rule, text, reason, remedy)

/// How a metric of several launches becomes one of a call: "sum", "max", "mean" (weighted by time), "longest" (that of the launch
/// that took longest). The first rule whose pattern (`*` matches anything) fits decides.
struct combine_rule {
  std::string names, how;
};
PRAGMA_JSON(combine_rule, names, how)

/// When one of the tool's metrics shows a bottleneck: what it means for the diagnosis.
struct diagnosis_rule {
  std::string metric, bottleneck;     ///< bottleneck: name of a class (diagnosis/finding.hpp)
  double threshold = 0;
  bool below = false;                 ///< "below" instead of "above"
  std::string why;                    ///< one sentence for people
  std::vector<std::string> remedies;
  double confidence = 0.6;            ///< above 0.7 it counts as measured evidence
  std::vector<std::string> ask;       ///< metrics of the tool that the next attempt should measure as well
};

/// One printed unit: what we call it, and by what its numbers are multiplied.
struct unit_rule {
  std::string unit;
  double factor = 1;
};

/// Which columns of a table mean what. With `metric`, a row is one metric of one launch; without, a column is a metric and a row a launch.
struct output_columns {
  std::string launch;                 ///< tells launches apart; empty: each row is one, or with `metric` each kernel
  std::string kernel;                 ///< the kernel's name; empty: not known
  std::string metric, value, unit;
  std::string start, end;             ///< their difference is the metric collect_manifest::time
  std::vector<std::string> also;      ///< with `metric`: columns that are metrics of the launch themselves
  std::string rule, rule_kind, rule_text;      ///< what the tool's own rules say
  std::vector<std::string> rule_kinds;         ///< those that are kept; empty: all
  std::string rule_gain, rule_gain_kind;       ///< its estimate in %, and what that refers to
  std::vector<std::string> rule_gain_kinds;    ///< estimates that are kept; empty: all
};
PRAGMA_JSON(output_columns, launch, kernel, metric, value, unit, start, end, also, rule, rule_kind, rule_text, rule_kinds, rule_gain, rule_gain_kind,
            rule_gain_kinds)

/// Where a pass leaves its results, and in which form.
struct pass_output {
  std::string file;                   ///< pattern of paths below the scratch folder, `*` matches "/" too; all that fit are read
  std::string stream;                 ///< "stdout" or "stderr" instead of a file
  std::string format = "csv";         ///< "csv", "json", "jsonl", "table" (columns apart by two blanks, tabs or "|")
  std::string separator = ",";        ///< csv: one character
  std::string rows;                   ///< json: JSON pointer to the list of objects ("/results"); empty: the document itself
  std::string thousands = ",";        ///< characters inside numbers that mean nothing
  std::vector<std::string> noise;     ///< lines that begin so belong to no table
  bool unit_row = false;              ///< the first row of the table has units
  bool parts = false;                 ///< rows are the parts (cores) of one launch: their mean counts
  bool optional = false;              ///< nothing is missing when it is not there
  output_columns columns;
};
PRAGMA_JSON(pass_output, file, stream, format, separator, rows, thousands, noise, unit_row, parts, optional, columns)

/// One run of the candidate under the tool.
struct collect_pass {
  std::string name;
  std::vector<json> argv;             ///< words with placeholders; a list of words is left out when a placeholder in it is empty
  bool extra = false;                 ///< metrics that are asked for beyond the defaults come from this pass
  bool spare_time = false;            ///< only when half of the budget is left
  bool whole_run = false;             ///< the tool cannot be told when to look: it sees the calls that warm up as well
  std::map<std::string, std::string> metrics; ///< defaults: name -> unit; empty unit: reported without one
  std::vector<pass_output> outputs;
};

/// A command that lists the names which can be asked for.
struct name_list {
  std::vector<std::string> argv;
  std::string format;                 ///< "csv", "json", "text"
  bool plain = false;                 ///< its names are complete
};
PRAGMA_JSON(name_list, argv, format, plain)

/// How names are found in those lists.
struct name_rules {
  std::string column, type;           ///< csv, json: columns (keys) with the name and its type
  std::string pattern;                ///< text: regular expression, searched in each line; its first group is a name
  /// By type: what follows a base name, joined with dots, one of each list; "" leaves the part out. Types not listed: the name is complete.
  std::map<std::string, std::vector<std::vector<std::string>>> suffixes;
  std::vector<std::string> more;      ///< names that no list has
};
PRAGMA_JSON(name_rules, column, type, pattern, suffixes, more)

struct collect_manifest {
  std::string name;                   ///< the manifest's
  std::vector<std::string> backends;
  std::vector<std::string> programs;  ///< the first that is there runs: a name that PATH knows, or a path in which `*` stands for a version
  std::string install;                ///< where to get it
  probe_rules probe;
  std::string time;                   ///< metric by which the others are weighed
  std::vector<combine_rule> combine;
  std::map<std::string, unit_rule> units;
  name_rules names;
  std::vector<name_list> lists;       ///< the manifest's "catalogue"
  std::vector<obstacle_rule> obstacles;
  std::vector<std::string> errors;    ///< beginnings of lines in which the tool says what went wrong
  std::vector<collect_pass> passes;
  std::vector<diagnosis_rule> rules;

  /// All that is measured by default: name -> unit.
  std::map<std::string, std::string> default_metrics() const;
};

/// `manifest`: the whole file, of which name, backend, catalogue and collect are read; `what` names it in errors. not_found when it has no
/// "collect"; invalid_argument or parse_error name the key and, for an unknown one, the nearest that there is.
expected<collect_manifest> parse_collect_manifest(const json& manifest, const std::string& what);

/// Placeholders of argv. {target}, where the candidate's own command line stands, is the last word of each pass.
const std::vector<std::string>& collect_placeholders();
/// The placeholders that stand in `word`, without braces.
std::vector<std::string> placeholders_in(const std::string& word);

/// `*` matches any text, also an empty one.
bool fits_pattern(const std::string& text, const std::string& pattern);

} // namespace pragma
