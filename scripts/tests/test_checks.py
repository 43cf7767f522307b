# SPDX-License-Identifier: GPL-2.0
"""The checks of all experiments: each can fail, says what it rests on, and gives no reason that was not computed."""

import contextlib
import functools
import itertools
import json
import math
import random
import re
import subprocess
from collections.abc import Iterator

import pytest
from mtlab.cmd import origins, report, story
from mtlab.exp import experiments, sources
from mtlab.exp.experiments import FORM, LEAST, MOST, OURS, SOURCE, Check, Sample
from mtlab.exp.results import KINDS, RESULTS, counts
from mtlab.util.base import ROOT

MEASURED = [name for name in experiments.names() if (RESULTS / name / "results.json").exists()]
TRIES = 300         # other numbers, until each check has held and failed


@functools.cache
def _committed(name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((RESULTS / name / "results.json").read_text())
    return found


def _samples(name: str) -> list[Sample]:
    found = _committed(name)["samples"]
    assert isinstance(found, list)
    return found


def _others(experiment: experiments.Experiment, chance: random.Random, much: float) -> list[Sample]:
    """The samples of the results, each number that was measured multiplied by something: alike ones alike.

    Every other time the numbers of a run drift, too: a curve rises or falls from its beginning to its end.
    """
    by = experiment.about.by
    factors: dict[tuple[str, str, object], float] = {}
    drift = chance.choice((0, 1)) * chance.gauss(0, 2)
    end = max((float(s["at"]) for s in _samples(experiment.name) if "at" in s), default=0) or 1

    def other(value: float, key: str, sample: Sample) -> float:
        factor = math.exp(chance.gauss(0, much / 2) + drift * float(sample.get("at", 0)) / end)
        for of in (key_ for key_ in by if key_ in sample):
            factor *= factors.setdefault((key, of, sample[of]), math.exp(chance.gauss(0, much)))
        if isinstance(value, int):
            return max(0, round((value + chance.gauss(0, much)) * factor))
        return (value or 1e-3) * factor

    return [{key: other(value, key, sample) if isinstance(value, int | float) and key not in (*by, "at") else value
             for key, value in sample.items() if not key.endswith((LEAST, MOST))}
            for sample in _samples(experiment.name)]


def _judged(experiment: experiments.Experiment) -> Iterator[list[Check]]:
    """Checks of the results, then of other numbers, now near them and now far away."""
    chance = random.Random(7)
    yield experiment.checks(_samples(experiment.name), False)
    for much in itertools.islice(itertools.cycle((0.3, 1.5, 0.05, 3)), TRIES):
        with contextlib.suppress(ArithmeticError):          # numbers that cannot be
            yield experiment.checks(_others(experiment, chance, much), False)


@pytest.mark.parametrize("name", MEASURED)
def test_every_check_can_fail_and_can_hold(name: str) -> None:
    """With other numbers; one that cannot says nothing."""
    seen: dict[str, set[bool]] = {}
    for checks in _judged(experiments.load(name)):
        for check in checks:
            seen.setdefault(check.name, set()).add(check.passed)
        if all(len(verdicts) == 2 for verdicts in seen.values()):
            break
    assert [check for check, verdicts in seen.items() if verdicts != {False, True}] == []


@pytest.mark.parametrize("name", MEASURED)
def test_a_reason_is_computed(name: str) -> None:
    """With other numbers it is another one: a sentence that stays says nothing about these results."""
    first, second = itertools.islice(_judged(experiments.load(name)), 2)
    told = {check.name: check.analysis for check in second}
    assert [c.name for c in first if c.analysis and told.get(c.name) == c.analysis] == []


@pytest.mark.parametrize("name", MEASURED)
def test_checks_say_what_they_rest_on(name: str) -> None:
    checks = experiments.load(name).checks(_samples(name), False)
    assert len({check.name for check in checks}) == len(checks)
    for check in checks:
        assert check.why.kind in KINDS and check.why.words
        assert (check.why.work in sources.WORKS) == (check.why.kind == SOURCE), check.name


@pytest.mark.parametrize("name", MEASURED)
def test_results_are_judged_by_what_is_here(name: str) -> None:
    """Words, bounds and reasons of the results are those of the experiments: `lab exp --again` brings them up."""
    told = {c.name: c.record() for c in experiments.load(name).checks(_samples(name), False)}
    judged = _committed(name)["checks"]
    assert isinstance(judged, list)
    assert [c["name"] for c in judged] == list(told)
    same = ("kind", "why", "work", "late")
    assert [c["name"] for c in judged if any(c.get(key) != told[c["name"]].get(key) for key in same)] == []


def test_verdicts_are_told_apart() -> None:
    """All claims of a source, and of the others those that are missed; counted by what they rest on."""
    check = {"measured": 1.0, "bound": ">= 2", "pass": False, "why": "w", "kind": OURS, "name": "a"}
    said = {**check, "kind": SOURCE, "work": "S", "why": "it grows"}
    checks = [check, {**check, "name": "b"}, {**check, "name": "c", "analysis": "It was 1."},
              {**check, "name": "d", "analysis": "It was 1."}, {**check, "name": "e", "pass": True},
              {**said, "name": "f", "pass": True, "late": "known"}, {**said, "name": "g", "analysis": "Not 2."},
              {**check, "name": "h", "kind": FORM}]
    assert counts(checks) == ("2 of 8 checks hold: 1 of 2 claims of a source, 0 of 1 closed forms, "
                              "1 of 5 predictions of our own")
    assert counts(checks[:1]) == "0 of 1 checks hold: 0 of 1 predictions of our own"
    assert story.verdicts(checks).split("\n\n")[1:] == [
        "**What the sources say**", '- S: "it grows"\n  - Holds: f: 1, expected >= 2 (known).\n'
        "  - Missed: g: 1, expected >= 2. Not 2.",
        "**Missed closed forms**", "- h: 1, predicted >= 2.",
        "**Missed predictions of our own**", "- a: 1, predicted >= 2.\n- b: 1, predicted >= 2.\n"
        "- It was 1.\n  - c: 1, predicted >= 2.\n  - d: 1, predicted >= 2."]


def test_the_report_says_which_checks_judge_what() -> None:
    """A definition that is older than the result was a prediction."""
    if not (ROOT / ".git").exists():
        pytest.skip("no history here")
    assert report.commits("scaling", {"commit": "none"}) == report.commits("scaling", {}) == ""
    provenance = _committed("scaling")["provenance"]
    assert isinstance(provenance, dict)
    said = re.fullmatch(r"Defined in commit (\w{12}), measured at (\w{12}), judged by the checks of (\w{12})\.",
                        report.commits("scaling", provenance))
    assert said and said[2] == provenance["commit"]
    before, after = (["git", "-C", ROOT, "merge-base", "--is-ancestor", *of] for of in (
        (said[1], said[2]), (said[1], said[3])))
    assert not subprocess.run(before).returncode and not subprocess.run(after).returncode


@pytest.mark.parametrize("name", MEASURED)
def test_a_bound_that_came_late_says_so(name: str) -> None:
    """One that first judged a result that was there already is no prediction."""
    if not (ROOT / ".git").exists():
        pytest.skip("no history here")
    judged = _committed(name)["checks"]
    assert isinstance(judged, list)
    found = {check["name"]: origins.origin(name, check) for check in judged}
    assert [check for check, of in found.items() if not of] == []
    late = {name for name, of in found.items() if of and of.late}
    assert [check["name"] for check in judged if check["name"] in late and not check.get("late")] == []


def test_where_a_bound_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new result meets what was there when it was measured; a new bound beside an old result came with its commit."""
    def version(measured: str, **bounds: str) -> dict[str, object]:
        return {"provenance": {"commit": measured}, "checks": [{"name": n, "bound": b} for n, b in bounds.items()]}

    monkeypatch.setattr(origins, "landed", lambda _commit: True)
    monkeypatch.setattr(origins, "_versions", lambda _name: iter((
        ("c1", version("m1", a=">= 2")), ("c2", version("m1", a=">= 2.001", b="1 to 2")),
        ("c3", version("m2+changes", a=">= 3", b="1 to 2", c="<= 1")))))
    monkeypatch.setattr(origins, "defined", lambda _name, at: f"of {at}")
    origins._bounds.cache_clear()
    results = version("m2+changes", a=">= 3", b="1 to 2", c="<= 1", d="<= 1") | {"experiment": "toy"}
    checks = results["checks"]
    assert isinstance(checks, list)
    assert [origins.origin("toy", check) for check in checks] == [
        ("of m2", False), ("of c2", True), ("of m2", False), None]
    assert origins.commits(results, checks[1]) == "bound of of c2, measured at m2"
    assert origins.commits(results, checks[3]) == ""
    assert origins.origin("toy", {"name": "a", "bound": ">= 2"}) == ("of m1", False)
    origins._bounds.cache_clear()
    monkeypatch.setattr(origins, "landed", lambda commit: commit != "m1")
    assert origins.origin("toy", {"name": "a", "bound": ">= 2"}) == ("of c1", False)
    origins._bounds.cache_clear()


def test_pages_say_how_many_commits_are_newer() -> None:
    """Those that change the target or the emulator, up to one that the page names; counted anew by --readme alone.

    Results are measured at a commit of this history, or a reader cannot repeat them.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("no history here")
    assert report.newer({"commit": "none"}) is None and report.newer({}) is None
    tree = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD^{tree}"], capture_output=True, text=True, check=True)
    beside = subprocess.run(["git", "-C", ROOT, "-c", "user.name=x", "-c", "user.email=x", "commit-tree", "-m", "x",
                             tree.stdout.strip()], capture_output=True, text=True, check=True)
    assert report.newer({"commit": beside.stdout.strip()}) is None
    for name in MEASURED:
        provenance = _committed(name)["provenance"]
        assert isinstance(provenance, dict) and report.newer(provenance), f"{name}: its commit is not in the history"
        text = (RESULTS / name / "README.md").read_text()
        found = re.findall(r"(\d+) commits? of the target and the emulator (?:are|is) newer, up to (\w+)\.", text)
        assert len(found) == 1, name
        other = text.replace(f"{found[0][0]} commit", "999 commit")
        assert report.update_experiment(other, RESULTS).count("999 commit") == 1
        assert "999 commit" not in report.update_experiment(other, RESULTS, now=True)
