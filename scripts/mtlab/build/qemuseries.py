# SPDX-License-Identifier: GPL-2.0
"""The emulator as git commits for QEMU: a series with the flash drive, one with lockstep time, and one that joins them.

The commits are made of the files and patches that the lab itself builds. emulator/upstream has what they do not have:
  tree/     files that are new in QEMU's tree: qtests, pages
  alone/    what differs in the flash drive without lockstep time
  VERSION/  what differs from that release on; before/ has patches that come first
In these folders NAME.diff is a change of emulator/NAME, be that a source or a patch; NAME itself replaces it.

Nothing here sends anything: see docs/emulator/upstream.md.
"""

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ..util.base import BUILD, LabError, fresh_folder, lock, logged, need_space, output, say, write_file
from . import debian, emulator, upstream

OURS = emulator.OURS
TEXTS = OURS / "upstream"
HOME = BUILD / "upstream"
RELEASES = ((10, 0), (10, 2))   # the series have been brought to these
PORTS = ("10.2",)               # releases from which on something differs
NEWER = (10, 1)                 # from here on lockstep time is declared in another header
# Patches that no series has, and why.
LEFT_OUT = {
    "0108": "makes the host faster, and has nothing to do with time",
    "0116": "makes the host faster; without lockstep it would have to be proven for parallel vCPUs",
    "0117": "QEMU 10.1 has it",
    "0119": "makes the host faster, as 0116",
    "0301": "is for the lab's guests",
    "0302": "loads the lab's prepared guests",
}
# Files of ours that no series has: they belong to these patches, or to the lab's build.
KEPT = ("accel/tcg/tb-global.*", "hw/misc/*", "configs/*")


@dataclass(frozen=True)
class Commit:
    """One topic. Subject and body are those of the first patch unless they are given."""

    subject: str = ""
    body: str = ""
    patches: tuple[str, ...] = ()       # by their numbers; NUMBER:PREFIX: files below that only, NUMBER:!PREFIX: others
    files: tuple[str, ...] = ()         # patterns below emulator/
    texts: tuple[str, ...] = ()         # below TEXTS/tree
    hooks: tuple[str, ...] = ()         # keys of HOOKS


@dataclass(frozen=True)
class Hook:
    """What is added to a file of QEMU: a text, and the line before which it goes."""

    text: str
    before: str


