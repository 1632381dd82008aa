// Reductions, cumulative operators and sliding windows on the loop axes.
#include "synthesis/loops/pull.hpp"

#include <algorithm>

namespace pragma::synthesis {

bool puller::match(const std::vector<int64_t>& extents, const std::vector<int>& axes, std::vector<index_form>& forms) const {
  forms.assign(extents.size(), {});
  size_t next = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    int64_t product = 1;
    const size_t first = next;
    while (product < extents[d] && next < axes.size()) product *= r.axes[static_cast<size_t>(axes[next++])].extent;
    if (product != extents[d]) return false;
    int64_t stride = 1;
    for (size_t i = next; i-- > first;) {
      forms[d].terms.push_back({axes[i], stride});
      stride *= r.axes[static_cast<size_t>(axes[i])].extent;
    }
    std::sort(forms[d].terms.begin(), forms[d].terms.end());
  }
  return next == axes.size();
}

std::vector<int> puller::axes_in(uint32_t mask) const {
  std::vector<int> list;
  for (size_t i = 0; i < r.axes.size(); ++i)
    if (mask & (1u << i)) list.push_back(static_cast<int>(i));
  return list;
}

[[noreturn]] void puller::refuse(int n) const {
  if (n == root_) throw impossible{std::string(name_of(at(n).op)) + " over these dimensions"};
  throw needs_buffer{n};
}

int puller::reduce(int n, const tensor_node& node, const std::vector<index_form>& idx) {
  const auto& source = at(node.args[0]);
  std::vector<size_t> dims;
  std::vector<int64_t> extents;
  for (auto d : node.dims)
    if (source.shape[static_cast<size_t>(d)] != 1) {
      dims.push_back(static_cast<size_t>(d));
      extents.push_back(source.shape[static_cast<size_t>(d)]);
    }
  uint32_t used = 0;
  for (size_t i = 0; i < idx.size(); ++i) {
    if (idx[i].dynamic >= 0) refuse(n);
    used |= mask_of(idx[i]);
  }
  const uint32_t reduced = r.reduced_mask();
  if (used & reduced) {
    if (!inside_.empty() && at(inside_.back()).elements() <= node.elements()) refuse(inside_.back()); // a reduction of reduced rows: store the rows first, or the sums of which they are made where those are fewer
    refuse(n);
  }
  if (r.has_window()) refuse(n);
  std::vector<index_form> forms;
  if (reduced != 0) {
    if (!match(extents, axes_in(reduced), forms)) refuse(n);
    if (used != (domain_mask() & ~reduced)) refuse(n);
  } else {
    const auto unused = axes_in(domain_mask() & ~used);
    if (!unused.empty()) {
      if (!match(extents, unused, forms)) refuse(n);
      for (int a : unused) r.axes[static_cast<size_t>(a)].reduced = true;
    } else {
      forms.assign(extents.size(), {});
      for (size_t i = 0; i < extents.size(); ++i) forms[i].terms = {{add_axis(extents[i], true), 1}};
    }
  }
  auto inner = idx;
  for (size_t i = 0; i < dims.size(); ++i) inner[dims[i]] = forms[i];
  inside_.push_back(node.args[0]);
  expr e;
  e.kind = expr_kind::reduce;
  e.dtype = node.dtype;
  e.op = node.op;
  e.args = {eval(node.args[0], inner)};
  inside_.pop_back();
  if (finds_place(node.op)) {
    int64_t stride = 1;
    for (size_t i = dims.size(); i-- > 0;) {
      e.at = sum(e.at, scaled(forms[i], stride));
      stride *= extents[i];
    }
  }
  return intern(e);
}

int puller::scan(int n, const tensor_node& node, const std::vector<index_form>& idx) {
  const auto dim = static_cast<size_t>(node.dims[0]);
  const auto& f = idx[dim];
  const int64_t extent = node.shape[dim];
  if (f.terms.size() != 1 || f.dynamic >= 0 || r.has_window()) refuse(n);
  const int a = f.terms[0].first;
  if (r.axes[static_cast<size_t>(a)].extent != extent) refuse(n);
  const auto moves = [&](const index_form& i) { return i.coefficient(a) != 0 || (i.dynamic >= 0 && (r.exprs[static_cast<size_t>(i.dynamic)].axes & (1u << a))); };
  for (size_t i = 0; i < idx.size(); ++i)
    if (i != dim && moves(idx[i])) refuse(n); // what is carried would be another column's
  if (f.terms[0].second == -1 && f.offset == extent - 1) {
    if (r.scan_axis >= 0 || a >= domain_axes_) refuse(n);
    throw needs_flip{a};
  }
  if (f.terms[0].second != 1 || f.offset != 0) refuse(n);
  const uint32_t reduced = r.reduced_mask();
  if (reduced != 0 && reduced != (1u << a)) refuse(n);
  if (reduced == 0 && a >= domain_axes_) refuse(n);
  r.axes[static_cast<size_t>(a)].reduced = true;
  r.scan_axis = a;
  expr e;
  e.kind = expr_kind::scan;
  e.dtype = node.dtype;
  e.op = node.op;
  for (int source : node.args) e.args.push_back(eval(source, idx));
  const int result = intern(e);
  r.exprs[static_cast<size_t>(result)].axes |= 1u << a;
  return result;
}

