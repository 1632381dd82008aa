"""A result that is larger than what glibc keeps lies on large pages, where the system lets a program choose: `large.py RESULT_FOLDER`. The task is task_large.py."""
import os
import sys

import torch

torch.set_num_threads(1)
sys.path.insert(0, sys.argv[1])
from model_new import ModelNew, _reference

CHOICE = "/sys/kernel/mm/transparent_hugepage/enabled"


def asked_for(tensor):
    """Are large pages asked for in the mapping that the tensor's middle lies in? Whether the system has any left is its business."""
    middle, inside = tensor.data_ptr() + tensor.numel() * tensor.element_size() // 2, False
    with open("/proc/self/smaps") as smaps:
        for line in smaps:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                low, high = (int(end, 16) for end in words[0].split("-"))
                inside = low <= middle < high
            elif inside and words[0] == "VmFlags:":
                return "hg" in words
    return False


x = torch.randn(64, 256)
new, old = ModelNew(), _reference.Model()
with torch.no_grad():
    kept = [new(x) for _ in range(3)]
    assert all(torch.equal(one, old(x)) for one in kept)
    assert new.stats()["hits"] == 3, new.stats()
if os.path.exists(CHOICE):
    assert all(asked_for(one) for one in kept)
    assert not asked_for(old(x)), "Torch's own result: this test sees nothing"
