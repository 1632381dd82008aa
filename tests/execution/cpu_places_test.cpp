#include "execution/cpu_places.hpp"

#include "base/files.hpp"

#include <catch2/catch.hpp>

using namespace pragma;

namespace {

/// Two nodes of four cores with two threads each, numbered as Linux does: 0-3 and 8-11 on node 0, 4-7 and 12-15 on node 1.
std::vector<cpu_place> two_sockets() {
  std::vector<cpu_place> places;
  for (int cpu = 0; cpu < 16; ++cpu) places.push_back({cpu, cpu % 8 / 4, cpu % 8});
  return places;
}

} // namespace

TEST_CASE("a measurement gets CPUs of one node, and cores of their own where there are enough", "[cpu_places]") {
  CHECK(choose_cpus(two_sockets(), 1) == std::vector<int>{15});
  CHECK(choose_cpus(two_sockets(), 4) == std::vector<int>{12, 13, 14, 15}); // four cores, one thread of each
  CHECK(choose_cpus(two_sockets(), 6) == std::vector<int>{6, 7, 12, 13, 14, 15}); // still one node
  CHECK(choose_cpus(two_sockets(), 8) == std::vector<int>{4, 5, 6, 7, 12, 13, 14, 15});
  CHECK(choose_cpus(two_sockets(), 12).size() == 12); // of both: the eight cores first
  CHECK(choose_cpus(two_sockets(), 100).size() == 16);
  CHECK(cores_of_one_node(two_sockets()) == 4);
  auto some = two_sockets(); // a container that may use five CPUs of node 0 and four of node 1
  std::erase_if(some, [](const cpu_place& p) { return p.cpu == 5 || p.cpu > 12 || p.cpu == 0 || p.cpu == 8 || p.cpu == 3; });
  CHECK(choose_cpus(some, 3) == std::vector<int>{6, 7, 12});
  CHECK(choose_cpus(some, 5) == std::vector<int>{1, 2, 9, 10, 11});
  CHECK(choose_cpus({}, 2).empty());
  CHECK(cores_of_one_node({}) == 1);
}

TEST_CASE("places are read from the system's own files, and what they do not say is one node", "[cpu_places]") {
  auto dir = temp_dir::create("pragma-places-");
  REQUIRE(dir);
  const auto file = [&](const std::string& path, const std::string& text) {
    const auto at = dir->path() / "sys/devices/system" / path;
    std::filesystem::create_directories(at.parent_path());
    REQUIRE(write_file_atomic(at, text));
  };
  const auto places = [&] { return places_of({0, 1, 2, 3}, dir->path()); };
  for (const auto& p : places()) CHECK((p.node == 0 && p.core == p.cpu));
  file("node/node0/cpulist", "0,2\n");
  file("node/node1/cpulist", "1,3-5\n");
  file("node/nodes/cpulist", "0-5\n"); // no node
  file("cpu/cpu3/topology/thread_siblings_list", "1,3\n");
  file("cpu/cpu2/topology/thread_siblings_list", "-,x\n");
  CHECK(places()[2].node == 0);
  CHECK(places()[3].node == 1);
  CHECK(places()[3].core == 1);
  CHECK(places()[2].core == 2);
}
