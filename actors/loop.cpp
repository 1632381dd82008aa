#include "actors/loop.hpp"

#include "actors/examine.hpp"
#include "base/text.hpp"
#include "diagnosis/roofline.hpp"
#include "kernels/parts.hpp"
#include "profilers/by_manifest.hpp"

#include <algorithm>

namespace pragma {

double loop::seconds() const { return seconds_before_ + std::chrono::duration<double>(clock::now() - started_).count(); }

void loop::begin(run_request request, std::string id, std::string now) {
  header_ = {};
  history_.clear();
  called_ = {};
  confirmed_before_ = 0;
  header_.id = std::move(id);
  header_.started = std::move(now);
  header_.request = std::move(request);
  header_.request.id = header_.id;
  resumed_ = false;
  seconds_before_ = 0;
  asked_at_ = 0;
  started_ = attempt_started_ = clock::now();
}

void loop::resume(run_result stored, const run_request& request) {
  header_ = std::move(stored.header);
  history_ = std::move(stored.iterations);
  header_.request.stop = request.stop;
  header_.request.out_dir = request.out_dir;
  if (!request.coder.given.empty()) {
    header_.request.coder.given = request.coder.given;
    header_.request.cut = request.cut;
  }
  called_ = header_.confirmed && header_.final.as_called ? header_.final.time.speedup : interval{};
  confirmed_before_ = header_.confirmed && !request.coder.given.empty() ? header_.best_attempt : 0; // the same run goes on, on the same machine
  header_.state = "running";
  header_.finished.clear();
  header_.stop_reason.clear();
  header_.failure.clear();
  header_.confirmed = false;
  resumed_ = true;
  seconds_before_ = header_.wall_seconds;
  asked_at_ = history_.size();
  started_ = attempt_started_ = clock::now();
  rank();
}

void loop::loaded(const loaded_task& task) {
  header_.environment = task;
  header_.load_seconds += task.seconds;
}

std::string loop::wanted_schedules() const {
  const auto& coder = header_.request.coder;
  if (coder.kind != "builtin" || coder.cold || !history_.empty() || !coder.known_schedule.empty()) return {};
  return schedule_family(header_.environment.task, header_.request.load.threads, header_.request.load.backend);
}

void loop::recalled(const won_schedules& known) {
  const auto* won = nearest_schedule(known, header_.environment.task);
  if (!won) return;
  header_.request.coder.known_schedule = won->schedule;
  header_.request.coder.known_from = won->task + " (run " + won->run + ", " + format_number(won->speedup, 2) + "x)";
}

std::string loop::wanted_scores() const { return history_.empty() && header_.request.profile ? header_.environment.limits.cpu : std::string(); }

void loop::scored(const machine_scores& known) { header_.scores = scores_of(known); }

scored_run loop::outcomes() const { return {header_.id, header_.environment.task.name, header_.finished, outcomes_of(history_)}; }

std::pair<std::string, won_schedule> loop::lesson() const {
  const auto* winner = best();
  const auto& gain = header_.final.time.speedup;
  if (!winner || !header_.confirmed || winner->code.schedule.empty() || gain.low <= 1) return {};
  const auto& task = header_.environment.task;
  return {schedule_family(task, header_.request.load.threads, header_.request.load.backend), {task.name, header_.id, winner->code.schedule, sizes_of(task), gain.value}};
}

coder_setup loop::coder_request() const {
  auto setup = header_.request.coder;
  setup.task = header_.environment.task;
  setup.limits = header_.environment.limits;
  setup.threads = header_.request.load.threads;
  setup.compilers.clear();
  for (const auto& version : header_.environment.compilers) setup.compilers.push_back(version.substr(0, version.find(' '))); // "gcc 12.2.0"
  setup.compiler_versions = header_.environment.compilers;
  if (!header_.request.profile && setup.search == "findings") setup.search = "unguided";
  setup.resumed = resumed_;
  setup.used = header_.usage;
  setup.history.clear();
  setup.tried.clear();
  for (size_t i = 0; i < history_.size(); ++i) {
    setup.history.push_back(request_after(i));
    setup.tried.push_back(history_[i].code.id());
  }
  return setup;
}

code_request loop::request_after(size_t finished) const {
  code_request request;
  const iteration_record* best = nullptr;
  for (size_t i = 0; i < finished; ++i)
    if (history_[i].new_best) best = &history_[i];
  const iteration_record* last = finished > 0 ? &history_[finished - 1] : nullptr;
  request.brief = make_brief(static_cast<int>(finished) + 1, last, best, header_.request.load.backend, std::span(history_).first(finished), header_.request.stop.attempts);
  if (last && last->established()) {
    request.has_last = true;
    request.last_candidate = last->code.id();
    request.last_passed = last->passed();
    request.last_was_best = last->new_best;
    request.last_speedup = last->code.has_profile ? last->code.measured.time.speedup.value : 0;
    if (!last->passed()) request.failure = last->stage() + ": " + last->verdict.reason;
    // The findings steer; after a failure the best version's are the ones to work on.
    request.brief.findings = last->passed() || !best ? last->findings : best->findings;
    leave_out(request.brief.findings, tried_in_vain(std::span(history_).first(finished)));
  }
  return request;
}

code_request loop::code_request_now(bool sibling) {
  auto request = request_after(history_.size());
  if (sibling) {
    request.has_last = false;
    return request;
  }
  for (size_t i = asked_at_ + 1; i < history_.size(); ++i) { // all but the last, which the request is about
    code_request one;
    const auto& r = history_[i - 1];
    if (!r.established()) continue;
    one.has_last = true;
    one.last_candidate = r.code.id();
    one.last_passed = r.passed();
    one.last_was_best = r.new_best;
    one.brief.findings = r.findings;
    request.before.push_back(std::move(one));
  }
  asked_at_ = history_.size();
  return request;
}

void loop::coded_now(const coded& answer) {
  attempt_started_ = clock::now() - std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(answer.seconds));
  current_ = {};
  current_.number = attempt();
  current_.code = {answer.candidate, current_.number, false, {}};
  current_.code_seconds = answer.seconds;
  header_.graph_findings = answer.graph_findings;
  add_usage(answer.usage);
}

