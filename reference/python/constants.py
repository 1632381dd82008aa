"""What a kernel took for granted when its task was traced, as text: the values that a model's modules keep (eps, training, a size), their
classes, and the arguments of the constructor. reference.py notes them with the task; a drop-in compares its model with them (a copy of this
file lies beside it)."""
import ast
import collections
import copy
import enum
import functools
import gc
import hashlib
import inspect
import logging
import numbers
import operator
import types

import torch

INTERNAL = set(vars(torch.nn.Module())) - {"training"} | {"_is_replica", "_former_parameters", "_compiled_call_impl", "_is_torch_compile"}  # the last two: torch.compile(model) was called
SIMPLE = (bool, int, float, str, type(None))
MOST_HASHED = 1 << 20  # elements of a tensor in a list
PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format, slice)


def text_of(value, held={}, above=()):
    """None: it is looked at elsewhere (a tensor, a module). `held`: {id: path} of the tensors and layers that are the model's own, whose values nobody takes for granted;
    `above`: of what this is inside of."""
    if isinstance(value, enum.Enum):
        return "%s.%s" % (class_name(type(value)), value.name)
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, (torch.Tensor, torch.nn.Module)):
        return content_of(value, held, above) if above else None
    if id(value) in above:
        return "itself"
    texts = lambda values: [text_of(v, held, above + (id(value),)) for v in values]
    if isinstance(value, (list, tuple, collections.deque)):
        return ("(%s)" if isinstance(value, tuple) else "[%s]") % ", ".join(texts(value))
    if isinstance(value, (set, frozenset)):
        return "{%s}" % ", ".join(sorted(texts(value)))
    if isinstance(value, (dict, types.MappingProxyType)):
        return "{%s}" % ", ".join("%s: %s" % pair for pair in zip(texts(value), texts(value.values())))
    if isinstance(value, functools.partial):
        return "partial(%s)" % ", ".join(texts((value.func, value.args, value.keywords)))
    if isinstance(value, types.MethodType):
        return "method %s of %s" % tuple(texts((value.__func__, value.__self__)))
    if isinstance(value, types.FunctionType):
        cells = texts([c.cell_contents for c in value.__closure__ or () if c != types.CellType()])
        return "function %s%s [%s] %s%s" % (value.__qualname__, code_of([value]), ", ".join(cells), *texts((value.__defaults__,)), "".join(texts([value.__kwdefaults__] if value.__kwdefaults__ else [])))
    if isinstance(value, type):
        return "%s %s" % (class_name(type(value)), kind_of(value))
    fields = dict(fields_of(value) or {}, **slots_of(value))
    if fields or fields_of(value) is not None:
        return "%s {%s}" % (kind_of(type(value)), ", ".join("%s: %s" % pair for pair in zip(fields, texts(fields.values()))))
    if callable(value):
        return "%s %s" % (kind_of(type(value)), getattr(value, "__qualname__", ""))
    if isinstance(value, (numbers.Number, range)):  # NumPy's numbers among them
        return "%s %r" % (class_name(type(value)), value)
    if hasattr(value, "tobytes"):  # an array of NumPy's
        return "%s %s %s" % (class_name(type(value)), getattr(value, "shape", ""), hashlib.sha256(value.tobytes()).hexdigest()[:16])
    return class_name(type(value))


def of_torch(kind):
    return (kind.__module__ or "").split(".")[0] == "torch"


def has_fields(value):
    """May it be an object that keeps something of a program's: no module, tensor, function or class, and nothing of a library that is its own affair?"""
    return not isinstance(value, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial, logging.Logger, torch.Tensor, torch.nn.Module, enum.Enum)
                          + PLAIN) and not (callable(value) and type(value).__module__.split(".")[0] in ("torch", "functools", "builtins"))


def fields_of(value):
    """What an object keeps, where it is a dictionary."""
    kept = getattr(value, "__dict__", None)
    return kept if isinstance(kept, dict) and has_fields(value) else None


def slots_of(value):
    """{name: value} of what an object of a class with __slots__ keeps."""
    names = [name for kind in type(value).__mro__ for name in (lambda s: (s,) if isinstance(s, str) else tuple(s))(vars(kind).get("__slots__", ()))] if has_fields(value) else []
    return {name: getattr(value, name) for name in names if name not in ("__dict__", "__weakref__") and hasattr(value, name)}


UNSEEN = "a tensor of unknown values"  # while a task is traced with tensors that have none


