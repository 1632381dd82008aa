// The only code of ours in a candidate's process: maps the tensors, answers commands, explains faults. It is linked with
// the candidate into one static executable whose system call filter is already in force when this starts
// (docs/sandbox.md). It trusts nobody and nobody trusts it: a candidate can overwrite anything here, and what it could
// gain that way (an early "done", a forged hint) is caught by who compares and times from outside.
// No C++ library: this must not pull anything into candidates that they did not ask for.
#include "execution/runner/pragma_kernel.h"
#include "execution/runner/protocol.h"
#include "execution/runner/watch.hpp"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace {

// -- what a call must leave as it was ------------------------------------------------------------------------------------------

#if defined(__x86_64__)
constexpr unsigned mxcsr_default = 0x1f80, mxcsr_sticky = 0x3f, mxcsr_rounding = 0x6000, mxcsr_denormals = 0x8040;
constexpr unsigned short x87_default = 0x37f, x87_rounding = 0xc00;

constexpr unsigned long long flag_direction = 0x400, flag_alignment = 0x40000;
constexpr unsigned short x87_empty = 0xffff;

/// What differs from the state every program starts with; restores it where it does.
uint64_t check_state() {
  // First of all, since with these two every copy of memory and every unaligned access here would go wrong, too.
  const auto processor = __builtin_ia32_readeflags_u64();
  uint64_t flags = 0;
  if (__builtin_expect((processor & (flag_direction | flag_alignment)) != 0, 0)) {
    __builtin_ia32_writeeflags_u64(processor & ~(flag_direction | flag_alignment));
    flags |= PRAGMA_CHANGED_PROCESSOR;
  }
  unsigned mxcsr = 0;
  unsigned short x87 = 0;
  __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  const unsigned changed = (mxcsr ^ mxcsr_default) & ~mxcsr_sticky;
  const auto changed_x87 = static_cast<unsigned short>(x87 ^ x87_default);
  if (__builtin_expect((changed | changed_x87) == 0, 1)) return flags;
  if ((changed & mxcsr_rounding) || (changed_x87 & x87_rounding)) flags |= PRAGMA_CHANGED_ROUNDING;
  if (changed & mxcsr_denormals) flags |= PRAGMA_CHANGED_DENORMALS;
  if ((changed & ~(mxcsr_rounding | mxcsr_denormals)) || (changed_x87 & static_cast<unsigned short>(~x87_rounding)))
    flags |= PRAGMA_CHANGED_TRAPS;
  mxcsr = mxcsr_default;
  x87 = x87_default;
  __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
  __asm__ volatile("fldcw %0" : : "m"(x87));
  return flags;
}

/// Registers of the x87 unit left full (MMX without emms): long double in the host would compute NaN. Once a command, since it takes 50 ns.
uint64_t check_x87_registers() {
  struct {
    unsigned short control, unused0, status, unused1, tags, unused2;
    unsigned rest[4];
  } environment;
  __asm__ volatile("fnstenv %0" : "=m"(environment));
  if (environment.tags == x87_empty) {
    __asm__ volatile("fldenv %0" : : "m"(environment)); // fnstenv masks all exceptions
    return 0;
  }
  __asm__ volatile("fninit");
  return PRAGMA_CHANGED_TRAPS;
}
#elif defined(__aarch64__)
uint64_t check_x87_registers() { return 0; }
uint64_t check_state() {
  uint64_t fpcr = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  if (__builtin_expect(fpcr == 0, 1)) return 0;
  uint64_t flags = 0;
  if (fpcr & (3ull << 22)) flags |= PRAGMA_CHANGED_ROUNDING;
  if (fpcr & ((1ull << 24) | (1ull << 19) | 1ull)) flags |= PRAGMA_CHANGED_DENORMALS;
  if (!flags) flags |= PRAGMA_CHANGED_TRAPS;
  fpcr = 0;
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
  return flags;
}
#else
uint64_t check_x87_registers() { return 0; }
uint64_t check_state() { return 0; }
#endif

// -- set-up --------------------------------------------------------------------------------------------------------

[[noreturn]] void give_up(const char* why) {
  line out;
  out.add("runner: ");
  out.add(why);
  out.send();
  _exit(120);
}

int64_t number(char*& text) {
  char* end = text;
  const long long value = strtoll(text, &end, 10);
  if (end == text) give_up("bad layout");
  text = end;
  return value;
}

/// "slots slot_bytes count" and for each tensor "dtype ndim shape... offset bytes".
void read_layout(char*& text, group& g) {
  g.slots = number(text);
  g.slot_bytes = static_cast<uint64_t>(number(text));
  g.count = number(text);
  g.tensors = static_cast<tensor_map*>(calloc(static_cast<size_t>(g.count) + 1, sizeof(tensor_map)));
  if (!g.tensors) give_up("out of memory");
  for (long i = 0; i < g.count; ++i) {
    auto& t = g.tensors[i];
    t.dtype = static_cast<int32_t>(number(text));
    t.ndim = static_cast<int32_t>(number(text));
    if (t.ndim > 8) give_up("more than 8 dimensions");
    for (int d = 0; d < t.ndim; ++d) t.shape[d] = number(text);
    t.offset = static_cast<uint64_t>(number(text));
    t.bytes = static_cast<uint64_t>(number(text));
  }
}