HOOKS = {
    "flash-maintainers": ("MAINTAINERS", Hook("""nvme-flash
M: {author}
L: qemu-block@nongnu.org
S: Maintained
F: hw/nvme/atomic.*
F: hw/nvme/flash*
F: hw/nvme/flash/
F: docs/system/devices/nvme-flash.rst
F: tests/qtest/nvme-flash-test.c

""", "megasas\n")),
    "flash-page": ("docs/system/device-emulation.rst", Hook("   devices/nvme-flash.rst\n", "   devices/usb.rst\n")),
    "flash-test": ("tests/qtest/meson.build", Hook("""\
  (config_all_devices.has_key('CONFIG_I440FX') and                                          \\
   config_all_devices.has_key('CONFIG_NVME_PCI') ? ['nvme-flash-test'] : []) +              \\
""", "  (config_all_devices.has_key('CONFIG_PVPANIC_ISA') ? ['pvpanic-test']")),
    "clock-maintainers": ("MAINTAINERS", Hook("""TCG lockstep time
M: {author}
S: Maintained
F: accel/tcg/lockstep-*
F: accel/tcg/memory-*
F: accel/tcg/sharing.*
F: accel/tcg/tcg-accel-ops-lockstep.*
F: docs/devel/tcg-lockstep.rst
F: tests/qtest/icount-lockstep-*

""", "Usermode Emulation\n------------------\n")),
    "clock-page": ("docs/devel/index-tcg.rst", Hook("   tcg-lockstep\n", "   tcg-plugins\n")),
    "clock-test": ("tests/qtest/meson.build", Hook("""\
  (config_all_accel.has_key('CONFIG_TCG') and                                               \\
   config_all_devices.has_key('CONFIG_I440FX') ? ['icount-lockstep-test'] : []) +           \\
""", "  (config_all_devices.has_key('CONFIG_FDC_ISA') ? ['fdc-test']")),
}
CLOCK = (
    Commit("accel/tcg: add a model of the caches between CPUs and memory", """\
How long an access takes, by who has the line: plain functions, and
profiles of some processors. Nothing calls them yet.""",
           files=("accel/tcg/memory-*", "accel/tcg/sharing.*"), hooks=("clock-maintainers",)),
    Commit(patches=("0101", "0110", "0120:accel/"), files=("accel/tcg/*lockstep*",), body="""\
Plain icount runs one vCPU after the other on one clock, so that a machine
of N vCPUs is as fast as one. In lockstep each of them has a core of its
own: in a round every vCPU runs for the same time from the same instant.

With a model of memory, translated code finds memory by tables whose
entries are lines of a cache. They forget what the TLB forgets; what they
do not know takes the slow path, which tells the model.

No option switches it on yet."""),
    *(Commit(patches=(number,)) for number in
      ("0103", "0104", "0105", "0106", "0107", "0109", "0111", "0112", "0113", "0115")),
    Commit("icount: add the options of lockstep", """\
-icount shift=N,sleep=off,quantum=Q chooses lockstep. Record and replay
count instructions over all vCPUs, sleeping follows the wall clock and an
adaptive shift does too, so each of them is refused.

Others say how long a vCPU's turn is while one spins, which processor's
caches are modelled, how vCPUs stand still now and then as if their
processor was taken away, and by which priorities they go on.""",
           patches=("0102", "0114", "0118", "0120:!accel/")),
    Commit("tests/qtest: test lockstep time", """\
Firmware of a few instructions runs a loop on all vCPUs at once. They need
the time of one, the same in each run.""",
           texts=("tests/qtest/icount-lockstep-*",), hooks=("clock-test",)),
    Commit("docs/devel: describe lockstep time", "What a round is, and what a device has to do in it.",
           texts=("docs/devel/tcg-lockstep.rst",), hooks=("clock-page",)),
)
FLASH = (
    *(Commit(patches=(number,)) for number in ("0201", "0204", "0213", "0219", "0205", "0202", "0209", "0208")),
    Commit("hw/nvme: add a model of NAND flash", """\
When each operation of dies and channels begins and ends, the write buffer,
what a power cut leaves, and the image that holds it: plain C, without
QEMU, so that it can be tested and fuzzed alone. Nothing calls it yet.""",
           files=("hw/nvme/flash/model/*", "hw/nvme/flash/meson.build"), hooks=("flash-maintainers",)),
    Commit("hw/nvme: add flash translation layers", """\
For drives that hide their flash: mappings by pages, by blocks with logs,
and with a map on flash, with garbage collection. Plain C as well.""",
           files=("hw/nvme/flash/ftl/*",)),
    Commit("hw/nvme: add the namespace on modelled flash", """\
Properties, the virtual clock between the controller and the model, faults
and power, counters. It is not compiled yet, as the personalities to come
are not.""",
           files=("hw/nvme/atomic.*", "hw/nvme/flash.*", "hw/nvme/flash-ns.h", "hw/nvme/flash-personality.h",
                  "hw/nvme/flash-io.*", "hw/nvme/flash-log.*", "hw/nvme/flash-fault.*", "hw/nvme/flash-journal.*")),
    Commit("hw/nvme: add zoned drives on modelled flash", "The commands of zoned namespaces, as operations of dies.",
           files=("hw/nvme/flash-zns.*",)),
    Commit("hw/nvme: add drives with an FTL on modelled flash", "With flexible data placement, too.",
           files=("hw/nvme/flash-blackbox.*", "hw/nvme/flash-fdp.*")),
    Commit("hw/nvme: add Open-Channel drives on modelled flash", "Version 2.0 of their specification.",
           files=("hw/nvme/flash-ocssd.*",)),
    Commit("hw/nvme: let a namespace lie on modelled flash", """\
The property flash.media switches the model on for a namespace. Commands
are checked by the controller as ever, then wait in the model for their
time. SMART, the endurance group's log and Identify tell what the flash
does, and reclaim units are those of the flash.""",
           patches=("0203", "0206", "0207", "0210", "0211", "0212", "0214", "0215", "0216", "0217", "0218",
                    "0220")),
    Commit("tests/qtest: test namespaces on modelled flash", """\
The test is a driver that says how far virtual time goes, so that each
command ends at a known nanosecond.""",
           texts=("tests/qtest/nvme-flash-test.c",), hooks=("flash-test",)),
    Commit("docs/system: describe namespaces on modelled flash", "How to make one, and what it models.",
           texts=("docs/system/devices/nvme-flash.rst",), hooks=("flash-page",)),
)
JOIN = Commit("hw/nvme: in lockstep, serve doorbells inline", """\
In lockstep nothing that the guest sees may depend on when the main loop
runs, and a vCPU in the middle of its turn must not find the device at an
instant that it has not reached.""")
NAMES = ("clock", "flash", "join")


