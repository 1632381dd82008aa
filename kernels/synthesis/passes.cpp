#include "kernels/synthesis/passes.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

const expr& at(const region& r, int e) { return r.exprs[static_cast<size_t>(e)]; }

bool uses_scan(const region& r, int e) {
  if (at(r, e).kind == expr_kind::scan) return true;
  for (int a : at(r, e).args)
    if (uses_scan(r, a)) return true;
  return false;
}

uint32_t mask_of(const index_form& f) {
  uint32_t m = 0;
  for (const auto& t : f.terms) m |= 1u << t.first;
  return m;
}

/// sum((x - sum(x) / n)^2): the reduction `e` is a variance of the values that sum() adds.
bool as_moments(const region& r, int e, merged_moments& found) {
  const auto& outer = at(r, e);
  if (outer.kind != expr_kind::reduce || outer.op != "sum" || outer.dtype != dtype::float32) return false;
  const auto& square = at(r, outer.args[0]);
  if (square.op != "mul" || square.args.size() != 2 || square.args[0] != square.args[1]) return false;
  const auto& distance = at(r, square.args[0]);
  if (distance.op != "sub" || distance.args.size() != 2) return false;
  const auto& mean = at(r, distance.args[1]);
  if (mean.op != "div" || mean.args.size() != 2 || at(r, mean.args[1]).kind != expr_kind::constant) return false;
  const auto& sum = at(r, mean.args[0]);
  if (sum.kind != expr_kind::reduce || sum.op != "sum" || sum.args[0] != distance.args[0]) return false;
  double n = 1;
  for (const auto& a : r.axes)
    if (a.reduced) n *= static_cast<double>(a.extent);
  if (at(r, mean.args[1]).value != n || uses_scan(r, sum.args[0])) return false;
  found = {e, mean.args[0], sum.args[0]};
  return true;
}

} // namespace

pass_plan plan_passes(const region& r, uint32_t elements, bool merge) {
  pass_plan plan;
  plan.ready.assign(r.exprs.size(), 0);
  for (size_t i = 0; i < r.exprs.size(); ++i) {
    const int e = static_cast<int>(i);
    int ready = 0;
    for (int a : r.exprs[i].args) ready = std::max(ready, plan.ready[static_cast<size_t>(a)]);
    if (r.exprs[i].kind == expr_kind::reduce) {
      merged_moments m;
      if (merge && as_moments(r, e, m) && !plan.moments.count(m.sum)) {
        plan.moments[m.sum] = m;
        ready = plan.ready[static_cast<size_t>(m.sum)];
      } else {
        ++ready;
        plan.reduces[ready].push_back(e);
      }
    }
    plan.ready[i] = ready;
    plan.passes = std::max(plan.passes, ready);
  }
  for (size_t s = 0; s < r.stores.size(); ++s) {
    const auto& st = r.stores[s];
    if ((at(r, st.value).axes | mask_of(st.at)) & elements) {
      const int pass = plan.ready[static_cast<size_t>(st.value)] + 1;
      plan.stores[pass].push_back(static_cast<int>(s));
      plan.passes = std::max(plan.passes, pass);
    } else {
      plan.row_stores.push_back(static_cast<int>(s));
    }
  }
  return plan;
}

} // namespace pragma::synthesis
