"""triton_without_device.py MODULE.py TASK.py ...: what the real Triton says of emitted modules where there is no GPU. Each kernel is
compiled for other machines (TARGETS), then the module runs in Triton's interpreter against its task on the CPU. By hand:
    python3 -m venv /tmp/triton && /tmp/triton/bin/pip install torch==2.13.0 triton numpy   # the CPU build of Torch will do
    build/bin/emit_triton OUT TASK.py...      # then this script with OUT/TASK.py TASK.py ...
Prints a line for each module; the exit status is 1 when something failed. Says nothing of speed, nor of a device's arithmetic."""
import importlib.util
import os
import subprocess
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "reference", "python"))
TARGETS = [("cuda", 90, 32), ("hip", "gfx942", 64)]


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def ready(module_path, task_path):
    """The task's model, the module's model with its parameters still to be loaded, inputs and state."""
    import torch
    from taskfile import state_tensors
    torch.manual_seed(1)
    task, module = load(task_path, "task"), load(module_path, "candidate")
    model = task.Model(*task.get_init_inputs())
    inputs = [x.contiguous() if isinstance(x, torch.Tensor) else x for x in task.get_inputs()]
    return model, module, module.ModelNew(*task.get_init_inputs()), inputs, [t.detach().contiguous() for _, t in state_tensors(model)]


def compile_kernels(module_path, task_path):
    """Runs the module with launches that compile and do not run."""
    import torch
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    names = {torch.float32: "*fp32", torch.float64: "*fp64", torch.int64: "*i64", torch.int32: "*i32", torch.int16: "*i16", torch.int8: "*i8",
             torch.uint8: "*u8", torch.bool: "*i1", torch.float16: "*fp16", torch.bfloat16: "*bf16"}
    compiled = 0

    def compile_one(function, args, sizes):
        nonlocal compiled
        options = {k: sizes.pop(k) for k in ("num_warps", "num_stages") if k in sizes}
        given = dict(zip(function.arg_names, args), **sizes)
        signature = {n: "constexpr" if n in sizes else names[given[n].dtype] for n in function.arg_names}
        attributes = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(function.arg_names) if n not in sizes}
        for target in TARGETS:
            source = ASTSource(fn=function, signature=signature, constexprs={(function.arg_names.index(n),): v for n, v in sizes.items()}, attrs=attributes)
            triton.compile(source, target=GPUTarget(*target), options=dict(options))
            compiled += 1

    def launch(self, *args, grid=None, warmup=False, **sizes):
        compile_one(self, args, dict(sizes))

    def tune(self, *args, **sizes):
        for config in self.configs:
            compile_one(self.fn, args, dict(config.kwargs, num_warps=config.num_warps, num_stages=config.num_stages))

    triton.runtime.jit.JITFunction.run = launch
    triton.runtime.autotuner.Autotuner.run = tune
    _, _, candidate, inputs, state = ready(module_path, task_path)
    candidate.load_params(state)
    candidate(*inputs)
    return compiled


def interpret(module_path, task_path):
    import torch
    import triton
    if hasattr(triton.runtime.autotuner, "Autotuner"):  # nothing to time here: the first configuration
        triton.runtime.autotuner.Autotuner.run = lambda self, *args, **sizes: self.fn.run(*args, **sizes, **self.configs[0].kwargs)
    model, _, candidate, inputs, state = ready(module_path, task_path)
    with torch.no_grad():
        expected = model(*[x.clone() if isinstance(x, torch.Tensor) else x for x in inputs])
    candidate.load_params(state)
    got = candidate(*inputs)
    expected, got = [x if isinstance(x, (tuple, list)) else (x,) for x in (expected, got)]
    for e, g in zip(expected, got):
        assert e.shape == g.shape and e.dtype == g.dtype, f"{tuple(g.shape)} {g.dtype} instead of {tuple(e.shape)} {e.dtype}"
        close = torch.isclose(e, g, rtol=1e-4, atol=1e-5 * max(1.0, float(e.abs().max())), equal_nan=True) if e.is_floating_point() else e == g
        assert bool(close.all()), f"{(~close).sum()} of {e.numel()} differ"


def one(how, module_path, task_path):
    if how == "compile":
        return f"{compile_kernels(module_path, task_path)} kernels compiled"
    interpret(module_path, task_path)
    return "interpreted, right"


def main(paths):
    failed = 0
    for module_path, task_path in zip(paths[::2], paths[1::2]):
        said = []
        for how in ("compile", "interpret"):  # a process each: Triton decides when it is imported whether it interprets
            environment = dict(os.environ, TRITON_INTERPRET="1") if how == "interpret" else {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
            done = subprocess.run([sys.executable, __file__, "--" + how, module_path, task_path], env=environment, capture_output=True, text=True)
            failed += done.returncode != 0
            said.append(done.stdout.strip() if done.returncode == 0 else how + " FAILED: " + "\n".join(done.stderr.strip().splitlines()[-12:]))
        print(os.path.basename(module_path) + ": " + "; ".join(said), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1].startswith("--"):
        try:
            print(one(sys.argv[1][2:], sys.argv[2], sys.argv[3]))
        except Exception:
            traceback.print_exc()
            sys.exit(1)
        sys.exit(0)
    sys.exit(main(sys.argv[1:]))
