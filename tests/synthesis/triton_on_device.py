"""triton_on_device.py MODULES TASKS [SECONDS]: what the stand-in cannot say. Compiles and runs each module of the folder MODULES on
the GPU against the task of the same name in TASKS (several processes, so that a crash takes one module only), then times those
that are right beside Torch eager, one after the other. Uses the real Triton. SECONDS: no new work is begun later than that."""
import importlib.util
import multiprocessing
import os
import sys
import time
import traceback

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "reference", "python"))
from taskfile import state_tensors  # noqa: E402

TOGETHER = 10      # compilations side by side
DEADLINE = 90      # seconds for one module's compilation and check
CALLS = 20         # of a timing; the median counts


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def prepare(module_path, task_path):
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    task = load(task_path, "task")
    with torch.device("cuda"):
        model = task.Model(*task.get_init_inputs()).cuda()
        inputs = [x.cuda().contiguous() if isinstance(x, torch.Tensor) else x for x in task.get_inputs()]
    candidate = load(module_path, "candidate").ModelNew(*task.get_init_inputs())
    candidate.load_params([t.detach().contiguous() for _, t in state_tensors(model)])
    return model, candidate, inputs


def check(module_path, task_path, report):
    try:
        model, candidate, inputs = prepare(module_path, task_path)
        with torch.no_grad():
            expected = model(*[x.clone() if isinstance(x, torch.Tensor) else x for x in inputs])
            start = time.time()
            got = candidate(*inputs)
            torch.cuda.synchronize()
        first = time.time() - start
        worst = 0.0
        for e, g in zip(expected, got) if isinstance(expected, (tuple, list)) else [(expected, got)]:
            assert e.shape == g.shape and e.dtype == g.dtype, f"{tuple(g.shape)} {g.dtype} instead of {tuple(e.shape)} {e.dtype}"
            if e.is_floating_point():
                off = (e - g).abs_() / (1e-4 * e.abs() + 1e-4 * max(1e-3, float(e.abs().mean())))
                worst = max(worst, float(off.nan_to_num_(nan=float("inf")).max()))
            else:
                worst = max(worst, 1e3 * float((e != g).float().mean()))
        report.put(f"{'ok' if worst <= 1 else 'WRONG'} worst {worst:.2g} of the tolerance, first call {first:.1f} s")
    except BaseException as error:
        lines = traceback.format_exc().strip().splitlines()
        report.put("FAILED " + type(error).__name__ + ": " + " | ".join(x.strip() for x in lines[-7:])[-900:])


def seconds(call):
    """Median of CALLS, an event pair each, the L2 cache flushed between; the queue is full before the clock starts."""
    flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    for _ in range(3):
        call()
    pairs = []
    for _ in range(CALLS):
        flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(300000)  # cycles: longer than the launches take
        begin.record()
        call()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return sorted(b.elapsed_time(e) for b, e in pairs)[len(pairs) // 2] / 1e3


def task_of(name, tasks):
    return os.path.join(tasks, name.split(".v")[0].removesuffix(".py") + ".py")


def check_all(names, modules, tasks, end):
    context = multiprocessing.get_context("fork")
    running, waiting, right = [], list(names), []
    while running or waiting:
        while waiting and len(running) < TOGETHER and time.time() < end:
            name = waiting.pop(0)
            report = context.SimpleQueue()
            process = context.Process(target=check, args=(os.path.join(modules, name), task_of(name, tasks), report))
            process.start()
            running.append((name, process, report, time.time()))
        if not running:
            break
        for entry in list(running):
            name, process, report, begun = entry
            if not report.empty():
                text = report.get()
                print(name, text, flush=True)
                if text.startswith("ok"):
                    right.append(name)
            elif process.is_alive() and time.time() - begun < DEADLINE:
                continue
            else:
                print(name, f"FAILED exit {process.exitcode} after {time.time() - begun:.0f} s", flush=True)
            process.kill()
            process.join()
            running.remove(entry)
        time.sleep(0.01)
    return [n for n in names if n in right]


def main(modules, tasks, limit):
    begin = time.time()
    names = sorted((f for f in os.listdir(modules) if f.endswith(".py")), key=lambda f: (not f[0].isdigit(), f))
    right = check_all(names, modules, tasks, begin + limit * 0.55)
    print(f"{len(right)} of {len(names)} are right, {time.time() - begin:.0f} s", flush=True)
    for name in right:
        if ".v" in name or time.time() - begin > limit:
            continue
        try:
            model, candidate, inputs = prepare(os.path.join(modules, name), task_of(name, tasks))
            with torch.no_grad():
                eager, ours = seconds(lambda: model(*inputs)), seconds(lambda: candidate(*inputs))
            print(f"{name} eager {eager * 1e6:.1f} us, candidate {ours * 1e6:.1f} us, speedup {eager / ours:.3f}", flush=True)
        except Exception as error:
            print(name, "not timed:", error, flush=True)
        model = candidate = inputs = None
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 600)
