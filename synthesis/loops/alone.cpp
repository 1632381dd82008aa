#include "synthesis/loops/alone.hpp"

#include <algorithm>

namespace pragma::synthesis {

region_alone alone(const loop_program& program, size_t at) {
  region_alone result;
  const auto own = [&](int& buffer) {
    if (buffer < 0) return;
    auto place = std::find(result.buffers.begin(), result.buffers.end(), buffer);
    if (place == result.buffers.end()) {
      place = result.buffers.insert(place, buffer);
      auto copy = program.buffers[static_cast<size_t>(buffer)];
      copy.name = "memory" + std::to_string(result.program.buffers.size());
      result.program.buffers.push_back(std::move(copy));
    }
    buffer = static_cast<int>(place - result.buffers.begin());
  };
  for (size_t i = at; i < program.regions.size(); ++i) {
    if (i != at && program.regions[i].host != static_cast<int>(at)) continue;
    auto r = program.regions[i];
    if (i != at) r.host = 0;
    const auto live = live_exprs(r);
    for (size_t k = 0; k < r.exprs.size(); ++k) {
      auto& e = r.exprs[k];
      if (!live[k] && e.kind == expr_kind::load) e = {}; // nothing declares memory that nobody reads
      own(e.buffer);
    }
    if (r.anchor) {
      own(r.anchor->a);
      own(r.anchor->b);
    }
    for (auto& s : r.stores) own(s.buffer);
    result.program.regions.push_back(std::move(r));
  }
  return result;
}

} // namespace pragma::synthesis
