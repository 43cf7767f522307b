# SPDX-License-Identifier: GPL-2.0
"""The engine under scripts/experiments/: runs an experiment, checks it, keeps and draws its results.

An experiment is one file that defines EXPERIMENT, an Experiment: which guests to boot (runs), how to
turn what they bring out into flat samples (samples), what was predicted of those (checks), and how they
are shown (table, draw). It holds no numbers that were measured and draws nothing but its samples.
docs/results.md shows the smallest one; scaling.py is the model.

Results are a function of the inputs: nothing in them names the machine, the folder or the hour.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import accel, debian, emulator, guest, kernels, machine, target
from .base import BUILD, ROOT, LabError, output, say, write_file

FOLDER = ROOT / "scripts/experiments"
RESULTS = ROOT / "results"
SCHEMA = 1
CORES = os.cpu_count() or 1

Sample = dict[str, Any]                 # flat: names to numbers and short strings


@dataclass(frozen=True)
class Run:
    """One boot of a guest: a script for bash and what it needs; it writes files to be pulled."""

    name: str
    script: str
    options: machine.Options
    pull: Sequence[str] = ("*.json",)


@dataclass(frozen=True)
class Check:
    """One prediction, held against what was measured. A miss stays in the report, with its reason."""

    name: str
    measured: float
    low: float | None
    high: float | None
    why: str                    # why it was predicted
    analysis: str = ""          # why it is missed, where that was looked into; shown only then

    @property
    def passed(self) -> bool:
        return (self.low is None or self.measured >= self.low) and (self.high is None or self.measured <= self.high)

    @property
    def bound(self) -> str:
        if self.low is not None and self.high is not None:
            return f"{self.low:g} to {self.high:g}"
        return f">= {self.low:g}" if self.low is not None else f"<= {self.high:g}"


def at_least(name: str, measured: float, low: float, why: str, analysis: str = "") -> Check:
    return Check(name, measured, low, None, why, analysis)


def at_most(name: str, measured: float, high: float, why: str, analysis: str = "") -> Check:
    return Check(name, measured, None, high, why, analysis)


def within(name: str, measured: float, expected: float, share: float, why: str, analysis: str = "") -> Check:
    """Measured lies within a share (0.01: 1%) of what was expected."""
    return Check(name, measured, expected * (1 - share), expected * (1 + share), why, analysis)


@dataclass(frozen=True)
class Experiment:
    """What one file of scripts/experiments/ defines."""

    name: str
    title: str
    question: str                                           # what it wants to know, in a sentence or two
    runs: Callable[[bool], list[Run]]                       # True: the quick form, for tests and the demo
    samples: Callable[[Mapping[str, Mapping[str, bytes]]], list[Sample]]    # from run name -> pulled files
    checks: Callable[[list[Sample], bool], list[Check]]
    table: Callable[[list[Sample]], list[list[str]]]        # first row: the heads
    draw: Callable[[list[Sample], Path], None]              # writes PATH.svg and PATH.png
    caption: str = ""


@dataclass
class Results:
    """What an experiment left; the JSON file holds exactly these fields (docs/results.md)."""

    experiment: str
    title: str
    question: str
    caption: str
    quick: bool
    provenance: dict[str, Any]
    samples: list[Sample]
    checks: list[dict[str, Any]]
    table: list[list[str]]
    schema: int = SCHEMA

    def text(self) -> str:
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"

    @property
    def misses(self) -> list[dict[str, Any]]:
        return [c for c in self.checks if not c["pass"]]


def names() -> list[str]:
    return sorted(p.stem.replace("_", "-") for p in FOLDER.glob("[a-z]*.py"))


def load(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in names():
        raise LabError(f"no experiment '{name}': there are {', '.join(names())}")
    path = FOLDER / f"{name.replace('-', '_')}.py"
    spec = importlib.util.spec_from_file_location(f"experiments.{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.EXPERIMENT
    if not isinstance(found, Experiment) or found.name != name:
        raise LabError(f"{path}: EXPERIMENT is not an Experiment named {name}")
    return found


def _commit() -> str:
    """The last commit that changed what results depend on, marked when the work tree differs from it."""
    parts = ["target", "emulator", "scripts"]
    if not (ROOT / ".git").exists():
        return "none"
    commit = output(["git", "-C", ROOT, "log", "-1", "--format=%h", "--abbrev=12", "--", *parts]).strip()
    changed = output(["git", "-C", ROOT, "status", "--porcelain", "--", *parts]).strip()
    return commit + ("+changes" if changed else "")


def _provenance(runs: Sequence[Run], inputs: Mapping[str, str]) -> dict[str, Any]:
    release = {r.options.kernel: kernels.get(r.options.kernel).release for r in runs}
    fio = subprocess.run(["fio", "--version"], capture_output=True, text=True).stdout.strip()
    qemu = output([emulator.build(), "--version"]).splitlines()[0]
    settings = {r.name: {k: v for k, v in asdict(r.options).items() if k in
                         ("clock", "cpus", "memory", "quantum", "speed", "profile", "device")} for r in runs}
    scripts = {r.name: r.script for r in runs}
    return {"commit": _commit(), "emulator": re.sub(r" \(.*", "", qemu), "kernels": release, "fio": fio,
            "seed": machine.SEED, "settings": settings, "scripts": scripts, "inputs": dict(inputs)}


def _boot(run: Run, fresh: bool) -> machine.Result:
    virtual = run.options.clock == "virtual"
    kind = "tcg" if virtual else accel.choose()
    run.options.pull, run.options.recall = run.pull, virtual and not fresh
    result = machine.run(run.script, run.options, accel=kind)
    if result.failure or result.status:
        tail = "\n".join(result.output.splitlines()[-15:])
        raise LabError(f"run {run.name}: {result.failure or f'exit status {result.status}'}\n{tail}")
    return result


def _boot_all(runs: Sequence[Run], at_once: int, fresh: bool) -> dict[str, machine.Result]:
    """Boot all guests. In virtual time they do not disturb each other and may run side by side.

    A run in virtual time is a function of its inputs: one that ran before is not run again, unless all must be fresh.
    """
    _build_first(runs)
    side_by_side = at_once if all(r.options.clock == "virtual" for r in runs) else 1
    done: dict[str, machine.Result] = {}
    counted = threading.Lock()

    def one(run: Run) -> None:
        result = _boot(run, fresh)
        with counted:
            done[run.name] = result
            say(f"  {len(done)} of {len(runs)}: {run.name} ({result.seconds:.0f} s)")

    with concurrent.futures.ThreadPoolExecutor(side_by_side) as pool:
        waiting = [pool.submit(one, run) for run in runs]
        try:
            for future in concurrent.futures.as_completed(waiting):
                future.result()
        except BaseException:
            machine.stop_all()
            pool.shutdown(cancel_futures=True)
            raise
    return {run.name: done[run.name] for run in runs}


def _build_first(runs: Iterable[Run]) -> None:
    """Everything that is to be built is built once, before guests start side by side."""
    emulator.build()
    guest.base()
    guest.tools()
    for name in {r.options.kernel for r in runs}:
        guest.modules(kernels.get(name))
        target.module(kernels.get(name))
    target.tool()


def run(experiment: Experiment, quick: bool, at_once: int = CORES, fresh: bool = False) -> Results:
    """Boot the experiment's guests and judge what they brought out."""
    runs = experiment.runs(quick)
    say(f"{experiment.name}{' (quick)' if quick else ''}: {len(runs)} guests")
    booted = _boot_all(runs, at_once, fresh)
    samples = experiment.samples({name: result.files for name, result in booted.items()})
    return judge(experiment, quick, samples, _provenance(runs, {n: r.inputs for n, r in booted.items()}))


