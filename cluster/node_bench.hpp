// A node's side of the work without any actor: one workbench a run, and an order that is done on it. Used by the node's workers; thread-safe.
#pragma once

#include "actors/workbench.hpp"
#include "cluster/messages.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

namespace pragma {

/// The request for the device that the order was given: "cuda:1" makes it device 1. invalid_argument when that is of another backend.
expected<load_request> on_leased(load_request request, const std::string& device);

/// Who carries out the orders that a node is given. Thread-safe.
class order_bench {
public:
  virtual ~order_bench() = default;
  /// Never throws; what goes wrong is in the answer.
  virtual work_answer perform(const work_order& order, const std::string& device) = 0;
  /// The run is over: what is under way of it ends soon, as interrupted, and its reference process.
  virtual void forget(const std::string& run) = 0;
  /// All that is under way ends soon; nothing begins until begin().
  virtual void cancel() = 0;
  virtual void begin() = 0;
};

/// With this machine's hardware.
class node_bench : public order_bench {
public:
  /// `folder`: where task files are kept.
  node_bench(std::string node, std::filesystem::path folder) : node_(std::move(node)), folder_(std::move(folder)) {}

  work_answer perform(const work_order& order, const std::string& device) override;
  void forget(const std::string& run) override;
  void cancel() override;
  void begin() override;

private:
  struct bench {
    std::atomic<bool> cancel = false;     ///< before `work`, which looks at it
    std::shared_ptr<workbench> work;
    std::mutex loading;                   ///< two orders of one run load its task once
    bool loaded = false;
    std::string device;                   ///< where it is loaded; guarded by mutex_, too
    uint64_t used = 0;
  };
  std::shared_ptr<bench> bench_of(const std::string& run);
  expected<json> do_order(const work_order& order, const std::string& device);
  /// Other runs that live on this device leave it: their processes end, and start again with their next order. How many there were.
  size_t make_room(const std::string& device, const std::string& but_for_run);

  std::string node_;
  std::filesystem::path folder_;
  bool cancelled_ = false;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<bench>> benches_; ///< by run
  std::vector<std::weak_ptr<bench>> all_;   ///< also those that made room for others and are at work still
  uint64_t uses_ = 0;
};

} // namespace pragma
