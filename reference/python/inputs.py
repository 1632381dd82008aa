"""Contents of inputs, derived from the task's own get_inputs() under a seed. Kinds other than `own` break luck: a kernel that is
right only on one distribution is wrong.

What the task's inputs promise is kept: integers and booleans stay (labels, masks, indices), a row that is a probability
distribution stays one, zeros of a sparse pattern (triangular, masked) stay zero, a symmetric matrix stays symmetric.
"""
import torch

LARGE, TINY = 30.0, 1e-3
TIE_STEP = 0.5
SAMPLE_ROWS = 64
SPARSE_SHARE = 0.2  # of exact zeros, above which they are taken for a pattern


def is_distribution(x):
    """Rows of the last dimension are non-negative and sum to one."""
    if x.dim() == 0 or x.shape[-1] < 2:
        return False
    rows = x.reshape(-1, x.shape[-1])
    for some in (rows[:SAMPLE_ROWS], rows):  # large inputs mostly fail on the first few rows
        if not bool((some >= 0).all()) or not bool(((some.sum(-1, dtype=torch.float64) - 1).abs() < 1e-3).all()):
            return False
    return True


def is_symmetric(x):
    if x.dim() < 2 or x.shape[-1] != x.shape[-2] or x.shape[-1] < 2:
        return False
    matrices = x.reshape(-1, x.shape[-2], x.shape[-1])
    return all(torch.equal(some, some.transpose(-1, -2)) for some in (matrices[:1], matrices))


def is_labels(x):
    """Few whole values, such as targets of +1 and -1."""
    sample = x.reshape(-1)[:4096]
    return sample.numel() > 2 and bool((sample == sample.round()).all()) and sample.unique().numel() <= 4


def transform(x, kind, seed):
    """`x` as the task made it -> the same shape and dtype under another kind."""
    if kind == "own" or not x.is_floating_point() or x.numel() == 0:
        return x
    if x.dtype == torch.float16:  # older Torch computes little in it on a CPU
        return transform(x.float(), kind, seed).half()
    if is_distribution(x) or is_labels(x):
        return x
    if kind == "large":
        return x * LARGE
    if kind == "tiny":
        return x * TINY
    if kind == "negative":
        return -x.abs()
    if kind == "ties":
        spread = float(x.double().std(unbiased=False)) if x.numel() > 1 else 1.0
        scale = 1.0 if spread == 0 or 0.1 < spread < 10 else 1.0 / spread
        return (x * (scale / TIE_STEP)).round() * TIE_STEP
    symmetric = is_symmetric(x)
    if kind == "near_one":
        generator = torch.Generator().manual_seed(seed + 1)
        y = torch.rand(x.shape, generator=generator, dtype=torch.float32).mul_(0.2).add_(0.9).to(x.dtype)
        if symmetric:
            y = (y + y.transpose(-1, -2)) / 2
    elif kind == "constant_rows":
        if symmetric:
            return x
        y = x[..., :1].expand(x.shape).clone() if x.dim() else x.clone()
    else:
        raise ValueError("unknown kind of input: " + kind)
    zeros = x == 0
    if float(zeros.sum()) > SPARSE_SHARE * x.numel():
        y = y.masked_fill(zeros, 0)
    return y
