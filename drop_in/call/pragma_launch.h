/* The launches of a drop-in for a device: what one forward() of the module launched, as Python (pragma_device.py) wrote it down, launched again by handle with
 * the addresses of this call's tensors. Included by pragma_call.c. */

typedef int (*launch_function)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                               unsigned shared, void* stream, void** arguments, void** extra);
typedef struct {
  launch_function start;
  int (*context)(void** current);
  int (*use_context)(void* context);
  int (*capturing)(void* stream, int* status);
} driver_functions; /* cuLaunchKernel, cuCtxGetCurrent, cuCtxSetCurrent, cuStreamIsCapturing */

/* A graph of all launches, whose arguments are set anew before each replay. Of CUDA's driver: cuGraphCreate, cuGraphAddKernelNode_v2, cuGraphInstantiateWithFlags,
 * cuGraphExecKernelNodeSetParams_v2, cuGraphLaunch, cuGraphExecDestroy, cuGraphDestroy; and CUDA_KERNEL_NODE_PARAMS_v2. */
typedef struct { void* function; unsigned grid[3], block[3], shared; void **arguments, **extra, *kernel, *context; } node_arguments;
typedef struct {
  int (*create)(void** graph, unsigned flags);
  int (*add)(void** node, void* graph, void* const* after, size_t n_after, const node_arguments* arguments);
  int (*instantiate)(void** replay, void* graph, unsigned long long flags);
  int (*set)(void* replay, void* node, const node_arguments* arguments);
  int (*launch)(void* replay, void* stream);
  int (*end_replay)(void* replay);
  int (*end_graph)(void* graph);
} graph_functions;
enum { GRAPH_FUNCTIONS = sizeof(graph_functions) / sizeof(void*) };

enum { FROM_NOWHERE = -1, FROM_INPUT = 0, FROM_RESULT = 1 }; /* nowhere: an address of its own */
typedef struct { int from; Py_ssize_t index; uintptr_t value; } launch_address; /* the address itself, or an offset in bytes */
typedef struct { void* function; unsigned grid[3], block, shared; Py_ssize_t first, count; } launch;
typedef struct { PyObject* tensor; uint64_t version; uintptr_t address; } kept_parameter;

struct plan {
  Py_ssize_t users;                      /* the Call, and each call under way: Python runs in between, and may attach another */
  PyObject* keep;                        /* what it was made of, with the memory that the addresses mean */
  driver_functions driver;
  void* context;                         /* the device's, which threads share */
  PyObject *stream, *stream_args, *device, *device_now; /* functions of Torch's and what the second has to say */
  uintptr_t on_stream;
  launch* launches;
  launch_address* addresses;
  kept_parameter* parameters;
  int* aligned;                          /* per input: its address was divisible by 16, which is compiled in */
  result* results;
  Py_ssize_t n_launches, n_addresses, n_parameters, n_inputs, n_results;
  uintptr_t* values;                     /* of this call: what the addresses are; behind them those that the graph has */
  void** pointers;                       /* of all launches: where their arguments are */
  graph_functions graphs;
  int by_graph, refused;                 /* the driver's last error */
  void *graph, *replay, **nodes;
};

static PyObject *name_version, *no_arguments;

static void drop_plan(struct plan* p) {
  if (!p || --p->users > 0) return;
  Py_XDECREF(p->keep);
  if (p->replay) p->graphs.end_replay(p->replay);
  if (p->graph) p->graphs.end_graph(p->graph);
  PyMem_Free(p->launches);
  PyMem_Free(p->addresses);
  PyMem_Free(p->parameters);
  PyMem_Free(p->aligned);
  PyMem_Free(p->results);
  PyMem_Free(p->values);
  PyMem_Free(p->pointers);
  PyMem_Free(p->nodes);
  PyMem_Free(p);
}

static uint64_t number_from(PyObject* function, PyObject* args) {
  PyObject* value = PyObject_Call(function, args, NULL);
  const uint64_t number = value ? PyLong_AsUnsignedLongLong(value) : 0;
  Py_XDECREF(value);
  return number;
}

