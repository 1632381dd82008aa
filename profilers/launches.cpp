#include "profilers/launches.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace pragma {

namespace {

constexpr size_t max_kernel_bytes = 1000; ///< of a kernel's name: C++ templates make longer ones; a module's functions are compared with it
constexpr size_t max_name_bytes = 120;    ///< of other names, and of kernels in a note
constexpr size_t max_note_bytes = 1200;
constexpr size_t max_table_notes = 1024;        ///< of a table, of which the best few are shown

std::string kernel_name(const std::string& text) { return printable(text.substr(0, max_kernel_bytes)); }
std::string short_name(const std::string& kernel) { return printable(kernel.substr(0, max_name_bytes)); }

bool listed(const std::string& text, const std::vector<std::string>& list) {
  return list.empty() || std::find(list.begin(), list.end(), text) != list.end();
}

/// Reads the rows of one table; the columns are looked up once.
class table_reader {
public:
  table_reader(const data_table& table, const pass_output& form, const collect_manifest& m, const std::vector<std::string>& wanted, size_t most)
      : table_(table), form_(form), manifest_(m), defaults_(m.default_metrics()), wanted_(wanted.begin(), wanted.end()), most_(most) {
    const auto& c = form.columns;
    std::set<std::string> roles{c.launch, c.kernel, c.metric, c.value, c.unit, c.start, c.end, c.rule, c.rule_kind, c.rule_text, c.rule_gain, c.rule_gain_kind};
    const bool only_notes = !c.rule.empty() && c.metric.empty() && wanted.empty(); // the other columns identify the kernel
    for (size_t k = 0; k < table.columns.size() && !only_notes; ++k)
      if (!roles.count(table.columns[k]) && keeps(table.columns[k])) value_columns_.push_back(k);
  }

  measured_table read() {
    const bool has_units = form_.unit_row && !table_.rows.empty();
    if (has_units) units_ = table_.rows.front();
    for (size_t i = has_units ? 1 : 0; i < table_.rows.size(); ++i) read_row(table_.rows[i]);
    if (form_.parts) take_means();
    return std::move(found_);
  }

private:
  bool keeps(const std::string& name) const { return wanted_.empty() || wanted_.count(name) != 0; }

  const std::string& cell(const std::vector<std::string>& row, const std::string& column) const {
    static const std::string none;
    const auto k = table_.find(column);
    return k < row.size() ? row[k] : none;
  }

  /// Null where there are enough launches already.
  measured_launch* launch_of(const std::vector<std::string>& row) {
    const auto& c = form_.columns;
    const auto kernel = kernel_name(cell(row, c.kernel));
    const bool row_is_launch = c.launch.empty() && c.metric.empty();
    const auto key = row_is_launch ? std::to_string(found_.launches.size()) : cell(row, c.launch) + '\0' + kernel;
    const auto at = places_.find(key);
    if (at != places_.end()) return &found_.launches[at->second];
    if (found_.launches.size() >= most_) return nullptr;
    places_.emplace(key, found_.launches.size());
    return &found_.launches.emplace_back(measured_launch{kernel, {}});
  }

  void put(measured_launch& launch, const std::string& name, const std::string& text, std::string unit) {
    auto number = read_number(text, form_.thousands);
    if (!number) return;
    unit = trim(unit);
    if (const auto rule = manifest_.units.find(unit); rule != manifest_.units.end()) {
      *number *= rule->second.factor;
      unit = rule->second.unit;
    }
    // The manifest's unit is ours for a number that the tool gives none for, or that is a plain ratio.
    if (const auto known = defaults_.find(name); known != defaults_.end() && (unit.empty() || known->second.empty())) unit = known->second;
    launch.values.insert_or_assign(name, measured_value{*number, printable(unit.substr(0, max_name_bytes))});
  }

  void put_column(measured_launch& launch, const std::vector<std::string>& row, size_t k) {
    put(launch, table_.columns[k], row[k], k < units_.size() ? units_[k] : std::string());
  }

