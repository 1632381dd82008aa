/* The call of a drop-in, compiled: checks all that the kernel was made for, allocates the results and calls the kernel, at the cost of
 * one Torch operator. Python (pragma_drop_in.py) decides what is to hold and makes a Call of it; a Call only looks whether it still does.
 * Within Python's stable interface (3.10), so that one object serves every Python, and without Torch's headers, so that it serves
 * every Torch: what it must know of a tensor comes from Torch's C interface where there is one (aoti_torch_*), else from attributes. */
#define Py_LIMITED_API 0x030a0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "pragma_kernel.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define ALIGNMENT 64
#define MOST_DIMS 8
#define MOST_TENSORS 65536
#define LARGE_PAGE ((size_t)2 << 20)
#define MAPPED_ANEW ((size_t)32 << 20) /* glibc takes larger blocks from the system, and gives them back, each time */

/* -- kernels: scratch of a kernel is static, so one call at a time each ---------------------------------------------------------- */

typedef struct kernel {
  void (*function)(const pragma_args*);
  pthread_mutex_t lock;
  struct kernel* next;
} kernel;

static kernel* kernels;    /* never freed: a library with OpenMP's threads in it is never unloaded */
static int forked;         /* this process is a fork's child: OpenMP's threads are not here */

static void before_fork(void) {
  for (kernel* k = kernels; k; k = k->next) pthread_mutex_lock(&k->lock);
}
static void after_fork_parent(void) {
  for (kernel* k = kernels; k; k = k->next) pthread_mutex_unlock(&k->lock);
}
static void after_fork_child(void) {
  forked = 1;
  after_fork_parent();
}

static PyObject* load(PyObject* module, PyObject* path) {
  (void)module;
  PyObject* bytes = NULL;
  if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
  void* library = dlopen(PyBytes_AsString(bytes), RTLD_NOW | RTLD_LOCAL);
  Py_DECREF(bytes);
  void* symbol = library ? dlsym(library, "pragma_kernel") : NULL;
  if (!symbol) {
    const char* why = dlerror();
    PyErr_SetString(PyExc_OSError, why ? why : "no function pragma_kernel");
    return NULL;
  }
  kernel* k = PyMem_Calloc(1, sizeof *k);
  if (!k) return PyErr_NoMemory();
  memcpy(&k->function, &symbol, sizeof symbol);
  pthread_mutex_init(&k->lock, NULL);
  k->next = kernels;
  kernels = k;
  return PyCapsule_New(k, "pragma.kernel", NULL);
}

typedef struct { kernel* k; const pragma_args* args; } job;
static void* run_job(void* data) {
  const job* j = data;
  j->k->function(j->args);
  return NULL;
}

/* Returns 0, or -1 where no thread could be made. */
static int call_kernel(kernel* k, const pragma_args* args) {
  int failed = 0;
  PyThreadState* state = PyEval_SaveThread();
  pthread_mutex_lock(&k->lock);
  if (forked && args->threads > 1) { /* a team belongs to the thread that made it: a new thread makes a new one */
    job j = {k, args};
    pthread_t worker;
    failed = pthread_create(&worker, NULL, run_job, &j) ? -1 : 0;
    if (!failed) pthread_join(worker, NULL);
  } else {
    k->function(args);
  }
  pthread_mutex_unlock(&k->lock);
  PyEval_RestoreThread(state);
  return failed;
}

/* -- what Torch says of a tensor ------------------------------------------------------------------------------------------------- */

typedef int32_t (*get_pointer)(void*, void**);
typedef int32_t (*get_int64)(void*, int64_t*);
typedef int32_t (*get_int32)(void*, int32_t*);
typedef int32_t (*get_row)(void*, int64_t**);
static struct { get_pointer data; get_int64 dim; get_row sizes, strides; get_int32 dtype, device, index; int there; } torch_c;

static void* symbol_of(void* library, const char* name) { return library ? dlsym(library, name) : NULL; }

static void find_torch_c(void) {
  void* library = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  void* found[7] = {symbol_of(library, "aoti_torch_get_data_ptr"), symbol_of(library, "aoti_torch_get_dim"), symbol_of(library, "aoti_torch_get_sizes"),
                    symbol_of(library, "aoti_torch_get_strides"), symbol_of(library, "aoti_torch_get_dtype"), symbol_of(library, "aoti_torch_get_device_type"),
                    symbol_of(library, "aoti_torch_get_device_index")};
  void* to[7] = {&torch_c.data, &torch_c.dim, &torch_c.sizes, &torch_c.strides, &torch_c.dtype, &torch_c.device, &torch_c.index};
  torch_c.there = 1;
  for (int i = 0; i < 7; ++i) {
    memcpy(to[i], &found[i], sizeof found[i]);
    torch_c.there &= found[i] != NULL;
  }
}

