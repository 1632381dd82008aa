// Where a graph is cut. Stages alternate: even ones are ours, odd ones Torch's; a node is as late as those that read it allow, so that little has to be stored between.
#include "synthesis/partition/cut.hpp"

#include "base/text.hpp"
#include "synthesis/lower/lower.hpp"

#include <algorithm>
#include <set>

namespace pragma::synthesis {

namespace {

constexpr double bytes_an_operation = 0.1; ///< a guess: what a multiplication costs beside a byte from memory

std::string name_of(const graph_node& node) {
  const auto parts = split(node.op, '.');
  return parts.size() < 2 ? node.op : parts[1];
}

/// Takes no time of its own: Torch only views a tensor anew.
bool is_view(const graph_node& node) {
  return node.op == "getitem" || one_of(name_of(node), {"view", "_unsafe_view", "_reshape_alias", "reshape", "permute", "transpose", "t", "expand", "select", "slice", "unsqueeze", "squeeze", "unbind", "split",
                                                        "split_with_sizes", "alias", "detach", "view_as_real", "view_as_complex", "diagonal", "unfold", "broadcast_to", "narrow"});
}

/// A layer with a state, all its steps in one call.
bool is_recurrent(const graph_node& node) { return one_of(name_of(node), {"lstm", "gru", "rnn_tanh", "rnn_relu"}); }

/// A tensor out of nothing.
bool is_creation(const graph_node& node) { return one_of(name_of(node), {"arange", "full", "zeros", "ones", "empty", "scalar_tensor", "new_zeros", "new_ones", "new_full", "zeros_like", "ones_like", "full_like"}); }

double bytes_of(const tensor_type& type) { return static_cast<double>(type.elements()) * static_cast<double>(size_of(type.dtype)); }

class cutter {
public:
  cutter(const graph& g, const keeps& torch_keeps, bool loops) : g_(g), torch_(g.nodes.size()), stage_(g.nodes.size(), 0), readers_(g.nodes.size()), reads_(g.nodes.size()) {
    for (size_t i = 0; i < g.nodes.size(); ++i) made_by_[g.nodes[i].id] = i;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      reads_[i] = references(g.nodes[i]);
      for (const auto& id : reads_[i])
        if (const auto from = made_by_.find(id); from != made_by_.end()) readers_[from->second].push_back(i);
    }
    why_ = not_lowered_alone(g, loops);
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      if (!why_[i] && torch_keeps && torch_keeps(g.nodes[i])) why_[i] = name_of(g.nodes[i]) + ": Torch's own may be the faster one, as no kernel for the whole task was faster than Torch";
      torch_[i] = why_[i].has_value();
    }
    share_items();
    views_for_torch();
    stages();
  }

  partition parts() {
    std::map<int, part> by_stage;
    for (size_t i = 0; i < g_.nodes.size(); ++i) by_stage[stage_[i]].nodes.push_back(i);
    partition result;
    for (auto& [stage, p] : by_stage) {
      p.ours = stage % 2 == 0 && worth_a_kernel(p);
      if (!p.ours && !result.parts.empty() && !result.parts.back().ours) {
        auto& before = result.parts.back().nodes;
        before.insert(before.end(), p.nodes.begin(), p.nodes.end());
        std::sort(before.begin(), before.end());
      } else {
        result.parts.push_back(std::move(p));
      }
    }
    for (auto& p : result.parts) describe(p);
    add_kept(result, false);
    if (result.kept.empty()) add_kept(result, true);
    return result;
  }

private:
  /// `views`: those, too, where nothing else stands between the parts.
  void add_kept(partition& result, bool views) const {
    std::set<std::string> said;
    for (const auto& p : result.parts)
      for (const auto i : p.nodes) {
        const auto& node = g_.nodes[i];
        if (p.ours || (is_view(node) && !(views && why_[i])) || is_creation(node)) continue;
        const auto text = name_of(node) + (node.line > 0 ? " in line " + std::to_string(node.line) : "");
        if (said.insert(text).second) result.kept.push_back({text, why_[i].value_or(name_of(node) + ": of the model's own tensors alone, which are the same on each call")});
      }
  }

  /// One result of several goes where the call is that gives it.
  void share_items() {
    for (size_t i = 0; i < g_.nodes.size(); ++i)
      if (g_.nodes[i].op == "getitem") torch_[i] = from_torch(reads_[i].at(0));
  }

  bool from_torch(const std::string& id) const {
    const auto made = made_by_.find(id);
    return made != made_by_.end() && torch_[made->second];
  }

