// The process in which the reference runs (reference/python/reference.py), and its protocol: a JSON object a line in both directions, memory files
// over a socket. Used by reference.cpp only.
#pragma once

#include "base/subprocess.hpp"
#include "base/unique_fd.hpp"
#include "reference/reference.hpp"

#include <initializer_list>
#include <optional>

namespace pragma {

class reference_process {
public:
  /// One attempt with one Python, which proves that it imports Torch. tool_failed where it does not.
  static expected<reference_process> start(const reference_options& options, const python_info& python);

  /// A command and its answer. `doing` completes "while ..." in messages. task_invalid or limit_exceeded when the process ended, timeout (it is ended then),
  /// interrupted, or what the answer says.
  expected<json> exchange(const json& command, const std::string& doing, double timeout_seconds);
  /// The one hot command: so many calls of the reference.
  expected<void> run(int64_t calls, const std::string& doing, double timeout_seconds);
  expected<void> send_files(std::initializer_list<int> files);
  int pid() const { return child_ ? child_->pid() : -1; }

  python_info python;                         ///< as the process itself said
  std::string torch_capability, blas, device_name;

private:
  explicit reference_process(const reference_options& options) : options_(options) {}
  expected<std::string> wait(const std::string& doing, double timeout_seconds);
  expected<void> ready() const;
  tl::unexpected<error> died(const std::string& doing);

  reference_options options_;
  std::optional<child_process> child_;
  unique_fd channel_;
  std::string ended_;                         ///< how, for the message of every later call
};

} // namespace pragma
