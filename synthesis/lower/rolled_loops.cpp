#include "synthesis/lower/rolled_loops.hpp"

#include "synthesis/lower/lower.hpp"

#include <algorithm>
#include <map>

namespace pragma::synthesis {

namespace {

constexpr int none = -1;

/// h = factor * before + term
struct link {
  int before = none, factor = none, term = none;
  int64_t length = 0; ///< of the chain that ends here
};

bool is(const tensor_node& n, operation op) { return n.kind == node_kind::pointwise && n.op == op; }

/// The ways to read a node as a link.
std::vector<link> readings(const tensor_program& p, int n) {
  std::vector<link> found;
  const auto& sum = p.nodes[static_cast<size_t>(n)];
  if (!is(sum, operation::add) || !is_floating(sum.dtype)) return found;
  for (size_t k = 0; k < 2; ++k) {
    const auto& product = p.nodes[static_cast<size_t>(sum.args[k])];
    if (!is(product, operation::mul)) continue;
    for (size_t m = 0; m < 2; ++m) found.push_back({product.args[m], product.args[1 - m], sum.args[1 - k], 1});
  }
  return found;
}

/// For each node the longest chain that ends there.
std::vector<link> links_of(const tensor_program& p) {
  std::vector<link> links(p.nodes.size());
  for (size_t i = 0; i < p.nodes.size(); ++i)
    for (auto reading : readings(p, static_cast<int>(i))) {
      const auto before = static_cast<size_t>(reading.before);
      if (p.nodes[before].shape == p.nodes[i].shape) reading.length += links[before].length;
      if (reading.length > links[i].length) links[i] = reading;
    }
  return links;
}

/// The steps of a chain, first to last.
using chain = std::vector<int>;

class roller {
public:
  explicit roller(const tensor_program& from) : from_(from), links_(links_of(from)), chain_at_(from.nodes.size(), none), step_at_(from.nodes.size(), 0), placed_(from.nodes.size(), none), to_(empty_of(from)), b_(to_) { find_chains(); }

  bool found() const { return !chains_.empty(); }

  tensor_program rolled() {
    for (size_t i = 0; i < from_.nodes.size(); ++i) place(static_cast<int>(i));
    for (int& out : to_.outputs) out = placed_[static_cast<size_t>(out)];
    return std::move(to_);
  }

private:
  static tensor_program empty_of(const tensor_program& p) {
    auto twin = p;
    twin.nodes.clear();
    return twin;
  }
  const tensor_node& at(int n) const { return from_.nodes[static_cast<size_t>(n)]; }

  void find_chains() {
    std::vector<int> ends;
    for (size_t i = 0; i < links_.size(); ++i)
      if (links_[i].length >= least_rolled_steps) ends.push_back(static_cast<int>(i));
    std::stable_sort(ends.begin(), ends.end(), [&](int a, int b) { return links_[static_cast<size_t>(a)].length > links_[static_cast<size_t>(b)].length; });
    for (bool more = true; more;) { // a loop that goes on from the last state of another one is a chain of its own once that one is known
      more = false;
      for (int end : ends) more = claim(end) || more;
    }
  }

  /// The chain that ends here, as far back as its steps belong to no other one.
  bool claim(int end) {
    chain steps;
    for (int n = end; chain_at_[static_cast<size_t>(n)] < 0; n = links_[static_cast<size_t>(n)].before) {
      steps.push_back(n);
      if (links_[static_cast<size_t>(n)].length == 1) break;
    }
    if (static_cast<int64_t>(steps.size()) < least_rolled_steps) return false;
    std::reverse(steps.begin(), steps.end());
    if (!is_linear(steps)) return false;
    for (size_t t = 0; t < steps.size(); ++t) {
      chain_at_[static_cast<size_t>(steps[t])] = static_cast<int>(chains_.size());
      step_at_[static_cast<size_t>(steps[t])] = static_cast<int64_t>(t);
    }
    chains_.push_back(std::move(steps));
    states_.push_back(none);
    return true;
  }

