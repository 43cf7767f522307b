# SPDX-License-Identifier: GPL-2.0
"""Do the host's programs notice a wrong program? `lab mutants --host`.

All bugs of planted.py in the module's files that a host program runs, or as many as are asked for, in an order that a
seed draws. hosttests.py says what noticed each. What it said is kept by the text of the file and the bug's name, so a
campaign goes on where it was ended. A bug that was noticed stays noticed while the file is the same; one that was not
is tried again if any test has changed.

If nothing notices a bug, the compiler may make the same code of it. Otherwise somebody has to read it: EQUIVALENT has
why it does no harm, by its name. What is left is a gap in the tests.
"""

import argparse
import functools
import json
import queue
import tempfile
import time
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path

from ..build import kernels, target
from ..util import pool
from ..util.base import BUILD, LabError, digest, lock, say, write_file
from . import hosttests, judge, torture
from .planted import Planted, plants

EQUIVALENT = Path(__file__).with_name("mutants-equivalent.json")
KEPT = hosttests.WORK / "kept"
SECONDS = 3                 # that a bug takes
CUTS = "+cuts"              # behind the tests' digest, if power cuts were judged too
JOURNAL_SEEDS = 1, 2        # of the boots whose cuts are judged
# What ended a bug, in the order of a table's columns; the last three noticed nothing.
KILLERS = {
    "compiler": "compiler", "assertion": "assertion", "sanitizer": "sanitizer", "test": "unit test", "model": "model",
    "corpus": "kept input", "cuts": "power cut", "hang": "hang", "same code": "same code", "equivalent": "equivalent",
    "": "nothing",
}
NOTICED = [by for by in KILLERS if by not in ("same code", "equivalent", "")]

Row = dict[str, str]        # a verdict, the bug's name, and a digest of the tests


def journals() -> tuple[Path, ...]:
    """Journals of guests with the honest module, kept until the module or the workload changes."""
    kernel = kernels.get(kernels.DEFAULT)
    key = digest(kernel.key, target.module(kernel, asserts=True) or "", torture.program(), hosttests.inputs())
    made = []
    args = argparse.Namespace(device="", rounds=4, cpus=0, kernel=kernels.DEFAULT, timeout=3600, verbose=False,
                              schedule=None)
    for seed in JOURNAL_SEEDS:
        path = BUILD / f"mutants/journals/{key}-{seed}"
        with lock(f"journal-{seed}"):
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                part = path.with_suffix(".part")
                boot = judge.journal(seed, args, None, part)
                if boot.status:
                    raise LabError(f"seed {seed}: the guest fails without a planted bug\n{boot.report}")
                part.rename(path)
        made.append(path)
    return tuple(made)


def reasons() -> dict[str, dict[str, str]]:
    """Why bugs do no harm: by file and name."""
    return dict(json.loads(EQUIVALENT.read_text()))


@functools.cache
def text_of(file: str) -> str:
    """A file of the module."""
    return (target.SOURCE / file).read_text()


def choose(files: list[str], count: int, seed: int) -> list[Planted]:
    """Bugs of these files, in the order that a seed draws; 0: all."""
    every = [bug for file in files for bug in plants(file, text_of(file))]
    # What is drawn stays drawn when other code changes.
    return sorted(every, key=lambda bug: digest(str(seed), bug.file, bug.name))[:count or None]


def _kept(bug: Planted) -> Path:
    return KEPT / digest(text_of(bug.file)) / f"{digest(bug.name)}.json"


def known(bug: Planted, inputs: str) -> Row | None:
    """What is kept of a bug, if it still counts."""
    path = _kept(bug)
    if not path.exists():
        return None
    row: Row = json.loads(path.read_text())
    return row if row["by"] in (*NOTICED, "same code") or row["inputs"] == inputs else None


def _try(bug: Planted, bench: hosttests.Bench, folders: "queue.Queue[Path]", inputs: str, until: float) -> Row | None:
    if time.monotonic() > until:
        return None
    folder, text = folders.get(), text_of(bug.file)
    tests = inputs.removesuffix(CUTS)
    try:
        # All but the judge may have run before.
        left = bench.only("cuts") if tests != inputs and known(bug, tests) else bench
        verdict = hosttests.judge(left, bug, text, folder)
        if not verdict.by and left is bench and hosttests.same_code(bug, text, folder):
            verdict = hosttests.Verdict("same code", "", "")
    finally:
        folders.put(folder)
    return keep(bug, verdict, inputs)


def keep(bug: Planted, verdict: hosttests.Verdict, inputs: str) -> Row:
    """Keep what noticed a bug, and what the tests were."""
    row = asdict(verdict) | {"inputs": inputs, "name": bug.name}
    write_file(_kept(bug), json.dumps(row) + "\n")
    return row