/* 1: everything is as it was written down, so that the same launches with other addresses are right. */
static int plan_holds(const struct plan* p, const pragma_tensor* rows, PyObject* const* held) {
  if (number_from(p->stream, p->stream_args) != p->on_stream || PyErr_Occurred()) return 0;
  PyObject* device = PyObject_Call(p->device, no_arguments, NULL);
  const int here = device ? PyObject_RichCompareBool(device, p->device_now, Py_EQ) : -1;
  Py_XDECREF(device);
  if (here != 1) return 0;
  for (Py_ssize_t i = 0; i < p->n_inputs; ++i)
    if (((uintptr_t)rows[i].data % 16 == 0) != p->aligned[i]) return 0;
  for (Py_ssize_t i = 0; i < p->n_parameters; ++i) {
    const kept_parameter* k = &p->parameters[i];
    if (held[p->n_inputs + i] != k->tensor || (uintptr_t)rows[p->n_inputs + i].data != k->address) return 0;
    if (k->version == (uint64_t)-1) continue; /* a buffer that calls update */
    PyObject* version = PyObject_GetAttr(k->tensor, name_version);
    const int same = version && PyLong_AsUnsignedLongLong(version) == k->version;
    Py_XDECREF(version);
    if (!same || PyErr_Occurred()) return 0;
  }
  return 1;
}

static node_arguments arguments_of(const struct plan* p, Py_ssize_t i) {
  const launch* l = &p->launches[i];
  const node_arguments n = {l->function, {l->grid[0], l->grid[1], l->grid[2]}, {l->block, 1, 1}, l->shared, p->pointers + l->first + 2 * i, NULL, NULL, NULL};
  return n;
}

/* Both: 0, or which launch the driver refused (from 1). */
static Py_ssize_t launch_each(struct plan* p) {
  for (Py_ssize_t i = 0; i < p->n_launches; ++i) {
    const launch* l = &p->launches[i];
    p->refused = p->driver.start(l->function, l->grid[0], l->grid[1], l->grid[2], l->block, 1, 1, l->shared, (void*)p->on_stream, p->pointers + l->first + 2 * i, NULL);
    if (p->refused) return i + 1;
  }
  return 0;
}

/* A thread that has launched nothing yet has no context, and the driver refuses its launches: it gets the one that Torch's threads share. 0, or the driver's error. */
static int enter_context(const struct plan* p) {
  void* current = NULL;
  const int failed = p->driver.context(&current);
  return failed || current == p->context ? failed : p->driver.use_context(p->context);
}

/* What a program captures is the module's own: its replays are to be right when the parameters have changed, and when this plan is gone. */
static int free_to_launch(const struct plan* p) {
  int status = 0;
  return !enter_context(p) && !p->driver.capturing((void*)p->on_stream, &status) && !status;
}

static Py_ssize_t replay_all(struct plan* p) {
  uintptr_t* before = p->values + p->n_addresses;
  for (Py_ssize_t i = 0; i < p->n_launches; ++i) {
    const launch* l = &p->launches[i];
    const size_t size = (size_t)l->count * sizeof *before;
    if (memcmp(before + l->first, p->values + l->first, size) == 0) continue;
    const node_arguments now = arguments_of(p, i);
    p->refused = p->graphs.set(p->replay, p->nodes[i], &now);
    if (p->refused) {
      memset(before + l->first, 0xff, size); /* whatever the node has now */
      return i + 1;
    }
    memcpy(before + l->first, p->values + l->first, size);
  }
  p->refused = p->graphs.launch(p->replay, (void*)p->on_stream);
  return p->refused ? 1 : 0;
}