def content_of(value, held, above=()):
    """A tensor or a layer in a container, which no state_dict has: what it holds was taken for granted. One of the model's own: which one."""
    if id(value) in held:
        return "the model's own %s" % held[id(value)]
    if isinstance(value, torch.nn.Module):
        if id(value) in above:
            return "itself"
        above += (id(value),)
        tensors = [(name, t) for module in value.modules() for table in (module._parameters, module._buffers, vars(module)) for name, t in table.items() if isinstance(t, torch.Tensor)]
        return "%s {%s; %s}" % (kind_of(type(value)), ", ".join("%s: %s" % (name, content_of(t, held)) for name, t in tensors),
                                ", ".join("%s %s %s" % (path, kind_of(type(m)), sorted(values_of(m, held, above).items())) for path, m in value.named_modules()))
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.is_meta:
        return UNSEEN
    if value.numel() > MOST_HASHED or value.requires_grad:  # whose gradient nobody else computes
        return UNSEEN + " at %d" % id(value)  # as no other one
    values = value.detach().cpu().contiguous().reshape(-1)
    return "%s %s %s" % (value.dtype, list(value.shape), hashlib.sha256(bytes(values.view(torch.uint8).tolist())).hexdigest()[:16])


def class_name(kind):
    """A task's own classes are in a module of another name each time."""
    return (kind.__module__ + "." if of_torch(kind) else "") + kind.__qualname__


def kind_of(kind):
    """A class by name, and one that is not Torch's by the text of its methods: another one may have its name, and its methods may be replaced."""
    if of_torch(kind):
        forward = getattr(kind, "forward", None)
        return class_name(kind) + (" with another forward()" if isinstance(forward, types.FunctionType) and not of_torch(forward) else "")
    return class_name(kind) + code_of([f for one in own_classes(kind) for f in functions_of(one).values()])


@functools.lru_cache(256)
def own_classes(kind):
    """Those that a class is derived from and that are neither Torch's nor Python's; of a drop-in Model's."""
    behind = [i for i, one in enumerate(kind.__mro__) if one.__name__ == "DropIn" and one.__module__.endswith("pragma_drop_in")]
    return [one for one in kind.__mro__[behind[0] + 1 if behind else 0:] if one.__module__.split(".")[0] not in ("torch", "builtins", "enum", "typing", "abc", "collections", "types")]


def functions_of(kind):
    """{name: function} of a class, those of its properties and static methods among them; behind a decorator (torch.no_grad()) the program's own."""
    plain = {name: getattr(value, "__func__", getattr(value, "fget", value)) for name, value in vars(kind).items()}
    return {name: inspect.unwrap(value) for name, value in plain.items() if isinstance(value, types.FunctionType) and isinstance(inspect.unwrap(value), types.FunctionType)}


@functools.lru_cache(None)
def source_of(code):
    """The text of a function, the same in every Python; where nobody has it (what dataclasses make) nothing."""
    try:
        text = inspect.getsource(code)
    except (OSError, TypeError, IndexError, SyntaxError):
        return ""
    return text + ("%s %s" % (code.co_names, [c for c in code.co_consts if isinstance(c, PLAIN)]) if code.co_name == "<lambda>" else "")  # several may stand in one line


def code_of(functions):
    text = "\n".join(source_of(f.__code__) for f in functions if not of_torch(f) and f.__module__ != "dataclasses")
    return " (%s)" % hashlib.sha256(text.encode()).hexdigest()[:8] if text else ""


def values_of(module, held={}, above=()):
    """What a library's module keeps under a leading underscore follows from the rest."""
    library = of_torch(type(module))
    found = {}
    for name, value in vars(module).items():
        if name in INTERNAL or name.startswith("_pragma") or (library and name.startswith("_")):
            continue
        text = text_of(value, held, above) if not above or not isinstance(value, (torch.Tensor, torch.nn.Module)) else None
        if text is not None:
            found[name] = text
    found.update(("global " * (around is not None) + name, text_of(value, held, (0,))) for around, name, value in read_by_methods(module))
    return found


def codes_in(code):
    """With the functions, lambdas and comprehensions in it."""
    return [code] + [inner for one in code.co_consts if isinstance(one, types.CodeType) for inner in codes_in(one)]


