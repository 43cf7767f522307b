# SPDX-License-Identifier: GPL-2.0
"""The target as patches for the newest kernel that Debian packages, and that kernel with it built in.

The series is made of the module's own sources by unifdef(1). It takes what the newest kernel answers to the module's
probes, so all that is for older kernels or for the host goes. If anything of compat.h is left, the series is refused.

Nothing here sends anything: see docs/lab/upstream.md.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ..util.base import BUILD, ROOT, LabError, fresh_folder, lock, logged, need_space, output, say, write_file
from . import debian, kernels, sourcekernel, target

TEXTS = target.SOURCE / "packaging/upstream"
HOME = BUILD / "upstream"
KERNEL = kernels.BUILT_IN           # where it is built, incrementally: a series changes few files of it
PLACE = "drivers/md/dm-mtftl"
GUIDE = "Documentation/admin-guide/device-mapper/dm-mtftl.rst"
# Files of the kernel that the series changes: what it adds, before which line.
HOOKS = {
    "drivers/md/Kconfig": ('source "drivers/md/dm-mtftl/Kconfig"\n\n', 'source "drivers/md/dm-vdo/Kconfig"\n'),
    "drivers/md/Makefile": ("obj-$(CONFIG_DM_MTFTL)\t\t+= dm-mtftl/\n", "obj-$(CONFIG_DM_PCACHE)"),
    "Documentation/admin-guide/device-mapper/index.rst": ("    dm-mtftl\n", "    dm-pcache\n"),
    "MAINTAINERS": ("""DEVICE-MAPPER MTFTL TARGET
M:	{author}
L:	dm-devel@lists.linux.dev
S:	Maintained
F:	Documentation/admin-guide/device-mapper/dm-mtftl.rst
F:	drivers/md/dm-mtftl/

""", "DEVICE-MAPPER VDO TARGET\n"),
}
CHECKPATCH = ("scripts/checkpatch.pl", "scripts/spelling.txt", "scripts/const_structs.checkpatch")
# Macros of the newest kernel that compat.h looks for itself, without a probe.
KNOWN = ("__KERNEL__", "timer_container_of", "kzalloc_obj", "BLK_OPEN_WRITE")
# For kernels and hosts only.
DROPPED = ("device/compat.h", "device/probe.c")
FRAGMENTS = ("base", "debug", "upstream")
# Options of the lab's guests that this kernel does not have any more.
GONE = ("CONFIG_LIBCRC32C", "CONFIG_CRYPTO_CRC32C")
# What each folder is, for the patch that adds it; from the bottom up.
FOLDERS = {
    "format": ("add the on-media format", """\
Structures on the drive, and their parsers and composers. Parsers check
each field before anything uses it. These files neither allocate, sleep
nor lock, so that they can be tested and fuzzed in user space.

lib/ holds assertions and what these files need of the kernel."""),
    "policy": ("add policies", """\
Which zone is the next victim, which blocks share a zone, how many zones
may be open, and who gets the zones that are left. Plain functions of
plain numbers: they neither allocate, sleep nor lock."""),
    "device": ("add access to the drive", """\
Commands to the drive, the numbers that units get, counters, options,
threads, waiting for space, and pauses for suspend."""),
    "map": ("add the map and the write buffers", """\
The map tells for each block of 4 KiB whether it lies on the drive, in a
buffer, or nowhere. Its entries share locks by chunks. The buffers are
rings of slots, one for each lane."""),
    "zone": ("add zones and writes to them", """\
The superblock log, states of zones, streams that share open zones,
write units on their way to the drive, and footers that say what a full
zone holds."""),
    "io": ("add reads, writes and discards", """\
Lanes take users' writes into their buffers, and a thread each composes
these into units. Reads look into the map and go to the drive or to a
buffer. A read in parts sends each as soon as it is built."""),
    "durable": ("add flushes, checkpoints and recovery", """\
A flush waits until all lanes have drained. A checkpoint writes what
changed of the map. Recovery reads the newest checkpoint and the
headers that are newer, and decides by their numbers which block is the
newest."""),
    "gc": ("add garbage collection", """\
