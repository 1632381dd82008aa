"""compiled_ahead.py SHARE CACHE: a module's kernels are compiled by candidate_runner.compiled_side_by_side(), for a GPU that need not be here. Prints what was seen, as JSON."""
import importlib.util
import json
import os
import sys
import tempfile
import threading

share, cache = sys.argv[1:3]
os.environ["TRITON_CACHE_DIR"] = cache
sys.path.insert(0, os.path.join(share, "python"))
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

MODULE = '''
import triton, triton.language as tl
@triton.jit
def twice(x, y, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y + i, tl.load(x + i) * 2)
@triton.jit
def once_more(x, y, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y + i, tl.load(x + i) + 1)
@triton.autotune(configs=[triton.Config({"N": 64}), triton.Config({"N": 128})], key=[])
@triton.jit
def tuned(x, y, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y + i, tl.load(x + i) - 1)
'''


class Hopper(DriverBase):
    """As much of a driver as compiling asks."""
    launched = 0

    def __init__(self):
        self.launcher_cls = lambda *_: None
        self.get_current_device, self.get_current_stream = (lambda: 0), (lambda device: 0)
        self.get_device_properties = lambda device: {"max_shared_mem": 232448}
        self.utils = self

    @classmethod
    def is_active(cls):
        return True

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self):
        return torch.device("cpu")

    def map_python_to_cpp_type(self, ty):
        return "int"

    def get_benchmarker(self):
        raise RuntimeError("nothing is tuned here")

    def load_binary(self, *_):
        Hopper.launched += 1
        raise RuntimeError("nothing runs here")


triton.runtime.driver.set_active(Hopper())
import candidate_runner

compiled, threads = [], set()
stage = triton.backends.nvidia.compiler.CUDABackend.make_ttir


def make_ttir(*args, **kwargs):
    compiled.append(1)
    threads.add(threading.get_ident())
    return stage(*args, **kwargs)


triton.backends.nvidia.compiler.CUDABackend.make_ttir = staticmethod(make_ttir)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "candidate.py")
    with open(path, "w") as file:
        file.write(MODULE)
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    x, y = torch.zeros(256), torch.zeros(256)

    def call():
        module.twice[(2,)](x, y, N=128)
        module.once_more[(2,)](x, y, N=128)
        module.tuned[(2,)](x, y)

    candidate_runner.compiled_side_by_side(module, call)
    found = {"kernels": 4, "compiled": len(compiled), "threads": len(threads), "ran": Hopper.launched}
    left = [name for name in ("twice", "once_more", "tuned") if "run" in vars(getattr(module, name))]
    assert not left, left
    compiled.clear()
    module.twice.run(x, y, N=128, grid=(2,), warmup=True)
    found["again"] = len(compiled)
print(json.dumps(found))
