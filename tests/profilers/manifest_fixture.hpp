// What the tests of collection by manifest share: manifests from files, a candidate that is any command, and a look at results.
#pragma once

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "profilers/by_manifest.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

namespace pragma {

inline const std::filesystem::path tests_folder = TESTS_DIR;
inline const std::filesystem::path recorded = tests_folder / "profilers/data";

inline std::string content(const std::filesystem::path& file) {
  auto text = read_file(file);
  REQUIRE(text);
  return *text;
}

/// The text of tests/profilers/tally/tally.json with its folder filled in.
inline std::string tally_text() {
  auto text = content(tests_folder / "profilers/tally/tally.json");
  const std::string mark = "@FOLDER@", folder = (tests_folder / "profilers/tally").string();
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) text.replace(at, mark.size(), folder);
  return text;
}

inline collect_manifest parsed(const json& manifest, const std::string& what = "manifest") {
  auto m = parse_collect_manifest(manifest, what);
  if (!m) FAIL(render(m.error()));
  return std::move(*m);
}

/// Runs `target` really, under the wrapper.
inline run_target runs(std::vector<std::string> target) {
  return [target](const std::vector<std::string>& wrapper, const std::filesystem::path& scratch, double timeout_seconds) {
    process_spec spec;
    spec.argv = wrapper;
    spec.argv.insert(spec.argv.end(), target.begin(), target.end());
    spec.cwd = scratch.string();
    spec.limits.wall_seconds = timeout_seconds;
    target_run ended;
    const auto result = run_process(spec);
    if (!result) {
      ended.problem = result.error().message;
      return ended;
    }
    ended.completed = result->ok();
    ended.out = result->out;
    ended.err = result->err;
    ended.seconds = result->wall_seconds;
    if (!ended.completed) ended.problem = describe_end(*result, timeout_seconds);
    return ended;
  };
}

inline const metric* metric_of(const source_result& result, const std::string& name) {
  for (const auto& m : result.metrics)
    if (m.name == name) return &m;
  return nullptr;
}

inline bool says(const std::vector<std::string>& lines, const std::string& word) {
  return std::any_of(lines.begin(), lines.end(), [&](const auto& l) { return l.find(word) != std::string::npos; });
}

} // namespace pragma
