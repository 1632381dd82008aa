"""What a kernel took for granted when its task was traced, as text: the values that a model's modules keep (eps, training, a size), their
classes, and the arguments of the constructor. reference.py notes them with the task; a drop-in compares its model with them (a copy of this
file lies beside it)."""
import ast
import copy
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


def text_of(value, held=frozenset(), above=()):
    """None: it is looked at elsewhere (a tensor, a module). `held`: ids of the tensors that are the model's state, whose values nobody takes for granted; `above`: of what
    this is inside of."""
    if isinstance(value, enum.Enum):
        return "%s.%s" % (class_name(type(value)), value.name)
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, (torch.Tensor, torch.nn.Module)):
        return content_of(value, held) if above else None
    if id(value) in above:
        return "itself"
    texts = lambda values: [text_of(v, held, above + (id(value),)) for v in values]
    if isinstance(value, (list, tuple)):
        return ("[%s]" if isinstance(value, list) else "(%s)") % ", ".join(texts(value))
    if isinstance(value, (set, frozenset)):
        return "{%s}" % ", ".join(sorted(texts(value)))
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % pair for pair in zip(texts(value), texts(value.values())))
    if isinstance(value, functools.partial):
        return "partial(%s)" % ", ".join(texts((value.func, value.args, value.keywords)))
    if isinstance(value, types.FunctionType):
        cells = texts([c.cell_contents for c in value.__closure__ or () if c != types.CellType()])
        return "function %s [%s] %s" % (value.__qualname__, ", ".join(cells), *texts((value.__defaults__,)))
    if isinstance(value, type) or callable(value):
        return "%s %s" % (class_name(type(value)), getattr(value, "__qualname__", ""))
    kept = fields_of(value)
    if kept is not None:
        return "%s {%s}" % (class_name(type(value)), ", ".join("%s: %s" % pair for pair in zip(kept, texts(kept.values()))))
    if isinstance(value, (numbers.Number, range)):  # NumPy's numbers among them
        return "%s %r" % (class_name(type(value)), value)
    if hasattr(value, "tobytes"):  # an array of NumPy's
        return "%s %s %s" % (class_name(type(value)), getattr(value, "shape", ""), hashlib.sha256(value.tobytes()).hexdigest()[:16])
    return class_name(type(value))


def fields_of(value):
    """What an object that is no module, tensor, function or class keeps, where it is a dictionary."""
    kept = getattr(value, "__dict__", None)
    plain = not is_service(value) and not isinstance(value, (type, types.ModuleType, torch.Tensor, torch.nn.Module, enum.Enum) + PLAIN) and not callable(value)
    return kept if plain and isinstance(kept, dict) else None


def is_service(value):
    """A logger, a lock, a queue: a logger has all others of the process in it, and each call of one writes to it."""
    return any(kind.__module__.split(".")[0] in SERVICES for kind in type(value).__mro__)


UNSEEN = "a tensor of unknown values"  # while a task is traced with tensors that have none


def content_of(value, held):
    """A tensor or a layer in a container, which no state_dict has: what it holds was taken for granted."""
    if isinstance(value, torch.nn.Module):
        tensors = list(value.named_parameters()) + list(value.named_buffers())
        return "%s {%s}" % (class_name(type(value)), ", ".join("%s: %s" % (name, content_of(t, held)) for name, t in tensors))
    if id(value) in held:
        return "a tensor"
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.is_meta:
        return UNSEEN
    if value.numel() > MOST_HASHED:
        return UNSEEN + " at %d" % id(value)  # as no other one
    values = value.detach() if value.layout == torch.strided else value.detach().to_dense()  # a sparse one has neither strides nor bytes of its own
    values = values.cpu().contiguous().reshape(-1)
    return "%s %s %s" % (value.dtype, list(value.shape), hashlib.sha256(bytes(values.view(torch.uint8).tolist())).hexdigest()[:16])


def class_name(kind):
    """A task's own classes are in a module of another name each time."""
    return (kind.__module__ + "." if kind.__module__.split(".")[0] == "torch" else "") + kind.__qualname__


def values_of(module, held=frozenset()):
    """What a library's module keeps under a leading underscore follows from the rest."""
    library = type(module).__module__.split(".")[0] == "torch"
    found = {}
    for name, value in vars(module).items():
        if name in INTERNAL or name.startswith("_pragma") or (library and name.startswith("_")):
            continue
        text = text_of(value, held)
        if text is not None:
            found[name] = text
    found.update(("global " * (around is not None) + name, repr(value)) for around, name, value in read_by_forward(module))
    return found


def read_by_forward(module):
    """[(the globals or None, name, value)] of plain values that forward() of a task's own class reads and that lie outside of the module: globals of its file, attributes of its class."""
    kind = type(module)
    names = [one.__name__ for one in kind.__mro__]
    behind = kind.__mro__[names.index("DropIn") + 1:] if "DropIn" in names else kind.__mro__  # Model's, not a drop-in's
    function = next((vars(one)["forward"] for one in behind if "forward" in vars(one)), None)
    if kind.__module__.split(".")[0] == "torch" or not isinstance(function, types.FunctionType):
        return []
    found = []
    for name in function.__code__.co_names:
        around = function.__globals__
        if name in around and isinstance(around[name], PLAIN) and not name.startswith("__"):
            found.append((around, name, around[name]))
        elif name not in vars(module) and hasattr(kind, name) and isinstance(getattr(kind, name), PLAIN) and name not in INTERNAL and not name.startswith("_"):
            found.append((None, name, getattr(kind, name)))
    return found


