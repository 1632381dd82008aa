"""Compiled GPU kernels beside their source: built/kernels.json and built/*.cubin. Where they were made for this GPU, this Triton and this very kernel.py, they are
loaded and launched through CUDA's driver, so that the first call compiles and tunes nothing and no compiler is needed; else Triton compiles as without them.

usage: python3 pragma_built.py FOLDER [OUT]        FOLDER: a drop-in for CUDA; OUT: where built/ is made (default: FOLDER), of a drop-in of parts parts/N/built

makes them on the GPU that is there, after Triton has tuned; prints the names of the kernels as JSON."""
import contextlib
import ctypes
import functools
import glob
import hashlib
import json
import os
import sys
import threading
import types
import warnings

import torch

LIST = os.path.join("built", "kernels.json")
MOST_BYTES = 64 << 20  # of a file; ours have some 50 KB
SHARED_ATTRIBUTE = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
LANES = 32
PLAIN = {"num_ctas": 1, "launch_cooperative_grid": False, "launch_pdl": False, "global_scratch_size": 0, "profile_scratch_size": 0}  # what we launch, as in pragma_device.py


class NotBuilt(Exception):
    """What cannot be made or used: why."""


def digest(content):
    return hashlib.sha256(content).hexdigest()


def content_of(path):
    with open(path, "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise NotBuilt(path + " is too large")
    return content


def kernels_of(module):
    """[(name, autotuner or None, JITFunction)] of a module's kernels."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction
    found = []
    for name, value in sorted(vars(module).items()):
        tuner = value if isinstance(value, Autotuner) else None
        function = tuner.fn if tuner else value
        if isinstance(function, JITFunction):
            found.append((name, tuner, function))
    return found


def asked(function, args, options):
    """What decides which program Triton makes of a kernel, as text; NotBuilt where it is more than types, alignment and plain constants."""
    given = dict(zip(function.arg_names, args))
    options = dict(options)
    for name in function.arg_names:
        if name in options:
            given[name] = options.pop(name)
    words = []
    for parameter in function.params:
        value = given.get(parameter.name, function.signature.parameters[parameter.name].default)
        if parameter.is_constexpr and isinstance(value, (bool, int, float, str, type(None))):
            words.append([parameter.name, type(value).__name__, repr(value)])
        elif not parameter.is_constexpr and isinstance(value, torch.Tensor):
            words.append([parameter.name, str(value.dtype), value.data_ptr() % 16 == 0])
        else:
            raise NotBuilt("%s has an argument that is neither a tensor nor a plain constant: %s" % (function.__name__, parameter.name))
    words.append(sorted([name, repr(value)] for name, value in options.items()))
    return json.dumps(words)


def tensors_of(function, args, options):
    given = dict(zip(function.arg_names, args), **options)
    return [given.get(p.name, function.signature.parameters[p.name].default) for p in function.params if not p.is_constexpr]


# -- making ---------------------------------------------------------------------------------------------------------------


class Making:
    """Runs a module once and keeps the programs that it launched."""

    def __init__(self, module, run_kernel):
        self.kernels, self.run_kernel, self.programs = kernels_of(module), run_kernel, {}

    def __enter__(self):
        for name, _, function in self.kernels:
            function.run = functools.partial(self.run, name, function, function.run)
        return self

    def __exit__(self, *_):
        for _, _, function in self.kernels:
            del function.run  # what the class has

    def run(self, name, function, run, *args, grid, warmup, **options):
        kernel = self.run_kernel(run, *args, grid=grid, warmup=warmup, **options)
        if not warmup:
            self.programs[name, asked(function, args, options)] = kernel
        return kernel


def chosen(tuner):
    """The index of the configuration that was tuned; NotBuilt where that depends on the call, or on hooks."""
    best = list({id(c): c for c in tuner.cache.values()}.values()) or tuner.configs[:1]
    if len(best) != 1 or tuner.keys or tuner.reset_to_zero or tuner.restore_value:
        raise NotBuilt("a kernel whose configuration depends on the call")
    return [id(c) for c in tuner.configs].index(id(best[0]))


def save(out, module, source, capability, programs):
    """Writes built/ of `out`. `capability`: [9, 0]; `programs`: {(kernel's name, asked()): CompiledKernel}."""
    import triton
    if not programs:
        raise NotBuilt("no kernel was launched")
    told = {"source": digest(source), "triton": triton.__version__, "capability": list(capability), "programs": [],
            "tuned": {name: chosen(tuner) for name, tuner, _ in kernels_of(module) if tuner and any(name == used for used, _ in programs)}}
    files = {}
    for number, ((name, words), kernel) in enumerate(sorted(programs.items(), key=lambda item: item[0])):
        about, binary = kernel.metadata, kernel.asm["cubin"]
        for key, plain in PLAIN.items():
            if getattr(about, key, plain) not in (plain, None):
                raise NotBuilt("a kernel with %s" % key)
        file = "%s-%d.cubin" % (name, number)
        files[file] = binary
        told["programs"].append({"kernel": name, "asked": words, "symbol": about.name, "warps": about.num_warps, "shared": about.shared, "file": file, "sha256": digest(binary)})
    folder = os.path.join(out, "built")
    os.makedirs(folder, exist_ok=True)
    for file, binary in files.items():
        with open(os.path.join(folder, file), "wb") as written:
            written.write(binary)
    with open(os.path.join(out, LIST), "w") as written:  # last: what it names is there
        json.dump(told, written, indent=1)
    return sorted({p["kernel"] for p in told["programs"]})


def forward_of(model_new, device):
    """A function that gives the kernels' module the task's parameters and calls it, and the module's inputs. Parameters that kernels lay out are part of what is launched."""
    torch.manual_seed(1)
    reference = model_new._reference
    arguments = reference.get_init_inputs()
    args, kwargs = (arguments[0], arguments[1]) if len(arguments) == 2 and isinstance(arguments[1], dict) else (arguments, {})
    model = reference.Model(*args, **kwargs).to(device)
    fast = model_new._kernel.ModelNew(*args, **kwargs)
    params = [functools.reduce(getattr, entry["name"].split("."), model).detach().contiguous() for entry in model_new._settings["params"]]
    inputs = [x.to(device).contiguous() if isinstance(x, torch.Tensor) else x for x in reference.get_inputs()]

    def called(*given):
        fast.load_params(params)
        return fast(*given)
    return called, inputs


def save_all(folder, out, modules, capability, programs):
    """save() of each place; a part whose kernels cannot be kept compiles where it runs. NotBuilt where none can."""
    names, why_not = set(), NotBuilt("it has no kernels")
    for place, module in modules.items():
        try:
            names.update(save(os.path.join(out, place), module, content_of(os.path.join(folder, place, "kernel.py")), capability, programs[id(module)]))
        except NotBuilt as why:
            why_not = why
    if not names:
        raise why_not
    return sorted(names)


@contextlib.contextmanager
def compiled_only(tuner):
    """Every configuration of an autotuner is compiled and none runs: others have the device. Where one cannot be compiled, the tuner says so when it chooses."""
    def run(*args, grid, warmup=False, **options):
        with contextlib.suppress(Exception):
            tuner.warmup(*args, grid=grid, **options)

    tuner.run = run
    try:
        yield
    finally:
        del tuner.run


def of_one(model_new, folder, device):
    """What is made: {place in the drop-in: its module of kernels}, and a function that launches all that a new model launches."""
    called, inputs = forward_of(model_new, device)
    return {"": model_new._kernel}, lambda: called(*inputs)


def of_parts(model_new, folder, device):
    """The same of a drop-in of parts. Those with the same text launch the kernels of the first of them: compiled and tuned once."""
    reference, parts, modules, first = model_new._reference, model_new._parts, {}, {}
    for number in range(len(parts.told["regions"])):
        part, place = parts.module(number), os.path.join("parts", str(number + 1))
        if not hasattr(part, "_settings"):
            raise NotBuilt("a part keeps parameters of its own")
        part._settings["by_handle"] = False  # here every launch goes through Triton
        one = modules[place] = first.setdefault(digest(content_of(os.path.join(folder, place, "kernel.py"))), part._kernel)
        for name, *_ in kernels_of(one):
            setattr(part._kernel, name, getattr(one, name))
    arguments = reference.get_init_inputs()
    args, kwargs = (arguments[0], arguments[1]) if len(arguments) == 2 and isinstance(arguments[1], dict) else (arguments, {})
    inputs = [x.to(device).contiguous() if isinstance(x, torch.Tensor) else x for x in reference.get_inputs()]

    def called():
        torch.manual_seed(1)
        model_new.ModelNew(*args, **kwargs, strict=True).to(device)(*inputs)
    return modules, called


def loaded(folder):
    import importlib.util
    spec = importlib.util.spec_from_file_location("pragma_made_model_new", os.path.join(folder, "model_new.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if not hasattr(module, "_settings") and not hasattr(module, "_parts"):
        raise NotBuilt("this drop-in keeps parameters of its own")
    return module


def wait_for_turn():
    """PRAGMA's own run of this: others had the device so far (drop_in/turn.hpp)."""
    turn = int(os.environ.pop("PRAGMA_TURN"))
    print(json.dumps({"begun": sum(os.times()[:4])}), flush=True)
    os.read(turn, 1)
    os.close(turn)


def make(folder, out):
    """On the GPU that is there. The names of the kernels; NotBuilt."""
    for earlier in [os.path.join(folder, LIST)] + glob.glob(os.path.join(glob.escape(folder), "parts", "*", LIST)):
        if os.path.exists(earlier):
            os.remove(earlier)  # else it would be used, and kept
    model_new = loaded(folder)
    device = torch.device(os.environ.get("PRAGMA_DEVICE", "cuda"))
    with torch.no_grad(), torch.cuda.device(device):
        modules, called = (of_parts if hasattr(model_new, "_parts") else of_one)(model_new, folder, device)
        different = list({id(module): module for module in modules.values()}.values())
        tuners = [tuner for module in different for _, tuner, _ in kernels_of(module) if tuner]
        if "PRAGMA_TURN" in os.environ and tuners:
            with contextlib.ExitStack() as stack:
                for tuner in tuners:
                    stack.enter_context(compiled_only(tuner))
                called()
            wait_for_turn()
        called()  # tunes, with the device for itself; what is missing is compiled
        with contextlib.ExitStack() as stack:
            makings = {id(module): stack.enter_context(Making(module, lambda run, *args, **rest: run(*args, **rest))) for module in different}
            called()
        torch.cuda.synchronize()
        return save_all(folder, out, modules, torch.cuda.get_device_capability(), {key: making.programs for key, making in makings.items()})


# -- using ----------------------------------------------------------------------------------------------------------------


class Driver:
    """What is asked of CUDA's driver."""

    @functools.cached_property
    def library(self):
        return ctypes.CDLL("libcuda.so.1")

    def ask(self, name, *args):
        failed = getattr(self.library, name)(*args)
        if failed:
            raise NotBuilt("%s: error %d" % (name, failed))

    def capability(self):
        return list(torch.cuda.get_device_capability())

    def device(self):
        return torch.cuda.current_device()

    def stream(self, device):
        return torch._C._cuda_getCurrentRawStream(device)

    def enter(self, device):
        """The device's context is this thread's: Torch makes it so at the first thing that it asks of the device itself."""
        context = ctypes.c_void_p()
        self.ask("cuCtxGetCurrent", ctypes.byref(context))
        if not context.value:
            torch.cuda.synchronize(device)

    def load(self, binary, symbol, shared):
        """The handle of a kernel."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.ask("cuModuleLoadData", ctypes.byref(module), binary)
        self.ask("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
        if shared > 48 << 10:
            self.ask("cuFuncSetAttribute", function, SHARED_ATTRIBUTE, shared)
        return function.value

    def start(self, function, grid, threads, shared, stream, addresses):
        values = [ctypes.c_void_p(a) for a in addresses] + [ctypes.c_void_p(), ctypes.c_void_p()]  # the last: Triton's own scratch memory, of kernels that need none
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        self.ask("cuLaunchKernel", ctypes.c_void_p(function), *[ctypes.c_uint(g) for g in grid], ctypes.c_uint(threads), ctypes.c_uint(1), ctypes.c_uint(1), ctypes.c_uint(shared),
                 ctypes.c_void_p(stream), pointers, None)


class Built:
    def __init__(self, folder, module, told, driver):
        self.folder, self.driver, self.told, self.kernels = folder, driver, told, kernels_of(module)
        self.programs = {(p["kernel"], p["asked"]): p for p in told["programs"]}
        self.tuners = [(tuner, tuner.configs, [tuner.configs[told["tuned"][name]]]) for name, tuner, _ in self.kernels if tuner and name in told["tuned"]]
        self.handles, self.lock, self.off = {}, threading.Lock(), False

    def begin(self):
        for tuner, _, configs in self.tuners:
            tuner.configs = configs  # nothing is left to tune
        for name, _, function in self.kernels:
            function.run = functools.partial(self.run, name, function, function.run)

    def end(self, why):
        """Triton compiles and tunes from now on."""
        self.off = True
        for tuner, configs, _ in self.tuners:
            tuner.configs = configs
        warn(self.folder, why)

    def run(self, name, function, run, *args, grid, warmup, **options):
        """In the place of JITFunction.run: gives what it gives, as far as pragma_device.py looks at it."""
        kernel = None if warmup or self.off or function.pre_run_hooks else self.find(name, function, args, options)
        if kernel is None:
            return run(*args, grid=grid, warmup=warmup, **options)
        if callable(grid):
            grid = grid(dict(zip(function.arg_names, args), **options))
        grid = (tuple(grid) + (1, 1))[:3]
        self.driver.start(kernel.function, grid, kernel.metadata.num_warps * LANES, kernel.metadata.shared, self.driver.stream(self.driver.device()),
                          [t.data_ptr() for t in tensors_of(function, args, options)])
        return kernel

    def find(self, name, function, args, options):
        """The kernel on the current device; None where Triton has to make it."""
        try:
            key = name, asked(function, args, options)
        except NotBuilt:
            return None
        if key not in self.programs:
            return None  # an input at an odd address
        with self.lock:
            if self.off:
                return None
            try:
                device = self.driver.device()
                self.driver.enter(device)
                if (device, key) not in self.handles:
                    self.handles[device, key] = self.loaded(self.programs[key])
                return self.handles[device, key]
            except Exception as e:  # the source is right in any case
                self.end(e)
                return None

    def loaded(self, p):
        if self.driver.capability() != self.told["capability"]:
            raise NotBuilt("they are for compute capability %s, and this device has %s" % (self.told["capability"], self.driver.capability()))
        binary = content_of(os.path.join(self.folder, "built", os.path.basename(p["file"])))
        if digest(binary) != p["sha256"]:
            raise NotBuilt("%s is not the file that was made" % p["file"])
        about = dict(PLAIN, num_warps=p["warps"], shared=p["shared"])
        return types.SimpleNamespace(function=self.driver.load(binary, p["symbol"], p["shared"]), metadata=types.SimpleNamespace(**about))


def warn(folder, why):
    warnings.warn("the compiled kernels in %s are not used, Triton compiles: %s" % (os.path.join(folder, "built"), why), stacklevel=2)


def use(folder, module, driver=None):
    """From now on the kernels of `module`, which is FOLDER/kernel.py, are those of built/ where they fit. Warns once where there are some that do not. Asks nothing of
    the device before the first launch."""
    if not os.path.exists(os.path.join(folder, LIST)):
        return None
    try:
        import triton
        told = json.loads(content_of(os.path.join(folder, LIST)))
        if told["source"] != digest(content_of(os.path.join(folder, "kernel.py"))):
            raise NotBuilt("kernel.py is another one")
        if told["triton"] != triton.__version__:
            raise NotBuilt("they are of Triton %s, and this is %s" % (told["triton"], triton.__version__))
        built = Built(folder, module, told, driver or Driver())
        built.begin()
        return built
    except Exception as e:  # the source is right in any case
        warn(folder, e)
        return None


if __name__ == "__main__":
    try:
        print(json.dumps({"made": make(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else sys.argv[1])}))
    except NotBuilt as why:
        print(json.dumps({"not_made": str(why)}))
