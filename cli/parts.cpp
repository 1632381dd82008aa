#include "cli/parts.hpp"

#include "actors/as_called.hpp"
#include "actors/conductor.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "kernels/parts.hpp"
#include "synthesis/lower/lower.hpp"
#include "synthesis/partition/cut.hpp"
#include "synthesis/search/builtin.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

namespace pragma::cli {

namespace {

namespace fs = std::filesystem;
using namespace synthesis;

constexpr size_t most_regions = 8;       ///< that get a run of their own: the largest, and those equal to them
constexpr double least_share = 1e-3;     ///< of the work of the whole: what a kernel gains there nobody can measure
constexpr double least_gain = 0.01;      ///< of Torch's time for the whole: a part that takes less is Torch's, as the whole would hardly be faster were its kernel free
constexpr size_t most_operators = 6;     ///< of a part that are named

/// A part of ours, with all parts that compute the same.
struct region_group {
  std::vector<size_t> members;           ///< positions in partition::parts
  double work = 0;
};

std::vector<region_group> groups_of(const graph& g, const partition& cut) {
  std::map<std::string, region_group> by_shape;
  for (size_t i = 0; i < cut.parts.size(); ++i) {
    if (!cut.parts[i].ours) continue;
    auto& group = by_shape[shape_of(g, cut.parts[i])];
    group.members.push_back(i);
    group.work += cut.parts[i].work;
  }
  std::vector<region_group> groups;
  for (auto& [shape, group] : by_shape) groups.push_back(std::move(group));
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.work > b.work; });
  return groups;
}

/// The share of eager Torch's time that is not its products'; 1 where nothing is known of it.
double beside_products(const std::vector<operator_time>& times) {
  return std::accumulate(times.begin(), times.end(), 1.0, [](double rest, const auto& t) { return calls_contraction(t.name) ? rest - t.share : rest; });
}

std::string operators_of(const graph& g, const part& p) {
  std::vector<std::string> names;
  int first = 0, last = 0;
  for (const auto i : p.nodes) {
    const auto words = split(g.nodes[i].op, '.');
    const auto name = words.size() < 2 ? g.nodes[i].op : words[1];
    if (name != "getitem" && (names.empty() || names.back() != name)) names.push_back(name);
    if (const int line = g.nodes[i].line; line > 0) {
      first = first == 0 ? line : std::min(first, line);
      last = std::max(last, line);
    }
  }
  const size_t more = names.size() > most_operators ? names.size() - most_operators : 0;
  names.resize(names.size() - more);
  return join(names, ", ") + (more > 0 ? " and " + std::to_string(more) + " more" : "") +
         (first == 0 ? "" : first == last ? ", line " + std::to_string(first) : ", lines " + std::to_string(first) + " to " + std::to_string(last));
}

/// A task that no kernel of ours computes, neither whole nor in parts, is no failure: Torch can run it.
error all_of_torch(const error& why) {
  return {ec::left_as_it_is, "left as it is, and as fast: Torch keeps all of it. " + why.message, why.hint};
}

/// A task's graph, and where it is cut.
struct cut_task {
  graph g;
  json document;
  partition at;
};

/// left_as_it_is: nothing is there to be tried (`why`: what the coder said of the whole), or nothing may be judged.
expected<cut_task> cut_of(const task& t, const keeps& torch_keeps, const load_request& load, const error& why) {
  if (t.graph.empty()) return fail(all_of_torch(why));
  auto g = parse_graph(t.graph);
  auto document = parse_json(t.graph, "the task's graph");
  if (!g || !document) return fail(all_of_torch(why));
  const auto where = find_backend(load.backend);
  auto at = cut(*g, torch_keeps, !where || writes_loops(where->language));
  if (!at) return fail(at.error().code == ec::left_as_it_is ? at.error() : all_of_torch(at.error()));
  if (at->kept.empty()) return fail(all_of_torch(why));
  if (const auto judged = can_time_parts(load); !judged) return fail(ec::left_as_it_is, "left as it is: " + judged.error().message, judged.error().hint);
  return cut_task{std::move(*g), std::move(*document), std::move(*at)};
}

class whole_run {
public:
  whole_run(engine& machine, const run_request& request, const watch_run& watch, const std::atomic<bool>& cancel) : machine_(machine), request_(request), watch_(watch), cancel_(cancel), resumed_(!request.id.empty()) {
    if (request_.id.empty() && request_.new_id.empty()) request_.new_id = new_run_id(request_.load.path);
  }

