#include "profilers/by_manifest.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <cctype>
#include <set>

namespace pragma {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t max_output_bytes = 16u << 20; ///< of all files that a tool leaves in a pass
constexpr size_t max_files = 256;                ///< that fit one pattern
constexpr size_t max_notes = 16;                 ///< of one tool
constexpr size_t max_metrics = 8192;             ///< of all tools
constexpr size_t max_complaints = 4;             ///< about the files of a pass
constexpr double least_seconds = 2;              ///< no tool starts in less
constexpr size_t named_at_most = 6;              ///< missing metrics that are listed by name

using values = std::map<std::string, std::vector<std::string>>;

/// A word with its placeholders filled in; `empty` becomes true when one of them had nothing.
std::string filled(std::string word, const values& known, bool& empty) {
  for (const auto& name : placeholders_in(word)) {
    const auto text = join(known.at(name), ",");
    empty = empty || text.empty();
    const auto mark = "{" + name + "}";
    word.replace(word.find(mark), mark.size(), text);
  }
  return word;
}

/// The tool's command line up to {target}.
std::vector<std::string> wrapper_of(const collect_pass& pass, const values& known) {
  std::vector<std::string> argv;
  for (const auto& part : pass.argv) {
    const bool optional = part.is_array();
    std::vector<std::string> words;
    bool empty = false;
    for (const auto& word : optional ? part : json::array({part})) {
      const auto text = word.get<std::string>();
      if (text == "{target}") return argv;
      if (text == "{metrics*}") { // one word each
        const auto& names = known.at("metrics");
        words.insert(words.end(), names.begin(), names.end());
        empty = empty || names.empty();
      } else {
        words.push_back(filled(text, known, empty));
      }
    }
    if (!optional || !empty) argv.insert(argv.end(), words.begin(), words.end());
  }
  return argv;
}

bool mentions(const collect_pass& pass, const std::string& placeholder) {
  return std::any_of(pass.argv.begin(), pass.argv.end(), [&](const json& word) { return word.dump().find("{" + placeholder + "}") != std::string::npos; });
}

/// Regular files below the folder whose path fits; never through a link, which the candidate could have made.
std::vector<fs::path> files_that_fit(const fs::path& folder, const std::string& pattern) {
  std::vector<fs::path> found;
  std::error_code problem;
  for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, problem), end; !problem && at != end; at.increment(problem)) {
    if (found.size() == max_files) break;
    if (at->symlink_status(problem).type() == fs::file_type::regular && fits_pattern(at->path().lexically_relative(folder).string(), pattern)) found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// One run of the candidate under the tool, and what it left.
class one_pass {
public:
  one_pass(const collect_manifest& m, const collect_pass& pass, const manifest_request& request, const std::string& tool, std::map<std::string, double>& times, source_result& out)
      : m_(m), pass_(pass), request_(request), tool_(tool), out_(out), times_(times) {}

  void run(const std::string& program, const std::vector<std::string>& names, const run_target& run_it, double seconds) {
    auto folder = temp_dir::create("pragma-" + m_.name + "-", 0711); // the candidate may have another uid
    if (!folder) return missing(folder.error().message);
    const values known{{"program", {program}}, {"scratch", {folder->path().string()}}, {"metrics", names},
                       {"max_launches", {std::to_string(request_.max_launches)}}};
    if (request_.progress) request_.progress(m_.name + " (" + pass_.name + ")");
    const auto ended = run_it(wrapper_of(pass_, known), folder->path(), seconds);
    printed_ = ended.out + "\n" + ended.err;
    if (!ended.completed) {
      read_texts(folder->path(), ended);
      const auto why = obstacle();
      return missing(why.empty() ? (ended.problem.empty() ? "the run under the profiler did not end" : ended.problem) + in_pass() : why);
    }
    read_texts(folder->path(), ended);
    for (const auto& [output, texts] : texts_)
      for (const auto& [what, text] : texts) take(*output, what, text, names);
    report(names);
  }

private:
  void missing(const std::string& why) { out_.missing.push_back(m_.name + ": " + why); }
  std::string in_pass() const { return m_.passes.size() > 1 ? " (pass " + pass_.name + ")" : ""; }

  void complain(const std::string& what) {
    if (complaints_.size() < max_complaints) complaints_.push_back(what);
  }

  void read_texts(const fs::path& scratch, const target_run& ended) {
    auto left = max_output_bytes;
    bool full = false;
    for (const auto& output : pass_.outputs) {
      auto& texts = texts_.emplace_back(&output, std::vector<std::pair<std::string, std::string>>()).second;
      if (!output.stream.empty()) {
        texts.emplace_back(output.stream, output.stream == "stdout" ? ended.out : ended.err);
        continue;
      }
      for (const auto& path : files_that_fit(scratch, output.file)) {
        if (full) break;
        auto text = read_file(path, left);
        if (text) {
          left -= text->size();
          texts.emplace_back(path.filename().string(), std::move(*text));
        } else {
          full = text.error().code == ec::limit_exceeded;
          complain(full ? "it left more than " + format_bytes(static_cast<double>(max_output_bytes)) + ": not all was read" : text.error().message);
        }
      }
    }
  }

  /// What the tool says that kept it from measuring; empty when it says nothing known.
  std::string obstacle() const {
    std::vector<const std::string*> all{&printed_};
    for (const auto& [output, texts] : texts_)
      for (const auto& [what, text] : texts) all.push_back(&text);
    for (const auto& known : m_.obstacles)
      for (const auto* text : all)
        if (text->find(known.text) != std::string::npos) return known.reason + (known.remedy.empty() ? "" : ": " + known.remedy);
    for (const auto* text : all)
      for (const auto& line : split(*text, '\n'))
        for (const auto& beginning : m_.errors)
          if (line.starts_with(beginning)) return printable(trim(line).substr(0, 300));
    return {};
  }

  void take(const pass_output& output, const std::string& what, const std::string& text, const std::vector<std::string>& names) {
    auto table = read_table(text, output, what);
    if (!table) return complain(table.error().message);
    // The tool was told how many to look at: what is more, somebody else wrote.
    auto& launches = launches_[&output];
    const auto most = limited() && !output.parts ? static_cast<size_t>(request_.max_launches) : max_launches_read;
    auto read = read_launches(*table, output, m_, names, most - std::min(most, launches.size()));
    notes_.insert(notes_.end(), std::make_move_iterator(read.notes.begin()), std::make_move_iterator(read.notes.end()));
    launches.insert(launches.end(), std::make_move_iterator(read.launches.begin()), std::make_move_iterator(read.launches.end()));
  }

  bool limited() const { return mentions(pass_, "max_launches"); }

  /// Without the runner's kernels (what it fills outputs with, Torch's copies), where the tool saw them. Names may be other ones than we
  /// think (a module that is made at run time): then all count.
  void keep_own(std::vector<measured_launch>& launches) const {
    if (!pass_.whole_run || request_.own_kernels.empty()) return;
    const auto is_own = [&](const measured_launch& l) {
      return std::any_of(request_.own_kernels.begin(), request_.own_kernels.end(), [&](const auto& name) { return l.kernel.starts_with(name); });
    };
    if (std::any_of(launches.begin(), launches.end(), is_own)) std::erase_if(launches, [&](const auto& l) { return !is_own(l); });
  }

  void report(const std::vector<std::string>& names) {
    size_t seen = 0;
    for (const auto& output : pass_.outputs) {
      auto& launches = launches_[&output];
      keep_own(launches);
      seen = std::max(seen, launches.size());
      add_times(launches);
      add_kernels(launches);
      for (auto& metric : metrics_per_call(launches, m_, request_.calls + (pass_.whole_run ? request_.warmup_calls : 0), tool_)) {
        const auto same = [&](const auto& known) { return known.name == metric.name; };
        if (out_.metrics.size() < max_metrics && std::none_of(out_.metrics.begin(), out_.metrics.end(), same)) out_.metrics.push_back(std::move(metric));
      }
      if (launches.empty() && !output.optional && notes_.empty() && !output.file.empty() && texts_of(output).empty())
        complain("it left no file " + output.file);
    }
    report_notes();
    if (seen == 0 && notes_.empty()) {
      const auto why = obstacle();
      return missing(!why.empty() ? why : complaints_.empty() ? "no kernel was profiled" + in_pass() : complaints_.front() + in_pass());
    }
    for (const auto& complaint : complaints_) missing(complaint);
    if (limited() && seen >= static_cast<size_t>(request_.max_launches))
      missing("only the first " + std::to_string(request_.max_launches) + " launches were profiled: sums are of those");
    name_absent(names);
  }

  /// How long each kernel took, for the notes of this and later passes; the first pass that knows it counts.
  void add_times(const std::vector<measured_launch>& launches) {
    if (!times_.empty()) return;
    for (const auto& launch : launches)
      if (const auto at = launch.values.find(m_.time); at != launch.values.end()) times_[launch.kernel] += at->second.value;
  }

  /// Whose work a call was, and how long it kept the device; of the first pass that knows. A tool that cannot be told when to look sees the
  /// runner's own kernels, too.
  void add_kernels(const std::vector<measured_launch>& launches) {
    if (pass_.whole_run || !out_.kernels.empty()) return;
    double nanoseconds = 0;
    std::set<std::string> known;
    for (const auto& launch : launches) {
      if (!launch.kernel.empty() && known.insert(launch.kernel).second) out_.kernels.push_back(launch.kernel);
      if (const auto at = launch.values.find(m_.time); at != launch.values.end() && at->second.unit == "ns") nanoseconds += at->second.value;
    }
    out_.cut = limited() && launches.size() >= static_cast<size_t>(request_.max_launches);
    out_.device_seconds = nanoseconds * 1e-9 / static_cast<double>(std::max<int64_t>(1, request_.calls));
  }

  /// The most promising first: the tool's estimate of a kernel's gain, times the kernel's part of the time.
  void report_notes() {
    const auto worth = [&](const kernel_note& n) {
      const auto at = times_.find(n.kernel);
      return n.note.gain_percent * (times_.empty() ? 1 : at == times_.end() ? 0 : at->second);
    };
    std::stable_sort(notes_.begin(), notes_.end(), [&](const auto& a, const auto& b) { return worth(a) > worth(b); });
    for (size_t i = 0; i < std::min(notes_.size(), max_notes); ++i) {
      out_.notes.push_back(notes_[i].note);
      out_.notes.back().tool = tool_;
    }
  }

  const std::vector<std::pair<std::string, std::string>>& texts_of(const pass_output& output) const {
    const auto at = std::find_if(texts_.begin(), texts_.end(), [&](const auto& t) { return t.first == &output; });
    return at->second;
  }

  void name_absent(const std::vector<std::string>& names) {
    std::vector<std::string> absent;
    for (const auto& name : names)
      if (std::none_of(out_.metrics.begin(), out_.metrics.end(), [&](const auto& known) { return known.name == name; })) absent.push_back(name);
    if (absent.empty()) return;
    const auto count = absent.size();
    absent.resize(std::min(count, named_at_most));
    missing("no value for " + join(absent, ", ") + (count > named_at_most ? " and " + std::to_string(count - named_at_most) + " more" : "") +
            " (this device or this version does not have them)");
  }

  const collect_manifest& m_;
  const collect_pass& pass_;
  const manifest_request& request_;
  const std::string& tool_;
  source_result& out_;
  std::map<std::string, double>& times_;  ///< kernel -> time, over the passes
  std::string printed_;
  std::vector<std::pair<const pass_output*, std::vector<std::pair<std::string, std::string>>>> texts_; ///< output -> {file name, content}
  std::map<const pass_output*, std::vector<measured_launch>> launches_;
  std::vector<kernel_note> notes_;
  std::vector<std::string> complaints_;
};

/// Names that would be read as an option, or that hold separators, never reach a command line.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isgraph(c) && c != ','; });
}

