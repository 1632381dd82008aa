// Profiles of a device for the tests of its diagnosis: made up, and recorded on an H200 (data/h200_*.csv); and diagnose() with what a test knows.
#pragma once

#include "base/files.hpp"
#include "base/text.hpp"
#include "diagnosis/rules.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <map>

namespace pragma {

struct given {
  const char* name;
  double value;
  const char* unit = "%";
};

inline profile device_profile(const std::vector<given>& metrics, double seconds = 1e-3, const char* backend = "cuda") {
  profile p;
  p.backend = backend;
  p.time.candidate_seconds = seconds;
  p.time.speedup = {1, 0.98, 1.02};
  for (const auto& m : metrics) p.metrics.push_back({m.name, m.value, m.unit, "test", provenance::measured, ""});
  return p;
}

/// Kernels of a file in data/, by their names in its head; the time of a call is seconds_per_call, or without it the kernel's.
inline std::map<std::string, profile> recorded_in(const std::string& file) {
  std::map<std::string, profile> kernels;
  auto text = read_file(std::string(TESTS_DIR) + "/diagnosis/data/" + file);
  REQUIRE(text);
  std::vector<std::string> names;
  for (const auto& line : split(*text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const auto cells = split(line, ',');
    if (names.empty()) {
      names = cells;
      continue;
    }
    REQUIRE(cells.size() == names.size());
    for (size_t i = 2; i < cells.size(); ++i) {
      auto& p = kernels[names[i]];
      p.backend = "cuda";
      const double value = std::strtod(cells[i].c_str(), nullptr);
      p.metrics.push_back({cells[0], value, cells[1], "ncu 2025.3.1", provenance::measured, ""});
      if (cells[0] == "seconds_per_call") p.time.candidate_seconds = value;
      if (cells[0] == "gpu__time_duration.sum" && p.time.candidate_seconds <= 0) p.time.candidate_seconds = value * 1e-9;
    }
  }
  return kernels;
}

inline const std::map<std::string, profile>& recorded() {
  static const auto all = recorded_in("h200_kernels.csv");
  return all;
}

/// An H200 with round figures: L2 60 MB, DRAM reads 4400 and copies 4200 GB/s, 60 TFLOP/s FP32, 400 TF32, launches of 2 us.
inline machine_limits h200() {
  machine_limits m;
  m.backend = "cuda";
  m.cpu = "NVIDIA H200";
  m.cache_bytes = {60'000'000};
  m.copy_gbs = {5000, 4200};
  m.read_gbs = {5500, 4400};
  m.peak_gflops = 60e3;
  m.tf32_gflops = 400e3;
  m.half_gflops = 800e3;
  m.launch_seconds = 2e-6;
  m.compute_units = 132;
  return m;
}

inline std::vector<finding> run(const profile& p, const std::string& source = "", double flops = 0, double bytes = 0, double written = -1, const machine_limits* limits = nullptr,
                         const profile* best = nullptr, product_precision products = product_precision::float32) {
  diagnosis_input in;
  in.current = &p;
  in.best = best;
  in.limits = limits;
  in.source = source;
  in.flops = flops;
  in.bytes = bytes;
  in.written_bytes = written;
  in.products = products;
  return diagnose(in);
}

inline const finding* find(const std::vector<finding>& found, bottleneck what) {
  for (const auto& f : found)
    if (f.what == what) return &f;
  return nullptr;
}

} // namespace pragma
