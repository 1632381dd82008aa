"""Reading a task: a KernelBench-format Python file and its optional sidecar TASK.json.

The file is checked on its syntax tree before anything in it runs, so that a typo or a missing Model is reported with a
line number and costs nothing. Used by reference.py (long-lived) and trace.py (one shot).
"""
import ast
import difflib
import hashlib
import json
import linecache
import os
import random
import sys
import traceback
import types

import torch

MODULE_NAME = "pragma_task"
NEEDED = ("Model", "get_inputs", "get_init_inputs")
TASK_SEED = 42  # KernelBench's: modules are created under it
SIDECAR_KEYS = ("bytes", "category", "constants", "flops", "notes", "tolerance")
DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.float16: "float16", torch.bfloat16: "bfloat16",
          torch.int64: "int64", torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8",
          torch.bool: "bool"}  # that a kernel may be given; any other is foreign: Torch's calls may have it
CATEGORIES = ("activation", "conv", "matmul", "normalization", "others", "pooling/reduction")


class TaskError(Exception):
    """The task cannot be used. `code` is a name of base/error.hpp."""

    def __init__(self, message, hint="", code="task_invalid"):
        super().__init__(message)
        self.hint = hint
        self.code = code


def explain(error, path):
    """One sentence for people: what was raised and on which line of the task file."""
    line = 0
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == path:
            line = frame.lineno
    text = " ".join(str(error).split()) or "no message"
    if len(text) > 400:
        text = text[:400] + "..."
    return "%s%s: %s" % ("line %d: " % line if line else "", type(error).__name__, text)


def nearest(word, names):
    near = difflib.get_close_matches(word, names, 1, 0.4)
    return "did you mean '%s'?" % near[0] if near else "known: " + ", ".join(sorted(names))


