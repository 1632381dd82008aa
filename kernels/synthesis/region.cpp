#include "kernels/synthesis/region.hpp"

#include "kernels/synthesis/anchors.hpp"
#include "kernels/synthesis/batches.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace pragma::synthesis {

namespace {

// Reasons to begin a region anew. They unwind a deep recursion; build_program() is the only place that catches them.
struct needs_buffer { int node; };                   // store this node first
struct needs_split { int axis; int64_t inner; };     // a domain axis must become two
struct needs_flip { int axis; };                     // a domain axis must run backwards
struct impossible { std::string what; };

/// The index space of a region's root: how each of its dimensions follows from the axes.
struct domain {
  std::vector<int64_t> extents;
  std::vector<index_form> dims;

  static domain of(const std::vector<int64_t>& shape) {
    domain d;
    for (auto extent : shape) {
      index_form form;
      if (extent != 1) {
        form.terms.push_back({static_cast<int>(d.extents.size()), 1});
        d.extents.push_back(extent);
      }
      d.dims.push_back(form);
    }
    return d;
  }
  void split(int a, int64_t inner) {
    extents[static_cast<size_t>(a)] /= inner;
    extents.insert(extents.begin() + a + 1, inner);
    for (auto& form : dims) {
      std::vector<std::pair<int, int64_t>> terms;
      for (const auto& [which, c] : form.terms) {
        if (which < a) terms.push_back({which, c});
        else if (which > a) terms.push_back({which + 1, c});
        else { terms.push_back({a, c * inner}); terms.push_back({a + 1, c}); }
      }
      form.terms = terms;
    }
  }
  void flip(int a) {
    for (auto& form : dims)
      for (auto& [which, c] : form.terms)
        if (which == a) {
          form.offset += c * (extents[static_cast<size_t>(a)] - 1);
          c = -c;
        }
  }
};

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

std::string text(const index_form& f) {
  std::string s = std::to_string(f.offset);
  for (const auto& [a, c] : f.terms) s += "+" + std::to_string(c) + "a" + std::to_string(a);
  if (f.dynamic >= 0) s += "+" + std::to_string(f.dynamic_step) + "d" + std::to_string(f.dynamic);
  return s;
}

uint32_t mask_of(const index_form& f) {
  uint32_t m = 0;
  for (const auto& t : f.terms) m |= 1u << t.first;
  return m;
}

class puller {
public:
  puller(const tensor_program& program, const std::map<int, int>& stored, const std::map<int, int>& tails, const domain& space)
      : p_(program), stored_(stored), tails_(tails) {
    for (auto e : space.extents) add_axis(e, false);
    domain_axes_ = static_cast<int>(space.extents.size());
  }

  region r;

