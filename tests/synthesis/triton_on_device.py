"""triton_on_device.py MODULES TASKS [--time]: what the stand-in cannot say. Compiles and runs each module of the folder MODULES on the GPU
against the task of the same name in TASKS, with Torch eager beside it; --time: times both. Uses the real Triton."""
import importlib.util
import multiprocessing
import os
import sys
import time
import traceback

import torch


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def seconds(call, least=0.05):
    """Median over 20 calls, one event pair each, L2 flushed between them; the queue is full before the clock starts."""
    flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    for _ in range(3):
        call()
    times = []
    torch.cuda.synchronize()
    for _ in range(20):
        flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(200000)  # cycles: longer than the launches take
        begin.record()
        call()
        end.record()
        times.append((begin, end))
    torch.cuda.synchronize()
    return sorted(b.elapsed_time(e) for b, e in times)[len(times) // 2] / 1e3


def one(module_path, task_path, timed, report):
    try:
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.manual_seed(1)
        task = load(task_path, "task")
        model = task.Model(*task.get_init_inputs()).cuda()
        inputs = [x.cuda().contiguous() for x in task.get_inputs()]
        state = [t.detach().contiguous() for t in model.state_dict().values()]
        candidate = load(module_path, "candidate").ModelNew(*task.get_init_inputs())
        candidate.load_params(state)
        with torch.no_grad():
            expected = model(*[x.clone() for x in inputs])
            start = time.time()
            got = candidate(*inputs)
            torch.cuda.synchronize()
            first = time.time() - start
            worst = 0.0
            pairs = zip(expected, got) if isinstance(expected, (tuple, list)) else [(expected, got)]
            for e, g in pairs:
                assert e.shape == g.shape and e.dtype == g.dtype, f"{tuple(g.shape)} {g.dtype} instead of {tuple(e.shape)} {e.dtype}"
                if not e.is_floating_point():
                    worst = max(worst, float((e != g).float().mean()))
                    continue
                scale = 1e-4 * e.abs() + 1e-4 * max(1e-3, float(e.abs().mean()))
                worst = max(worst, float(((e - g).abs() / scale).nan_to_num(nan=float("inf")).max()))
            text = f"{'ok' if worst <= 1 else 'WRONG'} worst {worst:.2g} of the tolerance, first call {first:.1f} s"
            del expected, got
            if timed:
                a, b = seconds(lambda: model(*inputs)), seconds(lambda: candidate(*inputs))
                text += f", eager {a * 1e6:.1f} us, candidate {b * 1e6:.1f} us, speedup {a / b:.3f}"
        report.put(text)
    except BaseException as error:
        lines = traceback.format_exc().strip().splitlines()
        report.put("FAILED " + type(error).__name__ + ": " + " | ".join(lines[-6:])[-900:])


def main(modules, tasks, timed):
    names = sorted(f for f in os.listdir(modules) if f.endswith(".py"))
    context = multiprocessing.get_context("fork")
    running, waiting = [], list(names)
    together = 1 if timed else 6  # compilations share the processors, measurements share nothing
    deadline = 240
    while running or waiting:
        while waiting and len(running) < together:
            name = waiting.pop(0)
            report = context.SimpleQueue()
            process = context.Process(target=one, args=(os.path.join(modules, name), os.path.join(tasks, name.split(".v")[0].removesuffix(".py") + ".py"), timed, report))
            process.start()
            running.append((name, process, report, time.time()))
        for entry in list(running):
            name, process, report, begun = entry
            if not report.empty():
                print(name, report.get(), flush=True)
            elif process.is_alive() and time.time() - begun < deadline:
                continue
            else:
                print(name, f"FAILED exit {process.exitcode} after {time.time() - begun:.0f} s", flush=True)
            process.kill()
            process.join()
            running.remove(entry)
        time.sleep(0.01)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "--time" in sys.argv)
