"""Memory files as tensors, what may not stand in them, and the heap. Used by reference.py."""
import ctypes
import mmap
import os

import torch

from taskfile import DTYPES

TYPES = {name: dtype for dtype, name in DTYPES.items()}
LARGE_HEAP = 1 << 30  # bytes, of which calls of float32 and of float64 in turn leave more and more behind
LIBC = ctypes.CDLL(None)


class Memory:
    """One memory file as tensors: views[slot][i]. The layout is reference/reference.hpp's tensor_layout."""

    def __init__(self, fd, layout, slots):
        size = max(layout["slot_bytes"] * slots, mmap.PAGESIZE)
        self.map = mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        os.close(fd)
        self.views = []
        for slot in range(slots):
            row = []
            for spec, offset in zip(layout["specs"], layout["offsets"]):
                count = 1
                for d in spec["shape"]:
                    count *= d
                dtype = TYPES[spec["dtype"]]
                if count == 0:
                    row.append(torch.empty(spec["shape"], dtype=dtype))
                else:
                    flat = torch.frombuffer(self.map, dtype=dtype, count=count, offset=slot * layout["slot_bytes"] + offset)
                    row.append(flat.reshape(spec["shape"]))
            self.views.append(row)


def first_bad(tensor):
    """(what, index) of the first NaN or Inf, or None."""
    if not tensor.is_floating_point():
        return None
    bad = ~torch.isfinite(tensor)
    if not bool(bad.any()):
        return None
    index = bad.nonzero()[0].tolist()
    return ("NaN" if bool(torch.isnan(tensor[tuple(index)])) else "Inf"), index


def trim():
    """Gives freed memory back. The heap keeps all of it, so that timed calls need not fault it in again (GLIBC_TUNABLES); but what calls of one
    type leave free fits those of the other badly, and large tasks would need twice their memory."""
    with open("/proc/self/statm") as f:
        resident, shared = (int(word) * mmap.PAGESIZE for word in f.read().split()[1:3])
    if resident - shared > LARGE_HEAP and hasattr(LIBC, "malloc_trim"):
        LIBC.malloc_trim(0)
