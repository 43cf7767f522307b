# SPDX-License-Identifier: GPL-2.0
"""What of the module do the host's programs reach? `lab coverage`.

The unit tests and the fuzzers' kept inputs run once more, built by a clang that counts branches. For the files of
MCDC it also counts conditions that were shown to decide by themselves (MC/DC). Assertions do not count, because their
other branch is a fault of the program. REASONS has why a branch is never taken, by its file, its function and its
words, so that other changes leave it alone. What is left is a gap in the tests.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..build import debian, target
from ..util.base import BUILD, LabError, lock, output, say, write_file
from . import fuzz, hosttests, planted, torture

REASONS = Path(__file__).with_name("coverage-reasons.json")
WORK = BUILD / "coverage"
VERSION = 19                # of clang: the first that Debian has with MC/DC
# Recovery, the logs of superblocks and of map blocks, and the resets of a mount and of checkpoints.
MCDC = ("durable/recover.c", "durable/found.c", "durable/checkpoint.c", "durable/ckptlog.c", "durable/mapblocks.c",
        "format/maplog.c", "zone/super.c", "zone/scan.c", "zone/walk.c")
COUNTS = ("-O1", "-g0", "-w", "-fprofile-instr-generate", "-fcoverage-mapping", "-fcoverage-mcdc")
TIME = 600                  # seconds that a program may take

Reasons = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Gap:
    """What no program did: a branch to one side, or a condition that never decided by itself."""

    file: str
    line: int
    function: str
    what: str               # "true", "false" or "alone", and the words of the condition

    @property
    def name(self) -> str:
        return f"{self.function}() {self.what}"


@dataclass
class Count:
    """How much there is of a file, and how much of it was done."""

    branches: int = 0
    taken: int = 0
    conditions: int = 0
    alone: int = 0


def build(program: hosttests.Program, folder: Path) -> Path:
    """A program of the host that counts."""
    plain = program.name not in hosttests.NEVER_PLAIN
    words = [word for word in program.compile if not word.startswith(("-O", *(hosttests.SANITIZERS if plain else ())))]
    built = folder / program.name
    output([f"clang-{VERSION}", *words, *COUNTS, "-o", built, *program.sources, *program.link], cwd=target.SOURCE)
    return built


def run(program: hosttests.Program, built: Path, profile: Path) -> None:
    """Run it; it must find nothing."""
    done = subprocess.run([built, *program.arguments], cwd=target.SOURCE, timeout=TIME, capture_output=True, text=True,
                          env=os.environ | {"LLVM_PROFILE_FILE": str(profile)})
    if done.returncode:
        raise LabError(f"{program.name}: {(done.stdout + done.stderr)[-500:]}")


def measure(programs: list[hosttests.Program]) -> dict[str, object]:
    """What llvm-cov exports of all of them together."""
    built, profiles = [], []
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="coverage-", dir=WORK) as name:
        folder = Path(name)
        for program in programs:
            say(f"counting branches in {program.name}")
            built.append(build(program, folder))
            profiles.append(folder / f"{program.name}.raw")
            run(program, built[-1], profiles[-1])
        merged = folder / "merged"
        output([f"llvm-profdata-{VERSION}", "merge", "-sparse", "-o", merged, *profiles])
        text = output([f"llvm-cov-{VERSION}", "export", f"-instr-profile={merged}", built[0],
                       *(word for path in built[1:] for word in ("-object", str(path)))])
    exported: dict[str, object] = json.loads(text)["data"][0]
    return exported


def _words(lines: list[str], place: list[int]) -> str:
    """The condition that begins and ends at a place: lines and columns from 1 on."""
    first, begin, last, end = place[:4]
    found = lines[first - 1:last]
    found[-1] = found[-1][:end - 1]
    found[0] = found[0][begin - 1:]
    return " ".join(" ".join(found).split())


def _functions(text: str) -> list[tuple[int, str]]:
    """Where functions begin: lines and names."""
    bare = planted.blank(text)
    return [(bare.count("\n", 0, begin), name) for name, begin, _ in planted.functions(bare)]


def _asserted(text: str) -> set[int]:
    """Lines of assertions."""
    bare = planted.blank(text)
    lines: set[int] = set()
    for found in re.finditer(r"mtftl_assert\(", bare):
        end = planted.closing(bare, found.end() - 1)
        lines.update(range(bare.count("\n", 0, found.start()) + 1, bare.count("\n", 0, end) + 2))
    return lines


def look(file: str, text: str, counted: dict[str, list[list[int]]], mcdc: bool) -> tuple[Count, list[Gap]]:
    """What was done of a file, as llvm-cov has it, and what was not."""
    count, gaps, lines, functions, asserted = Count(), [], text.split("\n"), _functions(text), _asserted(text)

    def gap(place: list[int], what: str) -> Gap:
        name = [name for line, name in functions if line <= place[0]][-1]
        return Gap(file, place[0], name, f"{what}: {_words(lines, place)}")

    sides: dict[tuple[int, ...], list[int]] = {}
    for branch in counted["branches"]:
        if branch[0] not in asserted:
            side = sides.setdefault(tuple(branch[:4]), [0, 0])
            side[0] += branch[4]
            side[1] += branch[5]
    for place, side in sides.items():
        count.branches += 2
        count.taken += sum(map(bool, side))
        gaps += [gap([*place], what) for what, times in zip(("true", "false"), side, strict=True) if not times]
    for record in counted["mcdc_records"] if mcdc else []:
        shown: list[bool] = record[-1]      # type: ignore[assignment]
        if record[0] in asserted:
            continue
        # The conditions of a decision are its branches, from left to right.
        inside = sorted(place for place in sides if tuple(record[:2]) <= place[:2] and place[2:] <= tuple(record[2:4]))
        count.conditions += len(shown)
        count.alone += sum(shown)
        gaps += [gap([*place], "alone") for place, done in zip(inside, shown, strict=False) if not done]
    return count, gaps


def reasons() -> Reasons:
    """Why something is never done: by file, and by the gap's name."""
    return dict(json.loads(REASONS.read_text()))