def _evaluate(expression, names, what):
    """A number from a formula over module-level integer constants: + - * / // ** and parentheses only."""
    operators = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
                 ast.Div: lambda a, b: a / b, ast.FloorDiv: lambda a, b: a // b, ast.Pow: lambda a, b: a ** b}

    def value(node):
        if isinstance(node, ast.Expression):
            return value(node.body)
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            return node.value
        if isinstance(node, ast.Name):
            if node.id not in names:
                raise TaskError("%s: unknown name '%s' in the formula" % (what, node.id), nearest(node.id, names))
            return names[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in operators:
            left, right = value(node.left), value(node.right)
            if isinstance(node.op, ast.Pow) and abs(right) > 64:
                raise TaskError("%s: exponent %s is too large" % (what, right))
            return operators[type(node.op)](left, right)
        raise TaskError("%s: only numbers, module-level constants and + - * / // ** are allowed in a formula" % what)

    try:
        return float(value(ast.parse(expression, mode="eval")))
    except (SyntaxError, ZeroDivisionError, OverflowError) as e:
        raise TaskError("%s: cannot evaluate '%s': %s" % (what, expression, e))


class TaskFile:
    """source: the effective text (the sidecar's constants applied, line numbers kept); sidecar: a dict, may be empty."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.returned = "tensor"  # what forward() returns its tensors in, once it was traced
        self.name = os.path.splitext(os.path.basename(path))[0]
        try:
            with open(self.path, "rb") as f:
                raw = f.read()
        except OSError as e:
            raise TaskError("cannot read %s: %s" % (path, e.strerror), code="not_found")
        try:
            self.source = raw.decode("utf-8")
        except UnicodeDecodeError as e:
            raise TaskError("%s is not UTF-8 text (byte %d)" % (path, e.start))
        tree = self._parse()
        self._check(tree)
        self.sidecar = {}
        beside = os.path.splitext(self.path)[0] + ".json"
        sidecar_bytes = b""
        if os.path.exists(beside):
            with open(beside, "rb") as f:
                sidecar_bytes = f.read()
            self._read_sidecar(beside, sidecar_bytes, tree)
        self.id = hashlib.sha256(raw + (b"\0" + sidecar_bytes if sidecar_bytes else b"")).hexdigest()

    def _parse(self):
        try:
            return ast.parse(self.source, self.path)
        except SyntaxError as e:
            shown = (e.text or "").strip()
            raise TaskError("%s:%s: syntax error: %s%s" % (self.path, e.lineno, e.msg, " in `%s`" % shown if shown else ""),
                            "correct the task file")
        except (ValueError, RecursionError, MemoryError) as e:
            raise TaskError("%s: cannot be parsed: %s" % (self.path, e))

    def _check(self, tree):
        defined = set()
        for node in ast.walk(tree):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                defined.add(node.name)
            elif isinstance(node, ast.alias):
                defined.add((node.asname or node.name).split(".")[0])
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                defined.add(node.id)
        for name in NEEDED:
            if name not in defined and "*" not in defined:
                near = difflib.get_close_matches(name, defined, 1, 0.6)
                raise TaskError("%s: no %s is defined" % (self.path, name),
                                ("there is a '%s'; " % near[0] if near else "") +
                                "a task needs class Model(nn.Module), get_inputs() and get_init_inputs()")

    def _read_sidecar(self, beside, content, tree):
        try:
            self.sidecar = json.loads(content)
        except ValueError as e:
            raise TaskError("%s: not JSON: %s" % (beside, e))
        if not isinstance(self.sidecar, dict):
            raise TaskError("%s: an object was expected" % beside)
        for key in self.sidecar:
            if key not in SIDECAR_KEYS:
                raise TaskError("%s: unknown key '%s'" % (beside, key), nearest(key, SIDECAR_KEYS))
        category = self.sidecar.get("category")
        if category is not None and category not in CATEGORIES:
            raise TaskError("%s: unknown category '%s'" % (beside, category), nearest(str(category), CATEGORIES))
        tolerance = self.sidecar.get("tolerance", 1e-4)
        if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0 < tolerance < 1:
            raise TaskError("%s: tolerance must be a number between 0 and 1" % beside)
        notes = self.sidecar.get("notes", [])
        if not isinstance(notes, list) or not all(isinstance(n, str) for n in notes):
            raise TaskError("%s: notes must be a list of strings" % beside)
        for key in ("flops", "bytes"):
            if not isinstance(self.sidecar.get(key, 0), (int, float, str)):
                raise TaskError("%s: %s must be a number or a formula" % (beside, key))
        constants = self.sidecar.get("constants", {})
        if not isinstance(constants, dict):
            raise TaskError("%s: constants must be an object of module-level names and values" % beside)
        lines = self.source.splitlines()
        assigned = {n.targets[0].id: n for n in tree.body
                    if isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name)}
        for name, value in constants.items():
            if name not in assigned:
                raise TaskError("%s: constants: %s has no module-level assignment to '%s'" % (beside, self.path, name),
                                nearest(name, list(assigned)))
            if isinstance(value, dict) or value is None:
                raise TaskError("%s: constants: '%s' must be a number, a text or a list" % (beside, name))
            if isinstance(value, list):
                value = tuple(value)
            node = assigned[name]
            lines[node.lineno - 1] = "%s = %r  # set by %s" % (name, value, os.path.basename(beside))
            for i in range(node.lineno, node.end_lineno):
                lines[i] = ""
        if constants:
            self.source = "\n".join(lines) + "\n"

    def sidecar_number(self, key, module):
        """flops or bytes as the sidecar says, or None."""
        value = self.sidecar.get(key)
        if isinstance(value, str):
            names = {k: v for k, v in vars(module).items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
            return _evaluate(value, names, "%s in the sidecar of %s" % (key, self.name))
        return None if value is None else float(value)

    def execute(self):
        """Runs the file as a module and returns it; a TaskError names the line."""
        module = types.ModuleType(MODULE_NAME)
        module.__file__ = self.path
        sys.modules[MODULE_NAME] = module
        linecache.cache[self.path] = len(self.source), None, self.source.splitlines(True), self.path  # constants.py reads the functions' text, also where a sidecar changed it
        folder = os.path.dirname(self.path)
        if folder not in sys.path:
            sys.path.append(folder)
        try:
            exec(compile(self.source, self.path, "exec"), module.__dict__)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as e:
            raise TaskError("%s: %s" % (self.path, explain(e, self.path)),
                            "install the module for %s, or correct the import" % sys.executable
                            if isinstance(e, ImportError) else "")
        if not isinstance(getattr(module, "Model", None), type):
            raise TaskError("%s: Model is not a class" % self.path)
        return module

    def call(self, what, function, *args):
        """function(*args), with what it raises turned into a TaskError that names `what` and the line."""
        try:
            return function(*args)
        except (KeyboardInterrupt, GeneratorExit, TaskError):
            raise
        except BaseException as e:
            raise TaskError("%s: %s failed: %s" % (self.path, what, explain(e, self.path)))

    def make_model(self, module):
        """Model(*get_init_inputs()) under the task's seed."""
        seed_everything(TASK_SEED)
        arguments = self.call("get_init_inputs()", module.get_init_inputs)
        if isinstance(arguments, dict):
            model = self.call("Model(...)", lambda: module.Model(**arguments))
        else:
            if not isinstance(arguments, (list, tuple)):
                raise TaskError("%s: get_init_inputs() must return a list, not %s" % (self.path, type(arguments).__name__))
            model = self.call("Model(...)", lambda: module.Model(*arguments))
        if not isinstance(model, torch.nn.Module):
            raise TaskError("%s: Model must be a torch.nn.Module" % self.path)
        return model

    def make_inputs(self, module, seed):
        """get_inputs() under `seed`, as a list."""
        seed_everything(seed)
        inputs = self.call("get_inputs()", module.get_inputs)
        if not isinstance(inputs, (list, tuple)):
            raise TaskError("%s: get_inputs() must return a list, not %s" % (self.path, type(inputs).__name__))
        for i, value in enumerate(inputs):
            if isinstance(value, (list, tuple, dict, set)) and any(isinstance(v, torch.Tensor) for v in value):
                raise TaskError("%s: get_inputs() returns a %s of tensors at position %d" %
                                (self.path, type(value).__name__, i), "only tensors and constants are supported", "torch_only")
        return list(inputs)


def holds_tensors(value):
    """Is a tensor somewhere in what forward() returned?"""
    if isinstance(value, dict) or hasattr(value, "__dataclass_fields__"):
        value = list((value if isinstance(value, dict) else vars(value)).values())
    return isinstance(value, torch.Tensor) or isinstance(value, (list, tuple)) and any(holds_tensors(v) for v in value)


def container_of(result):
    """What forward() returns its tensors in: "tensor" (one, bare), "tuple", "list", or one of torch.return_types by its name."""
    return type(result).__name__ if isinstance(result, (list, tuple)) else "tensor"


def flatten_outputs(outputs, path=""):
    """The tensors that forward() returned; TaskError when it is not one tensor or a flat tuple of them."""
    values = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    if isinstance(outputs, (list, tuple)) and type(outputs) not in (list, tuple) and not type(outputs).__module__.startswith("torch."):
        raise TaskError("%s: forward() returns a %s, whose names a kernel's results would not have" % (path, type(outputs).__name__), "return a tuple of tensors", "torch_only")
    if not values:
        raise TaskError("%s: forward() returns nothing" % path)
    for value in values:
        if not isinstance(value, torch.Tensor):
            raise TaskError("%s: forward() returns %s, not a tensor" %
                            (path, "a " + type(value).__name__ if value is not None else "None"),
                            "a task must return one tensor or a tuple of tensors", "torch_only" if holds_tensors(outputs) else "task_invalid")
        if value.layout != torch.strided:
            raise TaskError("%s: forward() returns a sparse tensor (%s): what is compared are dense ones" % (path, value.layout),
                            "return its .to_dense()", "torch_only")
        if value.numel() == 0:
            raise TaskError("%s: forward() returns a tensor of shape %s, which has no elements: there is nothing to compute, or to check" %
                            (path, tuple(value.shape)), "give the inputs sizes above 0")
    return values


def seed_everything(seed):
    torch.manual_seed(seed % (1 << 63))
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % (1 << 32))


