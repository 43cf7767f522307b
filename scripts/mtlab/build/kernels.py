# SPDX-License-Identifier: GPL-2.0
"""Kernels for the guest: Debian's 6.12, 6.1 and its newest, unpacked from their packages, or the user's own.

BUILD/kernel/SERIES holds the unpacked image, modules and headers; nothing is installed. `--kernel upstream` is the
kernel that upstream.py builds, with the target in it.
"""

import lzma
import re
import shutil
import subprocess
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

from ..util.base import BUILD, LabError, fresh_folder, lock, need_space, output, say
from . import debian, sourcekernel
from .parts import part

CURRENT = "current"         # whatever the newest is
SERIES = ("6.12", "6.1", CURRENT)
DEFAULT = SERIES[0]
UPSTREAM = "upstream"
NAMES = (*SERIES, *sourcekernel.FLAVOURS, UPSTREAM)
BUILT_IN = BUILD / "upstream/kernel"    # where the last one is built
BUILT_FROM = "target"                   # a file there, once it is built: see Kernel.target
# Of kbuild's programs, for a machine whose own are too old; and how they are run with them.
LIBRARIES = ("libc6", "libelf1t64", "libzstd1", "zlib1g")
RUN = """#!/bin/sh
file=$(readlink -f "$0")
run=${file%%/usr/lib/linux-kbuild-*}/run/usr
exec "$run/lib64/ld-linux-x86-64.so.2" --library-path "$run/lib/x86_64-linux-gnu" "$file.elf" "$@"
"""


@dataclass(frozen=True)
class Kernel:
    """One bootable kernel with what belongs to it."""

    release: str
    image: Path
    modules: Path | None        # the folder that holds lib/modules/RELEASE, if there are any
    headers: Path | None        # what `make -C` builds our module against
    target: str = ""            # a digest of the target's sources if it is built in; "": it is a module

    @property
    def key(self) -> str:
        """Name for caches: the release alone does not tell two local builds apart."""
        stat = self.image.stat()
        return f"{self.release}-{stat.st_size:x}-{int(stat.st_mtime):x}"


def extract_vmlinux(image: bytes) -> bytes:
    """The ELF file within a bzImage: it boots twice as fast, for QEMU enters it directly."""
    def xz(data: bytes) -> bytes:
        return lzma.LZMADecompressor().decompress(data)

    def gzip(data: bytes) -> bytes:
        return zlib.decompressobj(31).decompress(data)

    def zstd(data: bytes) -> bytes:
        return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=False).stdout

    for magic, unpack in ((b"\xfd7zXZ\x00", xz), (b"\x1f\x8b\x08", gzip), (b"\x28\xb5\x2f\xfd", zstd)):
        at = image.find(magic)
        while at >= 0:
            try:
                data = unpack(image[at:])
            except (lzma.LZMAError, zlib.error):
                data = b""
            if data.startswith(b"\x7fELF"):
                return data
            at = image.find(magic, at + 1)
    raise LabError("no ELF kernel found within the image")


def _same_version(package: str, version: str) -> list[str]:
    """A package, and those of its own version that it depends on: what one kernel consists of differs by release."""
    found = [package]
    for name in found:
        depends = debian.stanza(f"{name}={version}").get("Depends", "")
        found += [x for x in re.findall(rf"(\S+) \(= {re.escape(version)}\)", depends) if x not in found]
    return found


def _unpack_debian(series: str, folder: Path) -> None:
    """Unpack image, modules, headers and kbuild of the newest kernel of a series."""
    number = "" if series == CURRENT else re.escape(series) + r"\."
    suites = {debian.NEWEST} if series == CURRENT else {"bookworm", debian.codename(), debian.newer_suite()}
    found = [m for stanza in debian.candidates("linux-headers-amd64", suites)
             if (m := re.search(rf"linux-headers-({number}\S+-amd64) \(= (\S+)\)", stanza.get("Depends", "")))]
    if not found:
        raise LabError(f"no kernel {series} in the archive's suites")
    release, version = found[0][1], found[0][2]
    say(f"fetching kernel {release}")
    headers = f"linux-headers-{release}"
    kbuild = re.search(r"linux-kbuild-[^\s,]+", debian.stanza(f"{headers}={version}")["Depends"])
    assert kbuild
    parts = [*_same_version(f"linux-image-{release}", version), *_same_version(headers, version), kbuild[0]]
    for package in dict.fromkeys(parts):
        debian.unpack(f"{package}={version}", folder)
    _one_layout(folder, release)
    # Debian's headers name the common folder by its installed place; ours is beside them.
    makefile = folder / f"usr/src/{headers}/Makefile"
    makefile.write_text(re.sub(r"=?/usr/src/", lambda m: (":" if "=" in m[0] else "") + m[0].replace(
        "/usr/src/", "$(abspath $(dir $(lastword $(MAKEFILE_LIST)))..)/"), makefile.read_text()))
    _make_runnable(folder)
    (folder / "vmlinux").write_bytes(extract_vmlinux((folder / f"boot/vmlinuz-{release}").read_bytes()))


