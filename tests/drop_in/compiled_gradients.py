"""A part of programs.py: gradients through a compiled program."""
import torch


def are_the_references(program, new, old, x):
    """`program`: `new`, compiled. Results near the reference's, gradients of input and parameters with its very bits."""
    results, gradients, before = [], [], new._pragma_task.operator_calls()
    for module, model in ((program, new), (old, old)):
        own = x.clone().requires_grad_()
        results.append(module(own, 2.0))
        results[-1].backward(torch.linspace(-1, 1, results[-1].numel()).view_as(results[-1]))
        gradients.append([own.grad] + [p.grad for p in model.parameters()])
        model.zero_grad()
    assert new._pragma_task.operator_calls() == before + 1, "where gradients are wanted the compiled program does not call the kernel"
    assert torch.allclose(*results, rtol=1e-5, atol=1e-5), "its results are not near the reference's"
    assert all(torch.equal(a, b) for a, b in zip(*gradients)), "its gradients are not the reference's"
