// The command tree as words: what the shell completes, what the manual says, which flag was meant.
#include "base/subprocess.hpp"
#include "cli/words.hpp"

#include <catch2/catch.hpp>

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
    kb->add_subcommand("build", "builds it")->add_flag("--dry-run", dry, "only says what would be done. \\ and -dashes");
    cli::add_words(app, chosen);
  }
};

std::string bash(const std::string& script) {
  process_spec spec;
  spec.argv = {"bash", "-c", script};
  const auto ran = run_process(spec);
  REQUIRE(ran);
  INFO(ran->err);
  REQUIRE(ran->ok());
  return ran->out;
}

} // namespace

TEST_CASE("bash completes commands, options, and those of a command below another") {
  tree t;
  const auto script = cli::bash_completion(t.app);
  const auto completed = [&](const std::string& words, int at) {
    return bash(script + "COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(at) + "; _pragma; echo \"${COMPREPLY[@]}\"");
  };
  CHECK(completed("pragma comp", 1) == "compare completion\n");
  CHECK_THAT(completed("pragma compare old new --f", 4), Contains("--fail-if-slower"));
  CHECK(completed("pragma kb b", 2) == "build\n");
  CHECK(completed("pragma kb build --dr", 3) == "--dry-run\n");
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
