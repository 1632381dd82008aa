#include "synthesis/search/won_schedule.hpp"

#include "base/hash.hpp"
#include "synthesis/ir/graph.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pragma {

namespace {

constexpr size_t most_kept = 16; ///< of one family

std::string form_of(const synthesis::tensor_type& type) {
  return json(type.dtype).get<std::string>() + std::to_string(type.shape.size()) + " ";
}

} // namespace

std::string schedule_family(const task& t, int threads, const std::string& backend) {
  const auto g = synthesis::parse_graph(t.graph);
  if (!g) return {};
  std::string text = backend == "cpu" ? "threads " + std::to_string(threads) + "\n" : "backend " + backend + "\n";
  for (const auto* leaves : {&g->inputs, &g->params})
    for (const auto& leaf : *leaves) text += form_of(leaf.type);
  for (const auto& node : g->nodes) {
    text += "\n" + node.op + " ";
    for (const auto& type : node.results) text += form_of(type);
  }
  return "family-" + short_hash(text);
}

std::vector<int64_t> sizes_of(const task& t) {
  std::vector<int64_t> sizes;
  for (const auto* specs : {&t.inputs, &t.params})
    for (const auto& spec : *specs) sizes.insert(sizes.end(), spec.shape.begin(), spec.shape.end());
  return sizes;
}

const won_schedule* nearest_schedule(const won_schedules& known, const task& t) {
  const auto sizes = sizes_of(t);
  const won_schedule* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& won : known.all) {
    if (won.sizes.size() != sizes.size()) continue;
    double distance = 0;
    for (size_t i = 0; i < sizes.size(); ++i)
      distance += std::fabs(std::log(static_cast<double>(std::max<int64_t>(won.sizes[i], 1)) / static_cast<double>(std::max<int64_t>(sizes[i], 1))));
    if (distance >= least) continue;
    least = distance;
    nearest = &won;
  }
  return nearest;
}

void remember(won_schedules& known, won_schedule won) {
  std::erase_if(known.all, [&](const won_schedule& old) { return old.sizes == won.sizes; });
  if (known.all.size() >= most_kept) known.all.erase(known.all.begin());
  known.all.push_back(std::move(won));
}

} // namespace pragma
