// Which run a word means, and what stands where nothing was established.
#include "actors/run_log.hpp"
#include "actors/store.hpp"
#include "base/files.hpp"
#include "cli/stored_runs.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

using namespace pragma;
using Catch::Contains;

namespace {

/// A store with three runs, newest first: of softmax, of relu, and an older one of softmax.
class some_runs {
public:
  some_runs() {
    if (const char* home = std::getenv("PRAGMA_HOME")) before_ = home;
    ::setenv("PRAGMA_HOME", folder_.path().c_str(), 1);
    std::filesystem::create_directories(cli::run_store_folder());
    auto store = open_runs(cli::run_store_folder(), run_store::mode::read_write);
    REQUIRE(store);
    for (const auto& [id, task] : {std::pair{"20260101-000000-000001", "softmax"}, {"20260102-000000-000002", "relu"}, {"20260103-000000-000003", "softmax"}}) {
      run_header h;
      h.id = id;
      h.state = "finished";
      h.started = std::string(id).substr(0, 8);
      h.request.load.path = std::string("/tasks/") + task + "_file.py";
      h.environment.task.name = task;
      REQUIRE(store->put_run(id, json(h)));
    }
  }
  ~some_runs() { before_.empty() ? ::unsetenv("PRAGMA_HOME") : ::setenv("PRAGMA_HOME", before_.c_str(), 1); }

private:
  temp_dir folder_ = std::move(*temp_dir::create("stored-runs-"));
  std::string before_;
};

} // namespace

TEST_CASE("a run is named by its id, as the last one, or by its task, whose newest it is") {
  const some_runs all;
  const auto id_of = [](const std::string& word) {
    const auto run = cli::read_stored_run(word);
    return run ? run->header.id : render(run.error());
  };
  CHECK(id_of("20260101-000000-000001") == "20260101-000000-000001");
  CHECK(id_of("last") == "20260103-000000-000003");
  CHECK(id_of("softmax") == "20260103-000000-000003");
  CHECK(id_of("relu") == "20260102-000000-000002");
  CHECK(id_of("relu_file") == "20260102-000000-000002");
  CHECK_THAT(id_of("sofmax"), Contains("there is no run 'sofmax'") && Contains("did you mean softmax"));
}

TEST_CASE("runs are deleted all or none, by any of their names") {
  const some_runs all;
  const auto refused = cli::delete_stored_runs({"last", "nothing"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ec::not_found);
  CHECK(cli::list_stored_runs()->size() == 3);
  const auto logs = data_home() / "logs";
  for (const char* id : {"20260101-000000-000001", "20260102-000000-000002"}) run_log(logs, id).add({0, "", 1, "coding", ""});
  CHECK(cli::delete_stored_runs({"last", "20260103-000000-000003", "relu"}).value() == std::vector<std::string>{"20260103-000000-000003", "20260102-000000-000002"});
  const auto left = cli::list_stored_runs();
  REQUIRE(left->size() == 1);
  CHECK(left->front().id == "20260101-000000-000001");
  CHECK(read_run_log(logs, "20260101-000000-000001", 0).size() == 1);
  CHECK(read_run_log(logs, "20260102-000000-000002", 0).empty()); // goes with its run
}

TEST_CASE("where nothing was established there is no figure") {
  run_summary run;
  run.speedup = {2.3, 2.2, 2.4};
  CHECK(cli::figure_text(run) == "not established");
  run.confirmed = true;
  CHECK(cli::figure_text(run) == "2.30x (95% 2.20-2.40)");
  cluster_run listed{"id", "task", "running", 3, 1.8, "me", 0};
  CHECK(cli::figure_text(listed) == "1.80x so far");
  listed.state = "finished";
  CHECK(cli::figure_text(listed) == "1.80x");
  listed.state = "interrupted";
  CHECK(cli::figure_text(listed) == "not established");
  listed.state = "finished";
  listed.speedup = 0;
  CHECK(cli::figure_text(listed) == "not established");
}
