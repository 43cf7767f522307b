# SPDX-License-Identifier: GPL-2.0
"""The engine under scripts/experiments/: runs an experiment, checks it, keeps and draws its results.

An experiment is one file that defines EXPERIMENT, an Experiment: which guests to boot (runs), how to
turn what they bring out into flat samples (samples), what was predicted of those (checks), and how they
are shown (table, draw). It holds no numbers that were measured and draws nothing but its samples.
docs/results.md shows the smallest one; scaling.py is the model.

One run that repeats to the bit is still one sample. A run with `seeds=5` is taken five times, each time a little
different by nothing that is meant (seeded()); results then hold the median of what was measured, beside it the
least and the most under NAME_least and NAME_most, and checks judge the median.

Results are a function of the inputs: nothing in them names the machine, the folder or the hour.
"""

import argparse
import functools
import importlib.util
import json
import random
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..build import debian, emulator, guest, kernels, target
from ..run import accel, firmware, machine, results
from ..run.options import MODEL, SEED, Options
from ..run.results import Result
from ..util import pool
from ..util.base import BUILD, ROOT, LabError, guests_at_once, output, say, terminal, write_file

FOLDER = ROOT / "scripts/experiments"
RESULTS = ROOT / "results"
SCHEMA = 2
DURATIONS = "experiments"               # where pool keeps them
PAUSE_US = 10_000                       # at most, before a repetition: some of the kernel's ticks
LEAST, MOST = "_least", "_most"         # after a field's name

Sample = dict[str, Any]                 # flat: names to numbers and short strings


@dataclass(frozen=True)
class Run:
    """One boot of a guest: a script for bash and what it needs; it writes files to be pulled.

    Where the clock is MODEL: no guest, but drives, a line each (firmware.py); a file for each is pulled.
    """

    name: str
    script: str
    options: Options
    pull: Sequence[str] = ("*.json",)
    seeds: int = 1              # how many times it is taken, for the spread
    seconds: float = 30         # of the host that it takes, roughly: the longest first, where no earlier run tells

    def key(self, seed: int) -> str:
        """What the results call the run of that seed."""
        return f"{self.name}@{seed}" if seed else self.name

    def seeded(self, seed: int) -> str:
        """The script for a seed, which is $seed there: fio.command takes its random numbers from it.

        And a pause moves everything against the kernel's ticks. The first seed has none.
        """
        pause = f"usleep {random.Random(seed).randrange(1, PAUSE_US)}\n" if seed else ""
        return f"seed={seed}\n{pause}{self.script}"


@dataclass(frozen=True)
class Check:
    """One prediction, held against what was measured. A miss stays in the report, with its reason."""

    name: str
    measured: float             # of several seeds: the median
    low: float | None
    high: float | None
    why: str                    # why it was predicted
    analysis: str = ""          # why it is missed, where that was looked into; shown only then
    least: float | None = None  # of several seeds
    most: float | None = None

    @property
    def passed(self) -> bool:
        return self._holds(self.measured)

    @property
    def within_spread(self) -> bool:
        """The bound lies within the spread: another seed would have been judged otherwise."""
        return any(self._holds(x) != self.passed for x in (self.least, self.most) if x is not None)

    def _holds(self, measured: float) -> bool:
        return (self.low is None or measured >= self.low) and (self.high is None or measured <= self.high)

    @property
    def bound(self) -> str:
        if self.low is not None and self.high is not None:
            return f"{self.low:g} to {self.high:g}"
        return f">= {self.low:g}" if self.low is not None else f"<= {self.high:g}"

    def record(self) -> dict[str, Any]:
        """As the results hold it."""
        found = {"name": self.name, "measured": self.measured, "bound": self.bound, "pass": self.passed,
                 "why": self.why}
        if self.least is not None:
            found |= {"least": self.least, "most": self.most, "bound_within_spread": self.within_spread}
        return found | ({"analysis": self.analysis} if self.analysis and not self.passed else {})


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
    by: Sequence[str]                                       # the samples' fields that say what a sample is of
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
    by: Sequence[str] = ()
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


