"""What a drop-in watches of its model: where all that was taken for granted is kept, so that a call (and a compiled program) compares it by identity.
What is taken for granted is in constants.py. See docs/drop_in.md of PRAGMA."""
import collections
import copy
import copyreg
import enum
import functools
import gc
import operator
import sys
import types

import torch

constants = sys.modules[__name__.replace("pragma_watch", "constants")]  # of this drop-in, loaded before


def without_tensors(value):
    """May it be compared by ==, and copied?"""
    if isinstance(value, dict):
        return all(map(without_tensors, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(without_tensors, value))
    return isinstance(value, constants.PLAIN + (enum.Enum,))


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
        self.held, self.homes = constants.held_by(model), {}
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
            for kind in constants.own_classes(type(module)) + [one for one in type(module).__mro__ if "_pragma_task" in vars(one)]:
                self.methods(kind)
            for kind in [one for one in type(module).__mro__ if constants.of_torch(one) and "forward" in vars(one)][:1]:
                self.same.append((table_of(kind), "forward", vars(kind)["forward"]))
        for around, name, value in constants.read_by_methods(module):
            if around is not None:
                self.kept(around, name, value)
        for name, value in own.items():
            if name not in constants.INTERNAL and not name.startswith("_pragma") and not isinstance(value, (torch.Tensor, torch.nn.Module)):
                self.kept(own, name, value)
        for table in (own["_parameters"], own["_buffers"], own) if others else ():
            for name, value in table.items():
                if isinstance(value, torch.Tensor):
                    self.kept(table, name, value)

    def methods(self, kind):
        copyreg._slotnames(kind)  # what the first copy.copy() of such an object leaves in its class, before the names in it are counted
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
        if isinstance(value, constants.PLAIN + (enum.Enum, type, types.ModuleType)) or id(value) in self.seen:
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
            fields, slots = constants.fields_of(value), constants.slots_of(value)
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


def keeps_nothing(function, held):
    """May a compiled program know a function by its identity alone? What it keeps is plain, or a layer of the model's."""
    if isinstance(function, types.MethodType):
        return id(function.__self__) in held
    if isinstance(function, types.FunctionType):
        inside = [c.cell_contents for c in function.__closure__ or () if c != types.CellType()] + list(function.__defaults__ or ()) + list((function.__kwdefaults__ or {}).values())
        return all(isinstance(v, constants.SIMPLE) or id(v) in held and isinstance(v, torch.nn.Module) for v in inside)
    return callable(function) and not isinstance(function, functools.partial) and not constants.fields_of(function) and not constants.slots_of(function)


def objects_of(model):
    """Of what the modules keep that no literal says, in words that a compiled program can watch; None where there is something that none of them says.
    "same": (path of a module, name, object, ((plain field, value), ...)); "partials": (path, name, function, the partial's arguments); "ranges": (path, name, range);
    "mixed": (path, name, length, ((key or index, plain value), ...), ((key or index, tensor, its place in the model), ...)) of a container; "kinds": (path, class);
    "methods": (path, name, function) of a class of the program's own; "absent": (path, name that forward() may ask for); "globals": (name, object) of the task's file."""
    found = {"same": [], "partials": [], "ranges": [], "mixed": [], "kinds": [], "methods": [], "absent": [], "globals": []}
    held = constants.held_by(model)
    for path, module in model.named_modules():
        library, path = constants.of_torch(type(module)), tuple(path.split(".")) if path else ()
        literal = {name for name, _ in constants.literals_of(constants.values_of(module, held))}
        if path:
            found["kinds"].append((path, type(module)))
        for one in constants.own_classes(type(module)):
            own = {name: f for name, f in constants.functions_of(one).items() if not name.startswith("__")}
            if any(f.__name__ == "<lambda>" for f in own.values()):  # which nobody could pickle
                return None
            found["methods"] += [(path, name, f) for name, f in own.items() if getattr(type(module), name, None) is f]
            words = {word for f in own.values() for code in constants.codes_in(f.__code__) for word in code.co_consts if isinstance(word, str) and word.isidentifier()}
            found["absent"] += [(path, word) for word in sorted(words) if not hasattr(module, word)]
        for around, name, value in constants.read_by_methods(module):
            if around is not None and not isinstance(value, constants.SIMPLE):
                if isinstance(value, (types.FunctionType, torch.dtype, torch.device)) and getattr(value, "__name__", "") != "<lambda>":
                    found["globals"].append((name, value))
                elif not without_tensors(value):
                    return None
        for name, value in vars(module).items():
            if name in constants.INTERNAL or name in literal or name.startswith("_") and library or name.startswith("_pragma") or isinstance(value, (torch.Tensor, torch.nn.Module)):
                continue
            if isinstance(value, functools.partial) and keeps_nothing(value.func, held) and all(map(without_tensors, value.args + tuple(value.keywords.values()))):
                found["partials"].append((path, name, value.func, value.args + tuple(value.keywords.items())))
            elif isinstance(value, range):
                found["ranges"].append((path, name, value))
            elif type(value) in (list, tuple, dict):
                items = tuple(value.items() if isinstance(value, dict) else enumerate(value))
                if not all(isinstance(v, constants.SIMPLE) or isinstance(v, torch.Tensor) and id(v) in held for _, v in items):
                    return None
                found["mixed"].append((path, name, len(items), tuple((k, v) for k, v in items if not isinstance(v, torch.Tensor)),
                                       tuple((k, v, tuple(held[id(v)].split("."))) for k, v in items if isinstance(v, torch.Tensor))))
            elif keeps_nothing(value, held) or isinstance(value, enum.Enum) or constants.is_service(value):
                found["same"].append((path, name, value, ()))
            elif (constants.fields_of(value) is not None or constants.slots_of(value)) and not isinstance(value, (dict, list, tuple, set, frozenset)):
                fields = tuple((constants.fields_of(value) or {}).items()) + tuple(constants.slots_of(value).items())
                if not all(isinstance(v, constants.SIMPLE) for _, v in fields):
                    return None
                found["same"].append((path, name, value, fields))
            else:
                return None
    return {kind: tuple(entries) for kind, entries in found.items()}


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