  void read_row(const std::vector<std::string>& row) {
    const auto& c = form_.columns;
    if (!c.rule.empty()) read_note(row);
    auto* of = launch_of(row);
    if (!of) return;
    auto& launch = *of;
    if (c.metric.empty()) {
      for (const auto k : value_columns_) put_column(launch, row, k);
    } else {
      if (const auto name = trim(cell(row, c.metric)); !name.empty() && keeps(name)) put(launch, name, cell(row, c.value), cell(row, c.unit));
      for (const auto& name : c.also)
        if (const auto k = table_.find(name); k < row.size()) put_column(launch, row, k);
    }
    const auto start = read_number(cell(row, c.start), form_.thousands), end = read_number(cell(row, c.end), form_.thousands);
    if (start && end && *end >= *start) launch.values[manifest_.time] = {*end - *start, default_unit(manifest_.time)};
  }

  std::string default_unit(const std::string& name) const {
    const auto known = defaults_.find(name);
    return known == defaults_.end() ? std::string() : known->second;
  }

  void read_note(const std::vector<std::string>& row) {
    if (found_.notes.size() >= max_table_notes) return;
    const auto& c = form_.columns;
    tool_note note;
    note.rule = printable(trim(cell(row, c.rule)).substr(0, max_name_bytes));
    note.text = printable(cut_lines(trim(cell(row, c.rule_text)), 8, 0, max_note_bytes));
    if (note.rule.empty() || note.text.empty() || !listed(cell(row, c.rule_kind), c.rule_kinds)) return;
    const auto gain = read_number(cell(row, c.rule_gain), form_.thousands);
    if (gain && *gain > 0 && listed(cell(row, c.rule_gain_kind), c.rule_gain_kinds)) note.gain_percent = *gain;
    const auto kernel = kernel_name(cell(row, c.kernel));
    if (!kernel.empty()) note.text = short_name(kernel) + ": " + note.text;
    const auto same = [&](const kernel_note& n) { return n.note.rule == note.rule && n.note.text == note.text; };
    if (std::none_of(found_.notes.begin(), found_.notes.end(), same)) found_.notes.push_back({kernel, std::move(note)});
  }

  /// The rows are parts of one launch: the mean over those that have the metric.
  void take_means() {
    std::map<std::string, std::pair<measured_value, int>> sums;
    measured_launch whole;
    for (const auto& part : found_.launches) {
      if (whole.kernel.empty()) whole.kernel = part.kernel;
      for (const auto& [name, v] : part.values) {
        auto& [sum, count] = sums[name];
        sum = {sum.value + v.value, v.unit};
        ++count;
      }
    }
    for (const auto& [name, sum] : sums) whole.values[name] = {sum.first.value / sum.second, sum.first.unit};
    found_.launches.clear();
    if (!whole.values.empty()) found_.launches.push_back(std::move(whole));
  }

