#include "cli/torch_work.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace pragma {

namespace {

const std::set<std::string> views = {"view",    "_unsafe_view", "reshape", "expand", "permute", "transpose", "t",      "select", "slice",   "unsqueeze", "squeeze", "alias",
                                     "detach",  "as_strided",   "split",   "chunk",  "unbind",  "unfold",    "narrow", "diagonal", "getitem", "lift_fresh_copy"};

double elements(const json& shape) {
  double all = 1;
  if (shape.is_array())
    for (const auto& d : shape) all *= d.is_number() ? std::max(0.0, d.get<double>()) : 0.0;
  return all;
}

double bytes_of(const json& shape, const json& dtype) {
  static const std::map<std::string, double> sizes = {{"float64", 8}, {"int64", 8}, {"float32", 4}, {"int32", 4}, {"bfloat16", 2}, {"float16", 2}, {"int16", 2}, {"int8", 1}, {"uint8", 1}, {"bool", 1}};
  const auto size = dtype.is_string() ? sizes.find(dtype.get<std::string>()) : sizes.end();
  return elements(shape) * (size == sizes.end() ? 4 : size->second);
}

/// "aten.mul.Tensor" -> "mul"
std::string short_name(const std::string& op) {
  const auto from = op.starts_with("aten.") ? 5 : 0;
  return op.substr(from, op.find('.', from) - from);
}

const json& at(const json& object, const char* key) {
  static const json none;
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() ? *it : none;
}

void references(const json& value, std::vector<std::string>& to) {
  if (value.is_array())
    for (const auto& v : value) references(v, to);
  if (value.is_object()) {
    if (const auto& id = at(value, "ref"); id.is_string()) to.push_back(id.get<std::string>());
    else
      for (const auto& v : value) references(v, to);
  }
}

} // namespace

torch_work torch_work_of(const std::string& graph) {
  torch_work work;
  const auto parsed = json::parse(graph, nullptr, false);
  if (!parsed.is_object()) return work;
  std::map<std::string, double> stored; ///< bytes in memory: an expanded tensor is as large as what it repeats
  for (const char* kind : {"inputs", "params", "constants"})
    if (const auto& all = at(parsed, kind); all.is_array())
      for (const auto& t : all)
        if (at(t, "id").is_string()) stored[t["id"].get<std::string>()] = bytes_of(at(t, "shape"), at(t, "dtype"));
  const auto& nodes = at(parsed, "nodes");
  if (!nodes.is_array()) return work;
  for (const auto& node : nodes) {
    if (!at(node, "op").is_string() || !at(node, "id").is_string()) continue;
    std::vector<std::string> read;
    references(at(node, "args"), read);
    double in = 0, out = bytes_of(at(node, "shape"), at(node, "dtype"));
    for (const auto& id : read) in += stored.contains(id) ? stored.at(id) : 0;
    if (const auto &shapes = at(node, "shapes"), &types = at(node, "dtypes"); shapes.is_array()) {
      out = 0;
      for (size_t i = 0; i < shapes.size(); ++i)
        if (shapes[i].is_array()) out += bytes_of(shapes[i], types.is_array() && i < types.size() ? types[i] : json());
    }
    const auto name = short_name(node["op"].get<std::string>());
    const bool view = views.contains(name);
    stored[node["id"].get<std::string>()] = view ? std::min(in, out) : out;
    if (view) continue;
    work.operators.push_back(name);
    work.bytes += in + out;
  }
  return work;
}

} // namespace pragma
