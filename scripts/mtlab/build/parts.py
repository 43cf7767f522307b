# SPDX-License-Identifier: GPL-2.0
"""What was built for runs, by the hash of its bytes: another machine runs the same emulator, kernel and archives.

A function that builds is marked with @part. Here it builds, and manifest() lists all that was built. On another machine
the manifest is given to a thread: there the same call returns the listed file. It is the one at the same place of a
shared build folder, or a copy in BUILD/parts, which is fetched if it is missing.
"""

import functools
import hashlib
import inspect
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ..util.base import BUILD, ROOT, LabError, digest_files, lock, need_space, write_file

P = ParamSpec("P")
T = TypeVar("T")
FOLDER = BUILD / "parts"
LIMIT = 4 << 30             # bytes that the copies used last may take
SOURCES = ("scripts/mtlab", "scripts/experiments", "scripts/guest", "target", "emulator")
KINDS = (".c", ".h", ".py", ".cfg", ".config", ".patch", ".sh")
PLAIN = "scripts/guest"     # names have no ending there

_made: dict[str, Any] = {}          # what this process has built, by the call
_given = threading.local()          # .values: what a thread was given instead


@dataclass(frozen=True)
class Part:
    """A file as its own machine has it."""

    place: str              # below that machine's build folder; "": elsewhere
    tail: str               # its name, and its folder's: hashes of inputs are in both
    size: int
    time: int               # of its last change in ns, which names of kernels hold
    mode: int
    hash: str

    def is_at(self, path: Path) -> bool:
        """Is that the file, by all that is known of it?"""
        try:
            stat = path.stat()
        except OSError:
            return False
        return (stat.st_size, stat.st_mtime_ns) == (self.size, self.time) and _hash(path, self.size, self.time) == \
            self.hash


Manifest = Mapping[str, Any]            # by the call; each file that is in a value is a Part


@functools.cache
def sources() -> str:
    """A digest of the lab's, the target's and the emulator's sources, as they were when this process first asked."""
    return digest_files({str(path.relative_to(ROOT)): path.read_bytes()
                         for top in SOURCES for path in sorted((ROOT / top).rglob("*"))
                         if path.is_file() and (path.suffix in KINDS or top == PLAIN)
                         and not path.name.endswith((".mod.c", "probed.h"))})


def _word(argument: object) -> str:
    """An argument of a call, the same on each machine."""
    key = getattr(argument, "key", argument)            # a kernel's
    return str(key).replace(f"{ROOT}/", "")


def part(build: Callable[P, T]) -> Callable[P, T]:
    """Mark a function that builds files: its value can be given by another machine."""
    @functools.wraps(inspect.unwrap(build))
    def get(*args: P.args, **kwargs: P.kwargs) -> T:
        name = f"{build.__module__}.{build.__name__}({', '.join(map(_word, [*args, *sorted(kwargs.items())]))})"
        values: Mapping[str, T] = getattr(_given, "values", {})
        if name in values:
            return values[name]
        _made[name] = made = build(*args, **kwargs)
        return made
    return get


@functools.cache
def _hash(path: Path, _size: int, _time: int) -> str:
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _mapped(value: Any, kind: type, to: Callable[[Any], Any]) -> Any:
    """A value with something else in place of each object of a kind."""
    if isinstance(value, kind):
        return to(value)
    if isinstance(value, list | tuple):
        return type(value)(_mapped(one, kind, to) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _mapped(getattr(value, one.name), kind, to) for one in fields(value)})
    return value


def _listed(path: Path) -> Part | Path:
    """A file as a part. A folder stays what it is: runs need none."""
    if not path.is_file():
        return path
    stat = path.stat()
    place = str(path.relative_to(BUILD)) if path.is_relative_to(BUILD) else ""
    return Part(place, "/".join(path.parts[-2:]), stat.st_size, stat.st_mtime_ns, stat.st_mode & 0o777,
                _hash(path, stat.st_size, stat.st_mtime_ns))


def manifest() -> Manifest:
    """All that this process has built so far."""
    return {name: _mapped(value, Path, _listed) for name, value in list(_made.items())}


def files() -> dict[str, Path]:
    """The files of the manifest by their hashes."""
    found: dict[str, Path] = {}

    def note(path: Path) -> Path:
        listed = _listed(path)
        if isinstance(listed, Part):
            found[listed.hash] = path
        return path

    for value in list(_made.values()):
        _mapped(value, Path, note)
    return found


def _here(wanted: Part, fetch: Callable[[str], bytes]) -> Path:
    """The file of a part on this machine; one process fetches it while the others wait."""
    if wanted.place and wanted.is_at(BUILD / wanted.place):
        return BUILD / wanted.place
    copy = FOLDER / wanted.hash / wanted.tail
    with lock(f"part-{wanted.hash[:2]}"):
        if not wanted.is_at(copy):
            need_space(FOLDER, 1, "a copy of what runs need")
            data = fetch(wanted.hash)
            if hashlib.sha256(data).hexdigest() != wanted.hash:
                raise LabError(f"{wanted.tail}: fetched other bytes, expected {wanted.hash}")
            write_file(copy, data)
            copy.chmod(wanted.mode)
            os.utime(copy, ns=(wanted.time, wanted.time))
            _tidy()
        os.utime(FOLDER / wanted.hash)
    return copy


def _tidy() -> None:
    """Throw away what was not used for longest, as long as all together take too much; the last one stays."""
    taken = 0
    for place in sorted(FOLDER.iterdir(), key=lambda place: -place.stat().st_mtime):
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        if taken and taken + size > LIMIT:
            shutil.rmtree(place, ignore_errors=True)
        taken += size


@contextmanager
def given(listed: Manifest, fetch: Callable[[str], bytes]) -> Iterator[None]:
    """This thread takes what is listed instead of building it; fetch returns the bytes of a hash."""
    _given.values = {name: _mapped(value, Part, lambda one: _here(one, fetch)) for name, value in listed.items()}
    try:
        yield
    finally:
        del _given.values
