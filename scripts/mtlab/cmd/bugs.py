# SPDX-License-Identifier: GPL-2.0
"""Which general method finds each planted bug, how soon, and how small that gets: `scripts/lab bugs`.

The methods know nothing of the bugs. They are tried one after the other, the cheapest first, until one finds the bug
or a processor's time is used up. A finding counts only if the honest target passes with the same seed. Then it is
shrunk (shrink.py). If no method finds it, the row says so, and names the test that was written for it.

A row is kept in the file of --json with what was asked for. It is made anew if that, the target, the bug or the methods
have changed since.
"""

import argparse
import functools
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ..build import emulator, kernels, target
from ..util import pool
from ..util.base import LabError, digest, lock, output, say, write_file
from . import cuts, judge, shrink, torture

METHODS = {
    "model": "all states of small drives, with the module's admission (target/tests/model)",
    "judge": "cuts of the honest target's journal, judged with the bug in recovery",
    "drawn": "cuts of workloads that a seed draws, on the smallest drive",
    "lingering": "the same, while threads stand still at points that the seed draws",
    "faults": "the same, while writes fail as well, on a drive with zones to lose",
    "stalls": "cuts of torture's workload, while CPUs stand still now and then",
    "priorities": "the same, while CPUs go by priorities, of which two change in each period",
    "counters": "how often zones change their state in torture's workload, beside the honest target",
}
HISTORIES = 10              # of a boot
ROUNDS = 12                 # cuts that a guest makes itself, in torture's workload
CUTS = {"drawn": 4000, "lingering": 4000, "faults": 4000, "stalls": 1500, "priorities": 1500}   # judged of a boot
# The order of boots. After the last one it begins again.
ORDER = ("drawn",) * 2 + ("lingering", "lingering", "faults") * 3 + ("stalls", "priorities", "counters") * 2
COUNTED = 3                 # workloads on one machine
# A count of these is odd if it is more than so many times the honest target's, and so many more. On other schedules
# the honest target's own counts differ by a fifth (20 counts of each of four machines).
ODD = 1.5, 15
BUG_SECONDS = 200           # that it takes to find one and to shrink that
ADMISSION = "policy/admit.c"
MADE_OF = "bugs", "cuts", "history", "judge", "records", "shrink", "torture"       # files of this folder
Row = dict[str, Any]


@dataclass(frozen=True)
class Look:
    """What one try came to."""

    seconds: float          # of a processor
    cuts: int = 0
    says: str = ""          # nothing: it did not find the bug
    shown: shrink.Shown | None = None
    steps: int = 0          # of the checker's shortest way, which needs no shrinking


def _files(bug: str) -> set[str]:
    """Files of the module that a bug changes."""
    return set(re.findall(r"^\+\+\+ b/target/(\S+)$", (torture.BUGS / f"{bug}.patch").read_text(), re.M))


@functools.cache
def _recovered_by() -> set[str]:
    """Files of the module that the judge is made of."""
    printed = output(["make", "-s", "-n", "-B", "-C", target.SOURCE, "judge"])
    ours = {str(path.relative_to(target.SOURCE)) for path in target.module_sources()}
    return {name for name in ours if re.search(rf"[\s/]{re.escape(name)}\s", printed)}


def _sources(bug: str, module: Path) -> Path:
    """What the judge recovers with: the honest target, if the bug is elsewhere."""
    return module.parent if _files(bug) & _recovered_by() else target.SOURCE


def _worked(command: Sequence[str | Path], said: Path) -> tuple[bool, float]:
    """Did a command succeed, and a processor's seconds for it alone: other jobs have children, too."""
    with open(said, "w") as file:
        child = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return not child.returncode, usage.ru_utime + usage.ru_stime