def read_by_methods(module):
    """[(the globals or None, name, value)] of what lies outside of the module and the methods of a task's own class name, and the functions of the same file that they call: globals of
    its file, attributes of its class. Objects are looked at where their class is of that file."""
    found, known = {}, set()
    kind = type(module)
    if not own_classes(kind) and not any(isinstance(f, types.FunctionType) for f in vars(module).values()):
        return []
    waiting = [f for one in own_classes(kind) for name, f in functions_of(one).items() if name != "__init__"] + [f for f in vars(module).values() if isinstance(f, types.FunctionType)]
    while waiting:
        function = waiting.pop()
        if id(function.__code__) in known or of_torch(function):
            continue
        known.add(id(function.__code__))
        around = function.__globals__
        for name in sorted({name for code in codes_in(function.__code__) for name in code.co_names}):
            value = around.get(name, found)
            if value is not found and not name.startswith("__"):
                if isinstance(value, types.FunctionType) and value.__globals__ is around:
                    waiting.append(value)
                if isinstance(value, PLAIN + (list, tuple, dict, set, frozenset, torch.Tensor, enum.Enum, types.SimpleNamespace, types.FunctionType)) or type(value).__module__ == around.get("__name__"):
                    found[id(around), name] = around, name, value
            elif name not in vars(module) and isinstance(getattr(kind, name, found), PLAIN) and name not in INTERNAL and not name.startswith("_"):
                found[0, name] = None, name, getattr(kind, name)
    return list(found.values())


def none_of(module):
    """Parameters, buffers and layers that there may be and are not: Linear(bias=False), register_buffer("mask", None)."""
    return sorted(name for table in (module._parameters, module._buffers, module._modules) for name, value in table.items() if value is None)


def tensors_of(module):
    """The names of the tensors that a module of a program's own class keeps: forward() may ask whether there is one."""
    return [] if of_torch(type(module)) else sorted(name for table in (module._parameters, module._buffers, vars(module)) for name, value in table.items() if isinstance(value, torch.Tensor))


def held_by(model):
    """{id: path} of a model's layers and tensors."""
    found = {}
    for path, module in model.named_modules():
        found[id(module)] = path or "whole"
        for table in (module._parameters, module._buffers, vars(module)):
            for name, value in table.items():
                if isinstance(value, torch.Tensor):
                    found.setdefault(id(value), (path + "." if path else "") + name)
    return found


def constants_of(model):
    """[{"path": ..., "class": ..., "values": {name: text}, "none": [name], "tensors": [name]}] of a model and all modules in it, in their order. The model's own class has another
    name: its methods are said."""
    held = held_by(model)
    return [{"path": path, "class": kind_of(type(module)) if path else code_of([f for one in own_classes(type(module)) for f in functions_of(one).values()]).strip(), "values": values_of(module, held),
             "none": none_of(module), "tensors": tensors_of(module)} for path, module in model.named_modules()]


def literal(text):
    """The value that has this repr()."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return float(text)  # inf, nan


def literals_of(values):
    """[(name, value)] of the constants of a module that are plain values: those that Dynamo can compare and watch."""
    found = []
    for name, text in values.items():
        try:
            found.append((name, float(text) if text in ("inf", "-inf") else ast.literal_eval(text)))
        except (ValueError, SyntaxError):
            pass
    return found


def keeps_nothing(function, held):
    """May a compiled program know a function by its identity alone? What it keeps is plain, or a layer of the model's."""
    if isinstance(function, types.MethodType):
        return id(function.__self__) in held
    if isinstance(function, types.FunctionType):
        inside = [c.cell_contents for c in function.__closure__ or () if c != types.CellType()] + list(function.__defaults__ or ()) + list((function.__kwdefaults__ or {}).values())
        return all(isinstance(v, SIMPLE) or id(v) in held and isinstance(v, torch.nn.Module) for v in inside)
    return callable(function) and not isinstance(function, functools.partial) and not fields_of(function) and not slots_of(function)


