// What hostile code may do, by policy. All work the same as root and as an ordinary user: a uid of its own when we are root,
// no-new-privileges, rlimits, Landlock where the kernel has it, and a seccomp filter (for the candidate an allow-list without
// open, exec, fork, sockets, kill). docs/sandbox.md.
#pragma once

#include "base/subprocess.hpp"

#include <filesystem>

namespace pragma {

enum class sandbox_policy {
  compiler,   ///< may run the tool chain's own programs, read system folders, write only to `scratch`; also the check of a drop-in in C++
  candidate,  ///< computes; threads allowed, nothing else
  profiler,   ///< a candidate under valgrind or perf: reads system folders, writes only to `scratch`, no network
  device,     ///< a candidate in Python on a device: as profiler, and the files of the device's driver
  device_profiler ///< the same under a device's profiler (ncu), which also needs semaphores and shared memory of its own
};

struct sandbox_options {
  sandbox_policy policy = sandbox_policy::candidate;
  bool threads = true;             ///< candidate: it may start threads
  std::filesystem::path scratch;   ///< the only folder that may be written (all but candidate); made accessible to the other uid
  std::vector<std::filesystem::path> readable; ///< further files or folders that may be read
  std::vector<std::filesystem::path> writable; ///< further files or folders that may be written: those of a driver, a cache
};

/// Adds the policy to a process_spec: before_exec, limits, a clean environment.
expected<void> apply_sandbox(process_spec& spec, const sandbox_options& options);

/// Gives a folder and all that lies in it to generated code's uid, and to nobody else; where that is our own, nothing is changed. Links are not followed. What cannot be given stays ours, and
/// cannot be written there.
void give_to_generated_code(const std::filesystem::path& folder);

/// Where generated code's uid, which is another one than root's, is stopped on the way to `path`: a folder that it may not pass ("/root"), or the file itself. Empty: nowhere.
std::filesystem::path barred_at(const std::filesystem::path& path);

/// What protects on this machine, for `pragma doctor`: e.g. {"seccomp": "yes", "landlock": "abi 4", "uid": "drops to 65534"}.
std::vector<std::pair<std::string, std::string>> sandbox_facts();

} // namespace pragma
