#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "knowledge/run_store.hpp"
#include "tests/fixtures/skip.hpp"

#include <catch2/catch.hpp>
#include <rocksdb/db.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

json header(const std::string& started, int best = 0) { return {{"started", started}, {"best_attempt", best}}; }
json iteration(int number, size_t bytes = 100) { return {{"number", number}, {"log", std::string(bytes, 'x')}}; }

/// Lists show whole headers.
expected<json> whole(const json& header) { return header; }

run_store open_store(const fs::path& folder, run_store::mode mode = run_store::mode::read_write) {
  auto store = run_store::open(folder, mode, whole);
  if (!store) FAIL(render(store.error()));
  return std::move(*store);
}

/// Runs the hidden test `[name]` of this very program in a process of its own, on `folder`.
process_spec self(const std::string& name, const fs::path& folder) {
  process_spec spec;
  spec.argv = {fs::read_symlink("/proc/self/exe").string(), "[" + name + "]"};
  spec.env = {{"RUN_STORE_FOLDER", folder.string()}};
  spec.limits.wall_seconds = 200;
  return spec;
}

fs::path folder_of_child() {
  const char* folder = std::getenv("RUN_STORE_FOLDER");
  return folder ? folder : "";
}

/// The newest write-ahead log of a store.
fs::path journal(const fs::path& folder) {
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".log" && (newest.empty() || entry.path() > newest)) newest = entry.path();
  return newest;
}

/// Child: writes iterations without end and says "N" on stdout as each is acknowledged.
void write_until_killed(size_t bytes) {
  auto store = open_store(folder_of_child());
  REQUIRE(store.put_run("r1", header("2026-01-01T00:00:00Z")));
  for (int i = 1;; ++i) {
    if (!store.put_iteration("r1", i, iteration(i, bytes), header("2026-01-01T00:00:00Z", i))) return;
    const auto line = std::to_string(i) + "\n";
    if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) return;
  }
}

/// Child: a run of its own, named by its process; each iteration in a turn of its own, and "N" on stdout as it is acknowledged.
void write_in_turn() {
  const auto folder = folder_of_child();
  const auto id = "run-" + std::to_string(::getpid());
  const auto claim = run_store::claim(folder, id);
  REQUIRE(claim);
  for (int i = 1;; ++i) {
    if (!open_store(folder, run_store::mode::in_turn).put_iteration(id, i, iteration(i, 5000), header("2026-01-01T00:00:00Z", i))) return;
    const auto line = std::to_string(i) + "\n";
    if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) return;
    ::usleep(50'000); // as an attempt does: who never pauses leaves others their turn by chance only
  }
}

} // namespace

TEST_CASE("a run and its iterations are read back as they were written") {
  auto dir = temp_dir::create("run-store");
  REQUIRE(dir);
  {
    auto store = open_store(dir->path() / "a" / "runs"); // makes the folders
    REQUIRE(store.put_run("r1", header("2026-01-01T00:00:00Z")));
    for (int i : {1, 2, 10, 9}) REQUIRE(store.put_iteration("r1", i, iteration(i), header("2026-01-01T00:00:00Z", i)));
    REQUIRE(store.put_iteration("r1", 2, json{{"number", 2}, {"again", true}}, header("2026-01-01T00:00:00Z", 2)));
    REQUIRE(store.put_iteration("r10", 1, iteration(1), header("2026-01-02T00:00:00Z")));
    REQUIRE(store.put_schedule("softmax/float32", {{"tile", 64}}));
  }
  auto store = open_store(dir->path() / "a" / "runs");
  auto records = store.iterations("r1");
  REQUIRE(records);
  REQUIRE(records->size() == 4);
  CHECK((*records)[1]["again"] == true);
  CHECK((*records)[2]["number"] == 9);
  CHECK((*records)[3]["number"] == 10);
  CHECK((*store.get_run("r1"))["best_attempt"] == 2);
  CHECK((**store.get_schedule("softmax/float32"))["tile"] == 64);
  CHECK_FALSE(store.get_schedule("softmax/float64")->has_value());

  auto all = store.list_runs();
  REQUIRE(all);
  REQUIRE(all->size() == 2);
  CHECK((*all)[0].first == "r10"); // newest first
  REQUIRE(store.remove_run("r1"));
  CHECK(store.iterations("r1").error().code == ec::not_found);
  CHECK(store.iterations("r10")->size() == 1); // "r1" is a prefix of "r10"
}

