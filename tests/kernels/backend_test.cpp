// Backends as data: what is shipped, what a wrong file is told, which files a sandbox opens.
#include "kernels/backend.hpp"

#include "base/files.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
using Catch::Contains;

TEST_CASE("The shipped backends are complete", "[backend]") {
  std::vector<std::string> names;
  for (const auto& b : backends()) names.push_back(b.name);
  CHECK(names == std::vector<std::string>{"cpu", "ascend", "cuda", "rocm"});
  for (const auto& b : backends()) {
    INFO(b.name);
    CHECK(b.on_device() == (b.language == "triton"));
    CHECK(!b.profilers.empty());
    CHECK(b.present.empty() == !b.on_device());
  }
  CHECK(find_backend("cuda")->torch_device == "cuda");
  CHECK_THAT(find_backend("gpu").error().hint, Contains("cuda"));
  CHECK(why_absent(*find_backend("cpu")).empty());
  CHECK(device_choice{"cuda", 1}.text() == "cuda:1");
}

TEST_CASE("A backend's file that is wrong is told where", "[backend]") {
  const auto problem = [](const std::string& text) {
    auto b = parse_backend(text, "b.json");
    return b ? std::string() : b.error().message + " " + b.error().hint;
  };
  CHECK(problem(R"({"name": "x", "language": "triton", "torch_device": "xpu", "_note": 1})").empty());
  CHECK_THAT(problem(R"({"language": "triton", "torch_device": "xpu"})"), Contains("'name' is missing"));
  CHECK_THAT(problem(R"({"name": "x", "language": "triton"})"), Contains("torch_device"));
  CHECK_THAT(problem(R"({"name": "x", "language": "fortran"})"), Contains("fortran") && Contains("triton"));
  CHECK_THAT(problem(R"({"name": "x", "langage": "triton"})"), Contains("langage") && Contains("language"));
  CHECK_THAT(problem(R"({"name": "x", "language": "c++", "present": "/dev/x"})"), Contains("list"));
  CHECK_THAT(problem("[1]"), Contains("object"));
  CHECK_THAT(problem("{"), Contains("b.json"));
}

TEST_CASE("Device files are found by their patterns, and nothing else is", "[backend]") {
  auto folder = temp_dir::create("pragma-test-");
  REQUIRE(folder);
  for (const char* name : {"nvidia0", "nvidiactl", "sda", "nvme"}) REQUIRE(write_file_atomic(folder->path() / name, ""));
  const auto found = matching_files({(folder->path() / "nvidia*").string(), "/nowhere/at/all*"});
  REQUIRE(found.size() == 2);
  CHECK(found[0].filename() == "nvidia0");
  CHECK(found[1].filename() == "nvidiactl");
}

TEST_CASE("A device's state is one line, or nothing", "[backend]") {
  backend b;
  CHECK(device_state(b, 0).empty());
  b.clocks = {"echo", "1980 MHz of {index}"};
  CHECK(device_state(b, 3) == "1980 MHz of 3");
  b.clocks = {"no-such-program-of-ours"};
  CHECK(device_state(b, 0).empty());
}