/// Which of the manifest's rules its metrics fulfil.
void apply_rules(const collect_manifest& m, source_result& out) {
  for (const auto& rule : m.rules) {
    const auto found = std::find_if(out.metrics.rbegin(), out.metrics.rend(), [&](const metric& v) { return v.name == rule.metric; });
    if (found == out.metrics.rend() || !std::isfinite(found->value)) continue;
    if (rule.below ? found->value >= rule.threshold : found->value <= rule.threshold) continue;
    out.told.push_back({rule.bottleneck, m.name, rule.metric, found->unit, rule.why, found->value, rule.threshold, rule.below, rule.confidence, rule.remedies});
  }
}

} // namespace

void collect_by_manifest(const collect_manifest& m, const manifest_request& request, const run_target& run, source_result& out) {
  const auto probe = probe_manifest(m);
  if (!probe.found || !probe.obstacle.empty()) {
    out.missing.push_back(m.name + ": " + (probe.found ? probe.obstacle : "not installed") + (probe.remedy.empty() ? "" : " (" + probe.remedy + ")"));
    return;
  }
  const auto tool = m.name + (probe.version.empty() ? "" : " " + probe.version);
  const stopwatch watch(request.max_seconds);
  const auto defaults = m.default_metrics();
  std::map<std::string, double> times;
  std::vector<std::string> unusable;
  for (const auto& name : request.extra_metrics)
    if (!is_plain_name(name)) unusable.push_back("'" + printable(name.substr(0, 80)) + "'");
  if (!unusable.empty()) {
    unusable.resize(std::min(unusable.size(), named_at_most));
    out.missing.push_back(m.name + ": no metric has such a name: " + join(unusable, ", "));
  }
  for (const auto& pass : m.passes) {
    if (request.stopped && request.stopped()) return;
    std::vector<std::string> names;
    if (request.default_metrics)
      for (const auto& [name, unit] : pass.metrics) names.push_back(name);
    for (const auto& name : request.extra_metrics) {
      if (!is_plain_name(name)) continue;
      const bool is_default = defaults.count(name) != 0;
      if (is_default ? !request.default_metrics && pass.metrics.count(name) : pass.extra) names.push_back(name);
    }
    const bool only_on_request = pass.extra || !pass.metrics.empty();
    if (names.empty() && (only_on_request || !request.default_metrics)) continue;
    if (pass.spare_time && !request.spare_passes) {
      out.missing.push_back(m.name + ": its pass '" + pass.name + "' was left out: the budget is small (--profile-seconds)");
      continue;
    }
    if (watch.left() < least_seconds || (pass.spare_time && watch.left() < request.max_seconds / 2)) {
      out.missing.push_back(m.name + ": no time left for its pass '" + pass.name + "' (budget " + format_number(request.max_seconds, 0) + " s)");
      continue;
    }
    one_pass(m, pass, request, tool, times, out).run(probe.program, names, run, watch.left());
  }
  apply_rules(m, out);
}

