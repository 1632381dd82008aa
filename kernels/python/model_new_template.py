"""ModelNew: a drop-in replacement for the Model of @TASK@, with a CPU kernel found by PRAGMA.

    from model_new import ModelNew
    model = ModelNew(*get_init_inputs())      # same constructor and state_dict as Model
    output = model(*inputs)                   # same arguments and results

The kernel (kernel.cpp beside this file) is compiled on first use and kept beside it. It is for inference on contiguous
CPU tensors of exactly the shapes and types below; anything else raises ValueError, nothing falls back to Torch silently.
It computes no gradients. @MUTATED@
"""
import ctypes
import hashlib
import importlib.util
import inspect
import json
import os
import shutil
import subprocess
import tempfile
import threading

import torch

SETTINGS = json.loads(r"""
@SETTINGS@
""")
FOLDER = os.path.dirname(os.path.abspath(__file__))
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
         torch.uint8, torch.bool]  # in the order of enum pragma_dtype
ALIGNMENT = 64


def _load_reference():
    path = os.path.join(FOLDER, "task_reference.py")
    spec = importlib.util.spec_from_file_location("task_reference_" + SETTINGS["task"][:12], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = _load_reference()


class pragma_tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("ndim", ctypes.c_int32), ("shape", ctypes.c_int64 * 8)]


class pragma_args(ctypes.Structure):
    _fields_ = [("inputs", ctypes.POINTER(pragma_tensor)), ("params", ctypes.POINTER(pragma_tensor)),
                ("outputs", ctypes.POINTER(pragma_tensor)), ("n_inputs", ctypes.c_int32), ("n_params", ctypes.c_int32),
                ("n_outputs", ctypes.c_int32), ("threads", ctypes.c_int32)]


def _processor():
    """-march=native means another binary on another processor."""
    try:
        with open("/proc/cpuinfo") as f:
            return "".join(sorted({line for line in f if line.startswith(("model name", "flags", "Features"))}))
    except OSError:
        return ""


def _compiler():
    """The name by which it is installed here: clang++ may be there as clang++-16 only."""
    name = SETTINGS["compiler"]
    for candidate in [name] + ["%s-%d" % (name, version) for version in range(30, 10, -1)]:
        if shutil.which(candidate):
            return candidate
    raise RuntimeError("%s is not installed: it is needed once, to build kernel.cpp" % name)


def compile_kernel():
    """Path of the shared object; compiled unless the very same one lies there already."""
    source_path = os.path.join(FOLDER, "kernel.cpp")
    with open(source_path, "rb") as f:
        source = f.read()
    command = [_compiler()] + SETTINGS["flags"]
    key = hashlib.sha256(source + json.dumps(command).encode() + _processor().encode()).hexdigest()[:16]
    name = "kernel-%s.so" % key
    folder = FOLDER
    if not os.access(folder, os.W_OK):
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        folder = os.path.join(base, "pragma", "drop-in")
        os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, name)
    if os.path.exists(path):
        return path
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as scratch:
        objects, shared = os.path.join(scratch, "kernel.o"), os.path.join(scratch, name)
        # Linked in a step of its own, without -ffast-math: GCC would add code that changes the rounding of the whole process.
        openmp = [f for f in command[1:] if f == "-fopenmp"]
        for step in (command + ["-fPIC", "-I", FOLDER, "-c", source_path, "-o", objects],
                     [command[0], "-shared", objects, "-o", shared] + openmp):
            try:
                done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            except OSError as e:
                raise RuntimeError("cannot run %s: %s; install it to build kernel.cpp" % (step[0], e.strerror))
            if done.returncode:
                raise RuntimeError("kernel.cpp was not compiled: %s\n%s" % (" ".join(step), done.stdout[-4000:]))
        os.replace(shared, path)
    return path


_kernel = None


def _kernel_function():
    global _kernel
    if _kernel is None:
        library = ctypes.CDLL(compile_kernel())
        _kernel = library.pragma_kernel
        _kernel.restype = None
        _kernel.argtypes = [ctypes.POINTER(pragma_args)]
    return _kernel


