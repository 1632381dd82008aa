// What the compiler says of the candidate's loops: gcc -fopt-info-vec-all and clang -Rpass remarks.
#include "base/text.hpp"
#include "profilers/sources.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

namespace pragma {

namespace formats {

namespace {

/// "path/candidate.cpp:12:27: missed: text" taken apart; file is the base name.
struct place_line {
  std::string file, kind, text;
  int line = 0;
};

bool digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool read_line(const std::string& line, place_line& out) {
  // The kind is the first word after "file:line:column: ".
  for (const char* kind : {": optimized: ", ": missed: ", ": remark: "}) {
    const auto at = line.find(kind);
    if (at == std::string::npos) continue;
    const auto place = line.substr(0, at);
    const auto column = place.rfind(':');
    if (column == std::string::npos || column == 0) continue;
    const auto number = place.rfind(':', column - 1);
    if (number == std::string::npos) continue;
    const auto digits_of_line = place.substr(number + 1, column - number - 1);
    if (!digits(digits_of_line) || !digits(place.substr(column + 1))) continue;
    const auto slash = place.rfind('/', number);
    const auto begin = slash == std::string::npos ? 0 : slash + 1;
    out.file = place.substr(begin, number - begin);
    out.line = std::atoi(digits_of_line.c_str());
    out.kind = trim(std::string(kind).substr(2));
    out.kind.pop_back();
    out.text = trim(line.substr(at + std::string(kind).size()));
    return true;
  }
  return false;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// gcc reports every loop of a nest; that an outer loop stays scalar round a vectorised inner one is no news.
bool about_outer_loop(std::string_view reason) {
  return has(reason, "loop nest") || has(reason, "nested loops") || has(reason, "outer loop") || has(reason, "inner-loop count");
}

/// "statement clobbers memory: _51 = __builtin_expf (_27);" -> "expf".
std::string called_builtin(const std::string& reason) {
  const std::string mark = "__builtin_";
  const auto at = reason.find(mark);
  if (reason.rfind("statement clobbers memory", 0) != 0 || at == std::string::npos) return "";
  return reason.substr(at + mark.size(), reason.find_first_of(" (", at) - at - mark.size());
}

void read_gcc(const std::vector<place_line>& lines, std::string_view source, std::vector<remark>& out, const std::string& compiler) {
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto& l = lines[i];
    if (l.file != source) continue;
    if (l.kind == "optimized") {
      if (has(l.text, "vectorized using")) out.push_back({l.line, compiler, "vectorized", l.text});
      else if (has(l.text, "unrolled")) out.push_back({l.line, compiler, "unrolled", l.text});
      continue;
    }
    if (l.kind != "missed" || !has(l.text, "couldn't vectorize loop")) continue;
    // The reason is the next line, which stands where the obstacle is: often inside a header.
    std::string reason;
    if (i + 1 < lines.size() && lines[i + 1].kind == "missed" && !has(lines[i + 1].text, "couldn't vectorize loop")) {
      reason = lines[i + 1].text;
      if (reason.rfind("not vectorized: ", 0) == 0) reason = reason.substr(16);
      if (const auto callee = called_builtin(reason); !callee.empty()) reason = "calls " + callee + " (" + reason + ")";
      if (lines[i + 1].file == source && lines[i + 1].line != l.line) reason += " (line " + std::to_string(lines[i + 1].line) + ")";
    }
    if (about_outer_loop(reason)) continue;
    out.push_back({l.line, compiler, "missed", reason.empty() ? l.text : "not vectorized: " + reason});
  }
}

void read_clang(const std::vector<place_line>& lines, std::string_view source, std::vector<remark>& out, const std::string& compiler) {
  std::vector<std::string> reasons; // analysis remarks come before the one that names the loop
  for (const auto& l : lines) {
    auto text = l.text.substr(0, l.text.rfind(" [-R"));
    if (has(l.text, "[-Rpass-analysis=loop-vectorize]")) {
      if (text.rfind("loop not vectorized: ", 0) == 0) text = text.substr(21);
      if (std::find(reasons.begin(), reasons.end(), text) == reasons.end()) reasons.push_back(text);
    } else if (has(l.text, "[-Rpass-missed=loop-vectorize]")) {
      if (l.file == source) {
        if (!reasons.empty()) text = "not vectorized: " + join(reasons, "; ");
        out.push_back({l.line, compiler, "missed", text});
      }
      reasons.clear();
    } else if (has(l.text, "[-Rpass=")) {
      reasons.clear();
      if (l.file == source) out.push_back({l.line, compiler, has(text, "unrolled") ? "unrolled" : "vectorized", text});
    }
  }
}

bool about_loop(const remark& r) { return has(r.text, "loop vectorized") || has(r.text, "vectorized loop"); }

} // namespace

std::vector<remark> parse_remarks(std::string_view text, std::string_view source_name, const std::string& compiler, size_t limit) {
  std::vector<place_line> lines;
  for (const auto& line : split(text, '\n'))
    if (place_line parsed; read_line(line, parsed)) lines.push_back(std::move(parsed));
  std::vector<remark> all;
  if (has(text, "[-Rpass")) read_clang(lines, source_name, all, compiler);
  else read_gcc(lines, source_name, all, compiler);

  std::set<int> vectorized;
  for (const auto& r : all)
    if (r.kind == "vectorized" && about_loop(r)) vectorized.insert(r.line);
  std::vector<remark> kept;
  std::set<std::tuple<int, std::string, std::string>> seen;
  for (const char* kind : {"vectorized", "missed", "unrolled"})
    for (const auto& r : all) {
      if (r.kind != kind || (r.kind == "missed" && vectorized.count(r.line) != 0)) continue;
      if (kept.size() < limit && seen.emplace(r.line, r.kind, r.text).second) kept.push_back(r);
    }
  return kept;
}

remark_counts count_remarks(const std::vector<remark>& remarks) {
  std::set<int> vectorized, missed;
  remark_counts counts;
  for (const auto& r : remarks) {
    if (r.kind == "missed") missed.insert(r.line);
    if (r.kind != "vectorized" || !about_loop(r)) continue;
    vectorized.insert(r.line);
    if (const auto at = r.text.find("using "); at != std::string::npos)
      counts.vector_bytes = std::max(counts.vector_bytes, std::atoi(r.text.c_str() + at + 6));
  }
  counts.vectorized = static_cast<int>(vectorized.size());
  counts.missed = static_cast<int>(missed.size());
  return counts;
}

} // namespace formats

void remark_metrics(const build_output& with_remarks, source_result& out) {
  out.remarks = formats::parse_remarks(with_remarks.remarks_text, candidate_file_name, with_remarks.compiler_version);
  const auto counts = formats::count_remarks(out.remarks);
  const auto add = [&](const char* name, int value, const char* unit) {
    out.metrics.push_back({name, static_cast<double>(value), unit, with_remarks.compiler_version, provenance::static_analysis, ""});
  };
  add("remarks.vectorized_loops", counts.vectorized, "count");
  add("remarks.missed_loops", counts.missed, "count");
  if (counts.vector_bytes > 0) add("remarks.vector_bytes", counts.vector_bytes, "bytes");
}

} // namespace pragma