std::vector<collect_manifest> manifests_for(const std::string& backend, const std::vector<json>& registered, std::vector<std::string>* problems) {
  std::map<std::string, json> by_name;
  const auto complain = [&](const std::string& why) {
    if (problems) problems->push_back(why);
  };
  std::error_code unreadable;
  const auto folder = share_dir() / "profilers";
  for (const auto& file : fs::directory_iterator(folder, unreadable)) {
    if (file.path().extension() != ".json") continue;
    auto text = read_file(file.path(), 1u << 20);
    auto parsed = text ? parse_json(*text, file.path().string()) : expected<json>(fail(text.error()));
    if (parsed && parsed->is_object()) {
      const auto name = parsed->value("name", "");
      by_name[name] = std::move(*parsed);
    } else complain(parsed ? file.path().string() + " is not a JSON object" : parsed.error().message);
  }
  if (unreadable) complain("cannot read the shipped profilers in " + folder.string() + ": " + unreadable.message());
  for (const auto& manifest : registered)
    if (manifest.is_object() && manifest.value("name", "") != "") by_name[manifest.value("name", "")] = manifest;

  std::vector<collect_manifest> fitting;
  for (const auto& [name, manifest] : by_name) {
    if (!manifest.contains("collect") || manifest["collect"].is_null()) continue;
    auto m = parse_collect_manifest(manifest, "profiler " + name);
    if (!m) complain(render(m.error()));
    else if (std::find(m->backends.begin(), m->backends.end(), backend) != m->backends.end()) fitting.push_back(std::move(*m));
  }
  return fitting;
}

std::vector<std::string> asked_by_rules(const std::vector<finding>& findings, const std::string& backend, const std::vector<json>& registered) {
  std::vector<std::string> names;
  for (const auto& m : manifests_for(backend, registered))
    for (const auto& rule : m.rules)
      for (const auto& f : findings) {
        const bool its_finding = json(f.what).get<std::string>() == rule.bottleneck &&
                                 std::any_of(f.proof.begin(), f.proof.end(), [&](const evidence& e) { return e.metric == rule.metric; });
        if (!its_finding) continue;
        for (const auto& name : rule.ask)
          if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
  return names;
}

} // namespace pragma
