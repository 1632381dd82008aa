"""A model once more with other tensors in it, which nobody else sees: for gradients by the reference, and for a set of parameters on a device.
See docs/drop_in.md of PRAGMA."""
import collections
import copy
import enum
import functools
import types

import torch

TABLES = set(vars(torch.nn.Module()))  # of parameters, hooks and layers
ATOMS = (bool, int, float, complex, str, bytes, type(None), type, types.ModuleType, types.BuiltinFunctionType, range, slice, enum.Enum, torch.dtype, torch.device)


class Slots:
    """Tensors by the ones in whose place they are."""

    def __init__(self, old, new):
        self.kept, self.new = old, {id(a): b for a, b in zip(old, new)}  # what is kept has its identity for itself

    def of(self, tensor):
        return self.new.get(id(tensor), tensor)


class Shells:
    """A model, or what it keeps, once more with other tensors in it, wherever they are kept: in containers, in fields of objects, in what functions keep. Each thing once, as in the model."""

    def __init__(self, slots, own, kept):
        self.slots, self.own, self.kept, self.made, self.originals = slots, own, kept, {}, []

    def known(self, value, new):
        self.originals.append(value)  # so that its identity is its own
        self.made[id(value)] = new
        return new

    def all(self, values):
        return [self.of(v) for v in values]

    def of(self, value):
        if isinstance(value, ATOMS):
            return value
        if id(value) in self.made:
            return self.made[id(value)]
        if isinstance(value, torch.Tensor):
            return self.slots.of(value) if id(value) in self.own else self.known(value, value.detach().clone()) if self.kept else value
        if isinstance(value, torch.nn.Module):  # one that is no layer of the model's
            return self.module(value)
        if isinstance(value, types.FunctionType):
            return self.function(value)
        if isinstance(value, types.MethodType):
            return self.known(value, types.MethodType(value.__func__, self.of(value.__self__)))
        if type(value) is functools.partial:
            return self.known(value, functools.partial(self.of(value.func), *self.all(value.args), **{k: self.of(v) for k, v in value.keywords.items()}))
        if isinstance(value, tuple):
            items = self.all(value)
            return value if all(a is b for a, b in zip(items, value)) else self.known(value, type(value)._make(items) if hasattr(value, "_make") else type(value)(items))
        try:
            new = copy.copy(value)
        except Exception:  # a lock, a file
            return value
        if new is value:
            return value
        self.known(value, new)
        if isinstance(value, dict):
            new.update((k, self.of(v)) for k, v in value.items())
        elif isinstance(value, (list, collections.deque)):
            for i, one in enumerate(value):
                new[i] = self.of(one)
        elif isinstance(value, set):
            new.clear()
            new.update(self.all(value))
        if isinstance(getattr(value, "__dict__", None), dict):
            vars(new).update((k, self.of(v)) for k, v in vars(value).items())
        for kind in type(value).__mro__:
            slots = vars(kind).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                    object.__setattr__(new, name, self.of(getattr(value, name)))
        return new

    def function(self, value):
        self.known(value, value)  # one that calls itself
        cells = [c if c == types.CellType() else self.of(c.cell_contents) for c in value.__closure__ or ()]
        defaults, words = self.of(value.__defaults__), {k: self.of(v) for k, v in (value.__kwdefaults__ or {}).items()}
        if defaults is value.__defaults__ and all(a is b or a is getattr(b, "cell_contents", a) for a, b in zip(cells, value.__closure__ or ())) and all(v is value.__kwdefaults__[k] for k, v in words.items()):
            return value
        new = types.FunctionType(value.__code__, value.__globals__, value.__name__, defaults, tuple(c if isinstance(c, types.CellType) else types.CellType(c) for c in cells) or None)
        new.__kwdefaults__ = words or None
        return self.known(value, new)

    def module(self, module, copied=(), other=None):
        for one in module.modules():
            self.known(one, copy.copy(one))
        for path, one in module.named_modules():
            path, new = path + "." if path else "", self.made[id(one)]
            own = vars(new)
            for table in ("_parameters", "_buffers"):
                own[table] = type(own[table])((k, v if v is None else self.of(v)) for k, v in vars(one)[table].items())
                if other:
                    own[table] = type(own[table])((k, v if v is None else other(v)) for k, v in own[table].items())
            own["_modules"] = type(own["_modules"])((k, v if v is None else self.made[id(v)]) for k, v in vars(one)["_modules"].items())
            for name, value in vars(one).items():
                if name in TABLES and isinstance(value, dict) and "hook" in name and self.kept:
                    own[name] = copy.copy(value)  # what is hooked in later is not for this one
                elif name not in TABLES and not name.startswith("_pragma"):
                    own[name] = self.of(value)
            for name, buffer in own["_buffers"].items():
                if path + name in copied:
                    own["_buffers"][name] = buffer.detach().clone()
        return self.made[id(module)]


