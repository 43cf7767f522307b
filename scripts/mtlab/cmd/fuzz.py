# SPDX-License-Identifier: GPL-2.0
"""Fuzzers of all that reads media: the module's parsers, recovery and GC's walk, the tool, the emulator's images.

`lab fuzz` runs them under libFuzzer, with ASan and UBSan. Inputs that are worth keeping are in the tree, below the
tests of each part, and every run starts with them. `make test` runs them too, by programs that any compiler makes
(target/tests/fuzz_main.c). Inputs that a run adds stay below BUILD, and the next run starts with those as well.
"""

import argparse
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..build import debian
from ..run import firmware
from ..util.base import BUILD, ROOT, LabError, cores, digest, lock, logged, output, say

TARGET = ROOT / "target"
FLASH = ROOT / "emulator/tests/fuzz_flash.c"
MAIN = TARGET / "tests/fuzz_main.c"
WORK = BUILD / "fuzz" / digest(str(ROOT))
SANITIZERS = "-fsanitize=address,undefined"
LONGEST = 16384             # bytes of an input
PATIENCE = 120              # seconds that one input may take, by the host's clock: it may be busy
MEMORY = 2048               # MiB of one fuzzer


@dataclass(frozen=True)
class Fuzzer:
    """A fuzzer, what it feeds, and where inputs for it are kept."""

    name: str
    what: str
    part: str = "target"

    @property
    def kept(self) -> Path:
        return ROOT / self.part / "tests/corpus" / self.name

    @property
    def made(self) -> Path:
        """Inputs that a program writes."""
        return WORK / "target/fuzz/seeds" / self.name

    @property
    def grown(self) -> Path:
        return WORK / "grown" / self.name

    def folders(self) -> list[Path]:
        return [folder for folder in (self.kept, self.made) if folder.exists()]


FUZZERS = {fuzzer.name: fuzzer for fuzzer in (
    Fuzzer("unit", "headers of units, and metadata"),
    Fuzzer("super", "superblock records"),
    Fuzzer("tail", "tails and footer streams"),
    Fuzzer("walk", "GC's walk of a zone"),
    Fuzzer("recover", "the module's recovery"),
    Fuzzer("image", "the tool: check, replay, rebuild"),
    Fuzzer("flash", "the emulator's images, its FTL", "emulator"),
)}


@dataclass
class Outcome:
    """What a fuzzer's run came to."""

    name: str
    executions: int
    coverage: int               # edges
    inputs: int                 # in its corpus
    reports: list[Path]
    said: str                   # the end of what it printed, if it reported something


def _target(*words: str) -> None:
    logged(["make", "-s", f"-j{cores()}", "-C", TARGET, f"BUILD={WORK}", *words, "fuzzers"], BUILD / "log/fuzzers.log")


def _flash(folder: Path, compiler: str, *words: str | Path) -> None:
    """The emulator's fuzzer: what of the flash device knows nothing of QEMU."""
    rooms = firmware.plain("*.c")
    sources = [FLASH, *rooms, *(word for word in words if isinstance(word, Path))]
    stamp, program = folder / "fuzz_flash.inputs", folder / "fuzz_flash"
    inputs = digest(compiler, *map(str, words), *sources, *firmware.plain("*.h"))
    if program.exists() and stamp.exists() and stamp.read_text() == inputs:
        return
    folder.mkdir(parents=True, exist_ok=True)
    logged([compiler, "-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Werror", SANITIZERS,
            "-fno-sanitize-recover=all", f"-I{firmware.NVME}", f"-I{TARGET}", "-o", program, FLASH, *rooms, *words],
           BUILD / "log/fuzz-flash.log")
    stamp.write_text(inputs)


def build() -> Path:
    """The fuzzers and the inputs that a program makes for them; returns their folder."""
    debian.ensure("build", "tool", "fuzz")
    with lock("fuzz"):
        _target()
        _flash(WORK / "target/fuzz", "clang", "-fsanitize=fuzzer")
    return WORK / "target/fuzz"


def build_replayers() -> Path:
    """The same programs without libFuzzer: each runs the inputs that it is given."""
    debian.ensure("build", "tool")
    with lock("fuzz"):
        _target("FUZZ_CC=gcc", f"FUZZ_MAIN={MAIN.relative_to(TARGET)}")
        _flash(WORK / "target/corpus", "gcc", MAIN)
    return WORK / "target/corpus"


def replay(name: str) -> subprocess.CompletedProcess[str]:
    """A fuzzer's kept and made inputs, once each; its last line on stderr is the one that it was at."""
    folder = build_replayers()
    inputs = [FUZZERS[name].kept, folder / "seeds" / name]
    return subprocess.run([folder / f"fuzz_{name}", *(path for path in inputs if path.exists())],
                          capture_output=True, text=True, timeout=1200)


