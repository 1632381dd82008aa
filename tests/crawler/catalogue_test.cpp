// Lists of metrics in the formats that tools and vendors ship them in.
#include "page_helpers.hpp"

using namespace pragma;
using namespace pragma::test;

TEST_CASE("perfmon's {Header, Events}") {
  const auto d = parsed(page_format::json_catalogue, data_file("perfmon.json"));
  REQUIRE(d.records.size() == 2);
  const auto* r = find_record(d, "EX_BRANCH.MISSED");
  REQUIRE(r);
  CHECK(r->description == "Counts retired branches that were predicted wrongly. High values indicate data-dependent control flow.");
  CHECK(r->fields.at("Brief description") == "Branches that were predicted wrongly.");
  CHECK(r->fields.at("EventCode") == "0x11");
  CHECK(find_record(d, "EX_BRANCH.ALL")->description == "All branches.");
  const auto all = cut(d, "perf");
  REQUIRE(find_record(all, "EX_BRANCH.MISSED"));
  CHECK(find_record(all, "EX_BRANCH.MISSED")->kind == "catalogue");
  CHECK(contains(find_record(all, "EX_BRANCH.MISSED")->text, "High values indicate data-dependent control flow."));
}

TEST_CASE("the kernel's flat lists: the counting unit is not the unit, the scale is") {
  const auto d = parsed(page_format::json_catalogue, data_file("pmu_events.json"));
  REQUIRE(d.records.size() == 3);
  CHECK(find_record(d, "ex_l3_miss")->unit.empty());
  CHECK(find_record(d, "ex_l3_miss")->fields.at("Unit") == "L3PMC");
  CHECK(find_record(d, "ex_ipc")->unit == "1/cycle");
  CHECK(find_record(d, "ex_bound")->unit == "%");
  CHECK(find_record(d, "ex_bound")->fields.at("MetricExpr") == "a / b");
}

TEST_CASE("Arm's dictionaries by name; groups are no metrics") {
  const auto d = parsed(page_format::json_catalogue, data_file("arm.json"));
  CHECK(d.records.size() == 3);
  REQUIRE(find_record(d, "EX_REFILL"));
  CHECK(find_record(d, "EX_REFILL")->fields.at("Title") == "Refill");
  REQUIRE(find_record(d, "ex_refill_ratio"));
  CHECK(find_record(d, "ex_refill_ratio")->unit == "per cache access");
  CHECK(find_record(d, "ex_refill_ratio")->fields.at("events") == "EX_REFILL, EX_ACCESS");
  CHECK_FALSE(find_record(d, "Cache"));
}

TEST_CASE("truncated JSON is an error that says where") {
  const auto whole = data_file("perfmon.json");
  const auto e = refused(page_format::json_catalogue, whole.substr(0, whole.size() - 40), "https://h/events.json");
  CHECK(e.code == ec::parse_error);
  CHECK(contains(e.message, "https://h/events.json"));
  CHECK(contains(e.message, "line 6, column"));
}

