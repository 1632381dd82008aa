// What a search's process compiled goes on to another one, by Triton's own rules; what a candidate leaves there besides is left alone.
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/subprocess.hpp"
#include "execution/triton_cache.hpp"
#include "tests/fixtures/skip.hpp"
#include "tests/synthesis/triton_python.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace pragma;
using namespace pragma::test;
namespace fs = std::filesystem;

namespace {

void put(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  REQUIRE(write_file_atomic(file, text));
}

} // namespace

TEST_CASE("The lists of a taken cache name the files where they lie now, and no others") {
  auto made = temp_dir::create("triton-cache-");
  REQUIRE(made);
  const auto from = made->path() / "a" / "triton", to = made->path() / "b" / "triton", outside = made->path() / "outside";
  fs::create_directories(to.parent_path());
  const auto list = [](const fs::path& folder) {
    return json{{"child_paths", {{"k.cubin", (folder / "k.cubin").string()}, {"k.json", (folder / "k.json").string()}}}}.dump();
  };
  for (const char* entry : {"KEY", "THERE"}) {
    put(from / entry / "k.cubin", "binary");
    put(from / entry / "k.json", "{}");
    put(from / entry / "__grp__k.json", list(from / entry));
  }
  put(to / "THERE" / "k.cubin", "its own");
  // What a candidate could leave: links, a list of files elsewhere, lists that are none.
  put(outside, "secret");
  fs::create_symlink(outside, from / "KEY" / "linked.json");
  fs::create_symlink(outside, from / "KEY" / "__grp__linked.json");
  fs::create_directory_symlink(made->path(), from / "LINK");
  put(from / "BAD" / "__grp__up.json", R"({"child_paths": {"../../outside": "x"}})");
  put(from / "BAD" / "__grp__no.json", "[1");
  put(from / "BAD" / "__grp__text.json", R"({"child_paths": {"k": 1}})");
  take_compiled(from, to);
  CHECK(*read_file(to / "KEY" / "k.cubin") == "binary");
  CHECK(json::parse(*read_file(to / "KEY" / "__grp__k.json")) == json::parse(list(to / "KEY")));
  CHECK(*read_file(to / "THERE" / "k.cubin") == "its own");
  CHECK_FALSE(fs::exists(to / "THERE" / "k.json"));
  CHECK_FALSE(fs::exists(fs::symlink_status(to / "KEY" / "linked.json")));
  CHECK_FALSE(fs::exists(fs::symlink_status(to / "KEY" / "__grp__linked.json")));
  CHECK_FALSE(fs::exists(fs::symlink_status(to / "LINK")));
  CHECK(fs::is_empty(to / "BAD"));
  CHECK(*read_file(outside) == "secret");
  // Nor where the other end is a link.
  fs::create_directory_symlink(outside.parent_path(), made->path() / "link");
  take_compiled(from, made->path() / "link");
  CHECK_FALSE(fs::exists(made->path() / "KEY"));
  take_compiled(made->path() / "nothing", to);
}

TEST_CASE("The real Triton finds in a taken cache what was compiled, and compiles side by side what a module launches") {
  const auto python = python_with("torch, triton");
  if (python.empty()) return skip("no Python with Torch and Triton: PRAGMA_TRITON_PYTHON or PRAGMA_OTHER_PYTHON");
  auto made = temp_dir::create("triton-cache-");
  REQUIRE(made);
  const auto script = (fs::path(__FILE__).parent_path() / "compiled_ahead.py").string();
  const auto compile = [&](const fs::path& cache) {
    process_spec spec;
    spec.argv = {python, "-B", script, share_dir().string(), cache.string()};
    spec.limits.wall_seconds = 300;
    const auto ran = run_process(spec);
    REQUIRE(ran);
    INFO(ran->out << ran->err);
    REQUIRE(ran->ok());
    return json::parse(ran->out);
  };
  const auto first = compile(made->path() / "a");
  CHECK(first.at("ran") == 0);
  CHECK(first.at("compiled") == first.at("kernels"));
  CHECK(first.at("threads") > 1);
  CHECK(first.at("again") == 0); // the calls that follow find them
  take_compiled(made->path() / "a", made->path() / "b");
  const auto second = compile(made->path() / "b");
  CHECK(second.at("compiled") == 0);
}