  expected<run_result> run() {
    auto result = by_one_kernel();
    if (!result && result.error().code == ec::torch_only) return fail(for_optimizing(result.error()));
    if (request_.coder.kind != "builtin" || loaded_.task.name.empty() || cancel_) return result;
    const bool not_lowered = !result && result.error().code == ec::unsupported;
    if (!not_lowered && !(result && slower(*result))) return result;
    auto made = not_lowered ? cut_of(loaded_.task, {}, request_.load, result.error()) : cut_of(loaded_.task, is_contraction, request_.load, {});
    if (!made) return not_lowered ? fail(made.error()) : std::move(result);
    const int attempts_before = result ? static_cast<int>(result->iterations.size()) : 0; // before it is moved from: g++ evaluates arguments from the last to the first
    return by_parts(made->g, made->document, made->at, attempts_before, std::move(result));
  }

private:
  expected<run_result> by_one_kernel() {
    auto shown = watch_("", request_.stop.attempts);
    return machine_.run(request_, [&, shown](const run_event& e) {
      if (e.what == "loaded") loaded_ = e.loaded;
      shown(e);
    }, cancel_);
  }

  /// Torch's own products may be what it lost to.
  static bool slower(const run_result& result) {
    const auto& h = result.header;
    return h.state == "finished" && h.confirmed && h.final.as_called && h.final.time.speedup.value < 1;
  }

  void note(const std::string& text) {
    run_event event;
    event.what = "note";
    event.text = text;
    watch_("", request_.stop.attempts)(event);
  }

