"""A real browser for the tests of the live page: Chromium, spoken to over two pipes."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-extensions",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0
LAUNCH = """
import fcntl, os, sys
high = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3]]
for ours, browsers in zip(high, (3, 4)):  # it reads from descriptor 3 and writes to 4
    os.dup2(ours, browsers)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Tab:
    """One page in the browser; `console` is what was wrong."""

    def __init__(self, process: subprocess.Popen[bytes], out: int, into: int) -> None:
        self._process, self._out, self._into = process, out, into
        self._count, self._buffer, self._session = 0, b"", ""
        self.console: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """What the browser answers to a command."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self) -> Any:
        """The next message; what the page complains of is kept."""
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._into], [], [], deadline - time.monotonic())
            assert ready, "the browser does not answer"
            read = os.read(self._into, 1 << 20)
            assert read, "the browser has ended"
            self._buffer += read
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        params = message.get("params", {})
        if message.get("method") == "Log.entryAdded":
            self.console.append(params["entry"]["text"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.console.append(str(params["exceptionDetails"]))
        elif message.get("method") == "Runtime.consoleAPICalled":
            self.console.append(str(params["args"]))
        return message

    def look(self, width: int, height: int, scheme: str = "light") -> None:
        """The size of the window, and light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def open(self, url: str) -> None:
        """Go to an address."""
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """The value of an expression on the page, awaited."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script: str, seconds: float = PATIENCE) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(AssertionError):  # while the page is being replaced
                if self.run(script):
                    return
            assert time.monotonic() < deadline, script
            time.sleep(0.05)

    def shot(self, path: Path, whole: bool = False) -> None:
        """A picture of the window, or of the whole page."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))


@contextlib.contextmanager
def tab(program: str, profile: Path) -> Iterator[Tab]:
    """A page in a browser of its own, which ends with the block."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    launch = [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out)]
    process = subprocess.Popen(
        [*launch, program, *FLAGS, f"--user-data-dir={profile}"],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Tab(process, ours_out, ours_in)
    finally:
        os.close(ours_out)  # it ends by itself
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours_in)
