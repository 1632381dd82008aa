"""Drop-in for @TASK@, made by PRAGMA: ModelNew is constructed and called like Model, and computes with the Triton kernels in
kernel.py. Needs Torch and Triton on a GPU or NPU. Keep kernel.py and task_reference.py beside this file. @TF32@"""
import importlib.util
import os

import torch


def _module(name):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location("pragma_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_kernel = _module("kernel")

if not getattr(_kernel, "PRAGMA_PARAMS", False):
    ModelNew = _kernel.ModelNew
else:
    _task = _module("task_reference")

    class ModelNew(_task.Model):
        """Model's parameters, the kernels' forward()."""

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self._arguments = args, kwargs
            self._fast, self._known = None, None

        def _tensors(self):
            found, seen = [], set()
            tables = [[v for _, v in self.named_parameters()], [v for _, v in self.named_buffers()]]
            tables += [[v for v in vars(m).values() if isinstance(v, torch.Tensor)] for m in self.modules()]
            for tensor in (t for table in tables for t in table):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    found.append(tensor)
            return found

        def forward(self, *inputs):
            tensors = self._tensors()
            known = [(t.data_ptr(), t._version) for t in tensors]
            if known != self._known:  # the first call, or the parameters were moved or trained
                args, kwargs = self._arguments
                object.__setattr__(self, "_fast", _kernel.ModelNew(*args, **kwargs))
                self._fast.load_params([t.detach().contiguous() for t in tensors])
                self._known = known
            return self._fast(*inputs)
