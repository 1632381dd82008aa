// Landlock without a library: the file and network rules of a sandboxed child, as a ruleset made before fork and
// entered after it. Used by sandbox.cpp only. Where the kernel has no Landlock, abi() is 0 and nothing is restricted.
#pragma once

#include <cstdint>
#include <filesystem>

namespace pragma::landlock {

enum class access { read, execute, write };  ///< execute includes read; write includes both

/// The kernel's Landlock version; 0 when it has none or it is switched off.
int abi();

/// Everything that the kernel can forbid is forbidden except what allow() opens. Closed with this object.
class ruleset {
public:
  ruleset();
  ruleset(const ruleset&) = delete;
  ruleset& operator=(const ruleset&) = delete;
  ~ruleset();
  bool valid() const { return fd_ >= 0; }
  /// A folder with everything below it, or a file. A path that does not exist is skipped (there is nothing to open).
  void allow(const std::filesystem::path& path, access what);
  void allow(int fd, access what);
  /// In the child, after no_new_privs: async-signal-safe.
  bool enter() const;

private:
  int fd_ = -1;
  uint64_t handled_ = 0;
};

} // namespace pragma::landlock
