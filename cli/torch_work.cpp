#include "cli/torch_work.hpp"

#include "synthesis/ir/graph.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace pragma {

namespace {

/// Operators whose result is memory of their argument.
const std::set<std::string> views = {"_reshape_alias", "_unsafe_view", "alias",   "as_strided", "chunk", "detach",           "diagonal",     "expand", "getitem",   "lift_fresh", "lift_fresh_copy", "narrow",
                                     "permute",        "reshape",      "select",  "slice",      "split", "split_with_sizes", "squeeze",      "t",      "transpose", "unbind",     "unfold",          "unsafe_split",
                                     "unsafe_split_with_sizes",        "unsqueeze", "view"};

double bytes_of(const synthesis::tensor_type& type) {
  double bytes = static_cast<double>(size_of(type.dtype));
  for (const auto d : type.shape) bytes *= static_cast<double>(d);
  return bytes;
}

/// "aten.mul.Tensor" -> "mul"
std::string short_name(const std::string& op) {
  const auto from = op.starts_with("aten.") ? size_t{5} : size_t{0};
  return op.substr(from, op.find('.', from) - from);
}

void references(const json& value, std::vector<std::string>& to) {
  if (value.is_object() && value.contains("ref") && value["ref"].is_string()) to.push_back(value["ref"].get<std::string>());
  else if (value.is_structured())
    for (const auto& v : value) references(v, to);
}

} // namespace

torch_work torch_work_of(const std::string& graph) {
  torch_work work;
  const auto parsed = synthesis::parse_graph(graph);
  if (!parsed) return work;
  std::map<std::string, double> stored; ///< bytes in memory: an expanded tensor is as large as what it repeats
  for (const auto* leaves : {&parsed->inputs, &parsed->params, &parsed->constants})
    for (const auto& leaf : *leaves) stored[leaf.id] = bytes_of(leaf.type);
  for (const auto& node : parsed->nodes) {
    std::vector<std::string> read;
    references(node.args, read);
    double in = 0, out = 0;
    for (const auto& id : read) in += stored[id];
    for (const auto& result : node.results) out += bytes_of(result);
    const auto name = short_name(node.op);
    const bool view = views.contains(name);
    stored[node.id] = view ? std::min(in, out) : out;
    if (view) continue;
    work.operators.push_back(name);
    work.bytes += in + out;
  }
  return work;
}

} // namespace pragma
