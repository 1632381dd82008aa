"""Which devices Torch finds: `describe_devices.py KIND`, where KIND is what Torch calls them (cuda, npu). JSON lines on stdout.

The first line names Python, Torch, Triton and what Torch was built for, with a "problem" where there are no devices; then one line a
device, device.py's facts() with its "index". Started by profilers/accelerators.cpp, for `pragma doctor` and for nodes."""
import importlib.metadata
import importlib.util
import json
import sys


def version_of(*names):
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return "of unknown version" if importlib.util.find_spec("triton") else ""


def one_line(error):
    return " ".join(str(error).split())[:300]


def main():
    kind = sys.argv[1]
    told = {"python": "%d.%d.%d" % sys.version_info[:3], "torch": "", "built_for": "", "problem": "",
            "triton": version_of("triton-ascend" if kind == "npu" else "triton", "pytorch-triton", "pytorch-triton-rocm")}
    found = []
    try:
        import torch
        import device
        told["torch"] = torch.__version__
        told["built_for"] = "rocm" if torch.version.hip else "cuda" if torch.version.cuda else ""
        first = device.Device(kind + ":0")
        for index in range(first.api.device_count()):
            found.append({"index": index, **device.Device("%s:%d" % (kind, index)).facts()})
    except (ImportError, RuntimeError, AttributeError, OSError) as e:
        told["problem"] = one_line(e)
    for line in [told] + found:
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
