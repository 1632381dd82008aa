"""What a kernel took for granted when its task was traced, as text: the values that a model's modules keep (eps, training, a size), their
classes, and the arguments of the constructor. reference.py notes them with the task; a drop-in compares its model with them (a copy of this
file lies beside it)."""
import ast
import copy
import functools
import inspect
import types

import torch

INTERNAL = set(vars(torch.nn.Module())) - {"training"} | {"_is_replica", "_former_parameters", "_compiled_call_impl", "_is_torch_compile"}  # the last two: torch.compile(model) was called
PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format, slice)


def text_of(value):
    """None: it is looked at elsewhere (a tensor, a module) or cannot be told."""
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, (list, tuple)):
        parts = [text_of(v) for v in value]
        return None if None in parts else ("[%s]" if isinstance(value, list) else "(%s)") % ", ".join(parts)
    if isinstance(value, (set, frozenset)):
        parts = [text_of(v) for v in value]
        return None if None in parts else "{%s}" % ", ".join(sorted(parts))
    if isinstance(value, dict):
        parts = [(text_of(k), text_of(v)) for k, v in value.items()]
        return None if any(None in p for p in parts) else "{%s}" % ", ".join("%s: %s" % p for p in parts)
    if isinstance(value, functools.partial):
        return "partial(%s, %s, %s)" % (text_of(value.func), text_of(value.args), text_of(value.keywords))
    if isinstance(value, types.FunctionType):
        cells = [text_of(c.cell_contents) for c in value.__closure__ or ()]
        return "function %s %s %s" % (value.__qualname__, cells, text_of(value.__defaults__))
    if isinstance(value, (torch.Tensor, torch.nn.Module)):
        return None
    return "%s %s" % (class_name(type(value)), getattr(value, "__qualname__", ""))


def class_name(kind):
    """A task's own classes are in a module of another name each time."""
    return (kind.__module__ + "." if kind.__module__.split(".")[0] == "torch" else "") + kind.__qualname__


def values_of(module):
    """What a library's module keeps under a leading underscore follows from the rest."""
    library = type(module).__module__.split(".")[0] == "torch"
    found = {}
    for name, value in vars(module).items():
        if name in INTERNAL or name.startswith("_pragma") or (library and name.startswith("_")):
            continue
        text = text_of(value)
        if text is not None:
            found[name] = text
    return found


def constants_of(model):
    """[{"path": ..., "class": ..., "values": {name: text}}] of a model and all modules in it, in their order. The model's own class is not said:
    it has another name."""
    return [{"path": path, "class": class_name(type(module)) if path else "", "values": values_of(module)} for path, module in model.named_modules()]


def literals_of(values):
    """[(name, value)] of the constants of a module that are plain values: those that Dynamo can compare and watch."""
    found = []
    for name, text in values.items():
        try:
            found.append((name, ast.literal_eval(text)))
        except (ValueError, SyntaxError):
            pass
    return found


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


def look_at(model):
    """What a Call compares, by identity where that is enough: [(dictionary, key, value)]."""
    same, equal, sizes, classes = [], [], [], []
    for path, module in model.named_modules():
        own = vars(module)
        for table in ("_parameters", "_buffers", "_modules"):
            if own[table]:
                same.append((own, table, own[table]))
        sizes += [(own, None, len(own)), (own["_modules"], None, len(own["_modules"]))]
        same += [(own["_modules"], key, child) for key, child in own["_modules"].items() if child is not None]
        classes.append((module, None, type(module)))
        for name, value in own.items():
            if name in INTERNAL or isinstance(value, (torch.Tensor, torch.nn.Module)) or name.startswith("_pragma"):
                continue
            if isinstance(value, (list, dict, set, tuple)):
                if text_of(value) is not None:
                    equal.append((own, name, copy.deepcopy(value)))
            else:
                same.append((own, name, value))
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
