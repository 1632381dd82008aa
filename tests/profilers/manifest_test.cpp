// Manifests: what is refused and how it is said, and what tables of different forms come to.
#include "base/files.hpp"
#include "base/json.hpp"
#include "diagnosis/conductor.hpp"
#include "diagnosis/rules.hpp"
#include "profilers/launches.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

const fs::path data = fs::path(TESTS_DIR) / "profilers/data";
const fs::path shipped = fs::path(TESTS_DIR).parent_path() / "configs/profilers";

std::string text_of(const fs::path& file) {
  auto text = read_file(file);
  REQUIRE(text);
  return *text;
}

collect_manifest shipped_manifest(const std::string& name) {
  auto m = parse_collect_manifest(parse_json(text_of(shipped / (name + ".json")), name).value(), name);
  if (!m) FAIL(render(m.error()));
  return std::move(*m);
}

/// A small right manifest, to be spoilt.
json small() {
  return json::parse(R"({"name": "t", "backend": ["cuda"], "collect": {"program": ["t"], "passes": [
      {"name": "p", "argv": ["{program}", "{metrics}", "{target}"], "metrics": {"a": "ns"}, "outputs": [{"file": "x.csv", "columns": {"kernel": "k"}}]}]}})");
}

error refused(const json& manifest) {
  const auto m = parse_collect_manifest(manifest, "t.json");
  REQUIRE_FALSE(m);
  INFO(render(m.error()));
  CHECK(m.error().message.find("t.json") != std::string::npos);
  return m.error();
}

measured_table read(const std::string& text, const pass_output& form, const collect_manifest& m, const std::vector<std::string>& wanted = {}) {
  const auto table = read_table(text, form, "test");
  if (!table) FAIL(render(table.error()));
  return read_launches(*table, form, m, wanted);
}

const metric& find(const std::vector<metric>& all, const std::string& name) {
  for (const auto& m : all)
    if (m.name == name) return m;
  FAIL("no metric " << name);
  return all.front();
}

} // namespace

TEST_CASE("every shipped manifest that collects can be used, with and without its comments") {
  size_t collecting = 0;
  for (const auto& file : fs::directory_iterator(shipped)) {
    if (file.path().extension() != ".json") continue;
    const auto manifest = parse_json(text_of(file), file.path().string()).value();
    if (!manifest.contains("collect")) continue;
    const auto m = parse_collect_manifest(manifest, file.path().filename().string());
    if (!m) FAIL(render(m.error()));
    CHECK(m->name == file.path().stem());
    CHECK_FALSE(m->default_metrics().empty());
    CHECK(m->default_metrics().count(m->time) == 1);
    ++collecting;
  }
  CHECK(collecting >= 3);
}

TEST_CASE("a wrong key is named, with the nearest right one") {
  REQUIRE(parse_collect_manifest(small(), "t.json"));
  auto top = small();
  top["collect"]["obstacle"] = json::array();
  CHECK(refused(top).hint.find("obstacles") != std::string::npos);
  auto pass = small();
  pass["collect"]["passes"][0]["metric"] = json::object();
  CHECK(refused(pass).hint.find("metrics") != std::string::npos);
  auto column = small();
  column["collect"]["passes"][0]["outputs"][0]["columns"]["kernal"] = "k";
  CHECK(refused(column).hint.find("kernel") != std::string::npos);
  auto placeholder = small();
  placeholder["collect"]["passes"][0]["argv"][1] = "--m={metric}";
  CHECK(refused(placeholder).hint.find("{metrics}") != std::string::npos);
  auto how = small();
  how["collect"]["combine"] = json::parse(R"([{"names": "*", "how": "average"}])");
  CHECK(refused(how).hint.find("mean") != std::string::npos);
}

