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
  scratch("b_panels", s_.block.k * (plan_.several_m ? rounded_up(s_.block.n, plan_.tile_columns) : plan_.tile_columns));
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

void matmul_writer::loops(const code& followers) {
  const bool parallel_columns = plan_.shared && !plan_.parallel_outside && !plan_.parallel_inside && plan_.several_n;
  allocate();
  open_batch(plan_.outside, plan_.parallel_outside);
  if (whole()) pack_all_rows();
  open_batch(plan_.inside, plan_.parallel_inside);
  if (!plan_.gathers_lines) finish_tile();
  if (plan_.several_k) out_.line("constexpr int64_t steps = {};", plan_.size.k);
  if (parallel_columns) out_.directive("pragma omp parallel for num_threads(threads) schedule(static)");
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
  out_.line("float* b = b_panels{};", plan_.several_m ? " + (n - n0) * depth" : "");
  const int64_t column = c_.b_at.coefficient(c_.n[0]), step = c_.b_at.coefficient(c_.k);
  out_.line("{}{}<NR, {}, {}>(b, {} + {} * n + {} * k0, {} - n, depth);", plan_.several_m ? "if (m0 == 0) " : "", out_.use(of_pairs() ? "pack_column_pairs" : "pack_columns"), column, step, base(c_.b, c_.b_at),
            column, step, plan_.size.n);
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

} // namespace pragma::synthesis
