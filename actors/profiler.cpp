#include "actors/profiler.hpp"

namespace pragma {

profiler_actor::behavior_type profiler(profiler_actor::stateful_pointer<profiler_state>, std::shared_ptr<workbench> bench) {
  return {
      [bench](measure_atom, const measure_request& request) { return to_result(bench->measure(request)); },
      [bench](confirm_atom, const candidate& c) { return to_result(bench->confirm(c)); },
  };
}

} // namespace pragma
