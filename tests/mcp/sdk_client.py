#!/usr/bin/env python3
"""`pragma mcp` against the official SDK's client: a real peer, in both revisions of the protocol, over pipes and over HTTP.

usage: sdk_client.py PRAGMA

Needs the package mcp (2 or newer): in the Python that $PRAGMA_MCP_PYTHON names, in build/mcp-venv
(python3 -m venv build/mcp-venv && build/mcp-venv/bin/pip install mcp), or in this one. Exit status 77 where there is none.
"""
import os
import subprocess
import sys
import tempfile

CHECKS = 11  # conversations below


def python_with_sdk(pragma):
    venv = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(pragma))), "mcp-venv", "bin", "python")
    for python in (os.environ.get("PRAGMA_MCP_PYTHON"), venv, sys.executable):
        if python and os.path.exists(python) and subprocess.run([python, "-c", "import mcp.client.client"], capture_output=True).returncode == 0:
            return python
    return None


TASK = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0 + 1.0

def get_inputs():
    return [torch.randn(64, 4096)]

def get_init_inputs():
    return []
"""


def kernel(body):
    return """#include "pragma_kernel.h"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  const long n = 64 * 4096;
  %s
}
""" % body


WRONG = kernel("for (long i = 0; i < n; ++i) y[i] = x[i];")
SLOW = kernel("for (long i = 0; i < n; ++i) { for (volatile int k = 0; k < 8; k = k + 1) {} y[i] = (x[i] > 0 ? x[i] : 0) * 2.0f + 1.0f; }")
FAST = kernel("for (long i = 0; i < n; ++i) { const float v = x[i] > 0.0f ? x[i] : 0.0f; y[i] = v + v + 1.0f; }")
TOOLS = {"verify", "profile", "compare", "optimize", "diagnose", "ask", "show_metric", "hardware", "runs"}

if __name__ == "__main__" and "--inside" not in sys.argv:
    if len(sys.argv) < 2:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    found = python_with_sdk(sys.argv[1])
    if not found:
        print("skipped: %d conversations with the MCP SDK's client (no Python with the package mcp; see the head of this file)" % CHECKS)
        sys.exit(77)
    sys.exit(subprocess.run([found, os.path.abspath(__file__)] + sys.argv[1:] + ["--inside"]).returncode)

import asyncio  # noqa: E402  (after the search for an interpreter)
import contextlib  # noqa: E402
import json  # noqa: E402
import time  # noqa: E402

from mcp.client.client import Client  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402

passed = 0


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def done(what):
    global passed
    passed += 1
    print("ok: " + what, flush=True)


def data_of(result):
    return result.structured_content


def text_of(result):
    return result.content[0].text


async def call(client, name, arguments=None, **more):
    return await client.call_tool(name, arguments or {}, read_timeout_seconds=300, **more)


def piped(pragma, home, mode):
    environment = {**os.environ, "PRAGMA_HOME": home}
    return Client(stdio_client(StdioServerParameters(command=pragma, args=["mcp"], env=environment, cwd=home)), mode=mode)


async def lists(client, revision):
    tools = {t.name: t for t in (await client.list_tools()).tools}
    check(set(tools) == TOOLS, "tools: %s" % sorted(tools))
    check(tools["verify"].annotations.read_only_hint is True and tools["optimize"].annotations.read_only_hint is False, "hints")
    check({p.name for p in (await client.list_prompts()).prompts} == {"make_kernel_faster", "explain_run"}, "prompts")
    prompt = await client.get_prompt("make_kernel_faster", {"task": "/x/task.py"})
    check("/x/task.py" in prompt.messages[0].content.text, "the prompt names the task")
    header = await client.read_resource("pragma://pragma_kernel.h")
    check("pragma_args" in header.contents[0].text, "the kernel's interface is a resource")
    check(len((await client.list_resource_templates()).resource_templates) == 4, "templates")
    done("%s: lists, prompts, resources" % revision)


async def judged(client, task):
    wrong = await call(client, "verify", {"task": task, "source": WRONG})
    check(not wrong.is_error and data_of(wrong)["verdict"]["stage"] == "compare", "a wrong kernel is a verdict: " + text_of(wrong))
    check("expected" in text_of(wrong), "it names the element")
    right = await call(client, "verify", {"task": task, "source": SLOW})
    check(data_of(right)["verdict"]["stage"] == "passed", text_of(right))
    check(data_of(right)["warm"] is True, "the task stays loaded")
    missing = await call(client, "verify", {"task": task})
    check(missing.is_error and "'source' or 'file'" in text_of(missing), text_of(missing))
    nowhere = await call(client, "verify", {"task": "/no/such.py", "source": SLOW})
    check(nowhere.is_error and "no such task file" in text_of(nowhere), text_of(nowhere))
    done("verify: wrong, right, warm, misused")


async def measured(client, task):
    steps = []

    async def heard(progress, total, message):
        steps.append((progress, message))

    result = await call(client, "profile", {"task": task, "source": SLOW, "profile_seconds": 1}, progress_callback=heard)
    check(data_of(result)["profile"]["time"]["candidate_seconds"] > 0, text_of(result))
    check(len(steps) >= 2 and steps == sorted(steps, key=lambda s: s[0]), "progress grows: %s" % steps)
    ratio = data_of(await call(client, "compare", {"task": task, "source": FAST, "other_source": SLOW}))["against"]["timing"]["speedup"]
    check(ratio["low"] > 1, "eight empty turns of a loop cost time: %s" % ratio)
    done("profile with progress, compare")


async def known(client):
    answer = await call(client, "ask", {"question": "which counter shows branch mispredictions"})
    check(data_of(answer)["covered"] and data_of(answer)["entries"], text_of(answer))
    metric = await call(client, "show_metric", {"name": "branch-misses"})
    check("branch" in text_of(metric), text_of(metric))
    machine = await call(client, "hardware")
    check(data_of(machine)["limits"]["peak_gflops"] > 0, text_of(machine))
    done("ask, show_metric, hardware")


async def optimized(client, task):
    attempts = []

    async def heard(progress, total, message):
        attempts.append(message)

    result = await call(client, "optimize", {"task": task, "attempts": 2, "check": False}, progress_callback=heard)
    check(not result.is_error, text_of(result))
    busy = "No speed-up was established" in text_of(result)  # beside other work there is no figure
    check(busy or data_of(result)["confirmed"], text_of(result))
    check(any("attempt 1" in m for m in attempts), "each attempt is told: %s" % attempts)
    run = data_of(result)["run"]
    listed = data_of(await call(client, "runs", {"limit": 1}))["runs"]
    check(listed[0]["id"] == run, "the run is in the store")
    why = await call(client, "diagnose", {"run": run})
    check(not why.is_error and "source" in data_of(why), text_of(why))
    record = await client.read_resource("pragma://runs/%s/record" % run)
    check(json.loads(record.contents[0].text)["run"]["id"] == run, "the record is a resource")
    check("<!DOCTYPE html>" in (await client.read_resource("pragma://runs/%s/report" % run)).contents[0].text, "and the report")
    done("optimize with progress, runs, diagnose, resources of the run" + " (no figure: other work kept the machine busy)" * busy)


async def cancelled(client, task):
    started = asyncio.Event()

    async def heard(progress, total, message):
        started.set()

    begun = time.monotonic()
    running = asyncio.create_task(client.call_tool("optimize", {"task": task, "attempts": 500}, progress_callback=heard))
    await asyncio.wait_for(started.wait(), 120)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    # The store is free again when the run has ended: the next one would be refused as locked.
    while True:
        runs = data_of(await client.call_tool("runs", {"limit": 1}))["runs"]
        if runs and runs[0]["state"] == "interrupted":
            break
        check(time.monotonic() - begun < 200, "the cancelled run has not ended: %s" % runs)
        await asyncio.sleep(0.5)
    done("cancel: the run ends as interrupted")


def http(address, token):
    import httpx2

    return streamable_http_client(address, http_client=httpx2.AsyncClient(headers={"Authorization": "Bearer " + token}, timeout=300))


async def over_http(pragma, home, task):
    server = await asyncio.create_subprocess_exec(pragma, "mcp", "--http", "--port", "0", stderr=asyncio.subprocess.PIPE, cwd=home, env={**os.environ, "PRAGMA_HOME": home})
    try:
        line = (await asyncio.wait_for(server.stderr.readline(), 60)).decode()
        address = next(word for word in line.replace(",", " ").split() if word.startswith("http"))
        with open(os.path.join(home, "mcp-token")) as f:
            token = f.read().strip()

        async def one(mode, source, stage):
            async with Client(http(address, token), mode=mode) as client:
                for _ in range(2):
                    result = await client.call_tool("verify", {"task": task, "source": source}, read_timeout_seconds=300)
                    check(data_of(result)["verdict"]["stage"] == stage, text_of(result))
                return client.protocol_version

        versions = await asyncio.gather(one("auto", SLOW, "passed"), one("legacy", WRONG, "compare"))
        check(versions[0] != versions[1], "one client of each revision: %s" % (versions,))
        done("two clients at once over HTTP, %s and %s, each with its own answers" % tuple(versions))
        refused = False
        try:
            async with Client(http(address, "wrong"), mode="legacy") as client:
                await client.list_tools()
        except BaseException:
            refused = True
        check(refused, "a client without the token is refused")
        done("no token, no answer")
    finally:
        server.terminate()
        await server.wait()
    check(server.returncode == 0, "SIGTERM ends it: %s" % server.returncode)
    done("the server ends on SIGTERM")


async def main(pragma):
    home = tempfile.mkdtemp(prefix="pragma-mcp-")
    if "XDG_CACHE_HOME" in os.environ:  # where CTest has measured this machine's limits
        os.symlink(os.path.join(os.environ["XDG_CACHE_HOME"], "pragma"), os.path.join(home, "cache"))
    task = os.path.join(home, "task.py")
    with open(task, "w") as f:
        f.write(TASK)
    async with piped(pragma, home, "auto") as client:
        check(client.protocol_version == "2026-07-28", client.protocol_version)
        await lists(client, client.protocol_version)
        await judged(client, task)
        await measured(client, task)
        await known(client)
        await optimized(client, task)
        await cancelled(client, task)
    async with piped(pragma, home, "legacy") as client:
        check(client.protocol_version == "2025-11-25", client.protocol_version)
        await lists(client, client.protocol_version)
        right = await call(client, "verify", {"task": task, "source": FAST})
        check(data_of(right)["verdict"]["stage"] == "passed", text_of(right))
        done("verify in the earlier revision")
    await over_http(pragma, home, task)
    check(passed == CHECKS, "%d of %d conversations" % (passed, CHECKS))
    import shutil

    shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    asyncio.run(main(os.path.abspath(sys.argv[1])))
