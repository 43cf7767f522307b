# SPDX-License-Identifier: GPL-2.0
"""QEMU as Debian ships it, plus every file under emulator/hw, accel and configs, plus our patches.

Places under BUILD/emulator:
  source-*/   the pristine tree (never written to)
  tree/       src and obj: only files that change are rewritten, so ninja is incremental, also when
              several checkouts share BUILD and take turns
  tree-sanitize/
              the same with SANITIZE=1: under ASan and UBSan, each of whose reports ends the emulator
  tree-full/  the same with all of QEMU's devices, for a guest that is not the lab's own (FULL)
  bin-HASH/   finished binaries by the hash of all their inputs; the last few are kept
"""

import functools
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
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
    need_space,
    output,
    say,
    update_file,
    write_file,
)
from . import debian
from .parts import part

OURS = ROOT / "emulator"
COPIED = ("hw", "accel", "configs")
HOME = BUILD / "emulator"
KEEP = 8
SANITIZE = os.environ.get("SANITIZE") == "1"
FORBIDDEN = "MTFTL_NO_EMULATOR"     # in the environment of `lab check`
CONFIGURE = """--target-list=x86_64-softmmu --without-default-devices --with-devices-x86_64=mtftl
    --without-default-features --enable-tcg --enable-kvm
    --enable-virtfs --enable-attr --enable-cap-ng --enable-plugins --enable-fdt=system --disable-docs
    --disable-install-blobs --disable-download --disable-werror""".split()
if SANITIZE:
    # Not the alignment: QEMU's own loaders and tables read unaligned words on purpose.
    CONFIGURE += ["--enable-asan", "--enable-ubsan",
                  "--extra-cflags=-fno-sanitize-recover=all -fno-sanitize=alignment"]
else:
    CONFIGURE += ["--disable-debug-info"]


@dataclass(frozen=True)
class Kind:
    """A build of the emulator. What is in one does not change the other: saved boot states are named by its bytes."""

    name: str
    configure: tuple[str, ...]
    packages: tuple[str, ...]       # by their purpose
    minutes: int                    # of a build from scratch, on two cores

    @property
    def tree(self) -> Path:
        """Where it is built."""
        return HOME / "-".join(["tree", *([] if self.name == "emulator" else [self.name]), *["sanitize"] * SANITIZE])


# Guests of the lab, thousands of which are started.
LAB = Kind("emulator", tuple(CONFIGURE), ("build", "emulator"), 2)
# Guests of users: all devices, a network without root, and disks read through Linux's own queues.
FULL = Kind("full", (*(word for word in CONFIGURE if "devices" not in word),
                     "--enable-slirp", "--enable-linux-aio", "--enable-linux-io-uring"),
            ("build", "emulator", "full"), 3)
# Firmware comes from Debian's packages: Debian's source tree holds none.
FIRMWARE = ("/usr/share/qemu", "/usr/share/seabios")


@functools.cache
def firmware() -> list[Path]:
    """The files of it that a guest of ours may execute."""
    names = ("bios-256k.bin", "kvmvapic.bin", "linuxboot_dma.bin", "pvh.bin")
    return [found for folder in FIRMWARE for name in names if (found := Path(folder, name)).exists()]


def pristine() -> Path:
    """The unpacked source: from QEMU_SRC (a tarball) or Debian's source package."""
    given = os.environ.get("QEMU_SRC")
    folder = HOME / ("source-" + (digest(str(Path(given).resolve())) if given else "debian"))
    with lock("emulator-source"):
        if folder.exists():
            return folder
        need_space(BUILD, 4, "building the emulator")
        with fresh_folder(folder) as part:
            if given:
                if not Path(given).exists():
                    raise LabError(f"QEMU_SRC={given}: there is no such file")
                say(f"unpacking {given}")
                output(["tar", "-xf", given, "-C", part, "--strip-components=1"])
            else:
                say("fetching QEMU's source package")
                tree = part / "tree"
                debian.source("qemu/trixie", tree)
                for entry in list(tree.iterdir()):
                    entry.rename(part / entry.name)
                tree.rmdir()
            version = (part / "VERSION").read_text().strip()
            if not version.startswith("10.0."):
                raise LabError(f"QEMU {version} found; the patches are for 10.0.x")
    return folder


def series() -> list[Path]:
    """Our patches in order."""
    listed = OURS / "patches/series"
    names = [x for x in listed.read_text().splitlines() if x and not x.startswith("#")] if listed.exists() else []
    for name in names:
        if not (OURS / "patches" / name).is_file():
            raise LabError(f"emulator/patches/series names {name}, which does not exist")
    return [OURS / "patches" / name for name in names]


def our_files() -> dict[str, Path]:
    """Files to copy into QEMU's tree, by their place there."""
    return {str(p.relative_to(OURS)): p for top in COPIED for p in sorted((OURS / top).rglob("*"))
            if p.is_file() and not p.name.startswith(".")}


