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

VIEWS = 9


def main(stand_in, page, shots=None):
    lacking = webdriver.missing()
    if lacking:
        print("skipped: %d views in a browser (%s)" % (VIEWS, lacking))
        return 77
    server = subprocess.Popen([stand_in, page], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    address = server.stdout.readline().strip()
    root = address.split("?")[0]
    browser = webdriver.Browser()
    done = 0

    def seen(name):
        nonlocal done
        done += 1
        for mode in ("light", "dark"):
            browser.dark(mode == "dark")
            for width in (1200, 400):
                browser.size(width)
                overflow = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert overflow <= 0, "%s at %d px is %d px too wide" % (name, width, overflow)
                if shots:
                    browser.size(width, min(6000, browser.run("return document.documentElement.scrollHeight")))
                    browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
                    browser.shot(os.path.join(shots, "%s-%s-%d.png" % (name, mode, width)))
        browser.dark(False)
        browser.size(1200)
        assert browser.run("return document.title") == "PRAGMA", "a text of a run became a script"
        assert browser.run("return document.images.length") == 0, "a text of a run became an element"
        print("ok: " + name, flush=True)

    try:
        browser.open(address)
        browser.wait("document.querySelectorAll('tbody tr').length === 4", "four runs")
        assert "token" not in browser.run("return location.href"), "the token stays in the address"
        browser.wait("document.getElementById('link').textContent === 'live'", "the stream")
        seen("runs")

        browser.run("const i = document.querySelector('input'); i.value = 'ordi'; i.dispatchEvent(new Event('input'))")
        browser.wait("document.querySelectorAll('tbody tr').length === 1", "the filter")
        browser.run("document.querySelector('tbody a').click()")
        browser.wait("document.querySelectorAll('.rows .row').length === 8", "eight attempts")
        browser.run("document.querySelector('.rows .row').click()")
        browser.wait("document.querySelector('pre.diff .added')", "an attempt with its difference")
        browser.wait("document.querySelectorAll('ul.tree b').length === 3", "three kept versions in the tree")
        assert browser.run("const c = document.querySelector('canvas'); return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v > 0)"), "the curve is drawn"
        seen("run")

        browser.open(root + "#/runs/live")
        browser.wait("document.querySelectorAll('.rows .row').length === 2", "two attempts")
        browser.wait("document.getElementById('link').textContent === 'live'", "the stream")
        server.stdin.write("\n")
        server.stdin.flush()
        browser.wait("document.querySelectorAll('.rows .row').length === 3", "the third attempt, without a reload")
        browser.wait("document.getElementById('log').textContent.includes('attempt 3')", "the log")
        seen("live")

        browser.open(root + "#/runs/big")
        browser.wait("document.querySelectorAll('.rows .row').length > 5", "rows")
        assert browser.run("return document.querySelectorAll('.rows .row').length") < 60, "only what is seen exists"
        browser.run("const r = document.querySelector('.rows'); r.scrollTop = r.scrollHeight")
        browser.wait("[...document.querySelectorAll('.rows .row')].some((r) => r.innerText.startsWith('#1\\n') || r.innerText.startsWith('#1 '))", "the first of 10,000 at the end")
        seen("10000")

        browser.open(root + "#/runs/hostile")
        browser.wait("document.querySelectorAll('.rows .row').length === 4", "four attempts")
        browser.run("document.querySelector('.rows .row').click()")
        browser.wait("document.querySelector('pre.diff')", "an attempt")
        assert "<script>" in browser.run("return document.querySelector('pre.diff').textContent"), "markup is shown as it is"
        seen("hostile")

        browser.open(root + "#/suites")
        browser.wait("document.querySelectorAll('tbody tr').length === 2", "two tasks")
        browser.run("const s = document.querySelectorAll('select')[1]; s.value = 1; s.dispatchEvent(new Event('change'))")
        browser.wait("document.body.innerText.includes('2.50x')", "the other suite beside it")
        assert "0.60x (0.60 to 0.60)" in browser.run("return document.querySelector('tbody').innerText"), "how fast against the other suite"
        browser.run("document.querySelector('th button').click()")
        assert browser.run("return document.querySelector('tbody td').innerText") == "9_a", "sorted by number, not by letter"
        seen("suites")

        browser.open(root + "#/cluster")
        browser.wait("document.querySelectorAll('tbody').length === 3", "devices, nodes and the queue")
        text = browser.run("return document.body.innerText")
        for words in ("gpu1", "measuring 20261122-1, job 7, for 10 s", "building and checking 20261122-1, job 8", "free", "2 jobs in flight, 3 queued"):
            assert words in text, "the cluster's view lacks: " + words
        seen("cluster")

        browser.open(root + "#/knowledge")
        browser.wait("document.querySelector('form')", "the question")
        browser.run("document.querySelector('input').value = 'branches'; document.querySelector('form button').click()")
        browser.wait("document.querySelector('.card') && document.querySelector('.card').innerText.includes('branches')", "an answer")
        seen("knowledge")

        wrong = browser.log()
        assert not wrong, "the console says: %s" % wrong
        browser.open(root + "#/runs/none")
        browser.wait("document.body.innerText.includes('there is no run none')", "what is wrong")
        seen("missing")
        assert done == VIEWS, "%d of %d views" % (done, VIEWS)
    finally:
        browser.close()
        server.stdin.close()
        server.wait()
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:4]))
