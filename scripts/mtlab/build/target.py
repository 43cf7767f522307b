# SPDX-License-Identifier: GPL-2.0
"""The target: dm-mtftl.ko for a guest's kernel, and mtftl(8).

Sources are copied to BUILD/target/CHECKOUT/RELEASE and built there, so that several kernels and
checkouts share nothing and the work tree stays clean. What is built names no folder: the same sources
give the same bytes in every checkout, and so do the guests that load them. One exception: where a kernel
has UBSAN, gcc writes the names of its headers into a module, and so the name of BUILD.
"""

import functools
import os
import re
import shutil
from pathlib import Path

from ..util.base import (
    BUILD,
    ROOT,
    LabError,
    digest,
    digest_files,
    fresh_folder,
    lock,
    logged,
    output,
    update_file,
    write_file,
)
from . import debian
from .kernels import Kernel
from .parts import part

SOURCE = ROOT / "target"


def folders() -> list[str]:
    """The module's, from the top down."""
    line = re.search(r"^FOLDERS\s*:= (.*)$", (SOURCE / "Makefile").read_text(), re.M)
    if not line:
        raise LabError("target/Makefile names no FOLDERS")
    return line[1].split()


def module_sources() -> list[Path]:
    """All C files of the module, wherever they lie."""
    return [path for path in sorted(SOURCE.rglob("*.[ch]"))
            if path.relative_to(SOURCE).parts[0] not in ("tests", "tool", "simulator")
            and not path.name.endswith((".mod.c", "probed.h"))]


def for_the_kernel() -> str:
    """A digest of all that the target is made of in a kernel that has it built in."""
    texts = [SOURCE / "Kbuild", *sorted((SOURCE / "packaging/upstream").iterdir())]
    return digest_files({str(path.relative_to(SOURCE)): path.read_bytes() for path in [*module_sources(), *texts]})


def need_module(kernel: Kernel) -> None:
    """Refuse a kernel that has the target built in: a changed one cannot be loaded there."""
    if kernel.target:
        raise LabError(f"{kernel.release} has the target built in, expected a kernel that loads it as a module")


def _copy(folder: Path) -> str:
    """Bring the sources' copy up to date, without what is gone; returns a hash of them all."""
    wanted = {str(p.relative_to(SOURCE)): p.read_bytes() for p in sorted(SOURCE.rglob("*"))
              if p.is_file() and (p.suffix in (".c", ".h") or p.name in ("Makefile", "Kbuild"))}
    for old in list(folder.rglob("*.[ch]")):
        if str(old.relative_to(folder)) not in wanted and not old.name.endswith((".mod.c", "probed.h")):
            old.unlink()
    for place, data in wanted.items():
        update_file(folder / place, data)
    return digest_files(wanted)


def _folder(name: str) -> Path:
    return BUILD / "target" / digest(str(ROOT)) / name


def nameless(*folders: Path) -> list[str]:
    """Compiler flags that keep the names of folders out of what is compiled."""
    return [f"-ffile-prefix-map={folder}=." for folder in folders]


def _for_our_compiler(headers: Path) -> list[str]:
    """Words for make where the kernel was compiled by a newer gcc: flags that this one does not have."""
    theirs = re.search(r"^CONFIG_GCC_VERSION=(\d+)\d{4}$", (headers / ".config").read_text(), re.M)
    ours = output(["gcc", "-dumpversion"]).split(".")[0]
    if not theirs or int(theirs[1]) <= int(ours):
        return []
    return ["CONFIG_CC_OPT_INLINE_MEMSET=", "CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT="]


def build_module(kernel: Kernel, folder: Path, asserts: bool = False) -> None:
    """Build the kernel module whose sources are in a folder; Debian's headers lack the BTF tools.

    Assertions of the target (lib/assert.h) are on if they are asked for, and in debug kernels.
    """
    if not kernel.headers:
        raise LabError(f"kernel {kernel.release} has no headers to build a module against")
    # Debian's headers include others that lie beside them.
    flags = " ".join(nameless(folder, kernel.headers.parent, kernel.headers))
    logged(["make", "-s", f"-j{os.cpu_count()}", "-C", kernel.headers, f"M={folder}", "CC=gcc",
            f"KCFLAGS={flags}", "CONFIG_DEBUG_INFO_BTF_MODULES=",
            *_for_our_compiler(kernel.headers), *(["MTFTL_DEBUG=1"] if asserts else []), "modules"],
           BUILD / "log/target-build.log")


@part
def helper_module(name: str, source: Path, kernel: Kernel) -> Path:
    """NAME.ko for a kernel, of what lies in a folder: it helps a test, and is no part of the target."""
    sources = sorted(source.iterdir())
    folder = BUILD / f"helpers/{name}-{kernel.key}-{digest(Path(__file__), *sources)}"
    with lock(name):
        if not folder.exists():
            with fresh_folder(folder) as part:
                for path in sources:
                    shutil.copy(path, part)
                build_module(kernel, part)
    return folder / f"{name}.ko"


@part
@functools.cache
def module(kernel: Kernel, asserts: bool = False) -> Path | None:
    """dm-mtftl.ko for this kernel; None if it has no headers, or has the target built in."""
    if kernel.target and kernel.target != for_the_kernel():
        raise LabError(f"{kernel.release} has another version of the target built in than these sources: "
                       "run `scripts/lab upstream --build`")
    if kernel.target or not kernel.headers:
        return None
    folder = _folder(kernel.key + ("-asserts" if asserts else ""))
    built, stamp = folder / "dm-mtftl.ko", folder / "built"
    with lock(f"target-{digest(str(folder))}"):
        sources = digest(_copy(folder), *nameless(folder, kernel.headers.parent))
        if not built.exists() or not stamp.exists() or stamp.read_text() != sources:
            build_module(kernel, folder, asserts)
            write_file(stamp, sources)
    return built


@part
@functools.cache
def tool() -> Path:
    """mtftl(8) for the guest and for the host."""
    folder = _folder("host")
    built, stamp = folder / "out/target/mtftl", folder / "built"
    with lock(f"target-{digest(str(folder))}"):
        sources = digest(_copy(folder), *nameless(folder))
        if not built.exists() or not stamp.exists() or stamp.read_text() != sources:
            debian.ensure("build", "tool")
            flags = " ".join(["-O2", "-g", *nameless(folder)])
            logged(["make", "-s", "-C", folder, f"BUILD={folder}/out", f"CFLAGS={flags}", "tool"],
                   BUILD / "log/tool-build.log")
            write_file(stamp, sources)
    return built
