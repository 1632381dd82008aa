#include "synthesis/loops/siblings.hpp"

#include "synthesis/loops/batches.hpp"

#include <algorithm>
#include <set>

namespace pragma::synthesis {

namespace {

bool same_axes(const region& a, const region& b) {
  return std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(),
                    [](const axis& x, const axis& y) { return x.extent == y.extent && x.reduced == y.reduced; });
}

/// Rows with a reduction, and nothing that has an order or a border of its own.
bool is_plain_rows(const region& r) { return r.has_reduce() && !r.anchor && !r.has_window() && r.scan_axis < 0 && r.host < 0 && !r.scatters(); }

/// `r` in the expressions of `into`; nothing where they have no reduction in common.
std::optional<region> joined(const region& into, const region& r) {
  region both = into;
  places_of<expr> known;
  std::vector<expr> list;
  for (const auto& e : into.exprs) known.intern(list, e);
  if (list.size() != into.exprs.size()) return std::nullopt; // two that are equal: their places would not be known
  std::vector<int> place;
  bool shared = false;
  for (auto e : r.exprs) {
    for (int& a : e.args) a = place[static_cast<size_t>(a)];
    if (e.at.dynamic >= 0) e.at.dynamic = place[static_cast<size_t>(e.at.dynamic)];
    const bool reduction = e.kind == expr_kind::reduce;
    place.push_back(known.intern(list, std::move(e)));
    shared = shared || (reduction && place.back() < static_cast<int>(into.exprs.size()));
  }
  if (!shared) return std::nullopt;
  both.exprs = std::move(list);
  for (auto s : r.stores) {
    if (s.at.dynamic >= 0) s.at.dynamic = place[static_cast<size_t>(s.at.dynamic)];
    s.value = place[static_cast<size_t>(s.value)];
    both.stores.push_back(std::move(s));
  }
  return both;
}

/// Is there something that `r` reads and a region from `first` up to `last` writes?
bool waits_for(const loop_program& p, const region& r, size_t first, size_t last) {
  const auto reads = buffers_read(r);
  for (size_t i = first; i < last; ++i)
    for (const auto& s : p.regions[i].stores)
      if (std::find(reads.begin(), reads.end(), s.buffer) != reads.end()) return true;
  return false;
}

} // namespace

void join_siblings(loop_program& p) {
  for (size_t i = 0; i < p.regions.size(); ++i) {
    if (!is_plain_rows(p.regions[i])) continue;
    for (size_t j = i + 1; j < p.regions.size();) {
      const auto& r = p.regions[j];
      auto both = is_plain_rows(r) && same_axes(p.regions[i], r) && !waits_for(p, r, i, j) ? joined(p.regions[i], r) : std::nullopt;
      if (!both) {
        ++j;
        continue;
      }
      p.regions[i] = std::move(*both);
      p.regions.erase(p.regions.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

} // namespace pragma::synthesis
