// Where a program lies, and how a process ended, in words.
#include "base/subprocess.hpp"

#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace pragma {

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::string list = path ? path : "/usr/local/bin:/usr/bin:/bin";
  for (size_t start = 0; start <= list.size();) {
    auto end = list.find(':', start);
    if (end == std::string::npos) end = list.size();
    const std::string full = list.substr(start, end - start) + "/" + name;
    if (end > start && ::access(full.c_str(), X_OK) == 0) return full;
    start = end + 1;
  }
  return "";
}

std::string describe_end(const process_result& result, double limit_seconds) {
  if (result.timed_out)
    return limit_seconds > 0 ? "timed out after " + std::to_string(static_cast<int>(limit_seconds)) + " s" : "timed out";
  if (result.cancelled) return "cancelled";
  if (result.out_of_memory) return "killed: the machine ran out of memory";
  if (result.signal) {
    const char* abbreviation = ::sigabbrev_np(result.signal);
    const char* description = ::sigdescr_np(result.signal);
    return std::string("killed by SIG") + (abbreviation ? abbreviation : "?") + " (" + (description ? description : "unknown") + ")";
  }
  return "exit code " + std::to_string(result.exit_code);
}

} // namespace pragma
