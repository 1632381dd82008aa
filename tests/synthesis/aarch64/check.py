"""check.py KERNEL.cpp TASK.py FLAGS THREADS ...: cross-compiles emitted kernels for aarch64 and runs them under qemu-user against their tasks in
this Torch. FLAGS are separated by spaces. Prints a line for each that is right; the exit status is 1 when one is not."""
import os
import struct
import subprocess
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "reference", "python")]
import torch  # noqa: E402
from taskfile import state_tensors  # noqa: E402

torch.set_num_threads(1)
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-Wno-unused-function"]


def load(path):
    names = {}
    with open(path) as file:
        exec(compile(file.read(), path, "exec"), names)
    return names


def data(tensor):
    return tensor.detach().contiguous().numpy().tobytes()


def built(kernel, flags, folder):
    program = os.path.join(folder, "program")
    subprocess.run(["aarch64-linux-gnu-g++", *flags, *WARNINGS, "-static", "-I", os.path.join(ROOT, "execution", "runner"), kernel,
                    os.path.join(HERE, "driver.cpp"), "-o", program], check=True)
    return program


def check(kernel, task_path, flags, threads):
    task = load(task_path)
    torch.manual_seed(1)
    model = task["Model"](*task["get_init_inputs"]())
    inputs = [x.contiguous() for x in task["get_inputs"]()]
    state = [t for _, t in state_tensors(model)]
    with torch.no_grad():
        expected = model(*[x.clone() for x in inputs])
    expected = expected if isinstance(expected, (tuple, list)) else (expected,)
    with tempfile.TemporaryDirectory() as folder:
        program = built(kernel, flags.split(), folder)
        given, result = os.path.join(folder, "inputs"), os.path.join(folder, "outputs")
        with open(given, "wb") as file:
            file.write(struct.pack("<4q", len(inputs), len(state), len(expected), threads))
            for t in inputs + state:
                file.write(struct.pack("<q", t.numel() * t.element_size()) + data(t))
            for t in expected:
                file.write(struct.pack("<q", t.numel() * t.element_size()))
        subprocess.run(["qemu-aarch64", "-cpu", "max", program, given, result], check=True, timeout=120)
        with open(result, "rb") as file:
            got = bytearray(file.read())
    at = 0
    for e in expected:
        bytes_of = e.numel() * e.element_size()
        g = torch.frombuffer(got, dtype=e.dtype, count=e.numel(), offset=at).reshape(e.shape)
        at += bytes_of
        if e.is_floating_point():
            close = torch.isclose(e, g, rtol=1e-4, atol=1e-5 * max(1.0, float(e.abs().max())), equal_nan=True)
        else:
            close = e == g
        assert bool(close.all()), f"{int((~close).sum())} of {e.numel()} differ"
    assert at == len(got), f"{len(got)} bytes came back instead of {at}"


def main(arguments):
    failed = 0
    for kernel, task, flags, threads in zip(*[iter(arguments)] * 4):
        try:
            check(kernel, task, flags, int(threads))
            print(os.path.basename(kernel), "ok", flush=True)
        except Exception:
            failed += 1
            print(f"{os.path.basename(kernel)} with {flags}: {traceback.format_exc(limit=-3)}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
