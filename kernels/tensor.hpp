// What a tensor looks like from outside: name, dtype, shape. Used by tasks, the reference, the runner and synthesis.
#pragma once

#include "base/json.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pragma {

enum class dtype { float32, float64, float16, bfloat16, int64, int32, int16, int8, uint8, boolean };
NLOHMANN_JSON_SERIALIZE_ENUM(dtype, {{dtype::float32, "float32"},
                                     {dtype::float64, "float64"},
                                     {dtype::float16, "float16"},
                                     {dtype::bfloat16, "bfloat16"},
                                     {dtype::int64, "int64"},
                                     {dtype::int32, "int32"},
                                     {dtype::int16, "int16"},
                                     {dtype::int8, "int8"},
                                     {dtype::uint8, "uint8"},
                                     {dtype::boolean, "bool"}})

inline size_t size_of(dtype type) {
  switch (type) {
    case dtype::float64:
    case dtype::int64: return 8;
    case dtype::float32:
    case dtype::int32: return 4;
    case dtype::float16:
    case dtype::bfloat16:
    case dtype::int16: return 2;
    default: return 1;
  }
}
inline bool is_floating(dtype type) {
  return type == dtype::float32 || type == dtype::float64 || type == dtype::float16 || type == dtype::bfloat16;
}

/// Contiguous, row-major. A scalar has an empty shape and one element.
struct tensor_spec {
  std::string name;            ///< input: the argument's name in forward(); parameter: its state_dict key; output: "out0", ...
  pragma::dtype dtype = dtype::float32;
  std::vector<int64_t> shape;
  int64_t elements() const {
    int64_t n = 1;
    for (auto d : shape) n *= d;
    return n;
  }
  uint64_t bytes() const { return static_cast<uint64_t>(elements()) * size_of(dtype); }
};
PRAGMA_JSON(tensor_spec, name, dtype, shape)

} // namespace pragma