typedef struct {
  PyObject *holder, *key;      /* a parameter: where it is kept. An input: NULL */
  Py_ssize_t position;         /* an input: which argument */
  PyObject *dtype, *shape;     /* torch.dtype, tuple */
  int32_t dtype_code;          /* Torch's own number of it */
  pragma_tensor entry;         /* filled but for the address */
} expected_tensor;

typedef struct { PyObject *holder, *key, *value, *cause; } fact;
typedef struct { PyObject *name, *function, *args, *value; } state_fact;
typedef struct { PyObject *text, *last; Py_ssize_t position; } scalar;
typedef struct { PyObject *function, *args; pragma_tensor entry; size_t bytes; } result;

typedef struct {
  PyObject_HEAD
  kernel* k;
  int threads, on_cpu;
  int32_t device_type, device_index; /* in Torch's count; type -1: one that has no number here */
  unsigned long long hits;
  PyObject *root, *verdict, *tensor_type, *parameter_type, *device, *keep;
  PyObject *data_ptr, *is_contiguous, *is_neg, *grad_enabled;
  fact *same, *equal, *sizes, *classes;
  Py_ssize_t n_same, n_equal, n_sizes, n_classes, n_state, n_scalars, n_inputs, n_params, n_results, n_arguments;
  state_fact* state;
  scalar* scalars;
  expected_tensor *inputs, *params;
  result* results;
  struct plan* plan;           /* on a device: the launches of a call */
} Call;

static PyObject *name_dtype, *name_shape, *name_is_cpu, *name_device, *name_requires_grad, *name_cdata;
static PyObject *cause_rebind, *cause_arguments, *cause_type, *cause_dtype, *cause_shape, *cause_device, *cause_strides, *cause_storage,
  *cause_alignment, *cause_scalar, *cause_gradients;

static int is_attribute(PyObject* tensor, PyObject* name, PyObject* wanted) {
  PyObject* value = PyObject_GetAttr(tensor, name);
  const int same = value == wanted;
  Py_XDECREF(value);
  return same;
}

/* By attributes: any Torch. */
static PyObject* look_slowly(Call* c, const expected_tensor* e, PyObject* t, void** data) {
  if (!is_attribute(t, name_dtype, e->dtype)) return cause_dtype;
  PyObject* shape = PyObject_GetAttr(t, name_shape);
  const int same = shape ? PyObject_RichCompareBool(shape, e->shape, Py_EQ) : -1;
  Py_XDECREF(shape);
  if (same != 1) return cause_shape;
  if (c->on_cpu) {
    if (!is_attribute(t, name_is_cpu, Py_True)) return cause_device;
  } else {
    PyObject* device = PyObject_GetAttr(t, name_device);
    const int here = device ? PyObject_RichCompareBool(device, c->device, Py_EQ) : -1;
    Py_XDECREF(device);
    if (here != 1) return cause_device;
  }
  PyObject* contiguous = PyObject_CallFunctionObjArgs(c->is_contiguous, t, NULL);
  const int dense = contiguous == Py_True;
  Py_XDECREF(contiguous);
  if (!dense) return cause_strides;
  PyObject* address = PyObject_CallFunctionObjArgs(c->data_ptr, t, NULL);
  *data = address ? PyLong_AsVoidPtr(address) : NULL;
  Py_XDECREF(address);
  return PyErr_Occurred() ? cause_storage : NULL;
}

/* By Torch's C interface. Its handle is the address of an at::Tensor, which is one pointer: the one that `_cdata` gives. */
static PyObject* look_quickly(const Call* c, const expected_tensor* e, PyObject* t, void** data) {
  PyObject* address = PyObject_GetAttr(t, name_cdata);
  void* tensor = address ? PyLong_AsVoidPtr(address) : NULL;
  Py_XDECREF(address);
  if (!tensor) return cause_storage;
  int32_t dtype = -1, device = -1, index = -1;
  int64_t dim = -1, *sizes = NULL, *strides = NULL;
  if (torch_c.device(&tensor, &device) || device != c->device_type) return cause_device;
  if (device != 0 && (torch_c.index(&tensor, &index) || index != c->device_index)) return cause_device;
  if (torch_c.dtype(&tensor, &dtype) || dtype != e->dtype_code) return cause_dtype;
  if (torch_c.dim(&tensor, &dim) || dim != e->entry.ndim || torch_c.sizes(&tensor, &sizes)) return cause_shape;
  for (int64_t i = 0; i < dim; ++i)
    if (sizes[i] != e->entry.shape[i]) return cause_shape;
  if (torch_c.strides(&tensor, &strides)) return cause_strides;
  int64_t wanted = 1;
  for (int64_t i = dim - 1; i >= 0; --i) {
    if (sizes[i] != 1 && strides[i] != wanted) return cause_strides;
    wanted *= sizes[i];
  }
  return torch_c.data(&tensor, data) ? cause_storage : NULL;
}

