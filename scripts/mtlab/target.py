# SPDX-License-Identifier: GPL-2.0
"""The target: dm-mtftl.ko for a guest's kernel, and mtftl(8).

Sources are copied to BUILD/target/CHECKOUT/RELEASE and built there, so that several kernels and
checkouts share nothing and the work tree stays clean.
"""

import os
from pathlib import Path

from .base import BUILD, ROOT, LabError, digest, lock, logged, update_file
from .kernels import Kernel

SOURCE = ROOT / "target"


def _copy(folder: Path) -> None:
    """Bring the sources' copy up to date; files that are gone from the sources go there too."""
    wanted = {p.relative_to(SOURCE) for p in SOURCE.rglob("*")
              if p.is_file() and p.suffix in (".c", ".h", ".S") or p.name in ("Makefile", "Kbuild")}
    for old in list(folder.rglob("*.[ch]")):
        if old.relative_to(folder) not in wanted and not old.name.endswith(".mod.c"):
            old.unlink()
    for place in wanted:
        update_file(folder / place, (SOURCE / place).read_bytes())


def _folder(name: str) -> Path:
    return BUILD / "target" / digest(str(ROOT)) / name


def module(kernel: Kernel) -> Path | None:
    """dm-mtftl.ko for this kernel; None while there is no target or the kernel has no headers."""
    if not kernel.headers or not ((SOURCE / "Makefile").exists() or (SOURCE / "Kbuild").exists()):
        return None
    folder = _folder(kernel.key)
    with lock(f"target-{digest(str(folder))}"):
        _copy(folder)
        build_module(kernel, folder)
    built = folder / "dm-mtftl.ko"
    return built if built.exists() else None


def build_module(kernel: Kernel, folder: Path) -> None:
    """Build the kernel module in a folder; the packages' headers need no BTF tools."""
    if not kernel.headers:
        raise LabError(f"kernel {kernel.release} has no headers to build a module against")
    logged(["make", "-s", f"-j{os.cpu_count()}", "-C", kernel.headers, f"M={folder}",
            "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"], BUILD / "log/target-build.log")


def tool() -> Path | None:
    """mtftl(8) for the guest and for the host; None while there is none."""
    if not (SOURCE / "tool/Makefile").exists():
        return None
    folder = _folder("host")
    with lock(f"target-{digest(str(folder))}"):
        _copy(folder)
        logged(["make", "-s", "-C", folder / "tool"], BUILD / "log/tool-build.log")
    built = folder / "tool/mtftl"
    return built if built.exists() else None
