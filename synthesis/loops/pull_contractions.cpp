// Matrix products and convolutions on the loop axes, and what may follow them on their tiles.
#include "synthesis/loops/pull.hpp"

#include <algorithm>

namespace pragma::synthesis {

/// A truth value or a whole number that follows from places alone, as a causal mask does: found again in a register or two.
bool puller::follows_from_places(int n) const {
  const auto& x = at(n);
  if (x.kind == node_kind::index || x.kind == node_kind::constant) return true;
  if (x.kind != node_kind::view && (x.kind != node_kind::pointwise || traits(x.op).expensive)) return false;
  return std::all_of(x.args.begin(), x.args.end(), [&](int a) { return follows_from_places(a); });
}

void puller::keep_tail_simple(int n, const tensor_node& node) {
  switch (node.kind) {
    case node_kind::leaf: case node_kind::constant: case node_kind::index: case node_kind::view: case node_kind::reshape: return;
    case node_kind::pointwise:
      if (in_tail_[static_cast<size_t>(n)] || node.elements() == 1 || node.elements() * 8 > at(anchor_).elements()) return;
      if (!is_floating(node.dtype) && follows_from_places(n)) return;
      throw needs_buffer{n};
    default: throw needs_buffer{n};
  }
}

std::vector<int> puller::dense_axes(int n, const index_form& f, int64_t extent) {
  if (f.terms.empty() && f.offset == 0 && extent == 1) return {add_axis(1, false)};
  auto terms = f.terms;
  std::sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<int> axes;
  int64_t step = 1;
  for (size_t i = terms.size(); i-- > 0;) {
    if (terms[i].second != step || terms[i].first >= domain_axes_) throw needs_buffer{n};
    step *= r.axes[static_cast<size_t>(terms[i].first)].extent;
    axes.insert(axes.begin(), terms[i].first);
  }
  if (step != extent || f.offset != 0 || f.dynamic >= 0) throw needs_buffer{n};
  return axes;
}

index_form puller::along(const std::vector<int>& axes) const {
  index_form f;
  int64_t step = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    f.terms.push_back({axes[i], step});
    step *= r.axes[static_cast<size_t>(axes[i])].extent;
  }
  std::sort(f.terms.begin(), f.terms.end());
  return f;
}

std::pair<int, index_form> puller::operand(int n, const std::vector<index_form>& idx) {
  try {
    const auto& e = r.exprs[static_cast<size_t>(eval(n, idx))];
    if (e.kind == expr_kind::load && e.args.empty()) return {e.buffer, e.at};
  } catch (const needs_split&) {
  } catch (const needs_flip&) {
  } catch (const needs_buffer& need) {
    // What the operand shows is stored whole, not a reduction inside of it: softmax then is one region and not three.
    for (int shown = n;; shown = at(shown).args[0]) {
      if (shown == need.node || at(shown).kind == node_kind::leaf || stored_.count(shown)) throw;
      if (at(shown).kind != node_kind::view && at(shown).kind != node_kind::reshape) throw needs_buffer{shown};
    }
  }
  throw needs_buffer{without_views(n)};
}

/// What a view shows all of, however turned or repeated: it is stored as it is computed, row by row, and the packing turns it. A transposed store meets another line with each element.
int puller::without_views(int n) const {
  const auto shows_all = [&](const tensor_node& view) {
    const auto& from = at(view.args[0]).shape;
    for (size_t d = 0; d < from.size(); ++d) {
      const auto& m = view.map[d];
      const bool whole = m.out_dim >= 0 && m.offset == 0 && m.step == 1 && view.shape[static_cast<size_t>(m.out_dim)] == from[d];
      const bool alone = std::count_if(view.map.begin(), view.map.end(), [&](const source_dim& other) { return other.out_dim == m.out_dim; }) == 1;
      if (from[d] != 1 && !(whole && alone)) return false;
    }
    return true;
  };
  while (at(n).kind == node_kind::view && shows_all(at(n))) n = at(n).args[0];
  return n;
}

int puller::contracted_axis(int64_t extent) {
  const int a = add_axis(extent, false);
  r.axes.back().contracted = true;
  return a;
}

/// c = a b: rows and columns of the operands along the output's last two dimensions.
void puller::contract_product(int n, const tensor_node& node, const std::vector<index_form>& idx, contraction& c) {
  const int a = node.args[0], b = node.args[1];
  const size_t rank = idx.size();
  c.m = dense_axes(n, idx[rank - 2], node.shape[rank - 2]);
  c.n = dense_axes(n, idx[rank - 1], node.shape[rank - 1]);
  c.k = contracted_axis(at(a).shape[rank - 1]);
  auto rows = idx, columns = idx;
  rows[rank - 2] = along(c.m);
  rows[rank - 1] = columns[rank - 2] = along({c.k});
  columns[rank - 1] = along(c.n);
  for (size_t i = 0; i + 2 < rank; ++i)
    for (int x : dense_axes(n, idx[i], node.shape[i])) c.batch.push_back(x);
  for (size_t i = 0; i + 2 < rank; ++i)
    if (node.shape[i] == 1) rows[i] = columns[i] = index_form{};
  std::tie(c.a, c.a_at) = operand(a, rows);
  std::tie(c.b, c.b_at) = operand(b, columns);
}

