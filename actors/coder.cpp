#include "actors/coder.hpp"

namespace pragma {

coder_actor::behavior_type coder(coder_actor::stateful_pointer<coder_state>, std::shared_ptr<coding_session> session) {
  return {
      [session](setup_atom, const coder_setup& setup) { return to_result(session->setup(setup)); },
      [session](code_atom, const code_request& request) { return to_result(session->next(request)); },
  };
}

} // namespace pragma
