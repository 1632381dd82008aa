"""triton_targets.py TARGET MODULE.py GRAPH.json ...: compiles every kernel of emitted modules for a GPU that is not here, with Triton's own
compiler (its wheel has all backends). No Torch: tensors are shapes. TARGET: sm_80, sm_90, sm_100, gfx90a or gfx942. Prints a line for each
module; the exit status is 1 when a kernel was refused, was compiled for something else, or needs more of a unit than it has, 77 without Triton."""
import collections
import importlib.util
import json
import multiprocessing
import os
import re
import subprocess
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


def read_too_early(sass):
    """Instructions that touch the sums of Hopper's matrix units before the wait for them, in what cuobjdump prints. The assembler of CUDA 12.8 puts such there (decision 0089)."""
    running, begun, early = [], set(), []  # registers of products that are under way, the oldest first; of those that no group has closed
    for address, text in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(.*?);", sass):
        product = re.search(r"HGMMA\.64x(\d+)x\d+\.(F32|F16)\S* R(\d+),", text)
        wait = re.search(r"WARPGROUP\.DEPBAR\.LE gsb0, 0x([0-9a-f]+)", text)
        if product:
            columns, first = int(product.group(1)), int(product.group(3))
            begun |= set(range(first, first + columns // (2 if product.group(2) == "F32" else 4)))
            if "gsb0" in text:
                running, begun = running + [begun], set()
        elif wait:
            left = int(wait.group(1), 16)
            running = running[len(running) - left:] if 0 < left < len(running) else running if left else []
        elif "WARPGROUP" not in text and {int(n) for n in re.findall(r"\bR(\d+)\b", text)} & set().union(begun, *running):
            early.append(address + " " + text)
    return early


def disassembled(binary):
    """Of a cubin, by Triton's own cuobjdump; "" where its wheel has none."""
    import triton
    tool = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin", "cuobjdump")
    if not os.access(tool, os.X_OK):
        return ""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        return subprocess.run([tool, "-sass", file.name], stdout=subprocess.PIPE, check=True, text=True).stdout


def check_reader():
    """read_too_early() on code of which it is known."""
    code = "/*0010*/ HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4].tnspB, R24, gsb0 ;\n/*0020*/ %s ;\n/*0030*/ WARPGROUP.DEPBAR.LE gsb0, 0x0 ;\n/*0040*/ F2FP.BF16.F32.PACK_AB R3, R87, R86 ;\n"
    assert read_too_early(code % "F2FP.BF16.F32.PACK_AB R2, R83, R82") == ["0020 F2FP.BF16.F32.PACK_AB R2, R83, R82 "]
    assert read_too_early(code % "IMAD R14, R5, 0x2, R88") == []


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
    if target.backend == "cuda" and target.arch == 90:
        early = read_too_early(disassembled(made.asm["cubin"]))
        assert not early, f"{function.__name__} {sizes} {options} reads sums before they are there: {early[:2]}"
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
    check_reader()
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
