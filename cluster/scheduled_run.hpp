// One run as the scheduler keeps it in memory: its state and its latest news. For scheduler.cpp alone.
#pragma once

#include "actors/messages.hpp"
#include "actors/run_log.hpp"
#include "base/utc.hpp"
#include "cluster/messages.hpp"

#include <deque>
#include <mutex>
#include <optional>
#include <string>

namespace pragma {

inline constexpr size_t kept_events = 500;                ///< of a run; who was away longer reads the record

/// The observer writes, the scheduler reads.
struct scheduled_run {
  std::mutex mutex;
  std::string id, task, state = "running", owner;
  int priority = 0;
  std::deque<json> events;                                ///< run_event
  uint64_t first = 0;                                     ///< number of events.front()
  pragma::failure failure;
  int attempts = 0;
  double speedup = 0;
  std::optional<run_log> log;                             ///< what is told is kept beside the record

  void add(const run_event& event) {
    const std::lock_guard lock(mutex);
    if (event.what == "iteration") {
      attempts = event.iteration.number;
      if (event.iteration.new_best) speedup = event.iteration.code.measured.time.speedup.value;
    }
    if (log) log->add(line_of(event));
    events.push_back(json(event));
    if (events.size() > kept_events) {
      events.pop_front();
      ++first;
    }
  }
  /// At the end: what was confirmed, not what the search saw; 0: nothing.
  void settle(double confirmed) {
    const std::lock_guard lock(mutex);
    speedup = confirmed;
  }
  void note(const std::string& text) {
    run_event event;
    event.what = "note";
    event.text = text;
    event.time = utc_now();
    add(event);
  }
  void end(const std::string& how, pragma::failure why = {}) {
    const std::lock_guard lock(mutex);
    state = how;
    failure = std::move(why);
  }
};

} // namespace pragma
