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

    def region(self, number):
        """The class of a part's drop-in, loaded once."""
        with self.lock:
            if number not in self.modules:
                path = os.path.join(self.folder, "parts", str(number + 1), "model_new.py")
                spec = importlib.util.spec_from_file_location(self.prefix + str(number + 1), path)
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                self.modules[number] = module.ModelNew
            return self.modules[number]

    def launcher(self, model, call):
        return Launcher(self, model)


def part_model(kind, tensors):
    """A model of a part without its constructor, which would make the whole model anew."""
    model = kind.__new__(kind)
    torch.nn.Module.__init__(model)
    for name, tensor in tensors:
        (model._parameters if isinstance(tensor, torch.nn.Parameter) else model._buffers)[name] = tensor
    model.__dict__.update(_pragma_options={"strict": False, "keep_buffers": False, "graph": False}, _pragma_constructor={}, _pragma_graphs=False, _pragma_arguments=((), {}))
    return model


class Launcher:
    """Of one model, as long as its parameters are the same objects."""

    def __init__(self, parts, model):
        self.parts, self.model, self.positions = parts, model, model._pragma_task.positions
        told = parts.told
        self.places = []
        for entry, spec in zip(told["params"], model._pragma_task.params):
            path, _, name = spec["name"].rpartition(".")
            self.places.append((parts.keeper(model, path, name), name))
        self.bind()

    def bind(self):
        told = self.parts.told
        self.tensors = [table[name] for table, name in self.places]
        params = {entry["id"]: tensor for entry, tensor in zip(told["params"], self.tensors)}
        device = next((str(t.device) for t in self.tensors), None)
        self.models, self.steps = [], []
        last = {}
        for i, step in enumerate(told["steps"]):
            for name in step["inputs"] + step["outputs"]:
                last[name] = i
        for i, step in enumerate(told["steps"]):
            over = [name for name, at in last.items() if at == i and name not in told["outputs"]]
            if step["region"] < 0:
                self.steps.append((self.of_torch(step, params, device), step["inputs"], step["outputs"], over))
                continue
            names = told["regions"][step["region"]]
            own = part_model(self.parts.region(step["region"]), [(entry, params[whole]) for entry, whole in names])
            self.models.append(own)
            self.steps.append((Part(own), step["inputs"], step["outputs"], over))

    def of_torch(self, step, params, device):
        used = sorted({r for node in step["nodes"] for value in node["args"].values() for r in self.parts.replay.references(value)} & set(params))
        function = self.parts.replay.function_of(step["nodes"], self.parts.told["constants"], used + step["inputs"], step["outputs"], device)
        given = [params[name] for name in used]
        return lambda *inputs: function(*given, *inputs)

    def __call__(self, *args):
        if not all(map(operator.is_, self.tensors, [table[name] for table, name in self.places])):
            self.bind()
        told = self.parts.told
        values = {entry["id"]: args[position] for entry, position in zip(told["inputs"], self.positions)}
        for step, inputs, outputs, over in self.steps:
            values.update(zip(outputs, step(*[values[name] for name in inputs])))
            for name in over:
                values.pop(name, None)
        results = tuple(values[name] for name in told["outputs"])
        return results[0] if len(results) == 1 else results

    def how(self):
        kept = [node["op"].split(".")[1] for step in self.parts.told["steps"] for node in step["nodes"] or [] if node["op"] != "getitem"]
        return "in parts: %d kernels, and of Torch %s" % (len(self.models), ", ".join(kept) or "nothing")

    def stats(self):
        """Of each kernel, as ModelNew.stats() has it."""
        return [model.stats() for model in self.models]


class Part:
    def __init__(self, model):
        self.model = model

    def __call__(self, *inputs):
        result = self.model(*[t if t.is_contiguous() else t.contiguous() for t in inputs])
        return result if isinstance(result, tuple) else (result,)