@dataclass(frozen=True)
class Tree:
    """A source tree of QEMU."""

    path: Path

    @property
    def version(self) -> str:
        return (self.path / "VERSION").read_text().strip()

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(int(x) for x in re.findall(r"\d+", self.version)[:2])

    @property
    def known(self) -> bool:
        """Have the series been brought to this release?"""
        return self.numbers in RELEASES

    @property
    def port(self) -> str | None:
        """Which folder of TEXTS is for it: that of the newest release which is not newer."""
        fit = [port for port in PORTS if tuple(map(int, port.split("."))) <= self.numbers]
        return fit[-1] if fit else None


def lab_tree() -> Tree:
    """The release that the lab builds."""
    return Tree(emulator.pristine())


def newest_folder() -> Path:
    """Where the newest release is unpacked. The archive is asked again once this is deleted."""
    return HOME / "qemu-newest"


def newest_tree() -> Tree:
    """The newest release that Debian packages, and whose source its archive still serves."""
    folder = newest_folder()
    with lock("qemu-newest"):
        if not folder.exists():
            debian.ensure("build")
            need_space(BUILD, 2, "a source tree of QEMU")
            with fresh_folder(folder) as part:
                version = debian.newest_source("qemu", part / "tree")
                say(f"unpacked qemu {version}")
                for entry in list((part / "tree").iterdir()):
                    entry.rename(part / entry.name)
                (part / "tree").rmdir()
    return Tree(folder)


# What the files and patches are for a tree


@dataclass(frozen=True)
class Version:
    """The texts for one tree, with or without lockstep time."""

    tree: Tree
    alone: bool = False

    def text(self, name: str) -> str:
        """A file or patch of emulator/, as this tree needs it."""
        text = (OURS / name).read_text()
        if self.alone:
            text = _changed(text, "alone", name)
        if self.tree.numbers >= NEWER:
            text = re.sub(r'^(\+?)#include "system/cpu-timers\.h"$', r'\1#include "exec/icount.h"', text, flags=re.M)
        return _changed(text, self.tree.port, name) if self.tree.port else text

    def patch(self, wanted: str) -> str:
        """A patch by its number, or the part of it that wanted names."""
        number, _, prefix = wanted.partition(":")
        text = self.text(f"patches/{_patch(number)}")
        if not prefix:
            return text
        head, *parts = re.split(r"^(?=--- a/)", text, flags=re.M)
        inverse, prefix = prefix.startswith("!"), prefix.lstrip("!")
        return head + "".join(part for part in parts if part.startswith(f"--- a/{prefix}") != inverse)


def _changed(text: str, layer: str, name: str) -> str:
    """A text with what a folder of TEXTS has for it."""
    whole, diff = TEXTS / layer / name, TEXTS / layer / f"{name}.diff"
    if whole.exists():
        return whole.read_text()
    return _patched(text, diff) if diff.exists() else text


def _patched(text: str, diff: Path) -> str:
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "text"
        file.write_text(text)
        done = subprocess.run(["patch", "-s", "-f", "-F0", "--no-backup-if-mismatch", "-r", "-", "-i", diff, file],
                              capture_output=True, text=True)
        if done.returncode:
            raise LabError(f"{diff} does not apply:\n{done.stdout}{done.stderr}")
        return file.read_text()


def _patch(number: str) -> str:
    names = [path.name for path in emulator.series() if path.name.startswith(f"{number}-")]
    if len(names) != 1:
        raise LabError(f"emulator/patches/series: expected one patch {number}, found {names}")
    return names[0]


def _message(commit: Commit, version: Version) -> tuple[str, str]:
    """Subject and body."""
    if commit.subject:
        return commit.subject, commit.body
    head = version.patch(commit.patches[0]).partition("\n---")[0]
    subject, _, body = head.partition("\n")
    return subject.strip(), commit.body or body.strip()


def ours() -> list[str]:
    """All files that the series have to have, by their place in QEMU's tree."""
    return [name for name in emulator.our_files() if not any(fnmatchcase(name, kept) for kept in KEPT)]


def _hooked(key: str, text: str, author: str) -> str:
    name, hook = HOOKS[key]
    if text.count(f"\n{hook.before}") != 1:
        raise LabError(f"{name}: expected one line {hook.before.splitlines()[0]!r}: QEMU has changed")
    return text.replace(f"\n{hook.before}", f"\n{hook.text.replace('{author}', author)}{hook.before}")


# The repository


