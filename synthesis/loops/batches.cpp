#include "synthesis/loops/batches.hpp"

#include <algorithm>
#include <set>

namespace pragma::synthesis {

std::set<int> buffers_read(const region& r) {
  std::set<int> found;
  const auto live = live_exprs(r);
  for (size_t i = 0; i < r.exprs.size(); ++i)
    if (live[i] && r.exprs[i].kind == expr_kind::load) found.insert(r.exprs[i].buffer);
  if (r.anchor) found.insert({r.anchor->a, r.anchor->b});
  for (const auto& s : r.stores)
    if (s.scatters()) found.insert(s.buffer); // it is joined with what is there
  return found;
}

namespace {

std::vector<index_form*> all_forms(region& r) {
  std::vector<index_form*> forms;
  for (auto& s : r.stores) forms.push_back(&s.at);
  for (auto& e : r.exprs) forms.push_back(&e.at);
  return forms;
}

/// The forms with which a region touches any of these buffers.
std::vector<std::pair<int, index_form*>> touches(region& r, const std::set<int>& buffers) {
  std::vector<std::pair<int, index_form*>> found;
  const auto live = live_exprs(r);
  for (auto& s : r.stores)
    if (buffers.count(s.buffer)) found.push_back({s.buffer, &s.at});
  for (size_t i = 0; i < r.exprs.size(); ++i)
    if (live[i] && r.exprs[i].kind == expr_kind::load && buffers.count(r.exprs[i].buffer)) found.push_back({r.exprs[i].buffer, &r.exprs[i].at});
  return found;
}

} // namespace

bool take_item_out(region& r, const std::set<int>& local, int64_t batch, const loop_program& p) {
  if (r.anchor || r.scatters() || r.axes.size() >= 30) return false;
  int axis = -1;
  for (const auto& [b, f] : touches(r, local)) {
    const int64_t elements = p.buffers[static_cast<size_t>(b)].elements;
    if (elements % batch != 0 || f->dynamic >= 0 || f->offset < 0) return false;
    int top = -1;
    for (const auto& [a, c] : f->terms)
      if (c > 0 && c * r.axes[static_cast<size_t>(a)].extent == elements) top = a;
    if (top < 0 || (axis >= 0 && top != axis)) return false;
    axis = top;
  }
  if (axis < 0) return false;
  auto& x = r.axes[static_cast<size_t>(axis)];
  if (x.reduced || x.window || x.extent % batch != 0) return false;
  const int64_t inner = x.extent / batch;
  for (const auto& a : r.axes)
    if (a.guard.output_axis == axis) return false;
  for (const auto& [b, f] : touches(r, local)) { // the rest must stay within one element
    const int64_t item = p.buffers[static_cast<size_t>(b)].elements / batch;
    int64_t last = f->offset;
    for (const auto& [a, c] : f->terms) {
      if (c < 0) return false;
      last += c * ((a == axis ? inner : r.axes[static_cast<size_t>(a)].extent) - 1);
    }
    if (last >= item || f->coefficient(axis) * inner != item) return false;
  }
  for (const auto& s : r.stores)
    if (s.at.coefficient(axis) == 0) return false;
  if (inner == 1) {
    r.item = axis;
    return true;
  }
  const int fresh = static_cast<int>(r.axes.size());
  x.extent = inner;
  r.axes.push_back(synthesis::axis{});
  r.axes.back().extent = batch;
  for (auto* f : all_forms(r))
    if (const auto c = f->coefficient(axis); c != 0) f->terms.push_back({fresh, c * inner});
  for (auto& e : r.exprs)
    if (e.axes & (1u << axis)) e.axes |= 1u << fresh;
  r.item = fresh;
  return true;
}

void shrink_to_item(region& r, const std::set<int>& local, const std::vector<int>& item_axes) {
  for (const auto& [b, f] : touches(r, local))
    std::erase_if(f->terms, [&](const auto& t) { return std::find(item_axes.begin(), item_axes.end(), t.first) != item_axes.end(); });
}

void join_batches(loop_program& p) {
  std::vector<region> done;
  std::vector<region> rest = std::move(p.regions);
  int blocks_host = -1;
  while (!rest.empty()) {
    region head = std::move(rest.front());
    rest.erase(rest.begin());
    if (head.by_row_blocks || head.host >= 0) { // joined by its rows
      if (head.host < 0) blocks_host = static_cast<int>(done.size());
      else head.host = blocks_host;
      done.push_back(std::move(head));
      continue;
    }
    int batch_axis = -1;
    if (head.anchor && head.anchor->group < 0 && !head.anchor->recurrent())
      for (int a : head.anchor->batch)
        if (head.axes[static_cast<size_t>(a)].extent > 1) batch_axis = batch_axis == -1 ? a : -2;
    const auto& out = head.stores[0];
    const auto& target = p.buffers[static_cast<size_t>(out.buffer)];
    const int64_t batch = batch_axis >= 0 ? head.axes[static_cast<size_t>(batch_axis)].extent : 1;
    if (batch < 2 || head.stores.size() != 1 || target.kind != buffer_kind::scratch || out.at.coefficient(batch_axis) * batch != target.elements) {
      done.push_back(std::move(head));
      continue;
    }
    std::set<int> local{out.buffer};
    std::vector<region> before, inside;
    size_t next = 0;
    for (; next < rest.size(); ++next) {
      if (rest[next].by_row_blocks || rest[next].scatters()) break; // it comes after what wrote its buffer first
      const auto reads = buffers_read(rest[next]);
      const bool independent = std::none_of(reads.begin(), reads.end(), [&](int b) { return local.count(b) != 0; });
      if (independent) {
        before.push_back(rest[next]);
        continue;
      }
      region joined = rest[next];
      auto wider = local;
      for (const auto& s : joined.stores)
        if (p.buffers[static_cast<size_t>(s.buffer)].kind == buffer_kind::scratch) wider.insert(s.buffer);
      if (!take_item_out(joined, wider, batch, p)) break;
      local = wider;
      inside.push_back(std::move(joined));
    }
    if (inside.empty()) {
      done.push_back(std::move(head));
      continue;
    }
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(next));
    // Buffers that nobody needs afterwards, and that nobody else writes a part of, shrink to one element of the batch.
    for (const auto& r : rest)
      for (int b : buffers_read(r)) local.erase(b);
    for (const auto* others : {&done, &before, &rest})
      for (const auto& r : *others)
        for (const auto& s : r.stores) local.erase(s.buffer);
    head.item = batch_axis;
    shrink_to_item(head, local, {head.item});
    for (auto& r : inside) shrink_to_item(r, local, {r.item});
    for (int b : local) {
      p.buffers[static_cast<size_t>(b)].elements /= batch;
      p.buffers[static_cast<size_t>(b)].of_item = true;
    }
    for (auto& r : before) done.push_back(std::move(r));
    const int host = static_cast<int>(done.size());
    done.push_back(std::move(head));
    for (auto& r : inside) {
      r.host = host;
      done.push_back(std::move(r));
    }
  }
  p.regions = std::move(done);
}

} // namespace pragma::synthesis
