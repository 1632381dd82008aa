// What rules ask of a call, the table of rules, and a graph on its way through them.
#include "synthesis/lower/lower.hpp"

#include "base/text.hpp"
#include "synthesis/lower/exact_quotients.hpp"
#include "synthesis/lower/rewrite.hpp"
#include "synthesis/lower/rolled_loops.hpp"

#include <algorithm>
#include <set>

namespace pragma::synthesis {

bool op_call::is_tensor(const char* name) const { return has(name) && node_.args.at(name).is_object(); }

int op_call::tensor_at(const json& ref) const {
  const auto it = values_.find(ref.at("ref").get<std::string>());
  if (it == values_.end() || it->second < 0) throw not_lowered{"a result that is not computed (" + ref.dump() + ")"};
  return it->second;
}

int op_call::tensor(const char* name) const {
  if (!is_tensor(name)) throw not_lowered{std::string(name) + " that is not a tensor"};
  return tensor_at(node_.args.at(name));
}

int op_call::operand(const char* name, dtype type) const {
  if (is_tensor(name)) return b.convert(tensor(name), type);
  return b.constant(number(name), type);
}

double op_call::number(const char* name, double otherwise) const {
  return has(name) ? number_of(node_.args.at(name)) : otherwise;
}

int64_t op_call::integer(const char* name, int64_t otherwise) const {
  return has(name) ? node_.args.at(name).get<int64_t>() : otherwise;
}

bool op_call::flag(const char* name, bool otherwise) const {
  return has(name) ? node_.args.at(name).get<bool>() : otherwise;
}

std::vector<int64_t> op_call::integers(const char* name) const {
  if (!has(name)) return {};
  const auto& value = node_.args.at(name);
  if (value.is_array()) return value.get<std::vector<int64_t>>();
  return {value.get<int64_t>()};
}

std::vector<int64_t> op_call::dims(const char* name, int tensor, bool empty_is_all) const {
  const auto rank = static_cast<int64_t>(b.at(tensor).shape.size());
  auto result = integers(name);
  if (!has(name) || (result.empty() && empty_is_all)) {
    result.clear();
    for (int64_t i = 0; i < rank; ++i) result.push_back(i);
  }
  for (auto& d : result)
    if (d < 0) d += std::max<int64_t>(rank, 1);
  if (rank == 0) result.clear();
  return result;
}

int64_t op_call::dim(const char* name, int tensor) const {
  const auto all = dims(name, tensor);
  return all.empty() ? 0 : all[0];
}

namespace {

struct rule_family {
  const char* name;
  const char* types; ///< for people: docs/operators.md
  void (*add)(rule_table&);
};
constexpr const char* all_types = "all that Torch has for the operator; half types in float32";
constexpr rule_family families[] = {
    {"element by element", all_types, add_pointwise_rules},
    {"rearranging, creating, looking up", all_types, add_view_rules},
    {"scattering", "numbers, half types in float32; on devices sums of float32, float64, int32 and int64, the others of int32 and int64", add_scatter_rules},
    {"reductions, cumulative operators, softmax", all_types, add_reduction_rules},
    {"normalisation", "float32, float64; half types in float32", add_norm_rules},
    {"losses", "float32, float64; half types in float32", add_loss_rules},
    {"pooling", "float32, float64; half types in float32", add_window_rules},
    {"patches of images", all_types, add_patch_rules},
    {"images of other sizes", all_types, add_resizing_rules},
    {"contractions, attention", "float32, bfloat16, float16 in tiles, int8 times int8 in C++; products of float64 and other whole numbers as sums; no convolutions of these", add_anchor_rules},
    {"recurrent layers", "float32; half types in float32; float64 and on devices up to 64 steps", add_recurrent_rules},
};

const rule_table& rules() {
  static const rule_table table = [] {
    rule_table t;
    for (const auto& f : families) f.add(t);
    return t;
  }();
  return table;
}

/// "aten.add.Tensor" -> "aten.add"
std::string without_overload(const std::string& op) {
  const auto parts = split(op, '.');
  return parts.size() < 2 ? op : parts[0] + "." + parts[1];
}

/// Casts that the task's text asks for: what they round stays rounded. Other results of half types are more exact here than in Torch,
/// which rounds after each operator, until they are stored.
bool is_cast(const std::string& op) { return op == "aten._to_copy" || op == "aten.to"; }

bool is_exponential(const std::string& op) { return op == "aten.exp" || op == "aten.exp2" || op == "aten.expm1"; }

/// " in line 13" of the user's file
std::string line_of(const graph_node& node) { return node.line > 0 ? " in line " + std::to_string(node.line) : ""; }

/// One graph on its way to primitives; what cannot be lowered is gathered, so that one error names it all.
class lowering {
public:
  lowering(bool algebra, bool loops) : builder_(program_, algebra, loops) {}