def patched(source: Path) -> dict[str, bytes]:
    """All files of QEMU's tree that are ours or that our patches change, with their final content."""
    result = {place: path.read_bytes() for place, path in our_files().items()}
    patches = series()
    with tempfile.TemporaryDirectory(prefix="mtftl-patch-") as scratch:
        touched: set[str] = set()
        for patch in patches:
            for name in re.findall(r"^(?:---|\+\+\+) [ab]/(\S+)", patch.read_text(), re.M):
                if name not in touched:
                    touched.add(name)
                    content = result.get(name) or ((source / name).read_bytes() if (source / name).exists() else None)
                    if content is not None:
                        (Path(scratch) / name).parent.mkdir(parents=True, exist_ok=True)
                        (Path(scratch) / name).write_bytes(content)
        for patch in patches:
            done = subprocess.run(["patch", "-p1", "--no-backup-if-mismatch", "-r", "-", "-s", "-f", "-i", patch],
                                  cwd=scratch, capture_output=True, text=True)
            if done.returncode:
                raise LabError(f"emulator/patches/{patch.name} does not apply:\n{done.stdout}{done.stderr}")
        for name in touched:
            path = Path(scratch) / name
            if path.exists():
                result[name] = path.read_bytes()
    return result


def _configure_needed(obj: Path, kind: Kind) -> bool:
    mark = obj / "mtftl-configured"
    return not (obj / "build.ninja").exists() or not mark.exists() or mark.read_text() != " ".join(kind.configure)


def meson() -> dict[str, str]:
    """An environment in which configure finds meson >= 1.5: the machine's own, or backports' unpacked."""
    env = dict(os.environ)
    have = subprocess.run(["/usr/bin/python3", "-c", "import importlib.metadata as m; print(m.version('meson'))"],
                          capture_output=True, text=True).stdout.strip()
    if tuple(int(x) for x in re.findall(r"\d+", have)[:2]) < (1, 5):
        folder = HOME / "meson"
        if not folder.exists():
            say("fetching a newer meson")
            with fresh_folder(folder) as part:
                debian.unpack(f"meson/{debian.newer_suite()}", part)
        env["PYTHONPATH"] = str(folder / "usr/lib/python3/dist-packages")
    return env


def _inputs(source: Path, kind: Kind) -> str:
    """A hash of all that patched() reads, and of how that is compiled."""
    ours = {place: path.read_bytes() for place, path in our_files().items()}
    return digest(source.name, source / "VERSION", " ".join(kind.configure), digest_files(ours), *series())


def _binary(key: str) -> Path:
    return HOME / f"bin-{key}" / "qemu-system-x86_64"


@part
@functools.cache
def build(kind: Kind = LAB) -> Path:
    """The emulator's binary for the files as they were when this lab first asked."""
    if FORBIDDEN in os.environ:
        raise LabError("`lab check` starts no emulator; a test that needs it asks for the fixture emulator_binary")
    debian.ensure(*kind.packages)
    source = pristine()
    # To apply all patches takes longer than to look up what came out of it the last time.
    inputs = _inputs(source, kind)
    known = HOME / "keys" / inputs
    if known.exists() and (binary := _binary(known.read_text())).exists():
        os.utime(binary.parent)
        return binary
    files = patched(source)
    key = digest(source.name, source / "VERSION", " ".join(kind.configure), digest_files(files))
    if _inputs(source, kind) == inputs:           # they were not edited meanwhile
        write_file(known, key)
    binary = _binary(key)
    if binary.exists():
        os.utime(binary.parent)
        return binary
    with lock(kind.tree.name):
        if binary.exists():
            return binary
        _build_tree(source, files, kind)
        with fresh_folder(binary.parent) as part:
            shutil.copy2(kind.tree / "obj/qemu-system-x86_64", part)
        for old in sorted(HOME.glob("bin-*"), key=lambda p: p.stat().st_mtime)[:-KEEP]:
            shutil.rmtree(old, ignore_errors=True)
    return binary


def _build_tree(source: Path, files: dict[str, bytes], kind: Kind) -> None:
    tree = kind.tree
    src, obj = tree / "src", tree / "obj"
    stamp = tree / "source"
    if not stamp.exists() or stamp.read_text() != source.name:
        need_space(BUILD, 2, "building the emulator")
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        output(["cp", "-a", "--reflink=auto", source, src])
        write_file(stamp, source.name)
    manifest = tree / "changed"
    before = manifest.read_text().split("\n") if manifest.exists() else []
    write_file(manifest, "\n".join(sorted({*before, *files} - {""})))
    for place, content in files.items():
        update_file(src / place, content)
    for place in set(before) - set(files) - {""}:
        if (source / place).exists():
            update_file(src / place, (source / place).read_bytes())
        else:
            (src / place).unlink(missing_ok=True)
    write_file(manifest, "\n".join(sorted(files)))
    env = meson()
    if _configure_needed(obj, kind):
        say("configuring the emulator")
        shutil.rmtree(obj, ignore_errors=True)
        obj.mkdir()
        logged([src / "configure", "--python=/usr/bin/python3", *kind.configure],
               BUILD / f"log/{kind.name}-configure.log", cwd=obj, env=env)
        write_file(obj / "mtftl-configured", " ".join(kind.configure))
    say(f"building the emulator (about {kind.minutes} minutes on 2 cores when from scratch)")
    logged(["nice", "ninja", "qemu-system-x86_64"], BUILD / f"log/{kind.name}-build.log", cwd=obj, env=env,
           progress=True)
