"""Programs that ask a drop-in for gradients, or only leave torch.no_grad() out; cases of programs.py."""
from concurrent.futures import ThreadPoolExecutor

import torch

import programs
from programs import data, fell, hits, near, pair, raises, same, train


def gradients():
    new, old = pair(strict=True)
    x = data()
    grads = []
    for model in (new, old):
        own = x.clone().requires_grad_()
        counted = []
        model.linear.weight.register_hook(lambda g, c=counted: c.append(1) or g * 2)
        model(own, 2.0).square().sum().backward()
        grads.append([own.grad] + [p.grad for p in model.parameters()])
        assert len(counted) == 1
    for a, b in zip(*grads):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-5 * float(b.abs().max()))
    hits(new, 1)
    linear = [torch.autograd.grad(model(x, 2.0).sum(), list(model.parameters())) for model in (new, old)]
    for a, b in zip(*linear):
        same(a, b)  # where the derivative does not depend on the result: the reference's very bits
    own = x.clone().requires_grad_()
    seconds = []
    for model in (new, old):
        first, = torch.autograd.grad((model(own, 2.0) ** 3).sum(), own, create_graph=True)
        seconds.append(torch.autograd.grad(first.square().sum(), [own, model.linear.weight]))
    for a, b in zip(*seconds):
        assert torch.allclose(a, b, rtol=1e-3, atol=1e-3 * float(b.abs().max()))
    frozen, _ = pair(strict=True)
    frozen.requires_grad_(False)
    assert not frozen(x, 2.0).requires_grad
    frozen.linear.bias.requires_grad_(True)
    frozen(x, 2.0).sum().backward()
    assert frozen.linear.bias.grad is not None and frozen.linear.weight.grad is None


def trained_step_by_step():
    new, old = pair(strict=True)
    train(new, new, old)


def checkpointed():
    """The first call that asks for gradients is one of torch.utils.checkpoint's, which counts what forward() saves."""
    from torch.utils.checkpoint import checkpoint
    new, old = pair(strict=True)
    for _ in range(2):
        grads = []
        for model in (new, old):
            own = programs.data_x.clone().requires_grad_()
            checkpoint(model, own, 2.0, use_reentrant=False).square().sum().backward()
            grads.append(own.grad)
        assert torch.allclose(*grads, rtol=1e-4, atol=1e-5 * float(grads[1].abs().max()))
    assert new.stats()["hits"] == 4, new.stats()


def close(a, b):
    assert torch.allclose(a, b, rtol=1e-4, atol=1e-5 * float(b.abs().max())), float((a - b).abs().max())


def gradients_of(model, x):
    return torch.autograd.grad(model(x, 2.0).square().sum(), list(model.parameters()))


def recorded():
    """From the second call on a call that records gradients looks for nothing anew (KernelBench's evaluator times such calls), and sees what changes all the same."""
    new, old = pair(strict=True)
    x = data()

    def right():
        for a, b in zip(gradients_of(new, x), gradients_of(old, x)):
            close(a, b)

    def never(*_):
        raise AssertionError("looked at with care")

    task, looked = new._pragma_task, []
    bind, task.bind = task.bind, lambda *args: looked.append(1) or bind(*args)
    right()
    assert len(looked) == 1  # nothing that is done for gradients makes the model another one
    task.bind = bind
    drop_in = programs.model_new._drop_in.DropIn
    kept, drop_in._pragma_carefully = drop_in._pragma_carefully, never
    for _ in range(3):
        near(new(x, 2.0), old(x, 2.0))
        right()
    with torch.no_grad():
        near(new(x, 2.0), old(x, 2.0))
    drop_in._pragma_carefully = kept
    hits(new, 8)
    for model in (new, old):  # another tensor in the same place
        torch.manual_seed(7)
        model.linear.weight = torch.nn.Parameter(torch.randn(64, 64))
    right()
    for model in (new, old):
        model.linear.weight.requires_grad_(False)
        model.linear.bias.requires_grad_(False)
    assert not new(x, 2.0).requires_grad
    for model in (new, old):
        model.linear.weight.requires_grad_(True)
    near(new(x, 2.0), old(x, 2.0))
    assert new.linear.bias.grad is None
    result = new(x, 2.0)
    with torch.no_grad():
        new.linear.weight.add_(1.0)
    raises(RuntimeError, lambda: result.sum().backward())  # Torch's own: a saved tensor was written to


def recorded_otherwise():
    """A constant that is another one between two calls, and threads that each ask for gradients."""
    new, old = pair()
    x = data()
    for a, b in zip(gradients_of(new, x), gradients_of(old, x)):
        close(a, b)
    for model in (new, old):
        model.eps = 0.25
    same(new(x, 2.0), old(x, 2.0))
    fell(new, "module")
    for model in (new, old):
        model.eps = 0.5
    inputs = [data() for _ in range(8)]
    wanted = [gradients_of(old, one) for one in inputs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            for found, right in zip(pool.map(lambda one: gradients_of(new, one), inputs), wanted):
                for a, b in zip(found, right):
                    close(a, b)
    assert sum(new.stats()["fallbacks"].values()) == 1, new.stats()
