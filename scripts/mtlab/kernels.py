# SPDX-License-Identifier: GPL-2.0
"""Kernels for the guest: Debian's 6.12 and 6.1, unpacked from their packages, or the user's own.

BUILD/kernel/SERIES holds the unpacked image, modules and headers; nothing is installed.
"""

import lzma
import re
import shutil
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

from . import debian, debugkernel
from .base import BUILD, LabError, fresh_folder, lock, need_space, output, say

SERIES = ("6.12", "6.1")
DEFAULT = SERIES[0]


@dataclass(frozen=True)
class Kernel:
    """One bootable kernel with what belongs to it."""

    release: str
    image: Path
    modules: Path | None        # the folder that holds lib/modules/RELEASE, if there are any
    headers: Path | None        # what `make -C` builds our module against

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


def _unpack_debian(series: str, folder: Path) -> None:
    """Unpack image, modules, headers and kbuild of the newest kernel of a series."""
    found = None
    for stanza in debian.candidates("linux-headers-amd64"):
        m = re.match(rf"linux-headers-({re.escape(series)}\.\S+-amd64) \(= (\S+)\)", stanza.get("Depends", ""))
        if m:
            found = m
            break
    if not found:
        raise LabError(f"no kernel {series} in the archive's suites")
    release, version = found[1], found[2]
    say(f"fetching kernel {release}")
    depends = debian.candidates(f"linux-headers-{release}={version}")[0]["Depends"]
    kbuild = re.search(r"linux-kbuild-[^\s,]+", depends)
    common = re.search(r"linux-headers-[^\s,]+-common", depends)
    assert kbuild and common
    for package in (f"linux-image-{release}", f"linux-headers-{release}", common[0], kbuild[0]):
        debian.unpack(f"{package}={version}", folder)
    # Debian's headers name the common folder by its installed place; ours is beside them.
    makefile = folder / f"usr/src/linux-headers-{release}/Makefile"
    makefile.write_text(re.sub(r"/usr/src/(\S+)/Makefile", r"$(dir $(lastword $(MAKEFILE_LIST)))../\1/Makefile",
                               makefile.read_text()))
    for link in folder.glob("lib/modules/*/*"):
        if link.is_symlink():
            link.unlink()
    (folder / "vmlinux").write_bytes(extract_vmlinux((folder / f"boot/vmlinuz-{release}").read_bytes()))


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
    if name not in SERIES + debugkernel.FLAVOURS and not Path(name).exists():
        raise LabError(f"no kernel '{name}': there are {', '.join(SERIES + debugkernel.FLAVOURS)}, "
                       "or give a folder in which a kernel was built, or an image file")


def get(name: str) -> Kernel:
    """A kernel by series (6.12, 6.1), by debug flavour (kasan, kcsan), by build folder, or by image file."""
    check(name)
    if name in SERIES:
        return _debian(name)
    if name in debugkernel.FLAVOURS:
        return _built_tree(debugkernel.build(name))
    path = Path(name)
    if path.is_dir():
        return _built_tree(path.resolve())
    return _image_file(path.resolve())
