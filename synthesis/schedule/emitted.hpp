// What a schedule became in a language.
#pragma once

#include <string>

namespace pragma::synthesis {

struct emitted_source {
  std::string text;    ///< the whole source: header with task, reference and schedule, comments, code
  std::string program; ///< what the machine runs of it, without header and comments on the schedule: schedules with one program are equal
};

} // namespace pragma::synthesis
