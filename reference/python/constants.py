"""What a kernel took for granted when its task was traced, as text: the values that a model's modules keep (eps, training, a size), their
classes, and the arguments of the constructor. reference.py notes them with the task; a drop-in compares its model with them (a copy of this
file lies beside it)."""
import ast
import collections
import enum
import functools
import hashlib
import inspect
import numbers
import types

import torch

INTERNAL = set(vars(torch.nn.Module())) - {"training"} | {"_is_replica", "_former_parameters", "_compiled_call_impl", "_is_torch_compile"}  # the last two: torch.compile(model) was called
SIMPLE = (bool, int, float, str, type(None))
SERVICES = ("logging", "threading", "multiprocessing", "concurrent", "queue", "asyncio", "io")  # modules whose objects keep what a program does, not what forward() computes with
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
    return not is_service(value) and not isinstance(value, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial, torch.Tensor, torch.nn.Module,
                                                            enum.Enum) + PLAIN) and not (callable(value) and type(value).__module__.split(".")[0] in ("torch", "functools", "builtins"))


def fields_of(value):
    """What an object keeps, where it is a dictionary."""
    kept = getattr(value, "__dict__", None)
    return kept if isinstance(kept, dict) and has_fields(value) else None


def slots_of(value):
    """{name: value} of what an object of a class with __slots__ keeps."""
    names = [name for kind in type(value).__mro__ for name in (lambda s: (s,) if isinstance(s, str) else tuple(s))(vars(kind).get("__slots__", ()))] if has_fields(value) else []
    return {name: getattr(value, name) for name in names if name not in ("__dict__", "__weakref__") and hasattr(value, name)}


def is_service(value):
    """A logger, a lock, a queue: a logger has all others of the process in it, and each call of one writes to it."""
    return any((kind.__module__ or "").split(".")[0] in SERVICES for kind in type(value).__mro__)


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
    values = value.detach() if value.layout == torch.strided else value.detach().to_dense()  # a sparse one has neither strides nor bytes of its own
    values = values.cpu().contiguous().reshape(-1)
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


def leaves_of(value, depth=0):
    inside = value.items() if isinstance(value, dict) else value if isinstance(value, (list, tuple, set, collections.deque)) else (fields_of(value) or {}).items()
    if depth > 8 or not inside:
        return [value] if not isinstance(value, (list, tuple, dict, set)) else [type(value)]
    return [type(value)] + [leaf for one in inside for leaf in leaves_of(one, depth + 1)]


def marks_of(model):
    """{place: what is kept there} of the modules of a program's own classes, to be compared by written_since(). What a library's module keeps follows from the rest."""
    return {(path + "." if path else "") + name: leaves_of(value) for path, module in model.named_modules() if not of_torch(type(module))
            for table in (vars(module), module._buffers) for name, value in table.items() if name not in INTERNAL and not name.startswith("_pragma")}


def written_since(model, before):
    """Places that hold something else than marks_of() saw: forward() keeps its results there, or counts its calls."""
    now = marks_of(model)
    same = lambda a, b: a is b or type(a) is type(b) and isinstance(a, PLAIN) and a == b
    return sorted(place for place in set(now) | set(before)
                  if len(now.get(place, ())) != len(before.get(place, ())) or not all(map(same, now.get(place, ()), before.get(place, ()))))


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


def place_of(model, path):
    """(the dictionary, the key) of the model's tensor of that name."""
    path, _, name = path.rpartition(".")
    return keeper(model, path, name), name


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


def tf32_of_convolutions():
    """(function, arguments, value): what this Torch says where convolutions may use TF32."""
    precision = _first_of(["_get_fp32_precision_getter"])  # from Torch 2.9 on: the older question fails where the newer setting is used
    return (precision, ("cuda", "conv"), "tf32") if precision else (torch._C._get_cudnn_allow_tf32, (), True)


def ambient(threads, device, rounds_convolutions=False):
    """[(name, function, arguments, value)]: what is to hold in the thread that calls, each by the function that this Torch has. `rounds_convolutions`: the kernel computes some in TF32,
    as Torch does where a program says nothing; a program that wants them exact has them so."""
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
    if rounds_convolutions:
        found.append(("exact convolutions",) + tf32_of_convolutions())
    return [one for one in found if one[1] is not None]


def ties_of(model):
    """((path of a tensor, ...), ...) of tensors that are kept in several places: layers that share their weights."""
    places = {}
    for path, module in model.named_modules():
        for table in (module._parameters, module._buffers, vars(module)):
            for name, tensor in table.items():
                if isinstance(tensor, torch.Tensor):
                    places.setdefault(id(tensor), []).append((path + "." if path else "") + name)
    return tuple(tuple(names) for names in places.values() if len(names) > 1)