def _model(bug: str, _args: argparse.Namespace) -> Look:
    """Does the checker say of admission with the bug that something is wrong?"""
    with tempfile.TemporaryDirectory(prefix=f"{bug}-", dir=judge.WORK) as folder:
        source, said = torture.patched_source(bug, Path(folder)), Path(folder) / "said"
        passes, seconds = _worked(["make", "-s", "-C", target.SOURCE, "model", f"OUT={folder}",
                                   f"ADMIT={source / ADMISSION}"], said)
        lines = said.read_text().splitlines()
    wrong = next((at for at, line in enumerate(lines) if line.startswith("wrong: ")), None)
    if passes or wrong is None:
        return Look(seconds)
    steps = sum(" | buffered " in line for line in lines[:wrong]) - 1
    return Look(seconds, says=lines[wrong], steps=steps)


def _run(method: str, args: argparse.Namespace) -> argparse.Namespace:
    """The options of a boot, as `lab cuts` has them."""
    drawn = method in ("drawn", "lingering", "faults")
    return argparse.Namespace(
        kernel=args.kernel, timeout=args.timeout, verbose=False, cuts=CUTS[method], states=16, sample=0, enumerate=0,
        draw=HISTORIES if drawn else 0, linger=method in ("lingering", "faults"), faults=method == "faults",
        rounds=0 if drawn else ROUNDS,
        cpus=0 if method == "stalls" else shrink.CPUS, schedule=_schedule(method),
        device=f"ms=0,{judge.drive(method == 'faults')}" if drawn else "ms=0")


def _schedule(method: str) -> int | None:
    """Changes of priorities in a period; nothing: CPUs stand still now and then."""
    return 2 if method == "priorities" else None


def _honest_journal(seed: int, run: argparse.Namespace) -> Path:
    """Of torture's workload, kept until the module or the workload changes. It is large, so only one is kept."""
    path = judge.WORK / f"honest/{cuts._inputs(seed, run)}"
    with lock("honest-journal"):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part")
            if (boot := judge.journal(seed, run, None, part)).status:
                raise LabError(f"seed {seed}: the guest fails without a planted bug\n{boot.report}")
            for old in path.parent.iterdir():
                if old != part:
                    old.unlink()
            part.rename(path)
    return path


@functools.cache
def _need_honest(seed: int, journal: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="honest-", dir=judge.WORK) as folder:
        verdict = judge.judged(judge.program(), seed, journal, Path(folder), CUTS["drawn"], 16)
    if verdict.report:
        raise LabError(f"seed {seed}: the target fails without a planted bug, too:\n{verdict.report}")


def _judge(bug: str, args: argparse.Namespace) -> Look:
    """Does the judge find something with the bug in its recovery?"""
    with tempfile.TemporaryDirectory(prefix=f"{bug}-", dir=judge.WORK) as folder:
        program = judge.program(torture.patched_source(bug, Path(folder)))
        run = _run("stalls", args)
        journal = _honest_journal(args.seed, run)
        _need_honest(args.seed, journal)
        verdict = judge.judged(program, args.seed, journal, Path(folder), CUTS["drawn"], 16)
        shown = cuts._shown(verdict.violations[0], journal, (), args.seed, run) if verdict.violations else None
    return Look(verdict.summary["processor"], int(verdict.summary["cuts"]), _first_line(verdict.report), shown)


def _first_line(report: str) -> str:
    return next((line for line in report.splitlines() if line.strip()), "")[:200]


