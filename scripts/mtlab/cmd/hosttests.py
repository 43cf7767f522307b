# SPDX-License-Identifier: GPL-2.0
"""The host's programs that run code of the module, and what they say of a file with a planted bug.

The programs are those of target/Makefile: unit tests, the model of admission, the fuzzers' kept inputs, and the judge
of power cuts. `make --dry-run` tells how each is compiled. All but the changed file is compiled once, so a bug costs
one object, and links. The programs that use the file run one after the other, the fastest first, until one fails.
They are optimised less than by make, and the changed file is not, because most bugs live for a fraction of a second.
Unit tests run without sanitizers first: that takes a fraction of the time, and notices most bugs.
"""

import functools
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..build import debian, target
from ..util.base import BUILD, LabError, digest, lock, output, write_file
from . import fuzz
from .planted import Planted

WORK = BUILD / "mutants/host"
MAKE = ["make", "--dry-run", "--always-make", "-s", "-C", str(target.SOURCE)]
MODEL = ["5x2-discards", "5x2", "5x3"]      # drives that take a second together
PLAIN = "_plain"            # behind the name of a program without sanitizers
SANITIZERS = "-fsanitize", "-fno-sanitize"
NEVER_PLAIN = ["test_found"]                # it asks how much memory is in use, which allocators round differently
PARTLY = {"map/map.c", "gc/reset.c"}     # a program runs a part of each, and guests all of it
JUDGED = 1500               # cuts of a journal
SLOWER = 3                  # times the processor time of the honest program, and
PATIENCE = 1                # second more; then it hangs
HONEST = 600                # seconds that an honest program may take
MEMORY = 1024               # MiB


@dataclass(frozen=True)
class Program:
    """A program that uses files of the module."""

    name: str
    group: str                      # of KILLERS
    compile: tuple[str, ...]        # words before the sources
    link: tuple[str, ...]           # words behind them
    sources: tuple[str, ...]        # from target/ on
    arguments: tuple[str, ...] = ()

    def uses(self, file: str) -> bool:
        return file in self.sources


@dataclass(frozen=True)
class Verdict:
    """What noticed a planted bug: "" if nothing did."""

    by: str
    program: str
    words: str


def _command(line: str) -> tuple[str, list[str], list[str], list[str]] | None:
    """A compiler's line: the program's name, words to compile with, sources, words to link with."""
    words = shlex.split(line)
    if not words or words[0] not in ("cc", "gcc") or "-o" not in words:
        return None
    at = words.index("-o")
    sources = [word for word in words[at + 2:] if word.endswith((".c", ".o"))]
    # Faster to compile; of what is to be seen, debug information shows nothing.
    flags = ["-O1" if word == "-O2" else word for word in words[1:at] if word != "-g" and not word.startswith("-W")]
    return Path(words[at + 1]).name, flags, sources, [word for word in words[at + 2:] if word.startswith("-l")]


def _printed(*goals: str) -> list[tuple[str, list[str], list[str], list[str]]]:
    """Programs. An object that several of them share counts as the sources that it is made of."""
    text = output([*MAKE, f"OUT={WORK}", *goals]).replace("\\\n", " ")
    found: list[tuple[str, list[str], list[str], list[str]]] = []
    shared: dict[str, list[str]] = {}
    for name, flags, words, libraries in filter(None, map(_command, text.splitlines())):
        sources = [source for word in words for source in shared.get(Path(word).name, [word])]
        if name.endswith(".o"):
            shared[name] = sources
        else:
            found.append((name, flags, sources, libraries))
    return found


def _relative(source: str) -> str:
    return source.removeprefix(f"{target.SOURCE}/")


