#include "actors/run_log.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>

namespace pragma {

namespace {

constexpr uint64_t longest_log = 256u << 10; ///< bytes; then the older half goes
constexpr size_t longest_text = 400;

std::string as_line(const log_line& line) { return json(line).dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

/// A line that was cut by a crash, or is not ours, counts as none.
std::optional<log_line> parsed(const std::string& text) {
  const auto value = parse_if_json(text);
  if (value.is_discarded()) return std::nullopt;
  auto line = from_json_value<log_line>(value, "log");
  return line ? std::optional<log_line>(std::move(*line)) : std::nullopt;
}

std::string outcome_text(const iteration_record& r) {
  if (!r.passed()) return r.verdict.reason;
  const auto& time = r.code.measured.time;
  return format_number(time.speedup.value, 2) + "x over Torch (" + format_number(time.speedup.low, 2) + " to " + format_number(time.speedup.high, 2) + ")" + (r.new_best ? ", new best" : "");
}

} // namespace

log_line line_of(const run_event& event) {
  log_line line;
  line.time = event.time;
  line.attempt = event.attempt;
  line.stage = event.what;
  line.text = event.text;
  if (event.what == "iteration") {
    const auto& r = event.iteration;
    line.attempt = r.number;
    line.stage = r.passed() ? "passed" : r.established() ? "failed at " + r.stage() : "not established";
    line.text = outcome_text(r);
  } else if (event.what == "loaded") {
    line.text = event.loaded.task.category + "; against " + event.loaded.baseline + " on " + event.loaded.cpu;
  }
  if (event.what == "loading" || event.what == "loaded") line.attempt = 0;
  if (line.text.size() > longest_text) {
    size_t end = longest_text;
    while (end > 0 && (static_cast<unsigned char>(line.text[end]) & 0xc0) == 0x80) --end;
    line.text = line.text.substr(0, end) + " ...";
  }
  return line;
}

std::filesystem::path run_log_file(const std::filesystem::path& folder, const std::string& run) {
  std::string name; // ids are letters, digits, '-' and '.': whatever else somebody asks for leads to no other folder
  for (const char c : run) name += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || (c == '.' && !name.empty()) ? c : '_';
  return folder / (name + ".jsonl");
}

run_log::run_log(const std::filesystem::path& folder, const std::string& run) : file_(run_log_file(folder, run)) {
  std::error_code ignored;
  if (std::filesystem::create_directories(folder, ignored)) // a run's paths and errors are its user's, as the store is
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, ignored);
  if (const auto before = read_run_log(folder, run, 0); !before.empty()) next_ = before.back().n + 1;
  else std::filesystem::remove(file_, ignored); // nothing in it is a line
  if (const auto text = read_file(file_, 2 * longest_log); text && !text->empty() && text->back() != '\n') std::ofstream(file_, std::ios::app) << "\n"; // cut by a crash
}

void run_log::add(log_line line) {
  line.n = next_++;
  std::error_code none;
  if (std::filesystem::file_size(file_, none) > longest_log && !none)
    if (const auto text = read_file(file_)) {
      const auto half = text->find('\n', text->size() / 2);
      (void)write_file_atomic(file_, half == std::string::npos ? std::string() : text->substr(half + 1));
    }
  std::ofstream out(file_, std::ios::app);
  out << (broken_ ? "\n" : "") << as_line(line) << std::flush;
  broken_ = !out;
}

std::vector<log_line> read_run_log(const std::filesystem::path& folder, const std::string& run, uint64_t from) {
  std::vector<log_line> lines;
  const auto text = read_file(run_log_file(folder, run), 2 * longest_log);
  if (!text) return lines;
  for (size_t end = text->size(); end > 0;) { // from the end: mostly the last few are asked for
    const auto begin = end < 2 ? std::string::npos : text->rfind('\n', end - 2);
    const auto at = begin == std::string::npos ? 0 : begin + 1;
    auto line = parsed(text->substr(at, end - at));
    if (line && line->n < from) break;
    if (line) lines.push_back(std::move(*line));
    end = at;
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

} // namespace pragma
