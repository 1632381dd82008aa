#include "actors/verifier.hpp"

namespace pragma {

verifier_actor::behavior_type verifier(verifier_actor::stateful_pointer<verifier_state>, std::shared_ptr<workbench> bench) {
  return {
      [bench](load_atom, const load_request& request) { return to_result(bench->load(request)); },
      [bench](verify_atom, const candidate& c) { return to_result(bench->verify(c)); },
  };
}

} // namespace pragma