def judge(experiment: Experiment, quick: bool, samples: list[Sample], provenance: dict[str, Any]) -> Results:
    """Hold samples against the predictions."""
    checks = [{"name": c.name, "measured": c.measured, "bound": c.bound, "pass": c.passed, "why": c.why,
               **({"analysis": c.analysis} if c.analysis and not c.passed else {})}
              for c in experiment.checks(samples, quick)]
    return Results(experiment.name, experiment.title, experiment.question, experiment.caption, quick, provenance,
                   samples, checks, experiment.table(samples))


def _again(experiment: Experiment, folder: Path) -> Results:
    """Results that are there, judged anew: after a change of words, bounds or figures.

    Their samples are taken anew where what the guests brought out is kept, else they stay.
    """
    path = folder / "results.json"
    if not path.exists():
        raise LabError(f"{path}: there are no results to judge again")
    old = json.loads(path.read_text())
    kept = {name: machine.recall(inputs) for name, inputs in old["provenance"]["inputs"].items()}
    files = {name: result.files for name, result in kept.items() if result}
    samples = experiment.samples(files) if len(files) == len(kept) else old["samples"]
    return judge(experiment, old["quick"], samples, old["provenance"])


def keep(experiment: Experiment, results: Results, folder: Path) -> None:
    """Write results.json and the figures."""
    write_file(folder / "results.json", results.text())
    experiment.draw(results.samples, folder / "figure")


