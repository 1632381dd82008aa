#include "cluster/service.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;

constexpr int exit_internal = 70;
constexpr useconds_t look_microseconds = 20'000, crash_pause = 100'000;

} // namespace

int keep_serving(const std::function<int()>& serve, const std::atomic<bool>& stop, const std::function<void(const std::string&)>& say, int most) {
  std::deque<clock::time_point> crashes;
  for (;;) {
    const auto parent = ::getpid();
    const auto child = ::fork();
    if (child < 0) return say(std::string("cannot start a process: ") + std::strerror(errno)), exit_internal;
    if (child == 0) {
      ::setpgid(0, 0); // Ctrl-C is for the parent, which hands it on once
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(exit_internal);
      ::_exit(serve());
    }
    int status = 0;
    for (bool told = false;;) {
      const auto ended = ::waitpid(child, &status, WNOHANG);
      if (ended == child || (ended < 0 && errno != EINTR)) break;
      if (stop && !told) told = ::kill(child, SIGTERM) == 0;
      ::usleep(look_microseconds);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == exit_begin_anew) {
      if (stop) return 0;
      ::usleep(crash_pause);
      continue;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) != exit_internal) return WEXITSTATUS(status);
    if (stop) return exit_internal;
    crashes.push_back(clock::now());
    while (clock::now() - crashes.front() > std::chrono::minutes(1)) crashes.pop_front();
    const auto how = WIFSIGNALED(status) ? std::string("signal ") + ::strsignal(WTERMSIG(status)) : std::string("an internal error");
    if (static_cast<int>(crashes.size()) > most) return say("ended by " + how + ", for the " + std::to_string(crashes.size()) + "th time within a minute: giving up"), exit_internal;
    say("ended by " + how + "; starting again: what was recorded is there");
    ::usleep(crash_pause * static_cast<useconds_t>(crashes.size()));
  }
}

void tell_service_manager(const std::string& state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (!path || (*path != '/' && *path != '@') || std::strlen(path) >= sizeof to.sun_path) return;
  std::strcpy(to.sun_path, path);
  if (*path == '@') to.sun_path[0] = 0; // abstract
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  (void)::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to), size);
  ::close(fd);
}

} // namespace pragma