class Repository:
    """Only those of QEMU's files that the series touch; the commits are signed by who git says works here."""

    def __init__(self, place: Path, tree: Tree) -> None:
        self.place, self.tree = place, tree
        self.name, self.address = upstream.identity()
        self.env = upstream.git_environment()
        self.git("init", "-q", "-b", "base")
        for name in sorted(self._touched()):
            if (tree.path / name).exists():
                write_file(place / name, (tree.path / name).read_text())
        self.save(f"QEMU {tree.version}", "")

    def git(self, *arguments: str | Path) -> str:
        return output(["git", "-C", self.place, *arguments], env=self.env)

    def _touched(self) -> set[str]:
        texts = [Version(self.tree).text(f"patches/{path.name}") for path in emulator.series()]
        texts += [path.read_text() for path in self.before()]
        return {name for text in texts for name in re.findall(r"^(?:---|\+\+\+) [ab]/(\S+)", text, re.M)} | \
            {name for name, _ in HOOKS.values()}

    def before(self) -> list[Path]:
        """Patches that this release lacks and that the flash drive builds on."""
        return sorted((TEXTS / self.tree.port / "before").glob("*.patch")) if self.tree.port else []

    def save(self, subject: str, body: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-s", "-m", subject, *(["-m", body] if body else []))

    def apply(self, text: str, name: str) -> None:
        done = subprocess.run(["patch", "-p1", "-s", "-f", "-F0", "--no-backup-if-mismatch", "-r", "-"],
                              cwd=self.place, input=text, capture_output=True, text=True)
        if done.returncode:
            raise LabError(f"QEMU {self.tree.version}: patch {name} does not apply:\n{done.stdout}{done.stderr}")

    def commit(self, commit: Commit, version: Version) -> None:
        author = f"{self.name} <{self.address}>"
        for wanted in commit.patches:
            self.apply(version.patch(wanted), wanted)
        for name in ours():
            if any(fnmatchcase(name, pattern) for pattern in commit.files):
                write_file(self.place / name, version.text(name))
        for text in sorted(path for pattern in commit.texts for path in (TEXTS / "tree").glob(pattern)):
            write_file(self.place / text.relative_to(TEXTS / "tree"), text.read_text())
        for key in commit.hooks:
            file = self.place / HOOKS[key][0]
            write_file(file, _hooked(key, file.read_text(), author))
        self.save(*_message(commit, version))

    def branch(self, name: str, start: str) -> None:
        self.git("checkout", "-q", "-b", name, start)

    def format(self, folder: Path, since: str, until: str) -> list[Path]:
        """The commits between two branches as files, in place of those that the folder has."""
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("[0-9][0-9][0-9][0-9]-*.patch"):
            old.unlink()
        self.git("format-patch", "-q", "--subject-prefix=RFC PATCH", "--no-signature", "-o", folder.resolve(),
                 f"{since}..{until}")
        return sorted(folder.glob("[0-9][0-9][0-9][0-9]-*.patch"))


def _flash(repository: Repository, version: Version) -> None:
    for path in repository.before():
        text = path.read_text()
        subject, _, body = text.partition("\n---")[0].partition("\n")
        repository.apply(text, path.name)
        repository.save(subject, body.strip())
    for commit in FLASH:
        repository.commit(commit, version)


def _join(repository: Repository, tree: Tree) -> None:
    """Give the files that differ without lockstep time the text that they have with it."""
    wanted = _with_both(tree)
    for name, text in wanted.items():
        write_file(repository.place / name, text)
    repository.save(JOIN.subject, JOIN.body)


def _with_both(tree: Tree) -> dict[str, str]:
    """The files in question, as a flash drive made with lockstep time has them."""
    with tempfile.TemporaryDirectory() as place:
        other = Repository(Path(place), tree)
        for commit in CLOCK:
            other.commit(commit, Version(tree))
        _flash(other, Version(tree))
        changed = {path.relative_to(TEXTS / "alone") for path in (TEXTS / "alone").rglob("*.diff")}
        names = {str(name.with_suffix("")) for name in changed if name.parts[0] != "patches"} | {"hw/nvme/ctrl.c"}
        return {name: (other.place / name).read_text() for name in names}


def series(tree: Tree, out: Path) -> dict[str, list[Path]]:
    """Write the patches of each series into a folder of its own."""
    debian.ensure("build", "upstream")
    with tempfile.TemporaryDirectory() as place:
        repository = Repository(Path(place), tree)
        repository.branch("flash", "base")
        _flash(repository, Version(tree, alone=True))
        repository.branch("clock", "base")
        for commit in CLOCK:
            repository.commit(commit, Version(tree))
        repository.branch("join", "clock")
        repository.git("cherry-pick", "base..flash")
        repository.branch("both", "join")
        _join(repository, tree)
        return {name: repository.format(out / name, *since) for name, since in
                (("clock", ("base", "clock")), ("flash", ("base", "flash")), ("join", ("join", "both")))}


def apply(place: Path, patches: dict[str, list[Path]]) -> None:
    """Bring a pristine source tree to the state that all series make."""
    for patch in (patch for name in NAMES for patch in patches[name]):
        output(["git", "apply", patch.resolve()], cwd=place, env=dict(os.environ, GIT_DIR="/nonexistent"))


# What QEMU's own checkpatch may say, and why it stays
EXCEPTIONS = {
    "line over 80 characters": "a warning; an error, from 90 on, is none",
    "added, moved or deleted file(s)": "the first patch that adds files has the entry in MAINTAINERS",
    "Block comments use": "a macro has a comment that it takes for the rest of one",
    "architecture specific defines should be avoided": "the image is little endian, and this refuses other hosts",
    "Does new file 'hw/nvme/flash/meson.build' need 'SPDX-License-Identifier'?": "none of QEMU's meson.build had one",
}


def checkpatch(tree: Tree, patches: list[Path]) -> tuple[str, int]:
    """What QEMU's checkpatch says beside the exceptions, and how often it says one of these."""
    lines = []
    for patch in patches:
        done = subprocess.run(["perl", tree.path / "scripts/checkpatch.pl", "--no-tree", "--terse", "--no-summary",
                               patch.resolve()], cwd=tree.path, capture_output=True, text=True)
        lines += re.findall(r"^\S+:\d+: (?:ERROR|WARNING): .*$", done.stdout + done.stderr, re.M)
    new = [line for line in lines if not any(line.partition("WARNING: ")[2].startswith(x) for x in EXCEPTIONS)]
    return "\n".join(new), len(lines) - len(new)


# The build

TESTS = ("nvme-flash-test", "icount-lockstep-test")
CONFIGURE = ("--target-list=x86_64-softmmu", "--without-default-devices", "--with-devices-x86_64=series",
             "--without-default-features", "--enable-tcg", "--enable-fdt=system", "--disable-docs", "--disable-tools",
             "--disable-guest-agent", "--disable-install-blobs", "--disable-download", "--disable-debug-info")


def build(tree: Tree, patches: dict[str, list[Path]]) -> str:
    """Build QEMU with all series and run their qtests; returns a line on the compiler's warnings, and one a test."""
    place = HOME / f"qemu-build-{tree.version}"
    debian.ensure("build", "emulator")
    need_space(BUILD, 2, "building QEMU")
    with lock("qemu-series"):
        shutil.rmtree(place, ignore_errors=True)
        try:
            (place / "obj").mkdir(parents=True)
            output(["cp", "-a", "--reflink=auto", tree.path, place / "src"])
            apply(place / "src", patches)
            shutil.copy(TEXTS / "devices.mak", place / "src/configs/devices/x86_64-softmmu/series.mak")
            env = emulator.meson()
            logs = HOME / f"qemu-{tree.version}"
            say(f"building QEMU {tree.version} with the series")
            logged([place / "src/configure", "--python=/usr/bin/python3", *CONFIGURE], logs / "configure.log",
                   cwd=place / "obj", env=env)
            logged(["nice", "ninja", "qemu-system-x86_64", *(f"tests/qtest/{test}" for test in TESTS)],
                   logs / "build.log", cwd=place / "obj", env=env, progress=True)
            _add_firmware(place / "obj/qemu-bundle/usr/local/share/qemu")
            return _warnings(logs / "build.log") + "".join(_qtest(place / "obj", test) for test in TESTS)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _warnings(log: Path) -> str:
    count = len(re.findall(r"\bwarning: ", log.read_text(errors="replace")))
    return f"build: {count or 'no'} warnings, in {log}\n"


def _add_firmware(folder: Path) -> None:
    """Debian's source has none; its packages do."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in emulator.firmware():
        if not (folder / file.name).exists():
            (folder / file.name).symlink_to(file)


def _qtest(obj: Path, test: str) -> str:
    """The lines of a qtest that say what passed and what failed."""
    done = subprocess.run([obj / f"tests/qtest/{test}", "--tap", "-k"], cwd=obj, capture_output=True, text=True,
                          env=dict(os.environ, QTEST_QEMU_BINARY=str(obj / "qemu-system-x86_64")))
    lines = re.findall(r"^(?:not )?ok .*$", done.stdout, re.M)
    if done.returncode or not lines:
        lines.append(f"not ok {test}: exit status {done.returncode}: {done.stderr.strip()}")
    return "".join(f"{line}\n" for line in lines)
