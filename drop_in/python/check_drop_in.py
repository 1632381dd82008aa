"""Runs a written drop-in in a fresh process against the task's own Model, on seeds that nobody has seen, and prints one JSON
line. `check_drop_in.py TASK.py FOLDER TOLERANCE ASKED SECONDS SEED...`; ASKED: the tolerance of the task's sidecar, 0 where it has none; SECONDS above 0: both are
timed, as a program calls them; started by drop_in/drop_in.cpp, in a sandbox. Two lines before that say that Torch is there, and what Model takes by itself, or why the drop-in
cannot be tried here: nothing of it has run so far, so that these are believed, and no failure is its fault. Before and after each of its calls on a seed there is a line, too: a time limit
that is met elsewhere is not its fault either."""
import os
import sys

REPLIES = os.dup(1)
os.dup2(2, 1)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import contextlib
import copy
import importlib.util
import json
import time
import warnings

warnings.filterwarnings("ignore")

import torch

import baseline
from called_times import measured, model_alone, out_of_memory, where_gradients_are_recorded
from device import Device
from indices import IndexRecord, point_to
from neighbours import beside
from oracle import CASTING, in_float64
from steps import not_explained
from taskfile import TASK_SEED, TaskError, TaskFile, seed_everything, twin

CLOCK = time.perf_counter  # before a module's code could change it
OF_TORCH = (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)  # what a program has that says nothing: convolutions may use TF32, products may not
ALLOWED_TF32 = os.environ.get("PRAGMA_TF32") == "all", os.environ.get("PRAGMA_TF32", "none") != "none"  # likewise; base/tf32.hpp
BASELINE = os.environ.get("PRAGMA_BASELINE", "eager")  # how Model is called where both are timed: baseline.WAYS
ONCE_MORE = os.environ.get("PRAGMA_ONCE_MORE") == "1"
REFERENCE_ERROR_FACTOR = 8  # base/defaults.hpp
SLOW = 20  # seconds that Torch, in float64 too, and comparing take for one seed: one is enough then
MOST_BEHIND_STEPS = 1 << 16  # verification/slot_checker.cpp
NO_DIGIT, NOTHING, COARSER = 1 << 20, 1e-14, 16 * 2.0**29  # verification/compare.cpp


# KernelBench's own check (eval.py at 423217d): allclose with these as atol and rtol.
KERNELBENCH_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}


def use_tf32(products, convolutions):
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = products, convolutions


def as_a_program():
    """Torch as a program has it; results are compared with its exact ones."""
    use_tf32(ALLOWED_TF32[0] or OF_TORCH[0], ALLOWED_TF32[1] or OF_TORCH[1])


class Differs(Exception):
    pass