/* One after the other, with the arguments of this call. 0, or the driver's error. */
static int make_graph(struct plan* p) {
  int failed = p->graphs.create(&p->graph, 0);
  for (Py_ssize_t i = 0; !failed && i < p->n_launches; ++i) {
    const node_arguments now = arguments_of(p, i);
    failed = p->graphs.add(&p->nodes[i], p->graph, i ? &p->nodes[i - 1] : NULL, i ? 1 : 0, &now);
  }
  if (!failed) failed = p->graphs.instantiate(&p->replay, p->graph, 0);
  if (!failed) memcpy(p->values + p->n_addresses, p->values, (size_t)p->n_addresses * sizeof *p->values);
  return failed;
}

/* The results, those of `given` or new ones; NULL with an error set. All launches come without a word of Python between them: threads that share a stream never mix theirs. */
static PyObject* launch_all(struct plan* p, const pragma_tensor* rows, PyObject* data_ptr, PyObject* given) {
  PyObject* results = PyTuple_New(p->n_results);
  uintptr_t few[16], *made = p->n_results <= 16 ? few : PyMem_Malloc((size_t)p->n_results * sizeof *made); /* of this call: Python runs in between, and may let another thread in */
  if (results && !made) {
    PyErr_NoMemory();
    Py_CLEAR(results);
  }
  for (Py_ssize_t i = 0; results && i < p->n_results; ++i) {
    PyObject* tensor = given ? PyTuple_GetItem(given, i) : PyObject_Call(p->results[i].function, p->results[i].args, NULL);
    if (given) Py_XINCREF(tensor);
    PyObject* address = tensor ? PyObject_CallFunctionObjArgs(data_ptr, tensor, NULL) : NULL;
    made[i] = address ? (uintptr_t)PyLong_AsVoidPtr(address) : 0;
    Py_XDECREF(address);
    if (tensor) PyTuple_SetItem(results, i, tensor);
    if (!tensor || PyErr_Occurred()) Py_CLEAR(results);
  }
  for (Py_ssize_t i = 0; results && i < p->n_addresses; ++i) {
    const launch_address* from = &p->addresses[i];
    p->values[i] = from->value + (from->from == FROM_INPUT ? (uintptr_t)rows[from->index].data : from->from == FROM_RESULT ? made[from->index] : 0);
  }
  if (made != few) PyMem_Free(made);
  if (!results) return NULL;
  p->refused = enter_context(p);
  if (!p->refused && p->by_graph && !p->replay && make_graph(p)) p->by_graph = 0; /* this driver cannot: launch by launch */
  const Py_ssize_t at = p->refused ? 1 : p->by_graph ? replay_all(p) : launch_each(p);
  if (at) {
    Py_DECREF(results);
    return PyErr_Format(PyExc_RuntimeError, "the driver refused to launch kernel %zd of %zd: error %d", at, p->n_launches, p->refused);
  }
  if (p->n_results != 1) return results;
  PyObject* one = PyTuple_GetItem(results, 0);
  Py_INCREF(one);
  Py_DECREF(results);
  return one;
}

/* 0: not to be launched as it was written down. */
static int launched(Call* c, const pragma_tensor* rows, PyObject* const* held, PyObject** answer) {
  struct plan* p = c->plan;
  if (!p) return 0;
  ++p->users;
  const int holds = plan_holds(p, rows, held) && free_to_launch(p);
  if (holds) *answer = launch_all(p, rows, c->data_ptr, NULL);
  else PyErr_Clear();
  drop_plan(p);
  return holds;
}

