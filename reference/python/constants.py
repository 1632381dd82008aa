"""What a kernel took for granted when its task was traced, as text: the values that a model's modules keep (eps, training, a size), their
classes, and the arguments of the constructor. reference.py notes them with the task; a drop-in compares its model with them (a copy of this
file lies beside it)."""
import functools
import inspect
import types

import torch

INTERNAL = set(vars(torch.nn.Module())) - {"training"} | {"_is_replica", "_former_parameters"}
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


def constructor_of(function, args, kwargs):
    """{parameter: text} of a call of Model.__init__."""
    bound = inspect.signature(function).bind(None, *args, **kwargs)
    bound.apply_defaults()
    texts = {name: text_of(value) for name, value in list(bound.arguments.items())[1:]}
    return {name: text for name, text in texts.items() if text is not None}