TEST_CASE("a manifest that could not work is refused before anything runs") {
  auto no_target = small();
  no_target["collect"]["passes"][0]["argv"] = {"{program}"};
  CHECK(refused(no_target).message.find("{target}") != std::string::npos);
  auto early_target = small();
  early_target["collect"]["passes"][0]["argv"] = {"{target}", "{program}"};
  CHECK(refused(early_target).message.find("{target}") != std::string::npos);
  auto no_program = small();
  no_program["collect"]["program"] = json::array();
  CHECK(refused(no_program).message.find("program") != std::string::npos);
  auto nowhere = small();
  nowhere["collect"]["passes"][0]["outputs"][0].erase("file");
  CHECK(refused(nowhere).message.find("file and stream") != std::string::npos);
  auto form = small();
  form["collect"]["passes"][0]["outputs"][0]["format"] = "xml";
  CHECK(refused(form).hint.find("csv") != std::string::npos);
  auto regex = small();
  regex["collect"]["probe"] = json::parse(R"({"argv": ["{program}"], "version": "([0-9"})");
  CHECK(refused(regex).message.find("regular expression") != std::string::npos);
  auto group = small();
  group["collect"]["probe"] = json::parse(R"({"argv": ["{program}"], "version": "[0-9]+"})");
  CHECK(refused(group).message.find("group") != std::string::npos);
  auto type = small();
  type["collect"]["program"] = 7;
  CHECK(refused(type).code == ec::parse_error);
  auto none = small();
  none.erase("collect");
  CHECK(refused(none).code == ec::not_found);
}

TEST_CASE("placeholders that nothing fills in are refused, too") {
  auto inside = small();
  inside["collect"]["passes"][0]["argv"][1] = "--counters={metrics*}";
  CHECK(refused(inside).message.find("stands alone") != std::string::npos);
  inside["collect"]["passes"][0]["argv"][1] = "{metrics*}";
  CHECK(parse_collect_manifest(inside, "t.json"));
  auto probe = small();
  probe["collect"]["probe"] = json::parse(R"x({"argv": ["{program}", "{scratch}"], "version": "([0-9]+)"})x");
  CHECK(refused(probe).message.find("{scratch}") != std::string::npos);
  probe["collect"]["probe"]["argv"] = {"sh", "-c", "{program} --version"};
  CHECK(refused(probe).message.find("a word of its own") != std::string::npos);
  auto times = small();
  times["collect"]["passes"][0]["outputs"][0]["columns"] = {{"kernel", "k"}, {"start", "s"}, {"end", "e"}};
  CHECK(refused(times).message.find("\"time\"") != std::string::npos);
  times["collect"]["time"] = "a";
  CHECK(parse_collect_manifest(times, "t.json"));
}

TEST_CASE("the units of default metrics are those of the catalogue that explains them") {
  for (const auto* name : {"ncu", "rocprofv3", "msprof"})
    for (const auto& [metric, unit] : shipped_manifest(name).default_metrics())
      if (const auto* known = find_meaning(metric)) {
        INFO(metric);
        CHECK((unit.empty() ? "ratio" : unit) == known->unit);
      }
}

TEST_CASE("what is asked for after a finding is more than the defaults") {
  const auto defaults = shipped_manifest("ncu").default_metrics();
  for (int i = 0; i <= static_cast<int>(bottleneck::register_spills); ++i) {
    finding f;
    f.what = static_cast<bottleneck>(i);
    for (const auto& name : metrics_to_ask({f}, "cuda")) {
      INFO(name);
      CHECK(defaults.count(name) == 0);
    }
  }
}

TEST_CASE("objects with keys of their own make no large table, and what is nested without end none") {
  pass_output form;
  form.format = "jsonl";
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "{\"k" + std::to_string(i) + "\": 1}\n";
  const auto table = read_table(text, form, "test");
  REQUIRE(table);
  CHECK(table->rows.size() * table->columns.size() <= 2'000'000);
  const auto deep = "{\"a\": 1, \"b\": " + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  const auto lines = read_table("{\"a\": 2}\n" + deep, form, "test"); // of which one is more than anything that we read
  REQUIRE(lines);
  CHECK(lines->rows == std::vector<std::vector<std::string>>{{"2"}});
  form.format = "json";
  CHECK_FALSE(read_table("[" + deep + "]", form, "test"));
}

TEST_CASE("a kernel's long name is kept, as a module's functions are compared with it") {
  pass_output form;
  form.columns.kernel = "Kernel";
  const std::string name(300, 'k');
  const auto found = read("Kernel,time\n" + name + ",1\n", form, {});
  REQUIRE(found.launches.size() == 1);
  CHECK(found.launches[0].kernel == name);
  CHECK(metrics_per_call(found.launches, {}, 1, "t").front().note.size() < 200);
}

TEST_CASE("numbers as profilers print them") {
  CHECK(read_number("4,116,353,727,506.43", ",") == 4116353727506.43);
  CHECK(read_number(" 85.38 ", ",") == 85.38);
  CHECK(read_number("12%", ",") == 12.0);
  CHECK(read_number("1'234.5", "'") == 1234.5);
  CHECK(read_number("-3e-2", "") == -0.03);
  for (const char* none : {"", "n/a", "N/A", "NA", "no data", "nan", "inf", "CachePreferNone", "(128, 1, 1)", "12 us", "0x10"}) {
    INFO(none);
    CHECK_FALSE(read_number(none, ","));
  }
}

TEST_CASE("the same measurements as CSV, JSON, JSON lines, and a table for people") {
  collect_manifest m;
  m.units["us"] = {"ns", 1000};
  pass_output form;
  form.columns.kernel = "Kernel";
  form.columns.metric = "Name";
  form.columns.value = "Value";
  form.columns.unit = "Unit";
  form.columns.launch = "Id";
  const auto check = [&](const std::string& text) {
    INFO(form.format << "\n" << text);
    const auto found = read(text, form, m);
    REQUIRE(found.launches.size() == 2);
    CHECK(found.launches[0].kernel == "first kernel");
    CHECK(found.launches[0].values.at("time").value == 1500);
    CHECK(found.launches[0].values.at("time").unit == "ns");
    CHECK(found.launches[0].values.at("hits").value == 1234567);
    CHECK(found.launches[1].values.at("time").value == 500);
    CHECK(found.launches[1].values.count("hits") == 0); // n/a
  };
  form.format = "csv";
  check("banner\nId,Kernel,Name,Value,Unit\n0,first kernel,time,1.5,us\n0,first kernel,hits,\"1,234,567\",\n1,second,time,0.5,us\n1,second,hits,n/a,\n");
  form.format = "json";
  form.rows = "/results/rows";
  check(R"({"results": {"rows": [{"Id": 0, "Kernel": "first kernel", "Name": "time", "Value": 1.5, "Unit": "us"},
    {"Id": 0, "Kernel": "first kernel", "Name": "hits", "Value": "1,234,567"}, {"Id": 1, "Kernel": "second", "Name": "time", "Value": 0.5, "Unit": "us"},
    {"Id": 1, "Kernel": "second", "Name": "hits", "Value": null}]}})");
  form.format = "jsonl";
  check("starting\n{\"Id\": 0, \"Kernel\": \"first kernel\", \"Name\": \"time\", \"Value\": 1.5, \"Unit\": \"us\"}\n"
        "{\"Id\": 0, \"Kernel\": \"first kernel\", \"Name\": \"hits\", \"Value\": 1234567}\n{\"Id\": 1, \"Kernel\": \"second\", \"Name\": \"time\", \"Value\": 0.5, \"Unit\": \"us\"}\n"
        "{\"Id\": 1, \"Kernel\": \"second\", \"Name\": \"hits\", \"Value\": \"n/a\"}\n");
  form.format = "table";
  check("results of the run\n-----------------------------\nId  Kernel        Name  Value      Unit\n-----------------------------\n"
        "0   first kernel  time  1.5        us\n0   first kernel  hits  1,234,567  -\n1   second        time  0.5        us\n1   second        hits  n/a        -\n");
  check("| Id | Kernel | Name | Value | Unit |\n|----|--------|------|-------|------|\n| 0 | first kernel | time | 1.5 | us |\n| 0 | first kernel | hits | 1,234,567 | |\n"
        "| 1 | second | time | 0.5 | us |\n| 1 | second | hits | n/a | |\n");
}

