"""A drop-in that was exported as one Python file: `one_file.py NAME.py`. Imported, executed as a text, pickled, and in a child that is forked and ends."""
import importlib
import io
import os
import shutil
import sys
import tempfile

import torch

torch.set_num_threads(1)
path = sys.argv[1]
with tempfile.TemporaryDirectory() as elsewhere:
    shutil.copy(path, elsewhere)
    sys.path.insert(0, elsewhere)
    module = importlib.import_module(os.path.basename(path)[:-3])
with open(path) as f:
    given = {}
    exec(f.read(), given)  # as KernelBench's evaluator does: there is no __file__
x = torch.randn(16, 64)
model = module.ModelNew(64)
reference = sys.modules[type(model)._pragma_task.reference.__name__]
old = reference.Model(64)
old.load_state_dict(model.state_dict())
if os.fork() == 0:
    sys.exit(0)
os.wait()
with torch.no_grad():
    for new in (model, given["ModelNew"](64)):
        new.load_state_dict(old.state_dict())
        assert torch.allclose(new(x, 2.0), old(x, 2.0), rtol=1e-4, atol=1e-4)
        assert new.stats() == dict(new.stats(), calls=1, hits=1), new.stats()
    stream = io.BytesIO()
    torch.save(model, stream)
    assert type(model).__module__ == "gate"
    stream.seek(0)
    loaded = torch.load(stream, weights_only=False) if "weights_only" in torch.load.__code__.co_varnames else torch.load(stream)
    assert torch.equal(loaded(x, 2.0), model(x, 2.0)) and loaded.stats()["hits"] == 1
print("right")
