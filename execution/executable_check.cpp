#include "execution/executable_check.hpp"

#include <cstring>
#include <elf.h>
#include <string>

namespace pragma {

namespace {

#if defined(__x86_64__)
constexpr Elf64_Half this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half this_machine = EM_AARCH64;
#endif

template <class T> bool take(std::string_view elf, uint64_t at, T& into) {
  if (at > elf.size() || elf.size() - at < sizeof into) return false;
  std::memcpy(&into, elf.data() + at, sizeof into);
  return true;
}

} // namespace

expected<void> check_executable(std::string_view elf) {
  const auto refuse = [](const std::string& why, const std::string& remedy = {}) { return fail(ec::build_failed, "the executable " + why, remedy); };
  Elf64_Ehdr header;
  if (!take(elf, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_type != ET_EXEC || header.e_machine != this_machine || header.e_phentsize != sizeof(Elf64_Phdr))
    return refuse("is not a static one for this machine");
  bool stack_known = false;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    if (!take(elf, header.e_phoff + uint64_t{i} * sizeof part, part)) return refuse("ends within its own table");
    if (part.p_type == PT_INTERP || part.p_type == PT_DYNAMIC)
      return refuse("asks for an interpreter (a section .interp or .dynamic): candidates are static", "remove that section");
    if (part.p_type == PT_GNU_STACK) {
      stack_known = true;
      if (part.p_flags & PF_X) return refuse("has a stack whose content can be executed (.note.GNU-stack)", "remove that section from the assembly");
    }
    if (part.p_type == PT_LOAD && (part.p_flags & PF_W) && (part.p_flags & PF_X))
      return refuse("has memory that can be both written and executed (a section with the flags \"wx\")", "code is what was compiled: use \"ax\" or \"aw\"");
  }
  if (!stack_known) return refuse("does not say that its stack holds no code (.note.GNU-stack)");
  return {};
}

} // namespace pragma
