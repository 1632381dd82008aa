"""What a drop-in of several parts does beside pragma_drop_in.py: kernels and Torch's operators in turn. Each kernel is a drop-in of its own, in parts/1, parts/2 ...,
whose model has the whole model's parameters. parts.json says what is read and written by whom. See docs/drop_in.md of PRAGMA."""
import importlib.util
import json
import operator
import os
import threading

import torch


class Parts:
    """Of one drop-in, for all its models."""

    def __init__(self, folder, replay, prefix, keeper):
        with open(os.path.join(folder, "parts.json")) as f:
            self.told = json.load(f)
        self.folder, self.replay, self.prefix, self.keeper = folder, replay, prefix, keeper
        self.modules, self.lock = {}, threading.Lock()

    def module(self, number):
        """Of a part's drop-in, loaded once."""
        with self.lock:
            if number not in self.modules:
                path = os.path.join(self.folder, "parts", str(number + 1), "model_new.py")
                spec = importlib.util.spec_from_file_location(self.prefix + str(number + 1), path)
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                self.modules[number] = module
            return self.modules[number]

    def launcher(self, model, call):
        return Launcher(self, model)


def part_model(kind, tensors, updated):
    """A model of a part without its constructor, which would make the whole model anew."""
    model = kind.__new__(kind)
    torch.nn.Module.__init__(model)
    for name, tensor in tensors:
        (model._parameters if isinstance(tensor, torch.nn.Parameter) else model._buffers)[name] = tensor
    model.__dict__.update(_pragma_options={"strict": False, "keep_buffers": False, "graph": False}, _pragma_constructor={}, _pragma_graphs=False, _pragma_arguments=((), {}),
                          _pragma_updated=updated, _pragma_part=True)
    return model


class Launcher:
    """Of one model: a function of its parameters and inputs, which is made anew when a kernel's parameter is another object."""

    def __init__(self, parts, model):
        self.parts, self.positions = parts, model._pragma_task.positions
        told = parts.told
        used = {name for step in told["steps"] for node in step["nodes"] or [] for name in parts.replay.reads_of(node)} | {whole for names in told["regions"] for _, whole in names}
        self.updated = {entry["id"] for entry, spec in zip(told["params"], model._pragma_task.params) if spec["name"] in model._pragma_task.updated}
        self.params, self.places, self.foreign = [], [], []
        for entry, spec in zip(told["params"], model._pragma_task.params):
            if entry["id"] in used:
                path, _, name = spec["name"].rpartition(".")
                self.params.append(entry["id"])
                self.places.append((parts.keeper(model, path, name), name))
        for entry in told.get("foreign", []):
            path, _, name = entry["foreign"].rpartition(".")
            self.foreign.append((len(self.params), getattr(torch, entry["dtype"], None), tuple(entry["shape"])))
            self.params.append(entry["id"])
            self.places.append((parts.keeper(model, path, name), name))
        self.all_tensors = len(self.positions) == model._pragma_task.count
        self.tensors = None

    def bind(self, tensors, inputs):
        told, params = self.parts.told, dict(zip(self.params, tensors))
        self.models, nodes, any_strides = [], [], set()
        for step in told["steps"]:
            if step["region"] < 0:
                nodes += step["nodes"]
                any_strides |= set(step["outputs"])
                continue
            mine = told["regions"][step["region"]]
            own = part_model(self.parts.module(step["region"]).ModelNew, [(entry, params[whole]) for entry, whole in mine], {entry for entry, whole in mine if whole in self.updated})
            self.models.append(own)
            nodes.append({"kernel": own, "reads": step["inputs"], "results": step["outputs"], "any_strides": any_strides})
        device = next((str(t.device) for t in tensors + inputs), None)
        self.run = self.parts.replay.function_of(nodes, told["constants"], self.params + [entry["id"] for entry in told["inputs"]], told["outputs"], device)
        self.tensors = tensors

    def __call__(self, *args):
        tensors = [table[name] for table, name in self.places]
        if self.tensors is None or not all(map(operator.is_, self.tensors, tensors)):
            self.bind(tensors, [args[i] for i in self.positions])
        if not all([self.is_as_told(tensors[i], dtype, shape) for i, dtype, shape in self.foreign]):
            return "foreign"
        results = self.run(*tensors, *(args if self.all_tensors else [args[i] for i in self.positions]))
        return results[0] if len(results) == 1 else results

    def is_as_told(self, tensor, dtype, shape):
        return isinstance(tensor, torch.Tensor) and tensor.dtype is dtype and tensor.shape == shape and not (tensor.requires_grad and torch.is_grad_enabled())

    def told(self):
        """For ModelNew.stats(): what is launched, and the same statistics of each kernel."""
        kept = [node["op"].split(".")[1] for step in self.parts.told["steps"] for node in step["nodes"] or [] if node["op"] != "getitem"]
        return {"launches": "in parts: %d kernels, and of Torch %s" % (len(self.models), ", ".join(kept) or "nothing"), "parts": [model.stats() for model in self.models]}
