"""Programs of torch.compile and torch.export, with a Torch that has torch.library's operators (2.4 and later); cases of programs.py."""
import os
import subprocess
import sys
import tempfile

import torch

import programs
from programs import FEATURES, data, near, pair, raises, same, train

if not hasattr(torch.library, "custom_op"):
    sys.exit(77)


def operator():
    return programs.ModelNew._pragma_task.operator


def called(program, old, times, *args, **kwargs):
    """Right, and so many calls of the kernel."""
    before = operator().calls()
    near(program(*args, **kwargs), old(*args, **kwargs))
    assert operator().calls() == before + times, "%d calls of the kernel" % (operator().calls() - before)


def compiled():
    new, old = pair(strict=True)
    x = data()
    program = torch.compile(new, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        called(program, old, 1, x, 2.0)
        called(program, old, 1, x, scale=2.0)
        called(program, old, 1, scale=2.0, x=programs.data_x)
        called(program, old, 0, data(5), 2.0)
        called(program, old, 0, x, 3.0)
        raises(Exception, lambda: program(x))
        assert new.stats()["compiled"] == 3
        new(x, 2.0)
        assert new.stats()["hits"] == 1, "a model that was compiled is another one"
        new.eps = old.eps = 0.125
        called(program, old, 0, x, 2.0)


def compiled_by_inductor():
    new, old = pair()
    program = torch.compile(new, fullgraph=True)
    whole = torch.compile(lambda x: new(torch.sin(x).t().contiguous().t(), 2.0) + 1, fullgraph=True)
    with torch.no_grad():
        for x in (data(), data(17).reshape(-1)[1:1 + 16 * FEATURES].view(16, FEATURES)):
            called(program, old, 1, x, 2.0)
            called(whole, lambda v: old(torch.sin(v), 2.0) + 1, 1, x)
        with torch.inference_mode():
            called(program, old, 1, data(), 2.0)


def compiled_models():
    """Several models, one operator: each with its own parameters, changed in all the ways that there are."""
    sides = [pair(), pair(), pair()]
    made = [(torch.compile(new, fullgraph=True, backend="aot_eager"), new, old) for new, old in sides]
    with torch.no_grad():
        for number, (_, new, old) in enumerate(made):
            for model in (new, old):
                model.linear.weight.mul_(number + 2)
        for _ in range(2):
            for program, new, old in made:
                called(program, old, 1, data(), 2.0)
                for model in (new, old):
                    model.linear.bias.data = model.linear.bias.data + 1
                    model.linear.weight = torch.nn.Parameter(model.linear.weight * 0.5)


def surroundings():
    """What the kernel was not made for is the reference's, in a compiled program too."""
    new, old = pair()
    x = data()
    program = torch.compile(new, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        called(program, old, 1, x, 2.0)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            before = operator().calls()
            same(program(x, 2.0), old(x, 2.0))
        torch.use_deterministic_algorithms(True)
        called(program, old, 0, x, 2.0)
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(2)
        called(program, old, 0, x, 2.0)
        torch.set_num_threads(1)
        assert operator().calls() == before
        called(program, old, 1, x, 2.0)
        for change in (lambda m: m.linear.register_forward_hook(lambda *_: None), lambda m: setattr(m, "drop", torch.nn.Identity())):
            torch._dynamo.reset()  # Torch takes it that hooks do not change (skip_nnmodule_hook_guards)
            new, old = pair()
            change(new), change(old)
            called(torch.compile(new, fullgraph=True, backend="aot_eager"), old, 0, x, 2.0)


def step(model, x, own, parameters):
    """A result and the gradients of all that require one."""
    own = x.clone().requires_grad_(own)
    result = model(own, 2.0)
    wanted = [t for t in [own] + parameters if t.requires_grad]
    return [result] + list(torch.autograd.grad((result ** 2).sum(), wanted))


def compiled_gradients():
    """Forward by the kernel, backward the reference's: of all that asks for it, and of nothing else; traced into the program, or where that cannot be by an operator."""
    torch._inductor.config.force_disable_caches = True
    x, computed, usual = data(), [], operator().by_reference

    def watched(gradients, tensors, *rest):
        computed.append(type(tensors[0]) is torch.Tensor)
        if untraceable and not computed[-1]:
            raise RuntimeError("this reference cannot be traced")
        return usual(gradients, tensors, *rest)

    operator().by_reference = watched
    for backend, untraceable in (("aot_eager", False), ("inductor", False), ("aot_eager", True), ("inductor", True)):
        torch._dynamo.reset()
        new, old = pair(strict=True)
        program = torch.compile(new, fullgraph=True, backend=backend)
        for own, weight, bias in ((True, True, True), (True, False, False), (False, True, False), (False, False, True)):
            for model in (new, old):
                model.linear.weight.requires_grad_(weight), model.linear.bias.requires_grad_(bias)
            before = operator().calls()
            computed.clear()
            found, wanted = [step(f, x, own, list(m.parameters())) for f, m in ((program, new), (old, old))]
            assert operator().calls() == before + 1, "the kernel was not called"
            assert len(found) == len(wanted) and all(a.dtype == b.dtype and torch.allclose(a, b, rtol=1e-4, atol=1e-4 * float(b.detach().abs().max())) for a, b in zip(found, wanted))
            assert False in computed and (True in computed) == untraceable, computed
        new.requires_grad_(False)
        assert not program(x, 2.0).requires_grad


def compiled_steps():
    new, old = pair(strict=True)
    train(torch.compile(new, fullgraph=True), new, old)
    assert new.stats()["compiled"] == 5


def other_gradients():
    """Of second order, in forward mode, of functorch's: right, or said that there are none."""
    new, old = pair()
    x, tangent = data(), data()
    program = torch.compile(new, fullgraph=True, backend="aot_eager")
    own = x.clone().requires_grad_()
    first, = torch.autograd.grad((program(own, 2.0) ** 3).sum(), own, create_graph=True)
    raises(RuntimeError, lambda: first.square().sum().backward())  # as of any compiled program
    for transform in (lambda f: torch.func.grad(lambda v: f(v, 2.0).square().sum()), lambda f: lambda v: torch.func.jvp(lambda w: f(w, 2.0), (v,), (tangent,))[1]):
        found, wanted = torch.compile(transform(new), backend="aot_eager")(x), transform(old)(x)
        assert torch.allclose(found, wanted, rtol=1e-3, atol=1e-2), (found - wanted).abs().max()
    with torch.no_grad():
        xs = torch.stack([x, tangent])
        near(torch.compile(lambda v: torch.vmap(lambda w: new(w, 2.0))(v), backend="aot_eager")(xs), torch.vmap(lambda w: old(w, 2.0))(xs))
    tensors = [x, new.linear.weight, new.linear.bias, new.shift]
    with torch.autograd.forward_ad.dual_level():
        text = raises(NotImplementedError, lambda: operator().call(torch.autograd.forward_ad.make_dual(x, tangent), *tensors[1:]))
        assert "forward-mode" in text
    text = raises(NotImplementedError, lambda: operator().backward([torch.ones(16, FEATURES)], tensors, [True, True, True, False]))
    assert "cannot be differentiated" in text


def exported():
    """The program keeps the kernel with its gradients, of any order, in another process too."""
    new, old = pair()
    x = data()
    with torch.no_grad():
        program = torch.export.export(new, (x, 2.0))
        assert "pragma" in str(program.graph), program.graph
        called(program.module(), old, 1, x, 2.0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "exported.pt2")
        torch.export.save(program, path)
        torch.save((x, [p.detach() for p in step(old, x, True, list(old.parameters()))]), path + ".wanted")
        done = subprocess.run([sys.executable, "-B", "-c", LOADED, os.path.dirname(programs.model_new.__file__), path], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    for module in (program.module(), program.run_decompositions().module()):
        seconds = []
        for model in (module, old):
            own = x.clone().requires_grad_()
            first, = torch.autograd.grad((model(own, 2.0) ** 3).sum(), own, create_graph=True)
            seconds.append([first] + list(torch.autograd.grad(first.square().sum(), [own] + [p for p in model.parameters() if p.shape == (FEATURES, FEATURES)])))
        for a, b in zip(*seconds):
            assert torch.allclose(a, b, rtol=1e-3, atol=1e-3 * float(b.detach().abs().max()))


LOADED = """import sys
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)
import model_new
module = torch.export.load(sys.argv[2]).module()
x, wanted = torch.load(sys.argv[2] + ".wanted")
before = torch.get_rng_state()
own = x.clone().requires_grad_()
result = module(own, 2.0)
parameters = dict(module.named_parameters())
found = [result] + list(torch.autograd.grad((result ** 2).sum(), [own, parameters["linear.weight"], parameters["linear.bias"]]))
assert torch.equal(before, torch.get_rng_state())
assert model_new.ModelNew._pragma_task.operator.calls() == 1
for a, b in zip(found, wanted):
    assert torch.allclose(a, b, rtol=1e-4, atol=1e-4 * float(b.abs().max()))
"""