@functools.cache
def programs(journals: tuple[Path, ...] = ()) -> tuple[Program, ...]:
    """All that the Makefile knows; the judge once for each journal."""
    found = []
    for group, goals in (("test", ["check"]), ("model", ["model"]), ("cuts", ["judge"]),
                         ("corpus", ["fuzzers", "FUZZ_CC=gcc", "FUZZ_MAIN=tests/fuzz_main.c"])):
        for name, flags, sources, libraries in _printed(*goals):
            every: list[tuple[str, ...]] = [()]
            if group == "model":
                every, flags = [tuple(MODEL)], [word.replace("-O1", "-O2") for word in flags]
            elif group == "corpus" and name == "fuzz_seeds":
                continue
            elif group == "corpus":
                fuzzer = fuzz.FUZZERS[name.removeprefix("fuzz_")]
                every = [(str(fuzzer.kept), str(fuzz.WORK / "target/corpus/seeds" / fuzzer.name))]
            elif group == "cuts":
                every = [("-n", str(JUDGED), "IMAGE", str(path)) for path in journals]
            variants = {name: flags}
            if group == "test" and name not in NEVER_PLAIN:
                variants[name + PLAIN] = [word for word in flags if not word.startswith(SANITIZERS)]
            found += [Program(variant, group, tuple(words), tuple(libraries), tuple(map(_relative, sources)), arguments)
                      for variant, words in variants.items() for arguments in every]
    return tuple(found)


def files() -> list[str]:
    """Files of the module that any of the programs uses, and tests as a whole."""
    ours = {str(path.relative_to(target.SOURCE)) for path in target.module_sources()}
    return sorted(({source for program in programs() for source in program.sources} & ours) - PARTLY)


def inputs() -> str:
    """A digest of all that the programs are made of, except the arguments."""
    tests = sorted(path for name in ("tests", "tool", *target.folders())
                   for path in (target.SOURCE / name).rglob("*.[ch]"))
    return digest(*tests, target.SOURCE / "Makefile")


@dataclass
class Bench:
    """The honest programs: their objects, and the processor time that each takes."""

    folder: Path
    programs: list[Program]
    seconds: dict[Program, float]

    def only(self, group: str) -> "Bench":
        """Those of one group."""
        return replace(self, programs=[program for program in self.programs if program.group == group])

    def of(self, file: str) -> list[Program]:
        """Those that use a file, the fastest first; what judges cuts is the last."""
        return sorted((program for program in self.programs if program.uses(file)),
                      key=lambda program: (program.group == "cuts", self.seconds[program]))


def object_of(folder: Path, program: Program, source: str) -> Path:
    """Where the honest object is that a program needs of a source."""
    return folder / "objects" / digest(*program.compile) / f"{source.replace('/', '-')}.o"


def _compile(program: Program, source: str | Path, built: Path, *more: str) -> str:
    """Compile a file; what the compiler says if it refuses."""
    built.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["gcc", *program.compile, "-w", *more, "-c", source, "-o", built], cwd=target.SOURCE,
                          capture_output=True, text=True)
    return "" if not done.returncode else (re.search(r"error: (.*)", done.stderr) or ["", done.stderr[-200:]])[1]


def _link(program: Program, objects: Sequence[Path], built: Path) -> None:
    output(["gcc", *(word for word in program.compile if word.startswith("-f")), "-fuse-ld=gold", "-o", built, *objects,
            *program.link], cwd=target.SOURCE)


def bench(journals: tuple[Path, ...]) -> Bench:
    """All of them, with the inputs that fuzzers have found."""
    debian.ensure("build", "tool", "test")
    folder = WORK / inputs()
    if not folder.exists():
        fuzz.build_replayers()
    with lock("mutants-host"):
        return make_bench(folder, programs(journals))


def make_bench(folder: Path, wanted: Sequence[Program]) -> Bench:
    """Compile what is honest, run each program once, and see that it finds nothing."""
    made = Bench(folder, list(wanted), {})
    for program in wanted:
        took = folder / "seconds" / digest(program.name, *program.arguments)
        for source in program.sources:
            built = object_of(folder, program, source)
            if not built.exists() and (said := _compile(program, source, built)):
                raise LabError(f"target/{source}: {said}")
        if not took.exists():
            honest = folder / program.name
            _link(program, [object_of(folder, program, source) for source in program.sources], honest)
            verdict, seconds = _run(program, honest, folder, HONEST)
            if verdict.by:
                raise LabError(f"{program.name} fails without a planted bug: {verdict.by} {verdict.words}")
            write_file(took, str(seconds))
        made.seconds[program] = float(took.read_text())
    return made


ENVIRONMENT = {"ASAN_OPTIONS": f"hard_rss_limit_mb={MEMORY}:detect_leaks=1", "PATH": "/usr/bin:/bin", "LC_ALL": "C"}
FAILS = "[  FAILED  ]", "VIOLATION", "wrong: "