TEST_CASE("a table without the columns that the manifest names says which one, and what it found") {
  pass_output form;
  form.columns.kernel = "Kernel Name";
  const auto table = read_table("ID,Name\n0,k\n", form, "metrics.csv");
  REQUIRE_FALSE(table);
  CHECK(table.error().message == "metrics.csv has no column 'Kernel Name'");
  CHECK(table.error().hint.find("ID | Name") != std::string::npos);
  CHECK(read_table("", form, "metrics.csv")->rows.empty());
  form.format = "json";
  CHECK_FALSE(read_table("{\"a\": ", form, "x.json"));
  form.rows = "/b";
  CHECK(read_table("{\"a\": []}", form, "x.json").error().message.find("/b") != std::string::npos);
}

TEST_CASE("launches of a call are summed, weighted by time, or the longest speaks for all") {
  collect_manifest m;
  m.time = "time";
  m.combine = {{"*_limit", "longest"}, {"*.max", "max"}, {"time", "sum"}, {"bytes*", "sum"}};
  const std::vector<measured_launch> launches{{"big", {{"time", {300, "ns"}}, {"share", {90, "%"}}, {"a_limit", {2, ""}}, {"bytes", {1000, "bytes"}}, {"v.max", {1, ""}}}},
                                              {"small", {{"time", {100, "ns"}}, {"share", {10, "%"}}, {"a_limit", {32, ""}}, {"bytes", {50, "bytes"}}, {"v.max", {7, ""}}}}};
  const auto all = metrics_per_call(launches, m, 1, "tool 1");
  CHECK(all.front().name == "time");
  CHECK(all.front().value == 400);
  CHECK(all.front().note == "sum over 2 launches");
  CHECK(find(all, "share").value == Approx(70)); // (300 * 90 + 100 * 10) / 400
  CHECK(find(all, "share").note == "mean of 2 launches, weighted by their time");
  CHECK(find(all, "a_limit").value == 2);
  CHECK(find(all, "a_limit").note.find("big") != std::string::npos);
  CHECK(find(all, "bytes").value == 1050);
  CHECK(find(all, "v.max").value == 7);
  CHECK(find(all, "launches_per_call").value == 2);
  CHECK(find(all, "launches_per_call").note == "big 75%, small 25% of the time");
  const auto halved = metrics_per_call(launches, m, 2, "tool 1");
  CHECK(halved.front().value == 200);
  CHECK(find(halved, "share").value == Approx(70));
  CHECK(find(halved, "launches_per_call").value == 1);
  CHECK(metrics_per_call({}, m, 1, "tool 1").empty());
}

