"""Runs nodes of a traced graph (docs/graph.md) with Torch, operator by operator: what Torch keeps of a task that is cut into parts, and the reference of
such a part. Needs Torch and nothing of PRAGMA: this text also stands in the tasks of parts, and lies beside a drop-in of parts."""
import torch

NUMBERS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
BATCH_NORMS = ("aten.native_batch_norm.", "aten._native_batch_norm_legit.")
LAYERS = ("aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input")  # called by the names that a trace takes as a whole (traceable.py)
VIEWS = ("view", "_unsafe_view", "_reshape_alias")  # the graph knows no strides: what Torch could view may have to be copied here


def named(node_id):
    return "v_" + "".join(c if c.isalnum() else "_" for c in node_id)


def operator(node):
    _, name, overload = node["op"].split(".")
    return getattr(getattr(torch.ops.aten, name), overload)


def type_text(name):
    """A record may be somebody else's: nothing but the name of a type becomes text that is run."""
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ValueError("%r is no type of Torch's" % name)
    return str(found)


def references(value):
    """Ids of the tensors in an argument."""
    if isinstance(value, dict):
        return [value["ref"]] if "ref" in value else []
    return [r for v in value for r in references(v)] if isinstance(value, list) else []


def results_of(node):
    return node.get("results") or [node["id"]]


def reads_of(node):
    return node["reads"] if "reads" in node else [r for value in node["args"].values() for r in references(value)]


def with_statistics(norm, nodes, readers, wanted):
    """A batch norm in training mode together with the nodes that say what it writes to its running statistics (trace.py): (one node, ids of those that it replaces); None
    where they are not all among `nodes` (by id), or somebody else reads what is between them."""
    args, name, inner = norm["args"], norm["id"], set()
    if not norm["op"].startswith(BATCH_NORMS) or not args.get("training") or not args.get("running_mean") or name in wanted:
        return None
    if any(nodes[r]["op"] != "getitem" or nodes[r]["args"]["index"] != 0 for r in readers.get(name, [])):
        return None

    def is_there(node_id, op, **asked):
        node = nodes.get(node_id)
        inner.add(node_id)
        return node is not None and node["op"] == op and all(node["args"].get(key) == value for key, value in asked.items())

    for kind, op, more in (("mean", "aten.mean.dim", {}), ("var", "aten.var.correction", {"correction": 1})):
        of, buffer = "%s_%s" % (name, kind), args["running_" + kind]
        x = nodes.get(of, {"args": {}})["args"].get("self")
        if x != args["input"] and not (x and is_there(x.get("ref"), "aten._to_copy.default", self=args["input"])):
            return None
        if not (is_there(of, op, self=x, **more) and is_there(of + "_old", "aten.mul.Tensor", self=buffer, other=1 - args["momentum"])
                and is_there(of + "_new", "aten.mul.Tensor", self={"ref": of}, other=args["momentum"])
                and is_there(of + "_running", "aten.add.Tensor", self={"ref": of + "_old"}, other={"ref": of + "_new"}, alpha=1)):
            return None
    results = [name + "_mean_running", name + "_var_running"]
    if any(v in wanted or not set(readers.get(v, [])) <= inner for v in inner - set(results)):
        return None
    return {"norm": norm, "reads": [r for value in args.values() for r in references(value)], "results": [name] + results}, inner


def as_modules_do(nodes, wanted):
    """The nodes with each batch norm and its running statistics as one call of Torch's, as the module makes it: two launches beside it instead of eight."""
    by_id, readers, replaced, whole = {node["id"]: node for node in nodes if "id" in node}, {}, set(), {}
    for node in nodes:
        for value in reads_of(node):
            readers.setdefault(value, []).append(node.get("id", ""))
    by_id[""] = {"op": "a kernel"}
    for node in nodes:
        found = with_statistics(node, by_id, readers, wanted) if "id" in node else None
        if found:
            whole[node["id"]] = found[0]
            replaced |= found[1]
    return [whole.get(node.get("id"), node) for node in nodes if node.get("id") not in replaced]


