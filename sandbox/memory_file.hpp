// One memory file (memfd) for tensors: created here, mapped writable here, handed to other processes as a descriptor and
// then sealed so that nobody can map it writable again. Used by the reference and by the candidate's runner.
#pragma once

#include "base/error.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace pragma {

class memory_file {
public:
  memory_file() = default;
  memory_file(memory_file&& other) noexcept { *this = std::move(other); }
  memory_file& operator=(memory_file&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~memory_file() {
    if (data_) ::munmap(data_, size_);
    close_fd();
  }

  /// `bytes` of zeros (at least a page), close-on-exec. Pages are taken when they are touched.
  static expected<memory_file> create(const char* name, uint64_t bytes) {
    memory_file file;
    file.size_ = bytes ? bytes : 4096;
    file.fd_ = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file.fd_ < 0 || ::ftruncate(file.fd_, static_cast<off_t>(file.size_)) != 0)
      return fail(ec::io_error, std::string("cannot create shared memory for ") + name + ": " + std::strerror(errno));
    void* at = ::mmap(nullptr, file.size_, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd_, 0);
    if (at == MAP_FAILED)
      return fail(ec::io_error, std::string("cannot map shared memory for ") + name + ": " + std::strerror(errno));
    file.data_ = static_cast<std::byte*>(at);
    return file;
  }

  /// From now on it can only be mapped read-only and keeps its size; mappings made before stay as they are.
  expected<void> seal_writes() {
    if (::fcntl(fd_, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0)
      return fail(ec::unsupported, std::string("cannot seal shared memory: ") + std::strerror(errno), "Linux 5.1 or newer is needed");
    return {};
  }

  void close_fd() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  int fd() const { return fd_; }
  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

private:
  int fd_ = -1;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

} // namespace pragma
