#include "synthesis/loops/anchors.hpp"

#include "synthesis/loops/region.hpp"

#include <algorithm>
#include <set>

namespace pragma::synthesis {

std::vector<bool> depends_on(const tensor_program& p, int anchor) {
  std::vector<bool> found(p.nodes.size(), false);
  found[static_cast<size_t>(anchor)] = true;
  for (size_t i = static_cast<size_t>(anchor) + 1; i < p.nodes.size(); ++i)
    for (int a : p.nodes[i].args)
      if (found[static_cast<size_t>(a)]) found[i] = true;
  return found;
}

std::map<int, int> anchor_tails(const tensor_program& p) {
  const size_t n = p.nodes.size();
  // Nodes that some output needs; the list also holds what rules made and nobody took.
  std::vector<bool> live(n, false);
  for (int o : p.outputs) live[static_cast<size_t>(o)] = true;
  for (size_t i = n; i-- > 0;)
    if (live[i])
      for (int a : p.nodes[i].args) live[static_cast<size_t>(a)] = true;
  std::vector<std::vector<int>> users(n);
  for (size_t i = 0; i < n; ++i)
    if (live[i])
      for (int a : p.nodes[i].args) users[static_cast<size_t>(a)].push_back(static_cast<int>(i));
  const std::set<int> outputs(p.outputs.begin(), p.outputs.end());
  std::map<int, int> tails;
  for (size_t i = 0; i < n; ++i) {
    if (p.nodes[i].kind != node_kind::anchor || !live[i]) continue;
    const int anchor = static_cast<int>(i);
    const auto depends = depends_on(p, anchor);
    // All values of the anchor's size that are pointwise in it.
    std::set<int> cone{anchor};
    for (size_t j = i + 1; j < n; ++j) {
      const auto& x = p.nodes[j];
      if (!live[j] || !depends[j] || x.elements() != p.nodes[i].elements()) continue;
      const bool rearranged = x.kind == node_kind::reshape || x.kind == node_kind::view;
      bool inside = x.kind == node_kind::pointwise || rearranged;
      for (const auto& m : x.map) inside = inside && m.offset == 0 && m.step == 1;
      for (int a : x.args) inside = inside && (!depends[static_cast<size_t>(a)] || cone.count(a));
      if (inside) cone.insert(static_cast<int>(j));
    }
    int tail = anchor;
    for (auto it = cone.rbegin(); it != cone.rend() && tail == anchor; ++it) {
      // Everything below *it may be used inside only.
      bool closed = true;
      for (int inner : cone) {
        if (inner >= *it) break;
        closed = closed && !outputs.count(inner);
        for (int u : users[static_cast<size_t>(inner)]) closed = closed && u <= *it && cone.count(u);
      }
      // Values beside the tail that are used by later cone members only do not count against it: u <= *it says that.
      if (closed && p.nodes[static_cast<size_t>(*it)].kind == node_kind::pointwise) tail = *it;
    }
    tails[anchor] = tail;
  }
  return tails;
}

namespace {

void merge_axes(region& r, std::vector<int>& list, const std::vector<index_form*>& forms, bool& ok) {
  if (list.size() < 2) return;
  // How memory is walked along an axis of extent 1 does not matter: it lies before all others.
  std::stable_partition(list.begin(), list.end(), [&](int a) { return r.axes[static_cast<size_t>(a)].extent == 1; });
  const int last = list.back();
  int64_t extent = r.axes[static_cast<size_t>(last)].extent;
  for (size_t i = list.size() - 1; i-- > 0;) {
    const int64_t own = r.axes[static_cast<size_t>(list[i])].extent;
    for (const auto* f : forms) ok = ok && (own == 1 || f->coefficient(list[i]) == f->coefficient(last) * extent);
    extent *= own;
  }
  if (!ok) return;
  uint32_t gone = 0;
  for (size_t i = 0; i + 1 < list.size(); ++i) {
    gone |= 1u << list[i];
    r.axes[static_cast<size_t>(list[i])] = axis{};
    r.axes[static_cast<size_t>(list[i])].contracted = true;
  }
  r.axes[static_cast<size_t>(last)].extent = extent;
  for (auto* f : forms)
    f->terms.erase(std::remove_if(f->terms.begin(), f->terms.end(), [&](const auto& t) { return gone & (1u << t.first); }), f->terms.end());
  for (auto& e : r.exprs)
    if (e.axes & gone) e.axes = (e.axes & ~gone) | 1u << last;
  list = {last};
}

} // namespace

bool arrange_contraction(region& r) {
  auto& c = *r.anchor;
  if (c.recurrent()) return true; // its axes are one each, and nothing follows on its tiles
  const auto live = live_exprs(r);
  std::vector<index_form*> forms;
  for (auto& s : r.stores) forms.push_back(&s.at);
  uint32_t columns = 0;
  for (int a : c.n) columns |= 1u << a;
  bool varies = false; // some value that follows varies along the columns
  for (size_t i = 0; i < r.exprs.size(); ++i) {
    auto& e = r.exprs[i];
    if (!live[i] || (e.kind != expr_kind::load && e.kind != expr_kind::index)) continue;
    if (!e.args.empty()) return false;
    forms.push_back(&e.at);
    varies = varies || (e.axes & columns);
  }
  bool ok = true;
  if (c.op == operation::convolution) {
    if (c.strided_store()) {
      const auto& s = r.stores[0];
      const bool rows = c.dims.back().out == 1 || s.at.coefficient(c.dims.back().out_axis) == 1;
      return !varies && r.stores.size() == 1 && rows && r.exprs[static_cast<size_t>(s.value)].dtype == dtype::float32;
    }
    merge_axes(r, c.n, forms, ok);
    return ok;
  }
  forms.push_back(&c.a_at);
  forms.push_back(&c.b_at);
  merge_axes(r, c.n, forms, ok);
  if (ok) merge_axes(r, c.m, forms, ok);
  if (!ok) return false;
  const auto& where = r.stores[0].at;
  if (where.coefficient(c.n[0]) != 1 && where.coefficient(c.m[0]) == 1) { // the transposed product stores side by side
    std::swap(c.n, c.m);
    std::swap(c.a, c.b);
    std::swap(c.a_at, c.b_at);
  }
  return true;
}

std::optional<triangle> triangle_of(const region& r, double beyond) {
  if (!r.anchor || r.stores.size() != 1 || r.anchor->m.size() != 1 || r.anchor->n.size() != 1) return std::nullopt;
  const auto at = [&](int e) -> const expr& { return r.exprs[static_cast<size_t>(e)]; };
  const auto& kept = at(r.stores[0].value);
  if (kept.op != operation::select) return std::nullopt;
  const auto is_beyond = [&](int e) { return at(e).kind == expr_kind::constant && at(e).value == beyond; };
  const bool turned = is_beyond(kept.args[1]); // what is said is where it is masked
  if (!turned && !is_beyond(kept.args[2])) return std::nullopt;
  const auto& inside = at(kept.args[0]);
  if (inside.op != operation::greater_equal && inside.op != operation::less_equal) return std::nullopt;
  const auto& column = at(inside.args[0]);
  int row = inside.args[1];
  triangle t;
  t.upper = inside.op == operation::greater_equal;
  if (at(row).op == operation::add && at(at(row).args[1]).kind == expr_kind::constant) {
    t.diagonal = static_cast<int64_t>(at(at(row).args[1]).value);
    row = at(row).args[0];
  }
  if (turned) t = {!t.upper, t.diagonal + (t.upper ? -1 : 1)};
  const auto is_axis = [](const expr& e, int axis) {
    return e.kind == expr_kind::index && e.at.offset == 0 && e.at.terms.size() == 1 && e.at.terms[0].first == axis && e.at.terms[0].second == 1;
  };
  if (is_axis(column, r.anchor->n[0]) && is_axis(at(row), r.anchor->m[0])) return t;
  if (!is_axis(column, r.anchor->m[0]) || !is_axis(at(row), r.anchor->n[0])) return std::nullopt;
  return triangle{!t.upper, -t.diagonal}; // the product is computed transposed
}

std::vector<phase_dim> phases_of(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool transposed) {
  (void)in;
  std::vector<phase_dim> phases;
  if (!transposed) {
    phase_dim all;
    all.count = out;
    for (int64_t k = 0; k < kernel; ++k) all.taps.push_back({k, k * dilation - padding});
    return {all};
  }
  // out[o] += in[i] * w[k] where o = i * stride - padding + k * dilation
  for (int64_t first = 0; first < std::min(stride, out); ++first) {
    phase_dim phase;
    phase.first = first;
    phase.count = (out - first + stride - 1) / stride;
    for (int64_t k = 0; k < kernel; ++k)
      if (const int64_t o = first + padding - k * dilation; o % stride == 0) phase.taps.push_back({k, o / stride});
    phases.push_back(phase);
  }
  return phases;
}

} // namespace pragma::synthesis
