#include "synthesis/loops/region.hpp"

#include <algorithm>
#include <numeric>

namespace pragma::synthesis {

std::vector<bool> needed_for(const region& r, const std::vector<int>& roots) {
  std::vector<bool> needed(r.exprs.size(), false);
  for (int e : roots) needed[static_cast<size_t>(e)] = true;
  for (size_t i = r.exprs.size(); i-- > 0;)
    if (needed[i])
      for (int a : r.exprs[i].args) needed[static_cast<size_t>(a)] = true;
  return needed;
}

std::vector<bool> live_exprs(const region& r) {
  std::vector<int> values;
  for (const auto& s : r.stores) values.push_back(s.value);
  return needed_for(r, values);
}

void order_axes(region& r) {
  // Drop nothing that is used; order by stride in the largest access.
  const size_t n = r.axes.size();
  std::vector<const index_form*> accesses;
  for (const auto& s : r.stores) accesses.push_back(&s.at);
  for (const auto& e : r.exprs)
    if (e.kind == expr_kind::load || e.kind == expr_kind::index || e.kind == expr_kind::reduce) accesses.push_back(&e.at);
  std::vector<const index_form*> memory;
  for (const auto& s : r.stores) memory.push_back(&s.at);
  for (const auto& e : r.exprs)
    if (e.kind == expr_kind::load) memory.push_back(&e.at);
  const auto size = [&](const index_form* f) {
    double s = 1;
    for (const auto& t : f->terms) s *= static_cast<double>(r.axes[static_cast<size_t>(t.first)].extent);
    return s;
  };
  std::stable_sort(memory.begin(), memory.end(), [&](auto a, auto b) { return size(a) > size(b); });
  std::vector<int64_t> key(n, 0);
  for (size_t a = 0; a < n; ++a)
    for (const auto* f : memory)
      if (const auto c = f->coefficient(static_cast<int>(a)); c != 0) {
        key[a] = std::abs(c);
        break;
      }
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const auto x = static_cast<size_t>(a), y = static_cast<size_t>(b);
    if (r.axes[x].window != r.axes[y].window) return r.axes[y].window;
    return key[x] > key[y];
  });
  // Merge neighbours of one role that every access walks as one.
  std::vector<std::vector<int>> groups;
  std::vector<bool> guarded(n, false);
  for (const auto& a : r.axes)
    if (a.guard.output_axis >= 0) guarded[static_cast<size_t>(a.guard.output_axis)] = true;
  for (int a : order) {
    const auto& x = r.axes[static_cast<size_t>(a)];
    bool merged = false;
    if (!groups.empty() && !x.window && !guarded[static_cast<size_t>(a)] && a != r.scan_axis) {
      const int b = groups.back().back();
      const auto& y = r.axes[static_cast<size_t>(b)];
      merged = !y.window && !guarded[static_cast<size_t>(b)] && y.reduced == x.reduced && b != r.scan_axis;
      for (const auto* f : accesses) merged = merged && f->coefficient(b) == f->coefficient(a) * x.extent;
    }
    if (merged) groups.back().push_back(a);
    else groups.push_back({a});
  }
  std::vector<int> renamed(n, -1); // an axis that was merged away follows from the last of its group
  std::vector<axis> axes;
  for (const auto& g : groups) {
    axis merged = r.axes[static_cast<size_t>(g.back())];
    for (size_t i = 0; i + 1 < g.size(); ++i) merged.extent *= r.axes[static_cast<size_t>(g[i])].extent;
    renamed[static_cast<size_t>(g.back())] = static_cast<int>(axes.size());
    axes.push_back(merged);
  }
  const auto rename = [&](index_form& f) {
    std::vector<std::pair<int, int64_t>> terms;
    for (const auto& [a, c] : f.terms)
      if (renamed[static_cast<size_t>(a)] >= 0) terms.push_back({renamed[static_cast<size_t>(a)], c});
    std::sort(terms.begin(), terms.end());
    f.terms = terms;
  };
  std::vector<uint32_t> bits(n, 0);
  for (size_t g = 0; g < groups.size(); ++g)
    for (int a : groups[g]) bits[static_cast<size_t>(a)] = 1u << g;
  for (auto& s : r.stores) rename(s.at);
  for (auto& e : r.exprs) {
    rename(e.at);
    uint32_t mask = 0;
    for (size_t a = 0; a < n; ++a)
      if (e.axes & (1u << a)) mask |= bits[a];
    e.axes = mask;
  }
  for (auto& a : axes)
    if (a.guard.output_axis >= 0) a.guard.output_axis = renamed[static_cast<size_t>(a.guard.output_axis)];
  if (r.scan_axis >= 0) r.scan_axis = renamed[static_cast<size_t>(r.scan_axis)];
  r.axes = std::move(axes);
}

} // namespace pragma::synthesis
