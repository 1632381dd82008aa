"""What a task looks like: shapes, dtypes, graph, cost. Found on fake tensors, before anything large is allocated.

Used by reference.py for `describe` and as the first step of `load`, and by trace.py.
"""
import inspect
import os
import time

import torch

import constants
import cost
import traceable
from taskfile import TASK_SEED, TaskError, explain, flatten_outputs, kernel_state, state_tensors, swapped_state
from trace import convert, fake_mode, GraphError, spec, state_entries, trace

TOLERANCES = {"float16": 4e-3, "bfloat16": 2e-2}  # base/defaults.hpp
PHYSICAL_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
LONG_TRACE = 10  # seconds: the other mode is not traced then, so that loading takes no longer than it did


def nbytes(tensor):
    return tensor.numel() * tensor.element_size()


def human(count):
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return "%.2f %s" % (count, unit) if unit != "bytes" else "%d bytes" % count
        count /= 1024.0


def refuse_large(path, parts, limit):
    total = sum(size for _, size in parts)
    if total > limit:
        what = " + ".join("%s %s" % (name, human(size)) for name, size in parts if size)
        raise TaskError("%s: the task needs %s (%s); the limit is %s" % (path, human(total), what, human(limit)),
                        "make the shapes smaller: in the file, or with \"constants\" in a sidecar beside it",
                        "task_invalid")


def argument_names(model, count):
    names = []
    try:
        for p in inspect.signature(model.forward).parameters.values():
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
    except (TypeError, ValueError):
        pass
    return (names + ["arg%d" % i for i in range(len(names), count)])[:count]


def input_specs(model, inputs):
    names = argument_names(model, len(inputs))
    return [spec(n, v) for n, v in zip(names, inputs) if isinstance(v, torch.Tensor)]


def check_limits(task, model, inputs, limit):
    for i, value in enumerate(inputs):
        if isinstance(value, torch.Tensor) and value.layout != torch.strided:
            raise TaskError("%s: get_inputs() returns a sparse tensor (%s) at position %d" % (task.path, value.layout, i),
                            "give forward() dense tensors", "torch_only")
    if not any(isinstance(value, torch.Tensor) for value in inputs):
        raise TaskError("%s: get_inputs() returns no tensor: forward() has nothing to compute from, and a kernel that knows its one answer "
                        "cannot be told from one that computes it" % task.path, "give forward() at least one tensor argument")
    refuse_large(task.path, [("inputs", sum(nbytes(v) for v in inputs if isinstance(v, torch.Tensor))),
                             ("parameters", sum(nbytes(t) for _, t in state_tensors(model)))], limit)


def largest_intermediate(graph_module):
    """Bytes of the largest tensor that forward() allocates; views allocate nothing."""
    most = 0
    for node in graph_module.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is None or any(a.alias_info is not None for a in schema.arguments):
            continue
        value = node.meta.get("val")
        for v in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(v, torch.Tensor):
                most = max(most, nbytes(v))
    return most


def without_lines(graph):
    """A graph without the places in the task's file that its nodes come from."""
    return dict(graph, nodes=[{key: value for key, value in node.items() if key != "line"} for node in graph["nodes"]])


class WritesToModel(TaskError):
    """No graph says it, and no other way of looking finds anything else."""


