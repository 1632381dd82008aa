#include "sandbox/landlock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// The system's header may be older than the kernel, so the interface (stable since Linux 5.13) is spelt out here.
namespace pragma::landlock {

namespace {

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

constexpr unsigned version_flag = 1;      // LANDLOCK_CREATE_RULESET_VERSION
constexpr int path_beneath = 1;           // LANDLOCK_RULE_PATH_BENEATH

constexpr uint64_t fs_execute = 1u << 0, fs_write_file = 1u << 1, fs_read_file = 1u << 2, fs_read_dir = 1u << 3;
constexpr uint64_t fs_abi1 = (1u << 13) - 1, fs_refer = 1u << 13, fs_truncate = 1u << 14, fs_ioctl_dev = 1u << 15;
constexpr uint64_t net_tcp = 3;           // bind and connect
constexpr uint64_t scope_all = 3;         // abstract unix sockets and signals to processes outside

struct ruleset_attributes {
  uint64_t handled_fs, handled_net, scoped;
};
struct path_attributes {
  uint64_t allowed;
  int32_t parent_fd;
} __attribute__((packed));

/// Numbers that inherited descriptors get in a child are small: stay out of their way.
constexpr int above_child_fds = 500;

} // namespace

int abi() {
  static const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, version_flag);
  return version > 0 ? static_cast<int>(version) : 0;
}

ruleset::ruleset() {
  const int version = abi();
  if (version < 1) return;
  handled_ = fs_abi1;
  if (version >= 2) handled_ |= fs_refer;
  if (version >= 3) handled_ |= fs_truncate;
  if (version >= 5) handled_ |= fs_ioctl_dev;
  const ruleset_attributes attributes{handled_, version >= 4 ? net_tcp : 0, version >= 6 ? scope_all : 0};
  const size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  const int made = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, size, 0));
  if (made < 0) return;
  fd_ = ::fcntl(made, F_DUPFD_CLOEXEC, above_child_fds);
  ::close(made);
}

ruleset::~ruleset() {
  if (fd_ >= 0) ::close(fd_);
}

void ruleset::allow(int fd, access what) {
  struct stat info {};
  if (fd_ < 0 || ::fstat(fd, &info) != 0) return;
  uint64_t rights = fs_read_file | fs_read_dir;
  if (what != access::read) rights |= fs_execute;
  if (what == access::write) rights = handled_ & ~((1u << 6) | (1u << 11)); // no device nodes
  const uint64_t for_files = fs_execute | fs_write_file | fs_read_file | fs_truncate | fs_ioctl_dev;
  if (!S_ISDIR(info.st_mode)) rights &= for_files;
  const path_attributes attributes{rights & handled_, fd};
  ::syscall(SYS_landlock_add_rule, fd_, path_beneath, &attributes, 0);
}

void ruleset::allow(const std::filesystem::path& path, access what) {
  if (fd_ < 0) return;
  const int target = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (target < 0) return;
  allow(target, what);
  ::close(target);
}

bool ruleset::enter() const {
  return fd_ < 0 || ::syscall(SYS_landlock_restrict_self, fd_, 0) == 0;
}

} // namespace pragma::landlock
