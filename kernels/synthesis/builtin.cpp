#include "kernels/synthesis/builtin.hpp"

#include "kernels/synthesis/emit.hpp"
#include "kernels/synthesis/lower.hpp"

#include <set>

namespace pragma {

using namespace synthesis;

struct builtin_coder::impl {
  std::string title;
  builtin_options options;
  loop_program program;
  std::set<std::string> given;
  std::vector<schedule> queue;
};

builtin_coder::builtin_coder(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
builtin_coder::builtin_coder(builtin_coder&&) noexcept = default;
builtin_coder& builtin_coder::operator=(builtin_coder&&) noexcept = default;
builtin_coder::~builtin_coder() = default;

expected<builtin_coder> builtin_coder::create(const task& t, const builtin_options& options) {
  if (t.graph.empty())
    return fail(ec::unsupported, "task " + t.name + " has no traced graph" + (t.graph_error.empty() ? "" : ": " + t.graph_error),
                "use --coder llm or --coder command for this task");
  auto g = parse_graph(t.graph);
  if (!g) return fail(g.error());
  auto lowered = lower(*g);
  if (!lowered) return fail(lowered.error());
  auto loops = build_program(*lowered);
  if (!loops) return fail(loops.error());
  auto p = std::make_unique<impl>();
  p->title = t.name;
  p->options = options;
  p->program = std::move(*loops);
  p->queue.push_back(starting_schedule(p->program, options.machine, options.threads));
  return builtin_coder(std::move(p));
}

std::optional<candidate> builtin_coder::next(const std::optional<attempt_feedback>&) {
  while (!impl_->queue.empty()) {
    const auto s = impl_->queue.back();
    impl_->queue.pop_back();
    candidate c;
    c.source = emit_source(impl_->program, s, impl_->title);
    c.compiler = s.compiler;
    c.flags = s.flags;
    c.origin = "builtin";
    c.schedule = json(s).dump();
    c.rationale = "The starting point: one fused pass structure per region, sized to the caches.";
    if (impl_->given.insert(c.id()).second) return c;
  }
  return std::nullopt;
}

std::vector<finding> builtin_coder::graph_findings() const { return {}; }

} // namespace pragma
