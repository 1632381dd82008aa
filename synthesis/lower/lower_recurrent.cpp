// Recurrent layers (RNN, LSTM, GRU): one product gives what the input brings to all steps. Then come the steps: a loop (node_kind::recurrence) where the writer
// has one, else written out one by one.
#include "synthesis/lower/lower.hpp"

#include <tuple>

namespace pragma::synthesis {

namespace {

using results = std::vector<int>;

constexpr int64_t most_steps = 64; ///< that are written out

/// x w' + bias for rows x [n, k] and weights [m, k]; bias -1: none.
int linear(node_builder& b, int x, int weights, int bias) {
  const int y = product(b, x, b.permute(weights, {1, 0}));
  return bias < 0 ? y : b.add2(y, bias);
}

/// One layer in one direction.
struct direction {
  operation op;
  int input_weights, state_weights, input_bias = -1, state_bias = -1;
  int state, cell = -1; ///< [batch, units]
  bool backwards = false;
};

/// All states of a direction [steps, batch, units] in the order of time, and what it ends with [1, batch, units].
struct run {
  int states, state, cell = -1;
};

run in_a_loop(node_builder& b, const direction& d, int given) {
  auto by_gate = b.at(given).shape;
  const int64_t steps = by_gate[0], units = b.at(d.state).shape[1], gates = gates_of(d.op);
  by_gate.back() = gates;
  by_gate.push_back(units);
  const int weights = b.reshape(d.state_weights, {gates, units, units});
  const int bias = d.state_bias < 0 ? -1 : b.reshape(d.state_bias, {gates, units});
  const int all = b.recurrence(d.op, b.reshape(given, by_gate), weights, d.state, d.cell, bias);
  return {b.slice(all, 0, 1, 1, steps), b.slice(all, 0, steps, 1, 1), d.cell < 0 ? -1 : b.slice(all, 0, steps + 1, 1, 1)};
}

/// The state after a step, and (of an LSTM) the cell state. `given` [batch, gates * units]
std::pair<int, int> after_step(node_builder& b, const direction& d, int given, int state, int cell) {
  const int64_t units = b.at(state).shape[1];
  const int from_state = linear(b, state, d.state_weights, d.state_bias);
  const auto gate = [&](int of, int64_t g) { return b.slice(of, 1, g * units, 1, units); };
  const auto both = [&](int64_t g) { return b.add2(gate(given, g), gate(from_state, g)); };
  const auto open = [&](int64_t g) { return b.unary(operation::sigmoid, both(g)); };
  switch (d.op) {
    case operation::lstm: {
      const int kept = b.mul(open(1), cell), fresh = b.mul(open(0), b.unary(operation::tanh, both(2)));
      cell = b.add2(kept, fresh);
      return {b.mul(open(3), b.unary(operation::tanh, cell)), cell};
    }
    case operation::gru: {
      const int fresh = b.unary(operation::tanh, b.add2(gate(given, 2), b.mul(open(0), gate(from_state, 2))));
      return {b.add2(fresh, b.mul(open(1), b.sub(state, fresh))), -1};
    }
    case operation::rnn_relu: return {b.extreme(operation::maximum, both(0), b.number(0, given)), -1};
    default: return {b.unary(operation::tanh, both(0)), -1};
  }
}

run step_by_step(node_builder& b, const direction& d, int given) {
  const int64_t steps = b.at(given).shape[0];
  if (steps > most_steps) throw not_lowered{"more than " + std::to_string(most_steps) + " steps, in float64 or on a device"};
  int state = d.state, cell = d.cell;
  results states;
  for (int64_t t = 0; t < steps; ++t) {
    std::tie(state, cell) = after_step(b, d, b.squeeze(b.slice(given, 0, t, 1, 1), {0}), state, cell);
    states.push_back(b.unsqueeze(state, 0));
  }
  return {b.concat(states, 0), b.unsqueeze(state, 0), cell < 0 ? -1 : b.unsqueeze(cell, 0)};
}

/// `rows_first`: x is [batch, steps, features], else [steps, batch, features].
run in_one_direction(node_builder& b, const direction& d, int x, bool rows_first) {
  const auto from = b.at(x).shape;
  int given = linear(b, b.reshape(x, {from[0] * from[1], from[2]}), d.input_weights, d.input_bias);
  given = b.reshape(given, {from[0], from[1], b.at(given).shape[1]});
  if (rows_first) given = b.permute(given, {1, 0, 2});
  if (d.backwards) given = b.flip(given, {0});
  auto result = b.loops && b.at(x).dtype == dtype::float32 ? in_a_loop(b, d, given) : step_by_step(b, d, given);
  if (d.backwards) result.states = b.flip(result.states, {0});
  return result;
}

/// aten.NAME.input: the results of the last layer, the last state, of an LSTM the last cell state.
results layers(const op_call& c, operation op) {
  auto& b = c.b;
  const bool lstm = op == operation::lstm, biases = c.flag("has_biases");
  if (c.flag("train") && c.number("dropout") != 0) throw not_lowered{"dropout between layers"};
  const auto& initial = c.node().args.at("hx");
  const int states = c.tensor_at(lstm ? initial.at(0) : initial), cells = lstm ? c.tensor_at(initial.at(1)) : -1;
  const int64_t count = c.integer("num_layers"), sides = c.flag("bidirectional") ? 2 : 1, units = b.at(states).shape.back();
  const auto& params = c.node().args.at("params");
  if (params.size() != static_cast<size_t>(count * sides * (biases ? 4 : 2)) || (lstm && b.at(cells).shape.back() != units)) throw not_lowered{"a projection of the state (proj_size)"};
  size_t taken = 0;
  const auto next_param = [&] { return c.tensor_at(params.at(taken++)); };
  const auto first = [&](int of, int64_t at) { return b.squeeze(b.slice(of, 0, at, 1, 1), {0}); };
  int x = c.tensor("input");
  bool rows_first = c.flag("batch_first");
  if (b.at(x).elements() == 0) throw not_lowered{"an input without elements"};
  results last_states, last_cells;
  for (int64_t layer = 0; layer < count; ++layer) {
    results both;
    for (int64_t side = 0; side < sides; ++side) {
      direction d{op, next_param(), next_param(), -1, -1, first(states, layer * sides + side), -1, side == 1};
      if (biases) d.input_bias = next_param();
      if (biases) d.state_bias = next_param();
      if (lstm) d.cell = first(cells, layer * sides + side);
      const auto result = in_one_direction(b, d, x, rows_first);
      both.push_back(result.states);
      last_states.push_back(result.state);
      last_cells.push_back(result.cell);
    }
    x = b.concat(both, 2);
    rows_first = false;
  }
  if (c.flag("batch_first")) x = b.permute(x, {1, 0, 2});
  results all{x, b.concat(last_states, 0)};
  if (lstm) all.push_back(b.concat(last_cells, 0));
  return all;
}

} // namespace

void add_recurrent_rules(rule_table& t) {
  for (const auto op : {operation::rnn_tanh, operation::rnn_relu, operation::gru, operation::lstm})
    t["aten." + std::string(name_of(op))] = [op](const op_call& c) { return layers(c, op); };
}

} // namespace pragma::synthesis
