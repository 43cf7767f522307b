# SPDX-License-Identifier: GPL-2.0
"""What is inside the guest: tools, modules and what one run adds, as initramfs archives.

Tools and modules are cached under BUILD/guest by the hash of their inputs; a run only writes its own
small archive behind them.
"""

import functools
import hashlib
import lzma
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..util.base import BUILD, ROOT, LabError, digest, fresh_folder, lock, output, say, write_file
from ..util.cpio import Archive, contents
from . import debian
from .kernels import Kernel
from .parts import part

HERE = ROOT / "scripts/guest"
TOOLS = """bash fio nvme zbd blkzone blockdev lsblk blkdiscard fallocate dmsetup sysbench blktrace blkparse
    losetup mount umount mkfs.f2fs fsck.f2fs mkfs.btrfs btrfs mkfs.xfs xfs_repair mke2fs mkfs.ext4 e2fsck
    taskset chrt""".split()
MODULES = """nvme null_blk dm-mod dm-flakey dm-zoned dm-log-writes dm-delay dm-dust f2fs xfs btrfs ext4 loop scsi_debug
    sd_mod configfs crc32c_intel crc32c_generic raid6_pq xor overlay 9p 9pnet_virtio virtio_pci
    raid0 raid1 raid10 raid456 virtio_net nvme-tcp nvmet-tcp drbd""".split()
LOADER = "/lib64/ld-linux-x86-64.so.2"
PATHS = "/usr/sbin:/usr/bin:/sbin:/bin"
FIRST = ["configfs", "nvme", "dm-mod", "libcrc32c"]      # loaded before the command runs; all others on demand


def _libraries(binary: Path) -> list[Path]:
    """The shared libraries of an executable, loader included; always in the same order."""
    text = subprocess.run([LOADER, "--list", binary], capture_output=True, text=True).stdout
    return sorted({Path(x) for x in re.findall(r"(/\S+) \(0x", text)})


def _put_binary(archive: Archive, binary: Path, name: str, below: Path | None = None) -> None:
    """An executable with the libraries that it needs, at the places where it looks for them.

    Those that the archive below has need not be there twice.
    """
    archive.file(name, binary.read_bytes(), 0o755)
    for library in _libraries(binary):
        data = library.read_bytes()
        if str(library) not in archive and not (below and data == _held(below, str(library))):
            archive.file(str(library), data, 0o755)


@functools.cache
def _places(archive: Path) -> dict[str, tuple[int, int]]:
    return {name: (at, size) for name, at, size in contents(archive)}


def _held(archive: Path, name: str) -> bytes | None:
    """What an archive in a file has by that name."""
    at, size = _places(archive).get(name.strip("/"), (0, 0))
    with open(archive, "rb") as f:
        return os.pread(f.fileno(), size, at) if at else None


@part
def program(name: str, folder: Path = HERE, kind: Sequence[str] = ("-static",), libraries: Sequence[str] = ()) -> Path:
    """A program of ours, compiled for the guest (static: it needs no library), or a library of ours."""
    source = folder / f"{name}.c"
    binary = BUILD / "guest" / digest(source, *folder.glob("guest.h")) / name
    with lock(name):
        if not binary.exists():
            binary.parent.mkdir(parents=True, exist_ok=True)
            part = binary.with_suffix(".part")
            output(["gcc", "-O2", "-Wall", "-Werror", *kind, "-o", part, source, *libraries])
            part.rename(binary)
    return binary


@part
def base() -> Path:
    """The archive that every guest starts from: init and busybox."""
    debian.ensure("build", "guest")
    busybox = Path(shutil.which("busybox", path=PATHS) or "")
    parts = [HERE / name for name in ("init", "shell")]
    ours = [program(name) for name in ("guest-area", "guest-seed")]
    target = BUILD / "guest" / f"base-{digest(*parts, busybox, *ours, *FIRST)}.cpio"
    if target.exists():
        return target
    archive = Archive()
    for folder in "dev proc sys tmp run root mnt etc lib/modules usr/bin".split():
        archive.folder(folder)
    archive.node("dev/console", 5, 1)
    archive.link("bin", "usr/bin")
    archive.link("sbin", "usr/bin")
    archive.link("usr/sbin", "bin")
    archive.file("etc/passwd", "root:x:0:0:root:/root:/bin/bash\n")
    archive.file("etc/group", "root:x:0:\n")
    archive.link("etc/mtab", "/proc/mounts")
    archive.file("init", (HERE / "init").read_bytes(), 0o755)
    archive.file("lab/modules", "".join(f"{name}\n" for name in FIRST))
    archive.file("lab/seed", hashlib.sha512(b"dm-mtftl").digest())     # all that random numbers come from
    archive.file("lab/shell", (HERE / "shell").read_bytes())
    _put_binary(archive, busybox, "usr/bin/busybox")
    for applet in output([busybox, "--list"]).split():
        if applet != "busybox":
            archive.link(f"usr/bin/{applet}", "busybox")
    for binary in ours:
        _put_binary(archive, binary, f"usr/bin/{binary.name}")
    write_file(target, archive.bytes())
    return target


