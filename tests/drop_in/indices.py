"""Indices in a drop-in's check: another one is right where what it points to is as good. `indices.py PYTHON_FOLDER`, the folder of check_drop_in.py."""
import sys

sys.path.insert(0, sys.argv[1])
import torch

from check_drop_in import Differs, as_good, compare


class Best(torch.nn.Module):
    def forward(self, x):
        return torch.topk(x, 2, dim=-1)


class First(torch.nn.Module):
    def forward(self, x):
        return torch.argmax(x, dim=-1)


def judged(model, x, output, got):
    results = model(x)
    reference = results if isinstance(results, torch.Tensor) else results[output]
    try:
        compare(got, reference, reference.double(), 1e-4, "out", lambda mine, its: as_good(model, [x], output, mine, its, 1e-4))
        return True
    except Differs:
        return False


close = torch.tensor([[0.1, 5.0, 5.0 + 1e-6, 0.3], [3.0, 2.0, 1.0, 0.0]])
best = torch.topk(close, 2, dim=-1)[1]
assert best.tolist() == [[2, 1], [0, 1]]
assert judged(Best(), close, 1, best.clone()), "the same"
assert judged(Best(), close, 1, torch.tensor([[1, 2], [0, 1]])), "two that are as good, the other way round"
assert not judged(Best(), close, 1, torch.tensor([[2, 1], [1, 0]])), "a worse one first"
assert not judged(Best(), close, 1, torch.tensor([[1, 1], [0, 1]])), "one twice"
assert not judged(Best(), close, 1, torch.tensor([[2, 1], [0, 9]])), "one outside"
assert not judged(Best(), close, 1, best.to(torch.int32)), "another type"
equal = torch.tensor([[1.0, 7.0, 7.0, 0.0]])
assert not judged(First(), equal, 0, torch.tensor([2])), "of equal values Torch documents the first"


class Doubled(torch.nn.Module):
    def forward(self, x):
        return (x > 0).to(torch.int64) * 2


assert not judged(Doubled(), close, 0, torch.ones_like(close, dtype=torch.int64)), "whole numbers that are no indices"
sys.stderr.write("ok\n")
