"""Ties in a drop-in's check: what a rounding, a comparison or a choice of forward() makes of the last bit is no error. `ties.py PYTHON_FOLDER`, the folder of check_drop_in.py."""
import copy
import sys
from types import SimpleNamespace

sys.path.insert(0, sys.argv[1])
import torch

from check_drop_in import REFERENCE_ERROR_FACTOR, Differs, Numbers, as_it_is, compare, once_more, oracle_of, updates_again
from steps import not_explained

torch.manual_seed(3)


class Quantised(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (512, 8)).to(torch.int8))

    def forward(self, x):
        scale = x.abs().amax(1, keepdim=True) / 127
        return (torch.round(x / scale) @ self.weight.to(x.dtype)) * scale


class SeesTf32(torch.nn.Module):
    def forward(self, x):
        return torch.tensor(float(torch.backends.cudnn.allow_tf32))


class Chosen(torch.nn.Module):
    def forward(self, x):
        scores = torch.softmax(x, 1)
        return scores.gather(1, scores.topk(2, dim=1).indices).sum(1), scores > 0.05


class Centred(torch.nn.Module):
    """The second one's running mean is zero but for rounding."""

    def __init__(self, off=0.0):
        super().__init__()
        self.one, self.two, self.conv, self.off = torch.nn.BatchNorm1d(8), torch.nn.BatchNorm1d(16), torch.nn.Linear(8, 16, bias=False), off

    def forward(self, x):
        result = self.two(self.conv(self.one(x)))
        self.two.running_mean += self.off * torch.arange(16.0).to(x.dtype)
        return result


class Foreign(torch.nn.Module):
    """Its rounding takes nothing in float64: the oracle is the reference itself."""

    def forward(self, x):
        return torch.dequantize(torch.quantize_per_tensor(torch.tanh(x), 0.01, 0, torch.qint8))


def judged(model, x, output, got):
    """error / allowed, and the settled values; None: wrong."""
    outputs = model(x)
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    oracle, wide = oracle_of(copy.deepcopy(model).double(), [x], outputs)
    reference = outputs[output]
    behind = lambda *found: not_explained(lambda in_wide, *run: once_more(wide if in_wide else None, model, [x], [], *run), output, *found, REFERENCE_ERROR_FACTOR)
    try:
        return compare(got, reference, oracle[output] if reference.is_floating_point() else oracle[output].to(reference.dtype), 1e-6, "out", None, behind)
    except Differs:
        return None


def by_reciprocal(x):
    scale = x.abs().amax(1, keepdim=True) / 127
    return torch.round(x * (1 / scale)), scale


with torch.no_grad():
    model, flipped = Quantised(), torch.zeros(1)
    while not flipped.any():  # one in a million or so lies beside a tie
        x = torch.randn(2048, 512)
        whole, scale = by_reciprocal(x)
        own, wide = torch.round(x / scale), torch.round(x.double() / (x.double().abs().amax(1, keepdim=True) / 127))
        flipped = (whole != own).any(1) & torch.equal(own.double(), wide)  # where the reference itself fell on the other side, its own error allows all of it
    good = (whole @ model.weight.float()) * scale
    told = judged(model, x, 0, good)
    assert told is not None and told[0] <= 1, "one unit in the last place, before a rounding"
    assert torch.allclose(told[1], model(x), rtol=1e-5, atol=1e-3), "what a step explains counts as the reference's own"
    row = int(flipped.nonzero()[0])
    bad = good.clone()
    bad[row, 3] += 20 * float(scale[row]) * 127
    assert judged(model, x, 0, bad) is None, "more than one step, beside a tie"
    bad = good.clone()
    calm = int((~flipped).nonzero()[0])
    bad[calm, 3] += float(scale[calm]) * 5
    assert judged(model, x, 0, bad) is None, "beside no tie"

    model, x = Chosen(), torch.randn(256, 40)
    x[7, 3] = x[7, 5] = torch.sort(x[7]).values[-2]
    mask = model(x)[1]
    assert judged(model, x, 1, mask.clone()) is not None, "the same"
    mask[0, 0] = ~mask[0, 0]
    assert judged(model, x, 1, mask) is None, "another side of what is no tie"

    model = Foreign()
    x = torch.linspace(-1, 1, 1 << 16).reshape(256, 256).clone()
    for tie in range(1, 60, 2):  # a value that is rounded to one side in float32, and to the other by who computes it better
        x[tie, tie] = torch.atanh(torch.tensor(tie / 200))
    whole = torch.tanh(x.double()) / 0.01
    own = model(x)
    beside = ((whole - whole.floor()) - 0.5).abs() < 1e-5
    good = torch.where(beside, own + 0.01 * torch.where(own / 0.01 > whole, -1.0, 1.0), own)
    assert beside.any() and not torch.equal(good, own)
    assert judged(model, x, 0, good) is not None, "the other side of a tie, where nothing is computed in float64"
    bad = own.clone()
    bad[~beside] = torch.where(torch.arange(int((~beside).sum())) == 5, own[~beside] + 0.01, own[~beside])
    assert judged(model, x, 0, bad) is None, "beside no tie, where nothing is computed in float64"

    model, x = Centred(), torch.randn(4096, 8)
    for off, right in ((0.0, True), (1e-9, True), (1e-4, False)):
        other = Centred(off)
        other.load_state_dict(model.state_dict())
        for wide in (copy.deepcopy(model).double(), None, torch.nn.Linear(3, 3)):
            try:
                updates_again(model, other, wide, [x], 1e-4)
                assert right, "a running mean that is wrong"
            except Differs as e:
                assert not right or (not isinstance(wide, Centred) and off), e
    numbers, noise = Numbers(0), torch.randn(16) * 1e-9
    numbers.add(noise * 3, noise, noise.double() * 1e-9)
    assert numbers.error == 0 and numbers.close, "of what is rounding alone nobody has a digit"
    numbers.add(noise + 1e-3, noise, noise.double() * 1e-9)
    assert not numbers.close
    numbers, right = Numbers(0), torch.randn(16)
    numbers.add(right, right, right.double())
    assert numbers.passes() and numbers.text().endswith("; within KernelBench's 0.0001 of Torch's results")
    numbers.beside_tf32([right], [right + 1e-3])  # as KernelBench's evaluator calls Torch
    assert not numbers.passes() and not numbers.values()["kernelbench_passes"] and "; not within KernelBench's 0.0001 of Torch's results, which use TF32; within" in numbers.text()
    numbers.beside_tf32([right, right > 0], [right + 1e-6, right > 0])
    assert numbers.passes()
    before = torch.backends.cudnn.allow_tf32
    device = SimpleNamespace(native=False)
    assert as_it_is(SeesTf32(), [right], (), device)[0].item() == before and as_it_is(SeesTf32(), [right], (), SimpleNamespace(native=True)) is None
    assert torch.backends.cudnn.allow_tf32 is False, "checks go on without it"
sys.stderr.write("ok\n")