def _provenance(runs: Sequence[Run], booted: Mapping[str, Result]) -> dict[str, Any]:
    release = {r.options.kernel: kernels.get(r.options.kernel).release for r in runs if r.options.clock != MODEL}
    fio = subprocess.run(["fio", "--version"], capture_output=True, text=True).stdout.strip()
    qemu = output([emulator.build(), "--version"]).splitlines()[0]
    settings = {r.name: {k: v for k, v in asdict(r.options).items() if k in
                         ("clock", "cpus", "memory", "quantum", "speed", "profile", "device") or
                         (k == "memory_model" and v)} | {"seeds": r.seeds}
                for r in runs}
    scripts = {r.name: r.script for r in runs}
    return {"commit": _commit(), "emulator": re.sub(r" \(.*", "", qemu), "kernels": release, "fio": fio,
            "seed": SEED, "settings": settings, "scripts": scripts,
            "inputs": {key: result.inputs for key, result in booted.items()},
            "starts": {key: result.start for key, result in booted.items()}}


def _boot(run: Run, seed: int, fresh: bool) -> Result:
    """One seed of a run. In virtual time it is a function of its inputs: one that ran before is not run again."""
    if run.options.clock == MODEL:
        return firmware.run(run.script, seed, fresh)
    virtual = run.options.clock == "virtual"
    options = replace(run.options, pull=run.pull, recall=virtual and not fresh)
    result = machine.run(run.seeded(seed), options, accel="tcg" if virtual else accel.choose())
    if result.failure or result.status:
        tail = "\n".join(result.output.splitlines()[-15:])
        raise LabError(f"run {run.key(seed)}: {result.failure or f'exit status {result.status}'}\n{tail}")
    return result


def _build_first(runs: Iterable[Run]) -> dict[str, str]:
    """Everything that is to be built is built once, before guests start side by side: the emulator beside the rest.

    Returns which kernels cannot be had, and why: it is their experiments' loss alone.
    """
    names = sorted({r.options.kernel for r in runs if r.options.clock != MODEL})
    missing = {}
    with ThreadPoolExecutor(1) as beside:
        building = beside.submit(emulator.build)
        guest.base()
        guest.tools()
        for name in names:
            try:
                guest.modules(kernels.get(name))
                target.module(kernels.get(name))
            except LabError as e:
                missing[name] = str(e)
        target.tool()
        building.result()
    return missing


@dataclass
class _Taking:
    """An experiment whose guests are on their way. Only the thread that waits for them changes it."""

    experiment: Experiment
    quick: bool
    runs: list[Run]
    booted: dict[str, Result] = field(default_factory=dict)
    failed: bool = False

    def job_name(self, run: Run, seed: int) -> str:
        return f"{self.experiment.name}{' (quick)' if self.quick else ''} {run.key(seed)}"

    @property
    def complete(self) -> bool:
        return len(self.booted) == sum(run.seeds for run in self.runs)

    def results(self) -> Results:
        files = {key: result.files for key, result in self.booted.items()}
        booted = {key: self.booted[key] for key in _keys(self.runs)}
        return judge(self.experiment, self.quick, by_seed(self.experiment, self.runs, files),
                     _provenance(self.runs, booted))


