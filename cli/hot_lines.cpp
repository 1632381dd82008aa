// Hot lines for Speedscope: https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources
#include "cli/interchange.hpp"

#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/html.hpp"
#include "diagnosis/conductor.hpp"

#include <algorithm>
#include <cmath>

namespace pragma {

namespace {

std::string line_of(const std::string& source, int number) {
  const auto lines = split(source, '\n');
  return number > 0 && static_cast<size_t>(number) <= lines.size() ? trim(printable(lines[static_cast<size_t>(number) - 1])) : std::string();
}

/// Frames are shared by all profiles of a file.
class frames {
public:
  json all = json::array();
  size_t index_of(json frame) {
    const auto known = std::find(all.begin(), all.end(), frame);
    if (known != all.end()) return static_cast<size_t>(known - all.begin());
    all.push_back(std::move(frame));
    return all.size() - 1;
  }
};

} // namespace

expected<json> hot_lines_of(const json& document) {
  frames shared;
  json profiles = json::array();
  const int best = static_cast<int>(html::number_at(html::object_at(document, "run"), "best"));
  size_t active = 0;
  for (const auto& value : html::array_at(document, "iterations")) {
    auto it = from_json_value<iteration_record>(value, "an attempt of the run");
    if (!it) return fail(it.error());
    const auto line = it->code.measured.value("callgrind.hottest_line"), share = it->code.measured.value("callgrind.hottest_line_share");
    if (!line || !share || !(*share > 0) || !(*share <= 100)) continue;
    const std::string file = "attempt-" + std::to_string(it->number) + (it->code.language == "c++" ? ".cpp" : ".py");
    const int number = static_cast<int>(*line);
    const auto whole = shared.index_of({{"name", "pragma_kernel"}, {"file", file}});
    const auto hot = shared.index_of({{"name", "line " + std::to_string(number) + ": " + line_of(it->code.source, number)}, {"file", file}, {"line", number}});
    const auto rest = shared.index_of({{"name", "all other lines"}, {"file", file}});
    json samples = json::array({json::array({whole, hot})}), weights = json::array({*share});
    if (*share < 100) {
      samples.push_back({whole, rest});
      weights.push_back(100 - *share);
    }
    if (it->number == best) active = profiles.size();
    profiles.push_back({{"type", "sampled"}, {"name", "attempt " + std::to_string(it->number) + ": percent of the simulated instructions of one call"}, {"unit", "none"},
                        {"startValue", 0}, {"endValue", 100}, {"samples", std::move(samples)}, {"weights", std::move(weights)}});
  }
  if (profiles.empty())
    return fail(ec::not_found, "no attempt of the run has lines: nothing counted its instructions", "callgrind counts them where it is installed and has the time: `pragma optimize TASK.py --profile-seconds 10`");
  return json{{"$schema", "https://www.speedscope.app/file-format-schema.json"},
              {"shared", {{"frames", std::move(shared.all)}}},
              {"profiles", std::move(profiles)},
              {"activeProfileIndex", active},
              {"name", printable(html::text_at(html::object_at(html::object_at(document, "run"), "task"), "name"))},
              {"exporter", std::string("pragma@") + pragma_version}};
}

} // namespace pragma