def _by(bug: Planted, row: Row, why: dict[str, dict[str, str]]) -> str:
    return "equivalent" if not row["by"] and bug.name in why.get(bug.file, {}) else row["by"]


def summary(bugs: list[tuple[Planted, Row]], every: int, seed: int) -> dict[str, object]:
    """Numbers by file, kind and killer, and what nothing noticed."""
    why = reasons()
    rows = [(bug, _by(bug, row, why)) for bug, row in sorted(bugs, key=lambda r: (r[0].file, r[0].begin, r[0].name))]

    def count(what: str) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for bug, by in rows:
            of = found.setdefault(getattr(bug, what), {})
            of[by or "nothing"] = of.get(by or "nothing", 0) + 1
        return {name: {by: found[name][by] for by in [*KILLERS, "nothing"] if by in found[name]}
                for name in sorted(found)}

    return {
        "commit": torture.commit(), "choice": seed, "planted": len(rows), "of": every,
        "noticed": sum(by in NOTICED for _, by in rows), "files": count("file"), "kinds": count("kind"),
        "unnoticed": [{"place": f"target/{bug.file}:{bug.line}", "bug": bug.name,
                       "why": why[bug.file][bug.name] if by else ""}
                      for bug, by in rows if by in ("", "equivalent")],
    }


def table(found: dict[str, dict[str, int]]) -> str:
    """Rows of files or kinds, a column for each killer, as Markdown."""
    columns = [by or "nothing" for by in KILLERS if any((by or "nothing") in row for row in found.values())]
    names = {by or "nothing": name for by, name in KILLERS.items()}

    def line(name: str, of: dict[str, int]) -> str:
        return "| " + " | ".join([name, str(sum(of.values())), *(str(of.get(by, "")) for by in columns)]) + " |"

    total = {by: sum(row.get(by, 0) for row in found.values()) for by in columns}
    return "\n".join(["| | bugs | " + " | ".join(names[by] for by in columns) + " |", "|---" * (len(columns) + 2) + "|",
                      *(line(name, row) for name, row in found.items()), line("all", total)])


def run(args: argparse.Namespace) -> int:
    """Plant bugs, and print and keep what noticed them."""
    files = args.files or hosttests.files()
    unknown = set(files) - set(hosttests.files())
    if unknown:
        raise LabError(f"no host program uses {', '.join(sorted(unknown))}, expected {' '.join(hosttests.files())}")
    every, bugs = choose(files, 0, args.choice), choose(files, args.count or 0, args.choice)
    if args.list:
        for bug in bugs:
            print(f"target/{bug.file}:{bug.line} {bug.name}")
        return 0
    inputs = hosttests.inputs() + ("" if args.without_cuts else CUTS)
    rows = {bug: row for bug in bugs if (row := known(bug, inputs))}
    if len(rows) < len(bugs):
        _work([bug for bug in bugs if bug not in rows], rows, inputs, args)
    result = summary([(bug, rows[bug]) for bug in bugs if bug in rows], len(every), args.choice)
    if args.json:
        write_file(args.json, json.dumps(result, indent=1) + "\n")
    for part in ("files", "kinds"):
        print(table(result[part]))      # type: ignore[arg-type]
    for one in result["unnoticed"]:     # type: ignore[attr-defined]
        if not one["why"]:
            print(f"unnoticed: {one['place']} {one['bug']}")
    print(f"{result['planted']} bugs of {result['of']}, {result['noticed']} noticed")
    return 0


def _work(bugs: list[Planted], rows: dict[Planted, Row], inputs: str, args: argparse.Namespace) -> None:
    """Try bugs, and add what came out to rows."""
    bench = hosttests.bench(() if args.without_cuts else journals())
    until = time.monotonic() + args.seconds if args.seconds else float("inf")
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        folders: queue.Queue[Path] = queue.Queue()
        for number in range(args.jobs):
            (Path(place) / str(number)).mkdir()
            folders.put(Path(place) / str(number))

        def done(job: pool.Job[Row | None], future: "Future[Row | None]", left: str) -> None:
            bug, row = bugs[int(job.name)], future.result()
            if row:
                rows[bug] = row
                say(f"target/{bug.file}:{bug.line} {bug.name}: {row['by'] or 'NOTHING'} {row['program']}; {left}")

        pool.side_by_side([pool.Job(str(number), functools.partial(_try, bug, bench, folders, inputs, until), SECONDS)
                           for number, bug in enumerate(bugs)], args.jobs, done)
