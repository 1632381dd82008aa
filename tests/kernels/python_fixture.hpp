// A task and candidates in Python for it, with the CPU standing in for a device. The modules call Torch, which a stand-in must; on a
// device Triton does the work (bench/gpu).
#pragma once

#include "kernel_sources.hpp"
#include "kernels/timing.hpp"
#include "kernels/verify.hpp"

#include <catch2/catch.hpp>

namespace pragma::test {

/// Long enough that a call takes longer than a launch, short enough for a test.
inline const char* python_task = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
    def forward(self, x, scale):
        return torch.tanh(self.linear(x)) * scale

def get_inputs():
    return [torch.randn(64, 256), 2.0]

def get_init_inputs():
    return [256]
)";

inline const std::string python_head = R"(import os, sys, time
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.calls = 0
        self.kept = {}
    def right(self, x, scale):
        return torch.tanh(self.linear(x)) * scale
    def forward(self, x, scale):
)";

struct python_bench {
  loaded_task loaded = loaded_task::load(python_task);
  task_audit audit;
  python_bench() {
    auto made = audit_task(loaded.task, loaded.ref, {});
    if (!made) FAIL(render(made.error()));
    audit = *made;
  }
  static python_bench& get() {
    static python_bench one;
    return one;
  }
};

/// `forward`: its body. `before`: what the module does before it defines its class.
inline candidate module_of(const std::string& forward, const std::string& before = "") {
  candidate c;
  c.language = "triton";
  c.source = before + python_head + "        " + forward + "\n";
  return c;
}

inline build_output made(const candidate& c) {
  auto output = build_candidate(c, {});
  if (!output) FAIL(render(output.error()));
  return std::move(*output);
}

inline verdict judge(const candidate& c, bool allow_torch = true) {
  auto& b = python_bench::get();
  const auto output = made(c);
  verify_options options;
  options.seeds = 2;
  options.allow_torch = allow_torch;
  auto result = verify(b.loaded.task, b.audit, b.loaded.ref, output, options);
  if (!result) FAIL(render(result.error()));
  return *result;
}

inline timing_options short_timing() {
  timing_options options;
  options.max_seconds = 0.5;
  options.blocks = 5;
  return options;
}

inline const std::vector<std::string> torch_of_stand_ins = {"linear:1", "addmm:1", "tanh:1", "mul:1", "t:1"};

/// Verified, having left so much to Torch. The stand-in's own helpers come along: copies, and what the forwards in these tests add to find
/// out whether they saw an input.
inline verdict verified(const std::vector<std::string>& torch) {
  verdict earlier;
  earlier.stage = verdict_stage::passed;
  earlier.torch_operators = torch;
  for (const char* helper : {"_to_copy", "copy_", "clone", "sum", "as_strided_", "item", "_local_scalar_dense", "fill_"})
    earlier.torch_operators.push_back(std::string(helper) + ":1");
  return earlier;
}

/// Timed at once: what it does in a verification is another test. `torch`: what it left to Torch there.
inline timed_verdict timed_build(const build_output& output, const std::vector<std::string>& torch = torch_of_stand_ins) {
  auto& b = python_bench::get();
  auto result = time_candidate(b.loaded.task, b.audit, b.loaded.ref, output, verified(torch), short_timing());
  if (!result) FAIL(render(result.error()));
  if (result->result.passed()) CHECK(result->time.speedup.value > 0);
  return *result;
}

inline verdict timed(const candidate& c, const std::vector<std::string>& torch = torch_of_stand_ins) { return timed_build(made(c), torch).result; }

} // namespace pragma::test