TEST_CASE("a list reads the summaries that were written beside the headers, and no header but of runs that have none") {
  auto dir = temp_dir::create("run-store");
  const auto shown = [&](run_store::summariser summary_of, const std::string& run) -> json {
    auto store = run_store::open(dir->path(), run_store::mode::read_only, summary_of);
    REQUIRE(store);
    const auto all = store->list_runs();
    REQUIRE(all);
    for (const auto& [id, summary] : *all)
      if (id == run) return summary.value("as", "header");
    return nullptr;
  };
  {
    auto store = run_store::open(dir->path(), run_store::mode::read_write, [](const json&) -> expected<json> { return json{{"as", "written"}}; });
    REQUIRE(store);
    REQUIRE(store->put_run("new", header("2026-01-01T00:00:00Z")));
    REQUIRE(store->put_iteration("new too", 1, iteration(1), header("2026-01-01T00:00:00Z")));
  }
  {
    auto store = run_store::open(dir->path(), run_store::mode::read_write, [](const json&) -> expected<json> { return fail(ec::parse_error, "as before there were summaries"); });
    REQUIRE(store);
    REQUIRE(store->put_run("old", header("2026-01-01T00:00:00Z")));
  }
  const run_store::summariser asked = [](const json&) -> expected<json> { return json{{"as", "asked for"}}; };
  CHECK(shown(asked, "new") == "written");
  CHECK(shown(asked, "new too") == "written");
  CHECK(shown(asked, "old") == "asked for");
  {
    auto store = open_store(dir->path());
    REQUIRE(store.remove_run("new"));
  }
  CHECK(shown(asked, "new") == nullptr);
}

TEST_CASE("runs are listed by time, newest first, whatever their ids are") {
  auto dir = temp_dir::create("run-store");
  auto store = open_store(dir->path());
  REQUIRE(store.put_run("zebra", header("2026-01-01T00:00:00Z")));
  REQUIRE(store.put_run("ant", header("2026-03-01T00:00:00Z")));
  REQUIRE(store.put_run("bee", header("2026-02-01T00:00:00Z")));
  REQUIRE(store.put_run("no-date", json::object()));
  std::vector<std::string> ids;
  const auto runs = store.list_runs();
  REQUIRE(runs);
  for (const auto& [id, h] : *runs) ids.push_back(id);
  CHECK(ids == std::vector<std::string>{"ant", "bee", "zebra", "no-date"});
}

TEST_CASE("an unknown run names the nearest ones") {
  auto dir = temp_dir::create("run-store");
  auto store = open_store(dir->path());
  CHECK(store.get_run("x").error().hint.find("no runs yet") != std::string::npos);
  REQUIRE(store.put_run("20260101-softmax-ab12", header("2026-01-01T00:00:00Z")));
  REQUIRE(store.put_run("20260102-layernorm-cd34", header("2026-01-02T00:00:00Z")));
  auto missing = store.get_run("20260101-softmax-ab21");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ec::not_found);
  CHECK(missing.error().hint.find("20260101-softmax-ab12") != std::string::npos);
  CHECK(store.remove_run("softmax").error().hint.find("20260101-softmax-ab12") != std::string::npos);
}

TEST_CASE("bytes that are not UTF-8 and odd ids do no harm") {
  auto dir = temp_dir::create("run-store");
  auto store = open_store(dir->path());
  REQUIRE(store.put_iteration("r1", 1, json{{"log", std::string("a\xff\xfe") + "b"}}, header("2026-01-01T00:00:00Z")));
  CHECK(store.iterations("r1")->size() == 1);
  CHECK(store.put_run("", json::object()).error().code == ec::invalid_argument);
  CHECK(store.put_run(std::string("a\0b", 3), json::object()).error().code == ec::invalid_argument);
  CHECK(store.put_run(std::string(5000, 'a'), json::object()).error().code == ec::invalid_argument);
  CHECK(store.put_iteration("r1", 0, json::object(), json::object()).error().code == ec::invalid_argument);
}

