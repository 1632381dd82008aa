"""Traces a task's reference to a graph of aten operators: the IR of the built-in coder (docs/graph.md is its schema).

Shapes come from fake tensors, so that nothing is allocated. `python3 trace.py TASK.py` prints the task as JSON.
"""
import json
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from taskfile import TaskError, TaskFile, state_tensors, swapped_state

MAX_CONSTANT_ELEMENTS = 1 << 16

DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.float16: "float16", torch.bfloat16: "bfloat16",
          torch.int64: "int64", torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8",
          torch.bool: "bool"}
# One value passes through unchanged: readers use the argument instead.
PASS_THROUGH = {"aten.detach.default", "aten.lift_fresh_copy.default", "aten.lift_fresh.default", "aten.alias.default",
                "aten.clone.default", "aten.detach_.default", "aten.contiguous.default"}
RANDOM = ("bernoulli", "rand", "normal", "dropout", "uniform", "multinomial", "exponential", "poisson")


class GraphError(Exception):
    pass


def fake_mode():
    return FakeTensorMode()


def dtype_name(dtype, what):
    if dtype not in DTYPES:
        raise TaskError("%s has dtype %s, which is not supported" % (what, dtype), code="unsupported")
    return DTYPES[dtype]


def spec(name, tensor):
    return {"name": name, "dtype": dtype_name(tensor.dtype, name), "shape": list(tensor.shape)}


def flatten_outputs(outputs, path=""):
    """The tensors that forward() returned; TaskError when it is not one tensor or a flat tuple of them."""
    values = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    if not values:
        raise TaskError("%s: forward() returns nothing" % path)
    for value in values:
        if not isinstance(value, torch.Tensor):
            raise TaskError("%s: forward() returns %s, not a tensor" %
                            (path, "a " + type(value).__name__ if value is not None else "None"),
                            "a task must return one tensor or a tuple of tensors")
    return values


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
            result = model(*full)
        outputs[:] = flatten_outputs(result, task.path)
        return tuple(outputs)

    with torch.no_grad():
        graph_module = task.call("forward()", lambda: make_fx(function)([t.detach() for t in state],
                                                                        [inputs[i] for i in positions]))
    return graph_module, outputs


# -- conversion --------------------------------------------------------------------------------------------------------