def _start(fuzzer: Fuzzer, folder: Path, seconds: int, log: Path) -> "subprocess.Popen[bytes]":
    fuzzer.grown.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w") as f:
        return subprocess.Popen(
            [folder / f"fuzz_{fuzzer.name}", f"-max_total_time={seconds}", f"-max_len={LONGEST}",
             f"-timeout={PATIENCE}", f"-rss_limit_mb={MEMORY}", "-keep_seed=1", "-print_final_stats=1",
             f"-artifact_prefix={WORK}/found-{fuzzer.name}-",
             fuzzer.grown, *fuzzer.folders()], stdout=f, stderr=f, stdin=subprocess.DEVNULL, cwd=WORK)


def _outcome(name: str, status: int, log: Path) -> Outcome:
    text = log.read_text(errors="replace")
    seen = re.findall(r"^#\d+\s.* cov: (\d+) ft: \d+ corp: (\d+)", text, re.M)
    count = re.findall(r"^stat::number_of_executed_units: (\d+)", text, re.M) or re.findall(r"^#(\d+)\t", text, re.M)
    found = [Path(path) for path in re.findall(r"Test unit written to (\S+)", text)]
    if status and not found:
        found = [log]
    coverage, inputs = map(int, seen[-1]) if seen else (0, 0)
    said = "\n".join(re.findall(r"^(?:.*ERROR.*|SUMMARY.*|    #\d+ .*)$", text, re.M)[:12]) or text[-2000:]
    return Outcome(name, int(count[-1]) if count else 0, coverage, inputs, found, said if found else "")


def run(names: list[str], seconds: int, jobs: int) -> list[Outcome]:
    """Runs all of these fuzzers in the given seconds: each gets its share, and as many run at a time as `jobs`."""
    folder = build()
    share = max(1, seconds * jobs // len(names))
    waiting, running = list(names), dict[str, "subprocess.Popen[bytes]"]()
    outcomes: list[Outcome] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop(0)
                running[name] = _start(FUZZERS[name], folder, share, WORK / f"{name}.log")
            name, child = next(iter(running.items()))
            outcomes.append(_outcome(name, child.wait(), WORK / f"{name}.log"))
            del running[name]
            last = outcomes[-1]
            say(f"{name}: {last.executions} executions, coverage {last.coverage}, {len(last.reports)} reports")
    finally:
        for child in running.values():
            child.send_signal(signal.SIGKILL)
    return outcomes


def table(outcomes: list[Outcome]) -> str:
    """What the run came to, for people."""
    lines = [f"{'fuzzer':8}  {'feeds':34}  {'executions':>10}  {'coverage':>8}  {'inputs':>6}  reports"]
    lines += [f"{o.name:8}  {FUZZERS[o.name].what:34}  {o.executions:10}  {o.coverage:8}  {o.inputs:6}  "
              f"{len(o.reports):7}" for o in outcomes]
    return "\n".join(lines)


def keep(name: str, most: int) -> None:
    """Make the kept inputs anew: the fewest that reach what the known ones reach, the smallest first."""
    fuzzer, folder = FUZZERS[name], build()
    merged = WORK / "merged" / name
    output(["rm", "-rf", merged])
    merged.mkdir(parents=True)
    output([folder / f"fuzz_{name}", "-set_cover_merge=1", f"-max_len={LONGEST}", merged,
            *fuzzer.folders(), fuzzer.grown])
    fuzzer.kept.mkdir(parents=True, exist_ok=True)
    # What has a name of its own was put there by a person.
    for old in fuzzer.kept.iterdir():
        if re.fullmatch(r"[0-9a-f]{40}", old.name):
            old.unlink()
    left = most - sum(path.stat().st_size for path in fuzzer.kept.iterdir())
    for path in sorted(merged.iterdir(), key=lambda path: path.stat().st_size):
        left -= path.stat().st_size
        if left < 0:
            break
        (fuzzer.kept / path.name).write_bytes(path.read_bytes())


def _fuzz(args: argparse.Namespace) -> int:
    names = args.names or [*FUZZERS]
    if args.keep:
        for name in names:
            keep(name, args.keep << 10)
        return 0
    outcomes = run(names, args.seconds, min(args.jobs, len(names)))
    print(table(outcomes))
    bad = [o for o in outcomes if o.reports]
    for o in bad:
        print(f"\n{o.name}: {o.said}\nagain: {WORK}/target/fuzz/fuzz_{o.name} {o.reports[0]}")
    if bad:
        raise LabError(f"fuzz: {', '.join(o.name for o in bad)}")
    return 0


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`fuzz` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "fuzz", help="fuzz everything that reads media", description="Runs the fuzzers: "
        + "; ".join(f"{f.name}: {f.what}" for f in FUZZERS.values()) + ".")
    parser.add_argument("names", nargs="*", choices=[[], *FUZZERS], metavar="NAME", help="only these")
    parser.add_argument("--seconds", type=int, default=600, metavar="N",
                        help="time for all fuzzers together, without the build; default %(default)s")
    parser.add_argument("--jobs", type=int, default=cores(), metavar="N",
                        help="fuzzers side by side; default: a core each")
    parser.add_argument("--keep", type=int, default=0, metavar="KIB",
                        help="do not fuzz: select the fewest inputs that reach all known code, at most this many "
                        "KiB a fuzzer, and put them into the tree")
    parser.set_defaults(function=_fuzz)
