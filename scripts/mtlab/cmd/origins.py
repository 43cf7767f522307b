# SPDX-License-Identifier: GPL-2.0
"""Of each check two commits: the one that set its bound, and the one at which the result that it judges was measured.

Both come from the history of results/NAME/results.json. A bound that first appears with a new result was in the
experiment's file when that was measured. One that first appears beside an older result came later, and has to say so.
"""

import functools
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..exp.results import RESULTS
from ..util.base import ROOT, LabError, output

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


class Origin(NamedTuple):
    """Where a bound comes from."""

    commit: str
    late: bool                  # it first judged a result that was there already


def _git(*words: str) -> str:
    return output(["git", "-C", ROOT, *words])


def defined(experiment: str, at: str) -> str:
    """The last commit that had changed the experiment's file, or an empty string."""
    file = f"scripts/experiments/{experiment.replace('-', '_')}.py"
    return _git("log", "-1", "--format=%h", "--abbrev=12", at, "--", file).strip()


@functools.cache
def landed(commit: str) -> bool:
    """Whether the history of this tree has the commit. One that was rebased away may be here, and nowhere else."""
    try:
        _git("merge-base", "--is-ancestor", commit, "HEAD")
    except LabError:
        return False
    return True


def _set_by(experiment: str, measured: str, committed: str) -> str:
    """The commit whose bounds a new result met; the commit of the results if that one is not in the history."""
    return defined(experiment, measured if landed(measured) else committed)


def measured_at(provenance: Mapping[str, Any]) -> str:
    """The commit of which results are."""
    return str(provenance.get("commit", "")).removesuffix("+changes")


def _same(one: str, other: str) -> bool:
    """Bounds that differ by a thousandth at most, as one that is computed does by rounding."""
    numbers = [[float(number) for number in _NUMBER.findall(bound)] for bound in (one, other)]
    return (_NUMBER.sub("", one) == _NUMBER.sub("", other)
            and all(math.isclose(a, b, rel_tol=1e-3) for a, b in zip(*numbers, strict=True)))


def _versions(experiment: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The results that were committed, the oldest first, and those that are there."""
    path = RESULTS / experiment / "results.json"
    name = path.relative_to(ROOT)
    for commit in reversed(_git("log", "--format=%H", "--diff-filter=AM", "--", str(name)).split()):
        yield commit, json.loads(_git("show", f"{commit}:{name}"))
    yield "HEAD", json.loads(path.read_text())


@functools.cache
def _bounds(experiment: str) -> dict[str, list[tuple[str, Origin]]]:
    """All bounds that a check ever had, by its name; nothing where git cannot tell."""
    found: dict[str, list[tuple[str, Origin]]] = {}
    before = ""
    try:
        for commit, results in _versions(experiment):
            measured = measured_at(results.get("provenance", {}))
            late = measured == before
            of = Origin(_set_by(experiment, commit if late else measured, commit), late)
            for check in results.get("checks", ()):
                known = found.setdefault(check["name"], [])
                if not any(_same(check["bound"], bound) for bound, _ in known):
                    known.append((check["bound"], of))
            before = measured
    except LabError:
        return {}
    return found


def origin(experiment: str, check: Mapping[str, Any]) -> Origin | None:
    """Where a check's bound comes from; None where git cannot tell."""
    return next((of for bound, of in _bounds(experiment).get(check["name"], ()) if _same(check["bound"], bound)), None)


def commits(results: Mapping[str, Any], check: Mapping[str, Any]) -> str:
    """Both commits in words; nothing where git cannot tell."""
    of, measured = origin(results["experiment"], check), measured_at(results["provenance"])
    return f"bound of {of.commit}, measured at {measured}" if of and of.commit and measured else ""
