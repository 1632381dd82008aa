"""Where one call of the reference spends its time, by the operators that its Model calls: Torch's own profiler over some calls, read for the story of a report."""
import time

import torch

CALLS, SECONDS = 20, 0.5  # of the reference, whichever ends first
MOST = 64                 # operators that are told, the longest first


def activities(device):
    kinds = torch.profiler.ProfilerActivity
    return [kinds.CPU] if device.native else [kinds.CPU, kinds.CUDA]


def device_seconds(event):
    """Of the kernels that an operator, and those that it calls, launched."""
    total = sum(kernel.duration for kernel in event.kernels) / 1e6
    return total + sum(device_seconds(child) for child in event.cpu_children)


def launched(event):
    return len(event.kernels) + sum(launched(child) for child in event.cpu_children)


def operator_times(call, device):
    """[{"name": "softmax", "calls": 2, "share": 0.31, "launches": 2}] of one call; share: of the time of all operators (on a device: of their kernels). `call(i)`
    makes one call, waited for or not. Empty where the profiler says nothing."""
    call(0)
    device.wait()
    calls, end = 0, time.monotonic() + SECONDS
    with torch.profiler.profile(activities=activities(device)) as profile:
        while calls == 0 or (calls < CALLS and time.monotonic() < end):
            call(calls)
            calls += 1
        device.wait()
    found = {}
    for event in profile.events():
        if event.cpu_parent is not None or not event.name.startswith("aten::"):
            continue
        entry = found.setdefault(event.name[6:], [0, 0.0, 0])
        entry[0] += 1
        entry[1] += event.cpu_time_total / 1e6 if device.native else device_seconds(event)
        entry[2] += 0 if device.native else launched(event)
    total = sum(seconds for _, seconds, _ in found.values())
    if total <= 0:
        return []
    rows = [{"name": name, "calls": round(count / calls), "share": seconds / total, "launches": round(launches / calls)}
            for name, (count, seconds, launches) in found.items() if count >= calls] # less often: the profiler's own
    return sorted(rows, key=lambda row: -row["share"])[:MOST]