  void leaves(const graph& g) {
    builder_.exact_scans = std::any_of(g.nodes.begin(), g.nodes.end(), [](const auto& node) { return is_exponential(without_overload(node.op)); });
    for (const auto& leaf : g.foreign) foreign_[leaf.id] = leaf.type.foreign;
    for (const auto& leaf : g.inputs) add_leaf(leaf, buffer_kind::input, "x", leaf.index);
    for (const auto& leaf : g.params) add_leaf(leaf, buffer_kind::param, "p", leaf.index);
    int constants = 0;
    for (const auto& leaf : g.constants) {
      if (leaf.type.foreign.empty()) add_leaf(leaf, buffer_kind::constant, "table", constants++);
      else foreign_[leaf.id] = leaf.type.foreign;
    }
  }

  void call(const graph_node& node) {
    if (node.op == "getitem") return take_item(node);
    program_.ops.push_back(node.op);
    values_[node.id] = -1;
    if (const auto type = foreign_type(node); !type.empty()) {
      miss(node, "no kernel has the type " + type);
      return;
    }
    const auto it = rules().find(without_overload(node.op));
    if (it == rules().end()) {
      why_ = without_overload(node.op) + " has no rule";
      missing_.insert(node.op + line_of(node));
      return;
    }
    try {
      auto wide = node; // what rules see computes in float32
      for (auto& r : wide.results) r.dtype = computed_in(r.dtype);
      auto results = it->second(op_call(builder_, wide, values_));
      for (size_t i = 0; i < results.size() && i < node.results.size(); ++i) {
        if (results[i] < 0) continue;
        if (!node.results[i].shape.empty() && builder_.at(results[i]).shape != node.results[i].shape) throw not_lowered{"a result of another shape than Torch's"};
        if (is_half(node.results[i].dtype)) results[i] = in_half(node, node.results[i].dtype, results[i]);
      }
      if (!node.results.empty()) formats_[node.id] = node.results[0].dtype;
      values_[node.id] = results.at(0);
      several_[node.id] = std::move(results);
    } catch (const not_lowered& e) {
      miss(node, e.what);
    } catch (const json::exception& e) {
      miss(node, e.what());
    }
  }

  /// call(); where that cannot be, the node's results are there all the same from then on, as tensors from elsewhere. Why not; nothing where it could.
  std::optional<std::string> call_alone(const graph_node& node) {
    call(node);
    if (missing_.empty()) return {};
    const auto why = why_;
    missing_.clear();
    std::vector<int> results;
    for (const auto& r : node.results) {
      if (r.foreign.empty()) add_leaf({node.id, 0, r, {}}, buffer_kind::input, "elsewhere", 0);
      results.push_back(r.foreign.empty() ? values_.at(node.id) : -1);
    }
    values_[node.id] = results.empty() ? -1 : results.front();
    several_[node.id] = std::move(results);
    return why;
  }

  void outputs(const graph& g) {
    for (size_t i = 0; i < g.outputs.size() && missing_.empty(); ++i) {
      const int value = values_.count(g.outputs[i]) ? values_.at(g.outputs[i]) : -1;
      if (value < 0) {
        missing_.insert("output " + g.outputs[i]);
        return;
      }
      const auto held = formats_.find(g.outputs[i]);
      buffer out;
      out.kind = buffer_kind::output;
      out.index = static_cast<int>(i);
      out.dtype = held != formats_.end() && is_half(held->second) ? held->second : builder_.at(value).dtype;
      out.elements = builder_.at(value).elements();
      out.name = "out" + std::to_string(i);
      program_.buffers.push_back(out);
      program_.outputs.push_back(value);
    }
  }

  expected<tensor_program> result() const {
    if (missing_.empty()) return with_exact_quotients(rewrite(with_rolled_loops(rewrite(program_))));
    return fail(ec::unsupported, "the built-in coder cannot lower " + join(std::vector<std::string>(missing_.begin(), missing_.end()), ", "),
                "Torch computes it as before; --coder llm or --coder command can try the whole, docs/operators.md lists what is lowered");
  }

private:
  /// What follows an operator that is missing fails as well; only the first cause is worth telling.
  void miss(const graph_node& node, const std::string& why) {
    if (!missing_.empty()) return;
    why_ = without_overload(node.op) + ": " + why;
    missing_.insert(node.op + " (" + why + ")" + line_of(node));
  }

