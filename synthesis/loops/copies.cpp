#include "synthesis/loops/copies.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

/// The buffer that `r` copies element by element into its only store, or -1.
int copied(const region& r, const loop_program& p) {
  if (r.anchor || r.stores.size() != 1 || r.scan_axis >= 0) return -1;
  const auto& s = r.stores[0];
  const auto& value = r.exprs[static_cast<size_t>(s.value)];
  if (value.kind != expr_kind::load || !value.args.empty() || value.buffer == s.buffer) return -1;
  const auto &from = p.buffers[static_cast<size_t>(value.buffer)], &to = p.buffers[static_cast<size_t>(s.buffer)];
  int64_t elements = 1;
  for (const auto& a : r.axes) {
    if (a.reduced || a.window || a.contracted) return -1;
    elements *= a.extent;
  }
  const bool whole = elements == to.elements && from.elements == to.elements && from.dtype == to.dtype;
  return whole && value.at.offset == s.at.offset && value.at.terms == s.at.terms && value.at.dynamic < 0 && s.at.dynamic < 0 ? value.buffer : -1;
}

void rename(loop_program& p, int from, int to) {
  const auto change = [&](int& buffer) { buffer = buffer == from ? to : buffer; };
  for (auto& r : p.regions) {
    for (auto& s : r.stores) change(s.buffer);
    for (auto& e : r.exprs) change(e.buffer);
    if (r.anchor) {
      change(r.anchor->a);
      change(r.anchor->b);
    }
  }
}

} // namespace

void drop_copies(loop_program& p) {
  for (size_t i = 0; i < p.regions.size();) {
    const int from = copied(p.regions[i], p);
    const int to = from < 0 ? -1 : p.regions[i].stores[0].buffer;
    const auto scratch = [&](int b) { return p.buffers[static_cast<size_t>(b)].kind == buffer_kind::scratch; };
    if (from < 0 || (!scratch(to) && !scratch(from))) {
      ++i;
      continue;
    }
    p.regions.erase(p.regions.begin() + static_cast<std::ptrdiff_t>(i));
    scratch(to) ? rename(p, to, from) : rename(p, from, to);
  }
}

} // namespace pragma::synthesis
