#include "synthesis/search/search.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

constexpr int most_pairs = 12;       ///< of moves, in one run
constexpr double hopeless = 0.5;     ///< of the best's speed: a move that fell below it is not tried beside another
constexpr int draws_of_random = 200; ///< without a new schedule: the space is exhausted

std::string title_of(bottleneck what) {
  auto name = json(what).get<std::string>();
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

} // namespace

template <class Schedule>
schedule_search<Schedule>::schedule_search(search_space<Schedule> space, const builtin_options& options, const loop_program& program)
    : space_(std::move(space)), options_(options), program_(program), random_(options.seed * 0x9e3779b97f4a7c15ull + 1) {}

template <class Schedule> std::optional<Schedule> schedule_search<Schedule>::known_that_fits() const {
  if (options_.known_schedule.empty()) return std::nullopt;
  const auto parsed = parse_json(options_.known_schedule, "a known schedule");
  if (!parsed) return std::nullopt;
  auto known = from_json_value<Schedule>(*parsed, "a known schedule");
  if (!known) return std::nullopt;
  const json own = *known;
  for (const auto& [key, value] : parsed->items())
    if (!own.contains(key)) return std::nullopt; // of another kind: C++ for Triton, or the other way round
  if (!space_.fits(*known)) return std::nullopt;
  return *known;
}

template <class Schedule> std::optional<candidate> schedule_search<Schedule>::offer(const Schedule& s, const std::string& rationale) {
  auto [c, program] = space_.emit(s);
  c.origin = "builtin";
  c.rationale = rationale;
  c.schedule = json(s).dump();
  if (!given_.insert(short_hash(c.compiler + "|" + join(c.flags, " ") + "|" + program)).second) return std::nullopt;
  offered_[c.id()] = s;
  return std::move(c);
}

template <class Schedule> std::optional<candidate> schedule_search<Schedule>::next(const std::optional<attempt_feedback>& last) {
  if (options_.search == search_mode::random) return anywhere();
  if (!begun_) {
    begun_ = true;
    if (const auto known = known_that_fits()) return offer(*known, "Starting point: the schedule that won on " + options_.known_from + ".");
    return offer(space_.start, space_.reason);
  }
  if (last) learn(*last);
  if (!best_ && !last) return neighbour(space_.start, {}); // beside the first, in a batch
  if (!best_) {
    // Nothing has passed yet: give up what could have been too clever, then the compiler.
    if (auto c = offer(space_.start, "The known schedule failed: the analytical starting point.")) return c;
    while (const auto s = space_.safer(safer_++))
      if (auto c = offer(*s, "The attempt before failed (" + last->failure + "): " + space_.safer_means + ".")) return c;
    return std::nullopt;
  }
  return neighbour(*best_, last && last->passed && last->new_best ? last->findings : best_findings_);
}

template <class Schedule> void schedule_search<Schedule>::learn(const attempt_feedback& about) {
  const auto known = offered_.find(about.candidate);
  if (known == offered_.end() || !about.passed) return;
  if (!about.new_best && best_) {
    if (const auto move = made_by_.find(about.candidate); move != made_by_.end()) reached_[move->second] = about.speedup;
    return;
  }
  best_ = known->second;
  best_speedup_ = about.speedup;
  reached_.clear();
  best_findings_ = about.findings;
}

/// Below `limit`. A generator of our own (Knuth's MMIX constants): equal on every platform.
template <class Schedule> size_t schedule_search<Schedule>::drawn(size_t limit) {
  random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
  return (random_ >> 33) % limit;
}

template <class Schedule> std::optional<candidate> schedule_search<Schedule>::anywhere() {
  for (int attempt = 0; attempt < draws_of_random; ++attempt) {
    Schedule s = space_.start;
    for (size_t step = 0, steps = drawn(2 * space_.moves.size()); step < steps; ++step) space_.moves[drawn(space_.moves.size())].apply(s, program_);
    if (auto c = offer(s, "Drawn at random.")) return c;
  }
  return std::nullopt;
}

template <class Schedule> std::optional<candidate> schedule_search<Schedule>::neighbour(const Schedule& from, const std::vector<finding>& findings) {
  struct option { const schedule_move<Schedule>* m; const finding* f; };
  std::vector<option> options;
  if (options_.search == search_mode::findings) {
    std::set<const schedule_move<Schedule>*> listed;
    for (const auto& f : findings)
      for (const auto& m : space_.moves)
        if (std::find(m.answers.begin(), m.answers.end(), f.what) != m.answers.end() && listed.insert(&m).second)
          options.push_back({&m, &f});
    for (const auto& m : space_.moves)
      if (listed.insert(&m).second) options.push_back({&m, nullptr});
  } else {
    for (const auto& m : space_.moves) options.push_back({&m, nullptr});
    for (size_t i = options.size(); i > 1; --i) std::swap(options[i - 1], options[drawn(i)]); // Fisher-Yates
  }
  for (const auto& [m, f] : options) {
    Schedule s = from;
    if (!m->apply(s, program_)) continue;
    const std::string because = f ? title_of(f->what) + " (confidence " + format_number(f->confidence, 2) + "): " : std::string();
    if (auto c = offer(s, because + m->name + ": " + m->why + ".")) {
      if (f) c->answers = json(f->what).get<std::string>();
      made_by_[c->id()] = m;
      return c;
    }
  }
  // One step from it is all tried: the same step twice (the axis after the next one), then two of them, as the single ones were ordered.
  for (const auto& [m, f] : options) {
    Schedule s = from;
    if (!m->apply(s, program_) || !m->apply(s, program_)) continue;
    if (auto c = offer(s, std::string(m->name) + ", twice: once was tried.")) return c;
  }
  options.erase(std::remove_if(options.begin(), options.end(), [&](const option& o) {
    const auto reached = reached_.find(o.m);
    return reached != reached_.end() && reached->second < hopeless * best_speedup_;
  }), options.end());
  for (size_t i = 0; i < options.size() && pairs_ < most_pairs; ++i)
    for (size_t j = i + 1; j < options.size() && pairs_ < most_pairs; ++j) {
      Schedule s = from;
      if (!options[i].m->apply(s, program_) || !options[j].m->apply(s, program_)) continue;
      if (auto c = offer(s, std::string(options[i].m->name) + " and " + options[j].m->name + ": each alone was tried.")) {
        ++pairs_;
        return c;
      }
    }
  return std::nullopt;
}

template class schedule_search<schedule>;
template class schedule_search<triton_schedule>;

} // namespace pragma::synthesis
