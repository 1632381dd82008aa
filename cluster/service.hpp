// What a service needs around its work: a parent that starts it again when it crashes, and words to systemd. No CAF.
#pragma once

#include <atomic>
#include <functional>
#include <string>

namespace pragma {

/// Exit code of a process that wants to begin anew: no crash, and no end.
inline constexpr int exit_begin_anew = 75;

/// Runs `serve` in a child process and gives its exit code. When the child ends with exit_begin_anew, it is started again; when it crashes (a signal, or exit code 70: internal), so, too, at most
/// `most` times within a minute; what it had recorded is there. `stop` is handed on as SIGTERM; the child dies with this process. Call it before any
/// thread is started.
int keep_serving(const std::function<int()>& serve, const std::atomic<bool>& stop, const std::function<void(const std::string&)>& say, int most = 10);

/// "READY=1", "WATCHDOG=1": to systemd, where it started us and wants to know ($NOTIFY_SOCKET).
void tell_service_manager(const std::string& state);

} // namespace pragma
