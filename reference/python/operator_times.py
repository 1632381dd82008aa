"""Where one call of the reference spends its time, by the operators that its Model calls: Torch's own profiler over some calls, read for the story of a report."""
import time

import torch

CALLS, SECONDS = 20, 0.5  # of the reference that are profiled, whichever ends first
RECORDS = 25_000          # of the profiler: reading one takes 20 to 45 us
LEAST = 0.001             # share of the time that is told
MOST = 64                 # operators that are told, the longest first


def activities(device):
    kinds = torch.profiler.ProfilerActivity
    return [kinds.CPU] if device.native else [kinds.CPU, kinds.CUDA]


def records_of(call):
    """How many records the profiler makes of one call: counted without reading them."""
    config, kinds = torch.autograd.profiler.profile().config(), {torch.autograd.ProfilerActivity.CPU}
    torch.autograd._prepare_profiler(config, kinds)
    torch.autograd._enable_profiler(config, kinds)
    try:
        call(0)
    finally:
        records = torch.autograd._disable_profiler().events()
    return max(1, len(records))


def is_operator(event):
    return "::" in event.name and not event.name.startswith("profiler::")


def is_outermost(event):
    """Called by Model itself, whatever range or function of Python stands around it, and not by another operator."""
    while event.cpu_parent is not None:
        event = event.cpu_parent
        if is_operator(event):
            return False
    return True


def on_device(event):
    """(seconds, launches) of the kernels of an operator and of those that it calls; copies and fills by the driver are time, and no launches."""
    parts = [on_device(child) for child in event.cpu_children]
    return (sum(kernel.duration for kernel in event.kernels) / 1e6 + sum(seconds for seconds, _ in parts),
            sum(not kernel.name.startswith(("Memcpy", "Memset")) for kernel in event.kernels) + sum(launches for _, launches in parts))


def operator_times(call, device):
    """[{"name": "softmax", "calls": 2, "share": 0.31, "launches": 2}] of one call, the longest first; share: of the time of all operators (on a device: of their
    kernels). `call(i)` makes one call, waited for or not. Empty where the profiler says nothing, and for a Model of so many operators that reading it would take long."""
    most = min(CALLS, RECORDS // records_of(call))
    if most == 0:
        return []
    device.wait()
    calls, end = 0, time.monotonic() + SECONDS
    with torch.profiler.profile(activities=activities(device)) as profile:
        while calls == 0 or (calls < most and time.monotonic() < end):
            call(calls)
            calls += 1
        device.wait()
    found = {}
    for event in profile.events():
        if not is_operator(event) or not is_outermost(event):
            continue
        seconds, launches = (event.cpu_time_total / 1e6, 0) if device.native else on_device(event)
        entry = found.setdefault(event.name.replace("aten::", "", 1), [0, 0.0, 0])
        for i, more in enumerate((1, seconds, launches)):
            entry[i] += more
    found = {name: entry for name, entry in found.items() if entry[0] >= calls}  # less often: the profiler's own
    total = sum(seconds for _, seconds, _ in found.values())
    rows = [{"name": name, "calls": round(count / calls), "share": seconds / total, "launches": round(launches / calls)}
            for name, (count, seconds, launches) in found.items() if seconds > LEAST * total]
    return sorted(rows, key=lambda row: -row["share"])[:MOST]
