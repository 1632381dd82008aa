#include "tests/synthesis/random_triton.hpp"

#include <catch2/catch.hpp>

using namespace pragma;

namespace {

struct random_tasks {
  expected<temp_dir> folder = temp_dir::create("pragma-random-");
  expected<reference> ref = reference::start({});

  random_tasks() {
    REQUIRE(folder);
    REQUIRE(ref);
  }
};

} // namespace

TEST_CASE_METHOD(random_tasks, "random tasks on odd sizes are right") {
  constexpr uint64_t first = 1, count = 50;
  uint64_t unverifiable = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const auto outcome = check_random_task(*ref, folder->path(), seed);
    INFO("seed " << seed << ": " << outcome.reason << "\n" << random_task(seed).text() << outcome.source);
    if (outcome.what == random_outcome::kind::unverifiable) ++unverifiable;
    else CHECK(outcome.what == random_outcome::kind::right);
  }
  CHECK(unverifiable < count / 5); // else this test says little
}

TEST_CASE_METHOD(random_tasks, "random tasks on odd sizes are right in Triton") {
  constexpr uint64_t first = 1, count = 20;
  std::map<uint64_t, triton_module> written;
  std::vector<uint64_t> seeds{2000038}; // was wrong once: a row's sum, placed once for each element of its tile
  for (uint64_t seed = first; seed < first + count; ++seed) seeds.push_back(seed);
  for (const auto seed : seeds) {
    auto made = write_random_module(*ref, folder->path(), seed);
    if (!made) FAIL("seed " << seed << ": " << render(made.error()));
    written.emplace(seed, std::move(*made));
  }
  int right = 0;
  for (const auto& [seed, outcome] : check_random_modules(*ref, written)) {
    INFO("seed " << seed << ": " << outcome.reason << "\n" << random_task(seed).text() << outcome.source);
    if (outcome.what == random_outcome::kind::right) ++right;
    else CHECK(outcome.what == random_outcome::kind::unverifiable);
  }
  CHECK(right > static_cast<int>(count) * 4 / 5);
}

TEST_CASE_METHOD(random_tasks, "tasks that were wrong once are right") {
  // Always the same inputs: two of them were wrong for some draws only.
  std::vector<uint64_t> draws;
  for (uint64_t draw = 1; draw <= 8; ++draw) draws.push_back(draw);
  const std::pair<uint64_t, const char*> once[] = {
      {1504, "17 columns in a tile of 24: nothing is read behind the last row of the weights"},
      // The two that a mean must serve: with one way to divide the first was wrong, with the other the second (docs/synthesis.md, Numbers).
      {1015, "a LayerNorm over five equal values"},
      {3, "three norms of equal values in a row"},
      {7188, "a window of a window of the same size"},
      {8142, "a window with no axis of results, in the batch loop of a product"},
      {1000700, "the deviation of equal values"},
      {8451, "sigmoids of large numbers, less their mean"},
      {61103, "a LayerNorm of what values near one saturate"},
      {71135, "a mean of what negative values saturate, subtracted"},
      {7000144, "a table that a function of a region was given and nobody read"},
      {10000029, "what is carried down columns, placed by row"},
      {10000194, "joined parts that are an output, and that another output needs"},
      {5079, "the running mean of one channel, which no input changes but by rounding"},
  };
  for (const auto& [seed, what] : once) {
    const auto outcome = check_random_task(*ref, folder->path(), seed, draws);
    INFO(what << ": " << outcome.reason << "\n" << random_task(seed).text() << outcome.source);
    CHECK(outcome.what == random_outcome::kind::right);
  }
}

TEST_CASE("many random tasks are well where nothing is wrong or failed and at most a tenth was not tried") {
  using kind = random_outcome::kind;
  CHECK(all_well({{kind::right, 9}, {kind::unsupported, 1}}));
  CHECK(all_well({{kind::right, 5}, {kind::unverifiable, 4}, {kind::unsupported, 1}}));
  CHECK_FALSE(all_well({{kind::right, 8}, {kind::unsupported, 1}}));
  CHECK_FALSE(all_well({{kind::right, 99}, {kind::wrong, 1}}));
  CHECK_FALSE(all_well({{kind::right, 99}, {kind::failed, 1}}));
}

TEST_CASE("a seed names one task") {
  CHECK(random_task(7).text() == random_task(7).text());
  CHECK(random_task(7).text() != random_task(8).text());
}