def objects_of(model):
    """Of what the modules keep that no literal says, in words that a compiled program can watch; None where there is something that none of them says.
    "same": (path of a module, name, object, ((plain field, value), ...)); "partials": (path, name, function, the partial's arguments); "ranges": (path, name, range);
    "mixed": (path, name, length, ((key or index, plain value), ...), ((key or index, tensor, its place in the model), ...)) of a container; "kinds": (path, class);
    "methods": (path, name, function) of a class of the program's own; "absent": (path, name that forward() may ask for); "globals": (name, object) of the task's file."""
    found = {"same": [], "partials": [], "ranges": [], "mixed": [], "kinds": [], "methods": [], "absent": [], "globals": []}
    held = held_by(model)
    for path, module in model.named_modules():
        library, path = of_torch(type(module)), tuple(path.split(".")) if path else ()
        literal = {name for name, _ in literals_of(values_of(module, held))}
        if path:
            found["kinds"].append((path, type(module)))
        for one in own_classes(type(module)):
            own = {name: f for name, f in functions_of(one).items() if not name.startswith("__")}
            if any(f.__name__ == "<lambda>" for f in own.values()):  # which nobody could pickle
                return None
            found["methods"] += [(path, name, f) for name, f in own.items() if getattr(type(module), name, None) is f]
            words = {word for f in own.values() for code in codes_in(f.__code__) for word in code.co_consts if isinstance(word, str) and word.isidentifier()}
            found["absent"] += [(path, word) for word in sorted(words) if not hasattr(module, word)]
        for around, name, value in read_by_methods(module):
            if around is not None and not isinstance(value, SIMPLE):
                if isinstance(value, (types.FunctionType, torch.dtype, torch.device)) and getattr(value, "__name__", "") != "<lambda>":
                    found["globals"].append((name, value))
                elif not without_tensors(value):
                    return None
        for name, value in vars(module).items():
            if name in INTERNAL or name in literal or name.startswith("_") and library or name.startswith("_pragma") or isinstance(value, (torch.Tensor, torch.nn.Module)):
                continue
            if isinstance(value, functools.partial) and keeps_nothing(value.func, held) and all(map(without_tensors, value.args + tuple(value.keywords.values()))):
                found["partials"].append((path, name, value.func, value.args + tuple(value.keywords.items())))
            elif isinstance(value, range):
                found["ranges"].append((path, name, value))
            elif type(value) in (list, tuple, dict):
                items = tuple(value.items() if isinstance(value, dict) else enumerate(value))
                if not all(isinstance(v, SIMPLE) or isinstance(v, torch.Tensor) and id(v) in held for _, v in items):
                    return None
                found["mixed"].append((path, name, len(items), tuple((k, v) for k, v in items if not isinstance(v, torch.Tensor)),
                                       tuple((k, v, tuple(held[id(v)].split("."))) for k, v in items if isinstance(v, torch.Tensor))))
            elif keeps_nothing(value, held) or isinstance(value, enum.Enum):
                found["same"].append((path, name, value, ()))
            elif (fields_of(value) is not None or slots_of(value)) and not isinstance(value, (dict, list, tuple, set, frozenset)):
                fields = tuple((fields_of(value) or {}).items()) + tuple(slots_of(value).items())
                if not all(isinstance(v, SIMPLE) for _, v in fields):
                    return None
                found["same"].append((path, name, value, fields))
            else:
                return None
    return {kind: tuple(entries) for kind, entries in found.items()}


def has_own_forward(module):
    """In words that Dynamo watches: of `"forward" in vars(module)` it makes no guard."""
    try:
        return module.forward.__func__ is not type(module).forward
    except AttributeError:
        return True


def keeper(model, path, name):
    """The dictionary in which a module keeps a tensor."""
    for part in path.split(".") if path else []:
        model = model._modules.get(part)
        if model is None:
            return None
    return next((table for table in (model._parameters, model._buffers, vars(model)) if isinstance(table.get(name), torch.Tensor)), None)


def tensor_at(model, path):
    """The model's tensor of that name."""
    path, _, name = path.rpartition(".")
    return keeper(model, path, name)[name]


def share_memory(tensors):
    """Do two of them lie in one storage? What is written to one may then be read from the other."""
    storages = [t._storage() if hasattr(t, "_storage") else t.untyped_storage() for t in tensors]
    return len({storage._cdata for storage in storages}) < len(storages)


def apart(positions):
    """Makes functions of (model, args) that say "shared" where the tensors at these positions share memory."""
    def only_apart(run):
        return lambda model, args: "shared" if share_memory([args[i] for i in positions if i < len(args) and type(args[i]) is torch.Tensor]) else run(model, args)
    return only_apart


def differ(some, others):
    """Are two sequences of plain values different? Of a constant tuple Dynamo asks for a guard of its type where it is compared as a whole, and some versions (2.11) have none."""
    return len(some) != len(others) or any([a != b for a, b in zip(some, others)])


def constructor_of(function, args, kwargs):
    """{parameter: text} of a call of Model.__init__."""
    bound = inspect.signature(function).bind(None, *args, **kwargs)
    bound.apply_defaults()
    texts = {name: text_of(value) for name, value in list(bound.arguments.items())[1:]}
    return {name: text for name, text in texts.items() if text is not None}


