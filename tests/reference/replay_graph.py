"""Replays the traced graphs of task files with Torch, operator by operator, and compares with the models: the graph says what
the reference computes. `replay_graph.py PYTHON_FOLDER TASK.py...`; prints one line for each that differs, exits 1 then."""
import sys

sys.path.insert(0, sys.argv[1])
import copy
import tempfile
import warnings

warnings.filterwarnings("ignore")

import torch

from describe import describe
from replay import Writer, as_modules_do, reads_of, replay, results_of
from taskfile import TASK_SEED, TaskFile, is_foreign, state_tensors

def check(path):
    task = TaskFile(path)
    told, _ = describe(task)
    if told["graph"] is None:
        return told["graph_error"]
    module = task.execute()
    model = task.make_model(module)
    inputs = task.make_inputs(module, TASK_SEED)
    tensors = [v.clone() for v in inputs if isinstance(v, torch.Tensor)]
    held = {name: t.detach().clone() for name, t in state_tensors(copy.deepcopy(model))}
    params = [t for t in held.values() if not is_foreign(t)]
    torch.manual_seed(1)
    expected = model(*inputs)
    torch.manual_seed(1)
    got = replay(told["graph"], params, held, tensors)
    expected = list(expected) if isinstance(expected, (list, tuple)) else [expected]
    state = dict(state_tensors(model))
    expected += [state[u["name"]] for u in told["updates"] if "output" in u]
    assert len(got) == len(expected)
    for a, b in zip(got, expected):
        assert a.dtype == b.dtype and a.shape == b.shape, "another type or shape"
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True), "values differ by %g" % float((a - b).abs().max())
    return ""


# A record may be somebody else's: of its types nothing but a type's name becomes text that is run.
for hostile in ("float32, print('run')", "float32).__class__", "load", "__name__"):
    constant = {"id": "c", "shape": [1], "dtype": hostile, "values": [1]}
    for write in (lambda: Writer([], "cpu", False).text(hostile, "dtype"), lambda: Writer([constant], "cpu", False).tensor("c")):
        try:
            sys.exit("a type that is none was written as text: " + write())
        except ValueError:
            pass

NORMALIZED = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3, affine=False, momentum=0.3)
    def forward(self, x):
        return torch.relu(self.two(torch.relu(self.one(x))))
def get_inputs():
    return [torch.randn(4, 3, 5, 5)]
def get_init_inputs():
    return []
"""


def batch_norms():
    """With their running statistics they are one call each, bit for bit the module's, where nobody asks for what lies between."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(NORMALIZED)
        file.flush()
        task = TaskFile(file.name)
        told, _ = describe(task)
        model, x = task.make_model(task.execute()), torch.randn(4, 3, 5, 5)
    graph = told["graph"]
    nodes, wanted = graph["nodes"], graph["outputs"]
    held = {name: t.detach().clone() for name, t in state_tensors(model)}
    merged = as_modules_do(nodes, wanted)
    assert sum("norm" in node for node in merged) == 2 and not any(node.get("op") in ("aten.var.correction", "aten.add.Tensor") for node in merged), merged
    got = replay(graph, list(held.values()), held, [x])
    expected = [model(x)]
    state = dict(state_tensors(model))
    expected += [state[u["name"]] for u in told["updates"] if "output" in u]
    assert len(got) == len(expected) == 5 and all(torch.equal(a, b) for a, b in zip(got, expected)), "not what the module computes"
    between = next(node["id"] for node in nodes if node["op"] == "aten.var.correction")
    reader = {"kernel": print, "reads": [between], "results": ["another"], "any_strides": set()}
    for others, also in ((nodes, [between]), (nodes + [reader], []), ([node for node in nodes if node["id"] != between], [])):
        assert sum("norm" in node for node in as_modules_do(others, wanted + also)) == 1, "what lies between is gone"
    there = set(graph["params"][i]["id"] for i in range(len(graph["params"]))) | {graph["inputs"][0]["id"]}
    for node in merged:
        assert set(reads_of(node)) <= there, "read before it is made"
        there |= set(results_of(node))


failed = False
with torch.no_grad():
    batch_norms()
with torch.no_grad():
    for path in sys.argv[2:]:
        try:
            problem = check(path)
        except Exception as e:
            problem = "%s: %s" % (type(e).__name__, str(e)[:300])
        if problem:
            failed = True
            print(path, problem, flush=True)
sys.exit(1 if failed else 0)