  /// A view that only Torch's calls read costs nothing there; a kernel would write it out.
  void views_for_torch() {
    for (size_t i = g_.nodes.size(); i-- > 0;)
      if (is_view(g_.nodes[i]) && g_.nodes[i].op != "getitem" && !readers_[i].empty() && std::all_of(readers_[i].begin(), readers_[i].end(), [&](size_t r) { return torch_[r]; })) torch_[i] = true;
    share_items();
  }

  void stages() {
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      int earliest = 0;
      for (const auto& id : reads_[i])
        if (const auto made = made_by_.find(id); made != made_by_.end()) earliest = std::max(earliest, stage_[made->second]);
      stage_[i] = earliest % 2 == (torch_[i] ? 1 : 0) ? earliest : earliest + 1;
    }
    for (size_t i = g_.nodes.size(); i-- > 0;) {
      if (torch_[i] || readers_[i].empty() || std::find(g_.outputs.begin(), g_.outputs.end(), g_.nodes[i].id) != g_.outputs.end()) continue;
      int latest = stage_[readers_[i].front()];
      for (const auto r : readers_[i]) latest = std::min(latest, stage_[r]);
      stage_[i] = latest % 2 == 0 ? latest : latest - 1;
    }
  }

  /// Something is computed, of a tensor that is not the model's own: that does not change from call to call.
  bool worth_a_kernel(const part& p) const {
    const bool computes = std::any_of(p.nodes.begin(), p.nodes.end(), [&](size_t i) { return !is_view(g_.nodes[i]) && !is_creation(g_.nodes[i]); });
    auto described = p;
    describe(described);
    return computes && !described.inputs.empty();
  }

  void describe(part& p) const {
    const std::set<size_t> inside(p.nodes.begin(), p.nodes.end());
    const auto add = [](std::vector<std::string>& list, const std::string& id) {
      if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
    };
    p.inputs.clear();
    p.outputs.clear();
    std::set<size_t> params;
    for (const auto i : p.nodes) {
      const auto& node = g_.nodes[i];
      for (const auto& id : reads_[i]) {
        const auto made = made_by_.find(id);
        if (made != made_by_.end() ? !inside.contains(made->second) : is_input(id)) add(p.inputs, id);
        for (size_t k = 0; k < g_.params.size(); ++k)
          if (g_.params[k].id == id) params.insert(k);
      }
      const bool read_outside = std::any_of(readers_[i].begin(), readers_[i].end(), [&](size_t r) { return !inside.contains(r); });
      if (read_outside || std::find(g_.outputs.begin(), g_.outputs.end(), node.id) != g_.outputs.end()) add(p.outputs, node.id);
      p.work += work_of(node, i);
    }
    p.params.assign(params.begin(), params.end());
  }

  double work_of(const graph_node& node, size_t at) const {
    if (is_view(node)) return 0;
    double work = 0;
    for (const auto& r : node.results) work += 2 * bytes_of(r);
    if (is_recurrent(node)) return work + bytes_an_operation * recurrent_operations(node, at);
    if (!is_contraction(node)) return work;
    double most = 0; // elements of the operand that is summed over
    for (const auto& id : reads_[at])
      if (const auto made = made_by_.find(id); made != made_by_.end() && !g_.nodes[made->second].results.empty())
        most = std::max(most, static_cast<double>(g_.nodes[made->second].results.front().elements()));
    for (const auto& leaf : g_.inputs) most = std::max(most, std::find(reads_[at].begin(), reads_[at].end(), leaf.id) != reads_[at].end() ? static_cast<double>(leaf.type.elements()) : 0);
    for (const auto& leaf : g_.params)
      if (std::find(reads_[at].begin(), reads_[at].end(), leaf.id) != reads_[at].end() && leaf.type.shape.size() >= 2)
        return work + bytes_an_operation * static_cast<double>(node.results.front().elements()) * static_cast<double>(leaf.type.elements()) / static_cast<double>(std::max<int64_t>(1, leaf.type.shape.front()));
    return work + bytes_an_operation * most;
  }

  /// Multiplications of all steps: each weight once for each step and element of the batch.
  double recurrent_operations(const graph_node& node, size_t at) const {
    double weights = 0;
    for (const auto& leaf : g_.params)
      if (std::find(reads_[at].begin(), reads_[at].end(), leaf.id) != reads_[at].end() && leaf.type.shape.size() == 2) weights += static_cast<double>(leaf.type.elements());
    const auto& all = node.results.front();
    return all.shape.empty() ? 0 : weights * static_cast<double>(all.elements()) / static_cast<double>(std::max<int64_t>(1, all.shape.back()));
  }

  bool is_input(const std::string& id) const {
    return std::any_of(g_.inputs.begin(), g_.inputs.end(), [&](const graph_leaf& leaf) { return leaf.id == id; });
  }

  const graph& g_;
  std::vector<std::optional<std::string>> why_; ///< a node is Torch's by itself
  std::vector<bool> torch_;
  std::vector<int> stage_;
  std::vector<std::vector<size_t>> readers_;
  std::vector<std::vector<std::string>> reads_;
  std::map<std::string, size_t> made_by_;
};

