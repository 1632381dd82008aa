// A user's side of a head: runs, status, questions. Blocking; a lost link is dialled again. No CAF in this header.
#pragma once

#include "cluster/messages.hpp"
#include "cluster/address.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

namespace pragma {

class head_client {
public:
  /// Errors as link::dial()'s. Of several heads, the one that serves.
  static expected<std::unique_ptr<head_client>> connect(const std::vector<address>& heads, const std::optional<std::filesystem::path>& tls);
  ~head_client();

  /// Begins a run and stays with it until it has ended, over restarts of the head; the first Ctrl-C (`stop`) asks the head to end it.
  /// Gives the record. remote_failed when the head is away for `patience_seconds`.
  expected<run_result> run(run_order order, const std::function<void(const run_event&)>& on_event, const std::atomic<bool>& stop,
                           double patience_seconds = 120);
  /// Stays with a run that is there already, as run() does.
  expected<run_result> attach(const std::string& run, const std::function<void(const run_event&)>& on_event, const std::atomic<bool>& stop,
                              double patience_seconds = 120);
  /// At once, whatever is in flight; it can be resumed. False: it was not at work.
  expected<bool> cancel(const std::string& run);
  expected<run_result> record(const std::string& run);
  expected<std::vector<cluster_run>> runs();
  /// What a run does, from event number `from` on; at once, with none where there is nothing new.
  expected<run_news> news(const std::string& run, uint64_t from);
  expected<cluster_status> status();
  expected<void> release(const std::string& node);
  /// `question`: {"text", "count", "profiler", "hardware"}; the answer is a library_answer as JSON.
  expected<json> ask(const json& question);

private:
  struct impl;
  explicit head_client(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

} // namespace pragma
