// The command tree as words: what the shell completes, what the manual says, which flag was meant.
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "cli/node_command.hpp"
#include "cli/words.hpp"
#include "tests/fixtures/skip.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>

using namespace pragma;
using Catch::Contains;

namespace {

struct tree {
  CLI::App app{"makes things", "pragma"};
  cli::action chosen;
  bool dry = false;
  tree() {
    cli::add_compare(app, chosen);
    auto* kb = app.add_subcommand("kb", "the compendium");
    kb->add_subcommand("build", "builds it")->add_flag("--dry-run", dry, "only says what would be done. \\ and -dashes, it's quoted");
    cli::add_words(app, chosen);
    cli::add_data_option(app);
  }
};

std::string shell(std::vector<std::string> argv) {
  process_spec spec;
  spec.argv = std::move(argv);
  const auto ran = run_process(spec);
  REQUIRE(ran);
  INFO(ran->err);
  REQUIRE(ran->ok());
  return ran->out;
}

} // namespace

TEST_CASE("bash completes commands, options, and those of a command below another") {
  tree t;
  const auto script = *cli::completion(t.app, "bash");
  const auto completed = [&](const std::string& words, int at) {
    return shell({"bash", "-c", script + "COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(at) + "; _pragma; echo \"${COMPREPLY[@]}\""});
  };
  CHECK(completed("pragma comp", 1) == "compare completion\n");
  CHECK_THAT(completed("pragma compare old new --f", 4), Contains("--fail-if-slower"));
  CHECK(completed("pragma kb b", 2) == "build\n");
  CHECK(completed("pragma kb build --dr", 3) == "--dry-run\n");
}

TEST_CASE("zsh completes the same, with what each is for") {
  if (find_program("zsh").empty()) return test::skip("no zsh: completion for it is not tried");
  tree t;
  const auto script = *cli::completion(t.app, "zsh");
  // What zsh's own completion would be asked to show.
  const auto completed = [&](const std::string& words, int at) {
    return shell({"zsh", "-f", "-c", "_describe() { print -rl -- \"${(@P)2}\" }; _files() { print FILES }; " + script + "words=(" + words + "); CURRENT=" + std::to_string(at) + "; _pragma"});
  };
  CHECK_THAT(completed("pragma kb b", 3), Contains("build:builds it\n") && Contains("--data:") && Contains("FILES"));
  CHECK_THAT(completed("pragma kb build --dr", 4), Contains("--dry-run:only says what would be done. \\ and -dashes, it's quoted") && !Contains("FILES") && !Contains("build:"));
}

TEST_CASE("fish completes the same, with what each is for") {
  if (find_program("fish").empty()) return test::skip("no fish: completion for it is not tried");
  tree t;
  auto folder = temp_dir::create("fish-");
  REQUIRE(folder);
  const auto file = folder->path() / "pragma.fish";
  REQUIRE(write_file_atomic(file, *cli::completion(t.app, "fish")));
  const auto completed = [&](const std::string& line) {
    return shell({"env", "HOME=" + folder->path().string(), "fish", "--no-config", "-c", "source " + file.string() + "; complete -C '" + line + "'"});
  };
  CHECK_THAT(completed("pragma comp"), Contains("compare\ttwo recorded runs") && Contains("completion\t"));
  CHECK_THAT(completed("pragma kb b"), Contains("build\tbuilds it"));
  CHECK_THAT(completed("pragma kb build --dr"), Contains("--dry-run\tonly says what would be done. \\ and -dashes, it's quoted"));
}

TEST_CASE("another shell is refused with those that there are") {
  tree t;
  const auto none = cli::completion(t.app, "tcsh");
  REQUIRE_FALSE(none);
  CHECK_THAT(none.error().hint, Contains("bash, zsh and fish"));
}

TEST_CASE("--data stands on every command and sets the folder of all that is kept") {
  const char* before = std::getenv("PRAGMA_HOME");
  const std::string kept = before ? before : "";
  tree t;
  for (const auto& words : cli::tree_of(t.app)) {
    INFO(words.path);
    CHECK(std::find(words.options.begin(), words.options.end(), "--data") != words.options.end());
  }
  t.app.parse("kb build --data some/folder", false);
  CHECK(data_home() == std::filesystem::absolute("some/folder"));
  CHECK_THROWS_AS(t.app.parse("kb build --data ''", false), CLI::ParseError);
  before ? ::setenv("PRAGMA_HOME", kept.c_str(), 1) : ::unsetenv("PRAGMA_HOME");
}

TEST_CASE("the option that was probably meant is named; values and known ones are left alone") {
  tree t;
  CHECK(cli::misspelt_option(t.app, {"compare", "--fail-if-slowr", "a", "b"}) == "there is no option --fail-if-slowr of pragma compare; did you mean --fail-if-slower?");
  CHECK_THAT(cli::misspelt_option(t.app, {"kb", "build", "--dryrun"}), Contains("of pragma kb build; did you mean --dry-run?"));
  CHECK(cli::misspelt_option(t.app, {"compare", "--junit=x", "-k", "a", "--help"}).empty());
  CHECK(cli::misspelt_option(t.app, {"compare", "--", "--what"}).empty());
}

TEST_CASE("the manual page names every command and escapes what roff would take for its own") {
  tree t;
  const auto page = cli::manual_page(t.app);
  CHECK_THAT(page, Contains(".SS pragma compare") && Contains(".SS pragma kb build") && Contains("\\-\\-fail\\-if\\-slower"));
  CHECK_THAT(page, Contains("\\e and \\-dashes"));
}
