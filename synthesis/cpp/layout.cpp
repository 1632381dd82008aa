#include "synthesis/cpp/layout.hpp"

namespace pragma::synthesis {

namespace {

void find_live(const region& r, region_layout& l) {
  const size_t n = r.exprs.size();
  l.live.assign(n, false);
  l.after_reduce.assign(n, false);
  l.uses.assign(n, 0);
  const auto take = [&](int e) {
    l.live[static_cast<size_t>(e)] = true;
    ++l.uses[static_cast<size_t>(e)];
  };
  for (const auto& s : r.stores) take(s.value);
  for (size_t i = n; i-- > 0;) {
    if (!l.live[i]) continue;
    auto args = r.exprs[i].args;
    for (const auto& [sum, m] : l.plan.moments)
      if (m.squares == static_cast<int>(i)) {
        args = {m.source};
        l.live[static_cast<size_t>(sum)] = true; // found in the same pass, used by name only if somebody else does
      }
    for (int a : args) take(a);
  }
  for (size_t i = 0; i < n; ++i) {
    l.after_reduce[i] = r.exprs[i].kind == expr_kind::reduce;
    for (int a : r.exprs[i].args) l.after_reduce[i] = l.after_reduce[i] || l.after_reduce[static_cast<size_t>(a)];
  }
}

} // namespace

lifetime region_layout::of(const region& r, int e) const {
  const auto axes = r.exprs[static_cast<size_t>(e)].axes;
  if (axes & element_axes) return lifetime::element;
  const bool by_lane = vector_axis >= 0 && (axes & (1u << vector_axis));
  return columns && (by_lane || after_reduce[static_cast<size_t>(e)]) ? lifetime::tile : lifetime::row;
}

region_layout layout_of(const region& r, const region_schedule& s) {
  region_layout l;
  l.vector_axis = s.vector_axis;
  const bool any_reduced = r.reduced_mask() != 0, vectorised = l.vector_axis >= 0;
  l.columns = any_reduced && vectorised && !r.axes[static_cast<size_t>(l.vector_axis)].reduced;
  l.element_axes = any_reduced ? r.reduced_mask() : vectorised ? 1u << l.vector_axis : 0;
  for (size_t a = 0; a < r.axes.size(); ++a) {
    if (static_cast<int>(a) == l.vector_axis || static_cast<int>(a) == r.item) continue;
    (l.element_axes & (1u << a) ? l.inner : l.outer).push_back(static_cast<int>(a));
  }
  l.plan = plan_passes(r, l.element_axes, s.merge_passes && !l.columns);
  if (s.keep_rows && !l.columns) l.kept = values_worth_keeping(r, l.plan, l.element_axes);
  find_live(r, l);
  return l;
}

} // namespace pragma::synthesis
