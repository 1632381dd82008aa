// The loop nest of a region: which writer it takes, and the loops around it.
#include "synthesis/cpp/columns.hpp"
#include "synthesis/cpp/convolution.hpp"
#include "synthesis/cpp/emit.hpp"
#include "synthesis/cpp/recurrence.hpp"
#include "synthesis/cpp/rows.hpp"

namespace pragma::synthesis {

namespace {

bool is_empty(const region& r) {
  for (const auto& a : r.axes)
    if (a.extent == 0 && !a.reduced) return true;
  return false;
}

/// Outer loops are shared out over threads together until there is enough to share.
void share_out(const region& r, const region_layout& layout, const region_schedule& s, int threads, code& out) {
  if (threads < 2 || s.one_thread || layout.outer.empty() || r.host >= 0) return;
  int64_t work = 1;
  size_t depth = 0;
  while (depth < layout.outer.size() && work < 8 * threads) work *= r.axes[static_cast<size_t>(layout.outer[depth++])].extent;
  out.directive("pragma omp parallel for num_threads(threads) schedule(static){}", depth > 1 ? fmt::format(" collapse({})", depth) : "");
}

} // namespace

code write_region(const loop_program& program, const region& r, const region_schedule& s, const schedule& all, const code& followers) {
  code out;
  if (is_empty(r)) {
    out.comment("no elements");
    return out;
  }
  const auto layout = layout_of(r, s);
  value_writer values(program, r, s, all, layout, out);
  if (r.anchor) {
    if (r.anchor->recurrent()) recurrence_writer(r, s, all, values, out).write();
    else if (r.anchor->op == operation::matmul) matmul_writer(program, r, s, all, layout, values, out).write(followers);
    else convolution_writer(program, r, s, all, layout, values, out).write(followers);
    return out;
  }
  if (r.has_window()) out.comment("window over {} positions", row_elements(r));
  share_out(r, layout, s, all.threads, out);
  const size_t opened = layout.columns || layout.outer.empty() ? layout.outer.size() : layout.outer.size() - 1; // a row writer opens the last one itself
  for (size_t i = 0; i < opened; ++i) values.open_loop(layout.outer[i]);
  if (layout.columns) column_writer(r, s, all, layout, values, out).write();
  else row_writer(r, s, all, layout, values, out).write();
  for (size_t i = 0; i < opened; ++i) out.close();
  return out;
}

} // namespace pragma::synthesis
