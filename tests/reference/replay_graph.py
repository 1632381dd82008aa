"""Replays the traced graphs of task files with Torch, operator by operator, and compares with the models: the graph says what
the reference computes. `replay_graph.py PYTHON_FOLDER TASK.py...`; prints one line for each that differs, exits 1 then."""
import sys

sys.path.insert(0, sys.argv[1])
import copy
import warnings

warnings.filterwarnings("ignore")

import torch

from describe import describe
from taskfile import TASK_SEED, TaskFile, state_tensors

NUMBERS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


def replay(graph, params, inputs):
    values = {}
    for kind, tensors in (("params", params), ("inputs", inputs)):
        for entry in graph[kind]:
            values[entry["id"]] = tensors[entry[kind[:-1]]]
    for entry in graph["constants"]:
        flat = [NUMBERS.get(v, v) if isinstance(v, str) else v for v in entry["values"]]
        values[entry["id"]] = torch.tensor(flat, dtype=getattr(torch, entry["dtype"])).reshape(entry["shape"])

    def value(v, kind):
        if isinstance(v, dict):
            return values[v["ref"]]
        if isinstance(v, list):
            return [value(x, kind) for x in v]
        if isinstance(v, str):
            return NUMBERS[v] if v in NUMBERS else getattr(torch, v, v) if "ScalarType" in kind or "int" in kind else v
        return v

    for node in graph["nodes"]:
        if node["op"] == "getitem":
            result = values[node["args"]["self"]["ref"]][node["args"]["index"]]
        else:
            _, name, overload = node["op"].split(".")
            op = getattr(getattr(torch.ops.aten, name), overload)
            kinds = {a.name: str(a.type) for a in op._schema.arguments}
            keyword = {a.name for a in op._schema.arguments if a.kwarg_only}
            given = {k: value(v, kinds[k]) for k, v in node["args"].items()}
            positional = [given[a.name] for a in op._schema.arguments if not a.kwarg_only and a.name in given]
            named = {k: v for k, v in given.items() if k in keyword}
            if name in ("view", "_unsafe_view", "_reshape_alias"):  # strides play no role in the graph
                result = positional[0].reshape(positional[1])
            else:
                result = op(*positional, **named)
        values[node["id"]] = result
        shapes = node.get("shapes") or [node["shape"]]
        for shape, got in zip(shapes, result if isinstance(result, (list, tuple)) else [result]):
            assert shape is None or list(got.shape) == shape, "%s has shape %s, not %s" % (node["id"], list(got.shape), shape)
    return [values[o] for o in graph["outputs"]]


def check(path):
    task = TaskFile(path)
    told, _ = describe(task)
    if told["graph"] is None:
        return told["graph_error"]
    module = task.execute()
    model = task.make_model(module)
    inputs = task.make_inputs(module, TASK_SEED)
    tensors = [v.clone() for v in inputs if isinstance(v, torch.Tensor)]
    params = [t.detach().clone() for _, t in state_tensors(copy.deepcopy(model))]
    torch.manual_seed(1)
    expected = model(*inputs)
    torch.manual_seed(1)
    got = replay(told["graph"], params, tensors)
    expected = list(expected) if isinstance(expected, (list, tuple)) else [expected]
    assert len(got) == len(expected)
    for a, b in zip(got, expected):
        assert a.dtype == b.dtype and a.shape == b.shape, "another type or shape"
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True), "values differ by %g" % float((a - b).abs().max())
    return ""


failed = False
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
