"""Which convolutions of a task Torch computes with factors rounded to TF32 on this device, and how it rounds: its library has kernels of every kind, and chooses by the sizes. Tried, as nobody says.
`python3 tf32.py TASK.py...` prints what would be found for a task's convolutions on a GPU."""
import json
import sys

import torch

from constants import tf32_of_convolutions

EXACT, AWAY, EVEN = "", "away", "even"  # base/tf32.hpp
LACKS = 13  # bits of a float32 number
KEPT, HALF = -1 << LACKS, 1 << (LACKS - 1)
TYPE_ARGUMENTS = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")


def allowed():
    """May convolutions use TF32 now? A task's file or model may have said no."""
    function, arguments, value = tf32_of_convolutions()
    return function(*arguments) == value


def rounded(x, how):
    """To the nearest TF32 number; a tie to the one that is further from zero, or to the even one."""
    bits = x.view(torch.int32)
    more = HALF if how == AWAY else HALF - 1 + ((bits >> LACKS) & 1)
    return x if how == EXACT else ((bits + more) & KEPT).view(torch.float32)


def between(shape, device, generator):
    """Numbers of which half lie right between two TF32 numbers."""
    x = torch.randn(shape, device=device, generator=generator)
    tie = torch.rand(shape, device=device, generator=generator) < 0.5
    return torch.where(tie, ((x.view(torch.int32) & KEPT) | HALF).view(torch.float32), x)


def convolution(image, weight, arguments):
    return torch.ops.aten.convolution.default(image, weight, None, *[arguments[name] for name in TYPE_ARGUMENTS])


def rounding_of(image, weight, arguments, device):
    """EXACT, AWAY or EVEN: whichever of the three, computed without TF32, is nearest to what Torch gives, which may use it now. `image`, `weight`: shapes; `arguments`: of aten.convolution."""
    generator = torch.Generator(device=device).manual_seed(0)
    x, w = between(image, device, generator), between(weight, device, generator)
    given = convolution(x, w, arguments)
    try:
        torch.backends.cudnn.allow_tf32 = False
        off = {how: float((convolution(rounded(x, how), rounded(w, how), arguments) - given).abs_().mean()) for how in (EXACT, AWAY, EVEN)}
    finally:
        torch.backends.cudnn.allow_tf32 = True  # who asks has it so
    return min(off, key=off.get)


def mark(graph, device):
    """Notes at each convolution of a graph (docs/graph.md) whose factors Torch rounds on `device` how it does: "rounds"."""
    shapes = {entry["id"]: entry["shape"] for kind in ("inputs", "params", "constants") for entry in graph[kind]}
    known = {}
    for node in graph["nodes"]:
        if "shape" in node:
            shapes[node["id"]] = node["shape"]
        if node["op"] != "aten.convolution.default" or node["dtype"] != "float32":
            continue
        image, weight = (shapes.get(node["args"][name]["ref"]) for name in ("input", "weight"))
        if image is None or weight is None:
            continue
        key = json.dumps([image, weight] + [node["args"][name] for name in TYPE_ARGUMENTS])
        if key not in known:
            known[key] = EXACT
            try:
                with torch.no_grad():
                    known[key] = rounding_of(image, weight, node["args"], device)
            except RuntimeError:  # memory, or no kernel: float32 is right in any case
                pass
        if known[key]:
            node["rounds"] = known[key]
    torch.cuda.empty_cache()


def main():
    from describe import describe
    from taskfile import TaskFile
    for path in sys.argv[1:]:
        graph = describe(TaskFile(path))[0]["graph"]
        mark(graph, "cuda")
        print(path, [node.get("rounds", "float32") for node in graph["nodes"] if node["op"] == "aten.convolution.default"], flush=True)


if __name__ == "__main__":
    main()
