// JSON of the schedule, defined once.
#include "kernels/synthesis/region.hpp"
#include "diagnosis/finding.hpp"
#include "kernels/task.hpp"

#include "base/json_definitions.hpp"

#include "kernels/synthesis/schedule.hpp"
#include "kernels/synthesis/triton_schedule.hpp"
#include "kernels/synthesis/won_schedule.hpp"
