"""A drop-in in torch.compile and torch.export: its kernel as an operator of Torch's, `pragma::k...`, with a fake and a rule for gradients. The operator's
arguments are the inputs and then the parameters, so that it serves every model of the task. See docs/drop_in.md of PRAGMA."""
import functools
import hashlib
import json
import os
import re
import sys
import threading
import weakref

import torch

NOTHING = object()
AFTER = getattr(torch._C, "_after_autograd_keyset", None)
ANY_VERSION, NO_VERSION = -1, -2  # of a buffer that each call updates; of a tensor of inference mode, which may be another one at any time
MOST_STATES = 32  # sets of parameters that one operator has laid out on devices


def memory_of(tensor):
    return tensor.untyped_storage().data_ptr()


def apart(made, given):
    """The tensors as an operator has to give them: contiguous, and none in the memory of an argument or of another result."""
    taken, found = {memory_of(t) for t in given}, []
    for tensor in made:
        tensor = tensor.contiguous()
        tensor = tensor.clone() if memory_of(tensor) in taken else tensor
        taken.add(memory_of(tensor))
        found.append(tensor)
    return found


class Bare:
    """In a model's place, for a Call whose model nobody looks at: the compiled program has guards of its own."""


NO_FACTS = {"same": [], "equal": [], "sizes": [], "classes": []}
no_gradients = bool  # asked whether gradients are enabled it says False


class Kept(torch.autograd.Function):
    """Forward by the kernel, backward by the reference: traced into the program's own backward, where that cannot be done by the operator of its gradients."""

    @staticmethod
    def forward(ctx, operator, keys, *tensors):
        ctx.operator, task = operator, operator.task
        named = zip(tensors, [None] * operator.count + [entry["name"] for entry in task.params])
        ctx.save_for_backward(*[t.clone() if name in task.updated else t for t, name in named])  # a buffer will have its new values by then
        results = operator.below(keys, tensors)
        differentiable, ctx.reached = operator.paths(tuple(ctx.needs_input_grad[2:]))
        made, own = results if isinstance(results, tuple) else (results,), task.own_results  # behind these: new values of buffers
        ctx.mark_non_differentiable(*[r for i, r in enumerate(made) if i >= own or not differentiable[i]])
        return results

    @staticmethod
    def backward(ctx, *gradients):
        operator, tensors, needed = ctx.operator, ctx.saved_tensors, ctx.needs_input_grad[2:]
        if torch.is_grad_enabled():
            return (None, None) + tuple(operator.by_reference(gradients, tensors, needed, True)[1])
        if any(type(t) not in (torch.Tensor, torch.nn.Parameter) for t in tensors):  # a compiler traces this
            try:
                return (None, None) + tuple(operator.by_reference(gradients, tensors, needed)[1])
            except Exception:  # whatever it is about the reference that cannot be traced
                pass
        wanted = [n and r for n, r in zip(needed, ctx.reached)]
        found = iter(operator.backward(list(gradients), list(tensors), wanted) if any(wanted) else ())
        return (None, None) + tuple(next(found) if w else None for w in wanted)


class State:
    """A set of parameters laid out on a device. They are known by the very tensor objects, their versions and addresses. What is held of them is their memory,
    so that nothing else can come to lie at these addresses, and never the tensors: with one of them this ends."""

    def __init__(self, operator, key, params):
        task, template = operator.task, operator.template()
        self.key, self.device = key, key[0]
        with torch.inference_mode(False):
            aliases = [t.detach() for t in params]
        self.model = task.shells.shell(template, task.shells.Slots(task.shells.kept_in(task, operator.keeper, template), aliases))
        self.model.__dict__["_pragma_options"] = {"strict": False, "keep_buffers": True, "graph": False, "patient": True}
        self.known = [(weakref.ref(t, lambda _: operator.forget(key)), ANY_VERSION if entry["name"] in task.updated else NO_VERSION if t.is_inference() else t._version, t.data_ptr())
                      for t, entry in zip(params, task.params)]
        inputs = [(None, i) + task.specification(entry) for i, entry in enumerate(task.inputs)]
        places = [operator.place(self.model, entry["name"]) + task.specification(entry) for entry in task.params]
        self.bare = Bare()
        self.call = task.guarded(vars(self.bare), None, NO_FACTS, inputs, places, [], [], len(inputs), self.device, no_gradients)
        self.launcher = task.launcher(self.model, self.call)

    def holds(self, params):
        for (known, version, address), tensor in zip(self.known, params):
            if known() is not tensor or tensor.data_ptr() != address or version != ANY_VERSION and (version == NO_VERSION or tensor._version != version):
                return False
        return True