def none_of(module):
    """Parameters and buffers that there may be and are not: Linear(bias=False), register_buffer("mask", None)."""
    return sorted(name for table in (module._parameters, module._buffers) for name, value in table.items() if value is None)


def constants_of(model):
    """[{"path": ..., "class": ..., "values": {name: text}, "none": [name]}] of a model and all modules in it, in their order. The model's own class is not said:
    it has another name."""
    held = {id(t) for module in model.modules() for table in (module._parameters, module._buffers, vars(module)) for t in table.values() if isinstance(t, torch.Tensor)}
    return [{"path": path, "class": class_name(type(module)) if path else "", "values": values_of(module, held), "none": none_of(module)} for path, module in model.named_modules()]


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


def objects_of(model):
    """Of what the modules keep that no literal says, in words that a compiled program can watch; None where there is something that none of them says.
    "same": (path of a module, name, object, ((plain field, value), ...)); "partials": (path, name, function, the partial's arguments); "ranges": (path, name, range);
    "mixed": (path, name, length, ((key or index, plain value), ...), ((key or index, tensor), ...)) of a container."""
    found = {"same": [], "partials": [], "ranges": [], "mixed": []}
    for path, module in model.named_modules():
        library, path = type(module).__module__.split(".")[0] == "torch", tuple(path.split(".")) if path else ()
        literal = {name for name, _ in literals_of(values_of(module))}
        for name, value in vars(module).items():
            if name in INTERNAL or name in literal or name.startswith("_") and library or name.startswith("_pragma") or isinstance(value, (torch.Tensor, torch.nn.Module)):
                continue
            if isinstance(value, functools.partial) and not isinstance(value.func, functools.partial) and all(map(without_tensors, value.args + tuple(value.keywords.values()))):
                found["partials"].append((path, name, value.func, value.args + tuple(value.keywords.items())))
            elif isinstance(value, range):
                found["ranges"].append((path, name, value))
            elif type(value) in (list, tuple, dict):
                items = tuple(value.items() if isinstance(value, dict) else enumerate(value))
                if not all(isinstance(v, SIMPLE + (torch.Tensor,)) for _, v in items):
                    return None
                found["mixed"].append((path, name, len(items), tuple((k, v) for k, v in items if not isinstance(v, torch.Tensor)), tuple((k, v) for k, v in items if isinstance(v, torch.Tensor))))
            elif callable(value) and not isinstance(value, functools.partial) or isinstance(value, enum.Enum) or is_service(value):
                found["same"].append((path, name, value, ()))
            elif fields_of(value) is not None and all(isinstance(v, SIMPLE) for v in fields_of(value).values()):
                found["same"].append((path, name, value, tuple(fields_of(value).items())))
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


def watch(table, name, value, same, equal, sizes, depth=0):
    """A value that is kept somewhere, and what is kept in it. Of tensors in lists only the list is looked at, by what is in it now."""
    if isinstance(value, (list, dict, set, tuple)):
        plain = without_tensors(value)
        if plain:
            return equal.append((table, name, copy.deepcopy(value)))
        same.append((table, name, value))
        if isinstance(value, dict) and depth < 4:
            sizes.append((value, None, len(value)))
            for key, inside in value.items():
                watch(value, key, inside, same, equal, sizes, depth + 1)
        return
    same.append((table, name, value))
    kept = fields_of(value)
    if kept and depth < 4:
        sizes.append((kept, None, len(kept)))
        for key, inside in kept.items():
            watch(kept, key, inside, same, equal, sizes, depth + 1)


def without_tensors(value):
    """May it be compared by ==, and copied?"""
    if isinstance(value, dict):
        return all(map(without_tensors, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(without_tensors, value))
    return isinstance(value, PLAIN + (enum.Enum,))


def look_at(model):
    """What a Call compares, by identity where that is enough: [(dictionary, key, value)]."""
    same, equal, sizes, classes = [], [], [], []
    for path, module in model.named_modules():
        own = vars(module)
        for table in ("_parameters", "_buffers", "_modules"):
            if own[table]:
                same.append((own, table, own[table]))
        sizes += [(table, None, len(table)) for table in (own, own["_modules"], own["_parameters"], own["_buffers"])]
        same += [(table, key, None) for table in (own["_parameters"], own["_buffers"]) for key, value in table.items() if value is None]
        same += [(own["_modules"], key, child) for key, child in own["_modules"].items() if child is not None]
        classes.append((module, None, type(module)))
        same += [one for one in read_by_forward(module) if one[0] is not None]
        for name, value in own.items():
            if name in INTERNAL or isinstance(value, (torch.Tensor, torch.nn.Module)) or name.startswith("_pragma"):
                continue
            watch(own, name, value, same, equal, sizes)
    sizes += [(table, None, len(table)) for table in hook_tables(model) + own_hooks(model)]
    same.append((vars(torch.autograd.forward_ad), "_current_level", -1))
    return {"same": same, "equal": equal, "sizes": sizes, "classes": classes}


def ties_of(model):
    """((path of a tensor, ...), ...) of tensors that are kept in several places: layers that share their weights."""
    places = {}
    for path, module in model.named_modules():
        for table in (module._parameters, module._buffers):
            for name, tensor in table.items():
                if tensor is not None:
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
