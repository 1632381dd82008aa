#include "synthesis/loops/copies.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

/// Whole numbers of eight bits, which float32 and the half types have exactly.
bool is_byte(dtype type) { return type == dtype::int8 || type == dtype::uint8; }

/// The buffer that `r` copies element by element into its only store, or -1. `widened`: it makes float32 of bytes.
int copied(const region& r, const loop_program& p, bool widened = false) {
  if (r.anchor || r.stores.size() != 1 || r.scan_axis >= 0) return -1;
  const auto& s = r.stores[0];
  const auto& stored = r.exprs[static_cast<size_t>(s.value)];
  if (widened && (stored.kind != expr_kind::op || stored.op != operation::convert || stored.dtype != dtype::float32)) return -1;
  const auto& value = widened ? r.exprs[static_cast<size_t>(stored.args[0])] : stored;
  if (value.kind != expr_kind::load || !value.args.empty() || value.buffer == s.buffer) return -1;
  const auto &from = p.buffers[static_cast<size_t>(value.buffer)], &to = p.buffers[static_cast<size_t>(s.buffer)];
  for (const auto& other : p.regions)
    for (const auto& more : other.stores)
      if (more.scatters() && more.buffer == s.buffer) return -1; // a copy that changes
  int64_t elements = 1;
  for (const auto& a : r.axes) {
    if (a.reduced || a.window || a.contracted) return -1;
    elements *= a.extent;
  }
  const bool fits = widened ? is_byte(from.dtype) && value.dtype == from.dtype && (to.dtype == dtype::float32 || (is_half(to.dtype) && from.dtype == dtype::int8)) : from.dtype == to.dtype;
  const bool whole = elements == to.elements && from.elements == to.elements && fits;
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

/// Is `buffer` read as a factor of matrix products, and otherwise not at all?
bool only_a_factor(const loop_program& p, int buffer) {
  for (const auto& r : p.regions) {
    if (r.anchor && r.anchor->op != operation::matmul && (r.anchor->a == buffer || r.anchor->b == buffer)) return false;
    const auto live = live_exprs(r);
    for (size_t i = 0; i < r.exprs.size(); ++i)
      if (live[i] && r.exprs[i].kind == expr_kind::load && r.exprs[i].buffer == buffer) return false;
  }
  return true;
}

} // namespace

void widen_while_packing(loop_program& p) {
  for (size_t i = 0; i < p.regions.size();) {
    const int from = copied(p.regions[i], p, true);
    const int to = from < 0 ? -1 : p.regions[i].stores[0].buffer;
    const auto kind = [&](int b) { return p.buffers[static_cast<size_t>(b)].kind; };
    if (from < 0 || kind(to) != buffer_kind::scratch || (kind(from) != buffer_kind::param && kind(from) != buffer_kind::input) || !only_a_factor(p, to)) {
      ++i;
      continue;
    }
    p.regions.erase(p.regions.begin() + static_cast<std::ptrdiff_t>(i));
    rename(p, to, from);
  }
}

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
