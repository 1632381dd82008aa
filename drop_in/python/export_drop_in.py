"""A drop-in as others take it: an installable wheel, one Python file, or a header and a shared object for C++. Started by `pragma export`.
`export_drop_in.py wheel|file|cpp FOLDER OUT NAME FILE...`: FILEs are the drop-in's, relative to FOLDER. Prints one JSON line."""
import base64
import hashlib
import io
import json
import os
import platform
import re
import shutil
import sys
import zipfile

C_TYPES = {"float32": "float", "float64": "double", "float16": "uint16_t", "bfloat16": "uint16_t", "int64": "int64_t", "int32": "int32_t",
           "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t", "bool": "bool"}
KERNEL_TYPES = list(C_TYPES)
VERSION = "1.0.0"


def settings_of(folder):
    with open(os.path.join(folder, "model_new.py"), encoding="utf-8") as f:
        found = re.search(r'^SETTINGS = r"""\n(.*?)\n"""', f.read(), re.S | re.M)
    return json.loads(found.group(1)) if found else None


def wheel(folder, out, name, files):
    """NAME-1.0.0-...whl, byte for byte the same for the same files."""
    native = any(f.endswith(".so") for f in files)
    tag = "cp310-abi3-linux_%s" % platform.machine() if native else "py3-none-any"
    info = "%s-%s.dist-info" % (name, VERSION)
    contents = {"%s/__init__.py" % name: b'"""Made by PRAGMA: `from %s import ModelNew`."""\nfrom .model_new import ModelNew\n\n__all__ = ["ModelNew"]\n' % name.encode()}
    for file in files:
        with open(os.path.join(folder, file), "rb") as f:
            contents["%s/%s" % (name, file)] = f.read()
    contents[info + "/METADATA"] = ("Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: A drop-in for a Torch model, made by PRAGMA\n"
                                    "Requires-Python: >=3.10\n" % (name, VERSION)).encode()
    contents[info + "/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: pragma\nRoot-Is-Purelib: %s\nTag: %s\n" % (str(not native).lower(), tag)).encode()
    record = ""
    for path in sorted(contents):
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents[path]).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (path, digest, len(contents[path]))
    contents[info + "/RECORD"] = (record + info + "/RECORD,,\n").encode()
    path = os.path.join(out, "%s-%s-%s.whl" % (name, VERSION, tag))
    zipped(path, contents)
    return [path]


