"""Compiled GPU kernels beside their source, made for a GPU that is not here (sm_90) and read by a driver that is a few lines: `built.py PRAGMA_BUILT.PY KERNEL.PY`. KERNEL.PY: a
module whose forward takes float32 of SHAPE. The exit status is 1 where a promise of pragma_built.py does not hold, 77 without Triton or Torch."""
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import types
import warnings

try:
    import torch
    import triton
    from triton.backends.compiler import GPUTarget
except ImportError:
    sys.exit(77)

SHAPE = 2, 40000
MADE_BY, SOURCE = sys.argv[1:3]
os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


built = load(MADE_BY, "pragma_built")


class Refused(Exception):
    pass


class Elsewhere:
    """As much of Triton's driver as compiling for another machine needs."""
    get_current_target = staticmethod(lambda: GPUTarget("cuda", 90, 32))
    get_current_device = staticmethod(lambda: 0)
    get_current_stream = staticmethod(lambda device: 0)


class Compiler:
    """In Triton's place where nothing may be compiled."""

    def __getattr__(self, name):
        raise Refused("Triton was asked")


class Gpu:
    """The driver's part: notes what is loaded and launched."""

    def __init__(self, capability=(9, 0)):
        self.has, self.loads, self.launches = list(capability), [], []

    def capability(self):
        return self.has

    device, stream, enter = staticmethod(lambda: 0), staticmethod(lambda device: 0), staticmethod(lambda device: None)

    def load(self, binary, symbol, shared):
        assert binary[:4] == b"\x7fELF" and binary[18] == 190, "not for CUDA"
        assert symbol.encode() in binary
        self.loads.append((symbol, shared))
        return len(self.loads)

    def start(self, function, grid, threads, shared, stream, addresses):
        symbol, needed = self.loads[function - 1]
        assert needed == shared
        self.launches.append((symbol, tuple(grid), threads, addresses))


def made():
    folder = tempfile.mkdtemp()
    shutil.copy(SOURCE, os.path.join(folder, "kernel.py"))
    module = load(os.path.join(folder, "kernel.py"), "made_kernel")
    triton.runtime.driver.set_active(Elsewhere())
    for _, tuner, _ in built.kernels_of(module):
        if tuner:
            tuner.configs = tuner.configs[:1]  # here nothing can be tuned
    with built.Making(module, lambda run, *args, **rest: run(*args, **dict(rest, warmup=True))) as making:
        module.ModelNew()(torch.empty(SHAPE))
    names = built.save(folder, module, built.content_of(SOURCE), [9, 0], making.programs)
    return folder, names, {name: (kernel.metadata.name, kernel.metadata.num_warps) for (name, _), kernel in making.programs.items()}


class Parts:
    """A drop-in of three parts, two of them with the same text."""

    def __init__(self):
        self.folder, self.told, self.loaded = tempfile.mkdtemp(), {"regions": [[], [], []]}, {}
        for number, more in enumerate(("", "", "\n# another text\n")):
            os.makedirs(os.path.join(self.folder, "parts", str(number + 1)))
            with open(SOURCE) as source, open(os.path.join(self.folder, "parts", str(number + 1), "kernel.py"), "w") as kernel:
                kernel.write(source.read() + more)

    def module(self, number):
        if number not in self.loaded:
            kernel = load(os.path.join(self.folder, "parts", str(number + 1), "kernel.py"), "kernel_of_part_%d" % number)
            for _, tuner, _ in built.kernels_of(kernel):
                if tuner:
                    tuner.configs = tuner.configs[:1]  # here nothing can be tuned
            self.loaded[number] = types.SimpleNamespace(_settings={"by_handle": True}, _kernel=kernel)
        return self.loaded[number]

    def whole(self):
        parts = self

        class ModelNew:
            def __init__(self, strict):
                assert strict, "what its guards leave to Torch launches none of these kernels"

            def to(self, _):
                return self

            def __call__(self, x):
                for part in parts.loaded.values():
                    part._kernel.ModelNew()(x)
        task = types.SimpleNamespace(get_init_inputs=lambda: [], get_inputs=lambda: [torch.empty(SHAPE)])
        return types.SimpleNamespace(_parts=self, _reference=task, ModelNew=ModelNew)


def parts_are_made(x):
    parts = Parts()
    triton.runtime.driver.set_active(Elsewhere())
    modules, called = built.of_parts(parts.whole(), parts.folder, "cpu")
    places = [os.path.join("parts", str(n)) for n in (1, 2, 3)]
    assert list(modules) == places and modules[places[0]] is modules[places[1]] is not modules[places[2]]
    assert not any(part._settings["by_handle"] for part in parts.loaded.values())
    runs, makings = [], {}
    for module in (modules[places[0]], modules[places[2]]):
        makings[id(module)] = built.Making(module, lambda run, *args, **rest: runs.append(run(*args, **dict(rest, warmup=True))) or runs[-1]).__enter__()
    called()
    assert len(runs) == 3 * 2 and len({id(kernel) for kernel in runs}) == 2 * 2, "a part with the text of an earlier one has its kernels"
    out = tempfile.mkdtemp()
    names = built.save_all(parts.folder, out, modules, [9, 0], {key: making.programs for key, making in makings.items()})
    assert len(names) == 2, names
    for place in places:
        folder = os.path.join(out, place)
        shutil.copy(os.path.join(parts.folder, place, "kernel.py"), folder)
        launches, asked, said, _ = tried(folder, Gpu(), x)
        assert len(launches) == 2 * 2 and not asked and not said, (place, launches, asked, said)


