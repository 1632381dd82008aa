"""Drop-in for @TASK@, made by PRAGMA: ModelNew is constructed and called like Model, and computes with the Triton kernels in
kernel.py. Needs Torch and Triton on a GPU or NPU. Keep the files beside this one. What the kernels were not made for is computed by the task's
own Model.forward, with the same parameters and a warning; model.stats() counts, ModelNew(..., strict=True) raises instead;
ModelNew(..., graph=True) replays a captured graph where that is quicker. @TF32@"""
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


_kernel = _load("kernel")
_load("pragma_built").use(FOLDER, _kernel)

if not getattr(_kernel, "PRAGMA_PARAMS", False):
    ModelNew = _kernel.ModelNew  # it keeps parameters of its own: there is no Model with the same ones to fall back to
else:
    _drop_in, _device, _reference = _load("pragma_drop_in"), _load("pragma_device"), _load("task_reference")
    _settings = _drop_in.json.loads(SETTINGS)

    def _launcher(model, call):
        return _device.Launcher(model, call, _kernel, model._pragma_arguments, _settings, _load("constants").keeper)

    class ModelNew(_drop_in.DropIn, _reference.Model):
        _pragma_task = _drop_in.Task(FOLDER, _settings, _reference, _load, _launcher)
