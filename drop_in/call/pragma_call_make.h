/* The second half of pragma_call.c: a Call is made from lists, and the module. All objects that a Call looks at are kept by the tuple
 * `keep`, the arguments that it was made of; the tables only borrow them. */

/* By enum pragma_dtype. */
static size_t bytes_of(const pragma_tensor* entry) {
  static const size_t element[] = {4, 8, 2, 2, 8, 4, 2, 1, 1, 1};
  size_t bytes = (size_t)entry->dtype < sizeof element / sizeof *element ? element[entry->dtype] : 0;
  for (int32_t i = 0; i < entry->ndim; ++i) bytes *= (size_t)entry->shape[i];
  return bytes;
}

static int fill_entry(PyObject* shape, long dtype, pragma_tensor* entry) {
  const Py_ssize_t dims = PyTuple_Size(shape);
  if (dims < 0 || dims > MOST_DIMS) {
    PyErr_Format(PyExc_ValueError, "a tensor of %zd dimensions", dims);
    return -1;
  }
  entry->dtype = (int32_t)dtype;
  entry->ndim = (int32_t)dims;
  for (Py_ssize_t i = 0; i < dims; ++i) entry->shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
  return PyErr_Occurred() ? -1 : 0;
}

static int32_t code_of(PyObject* sample) {
  PyObject* address = torch_c.there ? PyObject_GetAttr(sample, name_cdata) : NULL;
  void* tensor = address ? PyLong_AsVoidPtr(address) : NULL;
  int32_t code = -1;
  if (tensor) torch_c.dtype(&tensor, &code);
  Py_XDECREF(address);
  return code;
}

static fact* facts_of(PyObject* list, Py_ssize_t* count) {
  const Py_ssize_t n = PyList_Size(list);
  fact* facts = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof *facts);
  for (Py_ssize_t i = 0; facts && i < n; ++i)
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "OOO", &facts[i].holder, &facts[i].key, &facts[i].value)) {
      PyMem_Free(facts);
      return NULL;
    }
  if (facts) *count = n;
  return facts;
}

/* Each of `list` is (the dict that keeps it or None, its key or its position in the arguments, torch.dtype, number of the dtype, shape, sample). */
static expected_tensor* tensors_of(PyObject* list, Py_ssize_t* count) {
  const Py_ssize_t n = PyList_Size(list);
  if (n > MOST_TENSORS) return (expected_tensor*)PyErr_Format(PyExc_ValueError, "%zd tensors", n);
  expected_tensor* made = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof *made);
  for (Py_ssize_t i = 0; made && i < n; ++i) {
    PyObject *holder, *key, *sample;
    long dtype;
    expected_tensor* e = &made[i];
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "OOOlO!O", &holder, &key, &e->dtype, &dtype, &PyTuple_Type, &e->shape, &sample) ||
        fill_entry(e->shape, dtype, &e->entry)) {
      PyMem_Free(made);
      return NULL;
    }
    e->holder = holder == Py_None ? NULL : holder;
    e->key = key;
    e->position = e->holder ? 0 : PyLong_AsSsize_t(key);
    e->dtype_code = code_of(sample);
  }
  if (made) *count = n;
  return made;
}

static int others_of(Call* c, PyObject* state, PyObject* scalars, PyObject* results) {
  c->n_state = PyList_Size(state);
  c->n_scalars = PyList_Size(scalars);
  c->n_results = PyList_Size(results);
  c->state = PyMem_Calloc((size_t)c->n_state + 1, sizeof *c->state);
  c->scalars = PyMem_Calloc((size_t)c->n_scalars + 1, sizeof *c->scalars);
  c->results = PyMem_Calloc((size_t)c->n_results + 1, sizeof *c->results);
  if (!c->state || !c->scalars || !c->results) return -1;
  for (Py_ssize_t i = 0; i < c->n_state; ++i) {
    state_fact* s = &c->state[i];
    if (!PyArg_ParseTuple(PyList_GetItem(state, i), "OOO!O", &s->name, &s->function, &PyTuple_Type, &s->args, &s->value)) return -1;
    if (PyTuple_Size(s->args) == 0) s->args = NULL;
  }
  for (Py_ssize_t i = 0; i < c->n_scalars; ++i)
    if (!PyArg_ParseTuple(PyList_GetItem(scalars, i), "nO", &c->scalars[i].position, &c->scalars[i].text)) return -1;
  for (Py_ssize_t i = 0; i < c->n_results; ++i) {
    long dtype;
    PyObject* shape;
    if (!PyArg_ParseTuple(PyList_GetItem(results, i), "OO!lO!", &c->results[i].function, &PyTuple_Type, &c->results[i].args, &dtype, &PyTuple_Type, &shape) ||
        fill_entry(shape, dtype, &c->results[i].entry))
      return -1;
    c->results[i].bytes = bytes_of(&c->results[i].entry);
  }
  return 0;
}

/* Of CUDA's devices: 1 in DLPack's count, Torch's own and here. */
static void number_of_device(Call* c) {
  PyObject* type = PyObject_GetAttrString(c->device, "type");
  PyObject* index = PyObject_GetAttrString(c->device, "index");
  if (type && index && PyUnicode_Check(type) && PyUnicode_CompareWithASCIIString(type, "cuda") == 0 && PyLong_Check(index)) {
    c->device_type = 1;
    c->device_index = (int32_t)PyLong_AsLong(index);
  }
  Py_XDECREF(type);
  Py_XDECREF(index);
  PyErr_Clear();
}

