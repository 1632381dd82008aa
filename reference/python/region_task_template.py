"""@ABOUT@

A part of a task, as a task of its own: PRAGMA cut the whole where an operator stays Torch's. forward() replays the part's operators with Torch; get_inputs() gives
what the whole task has at the cut, for its own inputs."""
import json
import os
import random
import types

import torch
import torch.nn as nn

PART = json.loads("@SETTINGS@")
replay = types.ModuleType("replay")
exec(json.loads("@REPLAY@"), vars(replay))
whole = types.ModuleType("whole_task")
exec(compile(PART["whole"], "<the whole task>", "exec"), vars(whole))
MADE = []  # the whole task's model, once


def whole_model():
    if not MADE:
        states = torch.random.get_rng_state(), random.getstate()
        torch.manual_seed(42)
        random.seed(42)
        arguments = whole.get_init_inputs()
        MADE.append(whole.Model(**arguments) if isinstance(arguments, dict) else whole.Model(*arguments))
        torch.random.set_rng_state(states[0])
        random.setstate(states[1])
    return MADE[0]


def tensor_of(model, path):
    for name in path.split("."):
        model = getattr(model, name)
    return model


STEPS = replay.function_of(PART["nodes"], PART["constants"], [name for name, _ in PART["params"]] + PART["inputs"], PART["outputs"], once=False)
BEFORE = replay.function_of(PART["before"], PART["constants"], [name for name, _ in PART["all_params"]] + PART["all_inputs"], PART["inputs"], once=False)


class Model(nn.Module):
    # Read by forward() and no constants of a user's: of two equal parts, which share a kernel, they differ.
    _pragma_names, _pragma_steps = [name for name, _ in PART["params"]], (STEPS,)

    def __init__(self):
        super().__init__()
        for name, path in PART["params"]:
            tensor = tensor_of(whole_model(), path)
            if isinstance(tensor, nn.Parameter):
                self.register_parameter(name, tensor)
            else:
                self.register_buffer(name, tensor)

    def forward(self, arguments_):
        results = self._pragma_steps[0](*[getattr(self, name) for name in self._pragma_names], arguments_)
        return results[0] if len(results) == 1 else results


def get_inputs():
    given = [v for v in whole.get_inputs() if isinstance(v, torch.Tensor)]
    # Where this part's Model has moved to a device, the whole's has in part: it has the same tensors.
    params, threads = [tensor_of(whole_model(), path).cpu() for _, path in PART["all_params"]], torch.get_num_threads()
    torch.set_num_threads(len(os.sched_getaffinity(0)))  # half a network is a lot for one, and nothing here is timed
    try:
        with torch.no_grad():
            return [v.contiguous() for v in BEFORE(*params, *given)]
    finally:
        torch.set_num_threads(threads)


def get_init_inputs():
    return []
