# SPDX-License-Identifier: GPL-2.0
"""Saved boot states: guests that were booted to where a run's own part begins, and paused there.

FOLDER/KEY holds one: `ram`, the guest's memory, one node's behind the other's, of which each run maps a private copy;
`state`, what QEMU's devices and processors were in; `console`, what the kernel had said; `about.json`, which tells
whether all that is whole and fit for this host. KEY is a digest of what went in. A state appears as a whole or not at
all and nothing in it changes, so that a lab that has opened its files may use them while another one throws it away. A
lock sees to it that one lab makes it while the others wait.

The guest pauses itself (guest-area.c): in virtual time a state is a function of what went in. Flash device and area
are not part of it. The machine of a run has them besides, and its guest goes and looks for them.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..util.base import BUILD, LabError, digest, lock, need_space, say
from .qmp import Qmp

FOLDER = BUILD / "kept/boot"
VERSION = 1
LIMIT = 4 << 30             # bytes that the states used last may take
LOAD_FAILED = "load of migration failed"        # as QEMU says it
# The guest's port to pause by, guest-area.c knows its number; and its state does not say that it is paused.
MAKER = ["-device", "isa-debug-pause,iobase=0xf8", "-global", "migration.store-global-state=off"]


@dataclass(frozen=True)
class State:
    """An opened state: descriptors of its files, for a QEMU to inherit."""

    key: str
    memory: Sequence[int]
    ram: int
    state: int
    console: str

    @property
    def files(self) -> list[int]:
        """Descriptors that its QEMU inherits."""
        return [self.ram, self.state]

    @property
    def arguments(self) -> list[str]:
        """What starts QEMU from it, besides the machine's own arguments."""
        # A private mapping copies a page when it is written to.
        return [*_memory(f"/proc/self/fd/{self.ram},share=off,readonly=on,rom=off", self.memory), "-incoming", "defer"]

    def begin(self, control: Qmp) -> None:
        """Tell QEMU to load it, before it starts."""
        _greet(control)
        control.send("migrate-incoming", uri=f"file:/proc/self/fd/{self.state}")


class BootError(Exception):
    """The guest did not come to its pause."""


class _UnfitError(Exception):
    """Why a state cannot be used."""


def memory_names(nodes: Sequence[int]) -> list[str]:
    """What QEMU calls the memory of each node."""
    return [f"ram{i}" for i in range(len(nodes))] if len(nodes) > 1 else ["ram"]


def _memory(path: str, nodes: Sequence[int]) -> list[str]:
    """QEMU's arguments for the guest's memory in a file: so many bytes for each node."""
    names = memory_names(nodes)
    return [*(x for i, name in enumerate(names) for x in (
        "-object", f"memory-backend-file,id={name},size={nodes[i]},offset={sum(nodes[:i])},mem-path={path}")),
        *(["-machine", f"memory-backend={names[0]}"] if len(names) == 1 else [])]


def _greet(control: Qmp) -> None:
    """Ask to be told how a migration goes, and leave memory that is in a file out of it."""
    wanted = [{"capability": name, "state": True} for name in ("x-ignore-shared", "events")]
    control.send("qmp_capabilities")
    control.send("migrate-set-capabilities", capabilities=wanted)


def _host() -> str:
    """The host's processor: what it can do, and at which speed its counter runs."""
    wanted = r"^(vendor_id|cpu family|model|model name|stepping|flags)\s*: (.*)$"
    first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    return digest(*(value for _, value in re.findall(wanted, first, re.M)))


@contextlib.contextmanager
def get(key: str, command: Callable[[], Sequence[str]], memory: Sequence[int], seconds: float,
        pulse: Callable[[], None]) -> Iterator[State]:
    """The state of that key, made with what command gives for QEMU if there is none that is fit.

    The memory is given in bytes, a number a node. The boot may take as many seconds as given; pulse is called all the
    time and may raise.
    """
    folder = FOLDER / key
    with contextlib.ExitStack() as files:
        try:
            state = _open(folder, memory, files)
        except _UnfitError:
            with lock(f"boot-state-{key[0]}"):
                try:
                    state = _open(folder, memory, files)
                except _UnfitError as e:
                    say(f"boot state {key}{e}: making it")
                    _make(folder, command(), memory, seconds, pulse)
                    state = _open(folder, memory, files)
        yield state


def throw_away(key: str) -> None:
    """It turned out not to be fit."""
    shutil.rmtree(FOLDER / key, ignore_errors=True)