def state_tensors(model):
    """(name, tensor) of everything that the model holds: parameters, then buffers, both in state_dict order, then tensors
    that are plain attributes of a module. Shared ones appear once."""
    found, seen = [], set()

    def add(pairs):
        for name, tensor in pairs:
            if isinstance(tensor, torch.Tensor) and id(tensor) not in seen:
                seen.add(id(tensor))
                found.append((name, tensor))

    add(model.named_parameters())
    add(model.named_buffers())
    for prefix, module in model.named_modules():
        add(((prefix + "." if prefix else "") + k, v) for k, v in vars(module).items())
    return found


def twin(task, module, model):
    """A second model with tensors of its own of the same values. Made anew, since a copy's functions (`self.act = lambda x: self.layer(x)`) would still call the first one's layers;
    and with other tensors, since a task may give all its models the same ones."""
    made = task.make_model(module)
    with torch.no_grad():
        for old, new in zip(model.modules(), made.modules()):
            for key, value in old._parameters.items():
                if value is not None:
                    new._parameters[key] = torch.nn.Parameter(value.detach().clone(), requires_grad=value.requires_grad)
            for key, value in old._buffers.items():
                if value is not None:
                    new._buffers[key] = value.clone()
            for key, value in list(vars(old).items()):
                if isinstance(value, torch.Tensor):
                    setattr(new, key, value.clone())
    return made


