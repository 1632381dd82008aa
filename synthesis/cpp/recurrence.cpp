#include "synthesis/cpp/recurrence.hpp"

#include <algorithm>

namespace pragma::synthesis {

int64_t time_steps(const region& r) { return r.axes[static_cast<size_t>(r.anchor->steps)].extent; }

const expr& recurrence_writer::argument(size_t i) const {
  const auto& layer = r_.exprs[static_cast<size_t>(r_.stores[0].value)];
  return r_.exprs[static_cast<size_t>(layer.args[i])];
}

bool recurrence_writer::has_bias() const { return r_.exprs[static_cast<size_t>(r_.stores[0].value)].args.size() > (lstm() ? 2u : 1u); }

std::string recurrence_writer::without(int buffer, index_form f, int axis) const {
  std::erase_if(f.terms, [axis](const auto& t) { return t.first == axis; });
  return values_.address(buffer, f);
}

void recurrence_writer::write() {
  out_.line("constexpr int MR = {}, U = {}, NR = U * W; // of a tile: rows, vectors of units of each gate", s_.block.rows, s_.block.vectors);
  pack_weights();
  first_states();
  all_steps();
}

/// For each NR units and the gates that are summed up together: step after step of k, their columns side by side.
void recurrence_writer::pack_weights() {
  const int64_t columns = rounded_up(units_, int64_t{s_.block.vectors} * values_.lanes());
  const int64_t column = c_.b_at.coefficient(c_.n[0]), step = c_.b_at.coefficient(c_.k), gate = c_.b_at.coefficient(c_.gates);
  auto base = c_.b_at;
  base.terms.clear();
  out_.line("alignas(64) static float weights[{}];", columns * gates_ * units_);
  parallel_loop("parallel for num_threads(threads) schedule(static)");
  out_.block("for (int64_t n = 0; n < {}; n += NR)", units_);
  for (int64_t g = 0; g < gates_; ++g)
    out_.line("{}<NR, {}, {}, {} * NR>(weights + n * {} + {} * NR, {} + {} + n * {}, {} - n, {});", out_.use("pack_columns"), column, step, together_, gates_ * units_,
              g / together_ * together_ * units_ + g % together_, values_.address(c_.b, base), g * gate, column, units_, units_);
  out_.close();
}

void recurrence_writer::first_states() {
  const int64_t plane = size_.m * units_;
  auto base = r_.stores[0].at;
  base.terms.clear();
  out_.line("float* const states = {}; // before the first step, and after each", values_.address(r_.stores[0].buffer, base));
  if (lstm()) out_.line("float* const cells = states + {};", (steps_ + 1) * plane);
  const auto m = values_.var(c_.m[0]), n = values_.var(c_.n[0]);
  out_.head("for (int64_t {0} = 0; {0} < {1}; ++{0})", m, size_.m);
  out_.block("for (int64_t {0} = 0; {0} < {1}; ++{0})", n, units_);
  out_.line("states[{} * {} + {}] = float(*({}));", m, units_, n, values_.address(c_.a, c_.a_at));
  if (lstm()) out_.line("cells[{} * {} + {}] = float(*({}));", m, units_, n, values_.address(argument(1).buffer, argument(1).at));
  out_.close();
  out_.end();
}

std::string recurrence_writer::from_input(int gate) {
  const auto& x = argument(0);
  return fmt::format("{}({} + {}, lanes)", out_.use("load"), without(x.buffer, x.at, c_.gates), gate * x.at.coefficient(c_.gates));
}

std::string recurrence_writer::from_state(int gate) {
  const auto sum = fmt::format("sums[({} * MR + {}) * U]", gate / together_ * together_, gate % together_);
  if (!has_bias()) return sum;
  const auto& x = argument(lstm() ? 2 : 1);
  return fmt::format("({} + {}({} + {}, lanes))", sum, out_.use("load"), without(x.buffer, x.at, c_.gates), gate * x.at.coefficient(c_.gates));
}

void recurrence_writer::one_vector() {
  const auto m = values_.var(c_.m[0]), n = values_.var(c_.n[0]);
  const auto place = fmt::format("{} * {} + {}", m, units_, n);
  out_.block("const auto gates = [&](int64_t {}, int64_t {}, const vf* sums, auto lanes) __attribute__((always_inline))", m, n);
  switch (c_.op) {
    case operation::lstm:
      out_.line("const vf taken = {}({});", out_.use("v_sigmoid"), both(0));
      out_.line("const vf kept = v_sigmoid({});", both(1));
      out_.line("const vf fresh = {}({});", out_.use("v_tanh"), both(2));
      out_.line("const vf cell = kept * {}(cells + {}, lanes) + taken * fresh;", out_.use("load"), place);
      out_.line("{}(cells + {}, cell, lanes);", out_.use("store"), place);
      out_.line("store(after + {}, v_sigmoid({}) * v_tanh(cell), lanes);", place, both(3));
      break;
    case operation::gru:
      out_.line("const vf reset = {}({});", out_.use("v_sigmoid"), both(0));
      out_.line("const vf kept = v_sigmoid({});", both(1));
      out_.line("const vf fresh = {}({} + reset * {});", out_.use("v_tanh"), from_input(2), from_state(2));
      out_.line("{}(after + {}, fresh + kept * ({}(before + {}, lanes) - fresh), lanes);", out_.use("store"), place, out_.use("load"), place);
      break;
    case operation::rnn_relu: out_.line("{}(after + {}, {}({}, {}(0.0f)), lanes);", out_.use("store"), place, out_.use("v_maximum"), both(0), out_.use("splat")); break;
    default: out_.line("{}(after + {}, {}({}), lanes);", out_.use("store"), place, out_.use("v_tanh"), both(0));
  }
  out_.close(";");
}

/// The tiles of one step; threads share them out and meet behind the last.
void recurrence_writer::tile_loops() {
  const auto m = values_.var(c_.m[0]), n = values_.var(c_.n[0]);
  const int64_t rows = size_.m, tile = s_.block.rows, rest = rows % tile, tail = units_ % values_.lanes();
  const auto call = [&](int64_t count) {
    return fmt::format("{}<{}, {}>({}, before + m * {}, weights + n * {} + p * {} * NR, tile[p]);", out_.use("multiply_rows"), count, units_, units_, units_, gates_ * units_, together_ * units_);
  };
  parallel_loop("for schedule(static) collapse(2)");
  out_.block("for (int64_t n = 0; n < {}; n += NR)", units_);
  out_.block("for (int64_t m = 0; m < {}; m += MR)", rows);
  out_.line("vf tile[{}][MR][{} * U];", gates_ / together_, together_);
  out_.block("for (int p = 0; p < {}; ++p)", gates_ / together_);
  if (rest == 0) {
    out_.line("{}", call(tile));
  } else {
    if (rows > tile) out_.line("if (m + MR <= {}) {}", rows, call(tile));
    out_.line("{}{}", rows > tile ? "else " : "", call(rest));
  }
  out_.close();
  out_.head("for (int r = 0; r < MR{}; ++r)", rest == 0 ? std::string() : fmt::format(" && m + r < {}", rows));
  out_.block("for (int u = 0; u < U; ++u)");
  out_.line("const int64_t {} = m + r, {} = n + u * W;", m, n);
  if (units_ >= values_.lanes()) out_.line("if ({} + W <= {}) gates({}, {}, tile[0][r] + u, all_lanes{{}});", n, units_, m, n);
  if (tail) out_.line("{}if ({} < {}) gates({}, {}, tile[0][r] + u, some_lanes<{}>{{}});", units_ >= values_.lanes() ? "else " : "", n, units_, m, n, tail);
  out_.close();
  out_.end();
  out_.close();
  out_.close();
}

void recurrence_writer::all_steps() {
  const auto t = values_.var(c_.steps);
  const int64_t plane = size_.m * units_;
  parallel_loop("parallel num_threads(threads)");
  out_.block("for (int64_t {0} = 0; {0} < {1}; ++{0})", t, steps_);
  out_.line("const float* before = states + {} * {};", t, plane);
  out_.line("float* after = states + ({} + 1) * {};", t, plane);
  one_vector();
  tile_loops();
  out_.close();
}

} // namespace pragma::synthesis