class Look:
    """The outcome of one look at the task: specs, and the graph or why there is none."""

    def __init__(self, task, module, model, inputs, limit, largest_limit):
        check_limits(task, model, inputs, limit)
        self.task, self.module, self.limit, self.largest_limit = task, module, limit, largest_limit
        self.training = model.training
        self.state = sum(nbytes(t) for _, t in state_tensors(model))
        self.params = [spec(name, t) for name, t in kernel_state(model)]
        self.entries = state_entries(model)
        self.inputs = input_specs(model, inputs)
        self.input_bytes = sum(nbytes(v) for v in inputs if isinstance(v, torch.Tensor))
        self.scalars = ["%d=%r" % (i, v) for i, v in enumerate(inputs) if not isinstance(v, torch.Tensor)]
        self.shared = constants.share_memory([v for v in inputs if isinstance(v, torch.Tensor)])
        self.strided = [i for i, v in enumerate(inputs) if isinstance(v, torch.Tensor) and not v.is_contiguous()]
        self.constants = self._constants(model)
        self.graph, self.graph_error, self.outputs, self.traced, self.updates = None, "", None, None, []
        self.other_modes = {}  # {training: the graph of forward() with all modules in that mode}
        self.largest, self.seconds = 0, 0.0

    def _constants(self, model):
        arguments = self.task.call("get_init_inputs()", self.module.get_init_inputs)
        args, kwargs = ((), arguments) if isinstance(arguments, dict) else (arguments, {})
        return {"constructor": constants.constructor_of(self.module.Model.__init__, args, kwargs), "modules": constants.constants_of(model)}

    def settle_updates(self, model):
        """Buffers that forward() updates, whose new values become outputs after forward()'s own: [{"name", "output": index} or {"name", "add": integer}], all of them or none."""
        updates = self.graph["updates"]
        if any(getattr(m, "momentum", 0) is None for m in model.modules()):  # a cumulative average: the factor is another one on each call
            updates = None
        for update in updates or []:
            entry = {"name": self.params[int(update["param"][1:])]["name"]}
            if "add" in update:
                entry["add"] = update["add"]
            else:
                entry["output"] = len(self.outputs)
                self.outputs.append(dict(self.params[int(update["param"][1:])], name="out%d" % len(self.outputs)))
                self.graph["outputs"].append(update["ref"])
            self.updates.append(entry)

    def see_outputs(self, outputs):
        refuse_large(self.task.path, [("inputs", self.input_bytes), ("parameters", self.state),
                                      ("outputs", sum(nbytes(o) for o in outputs))], self.limit)
        self.outputs = [spec("out%d" % i, o) for i, o in enumerate(outputs)]

    def trace(self, model, inputs):
        start, kept = time.monotonic(), [(module, dict(vars(module))) for module in model.modules()]
        self.traced, outputs = trace(model, inputs, self.task)
        self.seconds = time.monotonic() - start
        if self.task.written:
            self.refuse_kept(model, inputs)
            for module, own in kept:  # as before the first call, for what is traced next
                vars(module).clear()
                vars(module).update(own)
        self.largest = largest_intermediate(self.traced)
        refuse_large(self.task.path, [("the largest intermediate tensor", self.largest)], self.largest_limit)
        self.see_outputs(outputs)
        self.constants["returns"] = self.task.returned

    def refuse_kept(self, model, inputs):
        """What forward() keeps beside buffers on each call (self.weights = ...) a kernel would not, and what it reads again another call would have left. What the first call alone makes
        (a mask, a table) is looked for once more: that may stay as it is."""
        state = [tensor for _, tensor in state_tensors(model)]
        with torch.no_grad(), swapped_state(model, state, [t.detach() for t in state]):  # which puts the model's own back at its end, so that a first call is made here, too
            self.task.call("forward()", lambda: model(*inputs))
            before = constants.marks_of(model)
            self.task.call("forward()", lambda: model(*inputs))
            written = [place for place in constants.written_since(model, before) if place in self.task.written]
        if written:
            raise WritesToModel("%s: forward() writes to self.%s on each call; a program that calls a kernel would find the old values there" % (self.task.path, ", self.".join(written[:3])),
                                "return what is wanted of them, or leave that out of forward(): then a kernel can be made", "torch_only")

    def trace_modes(self, model, inputs):
        """Programs call eval() and train() on a model: does forward() read it? Modules inside may be in another mode than the model."""
        if self.seconds > LONG_TRACE:
            return
        modes = {m.training for m in model.modules()}
        for training in (True, False):
            if modes != {training}:
                try:
                    self.task.call("train(%s)" % training, lambda: model.train(training))
                    self.other_modes[training] = trace(model, inputs, self.task)[0]
                except TaskError:  # that mode is Torch's, then
                    pass

    def convert(self, model):
        """Outside the fake mode: the values of constants are read."""
        try:
            self.graph, self.graph_error = convert(self.traced, self.entries), ""
        except GraphError as e:
            self.graph_error = str(e)
            return self
        self.constants["same_in"] = [training for training, traced in self.other_modes.items() if self._same(traced)]
        self.settle_updates(model)
        return self

    def _same(self, traced):
        try:
            return without_lines(convert(traced, self.entries)) == without_lines(self.graph)
        except (GraphError, TaskError):  # what cannot be said of the other mode's graph is no fault of the task's
            return False


def prepare(task, limits):
    module = task.execute()
    model = task.make_model(module)
    inputs = task.make_inputs(module, TASK_SEED)
    return Look(task, module, model, inputs, *limits), model, inputs


def look_fake(task, limits):
    """On fake tensors: nothing is allocated or computed."""
    with fake_mode(), traceable.parameters():
        found, model, inputs = prepare(task, limits)
        found.trace(model, inputs)
        found.trace_modes(model, inputs)
    return found.convert(model)


def look_real(task, limits):
    """On real tensors: values may decide what forward() does."""
    found, model, inputs = prepare(task, limits)
    with torch.no_grad():
        found.see_outputs(flatten_outputs(task.call("forward()", lambda: model(*inputs)), task.path))
    try:
        found.trace(model, inputs)
    except TaskError as e:
        if isinstance(e, WritesToModel):
            raise
        found.graph_error = str(e).replace(task.path + ": ", "")
        return found
    found.trace_modes(model, inputs)
    return found.convert(model)


def with_known_constants(found):
    """Tensors in lists have values only in a model that was really made."""
    if constants.UNSEEN in repr(found.constants["modules"]):
        made = found.task.make_model(found.task.execute())
        found.constants["modules"] = constants.constants_of(made)
    return found


