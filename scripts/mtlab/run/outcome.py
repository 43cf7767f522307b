# SPDX-License-Identifier: GPL-2.0
"""What a run gave: brought out through a memory that host and guest share, judged, and kept for whatever asks again.

The same memory (guest-area.c knows it) brings the run's archive to a guest that begins from a saved state.
"""

import base64
import fnmatch
import io
import json
import struct
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..util.base import BUILD, LabError, write_file
from . import failure

AREA = 256 << 20            # how much a run may bring out; the file is sparse
PAYLOAD = 4096              # guest-area.c knows the same number
KEPT = BUILD / "kept"
BOOTED = "boot"             # the start of a run that is none of a saved state


@dataclass
class Result:
    """How a run ended."""

    status: int                             # the command's own, or the failure's
    failure: failure.Failure | None
    output: str                             # what the command printed, both streams
    console: str                            # the kernel's messages
    files: dict[str, bytes]                 # what --pull brought out
    seconds: float                          # of the host's wall clock
    inputs: str                             # digest of all that the guest saw
    accel: str
    start: str = BOOTED                     # or the key of the saved state that it began from
    worked: float = 0                       # seconds of the host's processors; 0: not known

    @property
    def ok(self) -> bool:
        return self.failure is None and self.status == 0


def write_area(path: Path, own: bytes) -> None:
    """The memory that guest-area.c knows, with the run's archive for a guest that begins from a saved state."""
    with open(path, "wb") as f:
        f.truncate(AREA)
        if own:
            f.write(struct.pack("<8sQQ", b"MTFTLRUN", 0, len(own)))
            f.seek(PAYLOAD)
            f.write(own)


def parse_area(path: Path) -> tuple[int, dict[str, bytes]] | None:
    """Status and files that guest-exit left, if it did."""
    with open(path, "rb") as f:
        magic, status, length = struct.unpack("<8sQQ", f.read(24))
        if magic != b"MTFTLEND":
            return None
        if length == 2**64 - 1:
            raise LabError(f"the pulled files are larger than {AREA >> 20} MiB")
        f.seek(PAYLOAD)
        data = f.read(length)
    files: dict[str, bytes] = {}
    if not data:
        return status, files
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content:
                files[member.name.lstrip("/")] = content.read()
    return status, files


def recall(inputs: str) -> Result | None:
    """What a run of the same inputs gave, if it was kept."""
    path = KEPT / inputs
    if not path.exists():
        return None
    kept = json.loads(path.read_text())
    files = {name: base64.b64decode(data) for name, data in kept.pop("files").items()}
    return Result(failure=None, files=files, inputs=inputs, accel="virtual time", **kept)


def keep(result: Result) -> None:
    """Keep it for recall()."""
    files = {name: base64.b64encode(data).decode() for name, data in result.files.items()}
    write_file(KEPT / result.inputs, json.dumps({"status": result.status, "output": result.output, "files": files,
                                                 "console": result.console, "seconds": result.seconds,
                                                 "start": result.start, "worked": result.worked}))


def find_failure(overdue: failure.Failure | None, left: tuple[int, dict[str, bytes]] | None, console: str,
                 said: str, emulator_status: int, pulled: Sequence[str]) -> failure.Failure | None:
    """Which failure a run ended with, if any: the kernel's own report says more than a time-out."""
    reported = failure.find(console)
    if overdue and not (reported and overdue.kind == "timeout"):
        return overdue
    if reported:
        return reported
    if not left:
        kind = "qemu" if emulator_status else "lost"
        return failure.Failure(kind, tuple(said.splitlines()[-20:]), f"exit status {emulator_status}")
    status, files = left
    absent = [p for p in pulled if not any(_matches(p, name) for name in files)]
    return failure.Failure("missing", detail=" ".join(absent)) if absent and not status else None


def _matches(pattern: str, name: str) -> bool:
    """Does a pulled file come from this --pull pattern: the file itself, or in a folder of that name?"""
    pattern = pattern.strip("/")
    return fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name, pattern + "/*")


def write_pulled(files: dict[str, bytes], folder: Path) -> None:
    """Put pulled files into a folder, each as a whole."""
    for name, data in files.items():
        place = folder / name
        if not place.resolve().is_relative_to(folder.resolve()):
            print(f"lab: not written, it leaves the folder: {name}", file=sys.stderr)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(place.name + ".part")
        part.write_bytes(data)
        part.rename(place)
