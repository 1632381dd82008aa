// JSON of the schedule, defined once.
#include "kernels/synthesis/region.hpp"
#include "diagnosis/profile.hpp"
#include "kernels/task.hpp"

#include "base/json_definitions.hpp"

#include "kernels/synthesis/schedule.hpp"
#include "kernels/synthesis/won_schedule.hpp"
