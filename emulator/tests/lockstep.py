# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs on the bare machine (vtime/), as the only firmware there is: made, run, and watched by QMP.

The emulator comes from MTFTL_QEMU, or else from $MTFTL_BUILD/qemu or build/qemu.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("MTFTL_BUILD", HERE.parents[1] / "build"))
QEMU = os.environ.get("MTFTL_QEMU", str(BUILD / "qemu/qemu-system-x86_64"))
CONTENTION = [(50, 50), (50, 1000), (200, 800), (1000, 5000)]  # instructions with and without the lock
LOCKSTEP = "shift=0,sleep=off,quantum={}"
# What share.c does.
ATOMIC, STORE, SWAP, FLAG, READ, TICKET, QUEUE, RWSEM = range(8)
Lines = dict[str, list[int]]


def build(folder: Path, name: str, **defines: int) -> Path:
    """Makes vtime/NAME.c a firmware image."""
    source = HERE / "vtime"
    image = folder / "-".join([name, *(f"{k}{v}" for k, v in defines.items())])
    if not image.exists():
        elf = image.with_suffix(".elf")
        subprocess.run(["gcc", "-m32", "-O2", "-ffreestanding", "-fno-pic", "-fno-stack-protector",
                        "-fcf-protection=none", "-mno-sse", "-mno-mmx", "-nostdlib", "-static", "-Wall", "-Wextra",
                        "-Werror", f"-Wl,-T,{source}/guest.ld,--build-id=none,-z,noexecstack",
                        *(f"-D{k}={v}" for k, v in defines.items()), "-o", elf,
                        source / "start.S", source / "guest.c", source / f"{name}.c"], check=True)
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", "-j", ".reset", "--gap-fill", "0xf4", elf, image],
                       check=True)
    return image


def command(image: Path, icount: str | None, cpus: int, console: Path, *more: str) -> list[str]:
    return [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35,smm=off", "-accel", "tcg",
            "-cpu", "qemu64", "-global", "apic-common.vapic=off", "-smp", str(cpus), "-m", "64M",
            *(["-icount", icount] if icount else []), "-bios", str(image),
            "-chardev", f"file,id=out,path={console}", "-device", "isa-debugcon,chardev=out",
            "-device", "isa-debug-exit,iobase=0xf4,iosize=4", *more]


def run(image: Path, icount: str | None, cpus: int, console: Path, *more: str) -> str:
    done = subprocess.run(command(image, icount, cpus, console, *more), timeout=120, capture_output=True, text=True)
    assert done.returncode == 1 and not done.stderr, done.stderr
    return console.read_text()


class Monitor:
    """A running emulator, and QMP to it."""

    def __init__(self, arguments: list[str]):
        ours, theirs = socket.socketpair()
        with theirs:
            fd = theirs.fileno()
            self.process = subprocess.Popen([*arguments, "-chardev", f"socket,id=qmp,fd={fd}",
                                             "-mon", "chardev=qmp,mode=control"], pass_fds=[fd])
        self.socket = ours
        self.stream = ours.makefile()
        self.stream.readline()
        self.execute("qmp_capabilities")

    def execute(self, name: str, **arguments: object) -> object:
        """The command's result, or None once the emulator has ended."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(json.dumps({"execute": name, "arguments": arguments}).encode())
            for line in self.stream:
                reply = json.loads(line)
                if "return" in reply:
                    return reply["return"]
                assert "event" in reply, reply
        return None

    def refused(self, name: str, **arguments: object) -> bool:
        """Is the command an error?"""
        self.socket.sendall(json.dumps({"execute": name, "arguments": arguments}).encode())
        return "error" in json.loads(next(x for x in self.stream if "event" not in json.loads(x)))

    def human(self, line: str) -> str | None:
        return self.execute("human-monitor-command", **{"command-line": line})

    def wait(self) -> None:
        status = self.process.wait(timeout=120)
        assert status == 1, f"the emulator ended with {status}"


@contextlib.contextmanager
def monitored(arguments: list[str]) -> Iterator[Monitor]:
    monitor = Monitor(arguments)
    try:
        yield monitor
    finally:
        monitor.process.kill()
        monitor.process.wait()
        monitor.stream.close()
        monitor.socket.close()


@contextlib.contextmanager
def busy_host() -> Iterator[None]:
    """Something else runs on every core of the host."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def parsed(text: str) -> Lines:
    return {words[0]: [int(x) for x in words[1:]] for words in (line.split() for line in text.splitlines())}


def refused(icount: str) -> str:
    """The one line with which QEMU refuses these options."""
    done = subprocess.run([QEMU, "-M", "none", "-display", "none", "-icount", icount], timeout=60,
                          capture_output=True, text=True)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.rsplit("icount: ", 1)[1].strip()


def throughput(image: Path, icount: str, console: Path, cpus: int = 8) -> int:
    return sum(parsed(run(image, icount, cpus, console))["taken"])