def _one_layout(folder: Path, release: str) -> None:
    """Debian 12 has boot and lib/modules, Debian 13 boot and usr/lib/modules, newer ones all in usr/lib/modules."""
    if not (folder / "lib").exists():
        (folder / "lib").symlink_to("usr/lib")
    (folder / "boot").mkdir(exist_ok=True)
    for name in ("vmlinuz", "config"):
        if not (folder / f"boot/{name}-{release}").exists():
            (folder / f"boot/{name}-{release}").symlink_to(f"../lib/modules/{release}/{name}")
    for link in (folder / "lib/modules" / release).iterdir():
        if link.is_symlink():
            link.unlink()


def _make_runnable(folder: Path) -> None:
    """kbuild's programs of a newer Debian get the C library that they want."""
    wanting = [p for p in folder.glob("usr/lib/linux-kbuild-*/**/*") if p.is_file() and not p.is_symlink()
               and p.read_bytes()[:4] == b"\x7fELF"
               and "not found" in output(["ldd", p])]
    for package in LIBRARIES if wanting else ():
        debian.unpack(f"{package}/trixie", folder / "run")
    for program in wanting:
        program.rename(program.with_name(f"{program.name}.elf"))
        program.write_text(RUN)
        program.chmod(0o755)


def _debian(series: str) -> Kernel:
    folder = BUILD / "kernel" / series
    with lock(f"kernel-{series}"):
        if not (folder / "vmlinux").exists():
            debian.ensure("build")
            need_space(BUILD, 2, f"kernel {series}")
            with fresh_folder(folder) as part:
                _unpack_debian(series, part)
    release = next((folder / "lib/modules").iterdir()).name
    return Kernel(release, folder / "vmlinux", folder, folder / f"usr/src/linux-headers-{release}")


def _built_tree(tree: Path) -> Kernel:
    """A kernel that the user built: its modules are installed into BUILD when it has any."""
    image = tree / "arch/x86/boot/bzImage"
    if not image.exists():
        raise LabError(f"{tree}: no arch/x86/boot/bzImage: is it a folder in which a kernel was built?")
    release = (tree / "include/config/kernel.release").read_text().strip()
    kernel = Kernel(release, image, None, tree)
    if not (tree / "modules.order").exists():
        return kernel
    modules = BUILD / "kernel" / kernel.key
    with lock(f"kernel-{kernel.key}"):
        if not modules.exists():
            with fresh_folder(modules) as part:
                output(["make", "-C", tree, "modules_install", f"INSTALL_MOD_PATH={part}", "DEPMOD=true"])
    return Kernel(release, image, modules, tree)


def _image_file(image: Path) -> Kernel:
    """An image alone: its modules are those of its release beside it or on this machine, if any."""
    described = output(["file", "-bL", image]) if shutil.which("file") else ""
    found = re.search(r"version (\S+)", described) or re.search(r"(\d+\.\d+\.\d+\S*)$", image.name)
    release = found[1] if found else "unknown"
    for base in (image.parent.parent, Path("/")):
        if (base / "lib/modules" / release).is_dir():
            return Kernel(release, image, base, None)
    return Kernel(release, image, None, None)


def check(name: str) -> None:
    """Refuse a name that get() does not know."""
    if name not in NAMES and not Path(name).exists():
        raise LabError(f"no kernel '{name}': there are {', '.join(NAMES)}, "
                       "or give a folder in which a kernel was built, or an image file")


@part
def get(name: str) -> Kernel:
    """A kernel by series (6.12, 6.1, current), by flavour (kasan, pblk, ...), by build folder, or by image file.

    Or the one with the target built in, once `lab upstream --build` has built it.
    """
    check(name)
    if name in SERIES:
        return _debian(name)
    if name in sourcekernel.FLAVOURS:
        kernel = _built_tree(sourcekernel.build(name))
        return replace(kernel, headers=None) if name == sourcekernel.PBLK else kernel
    if name == UPSTREAM:
        if not (BUILT_IN / BUILT_FROM).exists():
            raise LabError("no kernel has the target built in: run `scripts/lab upstream --build` first")
        return replace(_built_tree(BUILT_IN), target=(BUILT_IN / BUILT_FROM).read_text())
    path = Path(name)
    if path.is_dir():
        return _built_tree(path.resolve())
    return _image_file(path.resolve())