One thread chooses victims and has their valid blocks listed. Movers
write these to other zones. A victim is reset once all that took its
blocks' place is on the drive and the last reader has left."""),
    "dm": ("add the device-mapper target", """\
The target's calls: constructor, mount, suspend and resume, messages and
status. With this the target is built."""),
}


def newest() -> tuple[str, str]:
    """The newest source package of the kernel, with its version."""
    stanza = debian.stanza(f"linux-source/{debian.NEWEST}")
    found = re.search(r"linux-source-[\d.]+", stanza.get("Depends", ""))
    if not found:
        raise LabError(f"no linux-source in {debian.NEWEST}")
    return found[0], stanza["Version"]


def _files(package: str, version: str) -> Path:
    """A folder with those of the kernel's files that the series changes, and with checkpatch."""
    folder = HOME / f"files-{version}"
    with lock("upstream-files"):
        if not folder.exists():
            say(f"fetching files of {package}")
            with fresh_folder(folder) as part:
                deb = debian.download(f"{package}={version}", part)
                wanted = [f"{package}/{name}" for name in (*HOOKS, *CHECKPATCH)]
                with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as whole, \
                        subprocess.Popen(["tar", "-xO", f"./usr/src/{package}.tar.xz"], stdin=whole.stdout,
                                         stdout=subprocess.PIPE) as inner:
                    output(["tar", "-xJ", "-C", part, "--strip-components=1", *wanted], stdin=inner.stdout)
                deb.unlink()
    return folder


def answers() -> dict[str, bool]:
    """What the newest kernel says to each of the module's probes; the headers are Debian's for the same version."""
    module = target.module(kernels.get(kernels.CURRENT))
    assert module
    has = re.findall(r"^#define (MTFTL_HAS_\w+)$", (module.parent / "probed.h").read_text(), re.M)
    names = re.findall(r"^PROBE\((?!NOTHING)(\w+),", (target.SOURCE / "device/probe.c").read_text(), re.M)
    return {f"MTFTL_HAS_{name}": f"MTFTL_HAS_{name}" in has for name in names}


def _reduced(text: str, known: dict[str, bool], path: str) -> str:
    """A source without what is for other kernels or for the host."""
    flags = [f"-{'D' if has else 'U'}{name}" for name, has in known.items()]
    done = subprocess.run(["unifdef", "-B", *flags], input=text, text=True, capture_output=True)
    if done.returncode not in (0, 1):
        raise LabError(f"unifdef: {path}: {done.stderr.strip()}")
    dropped = "|".join(re.escape(name) for name in (*DROPPED, "probed.h"))
    text = re.sub(rf'^#include "(?:{dropped})"\n', "", done.stdout, flags=re.M)
    # An include may have been alone in its paragraph.
    return re.sub(r"\n\n\n+", "\n\n", text)


def _left(text: str) -> str:
    """What a header says beside its guard, its includes and its comments."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"^#(?:include .*|(?:ifndef|define) MTFTL_COMPAT_H|endif)$|\s", "", text, flags=re.M)


def sources() -> dict[str, str]:
    """The module's files as the kernel gets them, by their names below PLACE."""
    known = answers() | dict.fromkeys(KNOWN, True)
    texts = {str(path.relative_to(target.SOURCE)): path.read_text() for path in target.module_sources()}
    reduced = {name: _reduced(text, known, name) for name, text in texts.items()}
    if left := _left(reduced["device/compat.h"]):
        raise LabError(f"device/compat.h: the newest kernel uses some of it, expected nothing: {left}")
    kept = {name: text for name, text in reduced.items() if name not in DROPPED}
    for name, text in kept.items():
        if found := re.search(r"MTFTL_HAS_\w+|LINUX_VERSION\w*|KERNEL_VERSION\w*|probed\.h", text):
            raise LabError(f"{name}: {found[0]} is left, expected nothing that tells kernels apart")
    objects = re.search(r"^dm-mtftl-y := .*?[^\\]\n", (target.SOURCE / "Kbuild").read_text(), re.M | re.S)
    assert objects
    kept["Makefile"] = ("# SPDX-License-Identifier: GPL-2.0-only\nobj-$(CONFIG_DM_MTFTL) := dm-mtftl.o\n"
                        f"{objects[0]}ccflags-y := -I$(src)\nccflags-$(CONFIG_DM_MTFTL_DEBUG) += -DMTFTL_DEBUG\n")
    kept["Kconfig"] = (TEXTS / "Kconfig").read_text()
    return kept


