"""Launches by handle in compiled programs, with the processor as the device: `compiled_launches.py FOLDER LIBRARY`, as launches.py, with a Torch that has
torch.library's operators (2.4). Each case runs in a process of its own; exits with an error where one does not hold, with 77 where this Torch has no such thing."""
import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import torch

if not hasattr(torch.library, "custom_op"):
    sys.exit(77)

from launches import AFTER, BY_DISPATCHER, FIRST, Function, Processor, kernel, library, model_new, pair, replace_weights, run_all

operator = model_new.ModelNew._pragma_task.operator


def compiled():
    new, old = pair()
    return new, old, torch.compile(new, fullgraph=True, backend="aot_eager")


def right(program, old, x=None):
    """Called once, in the program, with how many runs of the dispatcher and how many launches by handle."""
    x = torch.randn(16, 64) if x is None else x
    before = Function.runs, library.count(), operator.calls()
    with torch.no_grad():
        found, wanted = program(x, 2.0), old(x, 2.0)
    assert torch.allclose(found, wanted, rtol=1e-5, atol=1e-5 * float(wanted.abs().max())), (found - wanted).abs().max()
    assert operator.calls() == before[2] + 1, "the compiled program does not call the kernel"
    return Function.runs - before[0], library.count() - before[1]


def by_handle():
    new, old, program = compiled()
    assert right(program, old) == BY_DISPATCHER and right(program, old) == FIRST
    for _ in range(5):
        assert right(program, old) == AFTER
    assert new.stats()["compiled"] == 7 and new.stats()["calls"] == 0, new.stats()


def parameters_change():
    new, old, program = compiled()
    right(program, old), right(program, old)
    for change in (lambda m: m.linear.weight.mul_(2), lambda m: m.linear.bias.copy_(m.linear.weight[0]), lambda m: setattr(m, "shift", torch.full((64,), 9.0)),
                   lambda m: setattr(m.linear.bias, "data", m.linear.bias.data + 1), lambda m: m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()}),
                   lambda m: setattr(m.linear, "weight", torch.nn.Parameter(m.linear.weight * 0.5))):
        with torch.no_grad():
            change(new), change(old)
        loads = kernel.loads
        assert right(program, old) == BY_DISPATCHER and kernel.loads == loads + 1
        assert right(program, old) == FIRST and right(program, old) == AFTER


def parameters_at_one_address():
    new, old, program = compiled()
    replace_weights(new, old, lambda: right(program, old))


def one_program_of_several_models():
    """The parameters are the program's arguments: each model's are laid out once."""
    sides = []
    for factor in (1, 2, 3):
        new, old, program = compiled()
        with torch.no_grad():
            for model in (new, old):
                model.linear.weight.mul_(factor)
        sides.append((program, old))
        right(program, old), right(program, old)
    loads = kernel.loads
    for _ in range(3):
        for program, old in sides:
            assert right(program, old) == AFTER
    assert kernel.loads == loads


def parameters_that_are_always_others():
    """Aliases of the same memory, made for each call, with versions of their own."""
    new, old = pair()
    alive = []
    for _ in range(4):
        params = {name: tensor.data for name, tensor in new.state_dict(keep_vars=True).items()}
        alive.append(params)
        x = torch.randn(16, 64)
        found = operator.call(x, params["linear.weight"], params["linear.bias"], params["shift"])
        with torch.no_grad():
            assert torch.allclose(found, old(x, 2.0), rtol=1e-5, atol=1e-3)
            for model in (new, old):
                model.linear.weight.mul_(1.5)
    assert len(operator.states) == 4
    del params
    alive.clear()
    assert not operator.states, "kept though the tensors are gone"


def ends_with_the_model():
    new, old, program = compiled()
    for _ in range(3):
        right(program, old)
    assert len(operator.states) == 1
    gone = weakref.ref(new.linear.weight)
    del new, program
    torch._dynamo.reset()
    gc.collect()
    assert gone() is None and not operator.states and operator.latest is None


def streams():
    new, old, program = compiled()
    right(program, old), right(program, old)
    Processor.now = 8
    assert right(program, old) == FIRST and right(program, old) == AFTER
    Processor.now = 7
    assert right(program, old) == AFTER and right(program, old) == AFTER


def captured():
    """What is captured lays the parameters out as well, on whatever stream: its replays are right when they have changed."""
    new, old, program = compiled()
    for _ in range(3):
        right(program, old)
    loads = kernel.loads
    Processor.capture(True)
    assert right(program, old) == BY_DISPATCHER and kernel.loads == loads + 1
    Processor.capture(False)
    assert right(program, old) == AFTER


def views():
    new, old, program = compiled()
    for x in (torch.randn(64, 16).t(), torch.randn(16 * 64 + 1)[1:].view(16, 64), torch.randn(16, 128)[:, ::2]):
        for _ in range(3):
            right(program, old, x)


def threads():
    new, old, program = compiled()
    right(program, old)

    def work(number):
        x, wrong = torch.randn(16, 64, generator=torch.Generator().manual_seed(number)), 0
        with torch.no_grad():
            wanted = old(x, 2.0)
            for _ in range(100):
                wrong += not torch.allclose(program(x, 2.0), wanted, rtol=1e-5, atol=1e-5)
                if number == 0:
                    new.linear.bias.add_(0)
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 0


def trained():
    new, old, program = compiled()
    steps = [torch.optim.SGD(model.parameters(), lr=1e-4) for model in (new, old)]
    for _ in range(4):
        x = torch.randn(16, 64)
        for model, step in zip((program, old), steps):
            step.zero_grad()
            model(x, 2.0).square().mean().backward()
            step.step()
    for a, b in zip(new.parameters(), old.parameters()):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-5) and torch.allclose(a.grad, b.grad, rtol=1e-4, atol=1e-3)
    assert operator.calls() == 4


run_all([(case, graphs) for case in (by_handle, parameters_change, parameters_at_one_address, one_program_of_several_models, parameters_that_are_always_others, ends_with_the_model, streams,
                                     captured, views, threads, trained) for graphs in (False, True)])
