# SPDX-License-Identifier: GPL-2.0
"""What an experiment is: one file of scripts/experiments/, which says what it asks and how that is measured.

The file defines ABOUT, an About, and five functions: runs, which guests to boot; samples, how to turn what they bring
out into flat samples; checks, what was predicted of those; table and draw, how they are shown. load() makes an
Experiment of them. The file holds no numbers that were measured and draws nothing but its samples.
docs/lab/experiments.md shows the smallest one; scaling.py is the model.
"""

import importlib.util
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..run.options import Options
from ..util.base import ROOT, LabError

FOLDER = ROOT / "scripts/experiments"
PAUSE_US = 10_000                       # at most, before a repetition: some of the kernel's ticks
LEAST, MOST = "_least", "_most"         # after a field's name
FUNCTIONS = ("runs", "samples", "checks", "table", "draw")

Sample = dict[str, Any]                 # flat: names to numbers and short strings


@dataclass(frozen=True)
class Run:
    """One boot of a guest: a script for bash and what it needs; it writes files to be pulled.

    If the clock is MODEL, there is no guest: the script has a drive a line (firmware.py), and a file of each is pulled.
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


# What a check rests on; results, pages and the report count the three apart.
SOURCE, FORM, OURS = "source", "form", "ours"


@dataclass(frozen=True)
class Why:
    """Why a check expects what it expects."""

    kind: str                   # SOURCE, FORM or OURS
    words: str                  # of a source: its own, or the figure that it prints
    work: str = ""              # the source (sources.py)


def says(work: str, words: str) -> Why:
    """A source's own words; the bound is what we take them to mean."""
    return Why(SOURCE, words, work)


def form(words: str) -> Why:
    """A closed form, from the drive's times or from counting."""
    return Why(FORM, words)


def ours(words: str) -> Why:
    """What we expected, by no source and no formula."""
    return Why(OURS, words)


@dataclass(frozen=True)
class Check:
    """One expectation, held against what was measured. A miss stays in the report."""

    name: str
    measured: float             # of several seeds: the median
    low: float | None
    high: float | None
    why: Why
    analysis: str = ""          # the cause of a miss, computed from the samples; shown only then
    late: str = ""              # how far the result was known when the bound was set
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
                 "kind": self.why.kind, "why": self.why.words}
        if self.why.work:
            found["work"] = self.why.work
        if self.late:
            found["late"] = self.late
        if self.least is not None:
            found |= {"least": self.least, "most": self.most, "bound_within_spread": self.within_spread}
        return found | ({"analysis": self.analysis} if self.analysis and not self.passed else {})


def at_least(name: str, measured: float, low: float, why: Why, analysis: str = "", late: str = "") -> Check:
    return Check(name, measured, low, None, why, analysis, late)


def at_most(name: str, measured: float, high: float, why: Why, analysis: str = "", late: str = "") -> Check:
    return Check(name, measured, None, high, why, analysis, late)


def within(name: str, measured: float, expected: float, share: float, why: Why, analysis: str = "",
           late: str = "") -> Check:
    """Measured lies within a share (0.01: 1%) of what was expected."""
    return Check(name, measured, expected * (1 - share), expected * (1 + share), why, analysis, late)


@dataclass(frozen=True)
class About:
    """What a file of scripts/experiments/ says of itself, besides its functions."""

    title: str
    question: str                                           # what it wants to know, in a sentence or two
    by: Sequence[str]                                       # the samples' fields that say what a sample is of
    caption: str = ""                                       # of its figure
    long: bool = False                                      # it takes half an hour or more: --all leaves it out


@dataclass(frozen=True)
class Experiment:
    """An experiment: what its file says of it, and its functions."""

    name: str
    about: About
    runs: Callable[[bool], list[Run]]                       # True: the quick form, for tests and the demo
    samples: Callable[[Mapping[str, Mapping[str, bytes]]], list[Sample]]    # from run name -> pulled files
    checks: Callable[[list[Sample], bool], list[Check]]
    table: Callable[[list[Sample]], list[list[str]]]        # first row: the heads
    draw: Callable[[list[Sample], Path], None]              # writes PATH.svg


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
    lacking = [part for part in ("ABOUT", *FUNCTIONS) if not hasattr(module, part)]
    if lacking:
        raise LabError(f"{path}: {', '.join(lacking)} is missing, expected ABOUT and {', '.join(FUNCTIONS)}")
    return Experiment(name, module.ABOUT, **{function: getattr(module, function) for function in FUNCTIONS})


def spread(sample: Sample, key: str) -> tuple[float, float]:
    """The least and the most of what was measured."""
    return sample.get(key + LEAST, sample[key]), sample.get(key + MOST, sample[key])


def shown(sample: Sample, key: str, form: str = ".1f", scale: float = 1) -> str:
    """A cell of a table: the median, and the spread where there is any."""
    least, most = (f"{x / scale:{form}}" for x in spread(sample, key))
    return f"{sample[key] / scale:{form}}" + (f" ({least} to {most})" if key + LEAST in sample else "")
