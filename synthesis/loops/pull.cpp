#include "synthesis/loops/pull.hpp"

#include "synthesis/loops/anchors.hpp"

namespace pragma::synthesis {

uint32_t mask_of(const index_form& f) {
  uint32_t m = 0;
  for (const auto& t : f.terms) m |= 1u << t.first;
  return m;
}

index_form scaled(const index_form& f, int64_t factor) {
  index_form r;
  if (factor == 0) return r;
  r = f;
  r.offset *= factor;
  for (auto& t : r.terms) t.second *= factor;
  r.dynamic_step *= factor;
  return r;
}

index_form sum(const index_form& a, const index_form& b) {
  index_form r;
  r.offset = a.offset + b.offset;
  std::map<int, int64_t> terms;
  for (const auto& t : a.terms) terms[t.first] += t.second;
  for (const auto& t : b.terms) terms[t.first] += t.second;
  for (const auto& t : terms)
    if (t.second != 0) r.terms.push_back(t);
  if (a.dynamic >= 0 && b.dynamic >= 0) throw impossible{"two computed indices into one tensor"};
  r.dynamic = a.dynamic >= 0 ? a.dynamic : b.dynamic;
  r.dynamic_step = a.dynamic >= 0 ? a.dynamic_step : b.dynamic_step;
  return r;
}

puller::puller(const tensor_program& program, const std::map<int, int>& stored, const std::map<int, int>& tails, const domain& space)
    : p_(program), stored_(stored), tails_(tails) {
  for (auto e : space.extents) add_axis(e, false);
  domain_axes_ = static_cast<int>(space.extents.size());
}

void puller::pull(int root, int buffer, const domain& space) {
  root_ = root;
  for (const auto& [anchor, tail] : tails_)
    if (tail == root) {
      anchor_ = anchor;
      in_tail_ = depends_on(p_, anchor);
    }
  if (at(root).kind == node_kind::anchor || at(root).kind == node_kind::recurrence) {
    anchor_ = root;
    in_tail_ = depends_on(p_, root);
  }
  store s;
  s.buffer = buffer;
  const auto& shape = at(root).shape;
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    s.at = sum(s.at, scaled(space.dims[i], stride));
    stride *= shape[i];
  }
  s.value = eval(root, space.dims);
  r.stores.push_back(s);
}

void puller::pull_into(int root, int buffer, const domain& space, const index_form& where) {
  store s{buffer, where, -1}; // the part itself may lie in a buffer already: it is no root
  s.value = eval(root, space.dims);
  r.stores.push_back(s);
}

void puller::pull_scattered(int n, int buffer, const domain& space) {
  const auto& node = at(n);
  const auto dim = static_cast<size_t>(node.dims[0]);
  for (const auto& [a, c] : space.dims[dim].terms) r.axes[static_cast<size_t>(a)].reduced = true;
  store s;
  s.buffer = buffer;
  s.join = node.op;
  s.limit = node.shape[dim];
  int64_t stride = 1;
  for (size_t i = node.shape.size(); i-- > 0;) {
    if (i == dim) s.step = stride;
    else s.at = sum(s.at, scaled(space.dims[i], stride));
    stride *= node.shape[i];
  }
  expr e;
  e.kind = expr_kind::op;
  e.dtype = node.dtype;
  e.op = operation::placed;
  e.args = {eval(node.args[2], space.dims), eval(node.args[1], space.dims)};
  s.value = intern(e);
  r.exprs[static_cast<size_t>(s.value)].axes |= domain_mask(); // once for each element, also where all are alike
  r.stores.push_back(s);
}

int puller::add_axis(int64_t extent, bool reduced) {
  if (r.axes.size() >= 30) throw impossible{"more than 30 loop axes"};
  axis a;
  a.extent = extent;
  a.reduced = reduced;
  r.axes.push_back(a);
  return static_cast<int>(r.axes.size()) - 1;
}

