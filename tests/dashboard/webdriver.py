"""A real, headless Chromium over WebDriver, with the standard library alone. For tests of pages."""
import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request


def missing():
    """What lacks for a browser here, or None."""
    lacking = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    return "no " + " and no ".join(lacking) if lacking else None


class Browser:
    def __init__(self, width=1200, height=900):
        self.home = tempfile.mkdtemp(prefix="pragma-chromium-")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.session = None
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.base = "http://127.0.0.1:" + line.strip().rstrip(".").split()[-1]
                break
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=%d,%d" % (width, height), "--user-data-dir=" + self.home]
        made = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": {"args": arguments}}}})
        self.session = made["sessionId"]

    def ask(self, method, path, body=None):
        prefix = "/session/" + self.session if self.session else ""
        request = urllib.request.Request(self.base + prefix + path, method=method, data=json.dumps(body or {}).encode() if method == "POST" else None, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.loads(answer.read())["value"]
        except urllib.error.HTTPError as e:
            raise AssertionError("WebDriver: %s" % e.read().decode()[:500])

    def open(self, address):
        self.ask("POST", "/url", {"url": address})

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, condition, what, seconds=60):
        """`condition`: JavaScript that becomes true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run("return " + condition)
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError("waited %d s for: %s; the page says: %s" % (seconds, what, self.run("return document.body.innerText")[:600]))

    def size(self, width, height=900):
        self.cdp("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})

    def dark(self, on):
        self.cdp("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]})

    def cdp(self, command, parameters):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self):
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]

    def shot(self, file):
        with open(file, "wb") as f:
            f.write(base64.b64decode(self.ask("GET", "/screenshot")))

    def close(self):
        try:
            if self.session:
                self.ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            shutil.rmtree(self.home, ignore_errors=True)
