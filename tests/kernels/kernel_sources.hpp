// Tasks and candidates written by hand for the tests of verification and timing.
#pragma once

#include "base/files.hpp"
#include "kernels/build.hpp"
#include "kernels/reference.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace pragma::test {

inline const std::string softmax_task = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)

def get_inputs():
    return [torch.randn(64, 1024)]

def get_init_inputs():
    return []
)";

/// Replaces every "@@" of a kernel's text by the body that computes one right softmax.
inline std::string with_softmax(std::string text) {
  static const std::string body = R"(
static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    float top = x[0], sum = 0;
    for (int64_t c = 1; c < cols; ++c) top = std::fmax(top, x[c]);
    for (int64_t c = 0; c < cols; ++c) sum += y[c] = std::exp(x[c] - top);
    for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
  }
}
)";
  const auto at = text.find("@@");
  if (at != std::string::npos) text.replace(at, 2, body);
  return "#include \"pragma_kernel.h\"\n#include <cmath>\n#include <cstring>\n#include <cstdint>\n#include <cstdlib>\n" + text;
}

/// `call` is the body of pragma_kernel, with x, y, rows, cols, n at hand.
inline std::string softmax_kernel(const std::string& call, const std::string& before = "") {
  return with_softmax("@@\n" + before + R"(
extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = (const float*)args->inputs[0].data;
  float* y = (float*)args->outputs[0].data;
  const int64_t rows = args->inputs[0].shape[0], cols = args->inputs[0].shape[1], n = rows * cols;
  (void)x; (void)y; (void)rows; (void)cols; (void)n;
)" + call + "\n}\n");
}

/// A task in a process of its own, shared by the test cases of one program.
struct loaded_task {
  temp_dir folder;
  reference ref;
  pragma::task task;

  static loaded_task load(const std::string& source, int slots = 4, const char* name = "task.py") {
    auto folder = temp_dir::create("pragma-test");
    REQUIRE(folder);
    const auto file = folder->path() / name;
    REQUIRE(write_file_atomic(file, source));
    auto ref = reference::start({});
    if (!ref) FAIL(render(ref.error()));
    auto t = ref->load(file, slots);
    if (!t) FAIL(render(t.error()));
    return {std::move(*folder), std::move(*ref), std::move(*t)};
  }
};

inline build_output build(const std::string& source, std::vector<std::string> flags = {"-O2", "-march=native"}) {
  candidate c;
  c.source = source;
  c.flags = std::move(flags);
  auto built = build_candidate(c);
  if (!built) FAIL(render(built.error()));
  return std::move(*built);
}

} // namespace pragma::test
