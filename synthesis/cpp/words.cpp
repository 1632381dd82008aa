// Matrix products by words of 32 bits (helpers/words.cpp): two bfloat16 or four int8, on the processor's tiles where it has them.
#include "synthesis/cpp/contraction.hpp"

#include "synthesis/cpp/types.hpp"

namespace pragma::synthesis {

constexpr int64_t least_shared_words = 65536; ///< elements: some 4 us of packing
constexpr int64_t most_word_steps = 64;       ///< of 16 words

/// Panels are at most as long as their float32, and whole words even of the fewest steps.
void matmul_writer::allocate_words() {
  const int64_t steps = rounded_up(plan_.size.k, most_word_steps), of_block = rounded_up(plan_.block_steps, most_word_steps);
  if (plan_.shares_columns) shared_scratch("a_panels", s_.block.m * steps);
  else scratch("a_panels", s_.block.m * steps);
  scratch("b_panels", s_.block.n * of_block);
  if (plan_.several_k) out_.line("alignas(64) static {}{} partial[{}];", all_.threads > 1 ? "thread_local " : "", sums(), s_.block.m * s_.block.n / all_.lanes);
}

void matmul_writer::pack_words_of_rows() {
  const int64_t row = c_.a_at.coefficient(c_.m[0]), step = c_.a_at.coefficient(c_.k);
  if (plan_.shares_columns && s_.block.m * plan_.size.k >= least_shared_words) out_.directive("pragma omp parallel for num_threads(threads) schedule(static)");
  out_.block("for (int64_t m = {}; m < {}; m += MR)", rows_begin(), rows_end());
  open_steps();
  out_.line("{}<{}, MR, {}, {}>(a_panels + {}<{}>(k0) * {} + (m - {}) * {}<{}>(depth), {} + {} * m + {} * k0, {} - m, depth);", out_.use("pack_row_words"), memory_type(plan_.words), row, step,
            "panel_length", memory_type(plan_.words), s_.block.m, rows_begin(), "panel_length", memory_type(plan_.words), base(c_.a, c_.a_at), row, step,
            plan_.size.m);
  if (plan_.several_k) out_.close();
  out_.close();
}

void matmul_writer::pack_words_of_columns() {
  const int64_t column = c_.b_at.coefficient(c_.n[0]), step = c_.b_at.coefficient(c_.k);
  const int64_t panels = column == 1 ? s_.block.n / plan_.tile_columns : 1;
  out_.head("for (int64_t n = n0; n < n1; n += {}NR)", panels > 1 ? fmt::format("{} * ", panels) : "");
  out_.line("{}<{}, {}, NR, {}, {}>(b_panels + (n - n0) * length, {} + {} * n + {} * k0, {} - n, depth, NR * length);", out_.use("pack_column_words"), memory_type(plan_.words), panels, column, step,
            base(c_.b, c_.b_at), column, step, plan_.size.n);
  out_.end();
}

void matmul_writer::multiply_words() {
  out_.block("for (int64_t n = n0; n < n1; n += NR)");
  const auto needed = open_tiles();
  const auto guarded = needed.empty() ? std::string() : "if (" + needed + ") ";
  const auto call = [&](const char* from, const char* to) {
    out_.line("{}{}<{}, MR, NR / W>(depth, a_panels + panel_length<{}>(k0) * {} + (m - {}) * length, b_panels + (n - n0) * length, {}, {});", guarded, out_.use("multiply_words"),
              memory_type(plan_.words), memory_type(plan_.words), s_.block.m, rows_begin(), from, to);
  };
  if (plan_.several_k) {
    out_.line("{}* sums = partial + ((m - {}) * {} + (n - n0) * MR) / W;", sums(), rows_begin(), s_.block.n);
    call("k0 > 0 ? sums : nullptr", (last_steps() + " ? tile[0] : sums").c_str());
    out_.line("if ({}) finish(tile, m, n);", last_steps());
  } else {
    call("nullptr", "tile[0]");
    out_.line("finish(tile, m, n);");
  }
  out_.close();
  out_.close();
}

/// Blocks of rows lie outside: all steps of one stay in the second level while all columns pass, whose sums over some steps then are few enough to stay there, too (decisions/0050).
void matmul_writer::by_words(const code& followers) {
  allocate_words();
  open_batch(plan_.outside, plan_.parallel_outside);
  open_batch(plan_.inside, plan_.parallel_inside);
  finish_tile();
  if (plan_.several_k) out_.line("constexpr int64_t steps = {};", plan_.size.k);
  open_rows();
  pack_words_of_rows();
  if (plan_.shares_columns) out_.directive("pragma omp parallel for num_threads(threads) schedule(static)");
  open_columns();
  out_.line("[[maybe_unused]] const {} tiles;", out_.use("tile_registers"));
  open_steps();
  out_.line("const int64_t length = panel_length<{}>(depth);", memory_type(plan_.words));
  pack_words_of_columns();
  multiply_words();
  if (plan_.several_k) out_.close();
  if (plan_.several_n) out_.close();
  close_rows();
  out_.append(followers);
  close_batch(plan_.inside);
  close_batch(plan_.outside);
}

} // namespace pragma::synthesis