  const data_table& table_;
  const pass_output& form_;
  const collect_manifest& manifest_;
  const std::map<std::string, std::string> defaults_;
  const std::set<std::string> wanted_;
  const size_t most_;
  std::vector<size_t> value_columns_;
  std::vector<std::string> units_;
  std::map<std::string, size_t> places_;
  measured_table found_;
};

double time_of(const measured_launch& launch, const std::string& time) {
  const auto at = launch.values.find(time);
  return at == launch.values.end() ? 0 : at->second.value;
}

std::string how_to_combine(const std::string& name, const std::vector<combine_rule>& rules) {
  for (const auto& rule : rules)
    if (fits_pattern(name, rule.names)) return rule.how;
  return "mean";
}

std::string times_of_calls(int64_t calls) { return calls > 1 ? " of " + std::to_string(calls) + " calls, divided by their number" : ""; }

/// One metric over the launches that have it.
metric combined(const std::string& name, const std::vector<const measured_launch*>& launches, const std::string& how, const collect_manifest& m, int64_t calls) {
  const auto value = [&](const measured_launch* l) { return l->values.at(name).value; };
  metric result;
  result.name = name;
  result.unit = launches.front()->values.at(name).unit;
  const auto many = std::to_string(launches.size()) + " launches";
  if (how == "sum") {
    for (const auto* l : launches) result.value += value(l);
    result.value /= static_cast<double>(calls);
    if (launches.size() > 1) result.note = "sum over " + many + times_of_calls(calls);
    return result;
  }
  if (how == "max") {
    result.value = value(*std::max_element(launches.begin(), launches.end(), [&](auto* a, auto* b) { return value(a) < value(b); }));
    if (launches.size() > 1) result.note = "largest of " + many;
    return result;
  }
  const auto* longest = *std::max_element(launches.begin(), launches.end(), [&](auto* a, auto* b) { return time_of(*a, m.time) < time_of(*b, m.time); });
  if (how == "longest") {
    result.value = value(longest);
    if (launches.size() > 1) result.note = "of the launch that took longest" + (longest->kernel.empty() ? "" : " (" + short_name(longest->kernel) + ")");
    return result;
  }
  double weights = 0, sum = 0, plain = 0;
  for (const auto* l : launches) {
    const double weight = time_of(*l, m.time);
    weights += weight;
    sum += weight * value(l);
    plain += value(l);
  }
  result.value = weights > 0 ? sum / weights : plain / static_cast<double>(launches.size());
  if (launches.size() > 1) result.note = "mean of " + many + (weights > 0 ? ", weighted by their time" : "");
  return result;
}

/// "matmul_kernel 72%, copy_kernel 28% of the time".
std::string shares(const std::vector<measured_launch>& launches, const std::string& time) {
  std::map<std::string, double> by_kernel;
  double all = 0;
  for (const auto& l : launches) {
    by_kernel[l.kernel.empty() ? "(no name)" : l.kernel] += time_of(l, time);
    all += time_of(l, time);
  }
  std::vector<std::pair<double, std::string>> ordered;
  for (const auto& [kernel, t] : by_kernel) ordered.emplace_back(t, kernel);
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> parts;
  for (const auto& [t, kernel] : ordered) {
    if (parts.size() == 8) break;
    const auto name = short_name(kernel);
    parts.push_back(all > 0 ? name + " " + format_number(100 * t / all, 0) + "%" : name);
  }
  return join(parts, ", ") + (all > 0 ? " of the time" : "");
}

} // namespace

std::optional<double> read_number(std::string_view text, const std::string& thousands) {
  std::string digits;
  for (const char c : trim(text))
    if (thousands.find(c) == std::string::npos) digits += c;
  if (digits.empty()) return {};
  if (digits.back() == '%') digits.pop_back();
  double value = 0;
  const auto* end = digits.data() + digits.size();
  const auto [stopped, problem] = std::from_chars(digits.data(), end, value);
  if (problem != std::errc() || stopped != end || !std::isfinite(value)) return {};
  return value;
}

measured_table read_launches(const data_table& table, const pass_output& form, const collect_manifest& m, const std::vector<std::string>& wanted, size_t most) {
  return table_reader(table, form, m, wanted, most).read();
}

std::vector<metric> metrics_per_call(const std::vector<measured_launch>& launches, const collect_manifest& m, int64_t calls, const std::string& tool) {
  std::map<std::string, std::vector<const measured_launch*>> having;
  for (const auto& launch : launches)
    for (const auto& [name, value] : launch.values) having[name].push_back(&launch);
  std::vector<metric> all;
  for (const auto& [name, those] : having) {
    auto one = combined(name, those, how_to_combine(name, m.combine), m, std::max<int64_t>(1, calls));
    one.tool = tool;
    if (one.note.empty() && !those.front()->kernel.empty()) one.note = "of " + short_name(those.front()->kernel);
    if (name == m.time) all.insert(all.begin(), std::move(one));
    else all.push_back(std::move(one));
  }
  if (!launches.empty())
    all.push_back({"launches_per_call", static_cast<double>(launches.size()) / static_cast<double>(std::max<int64_t>(1, calls)), "count", tool,
                   provenance::measured, shares(launches, m.time)});
  return all;
}

} // namespace pragma