/* launch(inputs[, results]): without looking at guards, for who just looked at them. */
static PyObject* launch_now(PyObject* self, PyObject* args) {
  Call* c = (Call*)self;
  PyObject *inputs, *given = NULL;
  if (!PyArg_ParseTuple(args, "O!|O!", &PyTuple_Type, &inputs, &PyTuple_Type, &given)) return NULL;
  if (!c->plan || PyTuple_Size(inputs) != c->plan->n_inputs || (given && PyTuple_Size(given) != c->plan->n_results))
    return PyErr_Format(PyExc_ValueError, "launch(inputs) of another call");
  struct plan* p = c->plan;
  pragma_tensor few[24], *rows = p->n_inputs <= 24 ? few : PyMem_Malloc((size_t)p->n_inputs * sizeof *rows);
  if (!rows) return PyErr_NoMemory();
  ++p->users;
  for (Py_ssize_t i = 0; !PyErr_Occurred() && i < p->n_inputs; ++i) {
    PyObject* address = PyObject_CallFunctionObjArgs(c->data_ptr, PyTuple_GetItem(inputs, i), NULL);
    rows[i].data = address ? PyLong_AsVoidPtr(address) : NULL;
    Py_XDECREF(address);
  }
  PyObject* results = PyErr_Occurred() ? NULL : launch_all(p, rows, c->data_ptr, given);
  drop_plan(p);
  if (rows != few) PyMem_Free(rows);
  return results;
}

static int launches_of(struct plan* p, PyObject* list) {
  p->n_launches = PyList_Size(list);
  p->launches = PyMem_Calloc((size_t)p->n_launches + 1, sizeof *p->launches);
  if (p->n_launches < 0 || !p->launches) return -1;
  for (Py_ssize_t i = 0, next = 0; i < p->n_launches; ++i) {
    launch* l = &p->launches[i];
    unsigned long long function;
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "K(III)IInn", &function, &l->grid[0], &l->grid[1], &l->grid[2], &l->block, &l->shared, &l->first, &l->count)) return -1;
    l->function = (void*)(uintptr_t)function;
    if (l->count < 0 || l->first != next || l->first + l->count > p->n_addresses) {
      PyErr_SetString(PyExc_ValueError, "a launch with other arguments than the next ones");
      return -1;
    }
    next += l->count;
  }
  static uintptr_t none; /* what Triton's own scratch memory would be, of kernels that need none: two arguments more of each */
  p->values = PyMem_Calloc(2 * (size_t)p->n_addresses + 1, sizeof *p->values);
  p->pointers = PyMem_Calloc((size_t)(p->n_addresses + 2 * p->n_launches) + 1, sizeof *p->pointers);
  p->nodes = PyMem_Calloc((size_t)p->n_launches + 1, sizeof *p->nodes);
  if (!p->values || !p->pointers || !p->nodes) return -1;
  for (Py_ssize_t i = 0; i < p->n_launches; ++i) {
    void** here = p->pointers + p->launches[i].first + 2 * i;
    for (Py_ssize_t a = 0; a < p->launches[i].count; ++a) here[a] = &p->values[p->launches[i].first + a];
    here[p->launches[i].count] = here[p->launches[i].count + 1] = &none;
  }
  return 0;
}

/* None: this driver has no graphs. */
static int graphs_of(struct plan* p, PyObject* list) {
  if (list == Py_None) return 0;
  void* found[GRAPH_FUNCTIONS];
  if (!PyTuple_Check(list) || PyTuple_Size(list) != GRAPH_FUNCTIONS) {
    PyErr_SetString(PyExc_ValueError, "a graph's functions");
    return -1;
  }
  for (Py_ssize_t i = 0; i < GRAPH_FUNCTIONS; ++i) found[i] = PyLong_AsVoidPtr(PyTuple_GetItem(list, i));
  memcpy(&p->graphs, found, sizeof found);
  p->by_graph = 1;
  return PyErr_Occurred() ? -1 : 0;
}

static int addresses_of(struct plan* p, PyObject* list) {
  p->n_addresses = PyList_Size(list);
  p->addresses = PyMem_Calloc((size_t)p->n_addresses + 1, sizeof *p->addresses);
  if (p->n_addresses < 0 || !p->addresses) return -1;
  for (Py_ssize_t i = 0; i < p->n_addresses; ++i) {
    unsigned long long value;
    launch_address* a = &p->addresses[i];
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "inK", &a->from, &a->index, &value)) return -1;
    a->value = (uintptr_t)value;
    const Py_ssize_t most = a->from == FROM_INPUT ? p->n_inputs : a->from == FROM_RESULT ? p->n_results : 1;
    if (a->from < FROM_NOWHERE || a->from > FROM_RESULT || a->index < 0 || a->index >= most) {
      PyErr_SetString(PyExc_ValueError, "an address of no tensor");
      return -1;
    }
  }
  return 0;
}

