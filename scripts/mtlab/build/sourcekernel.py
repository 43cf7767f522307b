# SPDX-License-Identifier: GPL-2.0
"""Kernels for guests that Debian does not ship, built from its linux-source packages.

`--kernel kasan` (memory errors, lockdep, leaks, failing allocations) and `--kernel kcsan` (data races) are debug
kernels for the target. `--kernel pblk` is Linux 5.10, the last long-term series that has pblk, the host FTL for
Open-Channel drives; the target is not built for it. `--kernel small` is Linux 6.12 with the same small configuration,
so that both pay the same for a system call. `--kernel hints` is that one with an ext4 that tells the drive what each
write is to its file. A build is named by the hash of its inputs, and done once.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from ..util.base import BUILD, ROOT, LabError, digest, fresh_folder, lock, logged, need_space, output, say
from . import debian

GUEST = ROOT / "scripts/guest"
DEBUG = ("kasan", "kcsan")
PBLK, SMALL, HINTS = "pblk", "small", "hints"
FLAVOURS = (*DEBUG, PBLK, SMALL, HINTS)
FRAGMENTS = {"kasan": ("base", "debug", "kasan"), "kcsan": ("base", "debug", "kcsan"),
             PBLK: ("base", "small", "pblk"), SMALL: ("base", "small"), HINTS: ("base", "small", "hints")}
# What a test's guest needs besides: null_blk is built in, and would make a device of its own.
BOOT = " null_blk.nr_devices=0"
DEBUG_BOOT = f"{BOOT} kmemleak=on"


@dataclass(frozen=True)
class Source:
    """A linux-source package, and what is changed in it."""

    package: str
    suite: str
    patch: Path | None = None

    @property
    def changes(self) -> str:
        return self.patch.read_text() if self.patch else ""


def source(flavour: str) -> Source:
    """What a flavour is built from."""
    if flavour == PBLK:
        return Source("linux-source-5.10", debian.OLD, GUEST / "kernel-pblk.patch")
    patch = GUEST / "kernel-hints.patch" if flavour == HINTS else None
    return Source("linux-source-6.12", debian.newer_suite(), patch)


def configuration(flavour: str) -> str:
    """What a flavour wants on top of allnoconfig: a later fragment's value for an option replaces an earlier one's."""
    lines = [line for name in FRAGMENTS[flavour]
             for line in (GUEST / f"kernel-{name}.config").read_text().splitlines(keepends=True)]
    last = {line.partition("=")[0]: index for index, line in enumerate(lines)}
    return "".join(line for index, line in enumerate(lines)
                   if not line.startswith("CONFIG_") or last[line.partition("=")[0]] == index)


def refused(wanted: str, config: str) -> list[str]:
    """Options that were wanted and that the finished configuration does not have."""
    got = set(config.splitlines())
    return [line for line in wanted.splitlines() if line.startswith("CONFIG_") and line not in got]


def _unpacked(origin: Source) -> Path:
    """The kernel's source tree, unpacked and patched once."""
    changed = f"-{digest(origin.changes)}" if origin.patch else ""
    tree = BUILD / "debug-kernel" / f"{origin.package}{changed}"
    if not tree.exists():
        need_space(BUILD, 8, "a kernel")
        say(f"fetching {origin.package}")
        with fresh_folder(tree) as part:
            debian.unpack(f"{origin.package}/{origin.suite}", part / "package")
            archive = next((part / "package/usr/src").glob("linux-source-*.tar.xz"))
            output(["tar", "-xf", archive, "-C", part, "--strip-components=1"])
            output(["rm", "-r", part / "package"])
            if origin.patch:
                output(["patch", "-p1", "-s", "-f", "-d", part, "-i", origin.patch])
    return tree


def _folder(flavour: str) -> Path:
    origin = source(flavour)
    name = digest(origin.package, origin.changes, configuration(flavour))
    return BUILD / "debug-kernel" / f"{flavour}-{name}"


def built(flavour: str) -> bool:
    """Has it been built, from what it would be built from now?"""
    return (_folder(flavour) / "built").exists()


def build(flavour: str) -> Path:
    """The folder in which this kernel is built."""
    wanted, origin, folder = configuration(flavour), source(flavour), _folder(flavour)
    if built(flavour):
        return folder
    with lock("debug-kernel"):
        debian.ensure("build")
        tree = _unpacked(origin)
        folder.mkdir(parents=True, exist_ok=True)
        fragment = folder / "fragment"
        fragment.write_text(wanted)
        make: list[str | Path] = ["make", "-s", "-C", tree, f"O={folder}", f"-j{os.cpu_count()}"]
        env = dict(os.environ, KCONFIG_ALLCONFIG=str(fragment), KBUILD_BUILD_TIMESTAMP="2026-01-01",
                   KBUILD_BUILD_USER="mtftl", KBUILD_BUILD_HOST="lab")
        logged([*make, "allnoconfig"], BUILD / "log/debug-kernel-config.log", env=env)
        missing = refused(wanted, (folder / ".config").read_text())
        if missing:
            raise LabError(f"{origin.package} refuses {', '.join(missing)}")
        say(f"building the {flavour} kernel (about 6 minutes on 2 cores)")
        logged([*make, "bzImage", "modules"], BUILD / f"log/debug-kernel-{flavour}.log", env=env)
        (folder / "built").touch()
    return folder