int puller::weighted(int value, const tensor_node& node, const std::vector<window_dim>& positions, const std::vector<int>& numbers,
             const std::vector<index_form>& idx) {
  if (node.args.size() < 2) return value;
  std::vector<index_form> at_weight(idx.size());
  at_weight[0] = idx[1]; // [channel, 1, taps..]
  size_t next = 0;
  for (const auto& [d, first, varies] : positions) {
    at_weight[d].offset = first;
    if (varies) at_weight[d] = sum(at_weight[d], index_form{0, {{numbers[next++], 1}}, -1, 0});
  }
  expr e;
  e.kind = expr_kind::op;
  e.dtype = node.dtype;
  e.op = operation::mul;
  e.args = {value, eval(node.args[1], at_weight)};
  return intern(e);
}

/// Can a window have these axes here? A second one (values and positions of one pooling) may share the axes of the first.
bool puller::window_fits(const std::vector<axis>& wanted) const {
  if (!r.has_window()) return r.reduced_mask() == 0;
  size_t i = 0;
  for (const auto& a : r.axes) {
    if (!a.window) continue;
    if (i >= wanted.size() || a.extent != wanted[i].extent || !(a.guard == wanted[i].guard)) return false;
    ++i;
  }
  return i == wanted.size();
}

/// The axis over the taps of spatial dimension `s`, at the index `f` of the output's dimension `d`; a guard where a tap may lie outside of the input.
std::pair<axis, puller::window_dim> puller::window_axis(int n, const tensor_node& node, size_t s, size_t d, const index_form& f) {
  const auto& w = node.window;
  const int64_t extent = at(node.args[0]).shape[d], k = w.kernel[s], dilation = w.dilation[s];
  const bool direct = f.offset == 0 && f.terms.size() == 1 && f.terms[0].second == 1;
  if (f.dynamic >= 0 || (!direct && !f.terms.empty())) refuse(n);
  int64_t begin = 0, end = k;
  axis a;
  a.window = a.reduced = true;
  if (f.terms.empty()) {
    const int64_t base = w.stride[s] * f.offset - w.padding[s];
    while (begin < end && base + dilation * begin < 0) ++begin;
    while (end > begin && base + dilation * (end - 1) >= extent) --end;
  } else {
    const int64_t last = (node.shape[d] - 1) * w.stride[s] - w.padding[s] + dilation * (k - 1);
    if (w.padding[s] > 0 || last >= extent) {
      if (f.terms[0].first >= domain_axes_) refuse(n);
      a.guard = {f.terms[0].first, w.stride[s], dilation, w.padding[s], extent};
    }
  }
  a.extent = end - begin;
  return {a, window_dim{d, begin, a.extent != 1 || a.guard.output_axis >= 0}};
}

/// The region's axes of a window: those of the first one where it has one.
std::vector<int> puller::window_axes(const std::vector<axis>& wanted) {
  std::vector<int> numbers;
  if (r.has_window()) {
    for (size_t i = 0; i < r.axes.size(); ++i)
      if (r.axes[i].window) numbers.push_back(static_cast<int>(i));
    return numbers;
  }
  for (const auto& a : wanted) {
    numbers.push_back(add_axis(a.extent, true));
    r.axes.back() = a;
  }
  return numbers;
}

int puller::window(int n, const tensor_node& node, const std::vector<index_form>& idx) {
  const auto& source = at(node.args[0]);
  const auto& w = node.window;
  const size_t rank = idx.size(), spatial = w.kernel.size();
  std::vector<axis> axes;
  std::vector<window_dim> positions;
  bool guarded = false;
  for (size_t s = 0; s < spatial; ++s) {
    const auto [a, position] = window_axis(n, node, s, rank - spatial + s, idx[rank - spatial + s]);
    positions.push_back(position);
    if (position.varies) axes.push_back(a);
    guarded = guarded || a.guard.output_axis >= 0;
  }
  if (!window_fits(axes) || !inside_.empty()) refuse(n);
  for (const auto& f : idx) // a window of a window: the inner one is stored first, its taps are not those of the outer one
    if (!axes.empty() && (mask_of(f) & r.reduced_mask()) != 0) refuse(n);
  const auto numbers = window_axes(axes);
  auto inner = idx;
  index_form plane;
  size_t next = 0;
  for (size_t s = 0; s < spatial; ++s) {
    const auto& [d, first, varies] = positions[s];
    auto f = scaled(idx[d], w.stride[s]);
    f.offset += w.dilation[s] * first - w.padding[s];
    if (varies) f = sum(f, index_form{0, {{numbers[next++], w.dilation[s]}}, -1, 0});
    inner[d] = f;
    plane = sum(scaled(plane, source.shape[d]), f);
  }
  expr e;
  if (numbers.empty()) { // a window of one element
    if (!finds_place(node.op)) return weighted(eval(node.args[0], inner), node, positions, numbers, idx);
    e.kind = expr_kind::index;
    e.dtype = dtype::int64;
    e.at = plane;
    return plane.terms.empty() ? constant(static_cast<double>(plane.offset), dtype::int64) : intern(e);
  }
  e.kind = expr_kind::reduce;
  e.dtype = node.dtype;
  e.op = node.op;
  if (guarded && source.kind != node_kind::leaf && !stored_.count(node.args[0])) { // guarded loads exist for plain loads only
    int below = node.args[0];
    while (at(below).kind == node_kind::view || at(below).kind == node_kind::reshape) below = at(below).args[0];
    if (at(below).kind != node_kind::leaf && !stored_.count(below)) throw needs_buffer{node.args[0]};
  }
  if (guarded) outside_ = traits(node.op).start;
  const int value = eval(node.args[0], inner);
  outside_ = identity::none;
  e.args = {weighted(value, node, positions, numbers, idx)};
  if (finds_place(node.op)) e.at = plane;
  return intern(e);
}

} // namespace pragma::synthesis
