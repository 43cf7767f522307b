# SPDX-License-Identifier: GPL-2.0
"""A headless Chromium, told what to do by its DevTools protocol over two pipes: what tests of pages need, no more."""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT = 60.0              # seconds of an answer, on a busy host


def find() -> str | None:
    """The browser's program, if this machine has one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One tab. Each call waits for its answer."""

    def __init__(self, to: int, answers: int) -> None:
        self._to, self._answers, self._rest, self._number = to, answers, b"", 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        self.call("Page.enable")

    _session: dict[str, str] = {}

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + TIMEOUT
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], max(0, end - time.monotonic()))
            data = os.read(self._answers, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError("the browser has ended" if ready else f"no word of the browser in {TIMEOUT:.0f} s")
            self._rest += data
        one, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(one)
        return found

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What a method of the protocol answers."""
        self._number += 1
        os.write(self._to, json.dumps({"id": self._number, "method": method, "params": parameters,
                                       **self._session}).encode() + b"\0")
        while (found := self._read()).get("id") != self._number:
            pass
        if "error" in found:
            raise RuntimeError(f"{method}: {found['error']['message']}")
        return dict(found["result"])

    def open(self, address: str, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Show a page at that size, and wait until it has loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url="about:blank")       # another fragment alone would not load the page anew
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """What an expression of the page is, or what its promise becomes."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']['exception'].get('description')}")
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until a condition of the page holds."""
        self.value(f"new Promise((done) => {{ const look = () => ({condition}) ? done() : setTimeout(look, 20); "
                   "look(); })")

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """The page as PNG: what fits the window, or all of it."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))


def _high(descriptor: int) -> int:
    """The same file by a number that the shell's redirections do not use."""
    found = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return found


@contextlib.contextmanager
def start(program: str, folder: Path) -> Iterator[Browser]:
    """A browser of its own, its files in the folder; it ends with the block."""
    ends = [_high(end) for pipe in (os.pipe(), os.pipe()) for end in pipe]
    theirs = (ends[0], ends[3])
    options = ["--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
               "--disable-background-networking", "--disable-dev-shm-usage", "--force-color-profile=srgb",
               f"--user-data-dir={folder}", "--remote-debugging-pipe"]
    if os.geteuid() == 0:
        options.append("--no-sandbox")
    child = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{theirs[0]} 4>&{theirs[1]}', "bash", program, *options],
                             pass_fds=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for end in theirs:
        os.close(end)
    try:
        yield Browser(ends[1], ends[2])
    finally:
        os.close(ends[1])           # the browser ends once this pipe is closed
        os.close(ends[2])
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