class Operator:
    """Of one task. `call` is what the graph of a program keeps; `backward` gives the reference's gradients."""

    def __init__(self, task, keeper):
        """`keeper`: where a model keeps a tensor, by path and name (constants.py)."""
        self.task, self.keeper, self.count = task, keeper, len(task.inputs)
        self.scalars = [(position, task.constants.literal(text)) for position, text in task.scalars]
        self.device = task.settings.get("device", "cpu")
        self.empty, self.bare, self.native_call, self.launches = None, Bare(), None, 0
        self.states, self.latest, self.known_paths = {}, None, {}
        self.lock = threading.RLock()
        self.define(self.name())

    def name(self):
        """The same for the same kernel and reference, in every process: exported programs find it by that."""
        text = json.dumps(self.task.settings).encode()
        for file in ("task_reference.py", "kernel.cpp", "kernel.py", "parts.json"):  # what compilers keep of a program holds the reference, too
            path = os.path.join(self.task.folder, file)
            if os.path.exists(path):
                with open(path, "rb") as f:
                    text += f.read()
        first, number = "k" + hashlib.sha256(text).hexdigest()[:16], 1
        while hasattr(torch.ops.pragma, first if number == 1 else "%s_%d" % (first, number)):  # the same drop-in, loaded once more
            number += 1
        return first if number == 1 else "%s_%d" % (first, number)

    def define(self, name):
        """By torch.library.Library: what custom_op() puts around a function costs more than the call itself (docs/decisions/0056)."""
        task, outputs, key = self.task, len(self.task.outputs), torch._C._dispatch_key_for_device(self.device)
        library = self.library = torch.library.Library("pragma", "FRAGMENT")
        tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order)
        unsafe = getattr(torch.Tag, "cudagraph_unsafe", None) if task.launcher else None  # what a State keeps is no memory of a graph that Torch makes of a program
        library.define("%s(%s) -> %s" % (name, ", ".join("Tensor t%d" % i for i in range(len(task.inputs) + len(task.params))),
                                         "Tensor" if outputs == 1 else "(%s)" % ", ".join(["Tensor"] * outputs)), tags=tags + ((unsafe,) if unsafe else ()))
        library.define("%s_gradients(Tensor?[] gradients, Tensor[] tensors, bool[] wanted) -> Tensor[]" % name, tags=tags)
        self.call, self.backward = getattr(torch.ops.pragma, name).default, getattr(torch.ops.pragma, name + "_gradients").default
        self.own_key, self.compute = getattr(torch._C.DispatchKey, key), self.launched if task.launcher else self.native
        library.impl(name, self.compute, key)
        library.impl(name, self.rule, "Autograd", with_keyset=True)
        library.impl(name + "_gradients", self.reference_gradients, key)
        library.impl(name + "_gradients", self.no_rule, "Autograd", with_keyset=True)
        torch.library.register_fake("pragma::" + name, self.fake, lib=library)
        torch.library.register_fake("pragma::" + name + "_gradients", lambda gradients, tensors, wanted: [t.new_empty(t.shape) for t, w in zip(tensors, wanted) if w], lib=library)

    def fake(self, *tensors):
        results = tuple(tensors[0].new_empty(entry["shape"], dtype=getattr(torch, entry["dtype"])) for entry in self.task.outputs)
        return results[0] if len(results) == 1 else results

    def calls(self):
        """How often the kernel was called as an operator, by all models of the task."""
        return self.launches + (self.native_call.hits() if self.native_call else 0)

    # -- the kernel ----------------------------------------------------------------------------------------------------------------

    def native(self, *tensors):
        result = self.native_call.run(self.bare, tensors) if self.native_call else "rebind"
        if result.__class__ is not str:
            return result
        task = self.task
        if task.load() is None:
            raise RuntimeError("no kernel for this machine: " + task.why_none)
        with self.lock:
            if self.native_call is None:
                given = [(None, i) + task.specification(entry) for i, entry in enumerate(task.inputs + task.params)]
                self.native_call = task.guarded(vars(self.bare), None, NO_FACTS, given[:self.count], given[self.count:], [], [], len(given), None, no_gradients)
        tensors = tuple(t if t.data_ptr() % task.native.ALIGNMENT == 0 else t.clone() for t in [t.contiguous() for t in tensors])
        return self.checked(self.native_call.run(self.bare, tensors), tensors)

    def checked(self, result, tensors):
        if result.__class__ is str:
            raise RuntimeError("the kernel was called with " + self.task.sentence(result, tensors))
        return result

    def launched(self, *tensors):
        inputs, params, device = tensors[:self.count], tensors[self.count:], tensors[0].device
        state = self.latest
        if state is None or state.device != device or not state.holds(params):
            state = self.state_of(device, params)
        result = state.call.run(state.bare, inputs)
        if result.__class__ is str:
            inputs = tuple(t.contiguous() for t in inputs)
            result = self.checked(state.call.run(state.bare, inputs), tensors)
        if result is None:
            result = state.launcher(*self.arguments(inputs))
            made = apart(result if isinstance(result, (list, tuple)) else [result], tensors)
            result = made[0] if len(made) == 1 else tuple(made)
        with self.lock:
            self.launches += 1
        return result

    def state_of(self, device, params):
        key = (device,) + tuple(map(id, params))
        if self.task.load() is None:
            raise RuntimeError("no kernel for this machine: " + self.task.why_none)
        with self.lock:
            state = self.states.get(key)
            if state is None or not state.holds(params):
                if len(self.states) >= MOST_STATES:
                    self.states.clear()
                state = self.states[key] = State(self, key, params)
            self.latest = state
            return state

    def forget(self, key):
        """A parameter is gone: in whatever thread that was, with whatever locks."""
        self.states.pop(key, None)
        latest = self.latest
        if latest is not None and latest.key == key:
            self.latest = None

    # -- the model -----------------------------------------------------------------------------------------------------------------

    def place(self, model, name):
        path, _, name = name.rpartition(".")
        return self.keeper(model, path, name), name

    def learn(self, model):
        """`model` is one that the kernel is for: its modules and constants are kept, none of its memory."""
        with self.lock:
            if self.empty is None and all(self.place(model, entry["name"])[0] is not None for entry in self.task.params):
                metas = {}

                def meta(tensor):
                    return tensor if tensor.is_meta else metas.setdefault(id(tensor), torch.empty_like(tensor, device="meta"))

                shells = self.task.shells
                kept = shells.kept_in(self.task, self.keeper, model)
                self.empty = shells.shell(model, shells.Slots(kept, [meta(t) for t in kept]), other=meta, kept=True)

    def template(self):
        """The model of which only the tensors are to be filled in."""
        with self.lock:
            if self.empty is None:  # an exported program in another process: nobody has made a model
                arguments = self.task.reference.get_init_inputs()
                with torch.random.fork_rng(devices=[]), torch.inference_mode(False):
                    model = self.task.kind(**arguments) if isinstance(arguments, dict) else self.task.kind(*arguments)
                self.learn(model)
                if self.empty is None:
                    raise RuntimeError("the task's own model is not the one that the kernel was made for")
            return self.empty

    def arguments(self, inputs):
        """Those of forward()."""
        args = [None] * self.task.count
        for position, tensor in zip(self.task.positions, inputs):
            args[position] = tensor
        for position, value in self.scalars:
            args[position] = value
        return args

    # -- gradients -----------------------------------------------------------------------------------------------------------------

    def rule(self, keys, *tensors):
        """Above the kernel where Torch looks for gradients."""
        if torch.autograd.forward_ad._current_level >= 0 and any(torch.autograd.forward_ad.unpack_dual(t).tangent is not None for t in tensors):
            raise NotImplementedError("the operator of a drop-in has no forward-mode gradients")
        if torch.is_grad_enabled() and any([t.requires_grad for t in tensors]):
            return Kept.apply(self, keys, *tensors)
        if (keys & AFTER).highestPriorityTypeId() == self.own_key:  # nobody else has a word in it: no functionalization, no mode
            return self.compute(*tensors)
        return self.below(keys, tensors)

    def below(self, keys, tensors):
        with torch._C._AutoDispatchBelowAutograd():
            return self.call.redispatch(keys & AFTER, *tensors)

    def no_rule(self, keys, gradients, tensors, wanted):
        if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in gradients + tensors):
            raise NotImplementedError("the gradients of a drop-in's operator cannot be differentiated")
        with torch._C._AutoDispatchBelowAutograd():
            return self.backward.redispatch(keys & AFTER, gradients, tensors, wanted)

    def by_reference(self, gradients, tensors, wanted, again=False):
        with torch.autocast(self.device, enabled=False):
            return self.task.shells.gradients_of(self.task, self.keeper, self.template(), self.arguments(tensors[:self.count]), tensors, gradients, wanted, again)

    def reference_gradients(self, gradients, tensors, wanted):
        with torch.inference_mode(False):  # where operators are computed autograd is switched off
            _, found = self.by_reference(gradients, tensors, wanted)
        given = [t for t in gradients if t is not None] + list(tensors)
        return apart([torch.zeros_like(t) if g is None else g for t, g, w in zip(tensors, found, wanted) if w], given)

    def paths(self, needed):
        """(which results depend on the tensors that need gradients, on which tensors a result depends): of the reference, computed without numbers."""
        if needed not in self.known_paths:
            from torch._subclasses.fake_tensor import FakeTensorMode
            from torch.utils._python_dispatch import _disable_current_modes
            found = [getattr(torch, e["dtype"]).is_floating_point for e in self.task.outputs], [True] * len(needed)
            try:
                own = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)  # torch.utils.checkpoint counts what is saved in forward()
                with _disable_current_modes(), torch.inference_mode(False), own, FakeTensorMode(allow_non_fake_inputs=True):
                    tensors = [torch.ones(e["shape"], dtype=getattr(torch, e["dtype"]), device=self.device) for e in self.task.inputs + self.task.params + self.task.outputs]
                    depend, gradients = self.by_reference(tensors[len(needed):], tensors[:len(needed)], needed)
                    found = depend, [g is not None for g in gradients]
            except Exception:  # cannot be said without numbers: zeros may then stand where the reference has none
                pass
            self.known_paths[needed] = found
        return self.known_paths[needed]