def kernel_state(model):
    """Those of state_tensors() that a kernel can be given. The others are of a foreign type (complex numbers, float8, quantized): only Torch's calls read them."""
    return [(name, tensor) for name, tensor in state_tensors(model) if not is_foreign(tensor)]


def copy_state(model, views, path):
    """What a kernel is given of the model's state, into `views`, which were made for what the trace saw. TaskError: it is of other shapes or types (fake tensors are not quantized)."""
    state = kernel_state(model)
    if [(value.shape, value.dtype) for _, value in state] != [(view.shape, view.dtype) for view in views]:
        raise TaskError("%s: the model's tensors are of other shapes or types than was traced" % path, "", "torch_only")
    with torch.no_grad():
        for (_, value), view in zip(state, views):
            view.copy_(value)


def is_foreign(tensor):
    return tensor.dtype not in DTYPES


def equal(a, b):
    """torch.equal() for types that it does not know as well: by their bytes."""
    try:
        return torch.equal(a, b)
    except RuntimeError:
        return a.shape == b.shape and torch.equal(*(t.contiguous().reshape(-1).view(torch.uint8) for t in (a, b)))


class swapped_state:
    """Within it, each tensor of `originals` in the model is the one at the same position of `replacements`."""

    def __init__(self, model, originals, replacements):
        self.model = model
        self.map = {id(a): b for a, b in zip(originals, replacements)}
        self.undo = []

    def __enter__(self):
        for module in self.model.modules():
            for table in (module._parameters, module._buffers, vars(module)):
                for key, value in list(table.items()):
                    if isinstance(value, torch.Tensor) and id(value) in self.map:
                        self.undo.append((table, key, value))
                        table[key] = self.map[id(value)]
                    elif isinstance(value, list) and any(id(v) in self.map for v in value):  # a recurrent layer's flat weights
                        self.undo.append((table, key, value))
                        table[key] = [self.map.get(id(v), v) for v in value]
        return self

    def __exit__(self, *_):
        for table, key, value in self.undo:
            table[key] = value
        return False


def drawing_modules(model):
    """Modules that draw random numbers as they are now: "nn.Dropout 'drop' is in training mode; call self.eval()"."""
    found = []
    for name, module in model.named_modules():
        kind = type(module).__name__
        draws = "Dropout" in kind and getattr(module, "p", 0) > 0 or kind == "RReLU" or \
            isinstance(getattr(module, "dropout", 0), float) and module.dropout > 0 and getattr(module, "num_layers", 2) > 1  # between recurrent layers
        if module.training and draws:
            found.append("nn.%s '%s' is in training mode; call self.eval()" % (kind, name))
    return found
