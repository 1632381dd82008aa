// One way to change a schedule, for the searches of both kinds of schedule (search.hpp).
#pragma once

#include "diagnosis/finding.hpp"

#include <functional>
#include <string>
#include <vector>

namespace pragma::synthesis {

struct loop_program;

template <class Schedule> struct schedule_move {
  std::string name;                  ///< "streaming stores"
  std::string why;                   ///< what it is good for, one clause
  std::vector<bottleneck> answers;   ///< finding classes that it answers
  std::function<bool(Schedule&, const loop_program&)> apply; ///< false when it does not fit this program or changes nothing
};

} // namespace pragma::synthesis
