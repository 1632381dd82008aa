#include "diagnosis/what_limits.hpp"

#include "base/json.hpp"
#include "base/text.hpp"

namespace pragma {

namespace {

constexpr double worth_a_try = 0.95;      ///< of the time
constexpr double far_from_roofline = 60, vectorised = 90, predicted = 1; ///< percent

std::string name_of(const finding& f) { return json(f.what).get<std::string>() + (f.level.empty() ? "" : " (" + f.level + ")"); }

std::vector<std::string> ruled_out(const profile& p) {
  std::vector<std::string> all;
  if (const auto share = p.value("roofline_share"); share && *share < far_from_roofline)
    all.push_back("bandwidth and arithmetic peak (" + format_number(*share, 0) + "% of the measured roofline)");
  if (const auto share = p.value("hot_loop.vector_share"); share && *share >= vectorised) all.push_back("scalar code (" + format_number(*share, 0) + "% of the hot loop is vectors)");
  for (const char* name : {"branch_miss_rate", "callgrind.branch_miss_rate"})
    if (const auto rate = p.value(name); rate && *rate < predicted) {
      all.push_back("branches (" + format_number(*rate, 2) + "% mispredicted)");
      break;
    }
  return all;
}

} // namespace

bool worth_following(const finding& f) {
  return !f.at_limit && (f.confidence >= explaining_confidence || f.seconds_without <= 0 || f.seconds_without < worth_a_try * f.seconds);
}

std::string what_limits(const std::vector<finding>& findings, const profile* measured) {
  if (!findings.empty() && findings.front().confidence >= explaining_confidence) return name_of(findings.front()) + " - " + findings.front().why;
  if (!findings.empty() && findings.front().at_limit) return name_of(findings.front()) + " - " + findings.front().why;
  std::string text = "no finding explains the time";
  if (!findings.empty()) text += "; " + name_of(findings.front()) + " comes nearest, with a confidence of " + format_number(findings.front().confidence, 2);
  if (const auto out = measured ? ruled_out(*measured) : std::vector<std::string>{}; !out.empty()) text += ". Ruled out: " + join(out, ", ");
  return text;
}

} // namespace pragma
