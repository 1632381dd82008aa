"""A call whose result has gradients: forward by the kernel, backward by the reference. KernelBench's evaluator times calls like these, and so does every program that leaves
torch.no_grad() out. See docs/drop_in.md of PRAGMA."""
import torch


class Refused(Exception):
    """A guard of the kernel that failed inside of the call."""


class Recorded:
    """How one model is called where gradients are asked for, while one Call of it holds: where its tensors are kept and what backward() needs, looked up once."""

    def __init__(self, model, session):
        task = model._pragma_task
        self.task, self.run, self.unreached = task, session.run, {}
        places = [task.constants.place_of(model, entry["name"]) + (entry["name"] in task.updated,) for entry in task.params]
        self.places = [(table, name) for table, name, _ in places]
        self.updated = [i for i, (_, _, written) in enumerate(places, len(task.positions)) if written]
        self.foreign = [task.constants.place_of(model, name) for name in task.foreign]
        # A shell's functions would call the layers of this model, whose tensors are not the ones that gradients are asked for.
        self.why_not = "kept layers" if task.watch.keeps_layers(model) else ""
        self.model = None if self.why_not else self.kept(model)
        self.no_scalars = [None] * task.count if not task.scalars else None
        self.as_it_is = task.returns == "tensor" or task.returns == "tuple" and task.own_results > 1

    def kept(self, model):
        """The model as it is now, for backward(): what is done to it until then changes nothing."""
        shells, own = self.task.shells, [table[name] for table, name in self.places]
        with torch.no_grad():
            none = {id(t): t.new_empty(0) for t in own}  # backward() puts those of forward() in their places: the memory of these is not kept
        return shells.shell(model, shells.Slots(own, [none[id(t)] for t in own]), kept=True)

    def __call__(self, model, args):
        """What forward() returns, or the guard that failed."""
        if self.why_not:
            return self.why_not
        if self.foreign and any([table[name].requires_grad for table, name in self.foreign]):
            return "foreign"
        try:
            tensors = [args[i] for i in self.task.positions] + [table[name] for table, name in self.places]
        except KeyError:  # another thread has just changed the model
            return "rebind"
        for i in self.updated:
            tensors[i] = tensors[i].clone()
        try:
            result = apply(self, model, args, *tensors)
        except Refused as e:
            return str(e)
        return result if self.as_it_is else self.task.contained(result[0] if isinstance(result, tuple) and self.task.own_results == 1 else result)

    def without_gradients(self, needed, results):
        """Positions of the results that no gradient leads to from the tensors that need one."""
        if needed not in self.unreached:
            operator = self.task.operator
            depend = operator.paths(needed)[0] if operator is not None else [True] * len(self.task.outputs)
            self.unreached[needed] = [i for i, (t, does) in enumerate(zip(results, depend)) if not t.is_floating_point() or not does]
        return self.unreached[needed]


class WithGradients(torch.autograd.Function):
    """Forward by the kernel, backward through the reference on the same tensors: its gradients, to any order."""

    @staticmethod
    def forward(ctx, recorded, model, args, *tensors):
        ctx.recorded, ctx.args = recorded, recorded.no_scalars or [None if isinstance(a, torch.Tensor) else a for a in args]
        ctx.save_for_backward(*tensors)
        result = recorded.run(model, args)
        if result is None:
            result = model._pragma_launch(args)
        if result.__class__ is str and result == "alignment":
            result = model._pragma_run(args)
        if result.__class__ is str:
            raise Refused(result)
        result = tuple(result) if isinstance(result, (tuple, list)) else result
        made = result if isinstance(result, tuple) else (result,)
        outside = recorded.without_gradients(ctx.needs_input_grad[3:], made)
        if outside:
            ctx.mark_non_differentiable(*[made[i] for i in outside])
        return result

    @staticmethod
    def backward(ctx, *gradients):
        recorded, needed = ctx.recorded, ctx.needs_input_grad[3:]
        task = recorded.task
        with torch.autocast(task.settings.get("device", "cpu"), enabled=False):  # as it was in forward()
            return (None, None, None) + tuple(task.shells.gradients_of(task, task.constants.keeper, recorded.model, ctx.args, ctx.saved_tensors, gradients, needed, torch.is_grad_enabled())[1])


# Torch's own, below what Function.apply() does for functorch, which the kernel's guards have just ruled out: a sixth of such a call (docs/decisions/0071).
apply = super(torch.autograd.Function, WithGradients).apply
