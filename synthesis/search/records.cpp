// JSON of the schedule, defined once.
#include "synthesis/loops/region.hpp"
#include "diagnosis/finding.hpp"
#include "kernels/task.hpp"

#include "base/json_definitions.hpp"

#include "synthesis/schedule/schedule.hpp"
#include "synthesis/triton/schedule.hpp"
#include "synthesis/search/won_schedule.hpp"
