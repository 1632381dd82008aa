"""What every drop-in of PRAGMA does: looks whether all that its kernel was made for holds, calls the kernel, and computes with Torch where
something does not. model_new.py beside it says for which task; nothing here is changed for one. See docs/drop_in.md of PRAGMA."""
import collections
import inspect
import json
import threading
import warnings

import torch

KERNEL_TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
                torch.bool]  # in the order of enum pragma_dtype
SMALL_RESULT = 1 << 20  # elements
EMPTY = getattr(getattr(getattr(torch._C, "_dynamo", None), "guards", None), "_empty_strided_cpu", None)  # what Inductor's programs allocate with

SENTENCES = {
    "arguments": "forward() was called in another way",
    "type": "a tensor of a class of its own",
    "device": "a tensor on another device",
    "dtype": "a tensor of another type",
    "shape": "a tensor of another shape",
    "strides": "a tensor that is not contiguous",
    "storage": "a tensor whose memory cannot be read (functorch, a lazy sign, a sparse one)",
    "alignment": "a parameter that does not start at a multiple of 64 bytes",
    "scalar": "another constant argument of forward()",
    "foreign": "a parameter of a type that no kernel has is another one, or gradients are asked for it",
    "kept layers": "gradients of a model with a function that keeps a layer (self.act = lambda x: self.layer(x))",
    "shared": "inputs that share memory, of a forward() that writes to its inputs",
    "updates": "forward() updates buffers, which the kernel does not; ModelNew(..., keep_buffers=True) lets them keep their values",
    "inputs": "forward() writes to its arguments, which the kernel does not; ModelNew(..., keep_buffers=True) leaves them as they are",
    "class": "a class derived from ModelNew has methods of its own in place of Model's",
    "ties": "layers that shared a tensor when the model was made have one each",
    "shared buffers": "two buffers that forward() updates share their memory",
    "hooks": "a module inside has hooks, which a kernel would leave out",
    "kernel": "no kernel for this machine",
    "dispatch mode": "a Torch dispatch mode is active",
    "function mode": "a Torch function mode is active",
    "exact convolutions": "convolutions are to be exact here (torch.backends.cudnn.allow_tf32), and the kernel rounds their factors as Torch does by default",
    "tracing": "torch.jit.trace is recording",
}