TEST_CASE("one writer at a time, readers beside it") {
  auto dir = temp_dir::create("run-store");
  CHECK(run_store::open(dir->path() / "none", run_store::mode::read_only, whole).error().code == ec::not_found);
  CHECK_FALSE(fs::exists(dir->path() / "none")); // a reader creates nothing
  auto writer = open_store(dir->path());
  REQUIRE(writer.put_iteration("r1", 1, iteration(1), header("2026-01-01T00:00:00Z")));

  auto second = run_store::open(dir->path(), run_store::mode::read_write, whole);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ec::locked);
  CHECK(second.error().message.find(dir->path().string()) != std::string::npos);

  {
    auto reader = open_store(dir->path(), run_store::mode::read_only);
    CHECK(reader.iterations("r1")->size() == 1);
    CHECK_FALSE(reader.put_run("r2", header("2026-01-01T00:00:00Z")));
  }
  REQUIRE(writer.put_iteration("r1", 2, iteration(2), header("2026-01-01T00:00:00Z")));
  CHECK(open_store(dir->path(), run_store::mode::read_only).iterations("r1")->size() == 2);
}

TEST_CASE("another process that holds the store is named") {
  auto dir = temp_dir::create("run-store");
  auto child = child_process::start(self("child-holds", dir->path()));
  REQUIRE(child);
  auto said = child->read_line(30);
  REQUIRE(said);
  auto second = run_store::open(dir->path(), run_store::mode::read_write, whole);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ec::locked);
  CHECK(second.error().message.find(std::to_string(child->pid())) != std::string::npos);
  CHECK(open_store(dir->path(), run_store::mode::read_only).iterations("r1")->size() == 1);
  child->kill(); // a dead owner leaves no lock behind
  CHECK(run_store::open(dir->path(), run_store::mode::read_write, whole));
}

TEST_CASE("holds the store", "[.][child-holds]") {
  auto store = open_store(folder_of_child());
  REQUIRE(store.put_iteration("r1", 1, iteration(1), header("2026-01-01T00:00:00Z")));
  (void)!::write(STDOUT_FILENO, "ready\n", 6);
  ::pause();
}

TEST_CASE("kill -9 in mid-write loses no acknowledged iteration") {
  const bool large = GENERATE(false, true); // small records: many syncs; large ones: buffers are flushed meanwhile
  auto dir = temp_dir::create("run-store");
  auto child = child_process::start(self(large ? "child-large" : "child-small", dir->path()));
  REQUIRE(child);
  int acknowledged = 0;
  while (acknowledged < (large ? 12 : 40)) {
    auto line = child->read_line(30);
    REQUIRE(line);
    acknowledged = std::atoi(line->c_str());
  }
  child->kill();
  auto store = open_store(dir->path());
  auto records = store.iterations("r1");
  REQUIRE(records);
  REQUIRE(records->size() >= static_cast<size_t>(acknowledged));
  for (size_t i = 0; i < records->size(); ++i) CHECK((*records)[i]["number"] == static_cast<int>(i) + 1);
  CHECK((*store.get_run("r1"))["best_attempt"] == static_cast<int>(records->size())); // header and iteration: one batch
}

TEST_CASE("writes until killed, small", "[.][child-small]") { write_until_killed(200); }
TEST_CASE("writes until killed, large", "[.][child-large]") { write_until_killed(1 << 20); }

TEST_CASE("four processes write in turn and are killed at any moment: each that is left goes on, nothing acknowledged is lost, a reader sees it at once") {
  auto dir = temp_dir::create("run-store");
  std::vector<std::unique_ptr<child_process>> children;
  for (int i = 0; i < 4; ++i) {
    auto child = child_process::start(self("child-in-turn", dir->path()));
    REQUIRE(child);
    children.push_back(std::make_unique<child_process>(std::move(*child)));
  }
  for (size_t left = children.size(); left > 0; --left) {
    std::vector<int> acknowledged(left);
    for (int round = 0; round < 3; ++round)
      for (size_t i = 0; i < left; ++i) {
        auto line = children[i]->read_line(60);
        REQUIRE(line);
        acknowledged[i] = std::atoi(line->c_str());
        const auto id = "run-" + std::to_string(children[i]->pid());
        const auto reader = open_store(dir->path(), run_store::mode::read_only);
        const auto records = reader.iterations(id);
        REQUIRE(records);
        CHECK_FALSE(reader.abandoned(id));
        CHECK(static_cast<int>(records->size()) >= acknowledged[i]);
        CHECK(run_store::claim(dir->path(), id).error().code == ec::locked);
      }
    const auto id = "run-" + std::to_string(children[left - 1]->pid());
    children[left - 1]->kill();
    auto store = open_store(dir->path(), run_store::mode::in_turn);
    const auto records = store.iterations(id).value();
    REQUIRE(static_cast<int>(records.size()) >= acknowledged[left - 1]);
    for (size_t i = 0; i < records.size(); ++i) CHECK(records[i]["number"] == static_cast<int>(i) + 1);
    CHECK(store.get_run(id).value()["best_attempt"] == static_cast<int>(records.size()));
    CHECK(store.abandoned(id));
    CHECK(run_store::claim(dir->path(), id)); // whoever wants to may go on with it
  }
  CHECK(open_store(dir->path(), run_store::mode::read_only).list_runs()->size() == 4);
}

