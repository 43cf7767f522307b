# SPDX-License-Identifier: GPL-2.0
"""Drives that a guest of their own prepared: filled and aged once, then many runs begin with a copy each.

FOLDER/KEY/media is what such a drive held when its guest had ended, FOLDER/KEY/kept what that guest left in the folder
`kept` of its home for the others. KEY is a digest of all that its guest saw. Blocks of zeroes take no space, nor do
they in a run's copy.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from ..util.base import BUILD, LabError, fresh_folder, lock, need_space, say, write_file

FOLDER = BUILD / "kept/drives"
KEPT = "kept"               # in /root of the guest that prepares and of those that begin with its drive
LIMIT = 8 << 30             # bytes that the drives used last may take


def copy(source: Path, to: Path) -> None:
    """A file's content into another one, with a hole for each block of zeroes."""
    done = subprocess.run(["cp", "--sparse=always", "--reflink=auto", source, to], capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{to}: the prepared drive cannot be copied: {done.stderr.strip()}")


def get(key: str, make: Callable[[Path], Mapping[str, bytes]], to: Path) -> Path:
    """Copy the drive of that key into a run's file; returns the folder of its guest's files beside that.

    If there is no such drive, make writes it into the file that it is given, and returns the files. One lab makes it
    while the others wait.
    """
    place, kept = FOLDER / key, to.with_name(KEPT)
    with lock(f"drive-{key[:2]}"):
        if not place.exists():
            need_space(FOLDER, 2, "a prepared drive")
            say(f"drive {key}: preparing it")
            with fresh_folder(place) as part:
                (part / KEPT).mkdir()
                for name, data in make(part / "media").items():
                    write_file(part / name, data)
            _tidy()
        os.utime(place)
        copy(place / "media", to)
        shutil.copytree(place / KEPT, kept)
    return kept


def _tidy() -> None:
    """Throw away what was not used for longest, as long as all together take too much; the last one stays."""
    taken = 0
    for place in sorted((p for p in FOLDER.iterdir() if not p.suffix), key=lambda p: -p.stat().st_mtime):
        size = (place / "media").stat().st_blocks * 512
        if taken and taken + size > LIMIT:
            shutil.rmtree(place)
        taken += size
