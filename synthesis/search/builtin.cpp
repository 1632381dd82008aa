#include "synthesis/search/builtin.hpp"

#include "base/hash.hpp"
#include "base/language.hpp"
#include "synthesis/lower/algebra.hpp"
#include "synthesis/lower/lower.hpp"
#include "synthesis/schedule/threads.hpp"
#include "synthesis/search/search.hpp"

namespace pragma {

using namespace synthesis;

struct builtin_coder::impl {
  loop_program program;
  std::vector<finding> facts;
  std::unique_ptr<any_search> search;
};

builtin_coder::builtin_coder(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
builtin_coder::builtin_coder(builtin_coder&&) noexcept = default;
builtin_coder& builtin_coder::operator=(builtin_coder&&) noexcept = default;
builtin_coder::~builtin_coder() = default;

namespace {

finding redundant(const std::string& why) {
  finding f;
  f.what = bottleneck::redundant_work;
  f.confidence = 1;
  f.why = why;
  evidence e;
  e.metric = "graph";
  e.text = "from the traced graph: holds for all inputs";
  f.proof.push_back(e);
  f.remedies.push_back("leave it out: the results are the same");
  return f;
}

/// Results of operators that the reference computes and nobody reads.
std::vector<finding> unused_results(const graph& g) {
  static const std::map<std::string, std::string> second{{"aten.max.dim", "positions of the maxima"},
                                                         {"aten.min.dim", "positions of the minima"},
                                                         {"aten.max_pool2d_with_indices.default", "positions of the maxima"},
                                                         {"aten.max_pool3d_with_indices.default", "positions of the maxima"},
                                                         {"aten.var_mean.correction", "mean"}};
  std::vector<finding> found;
  for (const auto& node : g.nodes) {
    const auto it = second.find(node.op);
    if (it == second.end()) continue;
    bool taken = false;
    for (const auto& user : g.nodes)
      taken = taken || (user.op == "getitem" && user.args.at("self").at("ref") == node.id && user.args.at("index") == 1);
    if (!taken) found.push_back(redundant(node.op + " also computes the " + it->second + ", which the reference throws away"));
  }
  return found;
}

/// How the built-in coder writes a language: a row for each.
struct language_writer {
  std::string_view language;
  bool for_processors; ///< with caches, so that regions run in the batch loop of the anchor before them, and with threads
  std::unique_ptr<any_search> (*search)(const loop_program&, const builtin_options&, const std::string& title);
};
constexpr language_writer writers[] = {
    {language_name::cpp, true,
     [](const loop_program& program, const builtin_options& options, const std::string& title) -> std::unique_ptr<any_search> {
       return std::make_unique<schedule_search<schedule>>(processor_space(program, options, title), options, program);
     }},
    {language_name::triton, false,
     [](const loop_program& program, const builtin_options& options, const std::string& title) -> std::unique_ptr<any_search> {
       return std::make_unique<schedule_search<triton_schedule>>(triton_space(program, options, title), options, program);
     }},
};
const language_writer* writer_of(const std::string& language) {
  for (const auto& w : writers)
    if (w.language == language) return &w;
  return nullptr;
}

} // namespace

bool writes_loops(const std::string& language) {
  const auto* writer = writer_of(language);
  return writer && writer->for_processors;
}

expected<builtin_coder> builtin_coder::create(const task& t, const builtin_options& options) {
  if (t.graph.empty())
    return fail(ec::unsupported, "task " + t.name + " has no traced graph" + (t.graph_error.empty() ? "" : ": " + t.graph_error),
                "use --coder llm or --coder command for this task");
  const auto* writer = writer_of(options.language);
  if (!writer) return fail(ec::invalid_argument, "the built-in coder writes no " + options.language, "use " + language_names());
  auto g = parse_graph(t.graph);
  if (!g) return fail(g.error());
  auto lowered = lower(*g, options.algebra, writer->for_processors);
  if (!lowered) return fail(lowered.error());
  if (options.algebra) *lowered = simplify(*lowered);
  auto loops = build_program(*lowered, writer->for_processors);
  if (!loops) return fail(loops.error());
  if (writer->for_processors) split_for_threads(*loops, options.threads, lanes_of(options.machine));
  auto p = std::make_unique<impl>();
  p->program = std::move(*loops);
  p->facts = unused_results(*g);
  for (const auto& text : p->program.redundant) p->facts.push_back(redundant(text));
  auto own = options;
  own.seed = hash64(t.name, options.seed); // else a suite's tasks would all be given the same draws
  p->search = writer->search(p->program, own, t.name);
  return builtin_coder(std::move(p));
}

std::optional<candidate> builtin_coder::next(const std::optional<attempt_feedback>& last) { return impl_->search->next(last); }

void builtin_coder::learn(const attempt_feedback& about) { impl_->search->learn(about); }

std::vector<finding> builtin_coder::graph_findings() const { return impl_->facts; }

} // namespace pragma
