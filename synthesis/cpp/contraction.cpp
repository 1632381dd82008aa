#include "synthesis/cpp/contraction.hpp"

#include "synthesis/loops/anchors.hpp"

#include <algorithm>

namespace pragma::synthesis {

contraction_plan plan_contraction(const loop_program& program, const region& r, const region_schedule& s, const schedule& all) {
  const auto& c = *r.anchor;
  contraction_plan p;
  p.size = size_of_contraction(r);
  p.words = words_of(program, r, s.block.tiles());
  p.tile_columns = int64_t{s.block.vectors} * all.lanes;
  p.all_rows = rounded_up(p.size.m, s.block.rows);
  p.strided = c.strided_store();
  if (c.op == operation::convolution) {
    p.block_steps = std::max<int64_t>(1, s.block.k / std::max<int64_t>(1, p.size.taps));
    p.several_k = p.block_steps < p.size.channels;
  } else {
    p.block_steps = s.block.k;
    p.several_k = p.block_steps < p.size.k;
  }
  p.several_m = s.block.m < p.size.m;
  p.several_n = !p.strided && s.block.n < p.size.n;
  p.gathers_lines = s.stream && !p.strided && p.words == dtype::float32 && !whole_lines(r, s, all.lanes);
  int64_t columns = s.block.n;
  if (p.strided) { // the largest phase
    columns = 1;
    for (const auto& d : c.dims) columns *= (d.out + d.stride - 1) / d.stride;
  }
  p.block_columns = rounded_up(columns, p.tile_columns);
  for (int a : c.batch) (c.a_at.coefficient(a) != 0 ? p.outside : p.inside).push_back(a);
  const auto enough = [&](const std::vector<int>& axes) {
    int64_t n = 1;
    for (int a : axes) n *= r.axes[static_cast<size_t>(a)].extent;
    return n >= 2 * all.threads || (n > 1 && n % all.threads == 0);
  };
  p.far_sums = p.several_k && c.op == operation::matmul && !r.by_row_blocks;
  p.shared = all.threads > 1 && !s.one_thread;
  if (r.by_row_blocks) {
    p.several_m = p.several_n = p.gathers_lines = false;
    p.block_columns = rounded_up(p.size.n, p.tile_columns);
    auto outside = c.batch;
    outside.pop_back();
    p.shares_batch = p.shared && !outside.empty() && enough(outside);
    p.shares_blocks = p.shared && !p.shares_batch;
    p.shared = false;
    return p;
  }
  p.parallel_outside = p.shared && enough(p.outside);
  p.shares_columns = p.shared && !p.parallel_outside && !enough(p.inside) && p.several_n;
  p.parallel_inside = p.shared && !p.parallel_outside && !p.shares_columns && (c.op == operation::convolution || enough(p.inside));
  return p;
}

void contraction_writer::write(const code& followers) {
  out_.line("constexpr int MR = {}, NR = {} * W; // tile in registers: rows x columns", s_.block.rows, s_.block.vectors);
  loops(followers);
}

void contraction_writer::scratch(const std::string& name, int64_t elements) {
  out_.line("alignas(64) static {}float {}[{}];", all_.threads > 1 ? "thread_local " : "", name, elements);
}

void contraction_writer::shared_scratch(const std::string& name, int64_t elements) { out_.line("alignas(64) static float {}[{}];", name, elements); }

void contraction_writer::open_batch(const std::vector<int>& axes, bool parallel) {
  if (parallel && !axes.empty())
    out_.directive("pragma omp parallel for num_threads(threads) schedule(static){}", axes.size() > 1 ? fmt::format(" collapse({})", axes.size()) : "");
  for (int a : axes) values_.open_loop(a);
}

void contraction_writer::close_batch(const std::vector<int>& axes) {
  for (size_t i = 0; i < axes.size(); ++i) out_.close();
}

void contraction_writer::open_columns() {
  if (plan_.several_n) {
    out_.block("for (int64_t n0 = 0; n0 < {}; n0 += {})", plan_.size.n, s_.block.n);
    out_.line("const int64_t n1 = least<int64_t>(n0 + {}, {});", s_.block.n, plan_.size.n);
  } else {
    out_.line("constexpr int64_t n0 = 0, n1 = {};", plan_.size.n);
  }
}

void contraction_writer::open_rows() {
  if (!plan_.several_m) return;
  out_.block("for (int64_t m0 = 0; m0 < {}; m0 += {})", plan_.size.m, s_.block.m);
  out_.line("const int64_t m1 = least<int64_t>(m0 + {}, {});", s_.block.m, plan_.size.m);
}

index_form contraction_writer::without(index_form f, const std::vector<int>& axes) const {
  std::erase_if(f.terms, [&](const auto& t) { return std::find(axes.begin(), axes.end(), t.first) != axes.end(); });
  return f;
}

void contraction_writer::finish_tile() {
  out_.block("const auto finish = [&](const {} (&tile){}[MR][NR / W], int64_t m, {}) __attribute__((always_inline))", sums(), plan_.strided ? "[SX]" : "",
             plan_.strided ? "int64_t" : "int64_t n");
  out_.block("for (int r = 0; r < MR{}; ++r)", plan_.size.m % s_.block.rows == 0 ? std::string() : fmt::format(" && m + r < {}", plan_.size.m));
  out_.line("[[maybe_unused]] const int64_t {} = m + r;", values_.var(c_.m[0]));
  values_.name_known(0);
  std::vector<int> roots;
  for (const auto& s : r_.stores) roots.push_back(s.value);
  if (plan_.strided) finish_strided(roots);
  else finish_columns(roots);
  out_.close();
  out_.close(";");
}

/// Nothing that follows depends on the column.
void contraction_writer::finish_strided(const std::vector<int>& roots) {
  const auto& s = r_.stores[0];
  out_.line("vf line[SX][NR / W];");
  out_.head("for (int x = 0; x < SX; ++x)");
  out_.block("for (int t = 0; t < NR / W; ++t)");
  out_.line("const vf sum = tile[x][r][t];");
  out_.line("[[maybe_unused]] constexpr all_lanes lanes{{}};");
  values_.elements(roots, 0);
  out_.line("line[x][t] = {};", values_.text(s.value));
  values_.end_elements();
  out_.close();
  out_.end();
  out_.line("{}({} + p.out, line, runs);", out_.use("store_interleaved"), values_.address(s.buffer, without(s.at, c_.n)));
}

void contraction_writer::finish_columns(const std::vector<int>& roots) {
  const auto& size = plan_.size;
  out_.block("const auto columns_at = [&](int64_t i, {} sum, auto lanes) __attribute__((always_inline))", sums());
  values_.elements(roots, 0);
  if (plan_.gathers_lines) {
    const auto m = values_.var(c_.m[0]);
    out_.line("{}(lines + {} * {} + (i - n0), {}, lanes);", out_.use("store"), plan_.several_m ? "(" + m + " - m0)" : m, plan_.block_columns, values_.text(r_.stores[0].value));
  } else {
    for (const auto& s : r_.stores) values_.store_vector(s);
  }
  values_.end_elements();
  out_.close(";");
  const int64_t tail = size.n % all_.lanes;
  const bool ragged = size.n % plan_.tile_columns != 0;
  if (r_.bound && !plan_.gathers_lines) finish_unmasked(ragged);
  if (size.n >= plan_.tile_columns) {
    if (ragged) out_.block("if (n + NR <= {})", size.n);
    else out_.block();
    out_.line("for (int t = 0; t < NR / W; ++t) columns_at(n + t * W, tile[r][t], all_lanes{{}});");
    if (ragged) out_.line("continue;");
    out_.close();
  }
  if (!ragged) return;
  out_.block("for (int t = 0; t < NR / W; ++t)");
  out_.line("const int64_t i = n + t * W;");
  const bool vectors = size.n >= all_.lanes;
  if (vectors) out_.line("if (i + W <= {}) columns_at(i, tile[r][t], all_lanes{{}});", size.n);
  if (tail) out_.line("{}if (i < {}) columns_at(i, tile[r][t], some_lanes<{}>{{}});", vectors ? "else " : "", size.n, tail);
  out_.close();
}

/// Below the diagonal of a causal mask the selection (column_bound: it is exactly that diagonal's) always takes the value: it is stored without being asked for.
void contraction_writer::finish_unmasked(bool ragged) {
  store s = r_.stores[0];
  const auto& kept = r_.exprs[static_cast<size_t>(s.value)];
  s.value = kept.args[r_.exprs[static_cast<size_t>(kept.args[1])].kind == expr_kind::constant ? 2 : 1];
  out_.block("const auto unmasked = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline))");
  values_.elements({s.value}, 0);
  values_.store_vector(s);
  values_.end_elements();
  out_.close(";");
  const auto& x = *r_.bound;
  out_.block("if (n + NR <= {} * {} + {} + {}{})", values_.var(c_.batch.back()), x.rows, values_.var(c_.m[0]), x.beyond - x.rows + 1, ragged ? fmt::format(" && n + NR <= {}", plan_.size.n) : "");
  out_.line("for (int t = 0; t < NR / W; ++t) unmasked(n + t * W, tile[r][t], all_lanes{{}});");
  out_.line("continue;");
  out_.close();
}

void contraction_writer::stream_lines() {
  const auto& s = r_.stores[0];
  const int64_t row = s.at.coefficient(c_.m[0]);
  auto to = values_.address(s.buffer, without(s.at, {c_.m[0], c_.n[0]}));
  if (plan_.several_m) to += fmt::format(" + m0 * {}", row);
  const auto rows = plan_.several_m ? std::string("m1 - m0") : std::to_string(plan_.size.m);
  out_.line("{}{}({} + n0, {}, lines, {}, {}, n1 - n0);", plan_.several_k ? "if (" + last_steps() + ") " : "", out_.use("stream_rows"), to, row, plan_.block_columns, rows);
}

std::string contraction_writer::open_tiles() {
  out_.block("for (int64_t m = {}; m < {}; m += MR)", rows_begin(), rows_end());
  const auto half = triangle_of(r_);
  if (half) {
    out_.comment("tiles {} the diagonal are zeros", half->upper ? "below" : "above");
    if (half->upper) out_.line("const bool needed = n + NR > m + {};", half->diagonal);
    else out_.line("const bool needed = n < m + MR + {};", half->diagonal);
  }
  out_.line("{} tile[MR][NR / W]{};", sums(), half ? " = {}" : "");
  return half ? "needed" : "";
}

void contraction_writer::tile_loop(const std::function<void(const std::string&)>& multiply) {
  const auto needed = open_tiles();
  const bool half = !needed.empty();
  const std::string guarded = half ? "if (needed) " : "";
  const auto sums = fmt::format("partial + m * {} + (n - n0) * MR", plan_.block_columns);
  if (plan_.far_sums) out_.line("{}(tile, {});", out_.use("ask_for_partial"), sums);
  multiply(guarded);
  if (plan_.several_k) {
    out_.line("float* partial_tile = {};", sums);
    out_.line("if (k0 > 0{}) {}(tile, partial_tile);", half ? " && needed" : "", out_.use("add_partial"));
    out_.line("if ({}) finish(tile, m, n);", last_steps());
    out_.line("else {}{}(tile, partial_tile);", guarded, out_.use("keep_partial"));
  } else {
    out_.line("finish(tile, m, n);");
  }
  out_.close();
}

} // namespace pragma::synthesis
