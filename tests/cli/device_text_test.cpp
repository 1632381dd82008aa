// Accelerators in `pragma doctor` and `pragma hardware`, for a person.
#include "cli/device_text.hpp"

#include "base/text.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
using Catch::Contains;

namespace {

accelerator h200(bool measured) {
  accelerator a;
  a.where = {"cuda", 1};
  auto& l = a.limits;
  l.cpu = "NVIDIA H200";
  l.arch = "sm_90";
  l.compute_units = 132;
  l.memory_bytes = 150109880320;
  l.cache_bytes = {62914560};
  l.shared_bytes = 232448;
  l.registers = 65536;
  l.warp_size = 32;
  l.max_threads = 2048;
  a.state = "580.159.04, 1980 MHz";
  a.measured = measured;
  if (!measured) return a;
  l.measured_at = "2026-11-22T00:00:00Z";
  l.copy_gbs = {6100, 4200};
  l.read_gbs = {6500, 4300};
  l.peak_gflops = 51200;
  l.half_gflops = 700000;
  l.launch_seconds = 2.1e-6;
  return a;
}

accelerator_status fine() {
  accelerator_status s;
  s.backend = "cuda";
  s.title = "NVIDIA GPU";
  s.executable = "/opt/python3";
  s.python = "3.12.3";
  s.torch = "2.11.0";
  s.triton = "3.6.0";
  s.devices = {h200(false)};
  s.profilers = {{"ncu", true, "2025.3", "", "90 metrics"}};
  return s;
}

const cli::doctor_row& row(const std::vector<cli::doctor_row>& rows, const std::string& name) {
  for (const auto& r : rows)
    if (r.name == name) return r;
  FAIL("no row " << name);
  return rows.front();
}

} // namespace

TEST_CASE("doctor: driver, Torch, devices, Triton and profilers, each fine or not") {
  auto s = fine();
  auto rows = cli::doctor_rows(s);
  for (const auto& r : rows) CHECK(r.good);
  CHECK_THAT(row(rows, "cuda").text, Contains("torch 2.11.0"));
  CHECK_THAT(row(rows, "cuda:1").text, Contains("NVIDIA H200, 139.8 GiB") && Contains("sm_90; 132 compute units; L2 60.0 MiB"));
  CHECK(row(rows, "triton").text == "3.6.0");
  s.triton.clear();
  s.profilers[0].problem = "counters are for the administrator (set NVreg_RestrictProfilingToAdminUsers=0)";
  rows = cli::doctor_rows(s);
  CHECK_FALSE(row(rows, "triton").good);
  CHECK_THAT(row(rows, "triton").text, Contains("/opt/python3"));
  CHECK_FALSE(row(rows, "ncu").good);
  CHECK_THAT(row(rows, "ncu").text, Contains("2025.3; counters are for the administrator"));
}

TEST_CASE("doctor: a driver without a Torch that finds the device says which Python was asked, and how to name another") {
  auto s = fine();
  s.devices.clear();
  s.problem = "torch 1.13.0 finds no cuda device";
  s.torch = "1.13.0";
  const auto rows = cli::doctor_rows(s);
  CHECK_FALSE(row(rows, "cuda").good);
  CHECK_THAT(row(rows, "cuda").text, Contains("finds no cuda device") && Contains("/opt/python3") && Contains("PRAGMA_PYTHON"));
}

TEST_CASE("hardware: what a device is, and what was measured where it was") {
  const auto known = join(cli::device_lines(h200(true)), "\n");
  CHECK_THAT(known, Contains("NVIDIA H200 (cuda:1, sm_90)") && Contains("132 compute units, each with 2048 threads in warps of 32") && Contains("227.0 KiB shared memory"));
  CHECK_THAT(known, Contains("L2      copy 6100 GB/s") && Contains("memory  copy 4200 GB/s (read + written), read 4300 GB/s"));
  CHECK_THAT(known, Contains("51.2 TFLOP/s float32") && Contains("700.0 float16") && !Contains("TF32"));
  CHECK_THAT(known, Contains("580.159.04"));
  const auto described = join(cli::device_lines(h200(false)), "\n");
  CHECK_THAT(described, Contains("132 compute units") && !Contains("measured") && !Contains("GB/s"));
}