int puller::intern(expr e) {
  e.axes |= mask_of(e.at);
  for (int a : e.args) e.axes |= r.exprs[static_cast<size_t>(a)].axes;
  if (e.kind == expr_kind::reduce) e.axes &= ~r.reduced_mask();
  return known_.intern(r.exprs, std::move(e));
}

int puller::constant(double value, dtype type) {
  expr e;
  e.dtype = type;
  e.value = value;
  return intern(e);
}

int puller::load(int buffer, dtype type, const index_form& where) {
  expr e;
  e.kind = expr_kind::load;
  e.dtype = type;
  e.buffer = buffer;
  e.outside = outside_;
  e.at = where;
  if (where.dynamic >= 0) e.args = {where.dynamic};
  return intern(e);
}

index_form puller::linear(const std::vector<int64_t>& shape, const std::vector<index_form>& idx) {
  index_form f;
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    // One position, but a window's guard asks which tap meets it.
    const bool guarded = outside_ != identity::none && idx[i].terms.size() > 1;
    if (shape[i] != 1 || guarded) f = sum(f, scaled(idx[i], stride));
    stride *= shape[i];
  }
  return f;
}

int puller::eval(int n, const std::vector<index_form>& idx) {
  const auto key = std::tuple(n, outside_, idx);
  if (const auto it = memo_.find(key); it != memo_.end()) return it->second;
  return memo_[key] = make(n, idx);
}

int puller::make(int n, const std::vector<index_form>& idx) {
  const auto& node = at(n);
  if (n != root_) {
    if (const auto it = stored_.find(n); it != stored_.end()) return load(it->second, node.dtype, linear(node.shape, idx));
    for (const auto& [anchor, tail] : tails_)
      if (tail == n && anchor != anchor_) throw needs_buffer{n};
  }
  if (anchor_ >= 0 && n != root_ && n != anchor_) keep_tail_simple(n, node);
  switch (node.kind) {
    case node_kind::leaf: return load(node.buffer, node.dtype, linear(node.shape, idx));
    case node_kind::constant: return constant(node.value, node.dtype);
    case node_kind::index: {
      expr e;
      e.kind = expr_kind::index;
      e.dtype = node.dtype;
      e.at = idx[static_cast<size_t>(node.dims[0])];
      if (e.at.dynamic >= 0) throw needs_buffer{n};
      if (e.at.terms.empty()) return constant(static_cast<double>(e.at.offset), node.dtype);
      return intern(e);
    }
    case node_kind::pointwise: return pointwise(node, idx);
    case node_kind::view: {
      std::vector<index_form> source;
      for (const auto& m : node.map) {
        index_form f;
        if (m.out_dim >= 0) f = scaled(idx[static_cast<size_t>(m.out_dim)], m.step);
        f.offset += m.offset;
        source.push_back(f);
      }
      return eval(node.args[0], source);
    }
    case node_kind::reshape: return reshape(node, idx);
    case node_kind::reduce: return reduce(n, node, idx);
    case node_kind::scan: return scan(n, node, idx);
    case node_kind::window: return window(n, node, idx);
    case node_kind::concat: throw needs_buffer{n};
    case node_kind::scatter:
      if (const auto it = stored_.find(n); it != stored_.end()) return load(it->second, node.dtype, linear(node.shape, idx)); // the root itself: a half type of what was joined in float32
      throw needs_buffer{n};
    case node_kind::pick: {
      for (size_t i = 0; i < idx.size(); ++i) // a second computed index would meet this one
        if (i != static_cast<size_t>(node.dims[0]) && idx[i].dynamic >= 0 && n != root_) throw needs_buffer{n};
      const int position = eval(node.args[1], idx);
      const auto dim = static_cast<size_t>(node.dims[0]);
      auto source = idx;
      // Labels outside of the range must not read outside of the tensor.
      const double last = static_cast<double>(at(node.args[0]).shape[dim] - 1);
      expr low, high;
      low.kind = high.kind = expr_kind::op;
      low.dtype = high.dtype = dtype::int64;
      low.op = operation::max_or_second;
      low.args = {constant(0, dtype::int64), position};
      high.op = operation::min_or_second;
      high.args = {constant(last, dtype::int64), intern(low)};
      source[dim] = index_form{};
      source[dim].dynamic = intern(high);
      source[dim].dynamic_step = 1;
      return eval(node.args[0], source);
    }
    case node_kind::recurrence:
    case node_kind::anchor: return contract(n, node, idx);
  }
  throw impossible{std::string(name_of(node.op))};
}

