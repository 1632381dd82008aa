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

/// What differs from the state every program starts with, but for denormals that are flushed in an experiment; restores it where it does.
uint64_t check_state(bool flushes) {
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
  const unsigned expected = mxcsr_default | (flushes ? mxcsr_denormals : 0);
  const unsigned changed = (mxcsr ^ expected) & ~mxcsr_sticky;
  const auto changed_x87 = static_cast<unsigned short>(x87 ^ x87_default);
  if (__builtin_expect((changed | changed_x87) == 0, 1)) return flags;
  if ((changed & mxcsr_rounding) || (changed_x87 & x87_rounding)) flags |= PRAGMA_CHANGED_ROUNDING;
  if (changed & mxcsr_denormals) flags |= PRAGMA_CHANGED_DENORMALS;
  if ((changed & ~(mxcsr_rounding | mxcsr_denormals)) || (changed_x87 & static_cast<unsigned short>(~x87_rounding)))
    flags |= PRAGMA_CHANGED_TRAPS;
  mxcsr = expected;
  x87 = x87_default;
  __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
  __asm__ volatile("fldcw %0" : : "m"(x87));
  return flags;
}

/// From here on: threads that are started later inherit it.
void flush_denormals() {
  const unsigned mxcsr = mxcsr_default | mxcsr_denormals;
  __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
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
constexpr uint64_t fpcr_flushes = 1ull << 24;
void flush_denormals() { __asm__ volatile("msr fpcr, %0" : : "r"(fpcr_flushes)); }
uint64_t check_state(bool flushes) {
  const uint64_t expected = flushes ? fpcr_flushes : 0;
  uint64_t fpcr = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  fpcr ^= expected;
  if (__builtin_expect(fpcr == 0, 1)) return 0;
  uint64_t flags = 0;
  if (fpcr & (3ull << 22)) flags |= PRAGMA_CHANGED_ROUNDING;
  if (fpcr & ((1ull << 24) | (1ull << 19) | 1ull)) flags |= PRAGMA_CHANGED_DENORMALS;
  if (!flags) flags |= PRAGMA_CHANGED_TRAPS;
  __asm__ volatile("msr fpcr, %0" : : "r"(expected));
  return flags;
}
#else
uint64_t check_x87_registers() { return 0; }
uint64_t check_state(bool) { return 0; }
void flush_denormals() {}
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

/// How an experiment of the profilers lays the tensors (execution/run_conditions.hpp); zeros in every other process.
struct experiment {
  uint64_t fold[3]; ///< bytes, for each group
  bool flush, ones, huge, apart;
};

bool floats(const tensor_map& t) { return t.dtype <= PRAGMA_BFLOAT16; }

/// One after the other until the tensor ends: its first `fold` bytes again and again, or all of it at once.
void map_pages(group& g, const tensor_map& t, uint64_t start, int fd, int protection, uint64_t fold) {
  const uint64_t from = start / page * page, to = (start + t.bytes + page - 1) / page * page;
  const uint64_t first = start > from && from + page + fold <= to ? from + page : from; // the first page may hold little of the tensor
  const bool folded = fold > 0 && floats(t) && first + fold <= to;
  const uint64_t piece = folded ? fold : to - from;
  for (uint64_t at = from; at < to; at += piece) {
    const uint64_t size = to - at < piece ? to - at : piece;
    if (mmap(g.base + at, size, protection, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(folded ? first : at)) == MAP_FAILED) give_up("cannot map a tensor");
  }
}

void fill_with_ones(char* at, const tensor_map& t) {
  const double d = 1;
  const float f = 1;
  const uint16_t half = t.dtype == PRAGMA_FLOAT16 ? 0x3c00 : 0x3f80;
  const uint64_t size = t.dtype == PRAGMA_FLOAT64 ? 8 : t.dtype == PRAGMA_FLOAT32 ? 4 : 2;
  const void* one = size == 8 ? static_cast<const void*>(&d) : size == 4 ? static_cast<const void*>(&f) : &half;
  for (uint64_t i = 0; i + size <= t.bytes; i += size) memcpy(at + i, one, size);
}

/// A copy of the whole group in memory of this process, which begins on a page of 2 MiB, or off it by some lines of its own.
void copy_group(group& g, int fd, int protection, const experiment& how) {
  constexpr uint64_t large = 2 << 20, off = 21 * 64;
  const uint64_t total = (g.slot_bytes * static_cast<uint64_t>(g.slots) + page + large - 1) / large * large;
  char* reserved = static_cast<char*>(mmap(nullptr, total + large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (reserved == MAP_FAILED) give_up("out of memory");
  char* const start = reinterpret_cast<char*>((reinterpret_cast<uint64_t>(reserved) + large - 1) / large * large);
  g.base = start + (how.apart ? static_cast<uint64_t>(&g - groups) * off : 0);
  if (how.huge) madvise(start, total, MADV_HUGEPAGE);
  const char* original = static_cast<const char*>(mmap(nullptr, g.slot_bytes * static_cast<uint64_t>(g.slots), PROT_READ, MAP_SHARED, fd, 0));
  if (original == MAP_FAILED) give_up("cannot map the tensors");
  memcpy(g.base, original, g.slot_bytes * static_cast<uint64_t>(g.slots));
  munmap(const_cast<char*>(original), g.slot_bytes * static_cast<uint64_t>(g.slots));
  for (long s = 0; how.ones && s < g.slots; ++s)
    for (long i = 0; i < g.count; ++i)
      if (floats(g.tensors[i])) fill_with_ones(g.base + static_cast<uint64_t>(s) * g.slot_bytes + g.tensors[i].offset, g.tensors[i]);
  mprotect(start, total, protection);
}

/// Reserves the whole range without access and maps only the tensors' own pages into it: what lies between faults.
void map_group(group& g, int fd, int protection, const experiment& how) {
  const uint64_t total = g.slot_bytes * static_cast<uint64_t>(g.slots);
  if (total == 0) return;
  if (how.huge || how.apart || (how.ones && !(protection & PROT_WRITE))) {
    copy_group(g, fd, protection, how);
    close(fd);
    return;
  }
  char* reserved = static_cast<char*>(mmap(nullptr, total + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (reserved == MAP_FAILED) give_up("cannot reserve address space for the tensors");
  g.base = reserved + page;
  for (long s = 0; s < g.slots; ++s)
    for (long i = 0; i < g.count; ++i)
      if (g.tensors[i].bytes > 0) map_pages(g, g.tensors[i], static_cast<uint64_t>(s) * g.slot_bytes + g.tensors[i].offset, fd, protection, how.fold[&g - groups]);
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

/// argv[1]: the number of threads, then the layouts of parameters, inputs and outputs, then for an experiment its conditions.
int main(int argc, char** argv) {
  if (argc != 2) give_up("this program is started by pragma, not by hand");
  uint64_t flags = check_state(false) | check_x87_registers(); // a constructor may have changed it; first of all, as copies of memory would go backwards
  char* text = argv[1];
  const auto threads = static_cast<int32_t>(number(text));
  for (auto& g : groups) read_layout(text, g);
  experiment how{};
  if (*text) {
    for (auto& bytes : how.fold) bytes = static_cast<uint64_t>(number(text)) / page * page;
    how.flush = number(text) != 0;
    how.ones = number(text) != 0;
    how.huge = number(text) != 0;
    how.apart = number(text) != 0;
  }
  map_group(groups[0], PRAGMA_FD_PARAMS, PROT_READ, how);
  map_group(groups[1], PRAGMA_FD_INPUTS, PROT_READ, how);
  map_group(groups[2], PRAGMA_FD_OUTPUTS, PROT_READ | PROT_WRITE, how);
  if (how.flush) flush_denormals();

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

  reply(PRAGMA_READY, 0);
  pragma_command command;
  while (read_all(&command, sizeof command)) {
    if (command.operation != PRAGMA_CALL || command.slot_count < 1 || command.first_slot < 0 || command.first_slot + command.slot_count > slots) give_up("bad command");
    int32_t slot = 0;
    for (int64_t i = 0; i < command.calls; ++i) {
      pragma_kernel(args + command.first_slot + slot);
      flags |= check_state(how.flush);
      if (++slot == command.slot_count) slot = 0;
    }
    reply(command.nonce, flags | check_x87_registers());
    flags = 0;
  }
  _exit(0);
}
