// The Conductor's brief: what is told of the last version, the best one, and all that was tried before.
#include "diagnosis/brief.hpp"

#include "base/text.hpp"
#include "diagnosis/conductor.hpp"

#include <algorithm>
#include <set>

namespace pragma {

namespace {

constexpr size_t max_meanings = 10;

std::string verdict_of(const iteration_record& r) {
  if (!r.established()) return "not established";
  if (!r.passed()) return "failed at " + r.stage() + ": " + printable(r.verdict.reason);
  if (r.new_best) return r.against_best.value > 0 ? "new best" : "first correct version";
  return r.against_best.value > 0 && r.against_best.high < 1 ? "slower" : "no difference";
}

/// What the Coder was asked to do first when it wrote the attempt after `before`; of the finding that it answers where it says so.
std::string asked_for(const iteration_record& before, const iteration_record& attempt) {
  for (const auto& f : before.findings)
    if (!attempt.code.answers.empty() && json(f.what).get<std::string>() == attempt.code.answers && !f.remedies.empty()) return f.remedies.front();
  const auto actions = actions_of(before);
  return before.passed() && !actions.empty() ? actions.front() : std::string();
}

void read_verdict(const verdict& v, brief& b) {
  b.tolerance = v.tolerance;
  if (v.passed() || v.stage == verdict_stage::compare) b.worst_error = v.worst_error;
}

/// All wrong elements where they are few, and who judged them.
std::string wrong_elements(const verdict& v) {
  std::string text;
  for (const auto& m : v.mismatches) {
    if (m.elements.empty() || static_cast<int64_t>(m.elements.size()) < m.wrong_elements) continue;
    text += "\nAll wrong elements of " + m.output + " (" + m.input_set + "), judged by " + m.judge + ":";
    for (const auto& e : m.elements) text += "\n  " + m.output + printable(e);
  }
  return text;
}

void add_meanings(brief& b) {
  std::set<std::string> seen;
  for (const auto& f : b.findings) // documentation goes before our own table
    for (const auto& c : f.documentation)
      if (b.meanings.size() < max_meanings && seen.insert(c.metric).second) b.meanings.push_back({c.metric, c.meaning, c.reading, c.url});
  for (const auto& f : b.findings)
    for (const auto& e : f.proof)
      if (const auto* meaning = find_meaning(explained_by(e)); meaning && b.meanings.size() < max_meanings && seen.insert(meaning->name).second)
        b.meanings.push_back({meaning->name, meaning->meaning, meaning->reading, meaning->source});
}

} // namespace

std::string same_elements(const iteration_record& failed, const iteration_record* before) {
  if (!before || failed.verdict.stage != verdict_stage::compare || before->verdict.stage != verdict_stage::compare) return {};
  const auto places = [](const iteration_record& r) {
    std::set<std::string> all;
    for (const auto& m : r.verdict.mismatches)
      for (const auto& e : m.elements) all.insert(m.input_set.substr(0, m.input_set.find(',')) + " " + m.output + printable(e.substr(0, e.find(" is "))));
    return all;
  };
  const auto now = places(failed), then = places(*before);
  if (now.empty() || now != then) return {};
  return "The same elements are wrong as in attempt " + std::to_string(before->number) + ": " + join({now.begin(), now.end()}, "; ") + ".";
}

std::vector<past_attempt> past_attempts(std::span<const iteration_record> history) {
  std::vector<past_attempt> all;
  const iteration_record* best = nullptr;
  for (const auto& r : history) {
    past_attempt p;
    p.number = r.number;
    p.idea = r.code.rationale;
    p.verdict = verdict_of(r);
    p.against_best = r.passed() ? r.against_best : interval{};
    p.answers = r.code.answers;
    if (best) p.predicted = predicted_ratio(best->findings, r.code.answers);
    all.push_back(std::move(p));
    if (r.new_best) best = &r;
  }
  return all;
}

std::set<std::string> tried_in_vain(std::span<const iteration_record> history) {
  std::set<std::string> vain;
  for (size_t i = 1; i < history.size(); ++i)
    if (history[i].passed() && !history[i].new_best)
      if (auto asked = asked_for(history[i - 1], history[i]); !asked.empty()) vain.insert(std::move(asked));
  return vain;
}

void leave_out(std::vector<finding>& findings, const std::set<std::string>& remedies) {
  for (auto& f : findings) std::erase_if(f.remedies, [&](const std::string& r) { return remedies.count(r) != 0; });
}

brief make_brief(int attempt, const iteration_record* last, const iteration_record* best, const std::string& backend, std::span<const iteration_record> history, int attempts) {
  brief b;
  b.attempt = attempt;
  if (attempts > 0) b.attempts_left = std::max(1, attempts - attempt + 1);
  b.past = past_attempts(history);
  const auto vain = tried_in_vain(history);
  if (!last && backend != "cpu") {
    b.actions = {"Write a correct version first: one kernel for the whole of forward() where that is possible, contiguous blocks with masks at the borders, each input read once, each output written once, enough programs to fill the device."};
  } else if (!last) {
    b.actions = {"Write a correct version first: plain loops over contiguous memory that the compiler can vectorise, each input read once, each output written once."};
  } else {
    b.has_code = true;
    b.code = last->code;
    read_verdict(last->verdict, b);
    if (!last->established()) {
      b.failure_stage = last->stage();
      b.failure = last->verdict.reason + "\nThis says nothing of the code: it may be right and fast.";
    } else if (!last->passed()) {
      const auto& v = last->verdict;
      b.failure_stage = last->stage();
      b.failure = v.reason + wrong_elements(v) + (v.log.empty() ? "" : "\n" + v.log);
      const auto* before = history.size() > 1 ? &history[history.size() - 2] : nullptr;
      b.repairs = repairs_for(v, last->code.language);
      if (auto again = same_elements(*last, before); !again.empty()) b.repairs.insert(b.repairs.begin(), {v.reason, std::move(again), "Take another way than the last time: what was changed there did not touch the cause."});
    }
    if (last->passed()) b.reasoning = comparison_of(*last); // of a failure part 2 says all
    b.actions = actions_of(*last);
    std::erase_if(b.actions, [&](const std::string& a) { return vain.count(a) != 0; });
  }
  if (best) {
    b.has_best = true;
    b.best = best->code;
  }
  if (last && last->passed()) b.findings = last->findings;
  else if (best) b.findings = best->findings; // a failed version has no profile: the best one's still says where the time goes
  b.table = last && last->passed() ? last->table : best ? best->table : time_table{};
  leave_out(b.findings, vain);
  add_meanings(b);
  return b;
}

} // namespace pragma