class Writer:
    """Writes the nodes as one Python function, so that a call costs what its operators cost."""

    def __init__(self, constants, device, once):
        """`once`: constants are made once, and not on each call as a traced forward() does."""
        self.scope, self.lines, self.device = {"torch": torch}, [], device
        self.constants, self.once = {c["id"]: c for c in constants}, once

    def kept(self, value):
        """A name for an object that the text cannot hold."""
        name = "k%d" % len(self.scope)
        self.scope[name] = value
        return name

    def text(self, value, key=""):
        if isinstance(value, dict):
            return self.tensor(value["ref"]) if "ref" in value else "complex(%s, %s)" % tuple(self.text(v) for v in value["complex"])
        if isinstance(value, list):
            return "[%s]" % ", ".join(self.text(v, key) for v in value)
        if isinstance(value, str):
            if value in NUMBERS:
                return "float(%r)" % value
            return type_text(value) if key == "dtype" else repr(value)
        return repr(value)

    def tensor(self, name):
        if name not in self.constants:
            return named(name)
        entry = self.constants[name]
        flat = [NUMBERS.get(v, v) if isinstance(v, str) else v for v in entry["values"]]
        if not self.once:
            return "torch.tensor(%s, dtype=%s).reshape(%s)" % (self.text(entry["values"]), type_text(entry["dtype"]), self.text(entry["shape"]))
        return self.kept(torch.tensor(flat, dtype=getattr(torch, entry["dtype"]), device=self.device).reshape(entry["shape"]))

    def call(self, node):
        args = node["args"]
        if node["op"].startswith(BATCH_NORMS) and args.get("training"):
            # Without those that it would write to: the graph says their new values by nodes of their own. Only this one of the operators may be called so.
            args = dict(args, running_mean=None, running_var=None)
            node = dict(node, op="aten.native_batch_norm.default")
        if node["op"] == "getitem":
            return "%s[%d]" % (self.text(args["self"]), args["index"])
        op = operator(node)
        if node["op"] in LAYERS:
            return "torch._VF.%s(%s)" % (node["op"].split(".")[1], ", ".join(self.text(args[a.name]) for a in op._schema.arguments))
        arguments = [a for a in op._schema.arguments if a.name in args]
        if op._schema.name[6:] in VIEWS:
            return "%s.reshape(%s)" % tuple(self.text(args[a.name]) for a in arguments[:2])
        given = [self.text(args[a.name], a.name) for a in arguments if not a.kwarg_only]
        given += ["%s=%s" % (a.name, self.text(args[a.name], a.name)) for a in arguments if a.kwarg_only]
        makes = not any(references(v) for v in args.values()) and any(a.name == "device" for a in op._schema.arguments)
        if makes and self.device is not None:
            given.append("device=%s" % self.kept(torch.device(self.device)))
        return "%s(%s)" % (self.kept(getattr(op, "_op", op)), ", ".join(given))

    def batch_norm(self, node):
        args, (norm, *updated) = node["norm"]["args"], map(named, node["results"])
        copies = ["%s = %s.clone()" % (name, self.text(args["running_" + kind])) for name, kind in zip(updated, ("mean", "var"))]
        given = [self.text(args[name]) for name in ("input", "weight", "bias")] + updated + ["True"] + [self.text(args[name]) for name in ("momentum", "eps")]
        return "; ".join(copies + ["%s = (torch.batch_norm(%s, torch.backends.cudnn.enabled),)" % (norm, ", ".join(given))])

    def step(self, node):
        if "norm" in node:
            return self.batch_norm(node)
        if "kernel" not in node:
            return "%s = %s" % (named(node["id"]), self.call(node))
        results = ", ".join(named(v) for v in node["results"])
        return "%s = %s(%s)" % (results, self.kept(node["kernel"]), ", ".join(self.tensor(v) + (".contiguous()" if v in node["any_strides"] else "") for v in node["reads"]))

    def function(self, nodes, given, wanted):
        nodes, last = as_modules_do(nodes, wanted), {}
        for i, node in enumerate(nodes):
            for value in results_of(node) + reads_of(node):
                last[value] = i
        mine = {v for node in nodes for v in results_of(node)} | set(given)
        for i, node in enumerate(nodes):
            self.lines.append(self.step(node))
            over = sorted(v for v, at in last.items() if at == i and v in mine and v not in wanted)
            if over:
                self.lines.append("del " + ", ".join(named(v) for v in over))
        results = "".join(self.tensor(v) + ", " for v in wanted)
        text = "def steps(%s):\n    %s\n    return (%s)\n" % (", ".join(named(v) for v in given), "\n    ".join(self.lines) or "pass", results)
        exec(compile(text, "<nodes of a graph>", "exec"), self.scope)
        return self.scope["steps"]


def function_of(nodes, constants, given, wanted, device=None, once=True):
    """f(*tensors in the order of the ids `given`) -> the tensors of the ids `wanted`, as a tuple. `device`: where nodes without any tensor make theirs.
    A node may be a kernel as well: {"kernel": a function, "reads": ids, "results": ids, "any_strides": those of `reads` that it wants contiguous}."""
    return Writer(constants, device, once).function(nodes, given, wanted)


def replay(graph, params, foreign, inputs):
    """A whole graph's outputs; `params` and `inputs` by the positions that it says, `foreign` by names."""
    given = [entry["id"] for entry in graph["params"] + graph["foreign"] + graph["inputs"]]
    tensors = [params[entry["param"]] for entry in graph["params"]] + [foreign[entry["foreign"]] for entry in graph["foreign"]] + [inputs[entry["input"]] for entry in graph["inputs"]]
    return function_of(graph["nodes"], graph["constants"], given, graph["outputs"])(*tensors)