TEST_CASE("rocprofv3: kernel trace and counters (written after its documentation, not recorded)") {
  const auto m = shipped_manifest("rocprofv3");
  const auto& trace = m.passes.front();
  const auto kernels = read(text_of(data / "rocprofv3/trace_kernel_trace.csv"), trace.outputs.front(), m, {"kernel_duration", "VGPR_Count", "LDS_Block_Size"});
  REQUIRE(kernels.launches.size() == 2);
  CHECK(kernels.launches[1].kernel == "partial_sums(float*, float const*)");
  const auto all = metrics_per_call(kernels.launches, m, 1, "rocprofv3");
  CHECK(find(all, "kernel_duration").value == 40000);
  CHECK(find(all, "kernel_duration").unit == "ns");
  CHECK(find(all, "VGPR_Count").value == 48); // of the longer one
  CHECK(find(all, "LDS_Block_Size").unit == "bytes");
  for (const auto& pass : m.passes) {
    if (pass.metrics.count("WRITE_SIZE") == 0) continue;
    const auto counted = read(text_of(data / "rocprofv3/counters_counter_collection.csv"), pass.outputs.front(), m, {"WRITE_SIZE", "L2CacheHit"});
    const auto values = metrics_per_call(counted.launches, m, 1, "rocprofv3");
    CHECK(find(values, "WRITE_SIZE").value == 65600);
    CHECK(find(values, "WRITE_SIZE").unit == "KB");
    CHECK(find(values, "L2CacheHit").value == Approx(60)); // 30 us of 50%, 10 us of 90%
  }
}

TEST_CASE("msprof: operators of a run, and cores of one operator (written after its documentation, not recorded)") {
  const auto m = shipped_manifest("msprof");
  std::vector<std::string> names;
  for (const auto& [name, unit] : m.passes[0].metrics) names.push_back(name);
  const auto ops = read(text_of(data / "msprof/op_summary_20261122.csv"), m.passes[0].outputs.front(), m, names);
  REQUIRE(ops.launches.size() == 2);
  const auto all = metrics_per_call(ops.launches, m, 1, "msprof");
  CHECK(find(all, "Task Duration(us)").value == 40);
  CHECK(find(all, "Task Duration(us)").unit == "us");
  CHECK(find(all, "aic_mac_ratio").value == Approx(0.42)); // N/A of the vector operator does not count
  CHECK(find(all, "aiv_mte2_ratio").value == Approx(0.70));
  CHECK(find(all, "Block Dim").value == 20);
  const auto cores = read(text_of(data / "msprof/Memory.csv"), m.passes[1].outputs.front(), m, {"aiv_gm_to_ub_bw(GB/s)", "aiv_main_mem_read_bw(GB/s)", "aic_main_mem_read_bw(GB/s)"});
  REQUIRE(cores.launches.size() == 1);
  CHECK(cores.launches[0].values.at("aiv_gm_to_ub_bw(GB/s)").value == Approx(42));
  CHECK(cores.launches[0].values.at("aiv_gm_to_ub_bw(GB/s)").unit == "GB/s");
  CHECK(cores.launches[0].values.count("aic_main_mem_read_bw(GB/s)") == 0);
}

TEST_CASE("perf stat's JSON lines are read by the same rules") {
  collect_manifest m;
  m.units["msec"] = {"s", 1e-3};
  pass_output form;
  form.format = "jsonl";
  form.columns.metric = "event";
  form.columns.value = "counter-value";
  form.columns.unit = "unit";
  const auto found = read(text_of(data / "perf-6.1-no-pmu.jsonl"), form, m);
  REQUIRE(found.launches.size() == 1);
  CHECK(found.launches[0].values.at("task-clock").value == Approx(0.000703715));
  CHECK(found.launches[0].values.at("task-clock").unit == "s");
  CHECK(found.launches[0].values.count("cycles:u") == 0); // <not supported>
}
