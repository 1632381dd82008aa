/* A device's driver and two kernels of task_gate.py, on the processor: what is launched runs at once. For launches.py. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

typedef void (*kernel)(unsigned programs, void** arguments);
static long started;
static int refuse;
static __thread void* context; /* of this thread; without one a launch is refused, as by a driver */

int current_context(void** found) { return (*found = context, 0); }
int use_context(void* given) { return (context = given, 0); }

static int capturing;
void capture(int on) { capturing = on; }
int stream_capturing(void* stream, int* status) { return (void)stream, *status = capturing, context ? 0 : 201; }

int start(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream, void** arguments, void** extra) {
  (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
  if (refuse || !context) return refuse ? refuse : 201;
  ++started;
  union { void* data; kernel code; } as = {function};
  as.code(gx, arguments);
  return 0;
}
long count(void) { return started; }
void refuse_with(int code) { refuse = code; }

/* A graph of launches one after the other, as pragma_launch.h asks for it. As a driver does, a node keeps what its arguments are when they are given. */
enum { MOST_NODES = 8, MOST_ARGUMENTS = 5 };
typedef struct { void* function; unsigned grid[3], block[3], shared; void **arguments, **extra, *kernel, *context; } node_arguments;
typedef struct { void* function; unsigned programs; void* values[MOST_ARGUMENTS]; } node;
typedef struct { int nodes, ended; node all[MOST_NODES]; } graph;
static long replayed, of_graphs;

static int keep(node* n, const node_arguments* given) {
  n->function = given->function;
  n->programs = given->grid[0];
  for (int i = 0; i < MOST_ARGUMENTS; ++i) n->values[i] = *(void**)given->arguments[i];
  return refuse;
}
int graph_create(void** made, unsigned flags) {
  ++of_graphs;
  return (*made = calloc(1, sizeof(graph))) && !flags ? 0 : 1;
}
int graph_add(void** made, void* to, void* const* after, size_t n_after, const node_arguments* given) {
  graph* g = to;
  if (g->nodes == MOST_NODES || n_after != (g->nodes > 0) || (n_after && *after != &g->all[g->nodes - 1])) return 1;
  *made = &g->all[g->nodes++];
  return keep(*made, given);
}
int graph_instantiate(void** replay, void* of, unsigned long long flags) { return (*replay = of) && !flags ? 0 : 1; }
int graph_set(void* replay, void* of, const node_arguments* given) { return ((graph*)replay)->ended ? 1 : keep(of, given); }
int graph_launch(void* replay, void* stream) {
  graph* g = replay;
  if (refuse || g->ended || !context) return refuse ? refuse : 201;
  ++replayed;
  for (int i = 0; i < g->nodes; ++i) {
    void* arguments[MOST_ARGUMENTS];
    for (int a = 0; a < MOST_ARGUMENTS; ++a) arguments[a] = &g->all[i].values[a];
    start(g->all[i].function, g->all[i].programs, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
  }
  return 0;
}
int graph_end_replay(void* replay) { return ((graph*)replay)->ended++ != 0; }
int graph_end(void* of) {
  --of_graphs;
  const int replays = ((graph*)of)->ended;
  free(of);
  return replays != 1;
}
long replays(void) { return replayed; }
long graphs(void) { return of_graphs; }

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

/* Sums that are done in another order each time: so much of a value's last places. */
static float uneven;
void be_uneven(int parts_of_a_million) { uneven = (float)parts_of_a_million * 1e-6f; }
static float off_by(size_t i) {
  static unsigned state = 1;
  state = state * 1664525u + 1013904223u + (unsigned)i;
  return uneven * ((float)(state >> 16) / 32768.0f - 1.0f);
}

/* y, shift -> out */
void finish(unsigned programs, void** arguments) {
  const float *y = *(float**)arguments[0], *shift = *(float**)arguments[1];
  float* out = *(float**)arguments[2];
  for (size_t i = 0; i < (size_t)programs * 64; ++i) out[i] = ((y[i] + 0.5f) * 4.0f + shift[i % 64] + 3.0f) * (1.0f + off_by(i));
}
