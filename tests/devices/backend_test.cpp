// Backends as data: what is shipped, what a wrong file is told, which files a sandbox opens.
#include "devices/backend.hpp"

#include "base/files.hpp"
#include "devices/device_lease.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

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
  // A scheduler gave this process some devices, which Torch counts from 0.
  b.visible = {"PRAGMA_TEST_VISIBLE", "PRAGMA_TEST_OUTER"};
  CHECK(device_state(b, 3) == "1980 MHz of 3");
  ::setenv("PRAGMA_TEST_VISIBLE", "5, 2,GPU-7f", 1);
  CHECK(device_state(b, 1) == "1980 MHz of 2");
  CHECK(driver_number(b, 2) == "GPU-7f");
  CHECK(driver_number(b, 3) == "3"); // there is none
  ::setenv("PRAGMA_TEST_OUTER", "8,9,10", 1);
  CHECK(driver_number(b, 1) == "10");
  CHECK(driver_number(b, 2) == "GPU-7f");
  ::unsetenv("PRAGMA_TEST_VISIBLE");
  ::unsetenv("PRAGMA_TEST_OUTER");
  b.clocks = {"no-such-program-of-ours"};
  CHECK(device_state(b, 0).empty());
}

TEST_CASE("A lease keeps other processes off the device, and waits for theirs", "[backend]") {
  auto home = temp_dir::create("pragma-test-");
  REQUIRE(home);
  const char* before = std::getenv("PRAGMA_HOME");
  const std::string kept = before ? before : "";
  ::setenv("PRAGMA_HOME", home->path().c_str(), 1);
  const device_choice device("cuda", 93);
  // Another opening of the file stands for another process: flock() knows no difference.
  std::filesystem::create_directories(lease_file(device).parent_path());
  const int other = ::open(lease_file(device).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(other >= 0);
  const auto free = [&] { return ::flock(other, LOCK_EX | LOCK_NB) == 0 && ::flock(other, LOCK_UN) == 0; };
  {
    auto lease = lease_device(device);
    CHECK(lease.owns_lock());
    CHECK_FALSE(lease.disturbed());
    CHECK_FALSE(free());
    { const auto again = lease_device(device); }
    CHECK_FALSE(free());
    CHECK(lease_file(device) != lease_file({"cuda", 94}));
    lease.unlock();
    CHECK(free());
  }
  CHECK(free());
  REQUIRE(::flock(other, LOCK_EX) == 0);
  std::atomic<bool> cancel = true;
  CHECK_FALSE(lease_device(device, &cancel).owns_lock());
  std::thread releases([&] { ::flock(other, LOCK_UN); });
  CHECK(lease_device(device).owns_lock());
  releases.join();
  CHECK(free());
  ::close(other);
  CHECK_FALSE(lease_device({}).owns_lock());
  if (before) ::setenv("PRAGMA_HOME", kept.c_str(), 1);
  else ::unsetenv("PRAGMA_HOME");
}