def operator_of(task, keeper):
    """None: this Torch has no such operators, or nothing in the task is one (it takes no tensors, or some that no kernel has, or it writes to inputs that may share memory)."""
    if not hasattr(torch.library, "custom_op") or task.foreign or task.made_for.get("writes_inputs") and len(task.inputs) > 1 or not task.inputs + task.params:
        return None
    try:
        return Operator(task, keeper)
    except (ValueError, RuntimeError):  # a constant argument that has no literal; a device that this Torch does not know
        return None


def marked_by_attribute():
    """Does Torch's assume_constant_result() set an attribute and nothing else? Read, not called: it imports torch._dynamo, one to six seconds of a program that compiles nothing."""
    try:
        with open(os.path.join(os.path.dirname(torch.__file__), "_dynamo", "decorators.py"), encoding="utf-8") as file:
            return bool(re.search(r"\ndef assume_constant_result\(fn\).*:.*\n    fn\._dynamo_marked_constant = True.*\n    return fn\n", file.read()))
    except OSError:
        return False


def constant(function):
    """Marked for Dynamo, which would guard all that it reads; as it is where Torch has no such mark."""
    if "torch._dynamo" not in sys.modules and marked_by_attribute():
        function._dynamo_marked_constant = True
        return function
    return getattr(getattr(torch, "compiler", None), "assume_constant_result", lambda unmarked: unmarked)(function)