def _run(program: Program, binary: Path, scratch: Path, most: float) -> tuple[Verdict, float]:
    """Run one until its first failure; and the processor time that it took."""
    image = scratch / "image"
    words = [str(image) if word == "IMAGE" else word for word in program.arguments]
    limits = [f"--cpu={int(most) + 1}", "--core=0"]
    # What has a sanitizer takes an address space without bounds.
    limits += [] if "-fsanitize=address,undefined" in program.compile else [f"--as={4 * MEMORY << 20}"]
    said: list[str] = []
    failed = False
    with subprocess.Popen(["prlimit", *limits, str(binary), *words], cwd=target.SOURCE, env=ENVIRONMENT, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as child:
        assert child.stdout
        for line in child.stdout:
            said = [*said[-60:], line.strip()]
            if line.startswith(FAILS) and not failed:
                failed = True
                os.killpg(child.pid, signal.SIGKILL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    image.unlink(missing_ok=True)
    return verdict_of(program, child.returncode, said, failed), usage.ru_utime + usage.ru_stime


def verdict_of(program: Program, status: int, said: list[str], failed: bool) -> Verdict:
    """What noticed a bug, by how a program ended and what it said; failed: it was ended at its first failure."""
    if not status and not failed:
        return Verdict("", program.name, "")
    text = "\n".join(said)
    asserted = re.search(r"(?:^|[ /])(\w+/\w+\.[ch]):\d+: \w+: Assertion `(.*)' failed", text, re.M)
    if asserted and not asserted[1].startswith(("tests/", "cuts/", "kernel/", "torture/", "model/")):
        return Verdict("assertion", program.name, f"{asserted[1]}: {asserted[2]}")
    sanitizer = re.search(r"(?:ERROR|SUMMARY): \w+Sanitizer: (.*)|runtime error: (.*)", text)
    if sanitizer:
        return Verdict("sanitizer", program.name, sanitizer[1] or sanitizer[2])
    if "ended with signal 24" in text or status == -signal.SIGXCPU:
        return Verdict("hang", program.name, said[-1] if said else "")
    words = (re.search(r"^\[  FAILED  \] (\w+)", text, re.M) or re.search(r"^(VIOLATION.*|wrong: .*)", text, re.M)
             or ["", said[-1] if said else f"status {status}"])
    return Verdict(program.group, program.name, words[1])


def _mutated(bug: Planted, text: str, scratch: Path) -> Path:
    """The changed file, under a name of its own; messages have the file's."""
    path = scratch / Path(bug.file).name
    path.write_text(f'#line 1 "{target.SOURCE / bug.file}"\n{bug.into(text)}')
    return path


def judge(bench_: Bench, bug: Planted, text: str, scratch: Path) -> Verdict:
    """What notices a bug in a file with this text."""
    source = _mutated(bug, text, scratch)
    made: dict[tuple[str, ...], Path] = {}
    for program in bench_.of(bug.file):
        if program.compile not in made:
            built = scratch / f"{len(made)}.o"
            if said := _compile(program, source, built, "-O0", f"-iquote{(target.SOURCE / bug.file).parent}"):
                return Verdict("compiler", "", said)
            made[program.compile] = built
        objects = [made[program.compile] if name == bug.file else object_of(bench_.folder, program, name)
                   for name in program.sources]
        binary = scratch / "program"
        _link(program, objects, binary)
        verdict, _ = _run(program, binary, scratch, SLOWER * bench_.seconds[program] + PATIENCE)
        if verdict.by:
            return verdict
    return Verdict("", "", "")


def same_code(bug: Planted, text: str, scratch: Path) -> bool:
    """Does an optimising compiler make the same of the file, bug or not?"""
    program = next(program for program in programs() if program.uses(bug.file))
    plain = [word for word in program.compile if not word.startswith(("-fsanitize", "-fno-sanitize", "-O"))]
    bytes_ = []
    for number, into in enumerate((text, bug.into(text))):
        path, built = scratch / Path(bug.file).name, scratch / f"same-{number}.o"
        path.write_text(f'#line 1 "{target.SOURCE / bug.file}"\n{into}')
        output(["gcc", *plain, "-w", "-O2", f"-iquote{(target.SOURCE / bug.file).parent}", "-c", path, "-o", built],
               cwd=target.SOURCE)
        bytes_.append(built.read_bytes())
    return bytes_[0] == bytes_[1]
