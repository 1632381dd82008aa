"""Traces a task's reference to a graph of aten operators: the IR of the built-in coder (docs/graph.md is its schema).

Shapes come from fake tensors, so that nothing is allocated. `python3 trace.py TASK.py` prints the task as JSON.
"""
import contextlib
import json
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import constants
import traceable
from taskfile import DTYPES, TaskError, TaskFile, container_of, flatten_outputs, is_foreign, state_tensors, swapped_state

MAX_CONSTANT_ELEMENTS = 1 << 16

# One value passes through unchanged: readers use the argument instead.
PASS_THROUGH = {"aten.detach.default", "aten.lift_fresh_copy.default", "aten.lift_fresh.default", "aten.alias.default",
                "aten.clone.default", "aten.detach_.default", "aten.contiguous.default"}
BATCH_NORMS = ("aten.native_batch_norm.default", "aten._native_batch_norm_legit.default")
RANDOM = ("bernoulli", "rand", "normal", "dropout", "uniform", "multinomial", "exponential", "poisson")


class GraphError(Exception):
    pass


def fake_mode():
    return FakeTensorMode()


def type_name(dtype):
    """Of any type: inside a graph those that no kernel has stand as well, between calls that stay Torch's."""
    return str(dtype).replace("torch.", "")


def spec(name, tensor):
    if tensor.dtype not in DTYPES:
        raise TaskError("%s has dtype %s, which no kernel takes or gives" % (name, tensor.dtype), code="torch_only")
    return {"name": name, "dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape)}


def state_entries(model):
    """What the graph says of the model's state, in its order: the parameters that a kernel is given, by their position among these, and those of foreign types, by their names."""
    entries, params = [], 0
    for i, (name, tensor) in enumerate(state_tensors(model)):
        foreign = is_foreign(tensor)
        entries.append({"id": "f%d" % i, "foreign": name} if foreign else {"id": "p%d" % params, "param": params})
        params += not foreign
    return entries


def trace(model, inputs, task):
    """make_fx over forward(*inputs) with the model's state as arguments: (graph module, output tensors)."""
    state = [t for _, t in state_tensors(model)]
    positions = [i for i, v in enumerate(inputs) if isinstance(v, torch.Tensor)]
    outputs = []

    def function(params, args):
        full = list(inputs)
        for position, value in zip(positions, args):
            full[position] = value
        with swapped_state(model, state, params):
            before = constants.marks_of(model)
            result = model(*full)
            task.written = constants.written_since(model, before)
        outputs[:] = flatten_outputs(result, task.path)
        task.returned = container_of(result)
        return tuple(outputs)

    with torch.no_grad(), traceable.functions(), noted_lines(task.path):
        # Detached, so that a tensor which is given twice is two objects: they are told apart by that.
        graph_module = task.call("forward()", lambda: make_fx(function)([t.detach() for t in state], [inputs[i].detach() for i in positions]))
    return graph_module, outputs


@contextlib.contextmanager
def noted_lines(path):
    """While this holds, each node that is made notes in its meta["line"] which line of the task's file called for it."""
    create = torch.fx.Graph.create_node

    def with_line(graph, *args, **kwargs):
        node = create(graph, *args, **kwargs)
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != path:
            frame = frame.f_back
        if frame is not None:
            node.meta["line"] = frame.f_lineno
        return node

    torch.fx.Graph.create_node = with_line
    try:
        yield
    finally:
        torch.fx.Graph.create_node = create


# -- conversion --------------------------------------------------------------------------------------------------------


def _number(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def _flat(value):
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in _flat(v)]
    return [value]


def _shape_of(value):
    return (list(value.shape), type_name(value.dtype)) if hasattr(value, "dtype") else None


def _value(node):
    """A tensor as the node's result, or what Torch 1.13 notes of one that is not fake."""
    return node.meta["tensor_meta"] if node.meta.get("val") is None and "tensor_meta" in node.meta else node.meta.get("val")


class Converter:
    """Turns one fx graph into the JSON graph: defaults filled in, in-place operators made functional, dead code dropped."""

    def __init__(self, graph_module, state):
        """`state`: of state_entries()."""
        self.gm = graph_module
        self.state = [dict(entry) for entry in state]
        self.current = {}     # fx node -> id of the value that it held when last looked at
        self.views = {}       # fx node -> (the node that it is a view of, operator, arguments)
        self.version = {}     # root of views -> how often its memory has been written
        self.seen = {}        # fx node -> version of its root that `current` stands for
        self.nodes, self.constants = [], []
        self.meta = {}        # id -> (shape, dtype) or list of them
        self.mutated = set()  # placeholder positions
        self.random = False
        self.places = {}      # placeholder -> id
        self.line = None      # of the task's file: the call that is being converted

    def run(self):
        placeholders = 0
        outputs = []
        self.inputs = []
        for node in self.gm.graph.nodes:
            self.line = node.meta.get("line")
            if node.op == "placeholder":
                if placeholders < len(self.state):
                    name = self.state[placeholders]["id"]
                else:
                    name = "x%d" % len(self.inputs)
                    self.inputs.append({"id": name, "input": len(self.inputs)})
                placeholders += 1
                self._define(node, name, _value(node))
                self.places[node] = name
            elif node.op == "get_attr":
                self._constant(node)
            elif node.op == "output":
                outputs = [self._read(n) for n in _flat(node.args[0])]
            elif node.op == "call_function":
                self._call(node)
            else:
                raise GraphError("unexpected node %s %s" % (node.op, node.target))
        return self._finish(outputs)

    def _define(self, node, name, value):
        self.current[node] = name
        if hasattr(value, "dtype"):
            self.meta[name] = _shape_of(value)
        elif isinstance(value, (list, tuple)):
            self.meta[name] = [_shape_of(v) for v in value]
        else:
            # Several results: Torch 1.13 notes their shapes only where they are taken apart.
            parts = {user.args[1]: _value(user) for user in node.users if "getitem" in str(user.target)}
            if parts:
                self.meta[name] = [_shape_of(parts.get(i)) for i in range(max(parts) + 1)]

    def _root(self, node):
        while node in self.views:
            node = self.views[node][0]
        return node

    def _read(self, node):
        """Id of the node's present value; a view of memory that was written since is taken anew."""
        if not isinstance(node, torch.fx.Node):
            raise GraphError("forward() returns a constant")
        if node in self.views:
            version = self.version.get(self._root(node), 0)
            if self.seen.get(node, 0) != version:
                parent, op, args = self.views[node]
                if op == "getitem":
                    raise GraphError("a part of a tensor that was split is read after the tensor was written")
                source = self._read(parent)
                if op is None:
                    self.current[node] = source
                else:
                    name = "%s_v%d" % (node.name, version)
                    self.meta[name] = self.meta[self.current[node]]
                    self.nodes.append(self._node(name, op, dict(args, self={"ref": source})))
                    self.current[node] = name
                self.seen[node] = version
        return self.current[node]

    def _write(self, node, name):
        """The memory of `node` now holds value `name`: so does, in that part, whatever it is a view of."""
        if node not in self.views:
            self.version[node] = self.version.get(node, 0) + 1
            self.current[node] = name
            return
        parent, op, args = self.views[node]
        before = self._read(parent)
        shape, dtype = self.meta[before]
        kind = op.split(".")[1] if op and "." in op else op
        source = {"ref": name}
        if op is None:
            whole = name
        elif kind in ("select", "slice"):
            whole = self._emit(name + "_in", "aten.%s_scatter.default" % kind,
                               dict(args, self={"ref": before}, src=source), shape, dtype)
        elif kind in ("view", "_unsafe_view", "_reshape_alias", "unsqueeze", "squeeze"):
            whole = self._emit(name + "_in", "aten.view.default", {"self": source, "size": shape}, shape, dtype)
        elif kind in ("t", "transpose"):
            whole = self._emit(name + "_in", op, dict(args, self=source), shape, dtype)
        elif kind == "permute":
            order = [d % len(shape) for d in args["dims"]]
            whole = self._emit(name + "_in", op, {"self": source, "dims": [order.index(d) for d in range(len(shape))]}, shape, dtype)
        else:
            raise GraphError("a write through a view made by %s" % (op or "alias"))
        self._write(parent, whole)
        self.current[node] = name
        self.seen[node] = self.version[self._root(node)]

    def _emit(self, name, op, args, shape, dtype):
        self.meta[name] = (shape, dtype)
        self.nodes.append(self._node(name, op, args))
        return name

    def _constant(self, node):
        value = self.gm
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if type(value).__name__ == "FakeTensor" and getattr(value, "constant", None) is not None:
            value = value.constant
        if type(value).__name__ == "FakeTensor":
            raise GraphError("a tensor of shape %s is made from values that shapes alone do not tell" % list(value.shape))
        if value.numel() > MAX_CONSTANT_ELEMENTS:
            raise GraphError("a constant of %d elements is made in forward()" % value.numel())
        if value.dtype.is_complex or value.is_quantized:
            raise GraphError("a constant of type %s is made in forward()" % type_name(value.dtype))
        self._define(node, str(node.name), value)
        shape, dtype = self.meta[node.name]
        self.constants.append({"id": node.name, "shape": shape, "dtype": dtype, "values": [_number(v) for v in value.detach().reshape(-1).tolist()]})

    def _argument(self, value):
        if isinstance(value, torch.fx.Node):
            return {"ref": self._read(value)}
        if isinstance(value, (list, tuple)):
            return [self._argument(v) for v in value]
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return _number(value)
        if isinstance(value, torch.dtype):
            return type_name(value)
        if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
            return str(value)
        if isinstance(value, complex):
            return {"complex": [_number(value.real), _number(value.imag)]}
        raise GraphError("an argument of type %s" % type(value).__name__)

    def _arguments(self, schema, node):
        args = {}
        for i, argument in enumerate(schema.arguments):
            if i < len(node.args):
                value = node.args[i]
            elif argument.name in node.kwargs:
                value = node.kwargs[argument.name]
            elif argument.has_default_value():
                value = argument.default_value
            else:
                value = None
            if argument.name in ("layout", "device", "pin_memory", "memory_format", "generator", "non_blocking"):
                continue
            if argument.name == "dtype" and isinstance(value, int):
                value = None  # a default that the schema holds as a number
            args[argument.name] = self._argument(value)
        return args

    def _call(self, node):
        target = str(node.target)
        value = _value(node)
        if "getitem" in target:
            base, index = node.args
            name = node.name
            self._define(node, name, value)
            if value is None and isinstance(self.meta.get(self.current[base]), list):
                self.meta[name] = self.meta[self.current[base]][index]
            self.nodes.append(self._node(name, "getitem", {"self": {"ref": self._read(base)}, "index": index}))
            if base in self.views:
                self._view(node, base, "getitem", {})
            return
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            raise GraphError("a call of %s" % target)
        if not node.users and schema.returns and not any("Tensor" in str(r.type) for r in schema.returns):
            return  # a question that the tracer asked, as for the scale of a quantized tensor
        if target in PASS_THROUGH:
            source = node.args[0]
            self.current[node] = self._read(source)
            # A clone has memory of its own; the others share it.
            if target not in ("aten.clone.default", "aten.lift_fresh_copy.default"):
                self._view(node, source, None, {})
            return
        args = self._arguments(schema, node)
        if any(word in target for word in RANDOM) and "like" not in target.split(".")[1]:
            self.random = True
        if any(word in target for word in ("rand_like", "randn_like", "randint_like")):
            self.random = True
        if target in ("aten.as_strided.default", "aten.as_strided_.default") and self._strided_as_view(node, args):
            return
        written = [i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
        # What a batch norm writes, _moving_statistics() says (some versions' schema does, too); of rrelu it is noise, in training mode only.
        if written and target not in BATCH_NORMS and not (target == "aten.rrelu_with_noise.default" and not args.get("training")):
            return self._in_place(node, target, written, args)
        if target.startswith("pragma_layers."):
            target = "aten.%s.input" % target.split(".")[1]
            args["train"] = bool(args["train"] and args["dropout"])  # training is dropout and nothing else
            self.random = self.random or args["train"]
        self._define(node, node.name, value)
        if target.startswith("aten.quantize_per_"):  # of which a fake tensor has the wrong type
            self.meta[node.name] = (self.meta[node.name][0], args["dtype"])
        self.nodes.append(self._node(node.name, target, args))
        if schema.arguments and schema.arguments[0].alias_info is not None and isinstance(node.args[0], torch.fx.Node):
            self._view(node, node.args[0], target, args)
        if target in BATCH_NORMS and args.get("training") and args.get("running_mean"):
            self._moving_statistics(node, args)

    def _strided_as_view(self, node, args):
        """A call of as_strided that shows all elements of its tensor in their order: a view of another shape (of equal elements, the memory of both has no gaps)."""
        source, expected, size = node.args[0], 1, args["size"]
        for extent, stride in reversed(list(zip(size, args["stride"]))):
            if extent != 1 and stride != expected:
                return False
            expected *= extent
        before = source.meta.get("val")
        if args.get("storage_offset") or not isinstance(before, torch.Tensor) or not before.is_contiguous() or before.storage_offset() or before.numel() != expected:
            return False
        args = {"self": args["self"], "size": size}
        self._emit(node.name, "aten.view.default", args, size, self.meta[self.current[source]][1])
        self.current[node] = node.name
        self._view(node, source, "aten.view.default", args)
        return True

    def _view(self, node, source, op, args):
        self.views[node] = (source, op, args)
        self.seen[node] = self.version.get(self._root(source), 0)

    def _moving_statistics(self, node, args):
        """What a batch norm in training mode writes to its running statistics, which no schema says."""
        x, momentum = args["input"], args["momentum"]
        shape, dtype = self.meta[x["ref"]]
        dims = [d for d in range(len(shape)) if d != 1]
        for position, kind in ((3, "mean"), (4, "var")):
            buffer = node.args[position]
            name, before = "%s_%s" % (node.name, kind), self._read(buffer)
            running = self.meta[before][1]
            if dtype != running:
                x = {"ref": self._emit(name + "_wide", "aten._to_copy.default", {"self": x, "dtype": running}, shape, running)}
                dtype = running
            extra = {"dtype": None} if kind == "mean" else {"correction": 1}
            self._emit(name, "aten.mean.dim" if kind == "mean" else "aten.var.correction", dict({"self": x, "dim": dims, "keepdim": False}, **extra), [shape[1]], running)
            for part, value, factor in (("_old", before, 1 - momentum), ("_new", name, momentum)):
                self._emit(name + part, "aten.mul.Tensor", {"self": {"ref": value}, "other": factor}, [shape[1]], running)
            self._emit(name + "_running", "aten.add.Tensor", {"self": {"ref": name + "_old"}, "other": {"ref": name + "_new"}, "alpha": 1}, [shape[1]], running)
            self._note_write(buffer)
            self._write(buffer, name + "_running")

    def _note_write(self, node):
        root = self._root(node)
        if root.op == "placeholder":
            label = self.places[root]
            self.mutated.add("input " + label if label[0] == "x" else label)

    def _updates(self):
        """What each parameter that forward() writes holds afterwards: [{"param", "ref": a value of the graph} or {"param", "add": an integer}]; None where one of them is neither."""
        found, nodes = [], {node["id"]: node for node in self.nodes}
        for node, place in self.places.items():
            if place not in self.mutated:
                continue
            now = self.current[node]
            made, dtype = nodes.get(now, {}), self.meta[place][1]
            args = made.get("args", {})
            if dtype.startswith("int") and made.get("op") == "aten.add.Tensor" and args["self"] == {"ref": place} and isinstance(args["other"], int) and args.get("alpha", 1) == 1:
                found.append({"param": place, "add": args["other"]})
            elif dtype in ("float32", "float64") and self.meta[now] == self.meta[place]:
                found.append({"param": place, "ref": now})
            else:
                return None
        return found

    def _in_place(self, node, target, written, args):
        if written != [0]:
            raise GraphError("%s writes to several of its arguments" % target)
        destination = node.args[0]
        parts = target.split(".")
        functional_name = parts[1].rstrip("_")
        self._note_write(destination)
        shape_dtype = self.meta[self.current[destination]]
        name = node.name
        filler = args.get("src") if functional_name == "copy" else args.get("value")
        if functional_name in ("copy", "fill") and isinstance(filler, dict):
            if self.meta[filler["ref"]][0] != shape_dtype[0]:
                filler = {"ref": self._emit(name + "_expand", "aten.expand.default",
                                            {"self": filler, "size": shape_dtype[0], "implicit": False},
                                            shape_dtype[0], self.meta[filler["ref"]][1])}
            op, out_args = "aten._to_copy.default", {"self": filler, "dtype": shape_dtype[1]}
        elif functional_name in ("zero", "fill"):
            op = "aten.full.default"
            out_args = {"size": shape_dtype[0], "fill_value": args.get("value", 0), "dtype": shape_dtype[1]}
        else:
            packet = getattr(torch.ops.aten, functional_name, None)
            overload = parts[2]
            if packet is None:
                raise GraphError("%s has no functional form" % target)
            if overload not in packet.overloads():
                overload = "p" if functional_name == "bernoulli" and "p" in packet.overloads() else None
            if overload is None:
                raise GraphError("%s has no functional form" % target)
            op, out_args = "aten.%s.%s" % (functional_name, overload), args
        self._emit(name, op, out_args, *shape_dtype)
        self._write(destination, name)
        self._view(node, destination, None, {})
        self.current[node] = name

    def _node(self, name, op, args):
        entry = {"id": name, "op": op, "args": args}
        if self.line is not None:
            entry["line"] = self.line
        meta = self.meta.get(name)
        if isinstance(meta, list):
            entry["shapes"] = [m[0] if m else None for m in meta]
            entry["dtypes"] = [m[1] if m else None for m in meta]
        elif meta:
            entry["shape"], entry["dtype"] = meta
        else:
            raise GraphError("%s yields something that is not a tensor" % op)
        return entry

    def _finish(self, outputs):
        def refs(value):
            if isinstance(value, dict):
                return [value["ref"]] if "ref" in value else []
            if isinstance(value, list):
                return [r for v in value for r in refs(v)]
            return []

        updates = self._updates()
        needed, kept = set(outputs) | {u["ref"] for u in updates or [] if "ref" in u}, []
        for node in reversed(self.nodes):
            if node["id"] in needed:
                kept.append(node)
                for value in node["args"].values():
                    needed.update(refs(value))
        kept.reverse()
        for entry in self.inputs + self.state:
            shape, dtype = self.meta[entry["id"]]
            entry["shape"], entry["dtype"] = shape, dtype
            entry["used"] = entry["id"] in needed
        return {"version": 1, "inputs": self.inputs, "params": [e for e in self.state if "param" in e],
                "foreign": [e for e in self.state if "foreign" in e and e["used"]],
                "constants": [c for c in self.constants if c["id"] in needed],
                "nodes": kept, "outputs": outputs, "random": self.random,
                "mutated": sorted(self.mutated), "updates": updates}


def convert(graph_module, state):
    return Converter(graph_module, state).run()


def main():
    from describe import describe
    if len(sys.argv) < 2:
        sys.exit("usage: trace.py TASK.py...  (prints each task with its graph as JSON)")
    failed = False
    for path in sys.argv[1:]:
        try:
            print(json.dumps(describe(TaskFile(path))[0], allow_nan=False, indent=1 if len(sys.argv) == 2 else None))
        except TaskError as e:
            failed = True
            print("%s: %s%s" % (e.code, e, "\n  hint: " + e.hint if e.hint else ""), file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