def needless(gaps: list[Gap], why: Reasons) -> list[str]:
    """Reasons of what is done, or is not there any more."""
    there = {(gap.file, gap.name) for gap in gaps}
    return [f"target/{file} {name}" for file, names in why.items() for name in names if (file, name) not in there]


def summary(counts: dict[str, Count], gaps: list[Gap], why: Reasons) -> dict[str, object]:
    """Numbers by file, and what was not done."""
    return {
        "commit": torture.commit(),
        "files": {file: vars(count) for file, count in sorted(counts.items())},
        "gaps": [{"place": f"target/{gap.file}:{gap.line}", "gap": gap.name,
                  "why": why.get(gap.file, {}).get(gap.name, "")}
                 for gap in sorted(gaps, key=lambda gap: (gap.file, gap.line, gap.what))],
    }


def table(result: dict[str, object]) -> str:
    """A row for each file, as Markdown."""
    files: dict[str, dict[str, int]] = result["files"]      # type: ignore[assignment]
    gaps: list[dict[str, str]] = result["gaps"]             # type: ignore[assignment]
    rows = ["| | branches | taken | | conditions | decided alone | | with a reason | open |", "|---" * 9 + "|"]

    def row(name: str, of: dict[str, int], open_: list[dict[str, str]]) -> str:
        parts = [of["branches"], of["taken"], _percent(of["taken"], of["branches"]), of["conditions"] or "",
                 of["alone"] if of["conditions"] else "", _percent(of["alone"], of["conditions"]),
                 sum(bool(gap["why"]) for gap in open_), sum(not gap["why"] for gap in open_)]
        return "| " + " | ".join([name, *map(str, parts)]) + " |"

    for file, of in files.items():
        rows.append(row(file, of, [gap for gap in gaps if gap["place"].startswith(f"target/{file}:")]))
    total = {key: sum(of[key] for of in files.values()) for key in vars(Count())}
    return "\n".join([*rows, row("all", total, gaps)])


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else ""


def _coverage(args: argparse.Namespace) -> int:
    debian.ensure("build", "tool", "test", "coverage")
    fuzz.build_replayers()
    programs = [program for program in hosttests.programs()
                if program.group in ("test", "corpus") and not program.name.endswith(hosttests.PLAIN)]
    with lock("coverage"):
        exported = measure(programs)
    counts: dict[str, Count] = {}
    gaps: list[Gap] = []
    for of in exported["files"]:                # type: ignore[attr-defined]
        path = (target.SOURCE / of["filename"]).resolve()
        file = str(path.relative_to(target.SOURCE)) if path.is_relative_to(target.SOURCE) else ""
        if file in hosttests.files():
            counts[file], found = look(file, path.read_text(), of, file in MCDC)
            gaps += found
    result = summary(counts, gaps, reasons())
    if args.json:
        write_file(args.json, json.dumps(result, indent=1) + "\n")
    print(table(result))
    left = [gap for gap in result["gaps"] if not gap["why"]]        # type: ignore[attr-defined]
    for gap in left:
        print(f"not done: {gap['place']} {gap['gap']}")
    done = needless(gaps, reasons())
    for name in done:
        print(f"needs no reason: {name}")
    return 1 if args.strict and (left or done) else 0


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`coverage` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "coverage", help="count branches of the target that the tests on the host take",
        description="Builds the host's tests with clang, which counts branches and, for recovery and the logs, the "
        "conditions that decided by themselves (MC/DC). Prints a row for each file, and what was not done. It takes "
        "a minute or two.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result")
    parser.add_argument("--strict", action="store_true",
                        help="fail if anything without a reason was not done, or if a reason is not needed")
    parser.set_defaults(function=_coverage)
