// What monitoring asks a head, on a port of its own without TLS: /metrics for Prometheus, /healthz (it lives), /readyz (it takes work). No CAF.
#pragma once

#include "cluster/address.hpp"
#include "cluster/door.hpp"
#include "cluster/messages.hpp"

#include <memory>

namespace pragma {

/// Of a certificate: from then on status, log and metrics warn.
inline constexpr int expiry_warning_days = 30;

class metrics_server {
public:
  /// io_error where it cannot listen.
  static expected<std::unique_ptr<metrics_server>> open(const address& where);
  ~metrics_server();
  void ready(bool takes_work);
  /// It lives, and another head serves.
  void stands_by();
  void set(const cluster_status& s, const door_counts& d);
  void set(const std::vector<cluster_run>& runs);
  /// An agent did not answer: /healthz says so until the next set().
  void set_unwell();

private:
  struct impl;
  explicit metrics_server(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

} // namespace pragma