  void pull(int root, int buffer, const domain& space) {
    root_ = root;
    for (const auto& [anchor, tail] : tails_)
      if (tail == root) {
        anchor_ = anchor;
        in_tail_ = depends_on(p_, anchor);
      }
    if (at(root).kind == node_kind::anchor) {
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
  /// As pull(), into a slice of a larger tensor.
  void pull_into(int root, int buffer, const domain& space, const index_form& where) {
    store s{buffer, where, -1}; // the part itself may lie in a buffer already: it is no root
    s.value = eval(root, space.dims);
    r.stores.push_back(s);
  }

private:
  const tensor_node& at(int n) const { return p_.nodes[static_cast<size_t>(n)]; }
  uint32_t domain_mask() const { return domain_axes_ >= 32 ? ~0u : (1u << domain_axes_) - 1; }

  int add_axis(int64_t extent, bool reduced) {
    if (r.axes.size() >= 30) throw impossible{"more than 30 loop axes"};
    axis a;
    a.extent = extent;
    a.reduced = reduced;
    r.axes.push_back(a);
    return static_cast<int>(r.axes.size()) - 1;
  }

  int intern(expr e) {
    e.axes |= mask_of(e.at);
    for (int a : e.args) e.axes |= r.exprs[static_cast<size_t>(a)].axes;
    if (e.kind == expr_kind::reduce) e.axes &= ~r.reduced_mask();
    char bits[40];
    std::snprintf(bits, sizeof bits, "%a", e.value);
    std::string key = std::to_string(static_cast<int>(e.kind)) + "|" + std::to_string(static_cast<int>(e.dtype)) + "|" + e.op + "|" +
                      bits + "|" + std::to_string(e.buffer) + "|" + text(e.at);
    for (int a : e.args) key += "," + std::to_string(a);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
    r.exprs.push_back(std::move(e));
    return known_[key] = static_cast<int>(r.exprs.size()) - 1;
  }

  int constant(double value, dtype type) {
    expr e;
    e.dtype = type;
    e.value = value;
    return intern(e);
  }

  int load(int buffer, dtype type, const index_form& where) {
    expr e;
    e.kind = expr_kind::load;
    e.dtype = type;
    e.buffer = buffer;
    e.at = where;
    if (where.dynamic >= 0) e.args = {where.dynamic};
    return intern(e);
  }

  index_form linear(const std::vector<int64_t>& shape, const std::vector<index_form>& idx) {
    index_form f;
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      if (shape[i] != 1) f = sum(f, scaled(idx[i], stride));
      stride *= shape[i];
    }
    return f;
  }

  int eval(int n, const std::vector<index_form>& idx) {
    std::string key = std::to_string(n);
    for (const auto& f : idx) key += ";" + text(f);
    if (const auto it = memo_.find(key); it != memo_.end()) return it->second;
    const int e = make(n, idx);
    memo_[key] = e;
    return e;
  }

  int make(int n, const std::vector<index_form>& idx) {
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
      case node_kind::pick: {
        const int position = eval(node.args[1], idx);
        const auto dim = static_cast<size_t>(node.dims[0]);
        auto source = idx;
        // Labels outside of the range must not read outside of the tensor.
        const double last = static_cast<double>(at(node.args[0]).shape[dim] - 1);
        expr low, high;
        low.kind = high.kind = expr_kind::op;
        low.dtype = high.dtype = dtype::int64;
        low.op = "max_or_second";
        low.args = {constant(0, dtype::int64), position};
        high.op = "min_or_second";
        high.args = {constant(last, dtype::int64), intern(low)};
        source[dim] = index_form{};
        source[dim].dynamic = intern(high);
        source[dim].dynamic_step = 1;
        return eval(node.args[0], source);
      }
      case node_kind::anchor: return contract(n, node, idx);
    }
    throw impossible{node.op};
  }

  /// On an anchor's tiles only pointwise values are computed; what does not need the anchor and is small is made before.
  void keep_tail_simple(int n, const tensor_node& node) {
    switch (node.kind) {
      case node_kind::leaf: case node_kind::constant: case node_kind::index: case node_kind::view: case node_kind::reshape: return;
      case node_kind::pointwise:
        if (in_tail_[static_cast<size_t>(n)] || node.elements() == 1 || node.elements() * 8 > at(anchor_).elements()) return;
        throw needs_buffer{n};
      default: throw needs_buffer{n};
    }
  }