int puller::pointwise(const tensor_node& node, const std::vector<index_form>& idx) {
  expr e;
  e.kind = expr_kind::op;
  e.dtype = node.dtype;
  e.op = node.op;
  for (int a : node.args) {
    const auto& shape = at(a).shape;
    std::vector<index_form> sub(shape.size());
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] != 1) sub[i] = idx[idx.size() - shape.size() + i];
    e.args.push_back(eval(a, sub));
  }
  return folded(e);
}

int puller::folded(const expr& e) {
  const auto value = [&](size_t i) { return r.exprs[static_cast<size_t>(e.args[i])].value; };
  bool all = true;
  for (int a : e.args) all = all && r.exprs[static_cast<size_t>(a)].kind == expr_kind::constant;
  const bool number = is_floating(e.dtype) || e.dtype == dtype::int64;
  if (all && number && e.args.size() == 2) {
    if (e.op == operation::add) return constant(value(0) + value(1), e.dtype);
    if (e.op == operation::sub) return constant(value(0) - value(1), e.dtype);
    if (e.op == operation::mul) return constant(value(0) * value(1), e.dtype);
    if ((e.op == operation::div || e.op == operation::exact_div) && is_floating(e.dtype)) return constant(value(0) / value(1), e.dtype);
  }
  if (all && number && e.op == operation::neg) return constant(-value(0), e.dtype);
  if (e.op == operation::mul && e.args.size() == 2) {
    for (size_t i = 0; i < 2; ++i)
      if (r.exprs[static_cast<size_t>(e.args[i])].kind == expr_kind::constant && value(i) == 1) return e.args[1 - i];
  }
  return intern(e);
}

int puller::reshape(const tensor_node& node, const std::vector<index_form>& idx) {
  const int source = node.args[0];
  const auto& from = at(source);
  index_form rest = linear(node.shape, idx);
  if (from.kind == node_kind::leaf || (stored_.count(source) && source != root_))
    return load(from.kind == node_kind::leaf ? from.buffer : stored_.at(source), from.dtype, rest);
  if (from.kind == node_kind::constant) return constant(from.value, from.dtype);
  std::vector<int64_t> stride(from.shape.size(), 1);
  for (size_t i = from.shape.size(); i-- > 1;) stride[i - 1] = stride[i] * from.shape[i];
  if (rest.dynamic >= 0) throw needs_buffer{source};
  std::vector<index_form> dims(from.shape.size());
  for (size_t i = 0; i < from.shape.size(); ++i) {
    if (from.shape[i] == 1) continue;
    const int64_t s = stride[i];
    index_form inside;
    int64_t low = 0, high = 0;
    for (const auto& [a, c] : rest.terms) {
      const int64_t extent = r.axes[static_cast<size_t>(a)].extent;
      if (c % s == 0) {
        dims[i].terms.push_back({a, c / s});
        continue;
      }
      // An axis that crosses this boundary: split it where the boundary lies.
      if (c > 0 && s % c == 0 && extent % (s / c) == 0 && c * (extent - 1) >= s && a < domain_axes_ && a != r.scan_axis) throw needs_split{a, s / c}; // a scan runs along it as a whole
      inside.terms.push_back({a, c});
      (c > 0 ? high : low) += c * (extent - 1);
    }
    const int64_t whole = rest.offset >= 0 ? rest.offset / s : -1;
    inside.offset = rest.offset - whole * s;
    if (whole < 0 || inside.offset + low < 0 || inside.offset + high >= s) throw needs_buffer{source};
    dims[i].offset = whole;
    rest = inside;
  }
  return eval(source, dims);
}

} // namespace pragma::synthesis
