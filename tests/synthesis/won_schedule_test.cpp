#include "synthesis/search/won_schedule.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
using nlohmann::literals::operator""_json;

namespace {

task make(const std::string& op, std::vector<int64_t> shape) {
  task t;
  auto graph = R"({"inputs": [{"id": "x", "input": 0, "dtype": "float32", "used": true}], "params": [], "constants": [],
                   "nodes": [{"id": "y", "args": {"self": {"ref": "x"}}, "dtype": "float32"}], "outputs": ["y"],
                   "random": false, "mutated": []})"_json;
  graph["inputs"][0]["shape"] = graph["nodes"][0]["shape"] = shape;
  graph["nodes"][0]["op"] = op;
  t.graph = graph.dump();
  t.inputs = {{"x", dtype::float32, shape}};
  return t;
}

won_schedule won(const task& t, const std::string& schedule) { return {"task", "run", schedule, sizes_of(t), 2}; }

} // namespace

TEST_CASE("a family holds tasks of the same operators, ranks and threads, whatever their sizes") {
  const auto family = schedule_family(make("aten.relu.default", {16, 32}), 1);
  REQUIRE_FALSE(family.empty());
  CHECK(family == schedule_family(make("aten.relu.default", {7, 9}), 1));
  CHECK(family != schedule_family(make("aten.relu.default", {7, 9, 2}), 1));
  CHECK(family != schedule_family(make("aten.tanh.default", {16, 32}), 1));
  CHECK(family != schedule_family(make("aten.relu.default", {16, 32}), 2));
  CHECK(schedule_family(task{}, 1).empty());
}

TEST_CASE("the schedule of the nearest sizes is found; one task has one schedule, the newest") {
  const auto small = make("aten.relu.default", {16, 32}), large = make("aten.relu.default", {4096, 4096});
  won_schedules known;
  CHECK(nearest_schedule(known, small) == nullptr);
  remember(known, won(small, "small"));
  remember(known, won(large, "large"));
  CHECK(nearest_schedule(known, make("aten.relu.default", {20, 64}))->schedule == "small");
  CHECK(nearest_schedule(known, make("aten.relu.default", {1000, 4096}))->schedule == "large");
  CHECK(nearest_schedule(known, make("aten.relu.default", {1000})) == nullptr);
  remember(known, won(small, "better"));
  CHECK(known.all.size() == 2);
  CHECK(nearest_schedule(known, small)->schedule == "better");
  for (int64_t i = 1; i < 100; ++i) remember(known, won(make("aten.relu.default", {i, 1}), "x"));
  CHECK(known.all.size() <= 16);
}
