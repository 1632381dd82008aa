"""ModelNew: a drop-in replacement for the Model of @TASK@, with a CPU kernel found by PRAGMA.

    from model_new import ModelNew
    model = ModelNew(*get_init_inputs())      # same constructor and state_dict as Model
    output = model(*inputs)                   # same arguments and results

The kernel (kernel.cpp, built for several processors in built/) is for what SETTINGS below say: contiguous CPU tensors of these shapes and
types, these constants, this number of threads. Whatever else a program does with the model is computed by the task's own Model.forward, with
the same parameters and a warning; model.stats() counts, ModelNew(..., strict=True) raises instead. Gradients are the reference's. @MUTATED@
"""
import importlib.util
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
SETTINGS = r"""
@SETTINGS@
"""


def _load(name):
    full = "pragma_@ID@_" + name
    spec = importlib.util.spec_from_file_location(full, os.path.join(FOLDER, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[full] = module  # pickled models find the task's own classes by this name
    spec.loader.exec_module(module)
    return module


_drop_in = _load("pragma_drop_in")
_reference = _load("task_reference")


class ModelNew(_drop_in.DropIn, _reference.Model):
    _pragma_task = _drop_in.Task(FOLDER, _drop_in.json.loads(SETTINGS), _reference, _load)
