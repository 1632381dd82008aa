// JSON of this room's plain structs: see PRAGMA_JSON in base/json.hpp.
#include "kernels/candidate.hpp"
#include "kernels/task.hpp"
#include "kernels/verdict.hpp"

#include "base/json_definitions.hpp"

#include "diagnosis/profile.hpp"
#include "diagnosis/rules.hpp"
#include "diagnosis/time_table.hpp"
#include "diagnosis/finding.hpp"
#include "diagnosis/brief.hpp"
#include "diagnosis/conductor.hpp"
#include "diagnosis/scores.hpp"

namespace pragma {

#define PRAGMA_RECORD_FIELDS                                                                                           \
  number, code, verdict, findings, new_best, against_best, table, reasoning, actions, code_seconds, build_seconds, verify_seconds, time_seconds, profile_seconds, wall_seconds, finished

void to_json(json& nlohmann_json_j, const iteration_record& nlohmann_json_t) {
  NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_TO, PRAGMA_RECORD_FIELDS))
  const auto& r = nlohmann_json_t;
  nlohmann_json_j.update({{"candidate", r.code.id()}, {"origin", r.code.origin}, {"stage", r.verdict.stage}, {"reason", r.verdict.reason}});
}

void from_json(const json& nlohmann_json_j, iteration_record& nlohmann_json_t) {
  const iteration_record nlohmann_json_default_obj{};
  NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_FROM_WITH_DEFAULT, PRAGMA_RECORD_FIELDS))
  auto& r = nlohmann_json_t;
  const auto& j = nlohmann_json_j;
  r.code.origin = j.value("origin", r.code.origin);
  r.code.schedule = j.value("schedule", r.code.schedule);
  r.verdict.stage = j.value("stage", r.verdict.stage);
  r.verdict.reason = j.value("reason", r.verdict.reason);
  r.verdict.log = j.value("log", r.verdict.log);
}

} // namespace pragma
