#include "synthesis/cpp/types.hpp"

#include <fmt/format.h>

#include <cmath>

namespace pragma::synthesis {

std::string memory_type(dtype type) {
  switch (type) {
    case dtype::float64: return "double";
    case dtype::int64: return "int64_t";
    case dtype::int32: return "int32_t";
    case dtype::int16: return "int16_t";
    case dtype::int8: return "int8_t";
    case dtype::uint8: return "uint8_t";
    case dtype::boolean: return "bool";
    case dtype::float16: return "float16";
    case dtype::bfloat16: return "bfloat16";
    default: return "float";
  }
}

std::string lane_type(dtype type) {
  switch (type) {
    case dtype::float32: return "vf";
    case dtype::float64: return "vd";
    case dtype::int64: return "vl";
    default: return "vi";
  }
}

namespace {

std::string not_finite(double value) { return std::isnan(value) ? "not_a_number" : value > 0 ? "infinity" : "-infinity"; }

} // namespace

std::string lane_literal(double value, dtype type) {
  if (type == dtype::boolean) return value != 0 ? "-1" : "0";
  if (type == dtype::int64) return fmt::format("int64_t{{{}}}", static_cast<int64_t>(value));
  if (!is_floating(type)) return std::to_string(static_cast<int64_t>(value));
  const bool wide = type == dtype::float64;
  if (!std::isfinite(value)) return wide ? "double(" + not_finite(value) + ")" : not_finite(value);
  auto text = wide ? fmt::format("{:.17g}", value) : fmt::format("{:.9g}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return wide ? text : text + "f";
}

std::string memory_literal(double value, dtype type) {
  if (!is_floating(type)) return std::to_string(static_cast<int64_t>(value));
  return std::isfinite(value) ? fmt::format("{:.17g}", value) : not_finite(value);
}

std::string identity_literal(identity start, dtype type) {
  switch (start) {
    case identity::one: return lane_literal(1, type);
    case identity::lowest:
    case identity::highest:
      if (is_floating(type)) return lane_literal(start == identity::lowest ? -INFINITY : INFINITY, type);
      return fmt::format("std::numeric_limits<{}>::{}()", memory_type(type), start == identity::lowest ? "min" : "max");
    default: return lane_literal(0, type);
  }
}

} // namespace pragma::synthesis
