"""triton_targets.py TARGET MODULE.py GRAPH.json ...: compiles every kernel of emitted modules for a GPU that is not here, with Triton's own
compiler (its wheel has all backends). No Torch: tensors are shapes. TARGET: sm_80, sm_90, sm_100, gfx90a or gfx942. Prints a line for each
module; the exit status is 1 when a kernel was refused, was compiled for something else, or needs more of a unit than it has, 77 without Triton."""
import collections
import importlib.util
import json
import multiprocessing
import os
import re
import sys
import tempfile
import traceback
import types

# Shared memory of a block, bytes: CUDA's programming guide, "technical specifications per compute capability"; LDS of a workgroup: AMD's
# instruction set architecture documents of CDNA 2 and 3. Threads of a block: 1024 on all of them.
Target = collections.namedtuple("Target", "backend arch warp shared binary")
TARGETS = {
    "sm_80": Target("cuda", 80, 32, 163 << 10, "cubin"),
    "sm_90": Target("cuda", 90, 32, 227 << 10, "cubin"),
    "sm_100": Target("cuda", 100, 32, 227 << 10, "cubin"),
    "gfx90a": Target("hip", "gfx90a", 64, 64 << 10, "hsaco"),
    "gfx942": Target("hip", "gfx942", 64, 64 << 10, "hsaco"),
}
MOST_THREADS = 1024
POINTERS = {"float32": "*fp32", "float64": "*fp64", "float16": "*fp16", "bfloat16": "*bf16", "int64": "*i64", "int32": "*i32", "int16": "*i16",
            "int8": "*i8", "uint8": "*u8", "bool": "*i1"}


class Tensor:
    """As much of a tensor as a launch needs to know."""
    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.device = tuple(shape), dtype, "cuda"

    def detach(self):
        return self

    contiguous = detach


def torch_of_shapes():
    torch, nn = types.ModuleType("torch"), types.ModuleType("torch.nn")
    nn.Module = type("Module", (), {"__init__": lambda self: None})
    torch.nn, torch.Tensor = nn, Tensor
    for name in POINTERS:
        setattr(torch, name, name)
    torch.empty = lambda *shape, dtype="float32", device=None: Tensor(shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape, dtype)
    return {"torch": torch, "torch.nn": nn}


def load(path):
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    return module


def compile_one(function, arguments, sizes, target):
    """One kernel as one launch asks for it. Raises what Triton raises, and AssertionError where the result would not start there."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    options = {k: sizes.pop(k) for k in ("num_warps", "num_stages") if k in sizes}
    given = dict(zip(function.arg_names, arguments), **sizes)
    signature = {n: "constexpr" if n in sizes else POINTERS[str(given[n].dtype).removeprefix("torch.")] for n in function.arg_names}
    attributes = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(function.arg_names) if n not in sizes}
    source = ASTSource(fn=function, signature=signature, constexprs={(function.arg_names.index(n),): v for n, v in sizes.items()}, attrs=attributes)
    made = triton.compile(source, target=GPUTarget(target.backend, target.arch, target.warp), options=options)
    assert len(made.asm[target.binary]) > 0
    text = made.asm["ptx" if target.backend == "cuda" else "amdgcn"]
    said = re.search(r"^\s*\.target sm_(\d+)" if target.backend == "cuda" else r'\.amdgcn_target "[\w.-]*-(gfx\w+)', text, re.M)
    assert said and said.group(1) == str(target.arch), f"compiled for {said and said.group(1)}"
    shared, threads = made.metadata.shared, made.metadata.num_warps * target.warp
    assert shared <= target.shared, f"{function.__name__} needs {shared} bytes of shared memory, a unit has {target.shared}"
    assert threads <= MOST_THREADS, f"{function.__name__} has {threads} threads a block"


def compile_all(compile_launch, run):
    """Calls `run` while every launch, and every configuration of an autotuner, is handed to compile_launch(function, arguments, sizes)."""
    import triton

    def launch(self, *args, grid=None, warmup=False, **sizes):
        compile_launch(self, args, dict(sizes))

    def tune(self, *args, grid=None, warmup=False, **sizes):
        for config in self.configs:
            compile_launch(self.fn, args, dict(config.kwargs, num_warps=config.num_warps, num_stages=config.num_stages))

    triton.runtime.jit.JITFunction.run = launch
    triton.runtime.autotuner.Autotuner.run = tune
    run()


def check(job):
    name, module_path, graph_path = job
    target = TARGETS[name]
    kernels = 0

    def counted(function, arguments, sizes):
        nonlocal kernels
        compile_one(function, arguments, sizes, target)
        kernels += 1

    def run():
        model = load(module_path).ModelNew()
        model.load_params([Tensor(t["shape"], t["dtype"]) for t in graph["params"]])
        model.forward(*[Tensor(t["shape"], t["dtype"]) for t in graph["inputs"]])

    with open(graph_path) as file:
        graph = json.load(file)["graph"]
    sys.modules.update(torch_of_shapes())
    what = name + " " + os.path.basename(module_path)
    try:
        compile_all(counted, run)
        assert kernels > 0, "no kernel was launched"
    except Exception:
        return False, what + ": FAILED\n" + "\n".join(traceback.format_exc().strip().splitlines()[-6:])
    return True, f"{what}: {kernels} kernels compiled"


def main(arguments):
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    os.environ.pop("TRITON_INTERPRET", None)
    if not importlib.util.find_spec("triton"):
        print("no module named triton", file=sys.stderr)
        return 77
    jobs = [(arguments[0], *pair) for pair in zip(arguments[1::2], arguments[2::2])]
    failed = 0
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        with multiprocessing.get_context("spawn").Pool(min(len(jobs), len(os.sched_getaffinity(0))), maxtasksperchild=16) as pool:
            for right, text in pool.imap(check, jobs):
                failed += not right
                print(text, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
