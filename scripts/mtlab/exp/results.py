# SPDX-License-Identifier: GPL-2.0
"""What an experiment left: samples, judged; kept in results/, and shown.

One run that repeats to the bit is still one sample. A run with `seeds=5` is taken five times, each time a little
different by nothing that is meant (Run.seeded); results then hold the median of what was measured, beside it the
least and the most under NAME_least and NAME_most, and checks judge the median.

Results are a function of the inputs: nothing in them names the machine, the folder or the hour.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..run import outcome
from ..util.base import ROOT, LabError, digest, write_file
from .experiments import FORM, LEAST, MOST, OURS, SOURCE, Experiment, Run, Sample

RESULTS = ROOT / "results"
SCHEMA = 4
KINDS = {SOURCE: "claims of a source", FORM: "closed forms", OURS: "predictions of our own"}


@dataclass
class Results:
    """What an experiment left; the JSON file holds exactly these fields (docs/lab/experiments.md)."""

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


def keys(runs: Iterable[Run]) -> list[str]:
    """What the results call the runs of all seeds."""
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
    about = experiment.about
    all_seeds = merged(samples, about.by) if len(samples) > 1 else samples[0]
    return Results(experiment.name, about.title, about.question, about.caption, quick, provenance, all_seeds, checks,
                   experiment.table(all_seeds), about.by)


def again(experiment: Experiment, folder: Path) -> Results:
    """Results that are there, judged anew: after a change of words, bounds or figures.

    Their samples are taken anew where what the guests brought out is kept, else they stay.
    """
    path = folder / "results.json"
    if not path.exists():
        raise LabError(f"{path}: there are no results to judge again")
    old = json.loads(path.read_text())
    kept = {name: outcome.recall(inputs) for name, inputs in old["provenance"]["inputs"].items()}
    files = {name: result.files for name, result in kept.items() if result}
    runs = experiment.runs(old["quick"])
    provenance = _upgraded(old)
    if {*keys(runs)} <= {*files}:
        return judge(experiment, old["quick"], by_seed(experiment, runs, files), provenance)
    return judge(experiment, old["quick"], [old["samples"]], provenance, old["checks"])


def _upgraded(old: Mapping[str, Any]) -> dict[str, Any]:
    """The provenance of results of any schema: before 3, scripts were there in full."""
    provenance: dict[str, Any] = dict(old["provenance"])
    if old["schema"] < 3:
        provenance["scripts"] = {name: digest(script) for name, script in provenance["scripts"].items()}
    return provenance


def write(experiment: Experiment, results: Results, folder: Path) -> None:
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
    """What was expected, whether the spread leaves that open, and what was known when the bound was set."""
    return (f"{check['bound']}" + (", which lies within the spread" if check.get("bound_within_spread") else "")
            + (f" ({check['late']})" if check.get("late") else ""))


def why(check: Mapping[str, Any]) -> str:
    """What a check rests on: a source's words between quotes, after its name."""
    return f'{check["work"]}: "{check["why"]}"' if check["kind"] == SOURCE else str(check["why"])


def counts(checks: Iterable[Mapping[str, Any]]) -> str:
    """How many checks hold, in all and by what they rest on."""
    held = {kind: [bool(c["pass"]) for c in checks if c["kind"] == kind] for kind in KINDS}
    return (f"{sum(map(sum, held.values()))} of {sum(map(len, held.values()))} checks hold: "
            + ", ".join(f"{sum(of)} of {len(of)} {KINDS[kind]}" for kind, of in held.items() if of))


def format_checks(checks: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(f"{'ok  ' if c['pass'] else 'MISS'} {c['name']}: {measured(c)}, bound {bound(c)}"
                     + ("" if c["pass"] else f" ({'; '.join(filter(None, [why(c), c.get('analysis')]))})")
                     for c in checks)