def _boot(bug: str, method: str, seed: int, args: argparse.Namespace) -> Look:
    """One guest with the bug in its kernel, and the judge with the bug in its recovery."""
    run = _run(method, args)
    module = torture.buggy_module(bug, kernels.get(args.kernel))
    histories = cuts._histories(seed, run)
    with tempfile.TemporaryDirectory(prefix=f"{bug}-", dir=judge.WORK) as folder:
        place = Path(folder)
        boot = judge.journal(seed, run, module, place / "journal", histories)
        verdict = judge.judged(judge.program(_sources(bug, module)), seed, place / "journal", place, run.cuts,
                               run.states)
        look = Look(boot.worked + verdict.summary["processor"],
                    int(verdict.summary["cuts"]) + (0 if histories else boot.cuts))
        if not boot.status and not verdict.report:
            return look
        honest = cuts._boot(seed, run)
        if honest.report:
            raise LabError(f"seed {seed}, {method}: the target fails without a planted bug, too:\n{honest.report}")
        failed = judge.failed_in(boot, int(verdict.summary["workloads"])) if histories else []
        if verdict.violations:
            shown = cuts._shown(verdict.violations[0], place / "journal", histories, seed, run)
        elif failed:
            shown = shrink.Shown(seed, history=histories[failed[0]])
        else:
            shown = shrink.Shown(seed)
    return Look(look.seconds, look.cuts, _first_line(verdict.report) or judge.said(boot)[:200], shown)


def _counted(seed: int, number: int, args: argparse.Namespace, module: Path | None) -> torture.Boot:
    """A workload of torture on the machine of this seed, with counts."""
    run = argparse.Namespace(**vars(_run("stalls", args)) | {"check_every": 0, "clock": "virtual", "drives": 1})
    return torture.run_boot(seed, ROUNDS, run, module, workload=seed + 1000 * number, counted=True)


@functools.cache
def _honest_counts(seed: int, number: int, kernel: str, timeout: float) -> dict[str, int]:
    boot = _counted(seed, number, argparse.Namespace(kernel=kernel, timeout=timeout), None)
    if boot.status:
        raise LabError(f"seed {seed}, counters: the target fails without a planted bug, too:\n{boot.report}")
    return torture.zones_became(boot)


def odd(pairs: Sequence[tuple[Mapping[str, int], Mapping[str, int]]]) -> str:
    """A count that is far above the honest target's in all pairs together, in words; "": none."""
    times, more = ODD
    for name in sorted({name for found, _ in pairs for name in found}):
        both = [(found.get(name, 0), honest.get(name, 0)) for found, honest in pairs]
        if sum(found for found, _ in both) > times * sum(honest for _, honest in both) + more:
            return (f"zones went from {name} {', '.join(str(found) for found, _ in both)} times, "
                    f"without the bug {', '.join(str(honest) for _, honest in both)} times")
    return ""


def _counters(bug: str, seed: int, args: argparse.Namespace) -> Look:
    """Some bugs lose nothing: work is done in vain. Does a count of the target's work show it?"""
    module = torture.buggy_module(bug, kernels.get(args.kernel))
    cuts, seconds, pairs = 0, 0.0, []
    for number in range(COUNTED):
        honest = _honest_counts(seed, number, args.kernel, args.timeout)
        boot = _counted(seed, number, args, module)
        cuts, seconds = cuts + boot.cuts, seconds + boot.worked
        if boot.status:
            return Look(seconds, cuts, judge.said(boot)[:200])
        pairs.append((torture.zones_became(boot), honest))
    return Look(seconds, cuts, odd(pairs))


def _guest(bug: str, method: str, seed: int, args: argparse.Namespace) -> Look:
    """What needs a guest with the bug."""
    return _counters(bug, seed, args) if method == "counters" else _boot(bug, method, seed, args)


def _tries(bug: str, args: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Look]]]:
    """Methods and what to do, in this order; guests without an end."""
    if "model" in args.methods and ADMISSION in _files(bug):
        yield "model", functools.partial(_model, bug, args)
    if "judge" in args.methods and _files(bug) & _recovered_by():
        yield "judge", functools.partial(_judge, bug, args)
    seeds = dict.fromkeys(METHODS, args.seed)
    order = [method for method in ORDER if method in args.methods]
    while order:
        for method in order:
            yield method, functools.partial(_guest, bug, method, seeds[method], args)
            seeds[method] += 1