def _hooked(name: str, text: str, author: str) -> str:
    """A file of the kernel with what the series adds."""
    added, before = HOOKS[name]
    if text.count(f"\n{before}") != 1:
        raise LabError(f"{name}: expected one line {before.strip()!r}: the kernel has changed")
    return text.replace(f"\n{before}", f"\n{added.format(author=author) if name == 'MAINTAINERS' else added}{before}")


def identity() -> tuple[str, str]:
    """Name and address that git has for this checkout: who makes the series signs it."""
    found = re.match(r"(.*) <(.*)> ", output(["git", "-C", ROOT, "var", "GIT_AUTHOR_IDENT"]))
    assert found
    return found[1], found[2]


def git_environment() -> dict[str, str]:
    """For git in a repository of a series. Nothing of the caller's counts: a hook of git names its own repository."""
    name, address = identity()
    when = output(["git", "-C", ROOT, "show", "-s", "--format=%cI"]).strip()
    plain = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return dict(plain, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null",
                **{f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
                   for what, value in (("NAME", name), ("EMAIL", address), ("DATE", when))})


def _commits(files: Path) -> Iterable[tuple[str, str, dict[str, str]]]:
    """Subject, body and files of each commit."""
    texts, author = sources(), "{} <{}>".format(*identity())
    unknown = {name.partition("/")[0] for name in texts if "/" in name} - {*FOLDERS, "lib"}
    if unknown:
        raise LabError(f"no patch takes target/{unknown.pop()}")
    last = list(FOLDERS)[-1]
    for folder, (subject, body) in FOLDERS.items():
        mine = {f"{PLACE}/{name}": text for name, text in texts.items()
                if name.partition("/")[0] == folder or (folder == "format" and name.startswith("lib/"))
                or (folder == last and "/" not in name)}
        hooks = ["MAINTAINERS"] if folder == "format" else \
            ["drivers/md/Kconfig", "drivers/md/Makefile"] if folder == last else []
        yield subject, body, mine | {name: _hooked(name, (files / name).read_text(), author) for name in hooks}
    index = "Documentation/admin-guide/device-mapper/index.rst"
    yield ("document the target", "Requirements, table line, messages and recovery, for administrators.",
           {GUIDE: (TEXTS / "dm-mtftl.rst").read_text(), index: _hooked(index, (files / index).read_text(), author)})


def series(folder: Path) -> tuple[str, list[Path]]:
    """Write the patches, the cover letter first; returns the source package's version and the patches."""
    debian.ensure("build", "upstream")
    package, version = newest()
    files = _files(package, version)
    env = git_environment()
    with tempfile.TemporaryDirectory() as place:
        git: list[str | Path] = ["git", "-C", place]
        output([*git, "init", "-q"], env=env)
        for file in HOOKS:
            write_file(Path(place) / file, (files / file).read_text())
        output([*git, "add", "-A"], env=env)
        output([*git, "commit", "-q", "-m", f"{package} {version}"], env=env)
        output([*git, "tag", "base"], env=env)
        for subject, body, texts in _commits(files):
            for file, text in texts.items():
                write_file(Path(place) / file, text)
            output([*git, "add", "-A"], env=env)
            output([*git, "commit", "-q", "-s", "-m", f"dm mtftl: {subject}", "-m", body], env=env)
        for old in folder.glob("[0-9][0-9][0-9][0-9]-*.patch"):
            old.unlink()
        output([*git, "format-patch", "-q", "--cover-letter", "--subject-prefix=PATCH RFC", "--no-signature",
                "-o", folder.resolve(), "base"], env=env)
    cover, *patches = sorted(folder.glob("[0-9][0-9][0-9][0-9]-*.patch"))
    subject, _, body = (TEXTS / "cover").read_text().partition("\n\n")
    text = cover.read_text().replace("*** SUBJECT HERE ***", subject).replace("*** BLURB HERE ***", body.strip())
    write_file(cover, text)
    return version, patches


