"""How much memory a call of the reference may take. A system that has none left ends whichever process it likes; so a call gets what is free as it begins, and what it asks for beyond that fails, as an error that can be
answered (the float64 oracle in pieces, or a message that says so)."""
import contextlib
import os
import resource

from memory_files import LIBC, trim

M_MMAP_THRESHOLD, LARGE = -3, 32 << 20  # of malloc.h; bytes
LEAST = (256 + 24 * (os.cpu_count() or 1)) << 20  # that a call may always have: the stacks of three libraries' threads, which wait for each other for ever where one could not begin


def held():
    """Bytes of this process's own writable memory, touched or not, as RLIMIT_DATA counts them."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as f:
        return 1024 * next(int(line.split()[1]) for line in f if line.startswith("VmData:"))


def large_blocks_from_system(always):
    """Large blocks come from the system and go back to it at once, as VmData then says, or all from the heap, which keeps them (trim())."""
    if hasattr(LIBC, "mallopt"):
        LIBC.mallopt(M_MMAP_THRESHOLD, LARGE if always else -1)


@contextlib.contextmanager
def at_most(more):
    """Within it this process gets no more than `more` further bytes: MemoryError, or what Torch makes of it (oracle.is_full()). 0: as many as it likes. Nothing in it is timed."""
    if not more:
        yield
        return
    trim()
    large_blocks_from_system(True)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = held() + max(more, LEAST)
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        large_blocks_from_system(False)