def zipped(target, contents):
    """The same bytes for the same contents."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in sorted(contents):
            item = zipfile.ZipInfo(entry)
            item.external_attr = 0o644 << 16
            item.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(item, contents[entry])


ONE_FILE = '''"""ModelNew, made by PRAGMA, as one file: for evaluators that take the text of a model (KernelBench's), and to be copied. It unpacks the drop-in
into a folder of this process's own, which goes with the process (TMPDIR says where; a file system that forbids to execute will not do).

    from @NAME@ import ModelNew        # or exec() of this text
"""
import atexit
import base64
import importlib.util
import io
import os
import shutil
import sys
import tempfile
import zipfile

FILES = """
@FILES@"""


def _unpacked():
    folder, owner = tempfile.mkdtemp(prefix="pragma-@NAME@-"), os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)  # not by a child that was forked
    with zipfile.ZipFile(io.BytesIO(base64.b85decode("".join(FILES.split())))) as archive:
        archive.extractall(folder)
    return folder


def _loaded():
    full = "pragma_one_file_@DIGEST@"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, os.path.join(_unpacked(), "model_new.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[full] = module
    return sys.modules[full]


ModelNew = _loaded().ModelNew
if vars(sys.modules.get(__name__, os)) is globals():
    ModelNew.__module__ = __name__  # pickled models name this file
'''


def one_file(folder, out, name, files):
    """NAME.py, with all files of the drop-in in it."""
    contents, packed = {}, io.BytesIO()
    for file in files:
        with open(os.path.join(folder, file), "rb") as f:
            contents[file] = f.read()
    zipped(packed, contents)
    text = base64.b85encode(packed.getvalue()).decode()
    lines = "".join(text[i:i + 160] + "\n" for i in range(0, len(text), 160))
    path = os.path.join(out, name + ".py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(ONE_FILE.replace("@NAME@", name).replace("@DIGEST@", hashlib.sha256(packed.getvalue()).hexdigest()[:16]).replace("@FILES@", lines))
    return [path]


WORDS = set("""alignas asm auto bool break case catch char class const continue default delete do double else enum explicit export extern float for
friend goto if inline int long mutable namespace new operator private protected public register return short signed sizeof static struct switch template
this throw try typedef typeid union unsigned using virtual void volatile while main args forward""".split())


def argument(text):
    """A name that C++ accepts; those of the function's own tables start with `pragma_`."""
    name = re.sub(r"\W", "_", text)
    return name + "_" if name in WORDS or name.startswith("pragma_") else name


def rows_of(kind, entries):
    made = []
    for e in entries:
        shape = ", ".join(str(n) for n in e["shape"]) or "0"
        made.append("{const_cast<%s*>(%s), %d, %d, {%s}}" % (C_TYPES[e["dtype"]], argument(e["name"]), KERNEL_TYPES.index(e["dtype"]), len(e["shape"]), shape))
    return "  const pragma_tensor pragma_%s[] = {%s};\n" % (kind, ", ".join(made) or "{}")


def header(name, settings):
    lists = settings["inputs"], settings["params"], settings["outputs"]
    said = "".join("//   %s: %s, %s %s\n" % (what, argument(e["name"]), e["dtype"], e["shape"] or "a scalar")
                   for what, entries in zip(("input", "parameter", "output"), lists) for e in entries)
    said += "".join("//   constant argument %s\n" % s for s in settings["scalars"])
    arguments = ["const %s* %s" % (C_TYPES[e["dtype"]], argument(e["name"])) for e in lists[0] + lists[1]]
    arguments += ["%s* %s" % (C_TYPES[e["dtype"]], argument(e["name"])) for e in lists[2]]
    return ("// A kernel made by PRAGMA, for C++: forward() of the task, for exactly these tensors, each contiguous and 64-byte aligned.\n%s"
            "// One call at a time: its scratch is static. %d thread(s).\n#pragma once\n\n#include \"pragma_kernel.h\"\n\nnamespace %s {\n\n"
            "inline void forward(%s) {\n%s%s%s  const pragma_args pragma_all = {pragma_inputs, pragma_params, pragma_outputs, %d, %d, %d, %d};\n  pragma_kernel(&pragma_all);\n}\n\n} // namespace %s\n"
            % (said, settings["threads"], name, ", ".join(arguments), rows_of("inputs", lists[0]), rows_of("params", lists[1]), rows_of("outputs", lists[2]),
               len(lists[0]), len(lists[1]), len(lists[2]), settings["threads"], name))


def elements(entry):
    n = 1
    for size in entry["shape"]:
        n *= size
    return n


def example(name, settings):
    lines = ["// Calls the kernel on made-up numbers:", "//   g++ -std=c++20 -O2 example.cpp -L. -l%s -Wl,-rpath,'$ORIGIN' -o example && ./example" % name,
             "#include \"%s.hpp\"" % name, "", "#include <cstdio>", "#include <cstdlib>", "", "template <class T> T* made(long elements, double value) {",
             "  T* data = static_cast<T*>(std::aligned_alloc(64, (elements * sizeof(T) + 63) / 64 * 64));",
             "  for (long i = 0; i < elements; ++i) data[i] = static_cast<T>(value * (i % 7 - 3));", "  return data;", "}", "", "int main() {"]
    entries = settings["inputs"] + settings["params"] + settings["outputs"]
    for i, e in enumerate(entries):
        lines.append("  auto* %s = made<%s>(%d, %g);" % (argument(e["name"]), C_TYPES[e["dtype"]], elements(e), 0.25 if i < len(settings["inputs"]) else 0.125))
    lines.append("  %s::forward(%s);" % (name, ", ".join(argument(e["name"]) for e in entries)))
    for e in settings["outputs"]:
        lines.append("  std::printf(\"%s[0] = %%.9g\\n\", static_cast<double>(%s[0]));" % (argument(e["name"]), argument(e["name"])))
    return "\n".join(lines + ["  return 0;", "}", ""])


def cpp(folder, out, name, files):
    settings = settings_of(folder)
    if settings is None:
        raise ValueError("a Triton module has no form in C++")
    if "parts.json" in files:
        raise ValueError("between this task's kernels Torch computes, which C++ does not have: export each kernel by itself (%s/parts/1, parts/2 ...)" % folder)
    built = next((f for kind in ("any", "x86-64-v3", "native", "x86-64-v2") for f in files if f == "built/kernel-%s.so" % kind), None)
    if built is None:
        raise ValueError("there is no built object beside model_new.py: export it on a machine with a compiler")
    texts = {name + ".hpp": header(name, settings), "example.cpp": example(name, settings)}
    for file, text in texts.items():
        with open(os.path.join(out, file), "w", encoding="utf-8") as f:
            f.write(text)
    shutil.copy(os.path.join(folder, built), os.path.join(out, "lib%s.so" % name))
    shutil.copy(os.path.join(folder, "pragma_kernel.h"), os.path.join(out, "pragma_kernel.h"))
    return [os.path.join(out, f) for f in list(texts) + ["lib%s.so" % name, "pragma_kernel.h"]]


def main():
    kind, folder, out, name, files = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]
    os.makedirs(out, exist_ok=True)
    try:
        print(json.dumps({"files": {"wheel": wheel, "file": one_file, "cpp": cpp}[kind](folder, out, name, files)}))
    except (OSError, ValueError) as e:
        print(json.dumps({"error": str(e)}))


if __name__ == "__main__":
    main()