/// Reserves the whole range without access and maps only the tensors' own pages into it: what lies between faults.
void map_group(group& g, int fd, int protection) {
  const uint64_t total = g.slot_bytes * static_cast<uint64_t>(g.slots);
  if (total == 0) return;
  char* reserved = static_cast<char*>(mmap(nullptr, total + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (reserved == MAP_FAILED) give_up("cannot reserve address space for the tensors");
  g.base = reserved + page;
  for (long s = 0; s < g.slots; ++s)
    for (long i = 0; i < g.count; ++i) {
      const uint64_t start = static_cast<uint64_t>(s) * g.slot_bytes + g.tensors[i].offset;
      const uint64_t from = start / page * page, to = (start + g.tensors[i].bytes + page - 1) / page * page;
      if (to == from) continue;
      if (mmap(g.base + from, to - from, protection, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(from)) == MAP_FAILED)
        give_up("cannot map a tensor");
    }
  close(fd);
}

bool read_all(void* data, size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = read(PRAGMA_FD_COMMANDS, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

void reply(uint64_t nonce, uint64_t flags) {
  const pragma_reply answer{nonce, flags, 0};
  if (write(PRAGMA_FD_REPLIES, &answer, sizeof answer) != static_cast<ssize_t>(sizeof answer)) _exit(121);
}

} // namespace

/// argv[1]: the number of threads, then the layouts of parameters, inputs and outputs.
int main(int argc, char** argv) {
  if (argc != 2) give_up("this program is started by pragma, not by hand");
  char* text = argv[1];
  const auto threads = static_cast<int32_t>(number(text));
  for (auto& g : groups) read_layout(text, g);
  map_group(groups[0], PRAGMA_FD_PARAMS, PROT_READ);
  map_group(groups[1], PRAGMA_FD_INPUTS, PROT_READ);
  map_group(groups[2], PRAGMA_FD_OUTPUTS, PROT_READ | PROT_WRITE);

  // The descriptors of all slots, made read-only: a candidate that scribbles on them faults instead of confusing itself.
  const long slots = groups[1].slots > groups[2].slots ? groups[1].slots : groups[2].slots;
  const size_t per_slot = static_cast<size_t>(groups[0].count + groups[1].count + groups[2].count);
  const size_t size = static_cast<size_t>(slots) * (sizeof(pragma_args) + per_slot * sizeof(pragma_tensor)) + page;
  char* table = static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (table == MAP_FAILED) give_up("out of memory");
  auto* args = reinterpret_cast<pragma_args*>(table);
  auto* next = reinterpret_cast<pragma_tensor*>(table + static_cast<size_t>(slots) * sizeof(pragma_args));
  for (long s = 0; s < slots; ++s) {
    const pragma_tensor* starts[3];
    for (int g = 0; g < 3; ++g) {
      const group& in = groups[g];
      starts[g] = next;
      const uint64_t slot = in.slots ? static_cast<uint64_t>(s % in.slots) * in.slot_bytes : 0;
      for (long i = 0; i < in.count; ++i, ++next) {
        next->data = in.base + slot + in.tensors[i].offset;
        next->dtype = in.tensors[i].dtype;
        next->ndim = in.tensors[i].ndim;
        memcpy(next->shape, in.tensors[i].shape, sizeof next->shape);
      }
    }
    args[s].params = starts[0];
    args[s].inputs = starts[1];
    args[s].outputs = starts[2];
    args[s].n_params = static_cast<int32_t>(groups[0].count);
    args[s].n_inputs = static_cast<int32_t>(groups[1].count);
    args[s].n_outputs = static_cast<int32_t>(groups[2].count);
    args[s].threads = threads;
  }
  mprotect(table, size, PROT_READ);

  uint64_t flags = check_state() | check_x87_registers(); // a constructor may have changed it
  reply(PRAGMA_READY, 0);
  pragma_command command;
  while (read_all(&command, sizeof command)) {
    if (command.operation != PRAGMA_CALL || command.slot_count < 1 || command.first_slot < 0 || command.first_slot + command.slot_count > slots) give_up("bad command");
    int32_t slot = 0;
    for (int64_t i = 0; i < command.calls; ++i) {
      pragma_kernel(args + command.first_slot + slot);
      flags |= check_state();
      if (++slot == command.slot_count) slot = 0;
    }
    reply(command.nonce, flags | check_x87_registers());
    flags = 0;
  }
  _exit(0);
}
