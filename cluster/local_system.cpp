#include "cluster/local_system.hpp"

#include "cluster/log.hpp"

#include <atomic>
#include <cstdio>

#include <unistd.h>

namespace pragma {

namespace {

std::atomic<bool> used = false;

} // namespace

local_system::local_system(size_t threads) : config_(std::make_unique<caf::actor_system_config>()) {
  used = true;
  config_->set("scheduler.max-threads", threads);
  config_->set("scheduler.policy", caf::atom("sharing"));
  system_ = std::make_unique<caf::actor_system>(*config_);
}

local_system::~local_system() {
  (void)system_.release();
  (void)config_.release();
}

bool local_system_was_used() { return used; }

void leave_process(int code) {
  flush_log();
  std::fflush(nullptr);
  ::_exit(code);
}

} // namespace pragma