void loop::add_usage(const chat_usage& usage) {
  header_.usage.prompt_tokens += usage.prompt_tokens;
  header_.usage.completion_tokens += usage.completion_tokens;
  header_.usage.cost += usage.cost;
  header_.usage.seconds += usage.seconds;
  header_.usage.retries += usage.retries;
}

void loop::verified(const verdict& v) {
  current_.verdict = v;
  current_.build_seconds = v.build_seconds;
  current_.verify_seconds = v.verify_seconds;
}

measure_request loop::measure_request_now() const {
  measure_request request;
  request.candidate = current_.code;
  request.verdict = current_.verdict;
  request.profile = header_.request.profile;
  request.profile_seconds = header_.request.profile_seconds;
  request.extra_metrics = header_.request.extra_metrics;
  for (auto r = history_.rbegin(); r != history_.rend() && request.asked_metrics.empty(); ++r) {
    if (!r->passed()) continue;
    const auto& load = header_.request.load;
    request.asked_metrics = asked_by_rules(r->findings, load.backend, load.manifests);
    for (auto& name : metrics_to_ask(r->findings, load.backend))
      if (std::find(request.asked_metrics.begin(), request.asked_metrics.end(), name) == request.asked_metrics.end()) request.asked_metrics.push_back(std::move(name));
  }
  if (const auto* champion = best()) {
    request.has_best = true;
    request.best = champion->code;
    // A candidate in parts has no figure but the one as called: it is compared with the best's figure of that kind.
    request.best_speedup = current_.code.language == parts_language && called_.value > 0 ? called_ : champion->code.measured.time.speedup;
    request.best_contended = champion->code.measured.time.contended;
  }
  return request;
}

void loop::measured_again(const machine_limits& limits) {
  auto& known = header_.environment.limits;
  if (limits.peak_gflops > 0 && limits.cpu == known.cpu) known = better_of(limits, known); // another node's are another machine's
}

void loop::measured(const measurement& m) {
  measured_again(m.limits);
  const double build = current_.build_seconds, verify = current_.verify_seconds;
  verified(m.verdict);
  current_.build_seconds = build;
  current_.verify_seconds = verify;
  current_.code.has_profile = true;
  current_.code.measured = m.profile;
  current_.against_best = m.against_best.speedup;
  current_.time_seconds = m.time_seconds;
  current_.profile_seconds = m.profile_seconds;
  retimed_ = 0;
  for (auto& r : history_)
    if (r.number == header_.best_attempt && m.best_again.speedup.value > 0) {
      r.code.measured.time = m.best_again;
      retimed_ = r.number;
    }
}

const iteration_record* loop::retimed() const {
  for (const auto& r : history_)
    if (r.number == retimed_) return &r;
  return nullptr;
}

void loop::not_measured(const error& e) {
  current_.verdict.stage = e.code == ec::measurement_failed || e.code == ec::busy ? verdict_stage::not_established : verdict_stage::measure;
  current_.verdict.reason = e.message;
  current_.verdict.log = e.hint;
}

const iteration_record& loop::conclude(std::string now) {
  const iteration_record* champion = best();
  const auto j = judge(current_, champion != nullptr);
  current_.new_best = j == judgement::first || j == judgement::better;
  if (current_.passed() && header_.request.profile) {
    const auto* before = champion ? &champion->code.measured : nullptr;
    const auto input = diagnosis_of(header_.environment, header_.request.load, current_.code.measured, before, current_.code.source, current_.code.flags);
    current_.findings = diagnose(input);
    weigh(current_.findings, header_.scores);
    current_.table = table_of(input);
  }
  auto untried = current_.findings;
  leave_out(untried, tried_in_vain(history_));
  for (const auto& f : untried)
    if (!f.remedies.empty() && current_.actions.size() < 3) current_.actions.push_back(f.remedies.front());
  if (current_.failed())
    for (const auto& hint : repairs_for(current_.verdict, current_.code.language)) current_.actions.push_back(hint.remedy);
  current_.reasoning = explain(current_, champion, j);
  current_.wall_seconds = std::chrono::duration<double>(clock::now() - attempt_started_).count();
  current_.finished = std::move(now);
  header_.code_seconds += current_.code_seconds;
  header_.build_seconds += current_.build_seconds;
  header_.verify_seconds += current_.verify_seconds;
  header_.time_seconds += current_.time_seconds;
  header_.profile_seconds += current_.profile_seconds;
  history_.push_back(std::move(current_));
  current_ = {};
  rank();
  header_.wall_seconds = seconds();
  return history_.back();
}

