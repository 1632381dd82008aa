"""A drop-in of parts between which stand complex numbers, with a complex parameter: `foreign.py RESULT_FOLDER`. The task is `turned` of tests/cli/parts_run_test.cpp."""
import sys
import warnings

import torch

torch.set_num_threads(1)
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from model_new import ModelNew, _reference


def close(a, b):
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5)


new, old = ModelNew(), _reference.Model()
old.load_state_dict(new.state_dict())
x = _reference.get_inputs()[0]
with torch.no_grad():
    assert close(new(x), old(x)) and new.stats()["hits"] == 1 and not new.stats()["fallbacks"], new.stats()
    for model in (new, old):  # as it is now, and not as it was when the drop-in was made
        model.turn.mul_(0.5j)
    assert close(new(x), old(x))
    other = torch.nn.Parameter(torch.polar(torch.rand(32), torch.rand(32)))
    new.turn = old.turn = other
    assert close(new(x), old(x)) and not new.stats()["fallbacks"], new.stats()

# Its gradient is Torch's, and so is the whole call then.
gradients = []
for model in (new, old):
    model.zero_grad(set_to_none=True)
    model(x).square().sum().backward()
    gradients.append([model.turn.grad.clone(), model.gain.grad])
assert all(close(torch.view_as_real(a) if a.is_complex() else a, torch.view_as_real(b) if b.is_complex() else b) for a, b in zip(*gradients))
assert new.stats()["fallbacks"] == {"foreign": 1}, new.stats()
for model in (new, old):
    model.turn.requires_grad_(False)
    model.zero_grad(set_to_none=True)
    model(x).square().sum().backward()
assert close(new.gain.grad, old.gain.grad) and new.stats()["fallbacks"] == {"foreign": 1}, new.stats()

# Of another type, or of another shape: Torch's very bits.
with torch.no_grad():
    for turn in (torch.polar(torch.rand(32), torch.rand(32)).to(torch.complex128), torch.polar(torch.rand(1), torch.rand(1))):
        new.turn = old.turn = torch.nn.Parameter(turn, requires_grad=False)
        assert torch.equal(new(x), old(x))
    assert new.stats()["fallbacks"] == {"foreign": 3}, new.stats()

if hasattr(torch.library, "custom_op"):
    again, old = ModelNew(), _reference.Model()
    old.load_state_dict(again.state_dict())
    with torch.no_grad():
        assert close(torch.compile(again, backend="aot_eager")(x), old(x))
print("ok")
