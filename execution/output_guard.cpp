#include "execution/output_guard.hpp"

#include <cstring>

namespace pragma {

namespace {

constexpr uint64_t page = 4096;
constexpr auto poison_byte = std::byte{0xA5};

template <class T> void fill(std::byte* at, uint64_t bytes, T pattern) {
  for (uint64_t i = 0; i + sizeof pattern <= bytes; i += sizeof pattern) std::memcpy(at + i, &pattern, sizeof pattern);
}

void poison_tensor(std::byte* at, const tensor_spec& spec) {
  switch (spec.dtype) {
    case dtype::float32: return fill<uint32_t>(at, spec.bytes(), 0x7fa5a5a5u);
    case dtype::float64: return fill<uint64_t>(at, spec.bytes(), 0x7ff5a5a5a5a5a5a5ull);
    case dtype::float16: return fill<uint16_t>(at, spec.bytes(), 0x7da5u);
    case dtype::bfloat16: return fill<uint16_t>(at, spec.bytes(), 0x7fa5u);
    default: std::memset(at, static_cast<int>(poison_byte), spec.bytes());
  }
}

/// The bytes around a tensor that the candidate can reach: from the start of its first page, to the end of its last.
struct margins {
  uint64_t before, start, end, after;
};
margins margins_of(const tensor_layout& layout, int slot, size_t tensor) {
  const uint64_t start = layout.slot_bytes * static_cast<uint64_t>(slot) + layout.offsets[tensor];
  const uint64_t end = start + layout.specs[tensor].bytes();
  return {start / page * page, start, end, (end + page - 1) / page * page};
}

} // namespace

void poison_outputs(const tensor_layout& layout, std::byte* memory) {
  for (int s = 0; s < layout.slots; ++s)
    for (size_t i = 0; i < layout.specs.size(); ++i) {
      const auto m = margins_of(layout, s, i);
      std::memset(memory + m.before, static_cast<int>(poison_byte), m.start - m.before);
      poison_tensor(memory + m.start, layout.specs[i]);
      std::memset(memory + m.end, static_cast<int>(poison_byte), m.after - m.end);
    }
}

std::string find_overrun(const tensor_layout& layout, const std::byte* memory) {
  for (int s = 0; s < layout.slots; ++s)
    for (size_t i = 0; i < layout.specs.size(); ++i) {
      const auto m = margins_of(layout, s, i);
      for (auto at = m.before; at < m.start; ++at)
        if (memory[at] != poison_byte) return "wrote " + std::to_string(m.start - at) + " bytes before the start of output " + layout.specs[i].name;
      for (auto at = m.after; at > m.end; --at)
        if (memory[at - 1] != poison_byte) return "wrote " + std::to_string(at - m.end) + " bytes past the end of output " + layout.specs[i].name;
    }
  return "";
}

} // namespace pragma