def run(experiments: Iterable[Experiment], quick: bool, done: Callable[[Experiment, Results], None],
        at_once: int | None = None, fresh: bool = False) -> list[str]:
    """Boot all the experiments' guests, the longest first; `done` gets the results of each as its last one ends.

    Returns the names of those that failed: the others' guests are not for nothing. In virtual time guests do not
    disturb each other and run side by side; those of the wall clock come last, one by one.
    """
    taking = [_Taking(experiment, quick, experiment.runs(quick)) for experiment in experiments]
    missing = _build_first(run for one in taking for run in one.runs)
    for one in taking:
        for name in sorted({r.options.kernel for r in one.runs} & missing.keys()):
            say(f"{one.experiment.name} failed: no kernel {name}: {missing[name]}")
            one.failed = True
    known = pool.known(DURATIONS)
    jobs: dict[str, list[pool.Job[Result | None]]] = {"virtual": [], "wall": []}
    of: dict[str, tuple[_Taking, str]] = {}

    def work(one: _Taking, run: Run, seed: int) -> Result | None:
        return None if one.failed else _boot(run, seed, fresh)

    for one in taking:
        for run in one.runs:
            for seed in range(run.seeds):
                name = one.job_name(run, seed)
                of[name] = one, run.key(seed)
                clock = "wall" if run.options.clock == "wall" else "virtual"
                jobs[clock].append(pool.Job(name, functools.partial(work, one, run, seed),
                                            known.get(name, run.seconds)))

    def ended(job: pool.Job[Result | None], future: "Future[Result | None]", left: str) -> None:
        one, key = of[job.name]
        try:
            result = future.result()
            if result is None:
                return
            one.booted[key] = result
            pool.remember(DURATIONS, {job.name: result.seconds})
            if not terminal():
                say(f"{job.name} ({result.seconds:.0f} s); {left}")
            if one.complete:
                done(one.experiment, one.results())
        except (LabError, ValueError) as e:         # of the guest, or of what it brought out
            say(f"{one.experiment.name} failed: {e}")
            one.failed = True

    say(f"{', '.join(one.experiment.name for one in taking)}{' (quick)' if quick else ''}: {len(of)} guests")
    for clock, side_by_side in (("virtual", at_once or guests_at_once()), ("wall", 1)):
        pool.side_by_side(jobs[clock], side_by_side, ended)
    return [one.experiment.name for one in taking if one.failed]


def _keys(runs: Iterable[Run]) -> list[str]:
    return [run.key(seed) for run in runs for seed in range(run.seeds)]


def by_seed(experiment: Experiment, runs: Sequence[Run],
            files: Mapping[str, Mapping[str, bytes]]) -> list[list[Sample]]:
    """The experiment's samples for each seed; a run that is taken once stands in all of them."""
    return [experiment.samples({run.name: files[run.key(seed % run.seeds)] for run in runs})
            for seed in range(max(run.seeds for run in runs))]


def merged(samples: Sequence[Sequence[Sample]], by: Sequence[str]) -> list[Sample]:
    """One sample for those of all seeds that are of the same thing: medians, and the spread where there is any."""
    groups: dict[tuple[Any, ...], list[Sample]] = {}
    for sample in (s for of_a_seed in samples for s in of_a_seed):
        groups.setdefault(tuple(sample.get(key) for key in by), []).append(sample)
    return [_median(group) for group in groups.values()]