  /// Neither a factor nor a term follows from a state.
  bool is_linear(const chain& steps) const {
    std::vector<bool> follows(from_.nodes.size());
    for (int s : steps) follows[static_cast<size_t>(s)] = true;
    for (size_t i = 0; i < from_.nodes.size(); ++i)
      for (int a : from_.nodes[i].args)
        if (follows[static_cast<size_t>(a)]) follows[i] = true;
    return std::none_of(steps.begin(), steps.end(), [&](int s) {
      const auto& l = links_[static_cast<size_t>(s)];
      return follows[static_cast<size_t>(l.factor)] || follows[static_cast<size_t>(l.term)];
    });
  }

  /// The node in the new program. What the later steps of a chain are made of is placed with the first.
  int place(int n) {
    auto& known = placed_[static_cast<size_t>(n)];
    if (known >= 0) return known;
    if (const int c = chain_at_[static_cast<size_t>(n)]; c >= 0)
      if (const int states = states_of(static_cast<size_t>(c)); states >= 0) return placed_[static_cast<size_t>(n)] = state(states, step_at_[static_cast<size_t>(n)]);
    auto node = at(n);
    for (int& a : node.args) a = place(a);
    if (node.kind == node_kind::concat)
      if (const int whole = of_all_steps(node); whole >= 0) return placed_[static_cast<size_t>(n)] = whole;
    return placed_[static_cast<size_t>(n)] = b_.add(std::move(node));
  }

  /// One position of the first dimension, without it.
  int state(int states, int64_t t) {
    auto shape = b_.at(states).shape;
    std::vector<source_dim> map{{t, 1, -1}};
    for (size_t d = 1; d < shape.size(); ++d) map.push_back({0, 1, static_cast<int>(d) - 1});
    shape.erase(shape.begin());
    return b_.view(states, shape, map);
  }

  /// All states of a chain [T, ..]; none where its steps are not alike.
  int states_of(size_t c) {
    if (states_[c] != none) return states_[c];
    states_[c] = failed;
    const auto steps = chains_[c];
    const auto& last = at(steps.back());
    std::vector<int> factors{none}, terms{none};
    for (size_t t = 1; t < steps.size(); ++t) {
      const auto& l = links_[static_cast<size_t>(steps[t])];
      factors.push_back(place(l.factor));
      terms.push_back(place(l.term));
    }
    int factor = none, term = none, before = none;
    for (const auto& first : readings(from_, steps.front())) { // of the first product either side may be the state
      factors[0] = place(first.factor);
      terms[0] = place(first.term);
      factor = lifted(factors);
      term = lifted(terms);
      before = first.before;
      if (factor >= 0 && term >= 0) break;
    }
    if (factor < 0 || term < 0) return failed;
    before = place(before);
    auto shape = last.shape;
    shape.insert(shape.begin(), static_cast<int64_t>(steps.size()));
    factor = widened(factor, shape);
    term = widened(term, shape);
    if (!is_zero(before)) { // what the first step makes of it stands for its term
      const int begins = b_.compare(operation::equal, b_.index(shape, 0), b_.constant(0, dtype::int64));
      term = b_.select(begins, b_.add2(b_.mul(factor, before), term), term);
    }
    const int all = b_.decayed_sum(term, factor, 0);
    return states_[c] = is_half(last.held_as) ? b_.held_as(last.held_as, all) : all;
  }

  bool is_zero(int n) const { return to_.nodes[static_cast<size_t>(n)].kind == node_kind::constant && to_.nodes[static_cast<size_t>(n)].value == 0; }

  /// [T, ..] broadcast to `shape`, whose first extent is T.
  int widened(int n, const std::vector<int64_t>& shape) {
    while (b_.at(n).shape.size() < shape.size()) n = b_.unsqueeze(n, 1);
    return b_.expand(n, shape);
  }

  /// What a concatenation puts side by side, where it is computed alike from the states of all steps.
  int of_all_steps(const tensor_node& node) {
    if (static_cast<int64_t>(node.args.size()) < least_rolled_steps) return none;
    const int all = lifted(node.args);
    if (all < 0) return none;
    std::vector<int64_t> order;
    for (int64_t d = 1; d <= static_cast<int64_t>(node.shape.size()); ++d) {
      if (d == node.dims[0] + 1) order.push_back(0);
      order.push_back(d);
    }
    return b_.reshape(b_.permute(all, order), node.shape);
  }

