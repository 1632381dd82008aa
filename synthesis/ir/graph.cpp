#include "synthesis/ir/graph.hpp"

#include <limits>

namespace pragma::synthesis {

namespace {

tensor_type type_of(const json& shape, const json& type) {
  tensor_type result;
  if (shape.is_null()) return result; // a result that nobody takes
  result.shape = shape.get<std::vector<int64_t>>();
  result.dtype = type.get<dtype>(); // of a name that it does not know the first one
  if (json(result.dtype) != type) result.foreign = type.get<std::string>();
  return result;
}

void add_references(const json& value, std::vector<std::string>& found) {
  if (value.is_object() && value.contains("ref")) found.push_back(value.at("ref").get<std::string>());
  if (value.is_array())
    for (const auto& v : value) add_references(v, found);
}

graph_leaf leaf_of(const json& entry, const char* index_key) {
  graph_leaf leaf;
  leaf.id = entry.at("id").get<std::string>();
  if (index_key) leaf.index = entry.at(index_key).get<int>();
  leaf.type = type_of(entry.at("shape"), entry.at("dtype"));
  if (entry.contains("values"))
    for (const auto& value : entry.at("values")) leaf.values.push_back(number_of(value));
  return leaf;
}

} // namespace

double number_of(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number()) return value.get<double>();
  const auto text = value.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw std::runtime_error("\"" + text + "\" is not a number");
}

std::vector<std::string> references(const graph_node& node) {
  std::vector<std::string> found;
  if (node.args.is_object())
    for (const auto& value : node.args) add_references(value, found);
  return found;
}

expected<graph> parse_graph(const std::string& text) {
  auto parsed = parse_json(text, "task graph");
  if (!parsed) return fail(parsed.error());
  std::string at = "the top level";
  try {
    graph g;
    for (const auto& entry : parsed->at("inputs")) g.inputs.push_back(leaf_of(entry, "input"));
    for (const auto& entry : parsed->at("params")) g.params.push_back(leaf_of(entry, "param"));
    if (parsed->contains("foreign"))
      for (const auto& entry : parsed->at("foreign")) g.foreign.push_back(leaf_of(entry, nullptr));
    if (parsed->contains("constants"))
      for (const auto& entry : parsed->at("constants")) g.constants.push_back(leaf_of(entry, nullptr));
    for (const auto& entry : parsed->at("nodes")) {
      at = "node " + entry.at("id").get<std::string>();
      graph_node node;
      node.id = entry.at("id").get<std::string>();
      node.op = entry.at("op").get<std::string>();
      node.args = entry.at("args");
      node.line = entry.value("line", 0);
      node.rounding = entry.value("rounds", json("")).get<tf32_rounding>();
      if (entry.contains("shapes")) {
        for (size_t i = 0; i < entry.at("shapes").size(); ++i)
          node.results.push_back(type_of(entry.at("shapes")[i], entry.at("dtypes")[i]));
      } else {
        node.results.push_back(type_of(entry.at("shape"), entry.at("dtype")));
      }
      g.nodes.push_back(std::move(node));
    }
    at = "the outputs";
    g.outputs = parsed->at("outputs").get<std::vector<std::string>>();
    g.random = parsed->value("random", false);
    for (const auto& what : parsed->value("mutated", json::array())) g.writes_inputs = g.writes_inputs || what.get<std::string>().starts_with("input ");
    return g;
  } catch (const std::exception& e) {
    return fail(ec::parse_error, "task graph, " + at + ": " + e.what(), "the tracer and the built-in coder disagree");
  }
}

} // namespace pragma::synthesis