@part
def tools() -> Path:
    """The archive of the programs that experiments and tests use; it lies over the base."""
    debian.ensure("build", "guest")
    found = {name: Path(shutil.which(name, path=PATHS) or "") for name in TOOLS}
    lost = [name for name, path in found.items() if not path.name]
    if lost:
        raise LabError(f"these programs are not on this machine: {' '.join(lost)}")
    stats = [f"{p}{p.stat().st_size}{p.stat().st_mtime_ns}" for p in found.values()]
    target = BUILD / "guest" / f"tools-{digest(*stats)}.cpio"
    if target.exists():
        return target
    with lock("guest-tools"):
        say("packing the guest's tools")
        archive = Archive()
        for name, path in found.items():
            _put_binary(archive, path.resolve(), f"usr/bin/{name}")
        write_file(target, archive.bytes())
    return target


@part
def modules(kernel: Kernel) -> Path | None:
    """The archive of the kernel's modules that a guest may need."""
    if not kernel.modules:
        return None
    target = BUILD / "guest" / f"modules-{kernel.key}-{digest(' '.join(MODULES))}.cpio"
    if target.exists():
        return target
    with lock(f"modules-{kernel.key}"):
        say(f"packing the modules of {kernel.release}")
        if not (kernel.modules / "lib/modules" / kernel.release / "modules.dep").exists():
            output(["depmod", "-b", kernel.modules, kernel.release])
        files: list[Path] = []
        for name in MODULES:
            shown = subprocess.run(["modprobe", "-C", "/dev/null", "-d", kernel.modules, "-S", kernel.release,
                                    "--show-depends", name],
                                   capture_output=True, text=True).stdout
            files += [Path(x) for x in re.findall(r"^insmod (\S+)", shown, re.M)]
        archive = Archive()
        top = kernel.modules / "lib/modules" / kernel.release
        staging = BUILD / "guest" / f"depmod-{kernel.key}"
        shutil.rmtree(staging, ignore_errors=True)
        place = staging / "lib/modules" / kernel.release
        place.mkdir(parents=True)       # a kernel may have all of them built in
        for file in dict.fromkeys(files):
            data = file.read_bytes()
            name = str(file).partition(f"/lib/modules/{kernel.release}/")[2]
            if name.endswith(".xz"):
                data, name = lzma.decompress(data), name[:-3]
            write_file(place / name, data)
        for extra in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
            if (top / extra).exists():
                shutil.copy(top / extra, place / extra)
        output(["depmod", "-b", staging, kernel.release])
        archive.copy(place, f"lib/modules/{kernel.release}")
        write_file(target, archive.bytes())
        shutil.rmtree(staging)
    return target


@part
def loose_modules(kernel: Kernel, names: Sequence[str]) -> list[Path]:
    """Files of modules that are not among MODULES, and of what they need: for a run that pushes and loads them."""
    folder = BUILD / "guest" / f"loose-{kernel.key}-{digest(' '.join(names))}"
    with lock(f"modules-{kernel.key}"):
        if kernel.modules and not folder.exists():
            with fresh_folder(folder) as part:
                for name in names:
                    shown = subprocess.run(["modprobe", "-C", "/dev/null", "-d", kernel.modules, "-S", kernel.release,
                                            "--show-depends", name], capture_output=True, text=True).stdout
                    for file in map(Path, re.findall(r"^insmod (\S+)", shown, re.M)):
                        data = file.read_bytes()
                        if file.suffix == ".xz":
                            file, data = file.with_suffix(""), lzma.decompress(data)
                        write_file(part / file.name, data)
    return sorted(folder.glob("*.ko"))


def in_host_root(command: str, kernel: Kernel) -> str:
    """The command that runs another one in the host's root folder; guest/root says how."""
    return (f"LAB_KERNEL={shlex.quote(str(kernel.modules or 'none'))}\nLAB_COMMAND={shlex.quote(command)}\n"
            + (HERE / "root").read_text())


def run_archive(command: str, *, pushed: Sequence[Path], pulled: Iterable[str], insmod: Path | None,
                programs: Sequence[Path], wait_for: str, shell: Mapping[str, str] | None = None,
                below: Path | None = None) -> bytes:
    """What one run adds: its settings, its command, pushed files in /root, the target and its tool.

    Libraries are those of the archive below, where it has them.
    """
    archive = Archive()
    settings = {"LAB_PULL": " ".join(pulled), "LAB_WAIT": wait_for,
                "LAB_INSMOD": f"/lab/{insmod.name}" if insmod else "", **(shell or {})}
    if settings.get("LAB_WATCH"):
        archive.file("lab/watch", (HERE / "watch").read_bytes(), 0o755)
    archive.file("lab/env", "".join(f"{k}={shlex.quote(v)}\n" for k, v in settings.items()))
    archive.file("lab/cmd", command + "\n")
    if insmod:
        archive.file(f"lab/{insmod.name}", insmod.read_bytes())
    for program in programs:
        _put_binary(archive, program, f"usr/bin/{program.name}", below)
    for path in pushed:
        if path.is_file() and path.read_bytes()[:4] == b"\x7fELF" and path.suffix != ".ko":
            _put_binary(archive, path, f"root/{path.name}", below)
        else:
            archive.copy(path.resolve(), f"root/{path.name}")
    return archive.bytes()
