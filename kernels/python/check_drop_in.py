"""Runs a written drop-in in a fresh process against the task's own Model, on seeds that nobody has seen, and prints one JSON
line. `check_drop_in.py TASK.py FOLDER TOLERANCE SEED...`; started by kernels/drop_in.cpp, in a sandbox. A line before that says that the
drop-in's turn has come, or why it cannot be tried here: what happens earlier is not its fault."""
import os
import sys

REPLIES = os.dup(1)
os.dup2(2, 1)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import copy
import importlib.util
import json
import warnings

warnings.filterwarnings("ignore")

import torch

from device import Device
from taskfile import TASK_SEED, TaskError, TaskFile, seed_everything

REFERENCE_ERROR_FACTOR = 8  # base/defaults.hpp


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


def compare(got, reference, oracle, tolerance, what):
    """error / allowed of the worst element; the rule of kernels/verify.hpp."""
    if got.dtype != reference.dtype or got.shape != reference.shape:
        raise Differs("%s is %s %s, expected %s %s" % (what, got.dtype, list(got.shape), reference.dtype, list(reference.shape)))
    if not reference.is_floating_point():
        wrong = int((got != reference).sum())
        if wrong:
            raise Differs("%s differs at %d of %d elements" % (what, wrong, reference.numel()))
        return 0.0
    if reference.numel() == 0:
        return 0.0
    finite = torch.isfinite(reference)
    if not torch.equal(torch.isfinite(got), finite):
        raise Differs("%s has NaN or Inf where the reference has none, or the reverse" % what)
    if not bool(finite.any()):
        return 0.0
    if not bool(finite.all()):
        got, reference, oracle = got[finite], reference[finite], oracle[finite]
    spread = float((oracle - oracle.mean()).abs_().mean())
    slack = REFERENCE_ERROR_FACTOR * float((reference - oracle).abs_().max())
    allowed = oracle.abs().add_(spread).mul_(tolerance).clamp_(min=max(slack, 1e-300))
    worst = float((got - oracle).abs_().div_(allowed).max())
    if worst > 1:
        raise Differs("%s is wrong: an element has %.3g times the allowed error" % (what, worst))
    return worst


def oracle_of(model, inputs, reference):
    try:
        wide = tensors_of(copy.deepcopy(model).double()(*[v.double() if isinstance(v, torch.Tensor) and v.is_floating_point()
                                                          else v for v in inputs]))
        if all(w.shape == r.shape and (w.dtype == torch.float64 or not r.is_floating_point()) for w, r in zip(wide, reference)):
            return [w.double() for w in wide]
    except Exception:
        pass
    return [r.double() for r in reference]


def check(task, module, folder, tolerance, seeds, device):
    said = []
    native = os.path.exists(os.path.join(folder, "kernel.cpp"))
    tiny = torch.tensor([1e-40])
    new = load_model_new(folder)
    seed_everything(TASK_SEED)
    arguments = module.get_init_inputs()
    model_new = new.ModelNew(**arguments) if isinstance(arguments, dict) else new.ModelNew(*arguments)
    model = task.make_model(module)
    state = model.state_dict()
    if list(state) == list(model_new.state_dict()):
        model_new.load_state_dict(state)
        if state:
            said.append("the same state_dict (%d tensors)" % len(state))
    elif native:
        raise Differs("state_dict has other keys: %s" % list(model_new.state_dict()))
    else:
        said.append("parameters of its own, made under the task's seed")
    if not device.native:
        model, model_new = model.to(device.torch), model_new.to(device.torch)
    worst = 0.0
    for seed in seeds:
        inputs = [device.place(v.contiguous()) if isinstance(v, torch.Tensor) else v for v in task.make_inputs(module, seed)]
        reference = tensors_of(copy.deepcopy(model)(*[v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]))
        oracle = oracle_of(model, inputs, reference)
        got = tensors_of(model_new(*inputs))
        if len(got) != len(reference):
            raise Differs("%d outputs, expected %d" % (len(got), len(reference)))
        for i, values in enumerate(zip(got, reference, oracle)):
            worst = max(worst, compare(*values, tolerance, "out%d" % i))
    said.insert(0, "right on %d unseen seeds (worst error %.3g of what is allowed)" % (len(seeds), worst))
    for i, value in enumerate(inputs if native else []):  # what else a module accepts is its author's affair
        if isinstance(value, torch.Tensor):
            longer = list(inputs)
            longer[i] = torch.cat([value.reshape(-1), value.reshape(-1)[:1]]) if value.numel() else torch.zeros(1)
            try:
                model_new(*longer)
            except ValueError:
                said.append("refuses another shape")
            else:
                raise Differs("a tensor of another shape was accepted")
            break
    if float(tiny * 1.0) == 0.0:
        raise Differs("loading the kernel turned on flush-to-zero for the whole process")
    return "; ".join(said)


def say(line):
    os.write(REPLIES, json.dumps(line).encode() + b"\n")


def main():
    path, folder, tolerance, seeds = sys.argv[1], sys.argv[2], float(sys.argv[3]), [int(s) for s in sys.argv[4:]]
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = os.environ.get("PRAGMA_TF32") == "1"
    try:
        device = Device(os.environ.get("PRAGMA_DEVICE", "cpu"))
        task = TaskFile(path)
        module = task.execute()
    except Exception as e:
        say({"absent": str(e)[:2000] or type(e).__name__})
        return
    say({"begun": True})
    try:
        with torch.no_grad():
            result = {"ok": True, "message": check(task, module, folder, tolerance, seeds, device)}
    except (Differs, TaskError) as e:
        result = {"ok": False, "message": str(e)}
    except Exception as e:
        result = {"ok": False, "message": "%s: %s" % (type(e).__name__, str(e)[:4000])}
    say(result)


if __name__ == "__main__":
    main()
