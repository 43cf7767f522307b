# SPDX-License-Identifier: GPL-2.0
"""How many schedules it takes to meet a planted race: `scripts/lab schedules`.

For each planted bug boots of torture's workload run, with one seed after the other, until one finds it. They do so
with each kind of schedule: CPUs that stand still now and then, as torture has them, and CPUs that go by priorities, 0
to 3 of which change in each period. The number of boots is the result.
"""

import argparse
import functools
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from ..build import kernels, target
from ..util import pool
from ..util.base import LabError, say, write_file
from . import shrink, torture

# None: CPUs stand still now and then.
KINDS = None, 0, 1, 2, 3
BUG_SECONDS = 300           # that all kinds take to find one
Row = dict[str, Any]


def kind_name(kind: int | None) -> str:
    """For tables and figures."""
    if kind is None:
        return "stalls"
    return "priorities" + ("" if not kind else ", 1 change" if kind == 1 else f", {kind} changes")


def _boot(seed: int, kind: int | None, args: argparse.Namespace, module: Path | None) -> torture.Boot:
    return torture.run_boot(seed, args.cuts, argparse.Namespace(**vars(args) | {"schedule": kind}), module)


def _found(bug: str, kind: int | None, args: argparse.Namespace, module: Path) -> Row:
    """Boots until one finds the bug. That counts if the same boot of the honest target finds nothing."""
    cuts, seconds = 0, 0.0
    row: Row = {"bug": bug, "schedule": kind, "seeds": 0, "found": False, "by": ""}
    for seed in range(args.seed, args.seed + args.seeds):
        boot = _boot(seed, kind, args, module)
        cuts, seconds = cuts + boot.cuts, seconds + boot.worked
        row |= {"seeds": row["seeds"] + 1, "cuts": cuts, "processor_seconds": round(seconds, 1)}
        if not boot.status:
            continue
        honest = _boot(seed, kind, args, None)
        if honest.status:
            raise LabError(f"seed {seed}, {kind_name(kind)}: the target fails without a planted bug, too:\n"
                           f"{honest.report}")
        said = [line for line in boot.report.splitlines() if line.strip()]
        found = next((line for line in said if line.startswith(("VIOLATION", "HANG"))), [*said, "no report"][0])
        return row | {"found": True, "by": found[:200]}
    return row


def _all_kinds(bug: str, args: argparse.Namespace) -> list[Row]:
    module = torture.buggy_module(bug, kernels.get(args.kernel))
    rows = []
    for kind in KINDS:
        rows.append(row := _found(bug, kind, args, module))
        found = "found" if row["found"] else "NOT FOUND"
        say(f"{bug}, {kind_name(kind)}: {found} by {row['seeds']} boots  {row['by']}")
    return rows


def draw(result: Mapping[str, Any], path: Path) -> None:
    """Bugs and kinds of schedules: how many seeds were needed."""
    from ..exp import figures
    bugs = list(dict.fromkeys(row["bug"] for row in result["rows"]))
    cells = []
    for bug in bugs:
        of = {row["schedule"]: row for row in result["rows"] if row["bug"] == bug}
        cells.append([(min(2, of[kind]["seeds"] - 1) if of[kind]["found"] else 3,
                       f"{'' if of[kind]['found'] else 'not '}in {of[kind]['seeds']}, {of[kind]['cuts']} cuts")
                      for kind in KINDS])
    drawing, (axes,) = figures.panels(1, width=figures.PAGE, height=0.35 * len(bugs) + 0.8)
    figures.grades(axes, [kind_name(kind) for kind in KINDS], bugs, cells)
    figures.save(drawing, path)


def schedules(args: argparse.Namespace) -> int:
    """Look for each bug with each kind of schedule."""
    names: Sequence[str] = args.bugs
    if unknown := sorted(set(names) - set(torture.bug_names())):
        raise LabError(f"no planted bug {', '.join(unknown)}: there are {', '.join(torture.bug_names())}")
    target.need_module(kernels.get(args.kernel))
    rows: dict[str, list[Row]] = {}

    def done(job: pool.Job[list[Row]], future: "Future[list[Row]]", left: str) -> None:
        rows[job.name] = future.result()
        result = {"seed": args.seed, "seeds": args.seeds, "cuts": args.cuts, "cpus": args.cpus,
                  "kernel": kernels.get(args.kernel).release, "commit": torture.commit(),
                  "rows": [row for name in names for row in rows.get(name, [])]}
        say(f"{job.name}: {sum(row['found'] for row in rows[job.name])} of {len(KINDS)} kinds found it; {left}")
        if args.json:
            write_file(args.json, json.dumps(result, indent=1) + "\n")
            draw(result, args.json.with_suffix(""))

    pool.side_by_side([pool.Job(name, functools.partial(_all_kinds, name, args), BUG_SECONDS) for name in names],
                      args.jobs, done)
    found = sum(any(row["found"] for row in rows[name]) for name in names)
    print(f"{found} of {len(names)} planted bugs found")
    return 0


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`schedules` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "schedules", help="count how many schedules it takes to meet a planted race",
        description="Plants each bug, and runs boots of torture's workload until one finds it: with CPUs that stand "
        "still now and then, and with CPUs that go by priorities, of which 0 to 3 change in each period.")
    parser.add_argument("bugs", nargs="+", metavar="BUG", help="of target/tests/torture/bugs")
    parser.add_argument("--seeds", type=int, default=8, metavar="N",
                        help="boots of each kind at most; default %(default)s")
    parser.add_argument("--cuts", type=int, default=25, metavar="N",
                        help="power cuts of each boot; default %(default)s")
    parser.add_argument("--seed", type=int, default=1, metavar="S",
                        help="seed of the first boot, plus 1 for each further one; default %(default)s")
    parser.add_argument("--cpus", type=int, default=shrink.CPUS, metavar="N",
                        help="processors of each guest; default %(default)s")
    parser.add_argument("--kernel", default=kernels.DEFAULT, metavar="6.12|6.1|current|kasan|PATH",
                        help="kernel of the guests; default %(default)s")
    parser.add_argument("--timeout", type=float, default=3600, metavar="S",
                        help="seconds of the host's clock that one boot may take; default %(default)s")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="bugs side by side; default %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE",
                        help="write the result, bug by bug, and a figure beside it")
    # Bugs are planted in what reads headers.
    parser.set_defaults(function=schedules, clock="virtual", drives=1, device="ms=0", check_every=0, verbose=False)