/* NULL: as expected, and its address is in `data`. Else which guard failed (borrowed). */
static PyObject* look(Call* c, const expected_tensor* e, PyObject* t, int grad, void** data) {
  PyObject* type = (PyObject*)Py_TYPE(t);
  if (type != c->tensor_type && type != c->parameter_type) return cause_type;
  PyObject* cause = torch_c.there && c->device_type >= 0 ? look_quickly(c, e, t, data) : look_slowly(c, e, t, data);
  if (cause) return cause;
  int64_t elements = 1;
  for (int i = 0; i < e->entry.ndim; ++i) elements *= e->entry.shape[i];
  if (elements > 0 && !*data) return cause_storage;
  if (elements == 1) { /* a longer one with a lazy sign is not contiguous */
    PyObject* negative = PyObject_CallFunctionObjArgs(c->is_neg, t, NULL);
    const int plain = negative == Py_False;
    Py_XDECREF(negative);
    if (!plain) return cause_storage;
  }
  if (grad && !is_attribute(t, name_requires_grad, Py_False)) return cause_gradients;
  return c->on_cpu && elements > 0 && (uintptr_t)*data % ALIGNMENT ? cause_alignment : NULL;
}

#include "pragma_launch.h"

/* -- a call ---------------------------------------------------------------------------------------------------------------------- */

/* Does the model still look as it did when the Call was made? */
static int unchanged(const Call* c, PyObject* model) {
  PyObject* root = PyObject_GenericGetDict(model, NULL);
  Py_XDECREF(root);
  if (root != c->root) return 0;
  for (Py_ssize_t i = 0; i < c->n_same; ++i)
    if (PyDict_GetItemWithError(c->same[i].holder, c->same[i].key) != c->same[i].value) return 0;
  for (Py_ssize_t i = 0; i < c->n_sizes; ++i)
    if (PyDict_Size(c->sizes[i].holder) != PyLong_AsSsize_t(c->sizes[i].value)) return 0;
  for (Py_ssize_t i = 0; i < c->n_classes; ++i)
    if ((PyObject*)Py_TYPE(c->classes[i].holder) != c->classes[i].value) return 0;
  for (Py_ssize_t i = 0; i < c->n_equal; ++i) {
    PyObject* now = PyDict_GetItemWithError(c->equal[i].holder, c->equal[i].key);
    if (!now) return 0;
    Py_INCREF(now);
    const int same = PyObject_RichCompareBool(now, c->equal[i].value, Py_EQ);
    Py_DECREF(now);
    if (same != 1) return 0;
  }
  return 1;
}

/* The name of the first thing that is not as it was (borrowed), or NULL. */
static PyObject* other_state(const Call* c) {
  for (Py_ssize_t i = 0; i < c->n_state; ++i) {
    const state_fact* s = &c->state[i];
    PyObject* now = s->args ? PyObject_Call(s->function, s->args, NULL) : PyObject_CallNoArgs(s->function);
    if (!now) return s->name;
    const int same = now == s->value || PyObject_RichCompareBool(now, s->value, Py_EQ) == 1;
    Py_DECREF(now);
    if (!same) return s->name;
  }
  return NULL;
}

static int same_scalar(scalar* s, PyObject* value) {
  if (value == s->last) return 1;
  PyObject* text = PyObject_Repr(value);
  const int same = text && PyUnicode_Compare(text, s->text) == 0;
  Py_XDECREF(text);
  if (same && (PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyBool_Check(value) || value == Py_None || PyUnicode_CheckExact(value))) {
    Py_INCREF(value);
    Py_XDECREF(s->last);
    s->last = value;
  }
  return same;
}

static PyObject* failed_guard(PyObject* cause) {
  PyErr_Clear();
  Py_INCREF(cause);
  return cause;
}

/* Fills `rows` with inputs, then parameters; takes a reference of each parameter into `held`. */
static PyObject* gather(Call* c, PyObject* args, pragma_tensor* rows, PyObject** held, Py_ssize_t* n_held) {
  PyObject* enabled = PyObject_CallNoArgs(c->grad_enabled);
  const int grad = enabled != Py_False;
  Py_XDECREF(enabled);
  for (Py_ssize_t i = 0; i < c->n_scalars; ++i)
    if (!same_scalar(&c->scalars[i], PyTuple_GetItem(args, c->scalars[i].position))) return cause_scalar;
  PyObject* weaker = NULL; /* one that says how to go on is told only when nothing else is wrong */
  for (Py_ssize_t i = 0; i < c->n_inputs + c->n_params; ++i) {
    const expected_tensor* e = i < c->n_inputs ? &c->inputs[i] : &c->params[i - c->n_inputs];
    PyObject* t = e->holder ? PyDict_GetItemWithError(e->holder, e->key) : PyTuple_GetItem(args, e->position);
    if (!t) return cause_rebind;
    Py_INCREF(t);
    held[(*n_held)++] = t;
    rows[i] = e->entry;
    PyObject* cause = look(c, e, t, grad, &rows[i].data);
    if (cause == cause_gradients || (cause == cause_alignment && !weaker)) weaker = cause;
    else if (cause && cause != cause_alignment) return cause;
  }
  return weaker;
}

