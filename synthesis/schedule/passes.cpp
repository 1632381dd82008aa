#include "synthesis/schedule/passes.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

const expr& at(const region& r, int e) { return r.exprs[static_cast<size_t>(e)]; }

bool uses_scan(const region& r, int e) {
  const auto needed = needed_for(r, {e});
  for (size_t i = 0; i < needed.size(); ++i)
    if (needed[i] && r.exprs[i].kind == expr_kind::scan) return true;
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
  if (outer.kind != expr_kind::reduce || outer.op != operation::sum || outer.dtype != dtype::float32) return false;
  const auto& square = at(r, outer.args[0]);
  if (square.op != operation::mul || square.args.size() != 2 || square.args[0] != square.args[1]) return false;
  const auto& distance = at(r, square.args[0]);
  if (distance.op != operation::sub || distance.args.size() != 2) return false;
  const auto& mean = at(r, distance.args[1]);
  if (mean.op != operation::div || mean.args.size() != 2 || at(r, mean.args[1]).kind != expr_kind::constant) return false;
  const auto& sum = at(r, mean.args[0]);
  if (sum.kind != expr_kind::reduce || sum.op != operation::sum || sum.args[0] != distance.args[0]) return false;
  double n = 1;
  for (const auto& a : r.axes)
    if (a.reduced) n *= static_cast<double>(a.extent);
  if (at(r, mean.args[1]).value != n || uses_scan(r, sum.args[0])) return false;
  found = {e, mean.args[0], sum.args[0]};
  return true;
}

constexpr int64_t least_followed = 512; ///< elements of a row: a level costs some fifty cycles a row

/// The difference that a sum of the second pass adds up, itself or its exponential; -1: something else.
int difference_of(const region& r, int sum, int peak) {
  const auto& x = at(r, sum);
  if (x.op != operation::sum || x.dtype != dtype::float32) return -1;
  const auto& term = at(r, x.args[0]);
  const int d = term.kind == expr_kind::op && term.op == operation::exp_nonpositive ? term.args[0] : x.args[0];
  const auto& difference = at(r, d);
  return difference.kind == expr_kind::op && difference.op == operation::sub && difference.args[0] == at(r, peak).args[0] && difference.args[1] == peak ? d : -1;
}

followed_peak follow_peak(const region& r, const pass_plan& plan) {
  if (plan.passes != 2 || !plan.stores.empty() || plan.reduces.at(1).size() != 1 || r.bounded_axis >= 0 || r.scan_axis >= 0) return {};
  const int peak = plan.reduces.at(1)[0];
  if (at(r, peak).op != operation::peak || at(r, peak).dtype != dtype::float32) return {};
  int reduced = 0;
  for (const auto& a : r.axes) {
    reduced += a.reduced;
    if (a.window || a.contracted || (a.reduced && a.extent < least_followed)) return {};
  }
  if (reduced != 1) return {};
  const int difference = difference_of(r, plan.reduces.at(2)[0], peak);
  for (int sum : plan.reduces.at(2))
    if (difference < 0 || difference_of(r, sum, peak) != difference) return {};
  return {peak, difference};
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
  if (merge && plan.reduces.size() == 2) plan.followed = follow_peak(r, plan);
  return plan;
}

std::set<int> values_worth_keeping(const region& r, const pass_plan& plan, uint32_t element_mask) {
  std::set<int> found;
  for (size_t i = 0; i < r.exprs.size(); ++i) {
    const auto& e = r.exprs[i];
    if (e.kind != expr_kind::op || !traits(e.op).expensive || !(e.axes & element_mask) || e.dtype != dtype::float32) continue;
    // Needed by a reduction of its own pass and by something later.
    bool now = false, later = false;
    for (size_t u = i + 1; u < r.exprs.size(); ++u)
      for (int a : r.exprs[u].args)
        if (a == static_cast<int>(i)) {
          if (r.exprs[u].kind == expr_kind::reduce) now = now || plan.ready[u] == plan.ready[i] + 1;
          else if (plan.ready[u] > plan.ready[i]) later = true;
        }
    for (const auto& s : r.stores) later = later || s.value == static_cast<int>(i);
    if (now && later) found.insert(static_cast<int>(i));
  }
  return found;
}

} // namespace pragma::synthesis