TEST_CASE("writes in turn until killed", "[.][child-in-turn]") { write_in_turn(); }

TEST_CASE("a store that is opened for each record has a journal of few files") {
  auto dir = temp_dir::create("run-store");
  for (int i = 1; i <= 150; ++i) REQUIRE(open_store(dir->path(), run_store::mode::in_turn).put_iteration("r1", i, iteration(i, 100), header("2026-01-01T00:00:00Z", i)));
  size_t journals = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir->path())) journals += entry.path().extension() == ".log";
  CHECK(journals <= 65);
  CHECK(open_store(dir->path(), run_store::mode::read_only).iterations("r1")->size() == 150);
}

TEST_CASE("a run that is claimed is nobody else's, nor is its store, until the claim is removed") {
  auto dir = temp_dir::create("run-store");
  { auto store = open_store(dir->path()); }
  auto claim = run_store::claim(dir->path(), "r1");
  REQUIRE(claim);
  const auto second = run_store::claim(dir->path(), "r1");
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ec::locked);
  CHECK(second.error().message.find("process " + std::to_string(::getpid())) != std::string::npos);
  CHECK(run_store::claim(dir->path(), "r2"));
  const auto whole_store = run_store::open(dir->path(), run_store::mode::read_write, whole);
  REQUIRE_FALSE(whole_store);
  CHECK(whole_store.error().code == ec::locked);
  CHECK(whole_store.error().message.find("run r1") != std::string::npos);
  CHECK(open_store(dir->path(), run_store::mode::in_turn).list_runs()->empty());
  claim->remove();
  CHECK_FALSE(open_store(dir->path(), run_store::mode::in_turn).abandoned("r1"));
  CHECK(run_store::claim(dir->path(), "r1"));
  for (const char* no_name : {"", "../x", "a/b", ".."}) CHECK(run_store::claim(dir->path(), no_name).error().code == ec::invalid_argument);
  auto kept = open_store(dir->path());
  CHECK(run_store::open(dir->path(), run_store::mode::in_turn, whole).error().code == ec::locked); // at once
}

TEST_CASE("a record that a crash cut short is dropped, the ones before are kept") {
  auto dir = temp_dir::create("run-store");
  {
    auto child = child_process::start(self("child-small", dir->path()));
    REQUIRE(child);
    for (int i = 0; i < 5; ++i) REQUIRE(child->read_line(30));
    child->kill();
  }
  const auto log = journal(dir->path());
  REQUIRE(fs::file_size(log) > 50);
  fs::resize_file(log, fs::file_size(log) - 20);
  auto store = open_store(dir->path());
  auto records = store.iterations("r1");
  REQUIRE(records);
  CHECK(records->size() >= 4);
  REQUIRE(store.put_iteration("r1", 99, iteration(99), header("2026-01-01T00:00:00Z")));
}

TEST_CASE("damage in the middle of the journal is reported, not skipped in silence") {
  auto dir = temp_dir::create("run-store");
  {
    auto child = child_process::start(self("child-small", dir->path()));
    REQUIRE(child);
    for (int i = 0; i < 20; ++i) REQUIRE(child->read_line(30));
    child->kill();
  }
  {
    std::fstream file(journal(dir->path()), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1500);
    file.put('\x7f');
  }
  auto store = run_store::open(dir->path(), run_store::mode::read_write, whole);
  REQUIRE_FALSE(store);
  CHECK(store.error().code == ec::io_error);
  CHECK(store.error().message.find("damaged") != std::string::npos);
  CHECK_FALSE(store.error().hint.empty());
}

TEST_CASE("what is known of a machine's rules is kept by its name") {
  auto dir = temp_dir::create("run-store");
  auto store = open_store(dir->path());
  CHECK(store.get_scores("a processor").value() == std::nullopt);
  CHECK(store.all_scores().value().empty());
  REQUIRE(store.put_scores("a processor", {{"machine", "a processor"}}));
  REQUIRE(store.put_scores("another", {{"machine", "another"}}));
  CHECK(store.get_scores("a processor").value().value()["machine"] == "a processor");
  CHECK(store.all_scores().value().size() == 2);
  CHECK_FALSE(store.put_scores("", {}));
}

