/* A device's driver and two kernels of task_gate.py, on the processor: what is launched runs at once. For launches.py. */
#include <math.h>
#include <stddef.h>

typedef void (*kernel)(unsigned programs, void** arguments);
static long started;
static int refuse;

int start(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream, void** arguments, void** extra) {
  (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
  if (refuse) return refuse;
  ++started;
  union { void* data; kernel code; } as = {function};
  as.code(gx, arguments);
  return 0;
}
long count(void) { return started; }
void refuse_with(int code) { refuse = code; }

/* x [programs, 64], w [64, 64], b [64] -> y [programs, 64] */
void product(unsigned programs, void** arguments) {
  const float *x = *(float**)arguments[0], *w = *(float**)arguments[1], *b = *(float**)arguments[2];
  float* y = *(float**)arguments[3];
  for (size_t row = 0; row < programs; ++row)
    for (size_t n = 0; n < 64; ++n) {
      double sum = b[n];
      for (size_t k = 0; k < 64; ++k) sum += (double)x[row * 64 + k] * w[n * 64 + k];
      y[row * 64 + n] = sum > 0 ? (float)sum : 0;
    }
}

/* y, shift -> out */
void finish(unsigned programs, void** arguments) {
  const float *y = *(float**)arguments[0], *shift = *(float**)arguments[1];
  float* out = *(float**)arguments[2];
  for (size_t i = 0; i < (size_t)programs * 64; ++i) out[i] = (y[i] + 0.5f) * 4.0f + shift[i % 64] + 3.0f;
}