def checkpatch(version: str, patches: list[Path]) -> str:
    """What the newest kernel's checkpatch says.

    Each patch that adds a file is asked whether MAINTAINERS needs a change. The entry of the first one names the whole
    folder, so the others are not asked.
    """
    script = HOME / f"files-{version}/scripts/checkpatch.pl"
    said = ""
    for index, patch in enumerate(patches):
        ignored = ["--ignore", "FILE_PATH_CHANGES"] if index else []
        done = subprocess.run(["perl", script, "--no-tree", "--strict", "--terse", "--show-types", "--no-summary",
                               *ignored, patch], cwd=HOME, capture_output=True, text=True)
        said += done.stdout + done.stderr
    return said


def tree() -> Path:
    """The newest kernel's source, unpacked once."""
    package, version = newest()
    folder = HOME / package
    with lock("upstream-tree"):
        if not folder.exists():
            need_space(BUILD, 8, "a kernel")
            say(f"fetching {package}")
            with fresh_folder(folder) as part:
                debian.unpack(f"{package}={version}", part / "package")
                output(["tar", "-xf", part / f"package/usr/src/{package}.tar.xz", "-C", part, "--strip-components=1"])
                shutil.rmtree(part / "package")
    return folder


def apply(place: Path, version: str, patches: list[Path]) -> None:
    """Bring a source tree to the state that the patches make, whatever series it had before."""
    for name in HOOKS:
        shutil.copy(HOME / f"files-{version}" / name, place / name)
    shutil.rmtree(place / PLACE, ignore_errors=True)
    (place / GUIDE).unlink(missing_ok=True)
    for patch in patches:
        output(["git", "apply", patch.resolve()], cwd=place, env=dict(os.environ, GIT_DIR="/nonexistent"))


def _configuration() -> str:
    lines = "".join((sourcekernel.GUEST / f"kernel-{name}.config").read_text() for name in FRAGMENTS)
    return "".join(line for line in lines.splitlines(keepends=True) if line.partition("=")[0] not in GONE)


def _judged(log: Path) -> str:
    """What a compiler or checker said of our files."""
    return "\n".join(line for line in log.read_text().splitlines() if "dm-mtftl" in line)


def build(version: str, patches: list[Path]) -> dict[str, str]:
    """Build the kernel with the target as a module, then with it built in; returns what was said, by who said it."""
    place, said = tree(), {}
    with lock("upstream-kernel"):
        done, sources = KERNEL / kernels.BUILT_FROM, target.for_the_kernel()
        apply(place, version, patches)
        env = dict(os.environ, KCONFIG_ALLCONFIG=str(KERNEL / "fragment"), KBUILD_BUILD_TIMESTAMP="2026-01-01",
                   KBUILD_BUILD_USER="mtftl", KBUILD_BUILD_HOST="lab")
        make: list[str | Path] = ["make", "-s", "-C", place, f"O={KERNEL}", f"-j{os.cpu_count()}"]
        KERNEL.mkdir(parents=True, exist_ok=True)
        done.unlink(missing_ok=True)
        for how in ("m", "y"):
            wanted = f"{_configuration()}CONFIG_DM_MTFTL={how}\nCONFIG_DM_MTFTL_DEBUG=y\n"
            write_file(KERNEL / "fragment", wanted)
            logged([*make, "allnoconfig"], HOME / "config.log", env=env)
            if missing := sourcekernel.refused(wanted, (KERNEL / ".config").read_text()):
                raise LabError(f"{place.name} refuses {', '.join(missing)}")
            say(f"building {place.name} with DM_MTFTL={how}")
            logged([*make, "bzImage", "modules"], HOME / f"build-{how}.log", env=env)
            said[f"build, {how}"] = _judged(HOME / f"build-{how}.log")
        # All of ours again, by the stricter ones; the image stays as it is.
        shutil.rmtree(KERNEL / PLACE)
        logged([*make, "W=1", "C=1", f"{PLACE}/"], HOME / "strict.log", env=env)
        said["sparse and W=1"] = _judged(HOME / "strict.log")
        names = sorted((place / PLACE).rglob("*.[ch]"))
        kernel_doc = subprocess.run([place / "scripts/kernel-doc", "-none", "-Wall", *names], capture_output=True,
                                    text=True)
        said["kernel-doc"] = kernel_doc.stdout + kernel_doc.stderr
        write_file(done, sources)
    return said