def _row(bug: str, args: argparse.Namespace) -> Row:
    """Look for one bug, and shrink what is found."""
    asked = _asked(args)
    row: Row = {"bug": bug, "asked": asked, "inputs": _inputs(bug, asked), "commit": torture.commit(), "method": "",
                "says": "", "cuts": 0, "seconds": 0.0, "tried": {}, "test": torture._test_of(bug), "shrunk": {}}
    shown = None
    for method, look_for in _tries(bug, args):
        if row["seconds"] >= args.seconds:
            return row
        look = look_for()
        tried = row["tried"].setdefault(method, {"times": 0, "cuts": 0, "seconds": 0.0})
        tried |= {"times": tried["times"] + 1, "cuts": tried["cuts"] + look.cuts,
                  "seconds": round(tried["seconds"] + look.seconds, 1)}
        row |= {"cuts": row["cuts"] + look.cuts, "seconds": round(row["seconds"] + look.seconds, 1)}
        if look.says:
            row |= {"method": method, "says": look.says, "shrunk": {"steps": look.steps} if look.steps else {}}
            shown = look.shown
            break
    if not shown or not args.shrink_seconds:
        return row
    module = torture.buggy_module(bug, kernels.get(args.kernel))
    bench = shrink.Bench(args.kernel, module, _sources(bug, module), args.seed, _schedule(row["method"]),
                         row["method"] == "faults")
    # Where threads stand still, drawn workloads show more of what a long run showed.
    shown = shrink.Shown(shown.seed, shown.steps, shown.history, linger=row["method"] != "drawn")
    case = shrink.shrink(bug, bench, shown, bug, args.shrink_seconds)
    return row | {"shrunk": case.numbers() if case else {"seconds": round(bench.worked, 1)}}


def _asked(args: argparse.Namespace) -> Row:
    """The options on which a row depends."""
    return {"kernel": kernels.get(args.kernel).release, "seed": args.seed, "methods": list(args.methods),
            "seconds": args.seconds, "shrink_seconds": args.shrink_seconds}


@functools.cache
def _methods() -> str:
    """A digest of what the methods are made of, besides the target."""
    tests = target.SOURCE / "tests"
    folders = torture.SOURCE, judge.SOURCE, tests / "model", tests / "kernel", emulator.OURS / "hw"
    return digest(*(Path(__file__).with_name(f"{name}.py") for name in MADE_OF), tests / "module.c",
                  *(path for folder in folders for path in sorted(folder.rglob("*.[ch]"))
                    if not path.name.endswith(".mod.c")))