def told_of(task):
    """What decides about a call in a compiled program, as plain values. "tensors": (position in the arguments or None, path in the model, shape, dtype).
    "arguments": (name, its default in a tuple, where it is a plain value). "surroundings": do they fit while this is traced? Dynamo traces anew where one of them changes."""
    device, threads = task.settings.get("device", "cpu"), task.settings["threads"]
    watched = [one for one in task.constants.ambient(threads, device, task.settings.get("rounds_convolutions", False))
               if one[0] in ("deterministic mode", "default dtype", "number of threads", "functorch", "autocast", "exact convolutions")]
    fit = all(function(*args) == value for _, function, args, value in watched) and torch.autograd.forward_ad._current_level < 0
    tensors = [(position, ()) for position in task.positions] + [(None, tuple(entry["name"].split("."))) for entry in task.params]
    scalars = []
    for position, text in task.scalars if task.operator else []:
        value = task.constants.literal(text)
        kinds = tuple(isinstance(value, kind) for kind in (bool, int, float)) if text not in ("0.0", "-0.0", "nan") and isinstance(value, (bool, int, float, str, type(None))) else ()
        scalars.append((position, text, kinds, value))
    modules, containers, outside = [], [], []  # containers are compared as a whole, for which they must be no constant (differ() of constants.py)
    for m in task.made_for.get("modules", []):
        values = [one for one in task.constants.literals_of(m["values"]) if not one[0].startswith("global ")]
        outside += [(one[0][7:], one[1]) for one in task.constants.literals_of(m["values"]) if one[0].startswith("global ")]
        whole = [(name, value) for name, value in values if isinstance(value, (tuple, list, dict, set))]
        modules.append((tuple(m["path"].split(".")) if m["path"] else (), tuple(one for one in values if one not in whole),
                        tuple((name, len(containers) + i) for i, (name, _) in enumerate(whole)), tuple(m.get("none", ()))))
        containers += [value for _, value in whole]
    task.containers = containers
    arguments = [(name, (p.default,) if isinstance(p.default, (bool, int, float, str, type(None))) else ()) for name, p in list(task.signature.parameters.items())[1:] if p.kind != p.KEYWORD_ONLY]
    return {"count": task.count, "arguments": tuple(arguments), "device": device, "surroundings": fit, "scalars": tuple(scalars),
            "same_in": tuple(task.made_for.get("same_in", [])), "unknown_updates": bool(task.settings["mutated"]) and not task.updates or bool(task.made_for.get("writes_inputs")),
            "updates": tuple((tuple(path.split(".")) if path else (), name, output, add) for (path, _, name), output, add in task.updates), "own_results": task.own_results,
            "globals": tuple(outside), "hooks": tuple(name for name in ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks")
                                                    if name in vars(torch.nn.modules.module)),
            "tensors": tuple(place + (tuple(entry["shape"]), getattr(torch, entry["dtype"])) for place, entry in zip(tensors, task.inputs + task.params)),
            "modules": tuple(modules)}