def load_model_new(folder):
    path = os.path.join(folder, "model_new.py")
    spec = importlib.util.spec_from_file_location("model_new", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tensors_of(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def as_good(model, inputs, output, got, reference, tolerance):
    """Where indices are others than the reference's: they are right where what they point to is as good within the tolerance; of equal values the one that Torch documents."""
    with IndexRecord() as record:
        results = tensors_of(model(*[v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]))
    mine = next((one for one in record.found if one[0].data_ptr() == results[output].data_ptr() and one[0].shape == results[output].shape), None)
    if mine is None:
        return False
    record.found = [(mine[0].cpu(), mine[1].double().cpu()) + mine[2:]]
    got, reference = got.cpu().reshape(-1), reference.cpu().reshape(-1)
    positions = (got != reference).nonzero().reshape(-1).tolist()
    told = point_to(record, record.found[0][0], positions, got[positions].tolist(), reference.reshape(results[output].shape))
    return told is not None and all(g is not None and abs(g - b) <= tolerance * (abs(b) + s) and not (told["first"] and g == b)
                                    for g, b, s in zip(told["got"], told["best"], told["spread"]))


def explained(wrong, got, allowed, behind_steps):
    """Are all elements where `wrong` is true what a step of forward() makes of a rounding? `behind_steps`: not_explained() of that output, all but what differs."""
    where = wrong.reshape(-1).nonzero().reshape(-1)
    if behind_steps is None or where.numel() > MOST_BEHIND_STEPS:
        return False
    return not behind_steps(where.tolist(), got.reshape(-1)[where].double().tolist(), allowed.reshape(-1)[where].tolist())


def only(values, where):
    """The values where `where` is true. Without a copy where it is true everywhere, which is usual: choosing among many values takes longer than all the rest."""
    return values if bool(where.all()) else values[where]


def is_rounding_only(error, largest, reference):
    """Is the exact answer zero everywhere (the running mean of a normalised tensor), so that oracle and reference hold their own rounding? Their largest difference, the oracle's largest value."""
    return error > NO_DIGIT * largest or largest < NOTHING and not bool(reference.any())


def compare(got, reference, oracle, tolerance, what, points_as_well, behind_steps=None):
    """error / allowed of the worst element, by the rule of verification/verify.hpp, and `got` with the reference's values where a step explains others.
    `points_as_well(got, reference)`: of indices that differ; `behind_steps`: of explained()."""
    if got.dtype != reference.dtype or got.shape != reference.shape:
        raise Differs("%s is %s %s, expected %s %s" % (what, got.dtype, list(got.shape), reference.dtype, list(reference.shape)))
    if not reference.is_floating_point():
        wrong = got != reference
        if bool(wrong.any()) and not (got.dtype == torch.int64 and points_as_well(got, reference)) and not explained(wrong, got, wrong * 0.0, behind_steps):
            raise Differs("%s differs at %d of %d elements" % (what, int(wrong.sum()), reference.numel()))
        return 0.0, reference
    if reference.numel() == 0:
        return 0.0, got
    finite = torch.isfinite(reference)
    beyond = (oracle.abs() > torch.finfo(reference.dtype).max) & torch.isinf(got) & ((got > 0) == (oracle > 0))
    got = torch.where(beyond & finite, reference, got)
    if not torch.equal(torch.isfinite(got), finite):
        raise Differs("%s has NaN or Inf where the reference has none, or the reverse" % what)
    if not bool(finite.any()):
        return 0.0, got
    exact = only(oracle, finite)
    spread = float((exact - exact.mean()).abs_().mean())
    error, largest = float((only(reference, finite) - exact).abs_().max()), float(exact.abs().max())
    if is_rounding_only(error, largest, reference):
        error = max(error, COARSER * largest)
    slack = REFERENCE_ERROR_FACTOR * error
    allowed = oracle.abs().add_(spread).mul_(tolerance).clamp_(min=max(slack, 1e-300))
    error = (got - oracle).abs_().div_(allowed).masked_fill_(~finite, 0.0)
    worst = float(error.max())
    if worst > 1 and not explained(error > 1, got, allowed, behind_steps):
        raise Differs("%s is wrong: an element has %.3g times the allowed error" % (what, worst))
    return min(worst, 1.0), torch.where(error > 1, reference, got)


class Numbers:
    """What a user can check of a drop-in's numbers: largest errors against float64, as parts of the largest value, and KernelBench's own check."""

    EXACT = 1e-6  # of the largest value, where Torch's own error is smaller than half of it

    def __init__(self, asked):
        self.error = self.of_torch = 0.0
        self.close = self.held = True
        self.close_to_tf32 = None  # None: a program has no other results, or was not asked
        self.tolerance = 0.0
        self.asked = asked  # the sidecar's tolerance; 0: none

    def add(self, got, reference, oracle):
        if not reference.is_floating_point() or reference.numel() == 0:
            return
        self.tolerance = max(self.tolerance, self.limit(reference))
        self.close &= self.is_close(got, reference)
        finite = torch.isfinite(oracle) & torch.isfinite(reference)
        if not bool(finite.any()):
            return
        right = only(oracle, finite)
        scale = max(float(right.abs().max()), 1e-300)
        error, of_torch = [float((only(values, finite).double() - right).abs_().max()) / scale for values in (got, reference)]
        if is_rounding_only(of_torch * scale, float(right.abs().max()), reference):
            return  # of which nobody has a digit
        exact = self.EXACT if reference.dtype in (torch.float32, torch.float64) else torch.finfo(reference.dtype).eps
        self.held &= error <= max(2 * of_torch, exact, self.asked)
        self.error, self.of_torch = max(self.error, error), max(self.of_torch, of_torch)

    def limit(self, values):
        return max(KERNELBENCH_TOLERANCE.get(values.dtype, 1e-4), self.asked)

    def is_close(self, got, its):
        limit = self.limit(its)
        return bool(torch.allclose(got, its, atol=limit, rtol=limit, equal_nan=True))

    def beside_tf32(self, got, its):
        """`its`: Torch's results as a program has them, which KernelBench's evaluator compares with."""
        self.close_to_tf32 = all(self.is_close(mine, value) for mine, value in zip(got, its) if value.is_floating_point())

    def passes(self):
        return self.close if self.close_to_tf32 is None else self.close_to_tf32

    def text(self):
        text = "largest error %.2g of the largest value, Torch's own %.2g" % (self.error, self.of_torch)
        text += ("; " if self.passes() else "; not ") + "within KernelBench's %g of Torch's results" % self.tolerance
        return text + (", which use TF32; within it of those without" if self.close and not self.passes() else "")

    def values(self):
        return {"largest_error": self.error, "torch_error": self.of_torch, "kernelbench_passes": self.passes(), "within_contract": self.held,
                "kernelbench_tolerance": self.tolerance}


def as_it_is(model, inputs, updated, device):
    """forward()'s outputs with TF32 where a program that says nothing has it; None where that is nowhere, or memory does not suffice."""
    if device.native or OF_TORCH == ALLOWED_TF32:
        return None
    as_a_program()
    try:
        return results_of(copy.deepcopy(model), inputs, updated)
    except Exception as e:
        if not out_of_memory(e):
            raise
        return None
    finally:
        use_tf32(*ALLOWED_TF32)


def results_of(model, inputs, updated):
    """What forward() returns, then the buffers that it updated."""
    results = tensors_of(in_float64(model, [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]))
    state = model.state_dict() if updated else {}
    return results + [state[name].clone() for name in updated]


def updates_again(model, model_new, wide, inputs, tolerance):
    """A second call goes on from what the first one left in the buffers. `wide` is called where Model's own values leave a doubt."""
    exact = {}

    def exactly(name):
        """None where Model cannot be called in float64."""
        if not exact:
            exact[name] = None
            with contextlib.suppress(Exception):
                wide.load_state_dict(model.state_dict())
                for _ in range(2):
                    in_float64(wide, [v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in inputs])
                exact.update((key, value.double()) for key, value in wide.state_dict().items() if value.is_floating_point())
        return exact.get(name)
    sides = copy.deepcopy(model), model_new
    model_new.load_state_dict(model.state_dict())
    for side in sides:
        side(*inputs), side(*inputs)
    for name, mine, its in zip(model.state_dict(), model_new.state_dict().values(), sides[0].state_dict().values()):
        if its.is_floating_point():
            try:
                compare(mine, its, its.double(), tolerance, name, None)
            except Differs:
                if exactly(name) is None:
                    raise
                compare(mine, its, exactly(name), tolerance, name, None)
        elif not torch.equal(mine, its):
            raise Differs("after two calls %s is %s, and Model's is %s" % (name, mine, its))
    return "buffers as Model leaves them"


def float64_model(task, module, model):
    """The model in float64, or None."""
    try:
        return twin(task, module, model).double()
    except Exception:
        return None


def oracle_of(wide_model, inputs, reference, updated=()):
    """forward()'s outputs in float64, and the model that gave them; where none does, the reference's, and None."""
    while wide_model is not None:
        try:
            wide = results_of(wide_model, [v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in inputs], updated)
            if all(w.shape == r.shape and (w.dtype == torch.float64 or not r.is_floating_point()) for w, r in zip(wide, reference)):
                return [w.double() for w in wide], wide_model
        except Exception:
            pass
        if wide_model in CASTING:
            break
        CASTING.add(wide_model)  # its casts to float32 may be what was in the way
    return [r.double() for r in reference], None


def once_more(wide_model, model, inputs, updated, run=None):
    """forward()'s outputs, in float64 where there is such a model (oracle_of()), else as the reference computes them; `run`: of neighbours.py."""
    own = model if wide_model is None else wide_model
    twin, given = beside(own, model, inputs, run)
    twin = copy.deepcopy(twin) if run is None else twin
    if own in CASTING:
        CASTING.add(twin)
    return results_of(twin, given if wide_model is None else [v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in given], updated)


def made(kind, arguments, **also):
    return kind(**arguments, **also) if isinstance(arguments, dict) else kind(*arguments, **also)


def bits(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8) if tensor.numel() else tensor


def same_bits(a, b):
    return len(a) == len(b) and all(x.dtype == y.dtype and x.shape == y.shape and torch.equal(bits(x), bits(y)) for x, y in zip(a, b))


def outcome(model, inputs):
    try:
        return tensors_of(model(*[v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]))  # forward() may write to them
    except Exception as e:
        return type(e).__name__


def falls_back(model, model_new, inputs, slow):
    """With other inputs than the kernel's the drop-in is Torch: the same bits, or the same kind of error. `slow`: not in float64, which takes longest."""
    said = []
    changes = [("another batch", lambda v: torch.cat([v, v[:1]]) if v.dim() else v.reshape(1)),
               ("another type", lambda v: v.double() if v.is_floating_point() else v.to(torch.int32))]
    for what, change in changes[:1] if slow else changes:
        other = [change(v) if isinstance(v, torch.Tensor) and v.numel() else v for v in inputs]
        expected, got = outcome(copy.deepcopy(model), other), outcome(model_new, other)
        if isinstance(expected, str) or isinstance(got, str):
            if expected != got:
                raise Differs("with %s Model gives %s, ModelNew %s" % tuple([what] + [e if isinstance(e, str) else "a result" for e in (expected, got)]))
        elif not same_bits(expected, got):
            raise Differs("with %s its results are not Torch's" % what)
        said.append(what)
    return "Torch's own results for " + " and ".join(said)


def left_alone(settings):
    """(does forward() write to its arguments, how a ModelNew is made whose kernel is called though forward() writes what the kernel does not)."""
    writes = (settings.get("constants") or {}).get("writes_inputs", False)
    return writes, {"keep_buffers": True} if writes or settings.get("mutated") and not settings.get("updates") else {}


def on_one_seed(task, module, seed, device, models, before, updated, tolerance, numbers, with_torch):
    """Model, ModelNew and Model in float64 (None where there is none) on inputs that nobody has seen: (the inputs, the worst error as a part of what is allowed, elements that only a step's rounding
    explains, did all but ModelNew's call take long?). `before`: the state that each begins with, where forward() changes it; `with_torch`: parts of the drop-in are Torch's, which use TF32 on both sides."""
    model, model_new, wide = models
    worst, beside, start = 0.0, 0, CLOCK()
    inputs = [device.place(v.contiguous()) if isinstance(v, torch.Tensor) else v for v in task.make_inputs(module, seed)]
    reference = results_of(copy.deepcopy(model), inputs, updated)
    oracle, wide = oracle_of(wide, inputs, reference, updated)
    if before:
        for one in (wide, model_new):
            if one is not None:
                one.load_state_dict(before)
    say({"calling": True})
    called = CLOCK()
    got = results_of(model_new, inputs, updated)
    start += CLOCK() - called
    say({"called": True})
    if len(got) != len(reference):
        raise Differs("%d outputs, expected %d" % (len(got), len(reference)))
    for i, values in enumerate(zip(got, reference, oracle)):
        behind = lambda *found: not_explained(lambda in_wide, *run: once_more(wide if in_wide else None, model, inputs, updated, *run), i, *found, REFERENCE_ERROR_FACTOR)
        error, settled = compare(*values, tolerance, "out%d" % i, lambda mine, its: as_good(copy.deepcopy(model), inputs, i, mine, its, tolerance), behind)
        worst, beside = max(worst, error), beside + int(((settled != got[i]) & (got[i] == got[i])).sum()) * got[i].is_floating_point()
        numbers.add(settled, *values[1:])
        got[i] = settled
    its = as_it_is(model, inputs, updated, device) if numbers.tolerance and numbers.close_to_tf32 is None and not with_torch else None  # one seed says it
    if its is not None:
        numbers.beside_tf32(got, its)
    return inputs, worst, beside, CLOCK() - start > SLOW


def check(task, module, folder, tolerance, asked, seeds, device, seconds, compiled):
    """`compiled`: what is timed in place of Model; None: Model as it is."""
    said = []
    parts = os.path.exists(os.path.join(folder, "parts.json"))
    native = os.path.exists(os.path.join(folder, "kernel.cpp")) or parts and device.native
    tiny = torch.tensor([1e-40])
    new = load_model_new(folder)
    guarded = getattr(new.ModelNew, "_pragma_task", None) # none: a module as a test wrote it
    settings = guarded.settings if guarded else {}
    torch.set_num_threads(settings.get("threads") or torch.get_num_threads())  # 0: a device's kernel has none
    seed_everything(TASK_SEED)
    arguments = module.get_init_inputs()
    writes, keeps = left_alone(settings)
    model_new = made(new.ModelNew, arguments, **keeps)
    model = task.make_model(module)
    state = model.state_dict()
    if list(state) == list(model_new.state_dict()):
        model_new.load_state_dict(state)
        if state:
            said.append("the same state_dict (%d tensor%s)" % (len(state), "" if len(state) == 1 else "s"))
    elif native:
        raise Differs("state_dict has other keys: %s" % list(model_new.state_dict()))
    else:
        said.append("parameters of its own, made under the task's seed")
    if not device.native:
        model, model_new = model.to(device.torch), model_new.to(device.torch)
    worst, beside, numbers = 0.0, 0, Numbers(asked)
    updated = [u["name"] for u in settings.get("updates", []) if u["output"] >= 0]
    wide = float64_model(task, module, model)
    before = {name: tensor.clone() for name, tensor in state.items()} if settings.get("mutated") else {}
    for tried, seed in enumerate(seeds, 1):
        inputs, error, explained, slow = on_one_seed(task, module, seed, device, (model, model_new, wide), before, updated, tolerance, numbers, parts)
        worst, beside = max(worst, error), beside + explained
        if slow and device.native:  # on a device only calls after the first are launched by handle
            break
    if not numbers.passes() and not numbers.held:
        raise Differs("its numbers are worse than Torch's: " + numbers.text() + ". A task that asks for less says so in its sidecar (tolerance)")
    said.insert(0, "right on %d unseen seed%s (worst error %.3g of what is allowed)" % (tried, "s" * (tried > 1), worst))
    said[1:1] = [numbers.text()] * (numbers.tolerance > 0)
    said[1:1] = ["at %d elements forward()'s own rounding explains what differs, or the other side of a tie" % beside] * (beside > 0)
    stats = model_new.stats() if guarded else None
    if guarded and stats["hits"] != tried:
        raise Differs("the kernel was called %d times of %d; Torch computed because of: %s" %
                      (stats["hits"], stats["calls"], ", ".join(stats["fallbacks"]) + (": " + guarded.why_none)))
    for part in stats.get("parts", []) if parts else []:
        if part["fallbacks"]:
            raise Differs("a part's kernel was not called; Torch computed because of: %s" % ", ".join(part["fallbacks"]))
    if native and settings["deterministic"] and not ONCE_MORE:  # of a random one two calls of Torch differ by themselves
        said.append(falls_back(model, model_new, inputs, slow))
    if settings.get("updates"):
        said.append(updates_again(model, model_new, wide, inputs, tolerance))
    del wide
    if keeps:
        said.append("by itself Torch computes, since forward() %s (keep_buffers=True: the kernel)" % ("writes to its arguments" if writes else "updates buffers"))
    if float(tiny * 1.0) == 0.0:
        raise Differs("loading the kernel turned on flush-to-zero for the whole process")
    times = {}
    if seconds > 0:
        as_made = made(new.ModelNew, arguments)
        if list(state) == list(as_made.state_dict()):
            as_made.load_state_dict(state)
        if not device.native:
            as_made = as_made.to(device.torch)
        as_a_program()
        times = measured(device, model if compiled is None else compiled, as_made, inputs, seconds)
        if (parts or not native) and hasattr(as_made, "stats"):
            said.append("kernels launched " + as_made.stats().get("launches", "by Triton's dispatcher"))
        if "times" in times and compiled is None and not ONCE_MORE and any([p.requires_grad for p in as_made.parameters()]):
            said.append(where_gradients_are_recorded(device, model, as_made, inputs, min(seconds, 0.25)))
    return dict(times, message="; ".join(said), numbers=numbers.values())


def import_triton():
    """The drop-in's module does; while another has the device that costs nobody anything."""
    try:
        import triton.runtime.jit
    except ImportError:
        pass


def wait_for_turn():
    """Until who started this (drop_in/turn.hpp) has closed the other end: the device may be another's so far."""
    turn = int(os.environ.pop("PRAGMA_TURN", "-1"))
    if turn >= 0:  # else it was started by hand
        os.read(turn, 1)
        os.close(turn)


def say(line):
    os.write(REPLIES, json.dumps(line).encode() + b"\n")


def main():
    path, folder, seeds = sys.argv[1], sys.argv[2], [int(s) for s in sys.argv[6:]]
    tolerance, asked, seconds = (float(word) for word in sys.argv[3:6])
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    try:
        device = Device(os.environ.get("PRAGMA_DEVICE", "cpu"))
        if not device.native:
            import_triton()
            if seconds > 0:
                baseline.import_compiler(BASELINE)
        task = TaskFile(path)
        module = task.execute()
    except Exception as e:
        say({"absent": str(e)[:2000] or type(e).__name__})
        return
    say({"begun": sum(os.times()[:4])})
    wait_for_turn()
    try:
        as_a_program()
        with torch.no_grad():
            alone, compiled = model_alone(task, module, seeds[0], device, BASELINE) if seconds > 0 else ([], None)
            say({"alone": alone})
        if BASELINE == "eager":
            compiled = None  # and its memory is free
    except Exception as e:
        say({"absent": str(e)[:2000] or type(e).__name__})
        return
    use_tf32(*ALLOWED_TF32)
    try:
        with torch.no_grad():
            result = dict(check(task, module, folder, tolerance, asked, seeds, device, seconds, compiled), ok=True)
    except (Differs, TaskError) as e:
        result = {"ok": False, "message": str(e)}
    except Exception as e:
        result = {"ok": False, "message": "%s: %s" % (type(e).__name__, str(e)[:4000]), "no_memory": out_of_memory(e)}
    say(result)


if __name__ == "__main__":
    main()