static int parameters_of(struct plan* p, PyObject* list) {
  p->n_parameters = PyList_Size(list);
  p->parameters = PyMem_Calloc((size_t)p->n_parameters + 1, sizeof *p->parameters);
  if (p->n_parameters < 0 || !p->parameters) return -1;
  for (Py_ssize_t i = 0; i < p->n_parameters; ++i) {
    unsigned long long version, address;
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "OKK", &p->parameters[i].tensor, &version, &address)) return -1;
    p->parameters[i].version = version;
    p->parameters[i].address = (uintptr_t)address;
  }
  return 0;
}

static int made_of(struct plan* p, PyObject* results, PyObject* aligned) {
  p->n_results = PyList_Size(results);
  p->n_inputs = PyList_Size(aligned);
  p->results = PyMem_Calloc((size_t)p->n_results + 1, sizeof *p->results);
  p->aligned = PyMem_Calloc((size_t)p->n_inputs + 1, sizeof *p->aligned);
  if (!p->results || !p->aligned) return -1;
  for (Py_ssize_t i = 0; !PyErr_Occurred() && i < p->n_results; ++i)
    if (!PyArg_ParseTuple(PyList_GetItem(results, i), "OO!", &p->results[i].function, &PyTuple_Type, &p->results[i].args)) return -1;
  for (Py_ssize_t i = 0; !PyErr_Occurred() && i < p->n_inputs; ++i) p->aligned[i] = PyObject_IsTrue(PyList_GetItem(aligned, i));
  return PyErr_Occurred() ? -1 : 0;
}

/* attach(the driver's functions, context, (stream function, its args, stream), (device function, its answer), results, aligned, parameters, addresses, launches, graph functions, keep): what run() launches from now
 * on where it all holds. attach(None): nothing. */
static PyObject* attach(PyObject* self, PyObject* args) {
  Call* c = (Call*)self;
  struct plan* before = c->plan;
  c->plan = NULL;
  drop_plan(before);
  if (PyTuple_Size(args) == 1) Py_RETURN_NONE;
  struct plan* p = PyMem_Calloc(1, sizeof *p);
  if (!p) return PyErr_NoMemory();
  p->users = 1;
  unsigned long long start, get_context, use_context, capturing, context, stream;
  PyObject *results, *aligned, *parameters, *addresses, *launches, *graphs, *keep;
  Py_INCREF(args);
  p->keep = args;
  if (!PyArg_ParseTuple(args, "(KKKK)K(OO!K)(OO)O!O!O!O!O!OO", &start, &get_context, &use_context, &capturing, &context, &p->stream, &PyTuple_Type, &p->stream_args, &stream, &p->device, &p->device_now, &PyList_Type, &results,
                        &PyList_Type, &aligned, &PyList_Type, &parameters, &PyList_Type, &addresses, &PyList_Type, &launches, &graphs, &keep) ||
      made_of(p, results, aligned) || parameters_of(p, parameters) || addresses_of(p, addresses) || launches_of(p, launches) || graphs_of(p, graphs)) {
    drop_plan(p);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
  }
  if (p->n_inputs != c->n_inputs || p->n_parameters != c->n_params || c->k) {
    drop_plan(p);
    PyErr_SetString(PyExc_ValueError, "launches of another call");
    return NULL;
  }
  const uintptr_t functions[4] = {(uintptr_t)start, (uintptr_t)get_context, (uintptr_t)use_context, (uintptr_t)capturing};
  memcpy(&p->driver, functions, sizeof functions);
  p->context = (void*)(uintptr_t)context;
  p->on_stream = (uintptr_t)stream;
  c->plan = p;
  Py_RETURN_NONE;
}
