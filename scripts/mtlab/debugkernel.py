# SPDX-License-Identifier: GPL-2.0
"""Debug kernels for guests, built from Debian's linux-source package.

`--kernel kasan` (memory errors, lockdep, leaks, failing allocations) and `--kernel kcsan` (data
races). A build is named by the hash of its configuration, and done once.
"""

import os
from pathlib import Path

from . import debian
from .base import BUILD, ROOT, LabError, digest, fresh_folder, lock, logged, need_space, output, say

SOURCE = "linux-source-6.12"
FLAVOURS = ("kasan", "kcsan")
# What a test's guest needs besides: null_blk is built in, and would make a device of its own.
BOOT = " null_blk.nr_devices=0 kmemleak=on"
GUEST = ROOT / "scripts/guest"


def configuration(flavour: str) -> str:
    """What a flavour wants on top of allnoconfig."""
    return "".join((GUEST / f"debug-{name}.config").read_text() for name in ("base", flavour))


def refused(wanted: str, config: str) -> list[str]:
    """Options that were wanted and that the finished configuration does not have."""
    got = set(config.splitlines())
    return [line for line in wanted.splitlines() if line.startswith("CONFIG_") and line not in got]


def _source() -> Path:
    """The kernel's source tree, unpacked once."""
    tree = BUILD / "debug-kernel" / SOURCE
    if not tree.exists():
        need_space(BUILD, 8, "a debug kernel")
        say(f"fetching {SOURCE}")
        with fresh_folder(tree) as part:
            debian.unpack(f"{SOURCE}/{debian.newer_suite()}", part / "package")
            archive = next((part / "package/usr/src").glob("linux-source-*.tar.xz"))
            output(["tar", "-xf", archive, "-C", part, "--strip-components=1"])
            output(["rm", "-r", part / "package"])
    return tree


def build(flavour: str) -> Path:
    """The folder in which this debug kernel is built."""
    wanted = configuration(flavour)
    folder = BUILD / "debug-kernel" / f"{flavour}-{digest(SOURCE, wanted)}"
    if (folder / "built").exists():
        return folder
    with lock("debug-kernel"):
        debian.ensure("build")
        tree = _source()
        folder.mkdir(parents=True, exist_ok=True)
        fragment = folder / "fragment"
        fragment.write_text(wanted)
        make: list[str | Path] = ["make", "-s", "-C", tree, f"O={folder}", f"-j{os.cpu_count()}"]
        env = dict(os.environ, KCONFIG_ALLCONFIG=str(fragment), KBUILD_BUILD_TIMESTAMP="2026-01-01",
                   KBUILD_BUILD_USER="mtftl", KBUILD_BUILD_HOST="lab")
        logged([*make, "allnoconfig"], BUILD / "log/debug-kernel-config.log", env=env)
        missing = refused(wanted, (folder / ".config").read_text())
        if missing:
            raise LabError(f"{SOURCE} refuses {', '.join(missing)}")
        say(f"building the {flavour} kernel (about 6 minutes on 2 cores)")
        logged([*make, "bzImage", "modules"], BUILD / f"log/debug-kernel-{flavour}.log", env=env)
        (folder / "built").touch()
    return folder