def _first_of(names):
    """The first of these members of torch._C that this Torch has, or None."""
    for name in names:
        value = torch._C
        for part in name.split("."):
            value = getattr(value, part, None)
        if value is not None:
            return value
    return None


def ambient(threads, device):
    """[(name, function, arguments, value)]: what is to hold in the thread that calls, each by the function that this Torch has."""
    newer = _first_of(["_len_torch_dispatch_stack"]) is not None
    found = [("tracing", _first_of(["_get_tracing_state"]), (), None),
             ("deterministic mode", _first_of(["_get_deterministic_algorithms"]), (), False),
             ("default dtype", torch.get_default_dtype, (), torch.float32)]
    if threads > 0:  # of a kernel on a CPU
        found.append(("number of threads", torch.get_num_threads, (), threads))
    if newer:
        found += [("dispatch mode", torch._C._len_torch_dispatch_stack, (), 0), ("function mode", torch._C._len_torch_function_stack, (), 0)]
    else:
        found += [("function mode", _first_of(["_is_torch_function_mode_enabled"]), (), False)]
        found += [("dispatch mode", _first_of(["_get_torch_dispatch_mode"]), (), None)]
    found.append(("functorch", _first_of(["_functorch.peek_interpreter_stack"]), (), None))
    if hasattr(torch.amp, "is_autocast_available"):
        found.append(("autocast", torch._C.is_autocast_enabled, (device,), False))
    else:
        found.append(("autocast", torch.is_autocast_cpu_enabled if device == "cpu" else torch.is_autocast_enabled, (), False))
    return [one for one in found if one[1] is not None]


