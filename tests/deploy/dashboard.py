#!/usr/bin/env python3
"""docs/deploy/grafana.json against the metrics of a real head that has work, and its form against Grafana's own model of a dashboard.

usage: dashboard.py ROOT CLUSTER_STAND_IN PRAGMA

With Prometheus (Debian's package prometheus: in PATH, or in the folder $PRAGMA_PROMETHEUS) a real server scrapes the head and answers each panel's query; with the package
grafana-foundation-sdk, in this Python or that of $PRAGMA_GRAFANA_PYTHON, the form is checked. Exit status 77 where one of them is missing: it says what that leaves out.
"""
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

SCRAPES = 4  # before anything is asked: a rate needs two

FORM = """
import json, sys
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
plugins.register_default_plugins()
ours = json.load(open(sys.argv[1]))
theirs = json.loads(JSONEncoder().encode(Dashboard.from_json(ours)))
def compare(a, b, where):
    if isinstance(a, dict):
        for key in a:
            if not isinstance(b, dict) or key not in b:
                sys.exit("Grafana knows no " + where + "/" + key)
            compare(a[key], b[key], where + "/" + key)
    elif isinstance(a, list):
        if len(a) != len(b):
            sys.exit("Grafana drops a part of " + where)
        for i, (x, y) in enumerate(zip(a, b)):
            compare(x, y, where + "/" + str(i))
    elif a != b:
        sys.exit("Grafana reads %s as %r" % (where, b))
compare(ours, theirs, "")
"""


def get(address):
    with urllib.request.urlopen(address, timeout=10) as answer:
        return answer.read().decode()


def wait(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit("within %d s there was no %s" % (seconds, what))


def check_layout(dashboard):
    """Panels have ids of their own, and none lies on another or beyond the 24 columns."""
    taken = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24, "%s is beyond the right edge" % panel["title"]
        assert not cells & taken, "%s lies on another panel" % panel["title"]
        taken |= cells
    for what in ("id", "title"):
        values = [p[what] for p in dashboard["panels"]]
        assert len(set(values)) == len(values), "two panels have one " + what


def queries(dashboard):
    return [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel["targets"]]


def check_names(address, dashboard):
    wanted = {name for _, expression in queries(dashboard) for name in re.findall(r"pragma_[a-z_]+", expression)}
    seen = lambda: set(re.findall(r"^(pragma_[a-z_]+)", get(address + "/metrics"), re.MULTILINE))
    wait(lambda: wanted <= seen(), "figure of each of " + ", ".join(sorted(wanted - seen())))


def ask(server, expression):
    answer = json.loads(get(server + "/api/v1/query?" + urllib.parse.urlencode({"query": expression})))
    assert answer["status"] == "success", expression
    return answer["data"]["result"]


def ask_prometheus(program, address, dashboard, folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = os.path.join(folder, "prometheus.yml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("scrape_configs:\n- job_name: pragma\n  scrape_interval: 1s\n  static_configs:\n  - targets: ['%s']\n" % address.split("//")[1])
    server = "http://127.0.0.1:%d" % port
    with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
        process = subprocess.Popen([program, "--config.file", config, "--storage.tsdb.path", os.path.join(folder, "data"), "--web.listen-address", "127.0.0.1:%d" % port], stdout=log, stderr=log)
    try:
        wait(lambda: any(float(r["value"][1]) >= SCRAPES for r in ask(server, "count_over_time(pragma_runs{state='running'}[1m])")), "scrape of the head")
        for title, expression in queries(dashboard):
            series = ask(server, expression)
            assert series, "%s: %s gives nothing" % (title, expression)
            assert all(math.isfinite(float(s["value"][1])) for s in series), "%s: %s is no number" % (title, expression)
            print("%s: %s: %d series, e.g. %s" % (title, expression, len(series), series[0]["value"][1]))
    finally:
        process.terminate()
        process.wait()


def check_form(path):
    python = os.environ.get("PRAGMA_GRAFANA_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import grafana_foundation_sdk"], stderr=subprocess.DEVNULL).returncode != 0:
        return False
    done = subprocess.run([python, "-c", FORM, path], stderr=subprocess.PIPE)
    assert done.returncode == 0, "grafana.json: " + done.stderr.decode()
    return True


def main():
    root, stand_in, pragma = sys.argv[1:4]
    path = os.path.join(root, "docs", "deploy", "grafana.json")
    with open(path, encoding="utf-8") as f:
        dashboard = json.load(f)
    check_layout(dashboard)
    missing = [] if check_form(path) else ["no grafana-foundation-sdk: the form of the dashboard is not checked"]
    where = os.environ.get("PRAGMA_PROMETHEUS")
    prometheus, promtool = shutil.which("prometheus", path=where), shutil.which("promtool", path=where)
    cluster = subprocess.Popen([stand_in, pragma], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        address = cluster.stdout.readline().decode().strip()
        assert address, "the cluster did not begin"
        check_names(address, dashboard)
        if promtool:
            done = subprocess.run([promtool, "check", "metrics"], input=get(address + "/metrics").encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            assert done.returncode == 0, "promtool: " + done.stdout.decode()
        if prometheus:
            with tempfile.TemporaryDirectory() as folder:
                ask_prometheus(prometheus, address, dashboard, folder)
        else:
            missing.append("no prometheus: %d queries are not asked" % len(queries(dashboard)))
    finally:
        cluster.stdin.close()
        cluster.wait()
    print("dashboard: checked" + "".join("\n" + m for m in missing))
    sys.exit(77 if missing else 0)


main()
