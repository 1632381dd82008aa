"""Which processors the reference's process works on."""
import contextlib
import os
import time

import torch

THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))  # while it is measured
WORTH_THREADS = 1e-2  # seconds: starting and ending Torch's threads takes 4 ms of the processors
LAST_TOOK = {}  # kind of work -> seconds that it took the last time


@contextlib.contextmanager
def all_cpus(work, device):
    """What is not measured need not wait for the CPUs that measurements run on. `work` names it: what was done in no time before is done by one CPU.
    On a device there is little to do here, and other tasks' processes want these CPUs."""
    own = os.sched_getaffinity(0)
    worth = device.native and LAST_TOOK.get(work, 1) >= WORTH_THREADS
    try:
        if worth:
            os.sched_setaffinity(0, os.sched_getaffinity(os.getppid()))  # all that pragma itself may use
            torch.set_num_threads(max(THREADS, len(os.sched_getaffinity(0))))
        start = time.monotonic()
        yield
        LAST_TOOK[work] = time.monotonic() - start
    finally:
        if worth:
            torch.set_num_threads(THREADS)
            os.sched_setaffinity(0, own)