def format_table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def format_checks(checks: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(f"{'ok  ' if c['pass'] else 'MISS'} {c['name']}: {c['measured']:.4g}, bound {c['bound']}"
                     + ("" if c["pass"] else f" ({c['why']}; {c.get('analysis', 'no cause is known')})")
                     for c in checks)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What changed between two results: samples by place, checks by name. Provenance is not compared."""
    lines = []
    if len(old["samples"]) != len(new["samples"]):
        lines.append(f"samples: {len(old['samples'])} -> {len(new['samples'])}")
    for a, b in zip(old["samples"], new["samples"], strict=False):
        label = " ".join(f"{k}={v}" for k, v in b.items() if a.get(k) == v and not isinstance(v, float))
        for key in sorted({*a, *b}):
            if a.get(key) != b.get(key):
                change = ""
                if all(isinstance(x.get(key), int | float) and x[key] for x in (a, b)):
                    change = f" ({100 * (b[key] / a[key] - 1):+.2f}%)"
                lines.append(f"{label}: {key} {a.get(key)} -> {b.get(key)}{change}")
    before = {c["name"]: c for c in old["checks"]}
    for check in new["checks"]:
        was = before.get(check["name"])
        if was and was["pass"] != check["pass"]:
            lines.append(f"check {check['name']}: {'pass' if was['pass'] else 'miss'} -> "
                         f"{'pass' if check['pass'] else 'miss'}")
    return lines


def _exp(args: argparse.Namespace) -> int:
    debian.ensure("build", "emulator", "guest", "tool", "figures")
    misses, failed = 0, []
    for name in names() if args.all else args.names:
        experiment = load(name)
        folder = args.out / name if args.out else (BUILD / "quick" if args.quick else RESULTS) / name
        try:
            results = _again(experiment, folder) if args.again else run(experiment, args.quick, args.jobs, args.fresh)
        except LabError as e:               # the others' guests are not for nothing
            say(f"{name} failed: {e}")
            failed.append(name)
            continue
        keep(experiment, results, folder)
        print(f"{experiment.title}\n\n{format_table(results.table)}\n\n{format_checks(results.checks)}\n")
        say(f"{name}: {len(results.checks) - len(results.misses)} of {len(results.checks)} checks hold, in {folder}")
        misses += len(results.misses)
    if failed:
        raise LabError(f"failed: {', '.join(failed)}")
    return 1 if misses and args.strict else 0


def _demo(args: argparse.Namespace) -> int:
    debian.ensure("build", "emulator", "guest", "tool", "figures")
    experiment = load("scaling")
    say("fio on the emulated zoned device, in virtual time: single- against multi-threaded FTL")
    results = run(experiment, True)
    folder = BUILD / "demo"
    write_file(folder / "scaling.json", results.text())
    experiment.draw(results.samples, folder / "scaling")
    print(f"\n{experiment.title}\n\n{format_table(results.table)}\n\n{format_checks(results.checks)}\n\n"
          f"The figure is {folder}/scaling.svg and .png")
    return 0


def _diff(args: argparse.Namespace) -> int:
    """Compare results with those of a commit; exit status 1 if a number changed."""
    changed = False
    for name in args.names or [p.parent.name for p in sorted(RESULTS.glob("*/results.json"))]:
        new = RESULTS / name / "results.json"
        if not new.exists():
            raise LabError(f"no results of '{name}'; scripts/lab exp {name} makes them")
        old = output(["git", "-C", ROOT, "show", f"{args.against}:{new.relative_to(ROOT)}"])
        for line in differences(json.loads(old), json.loads(new.read_text())):
            changed = True
            print(f"{name}: {line}")
    return int(changed)


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`exp`, `demo` and `diff` on the command line of scripts/lab."""
    exp = commands.add_parser("exp", help="run experiments", description="Runs experiments and keeps their results and "
                              f"figures below results/. There are: {', '.join(names())}.")
    exp.add_argument("names", nargs="*", metavar="NAME")
    exp.add_argument("--all", action="store_true", help="all of them")
    exp.add_argument("--quick", action="store_true", help="a small form, below build/quick")
    exp.add_argument("--strict", action="store_true", help="exit status 1 when a check misses")
    exp.add_argument("--fresh", action="store_true",
                     help="boot all guests, also those whose inputs are those of an earlier run in virtual time")
    exp.add_argument("--again", action="store_true", help="judge and draw the results that are there, without guests")
    exp.add_argument("--jobs", type=int, default=CORES, metavar="N",
                     help="guests side by side; default: the host's cores")
    exp.add_argument("--out", type=Path, metavar="DIR", help="keep the results below this folder instead")
    exp.set_defaults(function=_exp)
    demo = commands.add_parser("demo", help="single- against multi-threaded FTL, in a few minutes")
    demo.set_defaults(function=_demo)
    diff = commands.add_parser("diff", help="which numbers a change moved")
    diff.add_argument("names", nargs="*", metavar="NAME")
    diff.add_argument("--against", default="HEAD", metavar="COMMIT")
    diff.set_defaults(function=_diff)
