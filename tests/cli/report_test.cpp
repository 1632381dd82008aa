// The reports: everything in them, nothing hostile through them, well-formed whatever the run looked like.
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "cli/torch_work.hpp"
#include "cli/html.hpp"
#include "base/line_diff.hpp"
#include "cli/charts.hpp"
#include "cli/report.hpp"
#include "made_up_report.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <limits>

using namespace pragma;
using namespace pragma::test;

namespace {

/// A strict reader of what we write: every tag closed in order, attributes quoted, no element that could run or load.
std::string problem_in(const std::string& page) {
  static const std::vector<std::string> empty = {"meta", "br"};
  std::vector<std::string> open;
  for (size_t i = 0; i < page.size(); ++i) {
    if (static_cast<unsigned char>(page[i]) < 0x20 && page[i] != '\n' && page[i] != '\t') return "control character";
    if (page[i] != '<') continue;
    size_t end = i + 1;
    bool quoted = false;
    for (; end < page.size() && (quoted || page[end] != '>'); ++end) {
      if (page[end] == '"') quoted = !quoted;
      if (page[end] == '<') return "'<' inside a tag at " + page.substr(i, 80);
    }
    if (end >= page.size()) return "tag without end";
    const auto tag = page.substr(i + 1, end - i - 1);
    i = end;
    if (tag[0] == '!') continue;
    const bool closes = tag[0] == '/';
    const auto name = tag.substr(closes ? 1 : 0, tag.find_first_of(" /\n", 1) - (closes ? 1 : 0));
    for (const char* banned : {"script", "img", "iframe", "link", "object", "embed", "base", "form"})
      if (name == banned) return "element " + name;
    for (const char* attribute : {" on", " src=", " href=\"h", " href=\"j", " xlink:href"})
      if (tag.find(attribute) != std::string::npos && tag.find("content=") == std::string::npos && tag.find("title=\"") == std::string::npos && tag.find("aria-label") == std::string::npos)
        return "attribute in <" + tag + ">";
    if (closes) {
      if (open.empty() || open.back() != name) return "</" + name + "> closes <" + (open.empty() ? "" : open.back()) + ">";
      open.pop_back();
    } else if (tag.back() != '/' && std::find(empty.begin(), empty.end(), name) == empty.end()) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

/// A suite's page without the one script that it has; the browser's test shows that this one runs and no other.
std::string without_own_script(std::string page) {
  const auto begin = page.rfind("<script>"), end = page.rfind("</script>");
  REQUIRE(page.find("script-src 'sha256-") != std::string::npos);
  REQUIRE(end != std::string::npos);
  page.erase(begin, end + 9 - begin);
  return page;
}

bool has(const std::string& page, const std::string& text) { return page.find(text) != std::string::npos; }

} // namespace

TEST_CASE("the report says in one line what came out, and holds every part") {
  const auto page = render_html_report(sample());
  CHECK(problem_in(page) == "");
  CHECK(has(page, "2.31x faster than Torch (95% interval 2.25-2.38), attempt 4 of 7"));
  for (const char* id : {"curve", "metrics", "roofline", "attempts", "kernel", "verified", "time", "environment", "task"}) {
    INFO(id);
    CHECK(has(page, std::string("<section id=\"") + id + "\">"));
  }
  for (const char* text : {"callgrind.Ir", "simulated, callgrind 3.19.0", "perf: no PMU on this machine", "memory_bandwidth_bound", "use streaming stores",
                           "11.8 GB/s of 12.9 GB/s measured for memory", "Speedup = 2.29", "fuse the two passes", "rationale of 4", "log of 2",
                           "&#39;foo&#39; was not declared", "own inputs, 5 seeds", "0123abcd", "gcc 12.2.0, clang 14.0.6", "overhead of pragma", "1.0%",
                           "class Model(nn.Module)", "a note on the task", "attempts used up", "unroll = 4;"}) {
    INFO(text);
    CHECK(has(page, text));
  }
}

TEST_CASE("the report shows what changed between versions") {
  const auto page = render_html_report(sample());
  CHECK(has(page, "<span class=\"d\">- int unroll = 3;</span><span class=\"a\">+ int unroll = 4;</span>"));
  CHECK(has(page, "Changes since attempt 3"));
}

TEST_CASE("a report loads nothing and runs nothing") {
  const auto page = render_html_report(sample());
  CHECK(has(page, "default-src 'none'"));
  CHECK_FALSE(has(page, "http://"));
  CHECK_FALSE(has(page, "https://"));
  CHECK_FALSE(has(page, "<script"));
  CHECK_FALSE(has(page, "url(h"));
}

TEST_CASE("hostile text stays text, wherever it stands") {
  auto it = attempt(1, 2, true);
  it.code.origin = it.code.schedule = it.verdict.reason = it.verdict.log = it.finished = hostile;
  it.reasoning = it.actions = {hostile};
  it.code.source = it.code.rationale = it.code.compiler = hostile;
  it.code.flags = {hostile};
  auto& p = it.code.measured;
  p.device = p.time.baseline = p.time.note = p.time.cache = hostile;
  p.metrics.push_back({hostile, 1, hostile, hostile, provenance::measured, hostile});
  p.remarks = {{1, hostile, hostile, hostile}};
  p.missing = {hostile};
  it.findings[0].level = it.findings[0].why = hostile;
  it.findings[0].remedies = {hostile};
  it.findings[0].proof = {{hostile, 1, hostile, 2, true, hostile}};
  it.verdict.checked = {"x" + std::string("</li><script>")};
  mismatch wrong;
  wrong.input_set = "<b>";
  wrong.output = "<i>";
  wrong.index = {1, 2};
  wrong.expected = "<s>";
  wrong.got = "<q>";
  it.verdict.mismatches = {wrong};
  auto bad = failed(2, verdict_stage::build, hostile);
  bad.verdict.log = hostile;
  auto document = document_of({it, bad}, 1);
  for (const char* key : {"id", "state", "started", "finished", "stop_reason"}) document["run"][key] = hostile;
  for (const char* key : {"name", "category", "source", "path", "id"}) document["run"]["task"][key] = hostile;
  document["run"]["task"]["notes"] = {hostile};
  document["run"]["options"][hostile] = hostile;
  document["run"]["environment"]["cpu"] = hostile;
  document["run"]["environment"]["limits"]["cpu"] = hostile;
  document["run"]["environment"]["notes"] = {hostile};
  const auto page = render_html_report(document);
  CHECK(problem_in(page) == "");
  CHECK_FALSE(has(page, "<script"));
  CHECK_FALSE(has(page, "<img"));
  CHECK_FALSE(has(page, "\xff"));
  CHECK(has(page, "&lt;script&gt;alert(1)"));

  const auto suite = without_own_script(render_suite_html({{"suite", hostile},
                                        {"tasks", {{{"name", hostile}, {"category", hostile}, {"status", "failed"}, {"reason", hostile}, {"task_hash", hostile}},
                                                   {{"name", hostile}, {"category", hostile}, {"status", "ok"}, {"speedup", {{"value", 2}, {"low", 1}, {"high", 3}}}}}},
                                        {"categories", {{{"category", hostile}, {"n", 2}, {"success", 1}, {"geometric_mean", 2}}}},
                                        {"overall", {{"n", 2}, {"success", 1}, {"geometric_mean", 2}}},
                                        {"compared", {{"with", hostile}, {"change", {{"tasks", {{{"name", hostile}, {"ratio", {{"value", 2}, {"low", 1}, {"high", 3}}}}}}, {"lost", {hostile}}, {"mean", json::object()}}}}},
                                        {"options", {{hostile, hostile}}}}));
  CHECK(problem_in(suite) == "");
  CHECK_FALSE(has(suite, "<script"));
}

TEST_CASE("a run without success says so, with the reason") {
  const auto page = render_html_report(document_of({failed(1, verdict_stage::build, "missing symbol pragma_kernel"), failed(2, verdict_stage::run, "killed by SIGSEGV")}, 0));
  CHECK(problem_in(page) == "");
  CHECK(has(page, "No correct kernel in 2 attempts"));
  CHECK(has(page, "killed by SIGSEGV"));
  CHECK_FALSE(has(page, "<section id=\"kernel\">"));
  CHECK(has(render_html_report(document_of({}, 0)), "No attempt was made"));
}

TEST_CASE("the line of the verdict does not claim what the interval does not show") {
  auto document = sample();
  auto& speedup = document["run"]["final"]["timing"]["speedup"];
  speedup = {{"value", 1.02}, {"low", 0.98}, {"high", 1.07}};
  CHECK(has(render_html_report(document), "As fast as Torch: 1.02x"));
  speedup = {{"value", 0.82}, {"low", 0.8}, {"high", 0.85}};
  CHECK(has(render_html_report(document), "Slower than Torch: 0.82x"));
  document["run"].erase("final");
  const auto page = render_html_report(document);
  CHECK(has(page, "<p class=\"verdict\">Not established: attempt 4 of 7 was right, and was not confirmed</p>"));
  CHECK_FALSE(has(page, "faster than Torch"));
}

TEST_CASE("documents that lack things, or hold the wrong ones, still give a page") {
  for (const auto& document : std::vector<json>{json(), json::object(), json::array({1}), {{"run", 3}, {"iterations", "x"}}, {{"run", json::object()}, {"iterations", {json::object(), 5, {{"number", "x"}}}}},
                                                {{"run", {{"totals", {{"wall", "x"}}}, {"final", {{"timing", 5}}}, {"environment", {{"limits", {{"copy_gbs", "x"}}}}}, {"best", 1}}}, {"iterations", {{{"number", 1}, {"stage", "passed"}}}}}}) {
    CHECK(problem_in(render_html_report(document)) == "");
    CHECK(problem_in(without_own_script(render_suite_html(document))) == "");
  }
  auto odd = sample();
  odd["iterations"][0]["code"]["measured"]["time"]["candidate_seconds"] = std::numeric_limits<double>::quiet_NaN();
  odd["iterations"][3]["code"]["measured"]["time"]["speedup"]["high"] = std::numeric_limits<double>::infinity();
  odd["run"]["task"]["flops"] = 0;
  CHECK(problem_in(render_html_report(odd)) == "");
}

TEST_CASE("long runs and long kernels give a page of bounded size") {
  std::vector<iteration_record> many;
  for (int i = 1; i <= 60; ++i) {
    many.push_back(attempt(i, 1 + i * 0.01, true));
    many.back().verdict.log = std::string(2 << 20, 'x');
    for (int k = 0; k < 3000; ++k) many.back().code.source += "float line_" + std::to_string(i * k) + ";\n";
  }
  const auto page = render_html_report(document_of(many, 60));
  CHECK(problem_in(page) == "");
  CHECK(page.size() < 64u << 20);
}

TEST_CASE("a diff is the least change, with context and gaps") {
  std::string before, after;
  for (int i = 0; i < 30; ++i) {
    before += std::to_string(i) + "\n";
    if (i != 15) after += std::to_string(i) + "\n";
    if (i == 20) after += "new\n";
  }
  const auto lines = line_diff(before, after, 1);
  std::string shape;
  for (const auto& l : lines)
    shape += l.what == diff_line::kind::same ? '=' : l.what == diff_line::kind::added ? '+' : l.what == diff_line::kind::removed ? '-' : '.';
  CHECK(shape == ".=-=.=+=.");
  CHECK(lines[0].text == "14 unchanged lines");
  CHECK(line_diff("a\n", "a\n").empty());
  CHECK(line_diff("", "").empty());
  CHECK(line_diff("", "a\nb").size() == 2);
}

TEST_CASE("the table of a suite has categories, overall figures, and every failure with its reason") {
  json ok = {{"name", "19_ReLU"}, {"category", "activation"}, {"status", "ok"}, {"speedup", {{"value", 1.5}, {"low", 1.4}, {"high", 1.6}}}, {"baseline_seconds", 4e-3},
             {"candidate_seconds", 2.7e-3}, {"attempts", 6}, {"roofline_share", 93.0}, {"wall_seconds", 40.0}, {"task_hash", "aabbccddeeff00112233"}};
  json no = {{"name", "50_conv"}, {"category", "conv"}, {"status", "unsupported"}, {"reason", "convolution cannot be lowered yet"}, {"task_hash", "ff"}};
  json figures = {{"category", "activation"}, {"n", 1}, {"success", 1}, {"arithmetic_mean", 1.5}, {"geometric_mean", 1.5}, {"fast_1", 1.0}, {"fast_1_5", 0.0}, {"fast_2", 0.0}};
  json none = {{"category", "conv"}, {"n", 1}, {"success", 0}};
  json overall = {{"category", "all"}, {"n", 2}, {"success", 1}, {"arithmetic_mean", 1.5}, {"geometric_mean", 1.5}, {"fast_1", 0.5}, {"fast_1_5", 0.0}, {"fast_2", 0.0}};
  const auto page = without_own_script(render_suite_html({{"suite", "/tmp/level1"}, {"tasks", {ok, no}}, {"categories", {figures, none}}, {"overall", overall}, {"total_tasks", 5},
                                       {"options", {{"coder", "builtin"}, {"threads", 1}}}}));
  CHECK(problem_in(page) == "");
  for (const char* text : {"1 of 2 tasks solved, geometric mean 1.50x over Torch, fast_1 50.0%", "19_ReLU", "1.50x (1.40 to 1.60)", "50_conv", "convolution cannot be lowered yet",
                           "unsupported", "none solved", "3 of 5 tasks have not been tried yet", "aabbccddeeff", "builtin"}) {
    INFO(text);
    CHECK(has(page, text));
  }
}

TEST_CASE("an independent reader finds the page well-formed") {
  if (find_program("xmllint").empty()) return;
  auto folder = temp_dir::create("report");
  REQUIRE(folder);
  const auto file = folder->path() / "report.html";
  REQUIRE(write_file_atomic(file, render_html_report(sample())));
  if (const char* keep = std::getenv("PRAGMA_KEEP_REPORT")) REQUIRE(write_file_atomic(keep, render_html_report(sample())));
  process_spec spec;
  spec.argv = {"xmllint", "--html", "--noout", file.string()};
  spec.limits.wall_seconds = 20;
  auto result = run_process(spec);
  REQUIRE(result);
  // libxml2 reads HTML 4: it does not know the newer element names, which is all that it may complain of.
  for (size_t at = 0; (at = result->err.find("error : ", at)) != std::string::npos; ++at) {
    const auto line = result->err.substr(at, result->err.find('\n', at) - at);
    INFO(line);
    CHECK(line.find("Tag ") != std::string::npos);
  }
}

TEST_CASE("a device's roofline names L2 and DRAM on their own sides of lines that lie close together, and both peaks") {
  machine_limits limits;
  limits.backend = "cuda";
  limits.copy_gbs = {5200, 4200};
  limits.peak_gflops = 60e3;
  limits.tf32_gflops = 400e3;
  const auto plot = html::roofline_plot(limits, {17e9, 50e6}, {{"Torch", 700e-6, false, true}, {"2", 450e-6, true, false}});
  const auto line_of = [&](const std::string& name) {
    const auto at = plot.find(name);
    REQUIRE(at != std::string::npos);
    const auto start = plot.rfind('\n', at);
    return plot.substr(start + 1, at - start - 1);
  };
  CHECK(line_of("L2 5200 GB/s").find("y=\"-5.0\"") != std::string::npos);
  CHECK(line_of("DRAM 4200 GB/s").find("y=\"14.0\"") != std::string::npos);
  CHECK(line_of("FP32 ") != line_of("TF32 "));
  CHECK(plot.find("memory") == std::string::npos);
  CHECK(plot.find("FP16 ") == std::string::npos);
  limits.half_gflops = 800e3;
  CHECK(html::roofline_plot(limits, {17e9, 50e6}, {{"2", 450e-6, true, false}}).find("FP16 ") == std::string::npos); // its operands are float32
  CHECK(html::roofline_plot(limits, {17e9, 50e6, -1, product_precision::half}, {{"2", 450e-6, true, false}}).find("FP16 ") != std::string::npos);
  CHECK(html::roofline_plot(limits, {0, 512e6}, {{"2", 130e-6, true, false}}).find("DRAM 4200 GB/s") != std::string::npos);
}

TEST_CASE("the story says what helped by how much, what did not by which ratio, and how far the limit is") {
  auto first = attempt(1, 1.5, true), second = attempt(2, 3, true), third = attempt(3, 3.2, false);
  third.against_best = {0.99, 0.97, 1.01}; // over Torch it looks better; side by side it is not
  third.code.rationale = "unroll by " + hostile;
  machine_limits limits;
  limits.cpu = "made up";
  limits.cache_bytes = {32 << 10, 1 << 20, 32 << 20};
  limits.copy_gbs = {100, 60, 30, 12};
  limits.read_gbs = {100, 60, 30, 12};
  limits.peak_gflops = 50;
  const std::vector<iteration_record> all = {first, second, third};
  const auto story = render_story(all, &all[1], nullptr, &limits, {1e6, 8e6}, {{"torch", torch_work{{"exp", hostile}, 3e9, {{hostile, 2, 0.7, 3}, {"add", 1, 0.297, 1}, {"t", 1, 0.002, 0}, {"u", 1, 0.001, 0}}}}});
  CHECK(has(story, "What helped"));
  CHECK(has(story, "rationale of 2"));
  CHECK(has(story, "0.99x (0.97 to 1.01) of best, no difference established"));
  CHECK(has(story, "The machine&#39;s limit"));
  CHECK(has(story, "The task is 2 operators (exp, "));
  CHECK(has(story, "read and write 2.8 GiB; the task&#39;s own inputs and outputs are 7.6 MiB"));
  CHECK(has(story, "70% (2 calls), add 30%, 2 more under 1%"));
  CHECK(has(story, "Eager Torch launches 4 kernels a call"));
  CHECK_FALSE(has(story, "<script"));
  auto again = all[1].code.measured.time; // what the search saw stands for the figure: no bar says that a fresh process did
  CHECK_FALSE(has(render_story(all, &all[1], &again, nullptr, {}, nullptr), "fresh process"));
  again.candidate_seconds *= 1.01;
  CHECK(has(render_story(all, &all[1], &again, nullptr, {}, nullptr), "fresh process"));
  CHECK(render_story({}, nullptr, nullptr, nullptr, {}, nullptr).empty());
  auto failed = attempt(4, 1, false);
  failed.verdict.stage = verdict_stage::build;
  failed.verdict.reason = "no semicolon";
  const std::vector<iteration_record> more = {first, failed};
  CHECK(has(render_story(more, &more[0], nullptr, nullptr, {}, {{"torch", "of another shape"}}), "failed at build (no semicolon)"));
}

TEST_CASE("the story of a long run tells the first version, the last, and those that gained most") {
  std::vector<iteration_record> all;
  for (int i = 1; i <= 40; ++i) {
    all.push_back(attempt(i, 1 + 0.1 * i, true));
    all.back().against_best = {i == 17 ? 1.5 : 1.01, 1.005, 1.6};
  }
  const auto story = render_story(all, &all.back(), nullptr, nullptr, {}, nullptr);
  for (const char* number : {"Attempt 1,", "Attempt 17,", "Attempt 40,"}) CHECK(has(story, number));
  CHECK(has(story, "32 smaller steps below"));
}

TEST_CASE("what Torch does in a call: each operator reads and writes, a view does not, an expanded tensor is as large as what it repeats") {
  const auto shape = [](int n, int m) { return json{n, m}; };
  const auto node = [](const char* id, const char* op, json args, json size) { return json{{"id", id}, {"op", op}, {"args", std::move(args)}, {"shape", std::move(size)}, {"dtype", "float32"}}; };
  const json graph = {{"inputs", {{{"id", "x"}, {"input", 0}, {"shape", shape(4, 8)}, {"dtype", "float32"}}}},
                      {"params", {{{"id", "p"}, {"param", 0}, {"shape", shape(1, 8)}, {"dtype", "float32"}}}},
                      {"nodes", {node("e", "aten.expand.default", {{"self", {{"ref", "p"}}}}, shape(4, 8)), node("m", "aten.mul.Tensor", {{"self", {{"ref", "x"}}}, {"other", {{"ref", "e"}}}}, shape(4, 8)),
                                 node("s", "aten.sum.dim_IntList", {{"self", {{"ref", "m"}}}, {"dim", {1}}}, shape(4, 1))}},
                      {"outputs", {"s"}}};
  const auto work = torch_work_of(graph.dump());
  CHECK(work.operators == std::vector<std::string>{"mul", "sum"});
  CHECK(work.bytes == (32 + 8 + 32) * 4 + (32 + 4) * 4);
  auto lies = graph; // a node may send anything
  lies["nodes"][1]["args"] = {{"self", {{"ref", 5}}}, {"other", {{"ref", "nobody"}}}};
  CHECK(torch_work_of(lies.dump()).operators.size() == 2);
  for (const char* broken : {"", "{", "[]", "{\"nodes\": 3}", "{\"nodes\": [1, {\"op\": 2}, {\"op\": \"aten\", \"id\": \"x\", \"args\": null, \"shape\": [\"a\"]}]}"}) CHECK(torch_work_of(broken).bytes == 0);
}

TEST_CASE("in a report: metrics are folded, lines have no percentages, the ratio that decided stands beside what was not kept, links open what is folded") {
  auto first = attempt(1, 1.5, true), second = attempt(2, 3, true), third = attempt(3, 3.2, false);
  third.against_best = {0.99, 0.97, 1.01};
  first.code.measured.metrics.push_back({"callgrind.hottest_line", 10, "line", "callgrind", provenance::simulated, ""});
  second.code.measured.metrics.push_back({"callgrind.hottest_line", 27, "line", "callgrind", provenance::simulated, ""});
  const json document = {{"schema", 1}, {"run", {{"id", "r"}, {"best", 2}, {"task", {{"name", "t"}}}}}, {"iterations", {first, second, third}}};
  const auto page = render_html_report(document);
  CHECK(has(page, "<section id=\"story\">"));
  const auto metrics = page.substr(page.find("<section id=\"metrics\">"));
  CHECK(metrics.find("<details><summary>") < metrics.find("<table>"));
  CHECK_FALSE(has(page, "+170%")); // of a line number
  CHECK(has(page, "0.99x of best"));
  const auto link = page.find("href=\"#attempt-3\""), target = page.find("id=\"attempt-3\"");
  REQUIRE(link != std::string::npos);
  REQUIRE(target != std::string::npos);
  CHECK(page.rfind("<details", target) > page.rfind("</details>", target)); // inside
}

TEST_CASE("a suite's table links each report, and has no figure where there is none") {
  const json suite = {{"suite", "s"}, {"overall", {{"n", 1}, {"success", 1}, {"geometric_mean", 0}}}, {"categories", json::array({{{"category", "conv"}, {"n", 1}, {"success", 1}, {"geometric_mean", 0}}})},
                      {"tasks", {{{"name", "1 \"x\""}, {"status", "ok"}, {"run", "r"}, {"speedup", {{"value", 2}, {"low", 1.9}, {"high", 2.1}}}}, {{"name", "never ran"}, {"status", "failed"}}}}};
  const auto page = render_suite_html(suite);
  CHECK(has(page, "href=\"tasks/1%20%22x%22/report.html\""));
  CHECK_FALSE(has(page, "tasks/never"));
  CHECK_FALSE(has(page, "0.00x"));
}

TEST_CASE("the report's first lines say in which caches and how many processes a figure was taken, as one sentence") {
  auto document = test::sample();
  document["run"]["final"]["timing"]["cache"] = "warm caches, calls back to back";
  document["run"]["final"]["timing"]["note"] = "measured in 3 fresh processes";
  CHECK(has(render_html_report(document), "accepted, warm caches, calls back to back; measured in 3 fresh processes.</p>"));
}