def shell(module, slots, copied=(), other=None, kept=False):
    """The module with other tensors, which nobody else sees: each tensor of `slots` replaced wherever it is kept (layers may share one), buffers named
    in `copied` cloned. `other`: what else becomes of a parameter or buffer. `kept`: what its attributes hold is copied, too."""
    own = {id(t) for one in module.modules() for table in (one._parameters, one._buffers, vars(one)) for t in table.values() if isinstance(t, torch.Tensor)}
    return Shells(slots, own, kept).module(module, copied, other)


def without_kernel(task, model):
    """The task's Model with the very tensors and layers of this one. A class derived from ModelNew has methods that Model has not: such a model stays itself."""
    if type(model) is not task.kind:
        return model
    new = task.reference.Model.__new__(task.reference.Model)
    vars(new).update((name, value) for name, value in vars(model).items() if not name.startswith("_pragma_"))
    return new.__prepare_scriptable__() if hasattr(new, "__prepare_scriptable__") else new  # Model's own word on it


def write_all(targets, values):
    if hasattr(torch, "_foreach_copy_"):
        return torch._foreach_copy_(targets, values)
    for target, value in zip(targets, values):
        target.copy_(value)


def share_memory(tensors):
    """Do two of them overlap, so that what is written to one is seen in the other? Of tensors without memory (functorch's, fake ones) other guards speak."""
    try:
        spans = sorted((t.data_ptr(), t.data_ptr() + t.element_size() * (1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride())))) for t in tensors if t.numel())
    except RuntimeError:
        return False
    return any(end > begin > 0 for (_, end), (begin, _) in zip(spans, spans[1:]))


def kept_in(task, keeper, model):
    """The model's tensors that the kernel takes, in the kernel's order."""
    found = []
    for entry in task.params:
        path, _, name = entry["name"].rpartition(".")
        found.append(keeper(model, path, name)[name])
    return found


def gradients_of(task, keeper, model, args, tensors, gradients, wanted, again=False):
    """(does each result of the reference's forward at `tensors`, inputs and then parameters, depend on what is `wanted`; the gradients of these, None for one
    that no result depends on). `again`: they are to be differentiated themselves."""
    with torch.enable_grad():
        tensors = [t.view_as(t) if again and t.requires_grad else t.detach().requires_grad_(needed) for t, needed in zip(tensors, wanted)]
        args, count = list(args), len(task.inputs)
        for position, tensor in zip(task.positions, tensors):
            args[position] = tensor
        own = shell(model, Slots(kept_in(task, keeper, model), tensors[count:]), set(task.settings["mutated"]))
        results = task.reference.Model.forward(own, *args)
        results = results if isinstance(results, (list, tuple)) else (results,)
        pairs = [(r, g) for r, g in zip(results, gradients) if r.requires_grad and g is not None]
        asked = [t for t, needed in zip(tensors, wanted) if needed]
        found = iter(torch.autograd.grad([r for r, _ in pairs], asked, [g for _, g in pairs], create_graph=again, allow_unused=True) if pairs and asked else [None] * len(asked))
    return [r.requires_grad for r in results], [next(found) if needed else None for needed in wanted]
