#include "mcp/parameters.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::mcp {

namespace {

constexpr size_t most_texts = 256;

const char* type_name(kind k) {
  switch (k) {
    case kind::text: return "string";
    case kind::whole: return "integer";
    case kind::number: return "number";
    case kind::flag: return "boolean";
    case kind::texts: return "array";
  }
  return "string";
}

bool fits(const json& value, kind k) {
  switch (k) {
    case kind::text: return value.is_string();
    case kind::whole: return value.is_number_integer();
    case kind::number: return value.is_number();
    case kind::flag: return value.is_boolean();
    case kind::texts:
      return value.is_array() && value.size() <= most_texts && std::all_of(value.begin(), value.end(), [](const json& v) { return v.is_string(); });
  }
  return false;
}

expected<void> check(const json& value, const parameter& p) {
  if (!fits(value, p.kind))
    return fail(ec::invalid_argument, "'" + p.name + "' should be " + (p.kind == kind::texts ? "a list of strings" : std::string("of type ") + type_name(p.kind)), p.description);
  if (!p.one_of.empty() && std::find(p.one_of.begin(), p.one_of.end(), value.get<std::string>()) == p.one_of.end())
    return fail(ec::invalid_argument, "'" + p.name + "' cannot be \"" + printable(value.get<std::string>().substr(0, 80)) + "\"", "one of: " + join(p.one_of, ", "));
  if (p.least < p.most && (!std::isfinite(value.get<double>()) || value.get<double>() < p.least || value.get<double>() > p.most))
    return fail(ec::invalid_argument, "'" + p.name + "' is out of range", "from " + format_number(p.least, 0) + " to " + format_number(p.most, 0));
  return {};
}

} // namespace

json schema_of(const std::vector<parameter>& parameters) {
  json properties = json::object(), required = json::array();
  for (const auto& p : parameters) {
    json one = {{"type", type_name(p.kind)}, {"description", p.description}};
    if (p.kind == kind::texts) one["items"] = {{"type", "string"}};
    if (!p.one_of.empty()) one["enum"] = p.one_of;
    if (p.least < p.most) {
      one["minimum"] = p.least;
      one["maximum"] = p.most;
    }
    if (!p.fallback.is_null()) one["default"] = p.fallback;
    properties[p.name] = std::move(one);
    if (p.required) required.push_back(p.name);
  }
  json schema = {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

expected<json> check_arguments(const json& given, const std::vector<parameter>& parameters) {
  if (!given.is_object() && !given.is_null()) return fail(ec::invalid_argument, "arguments should be an object");
  json all = json::object();
  std::vector<std::string> names;
  for (const auto& p : parameters) {
    names.push_back(p.name);
    const auto it = given.is_object() ? given.find(p.name) : given.end();
    if (it == given.end() || it->is_null()) {
      if (p.required) return fail(ec::invalid_argument, "'" + p.name + "' is missing", p.description);
      if (!p.fallback.is_null()) all[p.name] = p.fallback;
      continue;
    }
    if (auto good = check(*it, p); !good) return fail(good.error());
    all[p.name] = *it;
  }
  for (const auto& [name, value] : given.items())
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const auto near = nearest_names(name, names, 1);
      return fail(ec::invalid_argument, "there is no parameter '" + printable(name.substr(0, 80)) + "'",
                  near.empty() ? "it takes none" : "did you mean '" + near.front() + "'?");
    }
  return all;
}

} // namespace pragma::mcp
