// What a person sees of a run: one line per attempt, a status line in between, the summary at the end.
#pragma once

#include "actors/messages.hpp"
#include "cli/terminal.hpp"

#include <chrono>
#include <filesystem>
#include <optional>

namespace pragma::cli {

class progress {
public:
  progress(terminal& out, int attempts) : out_(out), attempts_(attempts), start_(std::chrono::steady_clock::now()) {}
  void on_event(const run_event& event);

private:
  terminal& out_;
  int attempts_;
  std::chrono::steady_clock::time_point start_;
  double best_ = 0;
};

/// "attempt 3 iteration". An event's own count goes on as soon as an attempt is recorded; the record's does not.
std::string step_text(const run_event& event);
/// "2.31x (95% 2.25-2.38)".
std::string speedup_text(const interval& speedup);
/// What a verification looked at, the seeds of the task's own inputs counted: "own inputs of 5 seeds; large values; two runs give the same bits".
std::string checked_text(const std::vector<std::string>& checked);
/// Where the headline's time lies on the measured roofline, as the report says it too; without a share: not known.
roofline_point roofline_as_reported(const run_header& h);
/// What each finding says, its evidence and remedies; first what limits, where none explains the time. `scores`: the rules' by which their confidences were weighed.
void print_findings(terminal& out, const std::vector<finding>& findings, const profile& measured, const std::vector<rule_score>& scores = {});
/// Why a run without a confirmed kernel says nothing of its candidates; nothing where it does.
std::optional<std::string> not_established(const run_result& result);
/// 0: confirmed; else what a script can use: interrupted, the machine's (nothing was established: try again), the candidates'.
int exit_code_of_run(const run_result& result);
void print_summary(terminal& out, const run_result& result, const std::filesystem::path& folder, const std::string& drop_in);

} // namespace pragma::cli
