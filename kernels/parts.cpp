#include "kernels/parts.hpp"

namespace pragma {

expected<parts> parts_of(const candidate& c) {
  auto document = parse_json(c.source, "a candidate of parts");
  if (!document) return fail(document.error());
  auto p = from_json_value<parts>(*document, "a candidate of parts");
  if (!p) return fail(p.error());
  for (const auto& step : p->steps)
    if (step.region >= static_cast<int>(p->regions.size())) return fail(ec::parse_error, "a candidate of parts: a step names region " + std::to_string(step.region) + " of " + std::to_string(p->regions.size()));
  return p;
}

expected<std::string> language_of_kernels(const candidate& c) {
  if (c.language != parts_language) return c.language;
  const auto p = parts_of(c);
  if (!p) return fail(p.error());
  return language_of(*p);
}

candidate candidate_of(const parts& p, std::string origin, std::string rationale) {
  candidate c;
  c.language = parts_language;
  c.compiler.clear();
  c.origin = std::move(origin);
  c.rationale = std::move(rationale);
  c.source = json(p).dump(-1, ' ', true, json::error_handler_t::replace);
  return c;
}

} // namespace pragma
