// Matrix products: strides of both operands are template arguments of the packing.
#include "synthesis/cpp/contraction.hpp"

namespace pragma::synthesis {

constexpr int64_t least_shared_packing = 16384; ///< elements: some 4 us

std::string matmul_writer::base(int buffer, const index_form& f) const { return values_.address(buffer, without(f, {c_.k, c_.m[0], c_.n[0]})); }

void matmul_writer::allocate() {
  const int64_t rows = plan_.all_rows, block_rows = rounded_up(s_.block.m, s_.block.rows);
  const int64_t panels = (whole() ? rows * plan_.size.k : block_rows * s_.block.k) + all_.lanes;
  if (all_.threads > 1 && whole() && !plan_.parallel_outside) shared_scratch("a_panels", panels);
  else scratch("a_panels", panels);
  scratch("b_panels", s_.block.k * (plan_.several_m ? rounded_up(s_.block.n, plan_.tile_columns) : panels_at_once() * plan_.tile_columns));
  if (plan_.several_k) scratch("partial", rows * rounded_up(s_.block.n, plan_.tile_columns));
  if (plan_.gathers_lines) scratch("lines", block_rows * plan_.block_columns);
}

void matmul_writer::pack_rows(const std::string& to, const std::string& depth, const std::string& from_k) {
  const int64_t row = c_.a_at.coefficient(c_.m[0]), step = c_.a_at.coefficient(c_.k);
  out_.line("{}<MR, {}, {}>({}, {} + {} * m + {} * {}, {} - m, {});", out_.use(of_pairs() ? "pack_row_pairs" : "pack_rows"), row, step, to, base(c_.a, c_.a_at), row, step, from_k, plan_.size.m, depth);
}

void matmul_writer::pack_all_rows() {
  const auto& size = plan_.size;
  if (plan_.shared && !plan_.parallel_outside && size.m * size.k >= least_shared_packing)
    out_.directive("pragma omp parallel for num_threads(threads) schedule(static){}", plan_.several_k ? " collapse(2)" : "");
  if (plan_.several_k) {
    out_.block("for (int64_t k0 = 0; k0 < {}; k0 += {})", size.k, s_.block.k);
    out_.block("for (int64_t m = 0; m < {}; m += MR)", size.m);
    out_.line("const int64_t depth = least<int64_t>({}, {} - k0);", s_.block.k, size.k);
    pack_rows(fmt::format("a_panels + k0 * {} + m * depth", plan_.all_rows), "depth", "k0");
    out_.close();
    out_.close();
  } else {
    out_.head("for (int64_t m = 0; m < {}; m += MR)", size.m);
    pack_rows(fmt::format("a_panels + m * {}", size.k), std::to_string(size.k), "0");
    out_.end();
  }
}

void matmul_writer::open_steps() {
  if (plan_.several_k) {
    out_.block("for (int64_t k0 = 0; k0 < steps; k0 += {})", s_.block.k);
    out_.line("const int64_t depth = least<int64_t>({}, steps - k0);", s_.block.k);
  } else {
    out_.line("constexpr int64_t k0 = 0, depth = {};", plan_.size.k);
  }
}

/// The panel of columns at n, packed where the first rows meet it.
void matmul_writer::pack_columns() {
  const int64_t column = c_.b_at.coefficient(c_.n[0]), step = c_.b_at.coefficient(c_.k);
  const int panels = panels_at_once();
  const auto from = fmt::format("{} + {} * n + {} * k0", base(c_.b, c_.b_at), column, step);
  if (panels == 1) {
    out_.line("float* b = b_panels{};", plan_.several_m ? " + (n - n0) * depth" : "");
    out_.line("{}{}<NR, {}, {}>(b, {}, {} - n, depth);", plan_.several_m ? "if (m0 == 0) " : "", out_.use(of_pairs() ? "pack_column_pairs" : "pack_columns"), column, step, from, plan_.size.n);
    return;
  }
  const auto among = fmt::format("(n - n0) % ({} * NR)", panels);
  out_.line("float* b = b_panels + {} * depth;", plan_.several_m ? "(n - n0)" : among);
  out_.line("if ({}{} == 0) {}<{}, NR, {}, {}>(b, {}, n1 - n, depth);", plan_.several_m ? "m0 == 0 && " : "", among, out_.use("pack_panels"), panels, column, step, from);
}

void matmul_writer::loops(const code& followers) {
  if (r_.by_row_blocks) return by_row_blocks(followers);
  if (plan_.words != dtype::float32) return by_words(followers);
  allocate();
  open_batch(plan_.outside, plan_.parallel_outside);
  if (whole()) pack_all_rows();
  open_batch(plan_.inside, plan_.parallel_inside);
  if (!plan_.gathers_lines) finish_tile();
  if (plan_.several_k) out_.line("constexpr int64_t steps = {};", plan_.size.k);
  if (plan_.shares_columns) out_.directive("pragma omp parallel for num_threads(threads) schedule(static)");
  open_columns();
  open_steps();
  open_rows();
  if (!whole()) {
    out_.head("for (int64_t m = {}; m < {}; m += MR)", rows_begin(), rows_end());
    pack_rows(panel_of_block(), "depth", "k0");
    out_.end();
  }
  if (plan_.gathers_lines) finish_tile();
  out_.block("for (int64_t n = n0; n < n1; n += NR)");
  pack_columns();
  tile_loop(whole() ? fmt::format("a_panels + k0 * {} + m * depth", plan_.all_rows) : panel_of_block());
  out_.close();
  if (plan_.gathers_lines) stream_lines();
  close_rows();
  if (plan_.several_k) out_.close();
  if (plan_.several_n) out_.close();
  out_.append(followers);
  close_batch(plan_.inside);
  close_batch(plan_.outside);
}

/// The loops of the product in which the others of its blocks run. Threads share out the batch; where it is too small, also the blocks, and then each
/// packs for itself and all columns count.
void matmul_writer::open_row_blocks() {
  auto outside = c_.batch;
  const int blocks = outside.back();
  outside.pop_back();
  const bool shared = plan_.shares_batch, all = plan_.shares_blocks;
  const int64_t count = values_.extent(blocks);
  const auto b = values_.var(blocks);
  if (shared || all) out_.directive("pragma omp parallel for num_threads(threads) schedule(static){}", fmt::format(" collapse({})", all ? c_.batch.size() : outside.size()));
  for (int a : outside) values_.open_loop(a);
  if (r_.bound && !all) out_.line("bool skips = true; // while what skipped weights would meet is finite: zero times that is zero");
  out_.block("for (int64_t {0} = {1}; {0} >= 0; --{0})", b, count - 1);
  out_.line("[[maybe_unused]] const bool first = {};", all ? std::string("true") : fmt::format("{} == {}", b, count - 1));
  std::string item;
  for (int a : c_.batch) item = item.empty() ? values_.var(a) : fmt::format("{} * {} + {}", item.find(' ') == item.npos ? item : "(" + item + ")", values_.extent(a), values_.var(a));
  out_.line("[[maybe_unused]] const int64_t item = {};", item);
  if (!r_.bound) return;
  if (all) out_.line("bool skips = false; // nobody has looked at what this thread packs");
  const auto& x = *r_.bound;
  const auto limit = fmt::format("({} * {} + {}) / {} * {}", b, x.rows, x.beyond + x.step - 1, x.step, x.step);
  out_.line("const int64_t bound = first || !skips ? {} : least<int64_t>({}, {});", x.columns, x.columns, limit);
  out_.comment("where the columns of rows before that one end, tile by tile; one stays: a row that is masked as a whole is NaN");
  out_.block("[[maybe_unused]] const auto columns_until = [&](int64_t row)");
  out_.line("const int64_t columns = {} * {} + row + {};", b, x.rows, x.beyond - x.rows);
  out_.line("return columns < 1 ? 1 : columns;");
  out_.close(";");
}

/// Which block the loop of another product is in.
void matmul_writer::place_in_row_blocks() {
  int64_t step = 1;
  for (size_t i = c_.batch.size(); i-- > 0;) {
    const int a = c_.batch[i];
    out_.line("[[maybe_unused]] const int64_t {} = item / {} % {};", values_.var(a), step, values_.extent(a));
    step *= values_.extent(a);
  }
}

/// Rows past the last full tile are a tile of their own: nothing is read behind them. What a mask leaves out of a tile is not computed (decisions/0042).
void matmul_writer::multiply_rows() {
  const bool weights = r_.bounded_axis >= 0 && r_.host >= 0, masked = r_.bound && r_.host < 0;
  if (weights) out_.line("const int64_t until = columns_until(m + MR) - k0, used = !skips ? depth : until < 0 ? 0 : least<int64_t>(until, depth);");
  const int64_t row = c_.a_at.coefficient(c_.m[0]), rows = plan_.size.m, tile = s_.block.rows, rest = rows % tile;
  const auto call = [&](int64_t count) { return fmt::format("{}<{}, {}>({}, {} + {} * m + k0, b, tile);", out_.use("multiply_rows"), count, row, weights ? "used" : "depth", base(c_.a, c_.a_at), row); };
  const std::string otherwise = masked ? "else " : "";
  if (masked) out_.line("if (n >= columns_until(m + MR)) {}(tile);", out_.use("clear_tile"));
  if (rest == 0) return out_.line("{}{}", otherwise, call(tile));
  if (rows < tile) return out_.line("{}{}", otherwise, call(rest));
  out_.line("{}if (m + MR <= {}) {}", otherwise, rows, call(tile));
  out_.line("else {}", call(rest));
}

void matmul_writer::by_row_blocks(const code& followers) {
  const auto& size = plan_.size;
  const int64_t all_columns = rounded_up(size.n, plan_.tile_columns), row = c_.a_at.coefficient(c_.m[0]), step = c_.a_at.coefficient(c_.k);
  const bool as_they_are = reads_rows_in_place(r_, values_.format(c_.a));
  if (!as_they_are) scratch("a_panels", plan_.all_rows * s_.block.k + all_.lanes);
  scratch("b_panels", all_columns * size.k);
  if (plan_.several_k) scratch("partial", plan_.all_rows * all_columns);
  const bool host = r_.host < 0, ends = r_.bounded_axis >= 0;
  if (host) open_row_blocks();
  else place_in_row_blocks();
  finish_tile();
  if (ends && !host) out_.line("const int64_t steps = bound;");
  else out_.line("constexpr int64_t steps = {};", size.k);
  if (plan_.several_k) out_.line("constexpr int64_t n0 = 0;");
  out_.block("for (int64_t k0 = 0; k0 < steps; k0 += {})", s_.block.k);
  out_.line("const int64_t depth = least<int64_t>({}, steps - k0), packed = least<int64_t>({}, {} - k0);", s_.block.k, s_.block.k, size.k);
  out_.block("if (first)");
  out_.head("for (int64_t n = 0; n < {}; n += NR)", size.n);
  const int64_t column = c_.b_at.coefficient(c_.n[0]), b_step = c_.b_at.coefficient(c_.k);
  out_.line("{}<NR, {}, {}>(b_panels + k0 * {} + n * packed, {} + {} * n + {} * k0, {} - n, packed);", out_.use(of_pairs() ? "pack_column_pairs" : "pack_columns"), column, b_step,
            all_columns, base(c_.b, c_.b_at), column, b_step, size.n);
  out_.end();
  if (ends && !host) out_.line("skips = skips && {}(b_panels + k0 * {}, packed * {});", out_.use("all_finite"), all_columns, all_columns);
  out_.close();
  if (!as_they_are) {
    out_.head("for (int64_t m = 0; m < {}; m += MR)", size.m);
    out_.line("{}<MR, {}, {}>(a_panels + m * depth, {} + {} * m + {} * k0, {} - m, depth);", out_.use(of_pairs() ? "pack_row_pairs" : "pack_rows"), row, step, base(c_.a, c_.a_at), row, step, size.m);
    out_.end();
  }
  out_.block("for (int64_t n = 0; n < {}; n += NR)", ends && host ? std::string("bound") : std::to_string(size.n));
  out_.line("const float* b = b_panels + k0 * {} + n * packed;", all_columns);
  if (as_they_are) tile_loop([&](const std::string&) { multiply_rows(); });
  else tile_loop("a_panels + m * depth");
  out_.close();
  out_.close();
  out_.append(followers);
  if (host) close_batch(c_.batch);
}

} // namespace pragma::synthesis