def without_tensors(value):
    """May it be compared by ==, and copied?"""
    if isinstance(value, dict):
        return all(map(without_tensors, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(without_tensors, value))
    return isinstance(value, PLAIN + (enum.Enum,))


def same_items(container, known):
    return len(container) == len(known) and all(map(operator.is_, container, known))


def same_attribute(holder, name, known):
    return getattr(holder, name, holder) is known


def table_of(kind):
    """The dictionary behind vars() of a class, which only shows it."""
    return next((table for table in gc.get_referents(vars(kind)) if isinstance(table, dict)), {})


class Watch:
    """What a Call compares: "same", "equal", "sizes" and "classes" by looking into dictionaries; "asked": [(function, arguments, what it is to say)] of what lies in none."""

    def __init__(self, model):
        self.same, self.equal, self.sizes, self.classes, self.asked, self.seen = [], [], [], [], [], set()
        self.held, self.homes = held_by(model), {}
        for module in model.modules():
            for table in (module._parameters, module._buffers, vars(module)):
                self.homes.update((id(value), (table, name)) for name, value in table.items() if isinstance(value, torch.Tensor) and id(value) not in self.homes)

    def module(self, module, others=False):
        """`others`: one that no state_dict has, with its tensors."""
        own = vars(module)
        for table in ("_parameters", "_buffers", "_modules"):
            if own[table]:
                self.same.append((own, table, own[table]))
        self.sizes += [(table, None, len(table)) for table in (own, own["_modules"], own["_parameters"], own["_buffers"])]
        self.same += [(table, key, None) for table in (own["_parameters"], own["_buffers"]) for key, value in table.items() if value is None]
        self.same += [(own["_modules"], key, child) for key, child in own["_modules"].items()]
        self.classes.append((module, None, type(module)))
        if id(type(module)) not in self.seen:
            self.seen.add(id(type(module)))
            for kind in own_classes(type(module)) + [one for one in type(module).__mro__ if "_pragma_task" in vars(one)]:
                self.methods(kind)
            for kind in [one for one in type(module).__mro__ if of_torch(one) and "forward" in vars(one)][:1]:
                self.same.append((table_of(kind), "forward", vars(kind)["forward"]))
        for around, name, value in read_by_methods(module):
            if around is not None:
                self.kept(around, name, value)
        for name, value in own.items():
            if name not in INTERNAL and not name.startswith("_pragma") and not isinstance(value, (torch.Tensor, torch.nn.Module)):
                self.kept(own, name, value)
        for table in (own["_parameters"], own["_buffers"], own) if others else ():
            for name, value in table.items():
                if isinstance(value, torch.Tensor):
                    self.kept(table, name, value)

    def methods(self, kind):
        table = table_of(kind)
        self.sizes.append((table, None, len(table)))
        self.same += [(table, name, value) for name, value in table.items() if not name.startswith("__") or name == "__call__"]

    def kept(self, table, name, value):
        """In a dictionary."""
        if isinstance(value, (list, dict, set, tuple)) and without_tensors(value):
            return self.equal.append((table, name, copy.deepcopy(value)))
        self.same.append((table, name, value))
        self.inside(value)

    def inside(self, value):
        if isinstance(value, PLAIN + (enum.Enum, type, types.ModuleType)) or id(value) in self.seen:
            return
        self.seen.add(id(value))
        if isinstance(value, torch.Tensor):
            if id(value) in self.homes:  # the model's own: it is to stay in its place
                self.same.append((*self.homes[id(value)], value))
            else:  # of inference mode: what it holds may be something else at any time
                self.asked.append((object, (), None) if value.is_inference() else (getattr, (value, "_version"), value._version))
                self.asked.append((getattr, (value, "requires_grad"), value.requires_grad))
        elif isinstance(value, torch.nn.Module):
            for module in value.modules() if id(value) not in self.held else ():
                self.module(module, others=True)
        elif isinstance(value, (dict, types.MappingProxyType)):
            if isinstance(value, dict):
                self.sizes.append((value, None, len(value)))
            for key, one in value.items():
                self.kept(value, key, one) if isinstance(value, dict) else self.inside(one)
        elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
            if not isinstance(value, (tuple, frozenset)):
                self.asked.append((same_items, (value, tuple(value)), True))
            self.all(value)
        elif isinstance(value, functools.partial):
            self.all((value.func, *value.args, value.keywords))
        elif isinstance(value, types.MethodType):
            self.all((value.__func__, value.__self__))
        elif isinstance(value, types.FunctionType):
            cells = [c for c in value.__closure__ or () if c != types.CellType()]
            self.asked += [(same_attribute, (cell, "cell_contents", cell.cell_contents), True) for cell in cells]
            self.all([cell.cell_contents for cell in cells] + [value.__defaults__, value.__kwdefaults__])
        else:
            fields, slots = fields_of(value), slots_of(value)
            if fields is not None:
                self.sizes.append((fields, None, len(fields)))
                for name, one in fields.items():
                    self.kept(fields, name, one)
            self.asked += [(same_attribute, (value, name, one), True) for name, one in slots.items()]
            self.all(slots.values())
            if hasattr(value, "tobytes"):
                self.asked.append((value.tobytes, (), value.tobytes()))

    def all(self, values):
        for value in values:
            self.inside(value)


def look_at(model):
    """What a Call compares, by identity where that is enough: [(dictionary, key, value)]."""
    watch = Watch(model)
    for module in model.modules():
        watch.module(module)
    watch.sizes += [(table, None, len(table)) for table in hook_tables(model) + own_hooks(model)]
    watch.same.append((vars(torch.autograd.forward_ad), "_current_level", -1))
    return {"same": watch.same, "equal": watch.equal, "sizes": watch.sizes, "classes": watch.classes, "asked": watch.asked}


def ties_of(model):
    """((path of a tensor, ...), ...) of tensors that are kept in several places: layers that share their weights."""
    places = {}
    for path, module in model.named_modules():
        for table in (module._parameters, module._buffers, vars(module)):
            for name, tensor in table.items():
                if isinstance(tensor, torch.Tensor):
                    places.setdefault(id(tensor), []).append((path + "." if path else "") + name)
    return tuple(tuple(names) for names in places.values() if len(names) > 1)


def hook_tables(model):
    """Of the modules inside, whose calls a kernel leaves out: those of the model itself run as they always do, in __call__."""
    everywhere = vars(torch.nn.modules.module)
    found = [everywhere[name] for name in ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks")
             if name in everywhere]
    for path, module in model.named_modules():
        if path:
            found += [vars(module)[name] for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks") if name in vars(module)]
    return found


def own_hooks(model):
    return [vars(model)[name] for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks") if name in vars(model)]


def keeps_layers(model):
    """Is there a function among the attributes that holds a module: in its closure, in its defaults, in a partial, or as a method?"""
    def holds(value):
        if isinstance(value, functools.partial):
            return holds(value.func) or any(map(holds, value.args)) or any(map(holds, value.keywords.values()))
        inside = [value, getattr(value, "__self__", None)] + list(getattr(value, "__defaults__", None) or ())
        inside += [cell.cell_contents for cell in getattr(value, "__closure__", None) or () if cell != types.CellType()]
        return any(isinstance(one, torch.nn.Module) for one in inside)
    return any(callable(value) and not isinstance(value, (type, torch.nn.Module)) and holds(value) for module in model.modules() for value in vars(module).values())