def _fill(entry, spec):
    entry.dtype = [str(t)[6:] for t in TYPES].index(spec["dtype"])
    entry.ndim = len(spec["shape"])
    for i, size in enumerate(spec["shape"]):
        entry.shape[i] = size


class _Call:
    """The argument block of one thread of Python, filled once but for the addresses."""

    def __init__(self):
        self.args = pragma_args()
        self.rows = {}
        for kind in ("inputs", "params", "outputs"):
            specs = SETTINGS[kind]
            row = (pragma_tensor * max(len(specs), 1))()
            for entry, spec in zip(row, specs):
                _fill(entry, spec)
            self.rows[kind] = row
            setattr(self.args, kind, ctypes.cast(row, ctypes.POINTER(pragma_tensor)))
            setattr(self.args, "n_" + kind, len(specs))
        self.args.threads = SETTINGS["threads"]


_local = threading.local()


def _call_block():
    if not hasattr(_local, "call"):
        _local.call = _Call()
    return _local.call


class ModelNew(reference.Model):
    _expected = {kind: [(s["name"], getattr(torch, s["dtype"]), tuple(s["shape"])) for s in SETTINGS[kind]]
                 for kind in ("inputs", "params", "outputs")}
    _scalars = {int(i): text for i, text in (s.split("=", 1) for s in SETTINGS["scalars"])}
    _signature = inspect.signature(reference.Model.forward)

    def _check(self, what, tensor, expected):
        name, dtype, shape = expected
        if isinstance(tensor, torch.Tensor) and tensor.dtype is dtype and tensor.shape == shape and tensor.is_contiguous() and \
           tensor.is_cpu:
            # A view into a larger tensor may start anywhere; the kernel counts on cache-line alignment.
            return tensor if tensor.data_ptr() % ALIGNMENT == 0 or tensor.numel() == 0 else tensor.clone()
        if not isinstance(tensor, torch.Tensor):
            raise ValueError("ModelNew: %s '%s' must be a tensor, not %s" % (what, name, type(tensor).__name__))
        if tensor.dtype != dtype or tuple(tensor.shape) != shape:
            raise ValueError("ModelNew: %s '%s' must be %s of shape %s (the kernel is made for it), not %s of shape %s" %
                             (what, name, dtype, list(shape), tensor.dtype, list(tensor.shape)))
        if tensor.device.type != "cpu":
            raise ValueError("ModelNew: %s '%s' is on %s; the kernel runs on the CPU" % (what, name, tensor.device))
        raise ValueError("ModelNew: %s '%s' is not contiguous; pass %s.contiguous()" % (what, name, name))

    def _state(self):
        """The tensors that the kernel reads as parameters, in its order."""
        owners = self.__dict__.get("_owners")
        if owners is None:
            owners = []
            for name, _, _ in self._expected["params"]:
                path, _, attribute = name.rpartition(".")
                owners.append((self.get_submodule(path), attribute))
            self.__dict__["_owners"] = owners
        return [getattr(owner, attribute) for owner, attribute in owners]

    def forward(self, *args, **kwargs):
        count = len(self._expected["inputs"]) + len(self._scalars)
        if kwargs or len(args) != count:
            bound = self._signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            args = tuple(bound.args[1:])[:count]
        for position, text in self._scalars.items():
            if repr(args[position]) != text:
                raise ValueError("ModelNew: argument %d must be %s (the kernel is made for it), not %r" %
                                 (position, text, args[position]))
        tensors = [a for i, a in enumerate(args) if i not in self._scalars]
        if torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in tensors):
            raise ValueError("ModelNew computes no gradients: detach the inputs or call it under torch.no_grad()")
        inputs = [self._check("input", a, e) for a, e in zip(tensors, self._expected["inputs"])]
        params = [self._check("parameter", p.detach(), e) for p, e in zip(self._state(), self._expected["params"])]
        outputs = [torch.empty(shape, dtype=dtype) for _, dtype, shape in self._expected["outputs"]]
        call = _call_block()
        for kind, values in (("inputs", inputs), ("params", params), ("outputs", outputs)):
            for entry, value in zip(call.rows[kind], values):
                entry.data = value.data_ptr()
        _kernel_function()(ctypes.byref(call.args))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)
