// Which Python serves the reference, with scripts in place of interpreters: no Torch is imported here.
#include "reference/python_search.hpp"

#include "base/files.hpp"
#include "base/subprocess.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <optional>

using namespace pragma;
using Catch::Contains;
using Catch::StartsWith;
namespace fs = std::filesystem;

namespace {

/// A folder for made-up Pythons; the variables that choose one are the test's own as long as it lives.
struct shell {
  temp_dir dir = std::move(*temp_dir::create("pragma-pythons-"));
  std::map<std::string, std::optional<std::string>> before;

  shell() {
    for (const char* name : {"PRAGMA_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX", "PATH", "PYTHONPATH"}) {
      const char* value = std::getenv(name);
      before[name] = value ? std::optional<std::string>(value) : std::nullopt;
      if (name != std::string("PATH")) ::unsetenv(name);
    }
  }
  ~shell() {
    for (const auto& [name, value] : before) value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  shell(const shell&) = delete;
  shell& operator=(const shell&) = delete;

  void set(const char* name, const std::string& value) const { ::setenv(name, value.c_str(), 1); }
  /// An environment's folder whose python3 has this version of Torch; empty: none. To be asked for a module it answers 8 or 9 (python_search.cpp).
  std::string environment(const std::string& name, const std::string& torch) const {
    const auto bin = dir.path() / name / "bin";
    fs::create_directories(bin);
    const std::string script = torch.empty() ? "#!/bin/sh\nexit 9\n"
                                             : "#!/bin/sh\ncase \"$*\" in *find_spec*) exit 8;; esac\necho 3.13.5\necho " + torch + "\n";
    REQUIRE(write_file_atomic(bin / "python3", script));
    fs::permissions(bin / "python3", fs::perms(0755));
    return (dir.path() / name).string();
  }
};

} // namespace

TEST_CASE("a Python is chosen by its name, then by the active environment, then from the system", "[python]") {
  const shell s;
  const auto mine = s.environment("mine", "2.13.0"), conda = s.environment("conda", "2.11.0"), named = s.environment("named", "2.6.0");
  s.set("CONDA_PREFIX", conda);
  CHECK(find_python()->torch == "2.11.0");
  s.set("VIRTUAL_ENV", mine);
  const auto found = find_python();
  REQUIRE(found);
  CHECK(found->executable == mine + "/bin/python3");
  CHECK(found->version == "3.13.5");
  CHECK(found->torch == "2.13.0");
  CHECK(passed_over(*found).empty());
  s.set("PRAGMA_PYTHON", named + "/bin/python3");
  CHECK(find_python()->torch == "2.6.0");
  CHECK(likely_python().executable == named + "/bin/python3");
  ::unsetenv("PRAGMA_PYTHON");
  CHECK(likely_python().executable == mine + "/bin/python3");
}

TEST_CASE("a name that does not work is an error that names it, whatever else there is", "[python]") {
  const shell s;
  s.set("VIRTUAL_ENV", s.environment("mine", "2.13.0"));
  const auto without = s.environment("without", "") + "/bin/python3";
  const auto text = s.dir.path() / "notes.txt";
  REQUIRE(write_file_atomic(text, "not a program"));
  for (const auto& [name, why] : std::map<std::string, std::string>{
         {without, "no module named torch"}, {text.string(), "not an executable file"}, {"/no/such/python3", "not an executable file"}, {"/bin/false", "exit"}, {"/bin/true", "not a Python"}}) {
    INFO(name);
    s.set("PRAGMA_PYTHON", name);
    const auto found = find_python();
    REQUIRE_FALSE(found);
    CHECK(found.error().code == ec::not_found);
    CHECK_THAT(found.error().message, StartsWith("PRAGMA_PYTHON names no Python with Torch: " + name) && Contains(why));
    CHECK(likely_python().executable.empty());
    const auto served = reference::start({});
    REQUIRE_FALSE(served);
    CHECK_THAT(served.error().message, Contains(name));
  }
}

TEST_CASE("an active environment without Torch is passed over aloud", "[python]") {
  const shell s;
  const auto bare = s.environment("bare", ""), other = s.environment("other", "2.6.0");
  s.set("PATH", other + "/bin:" + *s.before.at("PATH"));
  s.set("VIRTUAL_ENV", bare);
  const auto found = find_python(); // this system's, where it has Torch; else the one on PATH
  REQUIRE(found);
  CHECK(found->executable != bare + "/bin/python3");
  CHECK_THAT(passed_over(*found), Contains(bare + "/bin/python3: no module named torch") && Contains(found->executable));
  fs::remove_all(bare); // deleted while it was active
  s.set("VIRTUAL_ENV", bare + "/.");
  CHECK_THAT(passed_over(likely_python()), Contains("not an executable file"));
}

TEST_CASE("a Torch without bytecode is told of, with the command that makes it", "[python]") {
  const shell s;
  const auto torch = s.dir.path() / "packages" / "torch";
  fs::create_directories(torch);
  REQUIRE(write_file_atomic(torch / "__init__.py", "__version__ = '2.0'\n"));
  s.set("PYTHONPATH", torch.parent_path().string());
  const python_info system{"/usr/bin/python3", "", "", {}};
  const auto said = uncompiled(system), command = "/usr/bin/python3 -m compileall -q -j 0 " + torch.string();
  CHECK_THAT(said, Catch::EndsWith(command));
  process_spec spec;
  spec.argv = {"sh", "-c", command};
  REQUIRE(run_process(spec)->ok());
  CHECK(uncompiled(system).empty());
  CHECK(uncompiled({"/bin/false", "", "", {}}).empty());
}