# -- in a compiled program -----------------------------------------------------------------------------------------------------------

made_of_others = getattr(getattr(torch.utils, "_python_dispatch", None), "is_traceable_wrapper_subclass", lambda tensor: False)  # of torchao's classes, say


def in_a_program(model, args, kwargs):
    """What forward() returns, by the kernel; None where something is not what it was made for. Dynamo follows this."""
    task = model._pragma_task
    told, tensors = task.told(), []
    for name, default in told["arguments"][len(args):told["count"]]:  # the kernel knows the defaults of the others
        if name in kwargs:
            args, kwargs = args + (kwargs[name],), {other: value for other, value in kwargs.items() if other != name}
        elif default:
            args += default
    if kwargs or not fits(model, task, told, args):
        return None
    for position, path, _, _ in told["tensors"]:
        tensors.append(inside(model, path) if path else args[position])
    if not model._pragma_differentiable and torch.is_grad_enabled() and any([t.requires_grad for t in tensors]):
        return None
    for tensor, (_, _, shape, dtype) in zip(tensors, told["tensors"]):
        if made_of_others(tensor) or task.constants.differ(tensor.shape, shape) or tensor.dtype != dtype or tensor.device.type != told["device"] or tensor.device != tensors[0].device:
            return None
    results = task.operator.call(*tensors)
    if not told["updates"]:
        return task.contained(results)
    if not model._pragma_options["keep_buffers"]:
        for path, name, output, add in told["updates"]:
            buffer = getattr(inside(model, path), name)
            buffer.add_(add) if output < 0 else buffer.copy_(results[output])
    return task.contained(results[0] if told["own_results"] == 1 else results[:told["own_results"]])