def _inputs(bug: str, asked: Row) -> str:
    """A digest of all that a row is a function of."""
    return digest(*target.module_sources(), torture.BUGS / f"{bug}.patch", _methods(), json.dumps(asked))


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """For results/torture: all bugs, then what they come to."""
    lines = ["| bug | found by | cuts | seconds | operations | left | minutes |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        shrunk = row["shrunk"]
        left = f"{shrunk['steps']} steps" if "steps" in shrunk else shrunk.get("after", "")
        minutes = f" {shrunk['seconds'] / 60:.1f}" if "seconds" in shrunk else ""
        by = row["method"] or ("only its test" if row["test"] else "not found")
        lines.append(f"| {row['bug']} | {by} | {row['cuts']:,} | "
                     f"{row['seconds']:.0f} | {shrunk.get('before', '')} | {left} |{minutes} |")
    sizes = [row["shrunk"]["after"] for row in rows if "after" in row["shrunk"]]
    lines += ["", f"{sum(bool(row['method']) for row in rows)} of {len(rows)} were found by a general method"]
    if sizes:
        lines[-1] += f"; of {len(sizes)} that were shrunk the median is {median(sizes):g} operations"
    return "\n".join(lines)


def _kept(path: Path | None) -> dict[str, Row]:
    """Rows that still hold, each for what was asked for."""
    rows = json.loads(path.read_text())["bugs"] if path and path.exists() else []
    return {row["bug"]: row for row in rows if row["bug"] in torture.bug_names() and "asked" in row
            and row["inputs"] == _inputs(row["bug"], row["asked"])}


def _need_kernel(args: argparse.Namespace) -> None:
    """Can it do all methods?

    Debug kernels have neither kprobes to linger at nor histograms of events, and KCSAN waits for CPUs that are held.
    """
    cannot = {"kasan": ("lingering", "faults", "counters"),
              "kcsan": ("lingering", "faults", "priorities", "counters")}.get(args.kernel, ())
    if wrong := [name for name in args.methods if name in cannot]:
        raise LabError(f"--kernel {args.kernel}: it cannot do {', '.join(wrong)}, expected other --methods")


def bugs(args: argparse.Namespace) -> int:
    """Plant each bug and look for it, unless its row is kept."""
    names: Sequence[str] = args.bugs or torture.bug_names()
    if unknown := sorted(set(names) - set(torture.bug_names())):
        raise LabError(f"no planted bug {', '.join(unknown)}: there are {', '.join(torture.bug_names())}")
    _need_kernel(args)
    target.need_module(kernels.get(args.kernel))
    judge.WORK.mkdir(parents=True, exist_ok=True)
    rows = _kept(args.json)
    have = {name for name, row in rows.items() if row["asked"] == _asked(args)}

    def done(job: pool.Job[Row], future: "Future[Row]", left: str) -> None:
        row = rows[job.name] = future.result()
        say(f"{job.name}: {row['method'] or 'NOT FOUND'} after {row['cuts']} cuts, {row['seconds']} s"
            f"  {row['says']}, {row['shrunk'] or 'not shrunk'}; {left}")
        if args.json:
            write_file(args.json, json.dumps({
                "methods": METHODS, "bugs": [rows[name] for name in torture.bug_names() if name in rows],
            }, indent=1) + "\n")

    pool.side_by_side([pool.Job(name, functools.partial(_row, name, args), BUG_SECONDS) for name in names
                       if name not in have], args.jobs, done)
    print(table([rows[name] for name in torture.bug_names() if name in rows]))
    return 0 if all(rows[name]["method"] for name in names) else 1


def _several(text: str) -> list[str]:
    """The methods that are named."""
    names = text.split(",")
    if unknown := [name for name in names if name not in METHODS]:
        raise argparse.ArgumentTypeError(f"no method {', '.join(unknown)}: there are {', '.join(METHODS)}")
    return names


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`bugs` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "bugs", help="say which general method finds each planted bug, and make it small",
        description="Plants each bug, each in a target of its own, and tries one general method after the other until "
        "one finds it. What is found is shrunk to few operations. The same command goes on where it was ended.")
    parser.add_argument("bugs", nargs="*", metavar="BUG", help="of target/tests/torture/bugs; default: all")
    parser.add_argument("--methods", type=_several, default=[*METHODS], metavar="METHOD,...",
                        help=f"try only these, of {', '.join(METHODS)}; default: all")
    parser.add_argument("--seconds", type=float, default=600, metavar="S",
                        help="of a processor that may be used to find one; default %(default)s")
    parser.add_argument("--shrink-seconds", type=float, default=180, metavar="S",
                        help="of a processor after which what is found stays as small as it is; 0: only find bugs; "
                        "default %(default)s")
    parser.add_argument("--seed", type=int, default=1, metavar="S",
                        help="seed of the first boot, plus 1 for each further one; default %(default)s")
    parser.add_argument("--kernel", default=kernels.DEFAULT, metavar="6.12|6.1|current|kasan|kcsan|PATH",
                        help="kernel of the guests; default %(default)s")
    parser.add_argument("--timeout", type=float, default=3600, metavar="S",
                        help="seconds of the host's clock that one boot may take; default %(default)s")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="bugs side by side; default %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the rows there, as bugs end")
    parser.set_defaults(function=bugs)
