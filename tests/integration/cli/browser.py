"""Controls a headless Chromium over a pipe, with its DevTools protocol: no port, no driver, nothing to install."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

LIMIT_S = 60


def find():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """Ends with the `with` block, which also removes its profile."""

    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="drun-browser-")
        commands, self.out = os.pipe()
        self.inp, answers = os.pipe()

        # Chromium reads commands from descriptor 3 and answers on 4. Move the pipe's ends first: they may be 3 or 4
        # themselves.
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (commands, answers)]

        def place():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.log = open(os.path.join(self.profile, "log"), "wb")
        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile}/profile"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=place, pass_fds=(3, 4))
        for fd in (commands, answers, *ends):
            os.close(fd)
        self.buffer, self.last_id, self.events = b"", 0, []
        target = self.command("Target.createTarget", {"url": "about:blank"}, session=None)["targetId"]
        self.session = self.command("Target.attachToTarget", {"targetId": target, "flatten": True},
                                    session=None)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.command(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        try:
            self.command("Browser.close", session=None)
            self.process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        for fd in (self.inp, self.out):
            os.close(fd)
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def command(self, method, parameters=None, session=""):
        """Returns the command's result. Keeps events that come in between."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters or {}}
        if session is not None:
            message["sessionId"] = session or self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while True:
            answer = self.receive(method)
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def receive(self, waiting_for):
        deadline = time.monotonic() + LIMIT_S
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.inp], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"{waiting_for}: no answer within {LIMIT_S} s")
            chunk = os.read(self.inp, 1 << 20)
            if not chunk:
                with open(self.log.name, errors="replace") as log:
                    raise OSError(f"{waiting_for}: the browser ended; it wrote: {log.read()[-2000:]}")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, width, height, dark=False):
        """Loads the file and waits until it is loaded. From then on `events` are those of this page."""
        self.command("Emulation.setDeviceMetricsOverride",
                     {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.command("Emulation.setEmulatedMedia",
                     {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.events = []
        self.command("Page.navigate", {"url": f"file://{path}"})
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.receive("the page to load"))

    def evaluate(self, expression):
        answer = self.command("Runtime.evaluate", {"expression": expression, "returnByValue": True})
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def count(self, selector):
        return self.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def screenshot(self):
        """Returns a PNG."""
        return base64.b64decode(self.command("Page.captureScreenshot", {"format": "png"})["data"])

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        return [e["params"] for e in self.events
                if e.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")]