TEST_CASE("a store of a newer pragma is refused before anything is changed") {
  auto dir = temp_dir::create("run-store");
  {
    auto store = open_store(dir->path());
    REQUIRE(store.put_run("r1", header("2026-01-01T00:00:00Z")));
  }
  {
    rocksdb::DB* db = nullptr;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const char* name : {"default", "runs", "summaries", "iterations", "schedules", "tasks", "scores", "later"}) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    rocksdb::Options options;
    options.create_missing_column_families = true;
    REQUIRE(rocksdb::DB::Open(options, dir->path().string(), families, &handles, &db).ok());
    REQUIRE(db->Put({}, handles[0], "schema", "2").ok());
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
    delete db;
  }
  for (auto mode : {run_store::mode::read_write, run_store::mode::read_only}) {
    auto store = run_store::open(dir->path(), mode, whole);
    REQUIRE_FALSE(store);
    CHECK(store.error().code == ec::parse_error);
    CHECK(store.error().message.find("schema version 2") != std::string::npos);
  }
}

TEST_CASE("a file-size limit is an error and loses nothing recorded") {
  auto dir = temp_dir::create("run-store");
  auto child = run_process(self("child-limit", dir->path()));
  REQUIRE(child);
  INFO(child->out << child->err);
  REQUIRE(child->exit_code == 0);
  const auto at = child->out.rfind("acknowledged ");
  REQUIRE(at != std::string::npos);
  const auto acknowledged = static_cast<size_t>(std::atoi(child->out.c_str() + at + 13));
  CHECK(acknowledged > 3);
  CHECK(open_store(dir->path()).iterations("r1")->size() >= acknowledged);
}

TEST_CASE("writes until the file-size limit", "[.][child-limit]") {
  ::signal(SIGXFSZ, SIG_IGN);
  auto store = open_store(folder_of_child());
  rlimit limit{1u << 20, RLIM_INFINITY};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  int acknowledged = 0;
  expected<void> written;
  while (acknowledged < 200 && (written = store.put_iteration("r1", acknowledged + 1, iteration(acknowledged + 1, 64 << 10), header("2026")))) ++acknowledged;
  REQUIRE_FALSE(written);
  CHECK(written.error().code == ec::io_error);
  CHECK(written.error().hint.find("pragma resume") != std::string::npos);
  CHECK(store.iterations("r1")->size() >= static_cast<size_t>(acknowledged)); // reading goes on
  limit.rlim_cur = RLIM_INFINITY;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  REQUIRE(store.put_iteration("r1", acknowledged + 1, iteration(acknowledged + 1), header("2026"))); // and writing, once it may
  std::printf("acknowledged %d\n", acknowledged + 1);
  std::fflush(stdout);
}

TEST_CASE("a full disk is an error and loses nothing recorded") {
  auto child = run_process(self("child-full", {}));
  REQUIRE(child);
  INFO(child->out << child->err);
  REQUIRE(child->exit_code == 0);
  if (child->out.find("cannot mount") != std::string::npos) pragma::test::skip("no small disk can be mounted: only the limit of a file's size was tested");
}

TEST_CASE("writes until the disk is full", "[.][child-full]") {
  auto dir = temp_dir::create("run-store");
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", dir->path().c_str(), "tmpfs", 0, "size=3m") != 0) {
    std::puts("cannot mount");
    return;
  }
  const auto ballast = dir->path() / "ballast";
  std::ofstream(ballast) << std::string(1 << 20, 'b');
  int acknowledged = 0;
  {
    auto store = open_store(dir->path() / "runs");
    expected<void> written;
    while (acknowledged < 200 && (written = store.put_iteration("r1", acknowledged + 1, iteration(acknowledged + 1, 64 << 10), header("2026")))) ++acknowledged;
    REQUIRE(acknowledged > 3);
    REQUIRE(acknowledged < 200);
    CHECK(written.error().code == ec::io_error);
    CHECK(written.error().hint.find("left") != std::string::npos);
    CHECK(store.iterations("r1")->size() >= static_cast<size_t>(acknowledged));
    fs::remove(ballast);
    REQUIRE(store.put_iteration("r1", acknowledged + 1, iteration(acknowledged + 1), header("2026")));
  }
  CHECK(open_store(dir->path() / "runs").iterations("r1")->size() >= static_cast<size_t>(acknowledged) + 1);
  ::umount2(dir->path().c_str(), MNT_DETACH);
}