def _number(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def _shape_of(value):
    if isinstance(value, torch.Tensor):
        return list(value.shape), dtype_name(value.dtype, "an intermediate tensor")
    return None


class Converter:
    """Turns one fx graph into the JSON graph: defaults filled in, in-place operators made functional, dead code dropped."""

    def __init__(self, graph_module, n_params, n_inputs):
        self.gm = graph_module
        self.n_params = n_params
        self.n_inputs = n_inputs
        self.current = {}     # fx node -> id of the value that it holds now
        self.storage = {}     # fx node -> root fx node of its memory
        self.nodes, self.constants = [], []
        self.meta = {}        # id -> (shape, dtype) or list of them
        self.mutated = set()  # placeholder positions
        self.random = False
        self.taken = {}       # root -> number of views of it

    def run(self):
        placeholders = 0
        outputs = []
        self.inputs, self.params = [], []
        for node in self.gm.graph.nodes:
            self.storage[node] = node
            if node.op == "placeholder":
                index = placeholders
                placeholders += 1
                param = index < self.n_params
                name = "p%d" % index if param else "x%d" % (index - self.n_params)
                (self.params if param else self.inputs).append(
                    {"id": name, "param" if param else "input": index if param else index - self.n_params})
                self._define(node, name, node.meta.get("val"))
            elif node.op == "get_attr":
                self._constant(node)
            elif node.op == "output":
                outputs = [self._read(n) for n in self._flat(node.args[0])]
            elif node.op == "call_function":
                self._call(node)
            else:
                raise GraphError("unexpected node %s %s" % (node.op, node.target))
        return self._finish(outputs)

    def _flat(self, value):
        if isinstance(value, (list, tuple)):
            return [x for v in value for x in self._flat(v)]
        return [value]

    def _define(self, node, name, value):
        self.current[node] = name
        if isinstance(value, torch.Tensor):
            self.meta[name] = _shape_of(value)
        elif isinstance(value, (list, tuple)):
            self.meta[name] = [_shape_of(v) for v in value]
        else:
            # Several results: Torch 1.13 notes their shapes only where they are taken apart.
            parts = {user.args[1]: user.meta.get("val") for user in node.users if "getitem" in str(user.target)}
            if parts:
                self.meta[name] = [_shape_of(parts.get(i)) for i in range(max(parts) + 1)]

    def _read(self, node):
        if not isinstance(node, torch.fx.Node):
            raise GraphError("forward() returns a constant")
        return self.current[node]

    def _constant(self, node):
        value = self.gm
        for part in str(node.target).split("."):
            value = getattr(value, part)
        fake = type(value).__name__ == "FakeTensor"
        if fake and getattr(value, "constant", None) is not None:
            value, fake = value.constant, False
        if fake:
            raise GraphError("a tensor of shape %s is made from values that shapes alone do not tell" % list(value.shape))
        if value.numel() > MAX_CONSTANT_ELEMENTS:
            raise GraphError("a constant of %d elements is made in forward()" % value.numel())
        flat = [_number(v) for v in value.detach().reshape(-1).tolist()]
        self._define(node, str(node.name), value)
        shape, dtype = self.meta[node.name]
        self.constants.append({"id": node.name, "shape": shape, "dtype": dtype, "values": flat})

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
            return dtype_name(value, "an argument")
        if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
            return str(value)
        if isinstance(value, complex):
            raise GraphError("complex numbers are not supported")
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
        value = node.meta.get("val")
        if "getitem" in target:
            base, index = node.args
            if node in self.current:
                return
            self.storage[node] = self.storage.get(base, base) if base.op == "placeholder" else node
            name = node.name
            self._define(node, name, value)
            if value is None and isinstance(self.meta.get(self.current[base]), list):
                self.meta[name] = self.meta[self.current[base]][index]
            self.nodes.append(self._node(name, "getitem", {"self": {"ref": self.current[base]}, "index": index}))
            return
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            raise GraphError("a call of %s" % target)
        if target in PASS_THROUGH:
            source = node.args[0]
            self.current[node] = self._read(source)
            # A clone has memory of its own; the others share it.
            if target != "aten.clone.default" and target != "aten.lift_fresh_copy.default":
                self._share(node, source)
            return
        args = self._arguments(schema, node)
        if any(word in target for word in RANDOM) and "like" not in target.split(".")[1]:
            self.random = True
        if any(word in target for word in ("rand_like", "randn_like", "randint_like")):
            self.random = True
        written = [i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
        if written:
            return self._in_place(node, target, schema, written, args)
        for i, a in enumerate(schema.arguments):
            if a.alias_info is not None and i < len(node.args) and isinstance(node.args[i], torch.fx.Node):
                self._share(node, node.args[i])
        self._define(node, node.name, value)
        self.nodes.append(self._node(node.name, target, args))
        if target == "aten.native_batch_norm.default" and args.get("training"):
            for key in ("running_mean", "running_var"):
                if args.get(key):
                    self._mutate_placeholder(args[key]["ref"])

    def _share(self, node, source):
        root = self.storage.get(source, source)
        self.storage[node] = root
        self.taken[root] = self.taken.get(root, 0) + 1

    def _mutate_placeholder(self, name):
        if name[0] == "p" and name[1:].isdigit():
            self.mutated.add(name)

    def _in_place(self, node, target, schema, written, args):
        if len(written) != 1 or written[0] != 0:
            raise GraphError("%s writes to its arguments" % target)
        destination = node.args[0]
        root = self.storage[destination]
        parts = target.split(".")
        functional_name = parts[1].rstrip("_")
        if root.op == "placeholder":
            index = list(self.gm.graph.nodes).index(root)
            label = self.current[root]
            self.mutated.add(label if index < self.n_params else "input " + label)
            if root is destination and index < self.n_params and len(node.users) == 0 and not self._read_later(root, node):
                self.current[node] = label
                return
        if destination is not root or self.taken.get(root, 0) > 0:
            aliases = [n for n, r in self.storage.items() if r is root and n is not destination]
            if any(self._read_later(n, node) for n in aliases):
                raise GraphError("%s writes through a view of a tensor that is used later" % target)
        shape_dtype = self.meta[self.current[destination]]
        name = node.name
        if functional_name == "copy":
            source = args["src"]
            op, out_args = "aten._to_copy.default", {"self": source, "dtype": shape_dtype[1]}
            if self.meta[source["ref"]][0] != shape_dtype[0]:
                expanded = name + "_expand"
                self.meta[expanded] = (shape_dtype[0], self.meta[source["ref"]][1])
                self.nodes.append(self._node(expanded, "aten.expand.default",
                                             {"self": source, "size": shape_dtype[0], "implicit": False}))
                out_args["self"] = {"ref": expanded}
        elif functional_name in ("zero", "fill"):
            op = "aten.full.default"
            out_args = {"size": shape_dtype[0], "fill_value": args.get("value", 0), "dtype": shape_dtype[1]}
            if isinstance(out_args["fill_value"], dict):
                raise GraphError("%s with a tensor value" % target)
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
        self.meta[name] = shape_dtype
        self.nodes.append(self._node(name, op, out_args))
        for alias, r in list(self.storage.items()):
            if alias is destination or (r is root and self.current.get(alias) == self.current.get(destination)):
                self.current[alias] = name
        self.current[destination] = name
        self.current[node] = name
        self.storage[node] = root

    def _read_later(self, node, after):
        seen = False
        for other in self.gm.graph.nodes:
            if other is after:
                seen = True
            elif seen and node in other.all_input_nodes:
                return True
        return False

    def _node(self, name, op, args):
        entry = {"id": name, "op": op, "args": args}
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
                return [value["ref"]]
            if isinstance(value, list):
                return [r for v in value for r in refs(v)]
            return []

        needed, kept = set(outputs), []
        for node in reversed(self.nodes):
            if node["id"] in needed:
                kept.append(node)
                for value in node["args"].values():
                    needed.update(refs(value))
        kept.reverse()
        for entry in self.inputs + self.params:
            shape, dtype = self.meta[entry["id"]]
            entry["shape"], entry["dtype"] = shape, dtype
            entry["used"] = entry["id"] in needed
        return {"version": 1, "inputs": self.inputs, "params": self.params,
                "constants": [c for c in self.constants if c["id"] in needed],
                "nodes": kept, "outputs": outputs, "random": self.random,
                "mutated": sorted(self.mutated)}


def convert(graph_module, n_params, n_inputs):
    return Converter(graph_module, n_params, n_inputs).run()


def main():
    from describe import describe
    if len(sys.argv) < 2:
        sys.exit("usage: trace.py TASK.py...  (prints each task with its graph as JSON)")
    failed = False
    for path in sys.argv[1:]:
        try:
            print(json.dumps(describe(TaskFile(path)), allow_nan=False, indent=1 if len(sys.argv) == 2 else None))
        except TaskError as e:
            failed = True
            print("%s: %s%s" % (e.code, e, "\n  hint: " + e.hint if e.hint else ""), file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
