#include "cli/cluster_text.hpp"

#include "base/text.hpp"

namespace pragma::cli {

namespace {

constexpr int expires_soon = 30; ///< days

std::string padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string validity(int days) {
  if (days < 0) return "";
  return days < expires_soon ? ", CERTIFICATE EXPIRES IN " + std::to_string(days) + " DAYS" : ", certificate valid " + std::to_string(days) + " days";
}

std::string work_of(const std::string& job) { // "PREFIX/RUN/NUMBER kind"
  const auto slash = job.find('/');
  return slash == std::string::npos ? job : job.substr(slash + 1);
}

} // namespace

std::vector<std::string> status_lines(const cluster_status& s) {
  std::vector<std::string> lines;
  lines.push_back("head " + s.listen + ", pragma " + s.version + ", up " + format_seconds(s.up_seconds) + validity(s.certificate_days));
  lines.push_back("work: " + std::to_string(s.in_flight) + " in flight, " + std::to_string(s.queued) + " queued, " + std::to_string(s.assigned) + " given out (mean wait " +
                  format_seconds(s.mean_queue_seconds) + "), " + std::to_string(s.requeued) + " queued again, " + std::to_string(s.duplicates) + " late answers dropped");
  if (s.members.empty()) lines.push_back("no node has joined: `pragma node --join HOST:PORT` on a machine with hardware");
  for (const auto& m : s.members) {
    const auto& n = m.node;
    const auto state = json(n.state).get<std::string>();
    lines.push_back("");
    lines.push_back("node " + printable(n.facts.name) + "  " + (n.facts.devices.empty() ? "away, " : "") + state + (n.reason.empty() ? "" : ": " + printable(n.reason)) + "  pragma " +
                    printable(n.facts.version) + ", heard " + format_seconds(m.silent_seconds) + " ago, round trip " + format_number(m.round_trip_ms, 2) + " ms" +
                    validity(m.certificate_days));
    if (n.state == node_state::quarantined) lines.push_back("  let it work again: pragma cluster release " + printable(n.facts.name));
    for (const auto& d : n.facts.devices) {
      std::string lease = "free";
      for (const auto& l : n.leases)
        if (l.device == d.id && !l.job.empty()) lease = "measuring " + printable(work_of(l.job));
      lines.push_back("  " + padded(printable(d.id), 8) + " " + printable(d.model) + (d.memory_bytes ? ", " + format_bytes(static_cast<double>(d.memory_bytes)) : "") + "  [" + lease + "]");
      if (!d.details.empty()) lines.push_back("           " + printable(join(d.details, "; ")));
      lines.push_back("           tools: " + printable(join(d.tools, ", ")));
    }
    for (const auto& missing : m.missing) lines.push_back("  without " + printable(missing));
    for (const auto& j : n.jobs) lines.push_back("  at work: " + printable(work_of(j)));
    lines.push_back("  " + std::to_string(n.done) + " jobs done, " + std::to_string(n.failed) + " failed");
  }
  if (!s.runs.empty()) lines.push_back("");
  for (const auto& r : s.runs)
    if (r.state == "running")
      lines.push_back("run " + r.id + "  " + printable(r.task) + ", attempt " + std::to_string(r.attempts) + (r.speedup > 0 ? ", best " + format_number(r.speedup, 3) + "x" : ""));
  return lines;
}

} // namespace pragma::cli
