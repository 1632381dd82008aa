// Small programs of primitives, made by hand: for tests of the compiler's middle, without Torch and without JSON.
#pragma once

#include "synthesis/cpp/emit.hpp"
#include "synthesis/lower/lower.hpp"

#include <catch2/catch.hpp>

namespace pragma::synthesis::test {

class primitives {
public:
  tensor_program program;
  node_builder b{program};

  int input(std::vector<int64_t> shape, dtype type = dtype::float32) {
    buffer x;
    x.kind = buffer_kind::input;
    x.index = inputs_;
    x.dtype = type;
    x.elements = tensor_type{type, shape}.elements();
    x.name = "x" + std::to_string(inputs_++);
    program.buffers.push_back(x);
    return b.leaf(static_cast<int>(program.buffers.size()) - 1, {type, shape});
  }
  loop_program loops(std::vector<int> outputs) {
    for (int n : outputs) {
      buffer out;
      out.kind = buffer_kind::output;
      out.index = static_cast<int>(program.outputs.size());
      out.dtype = b.at(n).dtype;
      out.elements = b.at(n).elements();
      out.name = "out" + std::to_string(out.index);
      program.buffers.push_back(out);
      program.outputs.push_back(n);
    }
    auto made = build_program(program);
    if (!made) FAIL(render(made.error()));
    return std::move(*made);
  }

private:
  int inputs_ = 0;
};

inline schedule start_of(const loop_program& program) {
  machine_limits limits;
  limits.simd_bits = 256;
  limits.cache_bytes = {32 << 10, 512 << 10, 8 << 20};
  return starting_schedule(program, limits, 1);
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

} // namespace pragma::synthesis::test
