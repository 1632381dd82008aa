#include "actors/knowledge.hpp"

namespace pragma {

expected<looked_up> explain_metrics(const library& compendium, const look_up& wanted) {
  looked_up answer;
  for (const auto& metric : wanted.metrics) {
    bool exact = false;
    auto found = compendium.show(metric, {}, 1, &exact);
    if (!found) return fail(found.error());
    if (!exact || found->empty()) continue;
    const auto& e = found->front();
    citation c{metric, e.id, e.meaning, e.reading, {}, {}};
    for (const auto& s : e.sources) { // a source with the very words is worth most
      if (c.url.empty() || (c.quote.empty() && !s.quote.empty())) {
        c.url = s.url;
        c.quote = s.quote;
      }
    }
    answer.known.push_back(std::move(c));
  }
  return answer;
}

knowledge_actor::behavior_type knowledge(knowledge_actor::stateful_pointer<knowledge_state> self, library_paths paths, embedding_config embedding) {
  return {
      [self, paths, embedding](explain_atom, const look_up& wanted) -> caf::result<looked_up> {
        auto& compendium = self->state.compendium;
        if (!compendium) {
          auto opened = library::open(paths, embedding, true);
          if (!opened) return to_caf(opened.error());
          compendium.emplace(std::move(*opened));
        }
        return to_result(explain_metrics(*compendium, wanted));
      },
  };
}

} // namespace pragma
