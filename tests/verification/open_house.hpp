// What a sandbox has to keep a hostile module from, and modules that try. For python_hostile_test.cpp.
#pragma once

#include "drop_in/drop_in.hpp"
#include "execution/contention.hpp"
#include "execution/runner_process.hpp"
#include "tests/fixtures/python_fixture.hpp"
#include "tests/fixtures/skip.hpp"

#include <arpa/inet.h>
#include <cstdlib>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace pragma::test {

/// A folder that anybody may read and write, with a file in it, and services that anybody may talk to: only a sandbox keeps a module away.
struct open_house {
  temp_dir folder = std::move(*temp_dir::create("pragma-test-open-", 0777));
  std::vector<int> sockets;
  int port = 0;
  std::string path(const char* name) const { return (folder.path() / name).string(); }

  open_house() {
    ::chmod(folder.path().c_str(), 0777);
    REQUIRE(write_file_atomic(folder.path() / "canary", "canary"));
    ::chmod(path("canary").c_str(), 0644);
    const int tcp = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    REQUIRE(::bind(tcp, reinterpret_cast<sockaddr*>(&any), size) == 0);
    REQUIRE(::listen(tcp, 8) == 0);
    ::getsockname(tcp, reinterpret_cast<sockaddr*>(&any), &size);
    port = ntohs(any.sin_port);
    sockets = {tcp, local("stream", SOCK_STREAM), local("datagram", SOCK_DGRAM)};
    REQUIRE(::listen(sockets[1], 8) == 0);
  }
  ~open_house() {
    for (int s : sockets) ::close(s);
  }
  int local(const char* name, int type) const {
    const int s = ::socket(AF_UNIX, type, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path(name).copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(s, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    ::chmod(path(name).c_str(), 0777);
    return s;
  }
};

/// Tries one thing after the other, once, and notes what it could do.
inline const char* attempts = R"(import ctypes, os, socket, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
PARENT, HOUSE, HERE, RUNNER = os.getppid(), "@HOUSE@", os.path.dirname(os.path.abspath(__file__)), sys.argv[0]
allowed = []

def attempt(name, action):
    try:
        if action() is not False:
            allowed.append(name)
    except (OSError, subprocess.SubprocessError, ValueError):
        pass

def opens(path, mode):
    with open(path, mode) as f:
        f.write("x") if mode in "wa" else f.read(1)

def memory_of(pid):
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb") as memory:
        memory.seek(int(maps.readline().split("-")[0], 16))
        return len(memory.read(16)) > 0

def local(kind, path):
    s = socket.socket(socket.AF_UNIX, kind)
    s.connect(path) if kind == socket.SOCK_STREAM else s.sendto(b"hello", path)

# Connects without connect().
def fast_open(family, call):
    s = socket.socket(family, socket.SOCK_STREAM)
    address = ("127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1", @PORT@)
    s.sendto(b"hello", 0x20000000, address) if call == "sendto" else s.sendmsg([b"hello"], [], 0x20000000, address)

def vm_read(pid):
    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    data = ctypes.create_string_buffer(16)
    mine, other = Piece(ctypes.cast(data, ctypes.c_void_p), 16), Piece(0x400000, 16)
    return libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(other), 1, 0) >= 0 or ctypes.get_errno() == 14  # EFAULT

def shell(command):
    subprocess.run(["/bin/sh", "-c", command], timeout=20, stderr=subprocess.DEVNULL, check=True)

def try_all():
    attempt("TCP", lambda: socket.create_connection(("127.0.0.1", @PORT@), 2))
    attempt("IPv6 socket", lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
    attempt("UDP socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    attempt("MPTCP socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
    attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
    attempt("packet socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
    attempt("local service", lambda: local(socket.SOCK_STREAM, HOUSE + "/stream"))
    attempt("local datagram", lambda: local(socket.SOCK_DGRAM, HOUSE + "/datagram"))
    attempt("raw local datagram", lambda: local(socket.SOCK_RAW, HOUSE + "/datagram"))
    attempt("datagram pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
    attempt("raw pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW))
    for family in (socket.AF_INET, socket.AF_INET6):
        attempt("fast open of family %d" % family, lambda: fast_open(family, "sendto"))
        attempt("fast open by sendmsg of family %d" % family, lambda: fast_open(family, "sendmsg"))
    attempt("key socket", lambda: socket.socket(15, socket.SOCK_RAW, 2))
    attempt("AX.25 socket", lambda: socket.socket(3, socket.SOCK_DGRAM, 0))
    attempt("io_uring", lambda: libc.syscall(425, 8, ctypes.create_string_buffer(240)) >= 0)
    for path in (HOUSE, "/tmp", "/var/tmp", "/dev/shm", HERE, os.path.dirname(RUNNER), os.path.expanduser("~root"), "/"):
        attempt("write " + path, lambda: opens(path + "/pragma-was-here", "w"))
    for path in (__file__, HERE + "/task/task.py", os.path.dirname(HERE) + "/task/task.py", RUNNER):
        attempt("append to " + path, lambda: opens(path, "a"))
        attempt("replace " + path, lambda: os.rename("own", path))
        attempt("remove " + path, lambda: os.unlink(path))
    attempt("shell writes", lambda: shell("echo x > %s/from-a-shell" % HOUSE))
    attempt("shell reads", lambda: shell("cat %s/canary > copied" % HOUSE))
    attempt("read", lambda: opens(HOUSE + "/canary", "r"))
    attempt("read by link", lambda: (os.symlink(HOUSE + "/canary", "link"), opens("link", "r")))
    attempt("passwd", lambda: opens("/etc/passwd", "r"))
    for pid in [PARENT] + [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
        attempt("memory of %d" % pid, lambda: memory_of(pid))
    attempt("environment of parent", lambda: opens("/proc/%d/environ" % PARENT, "r"))
    for fd in range(1024):
        attempt("file %d of parent" % fd, lambda: os.close(os.open("/proc/%d/fd/%d" % (PARENT, fd), os.O_RDONLY)))
    attempt("process_vm_readv", lambda: vm_read(PARENT))
    attempt("PTRACE_ATTACH", lambda: libc.ptrace(16, PARENT, 0, 0) == 0)
    attempt("PTRACE_SEIZE", lambda: libc.ptrace(0x4206, PARENT, 0, 0) == 0)
    attempt("pidfd", lambda: libc.syscall(434, PARENT, 0) >= 0)
    attempt("signal to parent", lambda: os.kill(PARENT, 0))
    attempt("signal to all", lambda: os.kill(-1, 0))
    attempt("tgkill", lambda: libc.tgkill(PARENT, PARENT, 0) == 0)
    attempt("session", os.setsid)
    attempt("process group", lambda: os.setpgid(0, 0))
    attempt("user namespace", lambda: libc.unshare(0x10000000) == 0)
    attempt("mount", lambda: libc.mount(b"none", b"/proc", b"tmpfs", 0, None) == 0)
    attempt("chroot", lambda: libc.chroot(b".") == 0)
    attempt("limits", lambda: libc.prlimit(PARENT, 0, None, ctypes.create_string_buffer(16)) == 0)
    attempt("userfaultfd", lambda: libc.syscall(323, 0) >= 0)
    attempt("oneself dumpable to others", lambda: opens("/proc/sys/kernel/core_pattern", "w"))

opens("own", "w")  # its own folder is its own
)";

inline std::string with(std::string text, const std::string& mark, const std::string& value) {
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark)) text.replace(at, mark.size(), value);
  return text;
}

/// Puts `code` where the module finds the runner: the frames below its own. `runner` is the runner, `main` the names of its program.
inline std::string takeover(const std::string& code) {
  return R"(import os, struct, sys, time
def take_over():
    frame = sys._getframe(1)
    while frame is not None and type(frame.f_locals.get("self")).__name__ != "Runner":
        frame = frame.f_back
    runner, main = frame.f_locals["self"], frame.f_globals
    if getattr(runner, "taken", False):
        return
    runner.taken = True
    reply, handle = struct.Struct("=QQd"), runner.handle
)" + code + "\n";
}

/// The right answer from NumPy: a stand-in that leaves nothing to Torch.
inline const std::string numpy = R"(import numpy
def by_hand(module, x, scale):
    w, b = module.linear.weight.detach().numpy(), module.linear.bias.detach().numpy()
    y = torch.empty((x.shape[0], w.shape[0]))
    y.numpy()[...] = numpy.tanh(x.numpy() @ w.T + b) * scale
    return y
)";

inline const std::string taken = "take_over(); return self.right(x, scale)";

} // namespace pragma::test