def nothing_is_tuned_before_its_turn():
    class Tuner:
        asked = []

        def warmup(self, *args, grid, **options):
            self.asked.append((args, grid, options))
            raise ValueError("a configuration that this device has no room for")

        def run(self, *args, **options):
            raise AssertionError("it was timed while others had the device")
    tuner = Tuner()
    with built.compiled_only(tuner):
        tuner.run("x", grid=(3,), warmup=False, BLOCK=4)
    assert Tuner.asked == [(("x",), (3,), {"BLOCK": 4})] and not vars(tuner)


def tried(folder, gpu, x):
    """(launches, Triton was asked, warnings) of one forward by a fresh module where Triton can compile nothing."""
    module = load(os.path.join(folder, "kernel.py"), "used_kernel")
    triton.runtime.driver.set_active(Compiler())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        built.use(folder, module, gpu)
        asked = 0
        for _ in range(2):  # the second says nothing more
            try:
                module.ModelNew()(x)
            except Refused:
                asked += 1
    return gpu.launches, asked, [str(w.message) for w in seen], module


def changed(folder, how):
    other = tempfile.mkdtemp()
    shutil.rmtree(other)
    shutil.copytree(folder, other)
    how(other)
    return other


def rewrite(path, change):
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(change(content))


def main():
    folder, names, programs = made()
    assert len(names) == len(programs) == 2, names
    x = torch.empty(SHAPE)
    launches, asked, said, module = tried(folder, Gpu(), x)
    assert not asked and not said, (asked, said)
    assert [(symbol, threads) for symbol, _, threads, _ in launches] == [(symbol, 32 * warps) for symbol, warps in programs.values()] * 2, launches
    assert all(addresses[0] == x.data_ptr() for _, _, _, addresses in launches)
    assert launches[0][3][1:] == launches[1][3][2:], "the scratch memory of both kernels is the same"
    assert all(grid == (launches[0][1][0], 1, 1) for _, grid, _, _ in launches)

    odd = torch.empty(SHAPE[0] * SHAPE[1] + 1)[1:].view(SHAPE)
    launches, asked, said, _ = tried(folder, Gpu(), odd)
    assert not launches and asked == 2 and not said, "another program is Triton's to make"

    cubin = sorted(f for f in os.listdir(os.path.join(folder, "built")) if f.endswith(".cubin"))[0]
    told = json.loads(built.content_of(os.path.join(folder, built.LIST)))

    def telling(**other):
        return lambda f: rewrite(os.path.join(f, built.LIST), lambda _: json.dumps(dict(told, **other)).encode())

    for what, how in (("kernel.py is another one", lambda f: rewrite(os.path.join(f, "kernel.py"), lambda c: c + b"\n# changed\n")),
                      ("is not the file that was made", lambda f: rewrite(os.path.join(f, "built", cubin), lambda c: c[:-1] + bytes([c[-1] ^ 1]))),
                      ("No such file", lambda f: os.remove(os.path.join(f, "built", cubin))),
                      ("", lambda f: rewrite(os.path.join(f, built.LIST), lambda c: c[:len(c) // 2])),
                      ("", lambda f: rewrite(os.path.join(f, built.LIST), lambda c: b"[]")),
                      ("", telling(tuned={name: 99 for name in told["tuned"]})),
                      ("they are of Triton 0.1", telling(triton="0.1"))):
        launches, asked, said, module = tried(changed(folder, how), Gpu(), x)
        assert asked == 2 and len(said) == 1 and what in said[0], (what, asked, said)
        assert len({symbol for symbol, _, _, _ in launches}) <= 1
        assert all(len(tuner.configs) > 1 for _, tuner, _ in built.kernels_of(module) if tuner), "Triton tunes as without them"
    launches, asked, said, module = tried(folder, Gpu((8, 0)), x)
    assert not launches and asked == 2 and len(said) == 1 and "compute capability [9, 0]" in said[0], (asked, said)

    path = tempfile.mkdtemp()
    shutil.copy(SOURCE, os.path.join(path, "kernel.py"))
    launches, asked, said, _ = tried(path, Gpu(), x)
    assert not launches and asked == 2 and not said, "a drop-in without compiled kernels says nothing"
    parts_are_made(x)
    nothing_is_tuned_before_its_turn()
    print("all promises hold")


main()