  expected<run_result> by_parts(const graph& g, const json& document, const partition& cut_at, int attempts_before, expected<run_result> before) {
    const auto groups = groups_of(g, cut_at);
    const double whole = std::accumulate(cut_at.parts.begin(), cut_at.parts.end(), 0.0, [](double sum, const part& p) { return sum + p.work; });
    const double all = std::accumulate(groups.begin(), groups.end(), 0.0, [](double sum, const auto& group) { return sum + group.work; });
    const double time_of_parts = before ? beside_products(before->header.final.torch) : 1; // cut at Torch's products, where they were what it lost to
    const auto large = [&](const region_group& group) { return group.work >= least_share * whole && group.work * time_of_parts >= least_gain * all; };
    const size_t tried = std::min(static_cast<size_t>(std::count_if(groups.begin(), groups.end(), large)), most_regions);
    for (const auto& [call, why] : cut_at.kept) {
      cut_.torch.push_back(call);
      cut_.why.push_back(why);
    }
    if (tried > 0) note((before ? "Torch is faster here with its own products: " : "no kernel computes all of it: ") + std::string("Torch keeps ") + calls_of(cut_at.kept) + "; " +
         std::to_string(tried) + (tried == 1 ? " part gets a kernel of its own" : " parts get kernels of their own"));
    if (tried == 0 && before) note("Torch is faster here with its own products, and no part beside them takes " + whole_percent(least_gain) + " of the time: all of it stays Torch's");
    std::vector<part_record> told;
    for (size_t i = 0; i < groups.size(); ++i) told.push_back(described(g, cut_at, groups[i], i, all > 0 ? groups[i].work / all : 1));
    std::vector<run_request> requests;
    for (size_t i = 0; i < tried; ++i) {
      auto request = request_of(g, document, cut_at, groups[i], i, told[i]);
      if (!request) return fail(request.error());
      requests.push_back(std::move(*request));
    }
    auto results = run_parts(requests, told);
    std::map<size_t, int> kernel_of; // position in partition::parts -> in parts::regions
    parts made;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (i < tried) {
        if (!results[i] && (results[i].error().code == ec::interrupted || cancel_)) return fail(results[i].error());
        if (results[i] && results[i]->header.state == "interrupted") return stopped(); // says nothing of the part
        judge_part(results[i], told[i]);
        if (told[i].kept) keep(g, document, cut_at, groups[i], *results[i], made, kernel_of);
      } else {
        told[i].why_not = "too small a share: Torch's";
      }
      cut_.parts.push_back(std::move(told[i]));
    }
    if (cancel_) return stopped();
    if (made.regions.empty()) return left(std::move(before));
    compose(document, cut_at, kernel_of, g, made);
    return whole_again(made, attempts_before, std::move(before));
  }

  static part_record described(const graph& g, const partition& cut_at, const region_group& group, size_t number, double share) {
    part_record told;
    told.name = "part " + std::to_string(number + 1);
    told.what = operators_of(g, cut_at.parts[group.members.front()]) + (group.members.size() > 1 ? ", " + std::to_string(group.members.size()) + " times" : "");
    told.share = share;
    return told;
  }

  /// One run for a group of equal parts, whose task is written here.
  expected<run_request> request_of(const graph& g, const json& document, const partition& cut_at, const region_group& group, size_t number, const part_record& told) {
    const auto& first = cut_at.parts[group.members.front()];
    auto text = region_task(loaded_.task, document, g, first, "Part " + std::to_string(number + 1) + " of " + loaded_.task.name + ": " + told.what + ".");
    if (!text) return fail(text.error());
    const auto folder = place() / ("part_" + std::to_string(number + 1));
    const auto file = folder / (loaded_.task.name + "_part_" + std::to_string(number + 1) + ".py");
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (failed) return fail(ec::io_error, "cannot make the folder " + folder.string() + ": " + failed.message());
    if (auto written = write_file_atomic(file, *text); !written) return fail(written.error());
    auto request = request_;
    request.id.clear();
    request.new_id = id() + "-part" + std::to_string(number + 1); // found again when the whole is resumed
    request.load.path = file.string();
    request.load.part = true;
    request.load.baseline = "eager"; // what stays Torch's around it is called so; the whole is held against what was asked for
    request.out_dir = folder.string();
    request.stop.attempts = std::max(1, static_cast<int>(std::lround(request_.stop.attempts * told.share)));
    return request;
  }

  /// As many at once as the engine says; none is begun after one that was stopped.
  std::vector<expected<run_result>> run_parts(const std::vector<run_request>& requests, const std::vector<part_record>& told) {
    std::vector<expected<run_result>> results(requests.size(), expected<run_result>(stopped()));
    std::atomic<size_t> next = 0;
    std::atomic<bool> over = false;
    std::mutex watching;
    const auto work = [&] {
      for (size_t i = next++; i < requests.size() && !over && !cancel_; i = next++) {
        std::function<void(const run_event&)> shown;
        {
          const std::lock_guard lock(watching);
          shown = watch_(told[i].name + " of " + std::to_string(requests.size()) + ": " + told[i].what, requests[i].stop.attempts);
        }
        results[i] = part_run(requests[i], [&](const run_event& event) {
          const std::lock_guard lock(watching);
          shown(event);
        });
        if (results[i] ? results[i]->header.state == "interrupted" : results[i].error().code == ec::interrupted) over = true;
        else if (results[i]) (void)write_outputs(requests[i].out_dir, *results[i], false); // a part's report is for who wants it: the whole does without
      }
    };
    std::vector<std::thread> others(std::min(machine_.side_by_side(request_.load), requests.size()) - (requests.empty() ? 0 : 1));
    for (auto& thread : others) thread = std::thread(work);
    work();
    for (auto& thread : others) thread.join();
    return results;
  }

  /// A part whose run began before the whole was stopped or killed goes on with it: only the attempt in flight is lost.
  expected<run_result> part_run(const run_request& request, const std::function<void(const run_event&)>& shown) {
    if (resumed_) {
      auto again = request;
      again.id = std::move(again.new_id);
      again.new_id.clear();
      auto result = machine_.run(again, shown, cancel_);
      if (result || cancel_ || result.error().code == ec::interrupted) return result;
    }
    return machine_.run(request, shown, cancel_);
  }

  /// What was wrong with the last kernel of a run that was.
  static std::string why_refused(const run_result& result) {
    const auto last = std::find_if(result.iterations.rbegin(), result.iterations.rend(), [](const iteration_record& r) { return r.failed(); });
    return last == result.iterations.rend() || last->verdict.reason.empty() ? "" : ": " + last->verdict.reason;
  }

  void judge_part(const expected<run_result>& result, part_record& told) {
    if (!result) {
      told.why_not = result.error().message;
      return;
    }
    const auto& h = result->header;
    told.run = h.id;
    if (!h.confirmed) {
      told.open = !h.not_confirmed.empty();
      told.why_not = told.open ? "not established: " + h.not_confirmed : "no kernel was accepted" + why_refused(*result);
      return;
    }
    told.speedup = h.final.time.speedup;
    told.torch_seconds = h.final.time.baseline_seconds;
    told.seconds = h.final.time.candidate_seconds;
    // Where only the machine was busy, the kernel's own figure says whether it is tried, and the whole's, which is timed as called, what comes of it. A time that was not believed
    // is another thing: of a whole there is no kernel's time that would show such a lie.
    told.kept = told.speedup.low > 1 && (h.final.as_called || h.final.call_doubt == doubt::machine_busy);
    told.open = !h.final.as_called;
    if (told.open) told.why_not = "not timed as called: " + h.final.not_called;
    else if (!told.kept) told.why_not = "Torch is as fast";
  }

  void keep(const graph& g, const json& document, const partition& cut_at, const region_group& group, const run_result& result, parts& made, std::map<size_t, int>& kernel_of) {
    const auto& own = cut_at.parts[group.members.front()];
    for (const auto member : group.members) {
      const auto& p = cut_at.parts[member];
      parts_region region;
      region.task = result.header.environment.task;
      region.task.graph.clear();
      region.seconds = result.header.final.kernel.candidate_seconds;
      for (const auto& r : result.iterations)
        if (r.number == result.header.best_attempt) region.code = r.code;
      // The same kernel for other tensors: its parameters are found by the places that they have in the two parts.
      for (auto& spec : region.task.params)
        for (size_t k = 0; k < own.params.size(); ++k)
          if (g.params[own.params[k]].id == spec.name) {
            region.params.push_back(g.params[p.params[k]].id);
            break;
          }
      if (member != group.members.front()) {
        for (size_t k = 0; k < region.params.size() && k < region.task.params.size(); ++k) region.task.params[k].name = region.params[k];
        if (auto text = region_task(loaded_.task, document, g, p, "A part of " + loaded_.task.name + ".")) region.task.source = std::move(*text);
        region.task.id = sha256_hex(region.task.source);
      }
      kernel_of[member] = static_cast<int>(made.regions.size());
      made.regions.push_back(std::move(region));
    }
  }

  void compose(const json& document, const partition& cut_at, const std::map<size_t, int>& kernel_of, const graph& g, parts& made) {
    made.inputs = document.value("inputs", json::array());
    made.params = document.value("params", json::array());
    made.foreign = document.value("foreign", json::array());
    made.constants = document.value("constants", json::array());
    made.outputs = g.outputs;
    for (size_t i = 0; i < cut_at.parts.size(); ++i) {
      const auto& p = cut_at.parts[i];
      parts_step step;
      step.inputs = p.inputs;
      step.outputs = p.outputs;
      const auto kernel = kernel_of.find(i);
      if (kernel != kernel_of.end()) {
        step.region = kernel->second;
      } else {
        step.nodes = json::array();
        for (const auto n : p.nodes) step.nodes.push_back(document.at("nodes").at(n));
      }
      made.steps.push_back(std::move(step));
    }
  }

  /// The same run goes on, with what its parts' kernels make together as its candidate.
  expected<run_result> whole_again(const parts& made, int attempts_before, expected<run_result> before) {
    const auto kernels = std::to_string(made.regions.size()) + (made.regions.size() == 1 ? " kernel" : " kernels");
    auto request = request_;
    request.id = id();
    request.coder.given = {candidate_of(made, "builtin", kernels + " for parts of the task; Torch keeps " + join(cut_.torch, ", "))};
    request.cut = cut_;
    request.stop = {}; // whatever ended the search for one kernel (time, patience, a roofline that is near) does not keep this from being tried
    request.stop.roofline_share = 0;
    request.stop.attempts = attempts_before + static_cast<int>(request.coder.given.size());
    auto result = machine_.run(request, watch_("the whole, with its parts' kernels", request.stop.attempts), cancel_);
    if (!result && before && result.error().code != ec::interrupted) return before;
    return result;
  }

  expected<run_result> left(expected<run_result> before) {
    if (before) return before;
    std::vector<std::string> why;
    const bool open = std::any_of(cut_.parts.begin(), cut_.parts.end(), [](const part_record& p) { return p.open; });
    for (const auto& p : cut_.parts) why.push_back(p.name + " (" + p.what + "): " + p.why_not);
    if (open)
      return fail(ec::measurement_failed, "not established whether kernels for parts of the task are faster; Torch keeps " + join(cut_.torch, ", ") + ". " + join(why, "; "), "run it again when the machine is quiet");
    return fail(ec::left_as_it_is, "left as it is, and as fast: Torch keeps " + join(cut_.torch, ", ") + ", and no kernel gains anything in what is left. " + join(why, "; "),
                "use Model as before; more --attempts may find a kernel for a part");
  }

  tl::unexpected<error> stopped() const { return fail(ec::interrupted, "stopped by the user", "go on with: pragma resume " + id()); }
  std::string id() const { return request_.id.empty() ? request_.new_id : request_.id; }
  fs::path place() const { return (request_.out_dir.empty() ? data_home() / "parts" / id() : fs::path(request_.out_dir)) / "regions"; }

  engine& machine_;
  run_request request_;
  const watch_run& watch_;
  const std::atomic<bool>& cancel_;
  bool resumed_; ///< the run is in the store already
  loaded_task loaded_;
  cut_record cut_;
};

} // namespace

expected<run_result> run_whole(engine& machine, const run_request& request, const watch_run& watch, const std::atomic<bool>& cancel) {
  return whole_run(machine, request, watch, cancel).run();
}

error for_optimizing(const error& e) { return e.code == ec::torch_only ? all_of_torch(e) : e; }

expected<void> can_be_cut(const task& t, const load_request& load, const error& why) {
  if (why.code != ec::unsupported) return fail(why);
  if (auto made = cut_of(t, {}, load, why); !made) return fail(made.error());
  return {};
}

} // namespace pragma::cli