def _open(folder: Path, memory: Sequence[int], files: contextlib.ExitStack) -> State:
    """Open a state's files if they are whole and fit."""
    try:
        place = os.open(folder, os.O_PATH)
    except FileNotFoundError:
        raise _UnfitError("") from None
    with contextlib.ExitStack() as opened:
        opened.callback(os.close, place)

        def file(name: str) -> int:
            number = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=place)
            opened.callback(os.close, number)
            return number

        def content(name: str) -> bytes:
            with open(file(name), "rb", closefd=False) as f:
                return f.read()

        try:
            about = json.loads(content("about.json"))
            ram, state, console = file("ram"), file("state"), content("console")
            wrong = next((why for why, differs in (
                ("is of another version", about["version"] != VERSION),
                ("was made on another processor", about["host"] != _host()),
                ("is damaged", about["files"] != _stamp(place))) if differs), None)
        except (OSError, ValueError, KeyError, TypeError):
            wrong = "is not whole"
        if wrong:
            raise _UnfitError(f" {wrong}, it is thrown away")
        os.utime(folder)
        files.push(opened.pop_all())
    return State(folder.name, memory, ram, state, console.decode(errors="replace"))


def _stamp(folder: int) -> dict[str, object]:
    """What tells that the files of a state are as they were made."""
    ram = os.stat("ram", dir_fd=folder)
    return {"ram": [ram.st_size, ram.st_mtime_ns],
            **{name: digest(Path(f"/proc/self/fd/{folder}", name)) for name in ("state", "console")}}


def _make(folder: Path, command: Sequence[str], memory: Sequence[int], seconds: float,
          pulse: Callable[[], None]) -> None:
    """Boot a guest until it pauses, save it, end it."""
    need_space(FOLDER, 1, "a saved boot state (--boot goes without)")
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    place = os.open(part, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_SH)       # _tidy() leaves it alone
        _save(part, command, memory, time.monotonic() + seconds, pulse)
        about = {"version": VERSION, "host": _host(), "files": _stamp(place)}
        (part / "about.json").write_text(json.dumps(about))
        for file in part.iterdir():
            with open(file, "rb") as f:
                os.fsync(f.fileno())
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    except OSError as e:
        raise LabError(f"{part}: {e.strerror}; --boot goes without a saved boot state") from e
    finally:
        os.close(place)
        shutil.rmtree(part, ignore_errors=True)
    _tidy()


def _save(part: Path, command: Sequence[str], memory: Sequence[int], end: float, pulse: Callable[[], None]) -> None:
    """Run the guest up to its pause; part then holds its memory, its state and its console."""
    ours, theirs = socket.socketpair()
    with open(part / "ram", "wb") as ram:
        ram.truncate(sum(memory))           # QEMU makes a file no longer than its first node
    arguments = [*command, *MAKER, *_memory(f"{part}/ram,share=on", memory),
                 "-chardev", f"file,id=console,path={part}/console",
                 *Qmp.arguments(theirs)]
    with ours, open(part / "qemu", "wb") as said:
        control = Qmp(ours)
        _greet(control)
        with theirs:
            child = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                     pass_fds=[theirs.fileno()], start_new_session=True)
        try:
            wrong = _steer(control, part, end, pulse)
        finally:
            child.kill()
            ended = child.wait()
    if ended == -signal.SIGBUS:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if wrong:
        raise BootError(f"{wrong}\n{(part / 'qemu').read_text(errors='replace')}".strip())
    (part / "qemu").unlink()


def _steer(control: Qmp, part: Path, end: float, pulse: Callable[[], None]) -> str:
    """Save the guest when it has paused; says why that cannot be."""
    while time.monotonic() < end:
        pulse()
        try:
            for message in control.messages(0.05):
                status = message.get("data", {}).get("status")
                if message.get("event") == "STOP":
                    control.send("migrate", uri=f"file:{part}/state")
                elif message.get("event") == "MIGRATION" and status == "completed":
                    return ""
                elif "error" in message or status == "failed":
                    return f"QEMU does not save it: {message}"
        except EOFError:
            return "its guest ended before"
    return "its guest had not come that far in time"


def _tidy() -> None:
    """Throw away what was not used for longest, as long as all together take too much; halves of killed labs too."""
    used: list[tuple[float, int, Path]] = []
    for folder in FOLDER.iterdir():
        with contextlib.suppress(FileNotFoundError):        # another lab threw it away
            size = sum(file.stat().st_blocks * 512 for file in folder.iterdir())
            used.append((folder.stat().st_mtime, size, folder))
    taken = 0
    for _, size, folder in sorted(used, reverse=True):
        taken += size
        if taken > LIMIT and not _is_being_made(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_being_made(folder: Path) -> bool:
    """Some lab has it locked."""
    try:
        place = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(place)
    return False
