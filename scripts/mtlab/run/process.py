# SPDX-License-Identifier: GPL-2.0
"""QEMU's life in one run: started, watched, asked what is wrong when its time is up, ended in any case."""

import contextlib
import os
import select
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ..util import stop
from . import failure, states
from .options import Options
from .qmp import Qmp

ANSWER = 5                  # seconds that QEMU may take to answer on a busy host
STARTED = "lab: run"        # init says so on the console when the command begins
PATIENCE = 10               # times longer than on an idle host: what a guest may take on a busy one


class Tail:
    """Follows a growing file; before is what was said before it."""

    def __init__(self, path: Path, sink: Callable[[str], None] | None, before: str = "") -> None:
        self.path, self.sink, self.text, self._at = path, sink, before, 0
        if before and sink:
            sink(before)

    def poll(self) -> bool:
        """Read what is new; true if there was something."""
        with open(self.path, "rb") as f:
            f.seek(self._at)
            data = f.read()
        self._at += len(data)
        new = data.decode(errors="replace")
        self.text += new
        if new and self.sink:
            self.sink(new)
        return bool(new)


def _press(qmp: Qmp, key: str) -> None:
    """Alt, SysRq and a key, as on a keyboard."""
    qmp.ask(ANSWER, "send-key", keys=[{"type": "qcode", "data": k} for k in ("alt", "sysrq", key)])


def worked(child: subprocess.Popen[bytes]) -> float:
    """Seconds of the host's CPUs that QEMU has had."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _listen(child: subprocess.Popen[bytes], console: Tail, seconds: float, quiet: float) -> None:
    """Until the guest ends, or has said something and then nothing for a while.

    A guest that says nothing has these seconds of the host's CPUs for it: on a busy host they take long.
    """
    until = worked(child) + seconds
    end = time.monotonic() + PATIENCE * seconds
    silent = 0.0
    while child.poll() is None and time.monotonic() < end:
        if console.poll():
            silent = time.monotonic() + quiet
        elif time.monotonic() > silent if silent else worked(child) > until:
            return
        time.sleep(0.05)


def _hang_or_timeout(qmp: Qmp, child: subprocess.Popen[bytes], console: Tail,
                     seconds: float, what: str) -> failure.Failure:
    """The time is up: ask the kernel where it is, and tell a slow command from a dead guest."""
    before = len(console.text)
    detail = f"{what} had {seconds:.0f} s"
    alive = False
    # The kernel's own watchdog may end the guest meanwhile; then it has said why.
    with contextlib.suppress(OSError, EOFError):
        qmp.ask(ANSWER, "qmp_capabilities")     # a second time does no harm
        # At the level that guests boot with, the console would name no task.
        for key in ("7", "w", "l"):
            _press(qmp, key)
            _listen(child, console, 3, 1)
        alive = "sysrq: " in console.text[before:]
        if not alive:
            qmp.ask(ANSWER, "inject-nmi")
            _listen(child, console, 60, 30)     # the kernel panics, which ends the guest once each CPU is shown
    console.poll()      # what a panic in an NMI printed comes out right before the end
    lines = tuple(console.text[before:].splitlines()[:200])
    return failure.Failure("timeout" if alive else "hang", lines,
                           detail if alive else f"{detail}; it answers no key, what the kernel said last follows")


def emulate(args: Sequence[str], says: Path, state: states.State | None, console: Tail, output: Tail,
             options: Options) -> tuple[failure.Failure | None, int, float]:
    """Run QEMU until it ends: what was wrong with its guest, as far as seen from outside, its exit status, its work."""
    ours, theirs = socket.socketpair()
    with ours:
        control = Qmp(ours)
        if state:
            state.begin(control)
        with theirs, open(says, "wb") as said:
            child = subprocess.Popen(
                [*args, *Qmp.arguments(theirs)],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
                pass_fds=[theirs.fileno(), *(state.files if state else [])])
        try:
            wrong = _watch(child, control, console, output, options)
            work = worked(child)
        finally:
            if child.poll() is None:
                child.kill()
            ended = child.wait()
    console.poll()
    output.poll()
    return wrong, ended, work


def _watch(child: subprocess.Popen[bytes], control: Qmp, console: Tail, output: Tail,
           options: Options) -> failure.Failure | None:
    """Pass on what the guest says until it ends, or until its time is up: first to boot, then to run.

    One that ends by itself is not waited for yet: what it worked can still be read.
    """
    running = False
    limit = options.boot_timeout
    end = time.monotonic() + limit
    silent = time.monotonic() + options.silence
    wait = 0.0
    with open(os.pidfd_open(child.pid), "rb", buffering=0) as ended:
        while not select.select([ended], [], [], wait)[0]:
            busy = [console.poll(), output.poll()]
            stop.pulse()
            if not running and STARTED in console.text:
                running, limit = True, options.timeout
                end = time.monotonic() + limit
            if not console.text and time.monotonic() > silent:
                return failure.Failure("hang", detail=f"not a word from it in {options.silence:.0f} s")
            if time.monotonic() > end:
                return _hang_or_timeout(control, child, console, limit, "the command" if running else "the boot")
            wait = 0.005 if any(busy) else 0.02
    return None
