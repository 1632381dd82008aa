#!/usr/bin/env python3
"""The live page in a real, headless Chromium: every view, a run that goes on while one looks, 10,000 attempts, a kernel full of markup.

usage: browser.py STAND_IN PAGE_FOLDER [FOLDER_FOR_SCREENSHOTS]

Exit status 77 where there is no Chromium (Debian's chromium and chromium-driver, for tests only).
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import webdriver  # noqa: E402

class Look:
    """A browser on the stand-in's page, and what every view is checked for."""

    def __init__(self, stand_in, page, shots):
        self.server = subprocess.Popen([stand_in, page], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.server.stdout.readline().strip()
        self.root = self.address.split("?")[0]
        self.browser = webdriver.Browser()
        self.shots = shots

    def close(self):
        self.browser.close()
        self.server.stdin.close()
        self.server.wait()

    def seen(self, name):
        """Nothing is too wide, light and dark, on a screen and on a telephone; no text of a run became more than text."""
        for mode in ("light", "dark"):
            self.browser.dark(mode == "dark")
            for width in (1200, 400):
                self.browser.size(width)
                overflow = self.browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert overflow <= 0, "%s at %d px is %d px too wide" % (name, width, overflow)
                hidden = self.browser.run("return [...document.querySelectorAll('table')].filter((t) => t.scrollWidth > t.parentElement.clientWidth + 1).map((t) => t.innerText.slice(0, 80))")
                assert not hidden, "%s at %d px: a part of a table lies beyond the edge: %s" % (name, width, hidden)
                if self.shots:
                    self.browser.size(width, min(6000, self.browser.run("return document.documentElement.scrollHeight")))
                    self.browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
                    self.browser.shot(os.path.join(self.shots, "%s-%s-%d.png" % (name, mode, width)))
        self.browser.dark(False)
        self.browser.size(1200)
        assert self.browser.run("return document.title") == "PRAGMA", "a text of a run became a script"
        assert self.browser.run("return document.images.length") == 0, "a text of a run became an element"
        print("ok: " + name, flush=True)


def runs(look):
    look.browser.open(look.address)
    look.browser.wait("document.querySelectorAll('tbody tr').length === 4", "four runs")
    assert "token" not in look.browser.run("return location.href"), "the token stays in the address"
    look.browser.wait("document.getElementById('link').textContent === 'live'", "the stream")
    look.seen("runs")


def one_run(look):
    look.browser.run("const i = document.querySelector('input'); i.value = 'ordi'; i.dispatchEvent(new Event('input'))")
    look.browser.wait("document.querySelectorAll('tbody tr').length === 1", "the filter")
    look.browser.run("document.querySelector('tbody a').click()")
    look.browser.wait("document.querySelectorAll('.rows .row').length === 8", "eight attempts")
    look.browser.run("document.querySelector('.rows .row').click()")
    look.browser.wait("document.querySelector('pre.diff .added')", "an attempt with its difference")
    assert "Build and run log" in look.browser.run("return document.body.innerText"), "what the compiler said"
    look.browser.wait("document.querySelectorAll('ul.tree b').length === 3", "three kept versions in the tree")
    assert look.browser.run("const c = document.querySelector('canvas'); return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v > 0)"), "the curve is drawn"
    look.seen("run")


def a_run_that_goes_on(look):
    look.browser.open(look.root + "#/runs/live")
    look.browser.wait("document.querySelectorAll('.rows .row').length === 2", "two attempts")
    look.browser.wait("document.getElementById('link').textContent === 'live'", "the stream")
    look.server.stdin.write("\n")
    look.server.stdin.flush()
    look.browser.wait("document.querySelectorAll('.rows .row').length === 3", "the third attempt, without a reload")
    look.browser.wait("document.querySelectorAll('#log .line').length === 2", "the log, without a reload")
    line = look.browser.run("return [...document.querySelectorAll('#log .line')].pop().innerText")
    assert "#3" in line and "verifying" in line and "about to come" in line, "time, attempt, stage and text: %s" % line
    assert "<script>" in look.browser.run("return document.getElementById('log').textContent"), "markup in the log is shown as it is"
    look.seen("live")
    for _ in range(520):
        look.server.stdin.write("\n")
    look.server.stdin.flush()
    look.browser.wait("document.querySelector('#log .line:last-child').innerText.includes('#523')", "the newest line")
    assert look.browser.run("return document.querySelectorAll('#log .line').length") == 500, "the log is kept bounded"
    assert look.browser.run("const l = document.getElementById('log'); return l.scrollTop + l.clientHeight > l.scrollHeight - 40"), "and shows its end"
    look.seen("long")  # a chain of 520 versions, each better than the one before, among other things


def ten_thousand_attempts(look):
    look.browser.open(look.root + "#/runs/big")
    look.browser.wait("document.querySelector('h1').textContent === 'task of big' && document.querySelectorAll('.rows .row').length > 5", "rows")
    assert look.browser.run("return document.querySelectorAll('.rows .row').length") < 60, "only what is seen exists"
    look.browser.run("const r = document.querySelector('.rows'); r.scrollTop = r.scrollHeight")
    look.browser.wait("[...document.querySelectorAll('.rows .row')].some((r) => r.innerText.startsWith('#1\\n') || r.innerText.startsWith('#1 '))", "the first of 10,000 at the end")
    look.seen("10000")


def hostile_texts(look):
    look.browser.open(look.root + "#/runs/hostile")
    look.browser.wait("document.querySelectorAll('.rows .row').length === 4", "four attempts")
    look.browser.run("document.querySelector('.rows .row').click()")
    look.browser.wait("document.querySelector('pre.diff')", "an attempt")
    assert "<script>" in look.browser.run("return document.querySelector('pre.diff').textContent"), "markup is shown as it is"
    look.seen("hostile")


def suites(look):
    look.browser.open(look.root + "#/suites")
    look.browser.wait("document.querySelectorAll('tbody tr').length === 2", "two tasks")
    look.browser.run("const s = document.querySelectorAll('select')[1]; s.value = 1; s.dispatchEvent(new Event('change'))")
    look.browser.wait("document.body.innerText.includes('2.50x')", "the other suite beside it")
    assert "0.60x (0.60 to 0.60)" in look.browser.run("return document.querySelector('tbody').innerText"), "how fast against the other suite"
    look.browser.run("document.querySelector('th button').click()")
    assert look.browser.run("return document.querySelector('tbody td').innerText") == "9_a", "sorted by number, not by letter"
    look.seen("suites")


def cluster(look):
    look.browser.open(look.root + "#/cluster")
    look.browser.wait("document.querySelectorAll('tbody').length === 3", "devices, nodes and the queue")
    text = look.browser.run("return document.body.innerText")
    for words in ("gpu1", "measuring 20261122-1, job 7, for 10 s", "building and checking 20261122-1, job 8", "free", "2 jobs in flight, 3 queued"):
        assert words in text, "the cluster's view lacks: " + words
    look.seen("cluster")


def knowledge(look):
    look.browser.open(look.root + "#/knowledge")
    look.browser.wait("document.querySelector('form')", "the question")
    look.browser.run("document.querySelector('input').value = 'branches'; document.querySelector('form button').click()")
    look.browser.wait("document.querySelector('.card') && document.querySelector('.card').innerText.includes('branches')", "an answer")
    look.seen("knowledge")


def what_is_missing(look):
    wrong = look.browser.log()
    assert not wrong, "the console says: %s" % wrong
    look.browser.open(look.root + "#/runs/none")
    look.browser.wait("document.body.innerText.includes('there is no run none')", "what is wrong")
    look.seen("missing")


VIEWS = [runs, one_run, a_run_that_goes_on, ten_thousand_attempts, hostile_texts, suites, cluster, knowledge, what_is_missing]


def main(stand_in, page, shots=None):
    lacking = webdriver.missing()
    if lacking:
        print("skipped: %d views in a browser (%s)" % (len(VIEWS), lacking))
        return 77
    look = Look(stand_in, page, shots)
    try:
        for view in VIEWS:
            view(look)
    finally:
        look.close()
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:4]))