def look(task, limits):
    found, first = None, ""
    for way in (look_fake, look_real):
        try:
            now = way(task, limits)
        except TaskError as e:
            # A limit is a limit; else values decide something, or the task is wrong, which running it says in its own words.
            if "; the limit is " in str(e) or isinstance(e, WritesToModel) or (way is look_real and found is None):
                raise
            continue
        if now.graph is not None:
            return with_known_constants(now)
        found, first = found or now, first or now.graph_error
    found.graph_error = first
    return with_known_constants(found)


def half_inside(graph, outputs):
    """The half type that wide results were computed in, as under autocast: the coarser one where there are both. A cast alone rounds what it is given, exactly;
    an operator whose result is held in a half type rounds what it computes."""
    if graph is None or any(o["dtype"] in TOLERANCES for o in outputs):
        return None
    computed = set()
    for node in graph["nodes"]:
        if cost.base_name(node["op"]) not in cost.MOVE:
            computed.update(node["dtypes"] if "dtypes" in node else [node["dtype"]])
    return max(computed & set(TOLERANCES), key=TOLERANCES.get, default=None)


def describe(task, limit=PHYSICAL_MEMORY, device_limit=None):
    """The task as kernels/task.hpp has it (graph as an object), and the bytes of the largest tensor that one call allocates (0: not known). Inputs,
    parameters and outputs together may take `limit` bytes, those of the host; on a device no more than it has, which also bounds each tensor of a call."""
    found = look(task, (limit, limit) if device_limit is None else (min(limit, device_limit), device_limit))
    sidecar = task.sidecar
    notes = list(sidecar.get("notes", []))
    if sidecar:
        notes.append("sidecar %s.json used: %s" % (task.name, ", ".join(sorted(sidecar))))
    if found.strided:
        notes.append("inputs at positions %s are not contiguous: both sides get contiguous copies" % found.strided)
    if found.shared:
        notes.append("inputs share memory: both sides get copies that do not")
    flops = moved = 0.0
    kind, mutated, foreign = "others", [], []
    graph = found.graph
    if graph is not None:
        flops, moved = cost.cost(graph, found.outputs)
        kind = cost.category(graph, found.inputs, found.outputs)
        names = {entry["id"]: entry["foreign"] if "foreign" in entry else found.params[entry["param"]]["name"] for entry in found.entries}
        mutated, foreign = [names[m] for m in graph["mutated"] if m in names], [entry["foreign"] for entry in graph["foreign"]]
        for entry in graph["foreign"]:
            notes.append("%s is of type %s, which no kernel has: only Torch's calls read it" % (entry["foreign"], entry["dtype"]))
        if graph["random"]:
            notes.append("forward() draws random numbers: results differ from call to call")
        changed = [m for m in graph["mutated"] if m.startswith("input ")]
        if changed and found.shared:
            raise TaskError("%s: forward() writes to its inputs, and get_inputs() gives some that share memory: what is written to one is read from another" % task.path, "give each a tensor of its own", "torch_only")
        if changed:
            found.constants["writes_inputs"] = True
            notes.append("forward() writes to its inputs: the reference gets copies, whose making is part of its time")
    else:
        sizes = lambda specs: sum(cost.product(s["shape"]) * cost.ITEM.get(s["dtype"], 1) for s in specs)
        moved = float(sizes(found.inputs) + sizes(found.params) + sizes(found.outputs))
        if found.traced is not None:
            flops = cost.traced_flops(found.traced)
    if mutated:
        values = ["out%d is the new value of %s" % (u["output"], u["name"]) for u in found.updates if "output" in u]
        notes.append("forward() updates %s; %s" % (", ".join(mutated), ", ".join(values) if found.updates else "a kernel need not"))
    tolerance, half = float(sidecar.get("tolerance", 0)), half_inside(graph, found.outputs)
    if half and not tolerance:
        tolerance = TOLERANCES[half]
        notes.append("forward() computes in %s inside: results are held to its tolerance, %g" % (half, tolerance))
    if found.training and False in found.other_modes and False not in found.constants.get("same_in", [False]) and not graph["random"]:
        notes.append("after eval() forward() does something else: the kernel is made for training mode, in which the task's model is; "
                     "for inference call self.eval() at the end of Model.__init__()")
    override = task.sidecar_number("flops", found.module)
    flops = flops if override is None else override
    override = task.sidecar_number("bytes", found.module)
    moved = moved if override is None else override
    return {"id": task.id, "name": task.name, "path": task.path, "source": task.source,
            "category": sidecar.get("category", kind), "inputs": found.inputs, "params": found.params,
            "outputs": found.outputs, "scalars": found.scalars, "flops": flops, "bytes": moved,
            "tolerance": tolerance, "deterministic": not (graph and graph["random"]),
            "training_mode": found.training, "constants": found.constants, "mutated": mutated, "updates": found.updates, "foreign": foreign, "notes": notes, "graph": graph,
            "graph_error": found.graph_error}, found.largest