/// Weights as rows, the image's patches as columns.
void puller::contract_convolution(int n, const tensor_node& node, const std::vector<index_form>& idx, contraction& c) {
  const int a = node.args[1], b = node.args[0];
  const int64_t groups = node.groups, per_group = node.shape[1] / groups, channels = at(b).shape[1] / groups;
  if (groups > 1 && per_group > 1 && idx[1].terms.size() == 1 && idx[1].terms[0].first < domain_axes_)
    throw needs_split{idx[1].terms[0].first, per_group};
  c.batch = dense_axes(n, idx[0], node.shape[0]);
  const auto batch = node.shape[0] == 1 ? index_form{} : along(c.batch);
  index_form group;
  if (groups > 1) {
    const auto both = dense_axes(n, idx[1], node.shape[1]);
    if (both.size() != (per_group > 1 ? 2u : 1u) || r.axes[static_cast<size_t>(both[0])].extent != groups) throw needs_buffer{n};
    c.group = both[0];
    c.m = {per_group > 1 ? both[1] : add_axis(1, false)};
    c.batch.insert(c.batch.begin(), c.group);
    group = along({c.group});
  } else {
    c.m = dense_axes(n, idx[1], node.shape[1]);
    if (c.m.size() != 1) throw needs_buffer{n};
  }
  c.k = contracted_axis(channels);
  // weights [m of all groups, k, taps..], transposed [k of all groups, m, taps..]
  std::vector<index_form> weights(idx.size()), image(idx.size());
  const auto wide_m = sum(scaled(group, per_group), along(c.m)), wide_k = sum(scaled(group, channels), along({c.k}));
  weights[0] = c.transposed ? wide_k : wide_m;
  weights[1] = c.transposed ? along(c.m) : along({c.k});
  image[0] = batch;
  image[1] = wide_k;
  for (size_t d = 2; d < idx.size(); ++d) {
    image_dim x;
    x.in = at(b).shape[d];
    x.out = node.shape[d];
    x.kernel = node.window.kernel[d - 2];
    x.stride = node.window.stride[d - 2];
    x.padding = node.window.padding[d - 2];
    x.dilation = node.window.dilation[d - 2];
    const auto out = dense_axes(n, idx[d], x.out);
    if (out.size() != 1) throw needs_buffer{n};
    x.out_axis = out[0];
    x.in_axis = contracted_axis(x.in);
    x.tap_axis = contracted_axis(x.kernel);
    c.n.push_back(x.out_axis);
    image[d] = along({x.in_axis});
    weights[d] = along({x.tap_axis});
    c.dims.push_back(x);
  }
  std::tie(c.a, c.a_at) = operand(a, weights);
  std::tie(c.b, c.b_at) = operand(b, image);
}

/// All steps of a layer: the states before a step are rows, the weights columns, gate by gate.
void puller::contract_recurrence(int n, const tensor_node& node, const std::vector<index_form>& idx, contraction& c, expr& e) {
  c.batch = dense_axes(n, idx[0], node.shape[0]);
  c.m = dense_axes(n, idx[1], node.shape[1]);
  c.n = dense_axes(n, idx[2], node.shape[2]);
  c.k = contracted_axis(node.shape[2]);
  c.steps = contracted_axis(at(node.args[0]).shape[0]);
  c.gates = contracted_axis(gates_of(node.op));
  const auto step = along({c.steps}), row = along(c.m), unit = along(c.n), gate = along({c.gates});
  std::tie(c.a, c.a_at) = operand(node.args[2], {row, unit});
  std::tie(c.b, c.b_at) = operand(node.args[1], {gate, unit, along({c.k})});
  const auto read = [&](int what, const std::vector<index_form>& where) {
    const auto [buffer, at] = operand(what, where);
    e.args.push_back(load(buffer, node.dtype, at));
  };
  read(node.args[0], {step, row, gate, unit});
  size_t next = 3;
  if (node.op == operation::lstm) read(node.args[next++], {row, unit});
  if (next < node.args.size()) read(node.args[next], {gate, unit});
}

int puller::contract(int n, const tensor_node& node, const std::vector<index_form>& idx) {
  if (n != anchor_ || r.reduced_mask() != 0) throw needs_buffer{n};
  if (r.anchor) throw needs_buffer{n}; // seen from two places of its tail
  contraction c;
  c.op = node.op;
  c.transposed = node.transposed;
  c.rounding = node.rounding;
  expr e;
  e.kind = expr_kind::anchor;
  e.dtype = node.dtype;
  e.op = node.op;
  if (node.kind == node_kind::recurrence) contract_recurrence(n, node, idx, c, e);
  else if (node.op == operation::matmul) contract_product(n, node, idx, c);
  else contract_convolution(n, node, idx, c);
  for (const auto* list : {&c.batch, &c.m, &c.n})
    for (int x : *list) e.axes |= 1u << x;
  r.anchor = std::move(c);
  return intern(e);
}

} // namespace pragma::synthesis