class Task:
    """One drop-in: its settings, the reference, the kernel. One for a process, shared by all models."""

    def __init__(self, folder, settings, reference, load, launcher=None):
        """`load`: gives a module of the drop-in's folder by its name. `launcher`: for a device, where Python launches the kernels: a function of a model and its Call that gives a function of
        the inputs."""
        self.folder, self.settings, self.reference, self.launcher, self.kind = folder, settings, reference, launcher, None  # the kind of its models
        self.constants, self.watch, self.native, self.shells, self.operators, self.recording = map(load, ("constants", "pragma_watch", "pragma_native", "pragma_shell", "pragma_operator", "pragma_gradients"))
        self.inputs, self.params, self.outputs = settings["inputs"], settings["params"], settings["outputs"]
        self.updates = [(u["name"].rpartition("."), u["output"], u["add"]) for u in settings["updates"]]
        self.updated = {u["name"] for u in settings["updates"]}
        self.foreign = settings.get("foreign", [])  # names of tensors that only Torch's steps between kernels read
        self.own_results = len(self.outputs) - sum(output >= 0 for _, output, _ in self.updates)  # what forward() returns
        self.scalars = [(int(position), text) for position, text in (s.split("=", 1) for s in settings["scalars"])]
        self.count = len(self.inputs) + len(self.scalars)
        taken = {position for position, _ in self.scalars}
        self.positions = [i for i in range(self.count) if i not in taken]
        self.signature = DropIn.forward.__signature__ = inspect.signature(reference.Model.forward)  # for who asks it of ModelNew.forward: this file is loaded for each drop-in
        DropIn.forward.__wrapped__ = reference.Model.forward  # and of its arguments' names (torch.fx)
        self.keywords = {name: p.default for name, p in self.signature.parameters.items() if p.kind == p.KEYWORD_ONLY}
        self.defaults = [p.default for p in list(self.signature.parameters.values())[1 + self.count:] if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.made_for = settings.get("constants") or {}
        self.returns = self.made_for.get("returns") or ("tensor" if self.own_results == 1 else "tuple")
        self.apart = self.constants.apart(self.positions) if self.made_for.get("writes_inputs") else lambda run: run
        self.lock = threading.Lock()
        self.kernel, self.why_none, self.call = None, "", None
        self.operator = self.operators.operator_of(self, self.constants.keeper)
        self.told = self.operators.constant(lambda: self.operators.told_of(self))

    def load(self):
        """The kernel and the module that calls it: made on the first call, once."""
        with self.lock:
            if self.kernel is None and not self.why_none:
                try:
                    self.call = self.native.caller(self.folder)
                    self.kernel = self.launcher or self.native.loaded(self.call, self.native.kernel_object(self.folder, self.settings))
                except (RuntimeError, OSError, ImportError) as e:
                    self.why_none = str(e)
        return self.kernel

    def sentence(self, cause, tensors):
        return "%s: %s" % (SENTENCES.get(cause, cause), ", ".join(map(self.native.describe, tensors)))

    def specification(self, entry):
        dtype = getattr(torch, entry["dtype"])
        return dtype, KERNEL_TYPES.index(dtype), tuple(entry["shape"]), torch.empty(0, dtype=dtype)

    def results(self):
        made = []
        if self.launcher:
            return made
        for entry in self.outputs:
            dtype, number, shape, _ = self.specification(entry)
            if EMPTY:
                made.append((EMPTY, (shape, torch.empty(shape, device="meta").stride(), dtype), number, shape))
            else:  # cheapest from one like it, of which a small one is kept
                like = torch.empty(shape, dtype=dtype)
                made.append((torch.empty_like, (like,), number, shape) if like.numel() <= SMALL_RESULT or dtype is not torch.float32
                            else (torch.empty, shape, number, shape))  # of the default type, which is a guard
        return made

    def guarded(self, root, verdict, facts, inputs, params, state, scalars, count, device=None, with_gradients=torch.is_grad_enabled):
        functions = (torch.Tensor.data_ptr, torch.Tensor.is_contiguous, torch.Tensor.is_neg, with_gradients)
        kernel = None if self.launcher else self.kernel
        return self.call.Call(kernel, self.settings["threads"], count, functions, (torch.Tensor, torch.nn.Parameter), device, root, verdict,
                              facts["same"], facts["equal"], facts["sizes"], facts["classes"], state, inputs, params, scalars, self.results())

    def difference(self, model):
        """What about this model is not what the kernel was made for; empty where nothing is. A part's model is the whole's own, which the whole's guards stand for."""
        if "_pragma_part" in vars(model):
            return ""
        wanted = self.made_for.get("constructor", {})
        for name, text in model._pragma_constructor.items():
            if name in wanted and wanted[name] != text:
                return "the constructor's argument %s is %s; the kernel is made for %s" % (name, text, wanted[name])
        wanted = {module["path"]: module for module in self.made_for.get("modules", [])}
        found = {module["path"]: module for module in self.constants.constants_of(model)}
        any_mode = self.other_mode_fits([module.training for module in model.modules()])
        if list(found) != list(wanted):
            other = sorted(set(found) ^ set(wanted))
            return "the model has other modules than the task's: %s" % ", ".join(other[:3] or ["in another order"])
        for path, now in found.items():
            place = path + "." if path else ""
            if now["class"] != wanted[path]["class"] and not path:
                return "methods of the model's class are other ones than the task's"
            if now["class"] != wanted[path]["class"]:
                return "%s is a %s; the kernel is made for %s" % (path, now["class"], wanted[path]["class"])
            if path == "" and "forward" in vars(model) or "forward" in now["values"]:
                return "%sforward was replaced" % place
            given = sorted(set(wanted[path].get("none", [])) - set(now["none"]) | set(now["tensors"]) - set(wanted[path].get("tensors", now["tensors"])))
            if given:
                return "%s%s is there; the kernel is made for none" % (place, given[0])
            library = now["class"].startswith("torch.")  # whose next version may keep other things
            names = set(now["values"]) & set(wanted[path]["values"]) if library else set(now["values"]) | set(wanted[path]["values"])
            names -= {"training"} if any_mode else set()
            for name in sorted(names):
                values = now["values"].get(name, "not there"), wanted[path]["values"].get(name, "not there")
                if values[0] != values[1] and name == "training":
                    return "%sis in %s mode; the kernel is made for the other, in which forward() does something else (a task whose model calls " \
                           "self.%s() gets a kernel for this one)" % ((path or "the model") + " ", *(("training", "train") if values[0] == "True" else ("evaluation", "eval")))
                if values[0] != values[1]:
                    return "%s%s is %s; the kernel is made for %s" % ((place, name) + values)
        return ""

    def other_mode_fits(self, modes):
        """Are all modules in one mode, training or evaluation, in which forward() was seen to do the same as in the one of the trace?"""
        return any(all(mode == same for mode in modes) for same in self.made_for.get("same_in", []))

    def bind(self, model, args):
        """A Call for the model as it is now, with a verdict where it is not the kernel's model: it holds until the model changes."""
        facts, missing = self.watch.look_at(model), ""
        if self.load() is None:
            return None
        params = []
        for entry in self.params:
            path, _, name = entry["name"].rpartition(".")
            holder = self.constants.keeper(model, path, name)
            if holder is None:
                missing = "module: there is no %s" % entry["name"]
                break
            params.append((holder, name) + self.specification(entry))
        why = self.difference(model)
        verdict = missing or ("module: " + why if why else None)
        if verdict is None and self.unknown_updates(model):
            verdict = "inputs" if self.made_for.get("writes_inputs") else "updates"
        if verdict is None and self.has_other_methods(type(model)):
            verdict = "class"
        for names in vars(model).get("_pragma_ties", ()):
            kept = [(self.constants.keeper(model, *name.rpartition(".")[::2]), name.rpartition(".")[2]) for name in names]
            tied = [(table, name, table.get(name)) for table, name in kept if table is not None]
            facts["same"] += tied
            if len(tied) < len(names) or any(one[2] is not tied[0][2] for one in tied):
                verdict = verdict or "ties"
        updates = [] if verdict or model._pragma_options["keep_buffers"] else self.updates
        written = [(self.constants.keeper(model, path, name), name) for (path, _, name), _, _ in updates]
        facts["same"] += [(table, name, table[name]) for table, name in written]
        if self.shells.share_memory([table[name] for table, name in written]):  # the second update would not see the first
            verdict = "shared buffers"
        verdict = "hooks" if verdict is None and any(self.watch.hook_tables(model)) else verdict
        inputs = [(None, position) + self.specification(entry) for position, entry in zip(self.positions, self.inputs)]
        device = self.device_of(model, args) if self.launcher else None
        verdict = verdict or ("device" if device is not None and device.type != self.settings["device"] else None)
        surroundings = self.constants.ambient(self.settings["threads"], self.settings.get("device", "cpu"), self.settings.get("rounds_convolutions", False)) + [("rebind",) + one for one in facts["asked"]]
        return self.guarded(vars(model), verdict, facts, inputs, params, surroundings, list(self.scalars), self.count, device)

    def unknown_updates(self, model):
        return (bool(self.settings["mutated"]) and not self.updates or self.made_for.get("writes_inputs", False)) and not model._pragma_options["keep_buffers"]

    def has_other_methods(self, kind):
        """What a derived class replaces of Model's beside forward() the kernel would leave out; a __call__() of Model's is in the kernel."""
        between = kind.__mro__[:kind.__mro__.index(self.kind) + 1] if self.kind in kind.__mro__ else ()
        own = [vars(one) for one in self.reference.Model.__mro__ if one.__module__ == self.reference.Model.__module__]
        return any("__call__" in table for table in own) or any(name in table for one in between for name in vars(one) for table in own if not name.startswith("__") and name != "forward")

    def contained(self, results):
        """As forward() returns it: `results` is a tensor, or a tuple of several."""
        if self.returns == "tensor" or self.returns == "tuple" and self.own_results > 1:
            return results
        results = results if isinstance(results, tuple) else (results,)
        return list(results) if self.returns == "list" else results if self.returns == "tuple" else getattr(torch.return_types, self.returns, tuple)(results)

    def finishing(self, model, run):
        """run(model, args) that leaves the new values of buffers where forward() would, and gives what it returns."""
        if not self.updates and (self.returns == "tensor" or self.returns == "tuple" and self.own_results > 1):
            return run
        kept, targets, counters = model._pragma_options["keep_buffers"], [], {}
        for (path, _, name), output, add in self.updates:
            holder = self.constants.keeper(model, path, name)
            targets.append((holder, name, output)) if output >= 0 else counters.setdefault(add, []).append((holder, name))

        def run_and_update(model, args):
            results = run(model, args)
            if results is None:
                results = model._pragma_launch(args)
            if results.__class__ is str:
                return results
            if self.updates and not kept:
                with torch.no_grad():
                    self.shells.write_all([holder[name] for holder, name, _ in targets], [results[output] for _, _, output in targets])
                    for add, places in counters.items():
                        torch._foreach_add_([holder[name] for holder, name in places], add)
            if self.updates:
                results = results[0] if self.own_results == 1 else results[:self.own_results]
            return self.contained(results)
        return run_and_update

    def device_of(self, model, args):
        """Where this model computes: the device of its first tensor."""
        tensors = [args[i] for i in self.positions if i < len(args)]
        if self.params:
            path, _, name = self.params[0]["name"].rpartition(".")
            holder = self.constants.keeper(model, path, name)
            tensors = [holder[name]] if holder is not None else []
        return next((t.device for t in tensors if isinstance(t, torch.Tensor)), torch.device("cpu"))


class Session:
    """What one model has beside its tensors: the Calls that are made for it, one for each device it was called on, and what was counted. Never copied, never saved."""

    def __init__(self):
        self.call, self.run, self.direct, self.hits_before = None, None, None, 0
        self.recorded = None  # how it is called for gradients while this Call holds (pragma_gradients.py)
        self.calls = {}  # by device: [Call, its launcher or None]
        self.fallbacks, self.warned, self.lock = collections.Counter(), set(), threading.Lock()

    def bound(self, call, hooked, device=None, changed=True, wrap=None):
        """`hooked`: Module.__call__ and forward() have something to do. `changed`: what was made before is for another state of the model. `wrap`: what makes
        the function that is called of the Call's."""
        with self.lock:
            if changed:
                self.hits_before += sum(made[0].hits() for made in self.calls.values())
                self.calls = {}
            if call is not None:
                self.calls.setdefault(device, [call, None])
            self.recorded = None
            self.call, self.run = call, wrap(call.run) if call is not None and wrap else call.run if call is not None else None
            self.direct = None if hooked else self.run

    def hits(self):
        with self.lock:
            return self.hits_before + sum(made[0].hits() for made in self.calls.values())

    def launcher(self, make):
        """That of the current Call, made by `make(call)` where there is none yet."""
        with self.lock:
            made = next((made for made in self.calls.values() if made[0] is self.call), None)
            if made is None:  # another thread found the model changed
                return make(self.call)
            made[1] = made[1] or make(self.call)
            return made[1]

    def told(self):
        made = next((made for made in list(self.calls.values()) if made[0] is self.call), None)
        return made[1].told() if made and made[1] else {}


_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)


