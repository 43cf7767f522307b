# SPDX-License-Identifier: GPL-2.0
"""The judge of power cuts (target/tests/cuts) and the journals that it goes through, for `lab cuts` and shrink.py."""

import argparse
import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..build import emulator, kernels, target
from ..build.parts import part
from ..util.base import BUILD, LabError, digest, lock, output, write_file
from . import records, torture
from .history import LINGER, History

SOURCE = target.SOURCE / "tests/cuts"
WORK = BUILD / "cuts"
# The smallest drive that format takes, of zones that hold two program units on each die.
SMALLEST = ("flash.size=576K,zoned.zone_size=64K,zoned.zone_capacity=64K,zoned.max_open=0,zoned.max_active=0,"
            "flash.channels=1,flash.dies=2,flash.planes=1,flash.page=16K,flash.program_pages=1,flash.block_pages=2,"
            "flash.buffer=256K,ms=0")
# With zones to lose: on the smallest drive a write that fails may take the last one, and then others fail, too.
SPARED = SMALLEST.replace("flash.size=576K", "flash.size=832K")
MOST = 8000                 # characters of a report


@part
def program(module: Path = target.SOURCE) -> Path:
    """The program that judges, with the recovery of these sources of the module."""
    sources = [*sorted(SOURCE.glob("*.[ch]")), *sorted(torture.SOURCE.glob("*.[ch]")), target.SOURCE / "Makefile",
               target.SOURCE / "tests/module.c", *sorted((target.SOURCE / "tests/kernel").rglob("*.h")),
               *sorted((emulator.OURS / "hw/nvme/flash/model").glob("*.[ch]")),
               *(path for path in sorted(module.rglob("*.[ch]")) if "tests" not in path.relative_to(module).parts
                 and not path.name.endswith(".mod.c"))]
    binary = WORK / f"judge-{digest(*sources)}/judge"
    with lock("judge"):
        if not binary.exists():
            output(["make", "-s", "-C", target.SOURCE, "judge", f"OUT={binary.parent}", f"MODULE={module}"])
    return binary


def journal(seed: int, args: argparse.Namespace, module: Path | None, path: Path,
            histories: Sequence[History] = ()) -> torture.Boot:
    """One guest that runs its workload, or these histories, and the journal that it leaves."""
    device = ",".join(filter(None, [args.device, f"flash.journal={path}"]))
    asked = argparse.Namespace(**vars(args) | {"device": device, "check_every": 0, "clock": "virtual", "drives": 1})
    if not histories:
        return torture.run_boot(seed, args.rounds, asked, module, mode="-j")
    listed = path.with_name("histories")
    write_file(listed, "".join(map(str, histories)))
    lingers = [torture.linger_module(kernels.get(args.kernel))] if any(one.lingers for one in histories) else []
    return torture.run_boot(seed, 0, asked, module, mode=f"-j -l {listed.name}", push=[listed, *lingers])


def drive(faults: bool) -> str:
    """The properties of the drive on which histories run, if writes fail in some of them, or in none."""
    return SPARED if faults else SMALLEST


@dataclass(frozen=True)
class Violation:
    """A cut after which a block is not as it was promised."""

    says: str                   # the first line
    text: str                   # all lines, with the block's history
    place: int                  # in the journal
    state: int                  # of those that a cut may leave there
    choices: int                # that lead to this state
    workload: int | None


@dataclass(frozen=True)
class Verdict:
    """What the judge says of a journal."""

    summary: dict[str, float]
    violations: list[Violation]
    report: str                 # all that it found wrong; empty: nothing


def said(boot: torture.Boot) -> str:
    """What a guest found wrong, in one line."""
    lines = [line for line in boot.report.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith(("VIOLATION", "HANG"))), [*lines, "no report"][0])


def failed_in(boot: torture.Boot, begun: int) -> list[int]:
    """The histories in which a guest itself found something wrong; the last one begun if that ended the guest."""
    found = [int(number) for number in re.findall(r"^in workload (\d+)$", boot.output, re.M)]
    if boot.status and begun and "workloads" not in boot.summary:
        found.append(begun - 1)
    return sorted(set(found))


_IN = re.compile(r"^in (\d+):(\d+), \d+ blocks, (\d+) choices(?:, workload (\d+))?$")


def _violations(lines: Sequence[str]) -> list[Violation]:
    found: list[Violation] = []
    text: list[str] = []
    for line in lines:
        if place := _IN.match(line):
            first = next((said for said in text if said.startswith("VIOLATION")), "")
            found.append(Violation(first, "\n".join(text), int(place[1]), int(place[2]), int(place[3]),
                                   int(place[4]) if place[4] else None))
            text = []
        else:
            text.append(line)
    return found


def judged(binary: Path, seed: int, journal: Path, place: Path, cuts: int, states: int,
           more: Sequence[str | Path] = ()) -> Verdict:
    """Judge the cuts of a journal, or so many of them; `more` are options."""
    done = subprocess.run([binary, "-s", str(seed), "-n", str(cuts), "-m", str(states), *more, place / "image",
                           journal], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if done.returncode not in (0, 1) or not lines or not lines[-1].startswith("{"):
        raise LabError(f"seed {seed}: the judge gave no verdict\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    report = "\n".join([*lines[:-1], *done.stderr.splitlines()[:20]])[:MOST] if done.returncode else ""
    return Verdict(json.loads(lines[-1]), _violations(lines[:-1]), report)


def steps_begun(journal: Path, violation: Violation, history: History) -> int:
    """How many steps of a history had begun before a violation's cut, with all that begin together with the last."""
    begun, inside = 0, False
    for note in records.notes(journal, violation.place):
        if note.kind == records.NOTE_WORKLOAD:
            inside, begun = note.block == violation.workload, 0
        elif inside and note.kind in records.BEGINS:
            begun += 1
    silent = "rest", "cut", "fault", "read"     # of which there are no notes
    last = 0
    for last, step in enumerate(history.steps, start=1):
        begun -= step.name not in silent and not step.name.startswith(LINGER)
        if begun < 0:
            last -= 1
            break
    while 0 < last < len(history.steps) and history.steps[last - 1].together:
        last += 1
    return last
