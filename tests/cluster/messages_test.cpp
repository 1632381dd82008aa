// What comes from another machine: addresses, task texts, orders.
#include "base/files.hpp"
#include "cluster/address.hpp"
#include "cluster/frame.hpp"
#include "cluster/node_bench.hpp"

#include <catch2/catch.hpp>
#include <fstream>

using namespace pragma;
namespace fs = std::filesystem;

TEST_CASE("addresses") {
  CHECK(parse_address("10.0.0.5:7447")->port == 7447);
  CHECK(parse_address("[::1]:80")->host == "::1");
  CHECK(parse_address("[::1]:80")->text() == "[::1]:80");
  CHECK(parse_address("head", 7447)->text() == "head:7447");
  CHECK(parse_address("localhost:1")->loopback());
  CHECK(parse_address("127.9.0.1:1")->loopback());
  CHECK_FALSE(parse_address("10.0.0.5:1")->loopback());
  CHECK_FALSE(parse_address("127.example.com:1")->loopback()); // plaintext to whoever owns that name
  for (const char* bad : {"", ":80", "a:", "a:b", "a:99999", "::1:80", "[::1", "a:-1"}) {
    INFO(bad);
    CHECK_FALSE(parse_address(bad));
  }
}

TEST_CASE("a task's text is kept as it was, under its hash, and never outside of its folder") {
  auto dir = temp_dir::create("pragma-tasks-");
  REQUIRE(dir);
  std::ofstream(dir->path() / "t.py") << "class Model: pass\n";
  std::ofstream(dir->path() / "t.json") << "{\"tolerance\": 1e-3}";
  const auto text = read_task_text(dir->path() / "t.py");
  REQUIRE(text);
  const auto kept = keep_task_text(*text, dir->path() / "kept");
  REQUIRE(kept);
  CHECK(read_file(*kept).value() == "class Model: pass\n");
  CHECK(read_file(kept->parent_path() / "t.json").value() == "{\"tolerance\": 1e-3}");
  CHECK(keep_task_text(*text, dir->path() / "kept").value() == *kept);
  for (const char* name : {"../t.py", "/etc/x.py", ".py", "a/b.py", "t.txt", ""}) {
    auto evil = *text;
    evil.name = name;
    INFO(name);
    CHECK_FALSE(keep_task_text(evil, dir->path() / "kept"));
  }
  CHECK(read_task_text(dir->path() / "none.py").error().code == ec::not_found);
  std::ofstream(dir->path() / "big.py") << std::string(2 << 20, '#');
  CHECK(read_task_text(dir->path() / "big.py").error().code == ec::limit_exceeded);
}

TEST_CASE("an order that cannot be done is an answer, with whose fault it is") {
  auto dir = temp_dir::create("pragma-tasks-");
  REQUIRE(dir);
  node_bench bench("n", dir->path() / "tasks");
  work_order order;
  order.job = "j";
  order.run = "r";
  order.ticket = 7;
  order.kind = "load";
  order.task = {"../evil.py", "import os", ""};
  auto answer = bench.perform(order, "cpu");
  CHECK(answer.failure.happened());
  CHECK_FALSE(answer.node_at_fault);
  CHECK(answer.ticket == 7);
  CHECK(answer.node == "n");
  std::ofstream(dir->path() / "file") << "x";
  node_bench full("n", dir->path() / "file"); // no folder can be made there
  order.task.name = "good.py";
  answer = full.perform(order, "cpu");
  CHECK(answer.failure.what().code == ec::io_error);
  CHECK(answer.node_at_fault);
}

TEST_CASE("CBOR that is not what it says") {
  CHECK(well_formed_cbor(std::string("\xa0", 1)));
  CHECK(well_formed_cbor(std::string("\x82\x01\x61z", 4)));
  for (const auto& bad : {std::string(), std::string("\x82\x01", 2), std::string("\x01\x02", 2), std::string("\x5f\xff", 2), std::string("\xc0\x01", 2), std::string("\x7a\xff\xff\xff\xff", 5), std::string("\xbb\x7f\xff\xff\xff\xff\xff\xff\xff", 9),
                          std::string("\x1c", 1), std::string(200, '\x81')}) {
    INFO(bad.size());
    CHECK_FALSE(well_formed_cbor(bad));
  }
  // What we write is what we read.
  const frame f{"do", 7, {{"x", {1.5, -3, nullptr, true, "\xff binary \0 text", json::array(), json::object()}}, {"n", 18446744073709551615ull}}, nullptr};
  const auto back = decode(std::string_view(encode(f)).substr(frame_head_bytes));
  REQUIRE(back);
  CHECK(back->body == f.body);
  CHECK(back->id == 7);
}
