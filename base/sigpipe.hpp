// Keeps SIGPIPE from ending the process while something writes to a pipe or socket whose other end may be gone. Used by the
// subprocess runner, the HTTP client and the crawler.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>
#include <pthread.h>

namespace pragma {

/// Blocks SIGPIPE in this thread while it lives and swallows one that came meanwhile. OpenSSL writes with write(), so that
/// libcurl's CURLOPT_NOSIGNAL (which threads need) is not enough.
class sigpipe_guard {
public:
  sigpipe_guard() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~sigpipe_guard() {
    if (!was_pending_) {
      const timespec now{0, 0};
      while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  sigpipe_guard(const sigpipe_guard&) = delete;
  sigpipe_guard& operator=(const sigpipe_guard&) = delete;

private:
  sigset_t pipe_{}, before_{};
  bool was_pending_ = false;
};

} // namespace pragma