static PyObject* call_new(PyTypeObject* type, PyObject* args, PyObject* named) {
  (void)named;
  PyObject *capsule, *functions, *types, *device, *root, *verdict, *same, *equal, *sizes, *classes, *state, *inputs, *params, *scalars, *results;
  int threads;
  Py_ssize_t wanted;
  if (!PyArg_ParseTuple(args, "OinO!O!OO!OO!O!O!O!O!O!O!O!O!", &capsule, &threads, &wanted, &PyTuple_Type, &functions, &PyTuple_Type, &types, &device, &PyDict_Type, &root,
                        &verdict, &PyList_Type, &same, &PyList_Type, &equal, &PyList_Type, &sizes, &PyList_Type, &classes, &PyList_Type, &state,
                        &PyList_Type, &inputs, &PyList_Type, &params, &PyList_Type, &scalars, &PyList_Type, &results))
    return NULL;
  allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  Call* c = (Call*)make(type, 0);
  if (!c) return NULL;
  Py_INCREF(args);
  c->keep = args;
  c->threads = threads;
  c->device = device;
  c->on_cpu = device == Py_None;
  c->device_type = c->on_cpu ? 0 : -1;
  c->root = root;
  c->verdict = verdict;
  if (!c->on_cpu) number_of_device(c);
  const int good = PyArg_ParseTuple(types, "OO", &c->tensor_type, &c->parameter_type) && PyArg_ParseTuple(functions, "OOOO", &c->data_ptr, &c->is_contiguous, &c->is_neg, &c->grad_enabled) &&
                   (capsule == Py_None || (c->k = PyCapsule_GetPointer(capsule, "pragma.kernel"))) && (c->same = facts_of(same, &c->n_same)) &&
                   (c->equal = facts_of(equal, &c->n_equal)) && (c->sizes = facts_of(sizes, &c->n_sizes)) &&
                   (c->classes = facts_of(classes, &c->n_classes)) && (c->inputs = tensors_of(inputs, &c->n_inputs)) &&
                   (c->params = tensors_of(params, &c->n_params)) && others_of(c, state, scalars, results) == 0;
  if (!good || PyErr_Occurred()) {
    Py_DECREF(c);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
  }
  c->n_arguments = wanted;
  return (PyObject*)c;
}

static int call_traverse(PyObject* self, visitproc visit, void* arg) {
  Call* c = (Call*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(c->keep);
  for (Py_ssize_t i = 0; c->scalars && i < c->n_scalars; ++i) Py_VISIT(c->scalars[i].last);
  return 0;
}

static int call_clear(PyObject* self) {
  Call* c = (Call*)self;
  for (Py_ssize_t i = 0; c->scalars && i < c->n_scalars; ++i) Py_CLEAR(c->scalars[i].last);
  Py_CLEAR(c->keep);
  return 0;
}

static void call_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  call_clear(self);
  Call* c = (Call*)self;
  drop_plan(c->plan);
  void* tables[] = {c->same, c->equal, c->sizes, c->classes, c->state, c->scalars, c->results, c->inputs, c->params};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i) PyMem_Free(tables[i]);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

static PyMethodDef call_methods[] = {
  {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, "run(model, args): the results, or the name of the guard that failed"},
  {"attach", attach, METH_VARARGS, "attach(...): the launches of a call on a device (pragma_launch.h)"},
  {"launch", launch_now, METH_VARARGS, "launch(inputs[, results]): the attached launches, without looking at guards"},
  {"hits", hits, METH_NOARGS, "how often all guards held"},
  {NULL, NULL, 0, NULL}};

static PyType_Slot call_slots[] = {{Py_tp_new, call_new}, {Py_tp_traverse, call_traverse}, {Py_tp_clear, call_clear},
                                   {Py_tp_dealloc, call_dealloc}, {Py_tp_methods, call_methods}, {0, NULL}};
static PyType_Spec call_spec = {"pragma_call.Call", sizeof(Call), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, call_slots};

static int set_up(PyObject* module) {
  static int once;
  if (!once) {
    once = 1;
    find_torch_c();
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    const struct { PyObject** to; const char* text; } names[] = {
      {&name_dtype, "dtype"}, {&name_shape, "shape"}, {&name_is_cpu, "is_cpu"}, {&name_device, "device"}, {&name_requires_grad, "requires_grad"},
      {&name_cdata, "_cdata"}, {&name_version, "_version"}, {&cause_rebind, "rebind"}, {&cause_arguments, "arguments"}, {&cause_type, "type"}, {&cause_dtype, "dtype"},
      {&cause_shape, "shape"}, {&cause_device, "device"}, {&cause_strides, "strides"}, {&cause_storage, "storage"},
      {&cause_alignment, "alignment"}, {&cause_scalar, "scalar"}, {&cause_gradients, "gradients"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
      if (!(*names[i].to = PyUnicode_InternFromString(names[i].text))) return -1;
  }
  if (!no_arguments && !(no_arguments = PyTuple_New(0))) return -1;
  PyObject* type = PyType_FromSpec(&call_spec);
  if (!type) return -1;
  const int failed = PyModule_AddObjectRef(module, "Call", type);
  Py_DECREF(type);
  return failed;
}

static PyMethodDef module_methods[] = {{"load", load, METH_O, "load(path): the kernel of a shared object"}, {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, set_up}, {0, NULL}};
static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, "pragma_call", "The call of a drop-in, compiled.", 0, module_methods, module_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_pragma_call(void) { return PyModuleDef_Init(&module_def); }