class DropIn:
    """ModelNew is this before the task's Model: `class ModelNew(DropIn, Model)` with `_pragma_task`."""

    def __init__(self, *args, **kwargs):
        task = self._pragma_task
        own = inspect.signature(task.reference.Model.__init__).parameters  # an argument of Model's of that name is Model's
        options = {name: kwargs.pop(name) if name in kwargs and name not in own else False for name in ("strict", "keep_buffers", "graph")}
        super().__init__(*args, **kwargs)
        self.__dict__["_pragma_options"] = options
        self.__dict__["_pragma_constructor"] = task.constants.constructor_of(task.reference.Model.__init__, args, kwargs)
        self.__dict__["_pragma_task"] = task  # the class has it as well, where torch.export did not look before 2.7
        self.__dict__["_pragma_arguments"], self.__dict__["_pragma_ties"] = (args, kwargs) if task.launcher else None, task.constants.ties_of(self)
        # torch.compile cannot look at all of it, nor load what is not there
        self.__dict__["_pragma_graphs"] = task.operator is not None and task.load() is not None and task.difference(self) == "" and not task.has_other_methods(type(self))
        self.__dict__["_pragma_objects"] = task.watch.objects_of(self)
        self.__dict__["_pragma_graphs"] &= self._pragma_objects is not None
        self.__dict__["_pragma_differentiable"] = self._pragma_graphs and not task.settings["mutated"] and not task.watch.keeps_layers(self)
        if self._pragma_graphs:
            task.operator.learn(self)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "_pragma_task" in vars(cls):
            cls._pragma_task.kind = cls

    def __getstate__(self):
        theirs = getattr(super(), "__getstate__", None)  # Model's own, or Python's from 3.11 on
        state = theirs() if theirs else vars(self)
        if not isinstance(state, dict):
            return state
        state = dict(state)
        for own in ("_pragma_session", "_pragma_task"):
            state.pop(own, None)
        return state

    def __prepare_scriptable__(self):
        """torch.jit.script() reads the source of forward(): it gets Model, with this one's tensors and without the kernel."""
        return self._pragma_task.shells.without_kernel(self._pragma_task, self)

    def stats(self):
        """{"calls", "hits": computed by the kernel, "fallbacks": {cause: computed by Torch}} since the model was made; on a device and in parts
        "launches": how, too. "compiled": how often compiled programs called the kernel, for all models of the task."""
        session = self._pragma_own()
        hits, fallbacks = session.hits(), dict(session.fallbacks)
        found = {"calls": hits + sum(fallbacks.values()), "hits": hits, "fallbacks": fallbacks}
        if self._pragma_task.operator is not None:
            found["compiled"] = self._pragma_task.operator.calls()
        found.update(session.told())
        return found

    def refresh(self):
        """To be called after parameters were written to behind Torch's version count (`p.data.clamp_()`): on a device, kernels may have laid them out
        anew. Changes in place (`p.mul_()`, an optimizer's step), load_state_dict() and `p.data = ...` are seen without."""
        self._pragma_own().bound(None, True)

    def __call__(self, *args, **kwargs):
        """What Module.__call__ does beside forward() is for hooks and recorders: where there are none its cost is left out."""
        if not kwargs and not _compiling():
            session = self.__dict__.get("_pragma_session")
            if session is not None and session.direct is not None and type(self).forward is own_forward:
                result = session.direct(self, args)
                if result is None:
                    result = self._pragma_launch(args)
                if result.__class__ is not str:
                    return result
                if result == "gradients" and session.recorded is not None:
                    result = session.recorded(self, args)
                    if result.__class__ is not str:
                        return result
        return super().__call__(*args, **kwargs)

    def forward(self, *args, **kwargs):
        if _compiling():
            result = self._pragma_task.operators.in_a_program(self, args, kwargs) if self._pragma_graphs else None
            return super().forward(*args, **kwargs) if result is None else result
        session = self.__dict__.get("_pragma_session")
        if session is not None and session.run is not None and not kwargs:
            result = session.run(self, args)
            if result is None:
                result = self._pragma_launch(args)
            if result.__class__ is not str:
                return result
        return self._pragma_carefully(args, kwargs)

    def _pragma_launch(self, args):
        return self.__dict__["_pragma_session"].launcher(lambda call: self._pragma_task.launcher(self, call))(*args)

    def _pragma_own(self):
        session = self.__dict__.get("_pragma_session")
        if session is None:
            session = self.__dict__.setdefault("_pragma_session", Session())
        return session

    def _pragma_run(self, args):
        """The results, or the guard that failed, after looking at the model again where it changed."""
        session, task = self._pragma_own(), self._pragma_task
        moved = not task.launcher
        for _ in range(4):
            result = "rebind" if session.run is None else session.run(self, args)
            if result.__class__ is str and result == "rebind":
                call = task.bind(self, args)
                session.bound(call, any(task.watch.own_hooks(self)), task.device_of(self, args) if task.launcher else None, wrap=lambda run: task.finishing(self, task.apart(run)))
                if call is None:
                    return "kernel"
                continue
            if result.__class__ is str and result == "device" and not moved:  # the model, or with none of its own the inputs, may be on another one now
                moved, device = True, task.device_of(self, args)
                known = session.calls.get(device)
                call = known[0] if known else task.bind(self, args)
                session.bound(call, any(task.watch.own_hooks(self)), device, changed=False, wrap=lambda run: task.finishing(self, task.apart(run)))
                continue
            if result is None:
                return self._pragma_launch(args)
            if result.__class__ is str and result == "alignment":  # a view into a larger tensor may start anywhere
                moved = tuple(a.clone() if isinstance(a, torch.Tensor) and a.data_ptr() % task.native.ALIGNMENT else a for a in args)
                if any(a is not b for a, b in zip(args, moved)):
                    args = moved
                    continue
            return result
        return "module: it changes while it is called" if result == "rebind" else result

    def _pragma_recorded(self, args):
        """As _pragma_run(), and with gradients where they are asked for."""
        for _ in range(3):  # another thread may change the model
            result = self._pragma_run(args)
            if result.__class__ is not str or result != "gradients":
                return result
            session = self._pragma_own()
            recorded = session.recorded
            if recorded is None or recorded.run is not session.run:  # of another state of the model
                recorded = session.recorded = self._pragma_task.recording.Recorded(self, session)
            result = recorded(self, args)
            if result.__class__ is not str or result != "rebind":
                return result
        return "module: it changes while it is called"

    def _pragma_carefully(self, args, kwargs):
        task = self._pragma_task
        given, other = (args, kwargs), False
        try:
            if kwargs or len(args) != task.count:
                bound = task.signature.bind(self, *args, **kwargs)
                bound.apply_defaults()
                args = bound.args[1:]
                if all(a is b for a, b in zip(args[task.count:], task.defaults)):  # they are in the kernel
                    args = args[:task.count]
                other = any(name not in task.keywords or value is not task.keywords[name] for name, value in bound.kwargs.items())
            result = "arguments" if other else self._pragma_recorded(args)
        except TypeError:  # forward() says it better
            result = "arguments"
        if result.__class__ is not str:
            return result
        self._pragma_fell(result, args)
        return super().forward(*given[0], **given[1])

    def _pragma_fell(self, cause, args):
        session, task = self._pragma_own(), self._pragma_task
        kind, _, detail = cause.partition(": ")
        with session.lock:
            session.fallbacks[kind] += 1
            first = kind not in session.warned
            session.warned.add(kind)
        if not first and not self._pragma_options["strict"]:
            return
        text = detail or SENTENCES.get(kind, kind + " is not what it was when the kernel was made")
        if kind == "kernel":
            text += ": " + task.why_none
        if kind == "number of threads":
            text = "Torch uses %d threads here and the kernel was made for %d (torch.set_num_threads)" % (torch.get_num_threads(), task.settings["threads"])
        if kind in ("type", "device", "dtype", "shape", "strides", "storage", "scalar", "arguments"):
            text += "; called with " + ", ".join(map(task.native.describe, args)) + "; made for " + ", ".join(
                ["%s %s" % (e["dtype"], e["shape"]) for e in task.inputs] + ["argument %d = %s" % s for s in task.scalars])
        if self._pragma_options["strict"]:
            raise RuntimeError("ModelNew(strict=True): %s" % text)
        warnings.warn("ModelNew computes with Torch, not with its kernel: %s. Said once; stats() counts." % text, stacklevel=5)


own_forward = DropIn.forward  # a derived class may have another one, or a program may put one in its place
