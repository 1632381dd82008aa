#!/usr/bin/env python3
"""Both reports in a real, headless Chromium: light and dark, wide and as a phone, with markup in every text, with 120 attempts.

usage: browser.py STAND_IN [FOLDER_FOR_SCREENSHOTS]

Exit status 77 where there is no Chromium (Debian's chromium and chromium-driver, for tests only).
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "dashboard"))
import webdriver  # noqa: E402

PAGES = {"report": "PRAGMA: Softplus", "hostile": None, "unconfirmed": "PRAGMA: Softplus", "many": "PRAGMA: Softplus", "bench": "PRAGMA: suite", "bench-hostile": "PRAGMA: suite"}

# Texts of a drawing that lie on each other by more than a pixel, or beyond its edge; turned ones are left out, their boxes say nothing.
OVERLAPS = """
const found = [];
for (const svg of document.querySelectorAll('svg')) {
  const texts = [...svg.querySelectorAll('text')].filter((t) => !t.closest('[transform]')).map((t) => [t.textContent, t.getBoundingClientRect()]).filter(([, r]) => r.width > 0);
  const sheet = svg.getBoundingClientRect();
  for (const [a, r] of texts) if (r.right > sheet.right + 1 || r.left < sheet.left - 1) found.push(a + ' / the edge');
  texts.forEach(([a, r], i) => texts.slice(i + 1).forEach(([b, s]) => {
    if (Math.min(r.right, s.right) - Math.max(r.left, s.left) > 1 && Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top) > 3) found.push(a + ' / ' + b);
  }));
}
return found;
"""


def look_at(browser, name, title, shots):
    for mode in ("light", "dark"):
        browser.dark(mode == "dark")
        for width in (1200, 400):
            browser.size(width)
            overflow = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert overflow <= 0, "%s at %d px is %d px too wide" % (name, width, overflow)
            hidden = browser.run("return [...document.querySelectorAll('table')].filter((t) => t.scrollWidth > t.parentElement.clientWidth + 1).map((t) => t.innerText.slice(0, 80))")
            assert not hidden, "%s at %d px: a part of a table lies beyond the edge: %s" % (name, width, hidden)
            overlaps = browser.run(OVERLAPS)
            assert not overlaps, "%s at %d px: names lie on each other: %s" % (name, width, overlaps[:5])
            if shots:
                browser.size(width, min(6000, browser.run("return document.documentElement.scrollHeight")))
                browser.shot(os.path.join(shots, "%s-%s-%d.png" % (name, mode, width)))
    browser.dark(False)
    browser.size(1200)
    says = browser.run("return document.title")
    assert "owned" not in says and (title is None or says == title), "a text of a run became a script: " + says
    assert browser.run("return document.images.length") == 0, "a text of a run became an element"
    # What a hostile text would need: the page's own policy refuses a script that is not its own.
    browser.run("const s = document.createElement('script'); s.textContent = 'document.title = \\'owned\\''; document.body.append(s)")
    assert browser.run("return document.title") != "owned", name + " runs any script"


def of_report(browser):
    text = browser.run("return document.querySelector('.verdict').innerText")
    assert text.startswith("2.31x faster than Torch"), text
    browser.run("document.querySelector('a[href=\"#attempt-3\"]').click()")
    browser.wait("document.getElementById('attempt-3').closest('details').open", "the link opens the attempt that is folded")


def of_bench(browser):
    names = "return [...document.querySelectorAll('#tasks tbody tr')].map((r) => r.cells[0].innerText)"
    heads = "document.querySelectorAll('#tasks th button')"
    for column, once, again in ((0, ["9_a", "10_b", "11_c"], ["11_c", "10_b", "9_a"]), (2, ["10_b", "9_a", "11_c"], ["11_c", "9_a", "10_b"]), (4, ["10_b", "9_a", "11_c"], ["11_c", "9_a", "10_b"])):
        for wanted in (once, again):
            browser.run("%s[%d].click()" % (heads, column))
            assert browser.run(names) == wanted, "column %d: %s" % (column, browser.run(names))
    text = browser.run("return document.querySelector('#compared').innerText")
    for words in ("no difference established", "was right, and is not now", "not established in one of the two", "no mean is established"):
        assert words in text, "the comparison lacks: " + words


def main(stand_in, shots=None):
    lacking = webdriver.missing()
    if lacking:
        print("skipped: %d pages in a browser (%s)" % (len(PAGES), lacking))
        return 77
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([stand_in, folder], check=True)
        browser = webdriver.Browser()
        try:
            for name, title in PAGES.items():
                browser.open("file://%s/%s.html" % (folder, name))
                {"report": of_report, "bench": of_bench}.get(name, lambda b: None)(browser)
                if name == "unconfirmed":
                    assert browser.run("return document.querySelector('.verdict').innerText").startswith("Not established"), "a figure where nothing was established"
                wrong = browser.log()
                assert not wrong, "the console says: %s" % wrong
                look_at(browser, name, title, shots)
                browser.log()  # the refusal that look_at() asked for
                print("ok: " + name, flush=True)
        finally:
            browser.close()
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:3]))
