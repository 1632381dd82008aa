"""How Torch rounds a task's convolutions, with a library on this processor that rounds as GPUs' libraries do: `tf32.py PYTHON_OF_REFERENCE TASK.py`. TASK has a convolution of points, one of 3 x 3 twice, and a transposed one."""
import sys

sys.path.insert(0, sys.argv[1])
import torch

import tf32
from describe import describe
from taskfile import TaskFile

plain = tf32.convolution


def library(rule):
    """A convolution that rounds by rule(image, arguments) where TF32 is allowed."""
    def convolution(x, w, arguments):
        how = rule(x, arguments) if torch.backends.cudnn.allow_tf32 else tf32.EXACT
        return plain(tf32.rounded(x, how), tf32.rounded(w, how), arguments)
    return convolution


def marks(rule):
    tf32.convolution = library(rule)
    graph = describe(TaskFile(sys.argv[2]))[0]["graph"]
    tf32.mark(graph, "cpu")
    return [node.get("rounds", "") for node in graph["nodes"] if node["op"] == "aten.convolution.default"]


# What rounding is: of 1 + 2^-11, right between 1 and 1 + 2^-10, and of its odd neighbour; on either side of zero.
x = torch.tensor([1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-12, 3.0])
assert tf32.rounded(x, tf32.AWAY).tolist() == [1 + 2.0**-10, 1 + 2.0**-9, -1 - 2.0**-10, 1.0, 3.0]
assert tf32.rounded(x, tf32.EVEN).tolist() == [1.0, 1 + 2.0**-9, -1.0, 1.0, 3.0]

assert tf32.allowed()  # what a program has that says nothing
for how in (tf32.EXACT, tf32.AWAY, tf32.EVEN):
    assert marks(lambda x, a: how) == [how] * 4, (how, marks(lambda x, a: how))
assert marks(lambda x, a: tf32.EVEN if a["transposed"] else tf32.EXACT) == ["", "", "", "even"]
assert marks(lambda x, a: tf32.AWAY if x.shape[1] == 3 else tf32.EXACT) == ["away", "", "", ""]


def full(x, w, arguments):
    raise torch.cuda.OutOfMemoryError("no memory")


tf32.convolution = full
graph = describe(TaskFile(sys.argv[2]))[0]["graph"]
tf32.mark(graph, "cpu")
assert not any("rounds" in node for node in graph["nodes"])
assert torch.backends.cudnn.allow_tf32
torch.backends.cudnn.allow_tf32 = False
assert not tf32.allowed()
print("right")