look_up loop::wanted_documentation() const {
  look_up wanted;
  if (history_.empty()) return wanted;
  for (const auto& f : history_.back().findings)
    for (const auto& e : f.proof)
      if (const auto name = explained_by(e); name != "remark" && name != "source" && !documentation_.contains(name) &&
                                             std::find(wanted.metrics.begin(), wanted.metrics.end(), name) == wanted.metrics.end())
        wanted.metrics.push_back(name);
  return wanted;
}

const iteration_record& loop::documented(const look_up& asked, const looked_up& answer) {
  for (const auto& name : asked.metrics) documentation_.emplace(name, std::nullopt);
  for (const auto& c : answer.known) documentation_[c.metric] = c;
  auto& last = history_.back();
  for (auto& f : last.findings) {
    f.documentation.clear();
    for (const auto& e : f.proof) {
      const auto known = documentation_.find(explained_by(e));
      if (known != documentation_.end() && known->second) f.documentation.push_back(*known->second);
    }
  }
  return last;
}

/// The last that was better than the best before it. After a refusal that chain is broken: then the fastest of all that passed.
void loop::rank() {
  header_.best_attempt = 0;
  const bool refused = std::any_of(history_.begin(), history_.end(), [](const auto& r) { return r.verdict.stage == verdict_stage::confirm; });
  double fastest = 0;
  for (const auto& r : history_) {
    const double speedup = r.code.measured.time.speedup.value;
    if (!r.passed() || (refused ? speedup <= fastest : !r.new_best)) continue;
    header_.best_attempt = r.number;
    fastest = speedup;
  }
}

const iteration_record* loop::best() const {
  for (const auto& r : history_)
    if (r.number == header_.best_attempt) return &r;
  return nullptr;
}

candidate loop::best_candidate() const {
  const auto* r = best();
  return r ? candidate(r->code) : candidate{};
}

std::string loop::stop_reason() const { return pragma::stop_reason(header_.request.stop, history_, seconds()); }

bool loop::still_confirmed() {
  if (confirmed_before_ > 0 && confirmed_before_ == header_.best_attempt) header_.confirmed = true;
  return header_.confirmed;
}

bool loop::confirmed(const confirmation& c, double confirm_seconds) {
  measured_again(c.limits);
  header_.confirm_seconds += confirm_seconds;
  refused_ = 0;
  header_.not_confirmed.clear();
  if (!c.verdict.established()) {
    header_.not_confirmed = c.verdict.reason;
    return true;
  }
  if (c.verdict.passed() && c.time.contended) {
    // Right once more, and no figure: what was measured on a quiet machine stays.
    const auto& clean = best()->code.measured.time;
    header_.final = c;
    header_.final.time = clean;
    header_.final.as_called = false;
    if (c.not_called.empty()) {
      header_.final.not_called = "the machine was busy when the drop-in was called";
      header_.final.call_doubt = doubt::machine_busy;
    }
    const auto used = !c.time.note.empty() ? c.time.note : std::to_string(c.time.blocks_accepted) + " of " + std::to_string(c.time.blocks_tried) + " pairs of samples were undisturbed";
    if (clean.contended) header_.not_confirmed = "the machine was too busy to time the winner: " + used;
    else header_.final.time.note += (clean.note.empty() ? "" : "; ") + std::string("measured in the search: while it was confirmed, ") + used;
    header_.confirmed = !clean.contended;
    return true;
  }
  if (c.verdict.passed()) {
    header_.confirmed = true;
    header_.final = c;
    return true;
  }
  for (auto& r : history_)
    if (r.number == header_.best_attempt) {
      r.verdict.stage = verdict_stage::confirm;
      r.verdict.reason = "passed at first, but failed in a fresh process with unseen seeds: " + c.verdict.reason;
      r.new_best = false;
      refused_ = r.number;
    }
  rank();
  return false;
}

void loop::finish(std::string state, std::string reason, std::string now) {
  header_.state = std::move(state);
  header_.stop_reason = std::move(reason);
  header_.finished = std::move(now);
  header_.wall_seconds = seconds();
  const double others = header_.load_seconds + header_.code_seconds + header_.build_seconds + header_.verify_seconds +
                        header_.time_seconds + header_.profile_seconds + header_.confirm_seconds;
  header_.overhead_seconds = std::max(0.0, header_.wall_seconds - others);
}

} // namespace pragma