def inside(model, path):
    for part in path:
        model = getattr(model, part, None)
    return model


def fits(model, task, told, args):
    """difference() and the surroundings in words that Dynamo can follow: each value read of the model is a guard of the compiled program."""
    differ = task.constants.differ
    if len(args) != told["count"] or not told["surroundings"] or told["unknown_updates"] and not model._pragma_options["keep_buffers"]:
        return False
    for position, text, kinds, value in told["scalars"]:  # Dynamo may have made a number one of many, which has no repr()
        given = args[position]
        if kinds:
            if differ((isinstance(given, bool), isinstance(given, int), isinstance(given, float)), kinds) or given != value:
                return False
        elif repr(given) != text:
            return False
    for names in model._pragma_ties:
        tied = [inside(model, name.split(".")) for name in names]
        if any([one is not tied[0] for one in tied]):
            return False
    if any([len(getattr(torch.nn.modules.module, name)) for name in told["hooks"]] + [getattr(task.reference, name, NOTHING) != value for name, value in told["globals"]]):
        return False
    for path, name, value, fields in model._pragma_objects["same"]:
        if getattr(inside(model, path), name, NOTHING) is not value or any([getattr(value, field) != known for field, known in fields]):
            return False
    for path, name, value in model._pragma_objects["ranges"]:  # of these and of partials Dynamo makes new ones
        if getattr(inside(model, path), name, NOTHING) != value:
            return False
    for path, name, length, items, tensors in model._pragma_objects["mixed"]:
        value = getattr(inside(model, path), name, ())
        if len(value) != length or any([value[key] != known for key, known in items] + [value[key] is not known or inside(model, place) is not known for key, known, place in tensors]):
            return False
    for path, kind in model._pragma_objects["kinds"]:
        if type(inside(model, path)) is not kind:
            return False
    for path, name, function in model._pragma_objects["methods"]:
        if getattr(type(inside(model, path)) if path or name != "forward" else task.reference.Model, name, NOTHING) is not function:
            return False
    for path, name in model._pragma_objects["absent"]:
        if hasattr(inside(model, path), name):
            return False
    for name, value in model._pragma_objects["globals"]:
        if getattr(task.reference, name, NOTHING) is not value:
            return False
    for path, name, function, given in model._pragma_objects["partials"]:
        value = getattr(inside(model, path), name, NOTHING)
        if type(value) is not functools.partial or value.func is not function or differ(value.args + tuple(value.keywords.items()), given):
            return False
    any_mode = told["same_in"] and any([all([module.training == same for module in model.modules()]) for same in told["same_in"]])
    for path, values, containers, none in told["modules"]:
        module = inside(model, path)
        if path and task.constants.has_own_forward(module):
            return False
        if path and len(module._forward_hooks) + len(module._forward_pre_hooks) + len(module._backward_hooks) + len(getattr(module, "_backward_pre_hooks", ())):
            return False
        for name, value in values:
            if not (any_mode and name == "training") and getattr(module, name, NOTHING) != value:
                return False
        for name, number in containers:
            if getattr(module, name, NOTHING) != task.containers[number]:
                return False
        if any([getattr(module, name, None) is not None for name in none]):
            return False
    return True
