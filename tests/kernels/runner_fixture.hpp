// Tensors in sealed memory files, as the reference process makes them, for tests that need a running candidate and no Torch.
#pragma once

#include "kernels/runner_process.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pragma_test {

using namespace pragma;

/// The rule of kernels/reference.hpp: starts 64-byte aligned, ends (rounded up to 64) at a page boundary, then a guard page.
inline tensor_layout layout_of(const std::vector<tensor_spec>& specs, int slots) {
  tensor_layout layout;
  layout.specs = specs;
  layout.slots = slots;
  for (const auto& spec : specs) {
    const uint64_t rounded = (spec.bytes() + 63) / 64 * 64;
    const uint64_t end = layout.slot_bytes + (rounded + 4095) / 4096 * 4096;
    layout.offsets.push_back(end - rounded);
    layout.slot_bytes = end + 4096;
  }
  return layout;
}

/// One float input "x", one float parameter "w" of one element, one float output "out0", in `slots` slots.
struct tensors {
  runner_memory memory;
  std::byte* input_bytes = nullptr;
  int64_t n = 0;

  explicit tensors(int64_t elements, int slots = 2, int64_t output_elements = -1) : n(elements) {
    memory.params = layout_of({{"w", dtype::float32, {1}}}, 1);
    memory.inputs = layout_of({{"x", dtype::float32, {elements}}}, slots);
    memory.outputs = layout_of({{"out0", dtype::float32, {output_elements < 0 ? elements : output_elements}}}, slots);
    std::byte* params = nullptr;
    memory.params_fd = sealed(memory.params.total_bytes(), params);
    memory.inputs_fd = sealed(memory.inputs.total_bytes(), input_bytes);
    const float two = 2;
    std::memcpy(params + memory.params.offsets[0], &two, sizeof two);
    ::munmap(params, memory.params.total_bytes());
    for (int s = 0; s < slots; ++s)
      for (int64_t i = 0; i < n; ++i) x(s)[i] = static_cast<float>(i % 97) - 40.0f + static_cast<float>(s);
  }
  tensors(const tensors&) = delete;
  tensors& operator=(const tensors&) = delete;
  ~tensors() {
    ::munmap(input_bytes, memory.inputs.total_bytes());
    ::close(memory.params_fd);
    ::close(memory.inputs_fd);
  }
  float* x(int slot) {
    return reinterpret_cast<float*>(input_bytes + memory.inputs.slot_bytes * static_cast<uint64_t>(slot) + memory.inputs.offsets[0]);
  }
  const float* y(const runner_process& runner, int slot) const {
    return reinterpret_cast<const float*>(runner.outputs() + memory.outputs.slot_bytes * static_cast<uint64_t>(slot) + memory.outputs.offsets[0]);
  }

private:
  static int sealed(uint64_t bytes, std::byte*& mapped) {
    const int fd = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(fd >= 0);
    REQUIRE(::ftruncate(fd, static_cast<off_t>(bytes)) == 0);
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(memory != MAP_FAILED);
    mapped = static_cast<std::byte*>(memory);
    REQUIRE(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0);
    return fd;
  }
};

/// The good candidate of these tests: out0 = w * x.
inline const char* doubling = R"(
#include "pragma_kernel.h"
void pragma_kernel(const pragma_args* a) {
  const float* x = (const float*)a->inputs[0].data;
  const float w = *(const float*)a->params[0].data;
  float* y = (float*)a->outputs[0].data;
  const int64_t n = a->inputs[0].shape[0];
  #pragma omp parallel for num_threads(a->threads)
  for (int64_t i = 0; i < n; ++i) y[i] = w * x[i];
}
)";

inline candidate from_source(std::string source, std::vector<std::string> flags = {}, std::string compiler = "gcc") {
  candidate c;
  c.source = std::move(source);
  c.flags = std::move(flags);
  c.compiler = std::move(compiler);
  c.origin = "test";
  return c;
}

inline build_output built(const candidate& c, const build_options& options = {}) {
  auto output = build_candidate(c, options);
  INFO((output ? "" : render(output.error())));
  REQUIRE(output);
  return std::move(*output);
}

/// A statement put into the kernel in front of the right computation.
inline std::string with_attack(const std::string& includes, const std::string& statements, const std::string& globals = "") {
  std::string source = includes + "\n#include \"pragma_kernel.h\"\n" + globals + "\nvoid pragma_kernel(const pragma_args* a) {\n" + statements;
  source += R"(
  const float* x = (const float*)a->inputs[0].data;
  const float w = *(const float*)a->params[0].data;
  float* y = (float*)a->outputs[0].data;
  for (int64_t i = 0; i < a->inputs[0].shape[0]; ++i) y[i] = w * x[i];
}
)";
  return source;
}

} // namespace pragma_test
