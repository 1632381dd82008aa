// The system call filters of the sandbox, as raw BPF programs that a child can load after fork (building one with
// libseccomp allocates, loading one is a single prctl). Used by sandbox.cpp only; docs/sandbox.md has the list.
#pragma once

#include "base/error.hpp"
#include "sandbox/sandbox.hpp"

#include <linux/filter.h>
#include <string>
#include <vector>

namespace pragma {

/// A program and the places in it that must receive the child's own pid (tgkill to oneself only).
struct filter_program {
  std::vector<sock_filter> code;
  std::vector<size_t> own_pid;
};

/// Built once per policy and process; without `threads` a candidate has none but its first; unsupported when libseccomp cannot make it for this architecture.
expected<const filter_program*> filter_for(sandbox_policy policy, bool threads = true);

/// Loads the program into this process: async-signal-safe. no_new_privs must be set already.
bool load_filter(sock_filter* code, size_t count);

/// "socket", or "system call 41" where the number is unknown.
std::string system_call_name(int number);

} // namespace pragma