def _median(group: Sequence[Sample]) -> Sample:
    found: Sample = {}
    for key, first in group[0].items():
        values: list[Any] = sorted(s[key] for s in group if key in s) if isinstance(first, int | float) else [first]
        found[key] = values[(len(values) - 1) // 2]             # one that was measured
        if values[0] != values[-1]:
            found[key + LEAST], found[key + MOST] = values[0], values[-1]
    return found


def spread(sample: Sample, key: str) -> tuple[float, float]:
    """The least and the most of what was measured."""
    return sample.get(key + LEAST, sample[key]), sample.get(key + MOST, sample[key])


def shown(sample: Sample, key: str, form: str = ".1f", scale: float = 1) -> str:
    """A cell of a table: the median, and the spread where there is any."""
    least, most = (f"{x / scale:{form}}" for x in spread(sample, key))
    return f"{sample[key] / scale:{form}}" + (f" ({least} to {most})" if key + LEAST in sample else "")


def judge(experiment: Experiment, quick: bool, samples: Sequence[list[Sample]], provenance: dict[str, Any],
          before: Iterable[Mapping[str, Any]] = ()) -> Results:
    """Hold the samples of each seed against the predictions; what is judged is the median.

    `before` are checks of results whose samples of each seed are gone: what they measured still counts.
    """
    told = {check["name"]: check for check in before if "least" in check}
    checks = []
    for seeds in zip(*(experiment.checks(of_a_seed, quick) for of_a_seed in samples), strict=True):
        ranked = sorted(seeds, key=attrgetter("measured"))
        check = ranked[(len(ranked) - 1) // 2]
        if check.name in told:
            check = replace(check, **{key: told[check.name][key] for key in ("measured", "least", "most")})
        elif ranked[0].measured != ranked[-1].measured:
            check = replace(check, least=ranked[0].measured, most=ranked[-1].measured)
        checks.append(check.record())
    all_seeds = merged(samples, experiment.by) if len(samples) > 1 else samples[0]
    return Results(experiment.name, experiment.title, experiment.question, experiment.caption, quick, provenance,
                   all_seeds, checks, experiment.table(all_seeds), experiment.by)


def _again(experiment: Experiment, folder: Path) -> Results:
    """Results that are there, judged anew: after a change of words, bounds or figures.

    Their samples are taken anew where what the guests brought out is kept, else they stay.
    """
    path = folder / "results.json"
    if not path.exists():
        raise LabError(f"{path}: there are no results to judge again")
    old = json.loads(path.read_text())
    kept = {name: results.recall(inputs) for name, inputs in old["provenance"]["inputs"].items()}
    files = {name: result.files for name, result in kept.items() if result}
    runs = experiment.runs(old["quick"])
    if {*_keys(runs)} <= {*files}:
        return judge(experiment, old["quick"], by_seed(experiment, runs, files), old["provenance"])
    return judge(experiment, old["quick"], [old["samples"]], old["provenance"], old["checks"])


def keep(experiment: Experiment, results: Results, folder: Path) -> None:
    """Write results.json and the figures."""
    write_file(folder / "results.json", results.text())
    experiment.draw(results.samples, folder / "figure")


def format_table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def measured(check: Mapping[str, Any]) -> str:
    """What a check found, with the spread where there is one."""
    return f"{check['measured']:.4g}" + (f" ({check['least']:.4g} to {check['most']:.4g})" if "least" in check else "")


def bound(check: Mapping[str, Any]) -> str:
    """What was predicted, and whether the spread leaves that open."""
    return f"{check['bound']}" + (", which lies within the spread" if check.get("bound_within_spread") else "")


def format_checks(checks: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(f"{'ok  ' if c['pass'] else 'MISS'} {c['name']}: {measured(c)}, bound {bound(c)}"
                     + ("" if c["pass"] else f" ({c['why']}; {c.get('analysis', 'no cause is known')})")
                     for c in checks)


def _no_more_than_a_seed(a: Mapping[str, Any], b: Mapping[str, Any], key: str, prefix: str) -> str:
    """Words for a median that moved no further than another seed moves what was measured."""
    def holds(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        return prefix + "least" in one and bool(one[prefix + "least"] <= other[key] <= one[prefix + "most"])

    return "within the spread" if holds(a, b) or holds(b, a) else ""


def _by_identity(results: Mapping[str, Any], by: Sequence[str]) -> dict[tuple[Any, ...], Sample]:
    """Samples by what they are of; by their place where nothing tells that."""
    return {tuple(s.get(key) for key in by) or (place,): s for place, s in enumerate(results["samples"])}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What changed between two results: samples by what they are of, checks by name. Provenance is not compared."""
    lines = []
    by = new.get("by", ())
    before, after = _by_identity(old, by), _by_identity(new, by)
    if before.keys() != after.keys():
        lines.append(f"samples: {len(before.keys() - after.keys())} gone, {len(after.keys() - before.keys())} new")
    for identity in (i for i in after if i in before):
        a, b = before[identity], after[identity]
        label = " ".join(f"{k}={v}" for k, v in b.items()
                         if (k in by if by else a.get(k) == v and not isinstance(v, float)))
        for key in sorted({*a, *b}):
            if a.get(key) == b.get(key) or key.endswith((LEAST, MOST)):
                continue
            notes = []
            if all(isinstance(x.get(key), int | float) and x[key] for x in (a, b)):
                notes.append(f"{100 * (b[key] / a[key] - 1):+.2f}%")
            if key in a and key in b:
                notes.append(_no_more_than_a_seed(a, b, key, key + "_"))
            note = f" ({', '.join(filter(None, notes))})" if any(notes) else ""
            lines.append(f"{label}: {key} {a.get(key)} -> {b.get(key)}{note}")
    checks = {c["name"]: c for c in old["checks"]}
    for check in new["checks"]:
        was = checks.get(check["name"])
        if was and was["pass"] != check["pass"]:
            note = _no_more_than_a_seed(was, check, "measured", "")
            lines.append(f"check {check['name']}: {'pass' if was['pass'] else 'miss'} -> "
                         f"{'pass' if check['pass'] else 'miss'}{f' ({note})' if note else ''}")
    return lines


def _exp(args: argparse.Namespace) -> int:
    debian.ensure("build", "emulator", "guest", "tool", "figures")
    chosen = [load(name) for name in (names() if args.all else args.names)]
    misses, failed = 0, []

    def folder(experiment: Experiment) -> Path:
        return Path(args.out or (BUILD / "quick" if args.quick else RESULTS)) / experiment.name

    def done(experiment: Experiment, results: Results) -> None:
        nonlocal misses
        keep(experiment, results, folder(experiment))
        say(f"{experiment.name}: {len(results.checks) - len(results.misses)} of {len(results.checks)} checks hold, "
            f"in {folder(experiment)}")
        print(f"{experiment.title}\n\n{format_table(results.table)}\n\n{format_checks(results.checks)}\n", flush=True)
        misses += len(results.misses)

    if args.again:
        for experiment in chosen:
            try:
                done(experiment, _again(experiment, folder(experiment)))
            except LabError as e:
                say(f"{experiment.name} failed: {e}")
                failed.append(experiment.name)
    else:
        failed = run(chosen, args.quick, done, args.jobs, args.fresh)
    if failed:
        raise LabError(f"failed: {', '.join(failed)}")
    return 1 if misses and args.strict else 0


def _demo(args: argparse.Namespace) -> int:
    debian.ensure("build", "emulator", "guest", "tool", "figures")
    say("fio on the emulated zoned device, in virtual time: single- against multi-threaded FTL")

    def done(experiment: Experiment, results: Results) -> None:
        folder = BUILD / "demo"
        write_file(folder / "scaling.json", results.text())
        experiment.draw(results.samples, folder / "scaling")
        print(f"\n{experiment.title}\n\n{format_table(results.table)}\n\n{told(results)}\n"
              f"The figure: {folder}/scaling.svg and .png")

    return 1 if run([load("scaling")], True, done) else 0


def told(results: Results) -> str:
    """What the demo found, for somebody who sees this for the first time."""
    iops = {s["line"]: s["iops"] for s in results.samples if s["users"] == 8}
    held, missed = len(results.checks) - len(results.misses), len(results.misses)
    return (
        "What was compared: programs (users) that write 4 KiB blocks at random to one flash drive, on a machine\n"
        "with 8 processors. `single` puts all their writes through one buffer and one thread, as flash translation\n"
        "layers used to. `multi` is dm-mtftl, with a buffer and a thread for each processor. `raw` is the bare\n"
        "drive, on which each user may only write in order.\n\n"
        f"The result: with 8 users dm-mtftl takes {iops['multi'] / 1000:.0f},000 writes a second, "
        f"{iops['multi'] / iops['single']:.1f} times as many as one\n"
        f"buffer and one thread, and {100 * iops['multi'] / iops['raw']:.0f}% of what the bare drive takes.\n\n"
        f"Before it was measured, {held + missed} predictions were made: {held} hold"
        + (f", {missed} do not; docs/experiments.md says which, and why.\n" if missed else ".\n"))


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
    exp.add_argument("--jobs", type=int, default=guests_at_once(), metavar="N",
                     help="guests side by side; default: the host's cores, as far as its memory goes")
    exp.add_argument("--out", type=Path, metavar="DIR", help="keep the results below this folder instead")
    exp.set_defaults(function=_exp)
    demo = commands.add_parser("demo", help="single- against multi-threaded FTL, in a few minutes")
    demo.set_defaults(function=_demo)
    diff = commands.add_parser("diff", help="which of the experiments' numbers differ from another commit's")
    diff.add_argument("names", nargs="*", metavar="NAME")
    diff.add_argument("--against", default="HEAD", metavar="COMMIT", help="default %(default)s")
    diff.set_defaults(function=_diff)
