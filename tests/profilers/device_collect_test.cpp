// Collection on a device, with the CPU standing in for one and a made-up profiler.
#include "tests/fixtures/python_fixture.hpp"
#include "manifest_fixture.hpp"
#include "profilers/collect.hpp"

#include <atomic>

using namespace pragma;

TEST_CASE("who interrupts a profile waits for no further run of its tool") {
  auto& b = test::python_bench::get();
  const auto c = test::module_of("return self.right(x, scale)");
  const auto built = test::made(c);
  auto manifest = parse_json(tally_text(), "tally.json").value();
  manifest["backend"] = {"cpu"};
  auto more = manifest["collect"]["passes"][0];
  more["name"] = "more";
  manifest["collect"]["passes"].push_back(more);
  std::atomic<bool> cancel = false;
  std::vector<std::string> passes;
  collect_options options;
  options.manifests = {manifest};
  options.cancel = &cancel;
  options.progress = [&](const std::string& what) {
    if (what.find('(') == std::string::npos) return;
    passes.push_back(what);
    cancel = true;
  };
  timing time;
  time.candidate_seconds = 1e-3;
  const auto p = collect(b.loaded.task, c, built, b.loaded.ref, time, nullptr, options);
  CHECK(passes == std::vector<std::string>{"tally (counters)"});
  REQUIRE_FALSE(p);
  CHECK(p.error().code == ec::interrupted);
}
