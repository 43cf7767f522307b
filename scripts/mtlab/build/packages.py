# SPDX-License-Identifier: GPL-2.0
"""Debian packages inside the guest: unpacked with all that they depend on, an archive over the guest's tools.

None of a package's own scripts run: a command that needs a user, a folder or a database makes it. The archive is named
by the versions that are in it.
"""

import functools
import os
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path

from ..util.base import BUILD, digest, lock, need_space, say, write_file
from ..util.cpio import Archive, contents
from . import debian, guest
from .parts import part

# Nothing in a guest reads these.
LEFT_OUT = tuple(f"usr/share/{name}" for name in ("doc", "doc-base", "info", "lintian", "locale", "man", "bug"))
# The guest has one folder of programs. The loader looks for libraries in /lib first, where the guest's own are.
PLACES = {"bin": "usr/bin", "sbin": "usr/bin", "usr/sbin": "usr/bin", "usr/lib64": "lib64",
          "usr/lib/x86_64-linux-gnu": "lib/x86_64-linux-gnu"}
VERSION = "1"               # of what is made of the same packages
_asking = threading.Lock()


def chosen(wanted: tuple[str, ...]) -> dict[str, list[str]]:
    """By suite, what belongs to the packages: package=version. Suites of other machines come after our own."""
    asked: dict[str, list[str]] = {}
    for word in wanted:
        name, _, suite = word.partition("/")
        asked.setdefault(suite or debian.codename(), []).append(name)
    with _asking:               # runs side by side want the same: one asks
        return {suite: _closure(tuple(asked[suite]), suite)
                for suite in sorted(asked, key=lambda suite: (suite != debian.codename(), suite))}


@functools.cache
def _closure(names: tuple[str, ...], suite: str) -> list[str]:
    return debian.closure(names, suite)


@part
def archive(wanted: tuple[str, ...]) -> Path | None:
    """The archive of these packages, PACKAGE or PACKAGE/SUITE; nothing if there are none."""
    if not wanted:
        return None
    suites = chosen(wanted)
    below = [guest.base(), guest.tools()]
    versions = [f"{suite} {package}" for suite, found in suites.items() for package in found]
    target = BUILD / "guest" / f"packages-{digest(VERSION, *wanted, *versions, *(p.name for p in below))}.cpio"
    if target.exists():         # it appears as a whole: others may be packed meanwhile
        return target
    with lock("guest-packages"):
        if not target.exists():
            need_space(BUILD, 2, "packages for the guest")
            say(f"packing {len(versions)} packages for the guest: {' '.join(wanted)}")
            _make(target, suites, {word.partition("/")[0] for word in wanted}, below)
    return target


def _make(target: Path, suites: Mapping[str, list[str]], named: set[str], below: list[Path]) -> None:
    """Write the archive. Programs that the guest has already stay, unless a package that was asked for brings them."""
    there = {name for path in below for name, *_ in contents(path)}
    packed = Archive()
    staging = target.with_suffix(".unpacked")
    try:
        for suite, found in suites.items():
            groups = ([p for p in found if p.partition("=")[0] not in named],
                      [p for p in found if p.partition("=")[0] in named])
            for ours, group in zip((False, True), groups, strict=True):
                shutil.rmtree(staging, ignore_errors=True)
                if group:
                    debian.unpack_all(group, suite, staging)
                    _add(packed, staging, set() if ours else there)
        write_file(target, packed.bytes())
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _add(packed: Archive, staging: Path, there: set[str]) -> None:
    """Put unpacked files where the guest looks for them."""
    for path in sorted(staging.rglob("*")):
        name = str(path.relative_to(staging))
        if name.startswith(LEFT_OUT) or (path.is_dir() and not path.is_symlink()):
            continue
        place = _place(name)
        if place.startswith("usr/bin/") and place in there:
            continue
        if path.is_symlink() and "/" in str(path.readlink()):
            to = os.path.normpath(Path("/", name).parent / path.readlink())     # an absolute one stays what it is
            packed.link(place, f"/{_place(to[1:])}")
        else:
            packed.copy(path, place)


def _place(name: str) -> str:
    """The name of a package's file in the guest."""
    folder, _, file = name.rpartition("/")
    return f"{PLACES.get(folder, folder)}/{file}"