  /// The domain axes that an index walks like one dimension, outermost first; an axis of extent 1 when it stands still.
  std::vector<int> dense_axes(int n, const index_form& f, int64_t extent) {
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

  index_form along(const std::vector<int>& axes) const {
    index_form f;
    int64_t step = 1;
    for (size_t i = axes.size(); i-- > 0;) {
      f.terms.push_back({axes[i], step});
      step *= r.axes[static_cast<size_t>(axes[i])].extent;
    }
    std::sort(f.terms.begin(), f.terms.end());
    return f;
  }

  /// An operand of a contraction must lie in memory.
  std::pair<int, index_form> operand(int n, const std::vector<index_form>& idx) {
    try {
      const auto& e = r.exprs[static_cast<size_t>(eval(n, idx))];
      if (e.kind == expr_kind::load && e.args.empty()) return {e.buffer, e.at};
    } catch (const needs_split&) {
    } catch (const needs_flip&) {
    }
    throw needs_buffer{n};
  }

  int contracted_axis(int64_t extent) {
    const int a = add_axis(extent, false);
    r.axes.back().contracted = true;
    return a;
  }

  int contract(int n, const tensor_node& node, const std::vector<index_form>& idx) {
    if (n != anchor_ || r.reduced_mask() != 0) throw needs_buffer{n};
    if (r.anchor) throw needs_buffer{n}; // seen from two places of its tail
    contraction c;
    c.op = node.op;
    c.transposed = node.transposed;
    const int a = node.args[node.op == "matmul" ? 0 : 1], b = node.args[node.op == "matmul" ? 1 : 0];
    uint32_t outer = 0;
    if (node.op == "matmul") {
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
    } else {
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
    for (int x : c.batch) outer |= 1u << x;
    expr e;
    e.kind = expr_kind::anchor;
    e.dtype = node.dtype;
    e.op = node.op;
    e.axes = outer;
    for (int x : c.m) e.axes |= 1u << x;
    for (int x : c.n) e.axes |= 1u << x;
    r.anchor = std::move(c);
    return intern(e);
  }

  int pointwise(const tensor_node& node, const std::vector<index_form>& idx) {
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

  int folded(const expr& e) {
    const auto value = [&](size_t i) { return r.exprs[static_cast<size_t>(e.args[i])].value; };
    bool all = true;
    for (int a : e.args) all = all && r.exprs[static_cast<size_t>(a)].kind == expr_kind::constant;
    const bool number = is_floating(e.dtype) || e.dtype == dtype::int64;
    if (all && number && e.args.size() == 2) {
      if (e.op == "add") return constant(value(0) + value(1), e.dtype);
      if (e.op == "sub") return constant(value(0) - value(1), e.dtype);
      if (e.op == "mul") return constant(value(0) * value(1), e.dtype);
      if (e.op == "div" && is_floating(e.dtype)) return constant(value(0) / value(1), e.dtype);
    }
    if (all && number && e.op == "neg") return constant(-value(0), e.dtype);
    if (e.op == "mul" && e.args.size() == 2) {
      for (size_t i = 0; i < 2; ++i)
        if (r.exprs[static_cast<size_t>(e.args[i])].kind == expr_kind::constant && value(i) == 1) return e.args[1 - i];
    }
    return intern(e);
  }

  /// Splits a linear index back into dimensions, when the axes' strides allow it.
  int reshape(const tensor_node& node, const std::vector<index_form>& idx) {
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
        if (c > 0 && s % c == 0 && extent % (s / c) == 0 && c * (extent - 1) >= s && a < domain_axes_) throw needs_split{a, s / c};
        inside.terms.push_back({a, c});
        (c > 0 ? high : low) += c * (extent - 1);
      }
      const int64_t whole = rest.offset >= 0 ? rest.offset / s : -1;
      inside.offset = rest.offset - whole * s;
      if (whole < 0 || inside.offset + low < 0 || inside.offset + high >= s) {
        // Running backwards: offset carries the whole of the extent; borrow it where that makes both parts fit.
        if (inside.offset + low >= 0 || inside.offset + high >= s || whole < 0) throw needs_buffer{source};
        throw needs_buffer{source};
      }
      dims[i].offset = whole;
      rest = inside;
    }
    return eval(source, dims);
  }

  // -- reductions ------------------------------------------------------------------------------------------------------

  /// The axes that reduced dimensions run over, and how each dimension follows from them. Empty when they don't match.
  bool match(const std::vector<int64_t>& extents, const std::vector<int>& axes, std::vector<index_form>& forms) const {
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

  std::vector<int> axes_in(uint32_t mask) const {
    std::vector<int> list;
    for (size_t i = 0; i < r.axes.size(); ++i)
      if (mask & (1u << i)) list.push_back(static_cast<int>(i));
    return list;
  }

  /// Gives up on fusing this node with its surroundings.
  [[noreturn]] void refuse(int n) const {
    if (n == root_) throw impossible{at(n).op + " over these dimensions"};
    throw needs_buffer{n};
  }

  int reduce(int n, const tensor_node& node, const std::vector<index_form>& idx) {
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
      if (!inside_.empty()) refuse(inside_.back()); // a reduction of reduced rows: store the rows first
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
    if (node.op.rfind("arg", 0) == 0) {
      int64_t stride = 1;
      for (size_t i = dims.size(); i-- > 0;) {
        e.at = sum(e.at, scaled(forms[i], stride));
        stride *= extents[i];
      }
    }
    return intern(e);
  }

  int scan(int n, const tensor_node& node, const std::vector<index_form>& idx) {
    const auto dim = static_cast<size_t>(node.dims[0]);
    const auto& f = idx[dim];
    const int64_t extent = node.shape[dim];
    if (f.terms.size() != 1 || f.dynamic >= 0 || r.has_window()) refuse(n);
    const int a = f.terms[0].first;
    if (r.axes[static_cast<size_t>(a)].extent != extent) refuse(n);
    for (size_t i = 0; i < idx.size(); ++i)
      if (i != dim && idx[i].coefficient(a) != 0) refuse(n);
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
    e.args = {eval(node.args[0], idx)};
    const int result = intern(e);
    r.exprs[static_cast<size_t>(result)].axes |= 1u << a;
    return result;
  }

  struct window_dim { size_t dim; int64_t first; bool varies; };

  /// An element of a window, times its weight where the window has any.
  int weighted(int value, const tensor_node& node, const std::vector<window_dim>& positions, const std::vector<int>& numbers,
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
    e.op = "mul";
    e.args = {value, eval(node.args[1], at_weight)};
    return intern(e);
  }

  int window(int n, const tensor_node& node, const std::vector<index_form>& idx) {
    const auto& source = at(node.args[0]);
    const auto& w = node.window;
    const size_t rank = idx.size(), spatial = w.kernel.size();
    std::vector<axis> axes;
    auto inner = idx;
    index_form plane;
    const auto fits = [&](const std::vector<axis>& wanted) {
      // A second window (values and positions of one pooling) may share the axes of the first.
      if (!r.has_window()) return r.reduced_mask() == 0;
      size_t i = 0;
      for (const auto& a : r.axes) {
        if (!a.window) continue;
        if (i >= wanted.size() || a.extent != wanted[i].extent || a.guard.output_axis != wanted[i].guard.output_axis ||
            a.guard.stride != wanted[i].guard.stride || a.guard.padding != wanted[i].guard.padding ||
            a.guard.dilation != wanted[i].guard.dilation || a.guard.limit != wanted[i].guard.limit)
          return false;
        ++i;
      }
      return i == wanted.size();
    };
    std::vector<window_dim> positions;
    for (size_t s = 0; s < spatial; ++s) {
      const size_t d = rank - spatial + s;
      const auto& f = idx[d];
      if (f.dynamic >= 0) refuse(n);
      const int64_t extent = source.shape[d], k = w.kernel[s], dilation = w.dilation[s];
      const bool direct = f.offset == 0 && f.terms.size() == 1 && f.terms[0].second == 1;
      if (!direct && !f.terms.empty()) refuse(n);
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
      positions.push_back({d, begin, a.extent != 1 || a.guard.output_axis >= 0});
      if (positions.back().varies) axes.push_back(a);
    }
    if (!fits(axes)) refuse(n);
    if (!inside_.empty()) refuse(n);
    std::vector<int> numbers;
    if (r.has_window()) {
      for (size_t i = 0; i < r.axes.size(); ++i)
        if (r.axes[i].window) numbers.push_back(static_cast<int>(i));
    } else {
      for (const auto& a : axes) {
        numbers.push_back(add_axis(a.extent, true));
        r.axes.back() = a;
      }
    }
    size_t next = 0;
    for (size_t s = 0; s < spatial; ++s) {
      const auto& [d, first, varies] = positions[s];
      auto f = scaled(idx[d], w.stride[s]);
      f.offset += w.dilation[s] * first - w.padding[s];
      if (varies) f = sum(f, index_form{0, {{numbers[next++], w.dilation[s]}}, -1, 0});
      inner[d] = f;
      plane = sum(scaled(plane, source.shape[d]), f);
    }
    if (numbers.empty()) { // a window of one element
      if (node.op == "argmax") {
        expr e;
        e.kind = expr_kind::index;
        e.dtype = dtype::int64;
        e.at = plane;
        return plane.terms.empty() ? constant(static_cast<double>(plane.offset), dtype::int64) : intern(e);
      }
      return weighted(eval(node.args[0], inner), node, positions, numbers, idx);
    }
    // Guarded loads exist for plain loads only.
    bool guarded = false;
    for (const auto& a : axes) guarded = guarded || a.guard.output_axis >= 0;
    expr e;
    e.kind = expr_kind::reduce;
    e.dtype = node.dtype;
    e.op = node.op;
    if (guarded && source.kind != node_kind::leaf && !stored_.count(node.args[0])) {
      int below = node.args[0];
      while (at(below).kind == node_kind::view || at(below).kind == node_kind::reshape) below = at(below).args[0];
      if (at(below).kind != node_kind::leaf && !stored_.count(below)) throw needs_buffer{node.args[0]};
    }
    e.args = {weighted(eval(node.args[0], inner), node, positions, numbers, idx)};
    if (node.op == "argmax") e.at = plane;
    return intern(e);
  }

  const tensor_program& p_;
  const std::map<int, int>& stored_;
  const std::map<int, int>& tails_;
  int anchor_ = -1;             ///< the anchor whose tail is the root, or -1
  std::vector<bool> in_tail_;   ///< nodes that depend on it
  std::map<std::string, int> memo_, known_;
  std::vector<int> inside_; ///< arguments of the reductions that we are in
  int root_ = -1, domain_axes_ = 0;
};

class program_builder {
public:
  explicit program_builder(const tensor_program& p) : p_(p), tails_(anchor_tails(p)) { out.buffers = p.buffers; }

  loop_program out;

  void build() {
    std::vector<int> outputs;
    for (size_t i = 0; i < out.buffers.size(); ++i)
      if (out.buffers[i].kind == buffer_kind::output) outputs.push_back(static_cast<int>(i));
    std::vector<bool> done(outputs.size(), false);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (done[i]) continue;
      // Outputs of one shape are computed in one region where that works ("values, indices").
      std::vector<std::pair<int, int>> group{{p_.outputs[i], outputs[i]}};
      for (size_t j = i + 1; j < outputs.size(); ++j)
        if (!done[j] && node(p_.outputs[j]).shape == node(p_.outputs[i]).shape) group.push_back({p_.outputs[j], outputs[j]});
      if (group.size() > 1 && together(group)) {
        for (size_t j = i; j < outputs.size(); ++j)
          for (const auto& [n, b] : group)
            if (b == outputs[j]) done[j] = true;
        continue;
      }
      region_for(p_.outputs[i], outputs[i]);
    }
  }

private:
  const tensor_node& node(int n) const { return p_.nodes[static_cast<size_t>(n)]; }

  bool together(const std::vector<std::pair<int, int>>& group) {
    auto space = domain::of(node(group[0].first).shape);
    for (const auto& [n, b] : group)
      if (node(n).kind == node_kind::concat || node(n).kind == node_kind::reshape || stored_.count(n)) return false;
    try {
      puller pull(p_, stored_, tails_, space);
      for (const auto& [n, b] : group) pull.pull(n, b, space);
      if (pull.r.anchor) return false;
      order_axes(pull.r);
      out.regions.push_back(std::move(pull.r));
      return true;
    } catch (const needs_buffer&) {
    } catch (const needs_split&) {
    } catch (const needs_flip&) {
    } catch (const impossible&) {
    }
    return false;
  }

  void region_for(int n, int buffer_index) {
    while (node(n).kind == node_kind::reshape && !stored_.count(n)) n = node(n).args[0];
    if (node(n).kind == node_kind::concat && !stored_.count(n)) return concat(n, buffer_index);
    const auto space = domain::of(node(n).shape);
    index_form where;
    int64_t stride = 1;
    for (size_t i = space.dims.size(); i-- > 0;) {
      where = sum(where, scaled(space.dims[i], stride));
      stride *= node(n).shape[i];
    }
    build_region(n, buffer_index, space, {}, 0);
  }

  /// slice_of: the shape of the tensor that this one is a part of, which begins at `first` along `dim`
  void build_region(int n, int buffer_index, domain space, const std::vector<int64_t>& whole, int64_t first, size_t dim = 0) {
    if (++depth_ > 200) throw impossible{"nesting too deep"};
    for (int attempt = 0; attempt < 100; ++attempt) {
      try {
        puller pull(p_, stored_, tails_, space);
        if (whole.empty()) {
          pull.pull(n, buffer_index, space);
        } else {
          index_form where;
          int64_t stride = 1;
          for (size_t i = whole.size(); i-- > 0;) {
            auto f = space.dims[i];
            if (i == dim) f.offset += first;
            where = sum(where, scaled(f, stride));
            stride *= whole[i];
          }
          pull.pull_into(n, buffer_index, space, where);
        }
        if (!pull.r.anchor) {
          order_axes(pull.r);
        } else if (!arrange_contraction(pull.r)) {
          // What follows does not walk memory as the tiles do: the anchor alone.
          for (auto& [anchor, tail] : tails_)
            if (tail == n && anchor != n) {
              tail = anchor;
              throw needs_buffer{anchor};
            }
          throw impossible{node(n).op + " with this layout"};
        }
        out.regions.push_back(std::move(pull.r));
        --depth_;
        return;
      } catch (const needs_buffer& need) {
        buffer b;
        b.dtype = node(need.node).dtype;
        b.elements = node(need.node).elements();
        b.index = scratch_;
        b.name = "scratch" + std::to_string(scratch_++);
        out.buffers.push_back(b);
        const int made = static_cast<int>(out.buffers.size()) - 1;
        region_for(need.node, made);
        stored_[need.node] = made;
      } catch (const needs_split& need) {
        space.split(need.axis, need.inner);
      } catch (const needs_flip& need) {
        space.flip(need.axis);
      }
    }
    throw impossible{"an index space that does not settle"};
  }

  void concat(int n, int buffer_index) {
    const auto c = node(n);
    const auto dim = static_cast<size_t>(c.dims[0]);
    int64_t first = 0;
    for (int part : c.args) {
      const auto shape = node(part).shape;
      build_region(part, buffer_index, domain::of(shape), c.shape, first, dim);
      first += shape[dim];
    }
  }

  const tensor_program& p_;
  std::map<int, int> stored_, tails_;
  int scratch_ = 0, depth_ = 0;
};

} // namespace

expected<loop_program> build_program(const tensor_program& program) {
  program_builder builder(program);
  try {
    builder.build();
  } catch (const impossible& e) {
    return fail(ec::unsupported, "the built-in coder cannot arrange loops for: " + e.what, "use --coder llm or --coder command");
  }
  join_batches(builder.out);
  builder.out.ops = program.ops;
  builder.out.redundant = program.redundant;
  return std::move(builder.out);
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
