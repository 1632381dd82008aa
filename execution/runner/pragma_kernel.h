/* The C ABI between PRAGMA and a CPU candidate. A candidate is one C++ source that includes this header and defines
 *
 *     extern "C" void pragma_kernel(const pragma_args* args);
 *
 * All tensors are contiguous, row-major and 64-byte aligned. Inputs and parameters are mapped read-only: writing to
 * them ends the process. Every element of every output must be written on every call; outputs hold garbage before it.
 * The call must be complete when it returns. It may use args->threads threads (OpenMP is linked in; with 1 it may start none); it may not open
 * files, start processes or use the network. */
#ifndef PRAGMA_KERNEL_H
#define PRAGMA_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pragma_dtype {
  PRAGMA_FLOAT32 = 0, PRAGMA_FLOAT64 = 1, PRAGMA_FLOAT16 = 2, PRAGMA_BFLOAT16 = 3,
  PRAGMA_INT64 = 4, PRAGMA_INT32 = 5, PRAGMA_INT16 = 6, PRAGMA_INT8 = 7, PRAGMA_UINT8 = 8, PRAGMA_BOOL = 9
};

typedef struct pragma_tensor {
  void* data;
  int32_t dtype;      /* enum pragma_dtype */
  int32_t ndim;       /* 0 for a scalar */
  int64_t shape[8];
} pragma_tensor;

typedef struct pragma_args {
  const pragma_tensor* inputs;  /* tensor arguments of forward(), in order */
  const pragma_tensor* params;  /* parameters, then buffers, each in the order of state_dict() */
  const pragma_tensor* outputs; /* to be written */
  int32_t n_inputs, n_params, n_outputs;
  int32_t threads;              /* threads that the call may use */
} pragma_args;

void pragma_kernel(const pragma_args* args);

#ifdef __cplusplus
}
#endif
#endif
