#include "cli/cluster_text.hpp"

#include "base/text.hpp"

#include <map>
#include <set>

namespace pragma::cli {

namespace {

constexpr int expires_soon = 30; ///< days

std::string widened(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string validity(int days) {
  if (days < 0) return "";
  return days < expires_soon ? ", CERTIFICATE EXPIRES IN " + std::to_string(days) + " DAYS" : ", certificate valid " + std::to_string(days) + " days";
}

/// "PREFIX/RUN/NUMBER KIND" as "measuring RUN, job NUMBER".
std::string work_of(const std::string& job) {
  static const std::map<std::string, std::string> words{{"load", "loading the task of "}, {"verify", "compiling and checking "}, {"measure", "measuring "}, {"confirm", "confirming the best of "}};
  const auto run = job.find('/'), number = job.rfind('/'), kind = job.rfind(' ');
  if (run == std::string::npos || number == run || kind == std::string::npos || kind < number) return job;
  const auto word = words.find(job.substr(kind + 1));
  return (word == words.end() ? job.substr(kind + 1) + " " : word->second) + job.substr(run + 1, number - run - 1) + ", job " + job.substr(number + 1, kind - number - 1);
}

} // namespace

std::vector<std::string> status_lines(const cluster_status& s) {
  std::vector<std::string> lines;
  lines.push_back("head " + s.listen + ", pragma " + s.version + ", up " + format_seconds(s.up_seconds) + validity(s.certificate_days));
  if (!s.standby.empty()) lines.push_back("one of two heads, epoch " + std::to_string(s.epoch) + "; standby: " + s.standby);
  lines.push_back("work: " + std::to_string(s.in_flight) + " in flight, " + std::to_string(s.queued) + " queued, " + std::to_string(s.assigned) + " given out (mean wait " +
                  format_number(1e3 * s.mean_queue_seconds, 1) + " ms), " + std::to_string(s.requeued) + " queued again, " + std::to_string(s.duplicates) + " late answers dropped");
  if (s.members.empty()) lines.push_back("no node has joined: `pragma node --join HOST:PORT` on a machine with hardware");
  for (const auto& m : s.members) {
    const auto& n = m.node;
    const bool gone = n.facts.devices.empty();
    std::string head = "node " + printable(n.facts.name) + "  " + json(n.state).get<std::string>() + (gone && n.state != node_state::away ? ", away" : "") + (n.reason.empty() ? "" : ": " + printable(n.reason));
    head += "  pragma " + printable(n.facts.version) + ", heard " + format_seconds(m.silent_seconds) + " ago";
    if (m.round_trip_ms > 0) head += ", round trip " + format_number(m.round_trip_ms, 2) + " ms";
    lines.push_back(head + validity(m.certificate_days));
    if (n.state == node_state::quarantined) lines.push_back("  let it work again: pragma cluster release " + printable(n.facts.name));
    std::set<std::string> leased;
    for (const auto& d : n.facts.devices) {
      std::string doing = n.state == node_state::quarantined ? "quarantined" : "free";
      for (const auto& l : n.leases)
        if (l.device == d.id && !l.job.empty()) {
          leased.insert(l.job);
          doing = printable(work_of(l.job)) + ", for " + format_seconds(std::max(0.0, s.up_seconds - l.since));
        }
      lines.push_back("  " + widened(printable(d.id), 8) + " " + printable(d.model) + (d.memory_bytes ? ", " + format_bytes(static_cast<double>(d.memory_bytes)) : "") + "  [" + doing + "]");
      if (!d.details.empty()) lines.push_back("           " + printable(join(d.details, "; ")));
      lines.push_back("           tools: " + (d.tools.empty() ? "none" : printable(join(d.tools, ", "))));
    }
    for (const auto& missing : m.missing) lines.push_back("  without " + printable(missing));
    for (const auto& j : n.jobs)
      if (!leased.contains(j)) lines.push_back("  " + printable(work_of(j)));
    lines.push_back("  " + std::to_string(n.done) + " jobs done, " + std::to_string(n.failed) + " failed");
  }
  if (!s.runs.empty()) lines.push_back("");
  for (const auto& r : s.runs)
    if (r.state == "running")
      lines.push_back("run " + r.id + "  " + printable(r.task) + ", attempt " + std::to_string(r.attempts) + (r.speedup > 0 ? ", best " + format_number(r.speedup, 3) + "x" : "") +
                      (r.owner.empty() ? "" : ", of " + printable(r.owner)));
  return lines;
}

} // namespace pragma::cli
