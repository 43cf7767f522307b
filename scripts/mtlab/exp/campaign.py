# SPDX-License-Identifier: GPL-2.0
"""The guests of one or more experiments, taken from one queue: the longest first, results as each experiment ends.

In virtual time they may be other machines' guests (run/cluster.py): these take a run from the experiment's file.
"""

import functools
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..build import emulator, guest, kernels, packages, target
from ..run import accel, firmware, machine, outcome
from ..run.options import MODEL, SEED
from ..run.outcome import Result
from ..util import pool
from ..util.base import ROOT, LabError, digest, guests_at_once, output, say, terminal
from .experiments import Experiment, Run, Sample, load
from .results import Results, by_seed, judge, keys

DURATIONS = "experiments"               # where pool keeps them

Job = pool.Job["Result | None"]         # nothing: its experiment had failed already


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
                         (k in ("memory_model", "packages") and v)} | {"seeds": r.seeds}
                for r in runs}
    scripts = {r.name: digest(*filter(None, (r.options.before, r.script))) for r in runs}
    brought = {p for r in runs for found in packages.chosen(tuple(r.options.packages)).values() for p in found}
    return {"commit": _commit(), "emulator": re.sub(r" \(.*", "", qemu), "kernels": release, "fio": fio,
            **({"packages": sorted(brought)} if brought else {}),
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


def some(experiment: Experiment, names: Sequence[str], quick: bool, fresh: bool) -> list[Sample]:
    """What some of an experiment's runs measured, one after the other; their first seed."""
    found = {run.name: run for run in experiment.runs(quick)}
    if missing := [name for name in names if name not in found]:
        raise LabError(f"{experiment.name} has no run '{missing[0]}': there are {', '.join(found)}")
    return experiment.samples({name: _boot(found[name], 0, fresh).files for name in names})


def _inputs(run: Run, seed: int) -> str:
    """The digest of all that one seed of a run in virtual time is a function of."""
    if run.options.clock == MODEL:
        return firmware.inputs(run.script, seed)
    return machine.inputs(run.seeded(seed), replace(run.options, pull=run.pull), accel="tcg")


@functools.cache
def _runs(experiment: str, quick: bool) -> dict[str, Run]:
    """The runs that an experiment's file names."""
    return {run.name: run for run in load(experiment).runs(quick)}


def _boot_there(experiment: str, quick: bool, name: str, seed: int, fresh: bool) -> Result:
    """The same as _boot() on another machine."""
    return _boot(_runs(experiment, quick)[name], seed, fresh)


def _inputs_there(experiment: str, quick: bool, name: str, seed: int) -> str:
    return _inputs(_runs(experiment, quick)[name], seed)


def _proof(result: Result | None) -> object:
    """What a run gives each time, on each machine."""
    return result and (result.status, result.output, result.console, result.files, result.start)


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


def job_name(experiment: Experiment, run: Run, seed: int, quick: bool = False) -> str:
    """Under which name the processor time that a guest takes is kept."""
    return f"{experiment.name}{' (quick)' if quick else ''} {run.key(seed)}"


@dataclass
class _Taking:
    """An experiment whose guests are on their way. Only the thread that waits for them changes it."""

    experiment: Experiment
    quick: bool
    runs: list[Run]
    booted: dict[str, Result] = field(default_factory=dict)
    failed: bool = False

    @property
    def complete(self) -> bool:
        return len(self.booted) == sum(run.seeds for run in self.runs)

    def results(self) -> Results:
        files = {key: result.files for key, result in self.booted.items()}
        booted = {key: self.booted[key] for key in keys(self.runs)}
        return judge(self.experiment, self.quick, by_seed(self.experiment, self.runs, files),
                     _provenance(self.runs, booted))

    def fail(self, why: object) -> None:
        say(f"{self.experiment.name} failed: {why}")
        self.failed = True


class Campaign:
    """Experiments that are taken together; `done` gets the results of each as its last guest ends.

    One that fails costs the others nothing. In virtual time guests do not disturb each other and run side by side;
    those of the wall clock come last, one by one.
    """

    def __init__(self, experiments: Iterable[Experiment], quick: bool, done: Callable[[Experiment, Results], None], *,
                 at_once: int | None = None, fresh: bool = False, elsewhere: pool.Elsewhere | None = None) -> None:
        self._taking = [_Taking(experiment, quick, experiment.runs(quick)) for experiment in experiments]
        self._quick, self._done, self._fresh = quick, done, fresh
        self._at_once, self._elsewhere = at_once or guests_at_once(), elsewhere
        self._of: dict[str, tuple[_Taking, str]] = {}       # of a job: its experiment, and what results call the run

    def run(self) -> list[str]:
        """Boot all guests; returns the names of the experiments that failed."""
        missing = _build_first(run for one in self._taking for run in one.runs)
        for one in self._taking:
            for name in sorted({r.options.kernel for r in one.runs} & missing.keys()):
                one.fail(f"no kernel {name}: {missing[name]}")
        virtual = self._jobs(lambda run: run.options.clock != "wall")
        wall = self._jobs(lambda run: run.options.clock == "wall")
        say(f"{', '.join(one.experiment.name for one in self._taking)}{' (quick)' if self._quick else ''}: "
            f"{len(self._of)} guests")
        pool.side_by_side(virtual, self._at_once, self._ended, self._elsewhere)
        pool.side_by_side(wall, 1, self._ended)
        return [one.experiment.name for one in self._taking if one.failed]

    def _jobs(self, wanted: Callable[[Run], bool]) -> list[Job]:
        known = pool.known(DURATIONS)
        jobs = []
        for one in self._taking:
            for run in filter(wanted, one.runs):
                for seed in range(run.seeds):
                    name = job_name(one.experiment, run, seed, one.quick)
                    self._of[name] = one, run.key(seed)
                    far = self._far(one, run, seed) if self._elsewhere and run.options.clock != "wall" else None
                    jobs.append(pool.Job(name, functools.partial(self._take, one, run, seed),
                                         known.get(name, run.seconds), far))
        return jobs

    def _far(self, one: _Taking, run: Run, seed: int) -> pool.Far[Result | None] | None:
        """How another machine takes a run; nothing if its result is kept here, or if it cannot be had."""
        try:
            key = _inputs(run, seed)
        except LabError:            # the run fails here, and its experiment with it
            return None
        if not self._fresh and outcome.recall(key):
            return None
        words = one.experiment.name, one.quick, run.name, seed
        return pool.Far(key, functools.partial(_inputs_there, *words),
                        functools.partial(_boot_there, *words, self._fresh),
                        functools.partial(_boot_there, *words, True), _proof, lambda: not one.failed)

    def _take(self, one: _Taking, run: Run, seed: int) -> Result | None:
        return None if one.failed else _boot(run, seed, self._fresh)

    def _ended(self, job: Job, future: "Future[Result | None]", left: str) -> None:
        one, key = self._of[job.name]
        try:
            result = future.result()
            if result is None:
                return
            one.booted[key] = result
            if job.far and not self._fresh:
                outcome.keep(result)
            if result.worked:       # what it took on the wall says how busy the host was
                pool.remember(DURATIONS, {job.name: result.worked})
            if not terminal():
                say(f"{job.name} ({result.seconds:.0f} s); {left}")
            if one.complete:
                self._done(one.experiment, one.results())
        except (LabError, ValueError) as e:         # of the guest, or of what it brought out
            one.fail(e)