/// The same names for the same places.
json renamed(const json& value, std::map<std::string, std::string>& names) {
  if (value.is_object() && value.contains("ref")) {
    const auto id = value.at("ref").get<std::string>();
    return names.emplace(id, "t" + std::to_string(names.size())).first->second;
  }
  if (!value.is_array()) return value;
  json list = json::array();
  for (const auto& v : value) list.push_back(renamed(v, names));
  return list;
}

} // namespace

bool is_contraction(const graph_node& node) {
  return one_of(name_of(node), {"mm", "bmm", "addmm", "baddbmm", "addmv", "mv", "convolution"}) || is_recurrent(node) || name_of(node).find("scaled_dot_product") != std::string::npos;
}

bool calls_contraction(const std::string& name) {
  static const std::set<std::string> others = {"linear", "bilinear", "mm", "bmm", "addmm", "addbmm", "baddbmm", "mv", "addmv", "dot", "vdot", "inner", "einsum", "tensordot", "chain_matmul", "linalg_multi_dot", "lstm", "gru"};
  if (others.contains(name) || name.starts_with("rnn_")) return true;
  for (const char* family : {"conv", "matmul", "attention"})
    if (name.find(family) != std::string::npos) return true;
  return false;
}

std::string calls_of(const std::vector<kept_call>& kept) {
  std::vector<std::string> calls;
  for (const auto& k : kept) calls.push_back(k.call);
  return join(calls, ", ");
}

expected<partition> cut(const graph& g, const keeps& torch_keeps, bool loops) {
  if (g.random) return fail(ec::unsupported, "the reference draws random numbers, which no kernel can repeat", "make the task deterministic (Dropout in eval mode, for example)");
  if (g.writes_inputs) return fail(ec::unsupported, "forward() writes to its inputs, which parts of it cannot");
  for (const auto& node : g.nodes)
    if (one_of(name_of(node), {"as_strided", "as_strided_scatter", "set", "resize"}))
      return fail(ec::unsupported, node.op + " reads memory by strides, which a replayed graph does not have");
  for (const auto& id : g.outputs) {
    const auto is_it = [&](const auto& one) { return one.id == id; };
    if (std::none_of(g.nodes.begin(), g.nodes.end(), is_it) && std::none_of(g.inputs.begin(), g.inputs.end(), is_it)) return fail(ec::unsupported, "forward() returns a parameter or a constant (" + id + ")");
  }
  auto result = cutter(g, torch_keeps, loops).parts();
  if (std::none_of(result.parts.begin(), result.parts.end(), [](const part& p) { return p.ours; }))
    return fail(ec::left_as_it_is, "left as it is, and as fast: there is nothing beside " + calls_of(result.kept) + " that a kernel could compute", "Torch computes it as before");
  return result;
}

std::string shape_of(const graph& g, const part& p) {
  std::map<std::string, std::string> names;
  json text = json::array();
  const auto leaf = [&](const graph_leaf& l) { text.push_back({names.emplace(l.id, "t" + std::to_string(names.size())).first->second, l.type.dtype, l.type.shape, l.values}); };
  for (const auto& id : p.inputs) {
    names.emplace(id, "t" + std::to_string(names.size()));
    for (const auto& l : g.inputs)
      if (l.id == id) text.push_back({l.type.dtype, l.type.shape});
    for (const auto& node : g.nodes)
      if (node.id == id) text.push_back({node.results.front().dtype, node.results.front().shape});
  }
  for (const auto k : p.params) leaf(g.params[k]);
  for (const auto i : p.nodes)
    for (const auto& id : references(g.nodes[i]))
      for (const auto& constant : g.constants)
        if (constant.id == id && !names.contains(id)) leaf(constant);
  for (const auto i : p.nodes) {
    const auto& node = g.nodes[i];
    json args = json::object();
    for (const auto& [key, value] : node.args.items()) args[key] = renamed(value, names);
    json types = json::array();
    for (const auto& r : node.results) types.push_back({r.dtype, r.shape});
    text.push_back({node.op, std::move(args), std::move(types), names.emplace(node.id, "t" + std::to_string(names.size())).first->second});
  }
  for (const auto& id : p.outputs) text.push_back(names.at(id));
  return text.dump();
}

} // namespace pragma::synthesis