  /// The nodes as one, stacked along a new first dimension; none where they are not computed alike.
  int lifted(const std::vector<int>& nodes) {
    if (const auto known = lifted_.find(nodes); known != lifted_.end()) return known->second;
    return lifted_[nodes] = lift(nodes);
  }

  int lift(const std::vector<int>& nodes) {
    auto node = b_.at(nodes[0]); // a copy: building moves the nodes
    const auto steps = static_cast<int64_t>(nodes.size());
    auto shape = node.shape;
    shape.insert(shape.begin(), steps);
    if (std::all_of(nodes.begin(), nodes.end(), [&](int n) { return n == nodes[0]; })) return b_.expand(b_.unsqueeze(nodes[0], 0), shape);
    for (int n : nodes) {
      const auto& other = b_.at(n);
      if (other.kind != node.kind || other.op != node.op || other.dtype != node.dtype || other.held_as != node.held_as || other.shape != node.shape || other.dims != node.dims ||
          other.args.size() != node.args.size())
        return none;
    }
    switch (node.kind) {
      case node_kind::constant: {
        std::vector<double> values;
        for (int n : nodes) values.push_back(b_.at(n).value);
        return widened(b_.table(values, node.dtype, {steps}), shape);
      }
      case node_kind::view: return lifted_view(nodes, shape);
      case node_kind::pointwise:
      case node_kind::reshape:
      case node_kind::reduce:
      case node_kind::scan:
      case node_kind::concat:
      case node_kind::pick: break;
      default: return none;
    }
    for (size_t k = 0; k < node.args.size(); ++k) {
      const int all = lifted(arguments(nodes, k));
      if (all < 0) return none;
      node.args[k] = all;
      if (node.kind == node_kind::pointwise)
        while (b_.at(node.args[k]).shape.size() < shape.size()) node.args[k] = b_.unsqueeze(node.args[k], 1);
    }
    node.shape = shape;
    for (auto& d : node.dims) ++d;
    return b_.add(std::move(node));
  }

  std::vector<int> arguments(const std::vector<int>& nodes, size_t k) const {
    std::vector<int> args;
    for (int n : nodes) args.push_back(b_.at(n).args[k]);
    return args;
  }

  /// Views of one tensor that move by equal steps, or equal views of what is computed alike.
  int lifted_view(const std::vector<int>& nodes, const std::vector<int64_t>& shape) {
    const auto first = b_.at(nodes[0]);
    const bool one = std::all_of(nodes.begin(), nodes.end(), [&](int n) { return b_.at(n).args[0] == first.args[0]; });
    const auto second = b_.at(nodes[1]).map;
    auto map = first.map;
    const auto& extents = first.shape;
    for (auto& m : map)
      if (m.out_dim >= 0 && extents[static_cast<size_t>(m.out_dim)] == 1) m.out_dim = -1; // it stands still
    for (size_t d = 0; d < map.size(); ++d) {
      const int64_t step = second[d].offset - first.map[d].offset;
      for (size_t t = 0; t < nodes.size(); ++t) {
        const auto& here = b_.at(nodes[t]).map[d];
        if (here.step != first.map[d].step || here.out_dim != first.map[d].out_dim || here.offset != first.map[d].offset + static_cast<int64_t>(t) * step) return none;
      }
      if (step != 0 && (!one || map[d].out_dim >= 0)) return none;
      if (map[d].out_dim >= 0) ++map[d].out_dim;
      else if (step != 0) map[d] = {first.map[d].offset, step, 0};
    }
    if (one) return b_.view(first.args[0], shape, map);
    const int all = lifted(arguments(nodes, 0));
    if (all < 0) return none;
    map.insert(map.begin(), {0, 1, 0});
    return b_.view(all, shape, map);
  }

  static constexpr int failed = -2;
  const tensor_program& from_;
  const std::vector<link> links_;
  std::vector<int> chain_at_;
  std::vector<int64_t> step_at_;
  std::vector<chain> chains_;
  std::vector<int> states_; ///< of each chain in the new program
  std::vector<int> placed_;
  tensor_program to_;
  node_builder b_;
  std::map<std::vector<int>, int> lifted_;
};

} // namespace

tensor_program with_rolled_loops(const tensor_program& program) {
  roller r(program);
  return r.found() ? r.rolled() : program;
}

} // namespace pragma::synthesis