/* Memory that has just come from the system has no pages yet: as large ones they cost a part of what small ones do. Asked for, where the system lets a program choose (madvise), and no
 * failure: a wish. */
static void as_large_pages(void* data, size_t bytes) {
#ifdef MADV_HUGEPAGE
  const uintptr_t first = ((uintptr_t)data + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1), end = ((uintptr_t)data + bytes) & ~(LARGE_PAGE - 1);
  if (data && bytes >= MAPPED_ANEW) (void)madvise((void*)first, end - first, MADV_HUGEPAGE);
#else
  (void)data, (void)bytes;
#endif
}

static int allocate(Call* c, pragma_tensor* rows, PyObject** made) {
  for (Py_ssize_t i = 0; i < c->n_results; ++i) {
    made[i] = PyObject_Call(c->results[i].function, c->results[i].args, NULL);
    if (!made[i]) return -1;
    rows[i] = c->results[i].entry;
    PyObject* address = PyObject_CallFunctionObjArgs(c->data_ptr, made[i], NULL);
    rows[i].data = address ? PyLong_AsVoidPtr(address) : NULL;
    Py_XDECREF(address);
    if (PyErr_Occurred()) return -1;
    as_large_pages(rows[i].data, c->results[i].bytes);
  }
  return 0;
}

/* run(model, args): the results; or a str, the guard that failed; or None, all guards hold and there is no kernel to call here. */
static PyObject* run(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  Call* c = (Call*)self;
  if (count != 2 || !PyTuple_Check(arguments[1])) return PyErr_Format(PyExc_TypeError, "run(model, args)");
  PyObject* args = arguments[1];
  if (!c->keep || !unchanged(c, arguments[0])) return failed_guard(cause_rebind);
  if (c->verdict != Py_None) return failed_guard(c->verdict);
  PyObject* cause = other_state(c);
  if (cause) return failed_guard(cause);
  if (PyTuple_Size(args) != c->n_arguments) return failed_guard(cause_arguments);

  pragma_tensor few[24];
  PyObject* few_held[24];
  const Py_ssize_t total = c->n_inputs + c->n_params + c->n_results;
  pragma_tensor* rows = total <= 24 ? few : PyMem_Malloc((size_t)total * sizeof *rows);
  PyObject** held = total <= 24 ? few_held : PyMem_Malloc((size_t)total * sizeof *held);
  PyObject* answer = NULL;
  Py_ssize_t n_held = 0;
  PyObject** made = held ? held + c->n_inputs + c->n_params : NULL;
  for (Py_ssize_t i = 0; rows && held && i < c->n_results; ++i) made[i] = NULL;
  if (!rows || !held) {
    PyErr_NoMemory();
  } else if ((cause = gather(c, args, rows, held, &n_held))) {
    answer = failed_guard(cause);
  } else if (!c->k && launched(c, rows, held, &answer)) {
    ; /* on a device, by handle */
  } else if (!c->k) {
    Py_INCREF(Py_None);
    answer = Py_None;
  } else if (allocate(c, rows + c->n_inputs + c->n_params, made) == 0) {
    const pragma_args block = {rows, rows + c->n_inputs, rows + c->n_inputs + c->n_params, (int32_t)c->n_inputs, (int32_t)c->n_params,
                               (int32_t)c->n_results, c->threads};
    if (call_kernel(c->k, &block) != 0) PyErr_SetString(PyExc_RuntimeError, "no thread could be started for the kernel");
    else if (c->n_results == 1) Py_INCREF(answer = made[0]);
    else {
      answer = PyTuple_New(c->n_results);
      for (Py_ssize_t i = 0; answer && i < c->n_results; ++i) {
        Py_INCREF(made[i]);
        PyTuple_SetItem(answer, i, made[i]);
      }
    }
  }
  c->hits += answer && !cause;
  for (Py_ssize_t i = 0; i < n_held; ++i) Py_DECREF(held[i]);
  for (Py_ssize_t i = 0; rows && held && i < c->n_results; ++i) Py_XDECREF(made[i]);
  if (total > 24) {
    PyMem_Free(rows);
    PyMem_Free(held);
  }
  return answer;
}

static PyObject* hits(PyObject* self, PyObject* none) {
  (void)none;
  return PyLong_FromUnsignedLongLong(((Call*)self)->hits);
}

#include "pragma_call_make.h"
