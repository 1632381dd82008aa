"""The compiled parts of a drop-in for a CPU: the kernel's object for this processor, built here where none that is shipped fits and there is a
compiler, and the module that calls it."""
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile

import torch

ALIGNMENT = 64  # of a kernel's tensors, bytes

# What a level of x86-64 has, by the names in /proc/cpuinfo.
LEVELS = [("x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"),
          ("x86-64-v3", "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"),
          ("x86-64-v2", "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3")]


def processor():
    """-march=native means another binary on another processor: the lines that tell which one this is."""
    try:
        with open("/proc/cpuinfo") as f:
            return "".join(sorted({line for line in f if line.startswith(("model name", "flags", "Features"))}))
    except OSError:
        return ""


def levels(text):
    """The levels that a processor has, best first."""
    flags = {word for line in text.splitlines() if line.startswith("flags") for word in line.split(":", 1)[1].split()}
    found, below = [], True
    for name, needed in reversed(LEVELS):
        below = below and set(needed.split()) <= flags
        if below:
            found.insert(0, name)
    return found


def shipped(folder, source, compiled):
    """Path of a built object that is of this kernel.cpp and for this processor; None where there is none."""
    try:
        with open(os.path.join(folder, "built", "objects.json")) as f:
            objects = json.load(f)
    except (OSError, ValueError):
        return None
    if objects.get("source") != hashlib.sha256(source).hexdigest() or objects.get("flags") != compiled:
        return None
    here = processor()
    wanted = os.environ.get("PRAGMA_DROP_IN_OBJECT")  # for tests and doubts: one by its name
    names = [wanted] if wanted else ["native"] * (objects.get("processor") == hashlib.sha256(here.encode()).hexdigest()) + levels(here) + ["any"]
    for name in names:
        path = os.path.join(folder, "built", "kernel-%s.so" % name)
        if name in objects.get("names", []) and os.path.exists(path):
            return path
    return None


def cache_folder(folder):
    if os.access(folder, os.W_OK):
        return folder
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    made = os.path.join(base, "pragma", "drop-in")
    os.makedirs(made, mode=0o700, exist_ok=True)
    return made


def compiler(name):
    """The name by which it is installed here: clang++ may be there as clang++-16 only."""
    for candidate in [name] + ["%s-%d" % (name, version) for version in range(30, 10, -1)]:
        if shutil.which(candidate):
            return candidate
    raise RuntimeError("no built object in %s is for this processor, and %s, to build kernel.cpp, is not installed" % ("built/", name))


def build(folder, name, steps):
    """Runs the steps in a folder of their own; `{out}` in them is the object, which then gets its name at once."""
    path = os.path.join(cache_folder(folder), name)
    if os.path.exists(path):
        return path
    with tempfile.TemporaryDirectory(prefix=".build-", dir=os.path.dirname(path)) as scratch:
        made = os.path.join(scratch, name)
        for step in steps:
            step = [part.format(out=made, object=os.path.join(scratch, "kernel.o")) for part in step]
            try:
                done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            except OSError as e:
                raise RuntimeError("cannot run %s: %s" % (step[0], e.strerror))
            if done.returncode:
                raise RuntimeError("%s was not compiled: %s\n%s" % (os.path.basename(step[-1] if step[-1].endswith((".c", ".cpp")) else "kernel.cpp"),
                                                                    " ".join(step), done.stdout[-4000:]))
        os.replace(made, path)
    return path


def kernel_object(folder, settings):
    source_path = os.path.join(folder, "kernel.cpp")
    with open(source_path, "rb") as f:
        source = f.read()
    ready = shipped(folder, source, settings["flags"])
    if ready:
        return ready
    flags = settings["flags"]
    key = hashlib.sha256(source + json.dumps(flags).encode() + processor().encode()).hexdigest()[:16]
    name = "kernel-%s.so" % key
    path = os.path.join(cache_folder(folder), name)
    if os.path.exists(path):
        return path
    command = compiler(settings["compiler"])
    # Linked in a step of its own, without -ffast-math: GCC would add code that changes the rounding of the whole process.
    return build(folder, name, [[command] + flags + ["-fPIC", "-I", folder, "-c", "-o", "{object}", source_path],
                                [command, "-shared", "{object}", "-o", "{out}"] + [f for f in flags if f == "-fopenmp"]])


def loaded(call, path):
    """The kernel of a built object. By a name of its own: of a path that it has loaded before the C library gives the old object, though the file may be another one by now."""
    try:
        with tempfile.TemporaryDirectory(prefix="pragma-kernel-") as folder:
            name = os.path.join(folder, os.path.basename(path))
            os.symlink(os.path.abspath(path), name)
            return call.load(name)
    except OSError:  # no folder for it (a full disk, one that may not be written); or no kernel in it, which this says again
        return call.load(path)


def caller(folder):
    """The module pragma_call: the shipped object (Python's stable interface), else built from its source with this Python's headers."""
    shipped_path = os.path.join(folder, "built", "pragma_call.abi3.so")
    try:
        return load_extension(shipped_path)
    except ImportError as e:
        why = str(e)
    if not shutil.which("cc") or not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
        raise RuntimeError("%s cannot be loaded (%s), and to build it there is no C compiler or no Python.h" % (shipped_path, why))
    source = os.path.join(folder, "pragma_call.c")
    text = hashlib.sha256()
    for name in sorted(name for name in os.listdir(folder) if name.endswith((".c", ".h"))):  # with all that it includes
        with open(os.path.join(folder, name), "rb") as f:
            text.update(f.read())
    key = text.hexdigest()[:16]
    return load_extension(build(folder, "pragma_call-%s.abi3.so" % key,
                                [["cc", "-O2", "-fPIC", "-shared", "-pthread", "-I", sysconfig.get_paths()["include"], "-I", folder, "-o", "{out}", source]]))


def load_extension(path):
    loader = importlib.machinery.ExtensionFileLoader("pragma_call", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location("pragma_call", path, loader=loader))
    loader.exec_module(module)
    return module


def describe(tensor):
    if not isinstance(tensor, torch.Tensor):
        return "%s %.60r" % (type(tensor).__name__, tensor)
    try:
        return "%s %s%s on %s" % (str(tensor.dtype)[6:], list(tensor.shape), "" if tensor.is_contiguous() else " of strides %s" % list(tensor.stride()), tensor.device)
    except RuntimeError:
        return type(tensor).__name__
