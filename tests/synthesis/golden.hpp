// Graphs as the tracer wrote them (golden/NAME.json), without Torch and without a compiler: for the tests of the way from a
// graph to a text.
#pragma once

#include "base/files.hpp"
#include "base/json.hpp"
#include "synthesis/search/builtin.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace pragma::test {

inline std::filesystem::path golden_folder() { return std::filesystem::path(TESTS_DIR) / "synthesis" / "golden"; }

/// Names of all golden graphs, sorted.
inline std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder()))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

struct golden_shape {
  std::string name;
  task described;
  builtin_options options; ///< threads and a machine that is the same everywhere
};

inline golden_shape golden(const std::string& name, const std::string& language = "c++") {
  const auto text = read_file(golden_folder() / (name + ".json"));
  REQUIRE(text);
  const auto parsed = parse_json(*text, name);
  if (!parsed) FAIL(render(parsed.error()));
  golden_shape shape;
  shape.name = name;
  shape.described.name = name;
  shape.described.graph = parsed->at("graph").dump();
  shape.options.language = language;
  shape.options.threads = parsed->at("threads").get<int>();
  shape.options.machine.cpu = "golden";
  shape.options.machine.simd_bits = 256;
  shape.options.machine.cache_bytes = {32 << 10, 512 << 10, 8 << 20};
  return shape;
}

inline builtin_coder coder_of(const golden_shape& shape) {
  auto made = builtin_coder::create(shape.described, shape.options);
  if (!made) FAIL(shape.name << ": " << render(made.error()));
  return std::move(*made);
}

} // namespace pragma::test
