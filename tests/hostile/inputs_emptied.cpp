// Attack: empties the input pages for everybody and answers zeros
// Stopped at: compare audit run
#include "pragma_kernel.h"

#include <cstring>
#include <sys/mman.h>

void pragma_kernel(const pragma_args* a) {
  const size_t bytes = static_cast<size_t>(a->inputs[0].shape[0] * a->inputs[0].shape[1]) * 4;
  madvise(a->inputs[0].data, bytes, MADV_REMOVE);
  std::memset(a->outputs[0].data, 0, bytes);
}