TEST_CASE("JSON that holds no metrics, and JSON nested 200,000 deep") {
  const auto e = refused(page_format::json_catalogue, "{\"version\": 3, \"files\": [1, 2]}");
  CHECK(e.code == ec::parse_error);
  CHECK(contains(e.message, "first key is 'files'"));
  const auto within = [](int levels) {
    std::string deep;
    for (int i = 0; i < levels; ++i) deep += "{\"a\":";
    return deep + "{\"name\": \"EX_DEEP\", \"description\": \"far down\"}" + std::string(static_cast<size_t>(levels), '}');
  };
  CHECK(refused(page_format::json_catalogue, within(200'000)).code == ec::limit_exceeded);
  CHECK(find_record(parsed(page_format::json_catalogue, within(deepest_json - 1)), "EX_DEEP"));
}

TEST_CASE("ncu --csv --query-metrics, with its noise") {
  const auto d = parsed(page_format::csv_catalogue, data_file("ncu_query.csv"));
  REQUIRE(d.records.size() == 2);
  const auto* r = find_record(d, "ex__cycles_active");
  REQUIRE(r);
  CHECK(r->unit == "cycle");
  CHECK(r->description == "# of cycles in which the unit \"ex\" was active");
  CHECK(r->fields.at("Metric Type") == "Counter");
  CHECK(find_record(d, "ex__inst_issued")->description == "number of instructions issued, of all kinds");
}

TEST_CASE("other separators, rocprofv3's columns, and lists of 'Name: ...' blocks") {
  const auto semicolons = parsed(page_format::csv_catalogue, "Agent_Id;Counter_Name;Description;Block\n0;EX_WAVES;Waves, launched;EX\n");
  REQUIRE(find_record(semicolons, "EX_WAVES"));
  CHECK(find_record(semicolons, "EX_WAVES")->description == "Waves, launched");
  const auto blocks = parsed(page_format::csv_catalogue, data_file("rocprof_list.txt"));
  REQUIRE(blocks.records.size() == 2);
  CHECK(find_record(blocks, "EX_WAVES")->description == "Counts waves that were launched on this unit.");
  CHECK(find_record(blocks, "EX_BUSY_CYCLES")->fields.at("block") == "EX");
}

TEST_CASE("CSV that is no list of metrics, or is cut off in a quote") {
  const auto e = refused(page_format::csv_catalogue, "date,price\n2026-01-02,3\n");
  CHECK(e.code == ec::parse_error);
  CHECK(contains(e.message, "date, price"));
  const auto open = refused(page_format::csv_catalogue, "Metric Name,Description\nEX_A,\"never closed\nEX_B,x\n");
  CHECK(contains(open.message, "the quote opened in line 2 is never closed"));
}

TEST_CASE("YAML metric tables: names, units, formulas, and the words that stand apart") {
  const auto d = parsed(page_format::yaml_catalogue, data_file("compute.yaml"));
  REQUIRE(find_record(d, "Vector FLOPs"));
  CHECK(find_record(d, "Vector FLOPs")->unit == "GFLOP/s");
  CHECK(find_record(d, "Vector FLOPs")->description == "Floating-point operations of the vector unit.");
  CHECK(find_record(d, "Vector FLOPs")->fields.at("value") == "AVG(EX_FLOPS / EX_TIME)");
  CHECK(find_record(d, "LDS Conflicts")->unit == "cycles");
  CHECK(find_record(d, "Only Described")->description == "Words without a table.");
  const auto counters = parsed(page_format::yaml_catalogue, "EX_WAVES:\n  architectures:\n    gfx90a: {block: SQ, event: 4}\n    "
                                                            "gfx942: {block: SQ, event: 4}\n  description: Waves launched.\n");
  REQUIRE(find_record(counters, "EX_WAVES"));
  CHECK(find_record(counters, "EX_WAVES")->fields.at("architectures") == "gfx90a, gfx942");
}

TEST_CASE("YAML that is broken, endless or explosive") {
  const auto broken = refused(page_format::yaml_catalogue, "a: [1, 2\nb: }\n");
  CHECK(broken.code == ec::parse_error);
  CHECK(contains(broken.message, "line "));
  // Nine levels of nine aliases each stand for 10^8 values.
  std::string bomb = "a0: &a0 {name: EX_BOMB, description: x}\n";
  for (int i = 1; i <= 9; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) bomb += (k ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  const auto d = parsed(page_format::yaml_catalogue, bomb);
  REQUIRE_FALSE(d.notes.empty());
  CHECK_FALSE(parse_page(page_format::yaml_catalogue, "&a [*a, *a]", "x", {}));
  CHECK_FALSE(parse_page(page_format::yaml_catalogue, std::string(50'000, '['), "x", {}));
  CHECK_FALSE(parse_page(page_format::yaml_catalogue, std::string(50'000, '-'), "x", {}));
}

TEST_CASE("perf list in plain text: events with their other names, metrics with their descriptions, no tracepoints") {
  const auto d =
      parsed(page_format::text, "\nList of pre-defined events (to be used in -e or -M):\n\n"
                                "  context-switches OR cs                             [Software event]\n"
                                "  alarmtimer:alarmtimer_cancel                       [Tracepoint event]\n"
                                "  cpu/t1=v1[,t2=v2,t3 ...]/modifier                  [Raw hardware event descriptor]\n"
                                "\nMetrics:\n\n  ex_miss_ratio\n       [Share of accesses\n        that missed. Unit: cpu]\n  "
                                "ex_other_hits\n       [Hits]\n");
  CHECK(d.records.size() == 4);
  REQUIRE(find_record(d, "cs"));
  CHECK(find_record(d, "cs")->fields.at("Other name") == "context-switches");
  CHECK(find_record(d, "context-switches")->fields.at("Type") == "Software event");
  REQUIRE(find_record(d, "ex_miss_ratio"));
  CHECK(find_record(d, "ex_miss_ratio")->description == "Share of accesses that missed. Unit: cpu");
}

TEST_CASE("LIKWID's performance groups: metrics with their units, formulas in events, and what the group is for") {
  const auto d = parsed(page_format::text, "SHORT Widget bandwidth in MBytes/s\n\nEVENTSET\nFIXC1 ACTUAL_CLOCK\nPMC0  INSTRUCTIONS\nPMC2:EDGEDETECT WIDGET_REQUESTS\n\nMETRICS\n"
                                           "CPI  FIXC1/PMC0\nWidget bandwidth [MBytes/s] 1.0E-06*(PMC2)*64.0/time\n\nLONG\nFormulas:\n"
                                           "Widget bandwidth [MBytes/s] = 1.0E-06*(WIDGET_REQUESTS)*64/time\n-\nGroup to measure what widgets ask for.\nStores are not counted.\n");
  REQUIRE(d.records.size() == 2);
  const auto* own = find_record(d, "Widget bandwidth");
  REQUIRE(own);
  CHECK(own->unit == "MBytes/s");
  CHECK(own->description == "Widget bandwidth in MBytes/s. Group to measure what widgets ask for. Stores are not counted.");
  CHECK(own->fields.at("Formula") == "1.0E-06*(WIDGET_REQUESTS)*64/time");
  REQUIRE(find_record(d, "CPI"));
  CHECK(find_record(d, "CPI")->description == "Computed as ACTUAL_CLOCK/INSTRUCTIONS."); // the group is about something else
  // Broken ones are text without metrics, no crash.
  for (const char* text : {"SHORT x\n\nEVENTSET\n\nMETRICS\n", "SHORT x\nEVENTSET\nA\nMETRICS\nB\nLONG\nFormulas:\n = \n-"}) CHECK(parsed(page_format::text, text).records.empty());
  CHECK_FALSE(contains(parsed(page_format::text, "SHORT stories of METRICS and EVENTSET").title, "stories"));
}

TEST_CASE("a tool's catalogue becomes segments in one call") {
  auto all = catalogue_segments(page_format::csv_catalogue, data_file("ncu_query.csv"), "ncu", "ncu --query-metrics", "2026-01-02");
  REQUIRE(all);
  REQUIRE(all->size() == 2);
  CHECK((*all)[0].profiler == "ncu");
  CHECK((*all)[0].url == "ncu --query-metrics");
  CHECK_FALSE(catalogue_segments(page_format::json_catalogue, "", "perf", "perf list -j", ""));
}
