# SPDX-License-Identifier: GPL-2.0
"""Folders, errors, progress lines, locks and child processes: what every other module uses."""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GUEST_GIB = 2               # what a guest is given unless it asks for more
BUILD = Path(os.environ.get("MTFTL_BUILD") or ROOT / "build").resolve()

_started = time.monotonic()
_shown = ""                 # what progress() wrote into the terminal's last line


class LabError(Exception):
    """Something the user can read and act upon; printed without a traceback."""


def say(text: str) -> None:
    """One line for the user, with the seconds since the start; what progress() shows stays below it."""
    below, clear = _shown, "\r\033[K" if _shown else ""
    print(f"{clear}[{time.monotonic() - _started:6.1f}s] {text}\n{below}", end="", file=sys.stderr, flush=True)


def terminal() -> bool:
    """Is standard error a terminal, where a line can be renewed?"""
    return sys.stderr.isatty()


def progress(text: str) -> None:
    """The one line that is renewed in a terminal, "": none; where there is no terminal, nothing."""
    global _shown
    if terminal():
        _shown = text[:shutil.get_terminal_size().columns - 1]
        print(f"\r\033[K{_shown}", end="", file=sys.stderr, flush=True)


def cores() -> int:
    """How many of the host's processors we are given."""
    return len(os.sched_getaffinity(0))


def free_memory() -> int | None:
    """Bytes that the host has available, or this container may have; None where nothing says so."""
    host = re.search(r"^MemAvailable: *(\d+)", Path("/proc/meminfo").read_text(), re.M)
    known = [int(host[1]) << 10] if host else []
    ours = Path("/sys/fs/cgroup/memory.max")
    if ours.exists() and (limit := ours.read_text().strip()) != "max":
        known.append(int(limit))
    return min(known, default=None)


def guests_at_once() -> int:
    """How many guests run side by side: one a processor, as far as the memory goes."""
    free = free_memory()
    return max(1, min(cores(), free // (GUEST_GIB << 30) if free else 1))


def memory_at_once() -> int:
    """Bytes that a guest and its drive may take while others run beside it."""
    return (free_memory() or 0) // guests_at_once()


def digest(*parts: bytes | str | Path) -> str:
    """A short hash of strings, bytes and files' contents."""
    h = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part
        if isinstance(data, str):
            data = data.encode()
        h.update(len(data).to_bytes(8, "little") + data)
    return h.hexdigest()[:16]


def digest_files(files: Mapping[str, bytes]) -> str:
    """A short hash of files, by name and content."""
    parts: list[bytes | str | Path] = []
    for name in sorted(files):
        parts += [name, files[name]]
    return digest(*parts)


@contextlib.contextmanager
def lock(name: str) -> Iterator[None]:
    """Only one process at a time builds the thing called name; the others wait for it."""
    folder = BUILD / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "w") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for {name}: another lab builds it")
            fcntl.flock(f, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def fresh_folder(path: Path) -> Iterator[Path]:
    """A folder that appears under its name only when the block ends without an error."""
    part = path.with_name(path.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    yield part
    shutil.rmtree(path, ignore_errors=True)
    part.rename(path)


def write_file(path: Path, data: bytes | str) -> None:
    """Write all of a file or nothing of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    part.write_bytes(data.encode() if isinstance(data, str) else data)
    part.rename(path)


def update_file(path: Path, data: bytes) -> bool:
    """Write a file only if it changes, so that make and ninja see only real changes."""
    if path.is_file() and path.read_bytes() == data:
        return False
    write_file(path, data)
    return True


def need_space(path: Path, gib: float, what: str) -> None:
    """Say before the work starts that a disk is too full for it."""
    path.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path).free / 2**30
    if free < gib:
        raise LabError(f"{path}: {free:.1f} GiB free, {what} needs {gib:.0f} GiB")


def output(command: Sequence[str | Path], **options: object) -> str:
    """The standard output of a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise LabError(f"{' '.join(map(str, command))}: exit {done.returncode}\n" + "\n".join(said[-20:]))
    return str(done.stdout)


def logged(command: Sequence[str | Path], log: Path, *, cwd: Path | None = None,
           env: dict[str, str] | None = None, progress: bool = False) -> None:
    """Run a long command with its output in a log; show the log's end if it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    tty = progress and sys.stderr.isatty()
    shown = time.monotonic()
    with open(log, "w") as f, subprocess.Popen(
            command, cwd=cwd, env=env, text=True, errors="replace", stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        assert child.stdout
        try:
            for line in child.stdout:
                f.write(line)
                if progress and line.startswith("[") and (tty or time.monotonic() - shown > 15):
                    shown = time.monotonic()
                    count = line.split()[0]
                    print(f"\r  {count}\033[K" if tty else f"  {count}", end="" if tty else "\n",
                          file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            # Its lock is free afterwards, so no build of it may go on. What it started ends with it.
            child.terminate()
            child.wait()
            raise
    if tty:
        print("\r\033[K", end="", file=sys.stderr)
    if child.returncode:
        tail = log.read_text(errors="replace").splitlines()
        errors = [x for x in tail if "error:" in x.lower()][:10]
        raise LabError(f"{' '.join(map(str, command[:4]))}: exit {child.returncode}; the log is {log}\n"
                       + "\n".join(errors or tail[-25:]))