  /// A type that no kernel has, of what the node makes or takes; empty where there is none.
  std::string foreign_type(const graph_node& node) {
    std::string found;
    for (const auto& r : node.results)
      if (!r.foreign.empty()) found = r.foreign;
    if (!found.empty()) foreign_[node.id] = found;
    for (const auto& id : references(node))
      if (const auto it = foreign_.find(id); it != foreign_.end() && found.empty()) found = it->second;
    return found;
  }

  void add_leaf(const graph_leaf& leaf, buffer_kind kind, const char* prefix, int index) {
    const tensor_type type{computed_in(leaf.type.dtype), leaf.type.shape};
    formats_[leaf.id] = leaf.type.dtype;
    buffer b;
    b.kind = kind;
    b.index = index;
    b.dtype = kind == buffer_kind::constant ? type.dtype : leaf.type.dtype; // a table of ours
    b.elements = leaf.type.elements();
    b.values = leaf.values;
    b.name = prefix + std::to_string(index);
    program_.buffers.push_back(b);
    values_[leaf.id] = kind == buffer_kind::constant && b.elements == 1
                           ? builder_.constant(leaf.values.at(0), type.dtype, type.shape)
                           : builder_.leaf(static_cast<int>(program_.buffers.size()) - 1, type);
  }

  /// A result that Torch holds in a half type. A cast to it from another type rounds.
  int in_half(const graph_node& node, dtype half, int value) {
    if (is_cast(without_overload(node.op))) {
      const auto from = node.args.at("self").at("ref").get<std::string>();
      const auto type = formats_[from];
      const bool exact = type == half || type == dtype::boolean || type == dtype::int8 || type == dtype::uint8; // eight digits fit
      if (!exact) value = builder_.rounded_to(half, value);
    }
    return builder_.held_as(half, value);
  }

  /// One of several results of a call.
  void take_item(const graph_node& node) {
    const auto from = node.args.at("self").at("ref").get<std::string>();
    const auto index = node.args.at("index").get<size_t>();
    const auto it = several_.find(from);
    const bool known = it != several_.end() && index < it->second.size();
    values_[node.id] = known ? it->second[index] : -1;
    if (!node.results.empty()) formats_[node.id] = node.results[0].dtype;
    if (!known || it->second[index] >= 0 || !missing_.empty()) return;
    why_ = "result " + std::to_string(index) + " of " + from;
    missing_.insert(why_);
  }

  tensor_program program_;
  node_builder builder_;
  std::map<std::string, int> values_;
  std::map<std::string, dtype> formats_;           ///< in Torch's memory
  std::map<std::string, std::vector<int>> several_;
  std::map<std::string, std::string> foreign_;     ///< id -> the type that no kernel has
  std::set<std::string> missing_;
  std::string why_;                                ///< the last of them
};

} // namespace

std::string lowered_operators() {
  std::string text = "# Operators that the built-in coder lowers\n\nMade from the tables of `synthesis/lower` by `PRAGMA_GOLDEN=accept build/bin/test_middle \"[operators]\"`; do not edit. One lowering serves both "
                     "languages: what\nstands here is written as C++ and as Triton. Operators that Torch takes apart before (`linear`, `einsum`, `chunk`, `tensor_split`, activations of modules) are not listed; nor are\n"
                     "in-place forms, which the tracer makes functional. What a rule does not take of its operator (a mask as index, say) it names when it meets it.\n";
  for (const auto& f : families) {
    rule_table of_family;
    f.add(of_family);
    std::vector<std::string> names;
    for (const auto& known : of_family) names.push_back("`" + known.first.substr(known.first.find('.') + 1) + "`");
    text += "\n## " + std::string(f.name) + "\n\nTypes: " + f.types + ".\n\n" + join(names, ", ") + "\n";
  }
  return text;
}

std::vector<std::optional<std::string>> not_lowered_alone(const graph& g, bool loops) {
  lowering l(true, loops);
  l.leaves(g);
  std::vector<std::optional<std::string>> why;
  for (const auto& node : g.nodes) why.push_back(l.call_alone(node));
  return why;
}

expected<tensor_program> lower(const graph& g, bool algebra, bool loops) {
  if (g.random)
    return fail(ec::unsupported, "the reference draws random numbers, which no kernel can repeat",
                "make the task deterministic (Dropout in eval mode, for example)");
  lowering l(algebra, loops);
  l.leaves(g);
  for (const auto& node : g.nodes) l.call(node);
  l.outputs(g);
  return l.result();
}

} // namespace pragma::synthesis
