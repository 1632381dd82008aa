// Calls a kernel once in a program of its own, for a processor that is emulated: driver INPUTS OUTPUTS. INPUTS: three counts (inputs, parameters,
// outputs) and the threads, as int64; then for each tensor its bytes as int64 and, for inputs and parameters, the bytes themselves. OUTPUTS gets
// those of the outputs, which held garbage (0xa5) before the call.
#include "pragma_kernel.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

void require(bool fine) {
  if (!fine) std::exit(3);
}

int64_t number(std::FILE* from) {
  int64_t n = 0;
  require(std::fread(&n, sizeof n, 1, from) == 1 && n >= 0);
  return n;
}

struct memory {
  void* data;
  size_t bytes;
};

} // namespace

int main(int argc, char** argv) {
  require(argc == 3);
  std::FILE* from = std::fopen(argv[1], "rb");
  require(from != nullptr);
  const auto inputs = number(from), params = number(from), outputs = number(from), threads = number(from);
  std::vector<memory> all;
  std::vector<pragma_tensor> tensors;
  for (int64_t i = 0; i < inputs + params + outputs; ++i) {
    const auto bytes = static_cast<size_t>(number(from));
    void* at = std::aligned_alloc(64, (bytes + 127) / 64 * 64);
    require(at != nullptr);
    if (i < inputs + params) require(std::fread(at, 1, bytes, from) == bytes);
    else std::memset(at, 0xa5, bytes);
    pragma_tensor t{};
    t.data = at;
    tensors.push_back(t);
    all.push_back({at, bytes});
  }
  pragma_args args{tensors.data(), tensors.data() + inputs, tensors.data() + inputs + params, static_cast<int32_t>(inputs), static_cast<int32_t>(params),
                   static_cast<int32_t>(outputs), static_cast<int32_t>(threads)};
  pragma_kernel(&args);
  std::FILE* to = std::fopen(argv[2], "wb");
  require(to != nullptr);
  for (auto i = inputs + params; i < inputs + params + outputs; ++i) {
    const auto& m = all[static_cast<size_t>(i)];
    require(std::fwrite(m.data, 1, m.bytes, to) == m.bytes);
  }
  require(std::fclose(to) == 0);
  return 0;
}
