# SPDX-License-Identifier: GPL-2.0
"""Runs a case of shrink.py again: as it was, or on other commits of the target, until the first that loses is known."""

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ..build import kernels, target
from ..util.base import ROOT, LabError, output, say
from . import history, judge, torture
from .shrink import Bench, Case, digest_of, load


def _bench(case: Case) -> Bench:
    kernel = kernels.get(case.kernel)
    if case.bug:
        module = torture.buggy_module(case.bug, kernel)
        return Bench(case.kernel, module, module.parent, case.seed, case.schedule, case.faults)
    return Bench(case.kernel, None, target.SOURCE, case.seed, case.schedule, case.faults)


def replay(folder: Path) -> int:
    """Run a case as it was: 1 if it loses the same."""
    case = load(folder)
    judge.WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="replay-", dir=judge.WORK) as name:
        place = Path(name)
        one_cut = [] if case.by_guest else ["-a", f"{case.place}:{case.state}"]
        boot, verdict = _bench(case).run(history.parse(case.history), place, one_cut)
        same = digest_of(place / "journal") == case.journal
    print(case.history, end="")
    for violation in verdict.violations:
        print(violation.text)
    print(f"the journal is {'the same to the bit' if same else 'another one: other sources or tools'}")
    if boot.status:
        print(boot.report)
    return 1 if verdict.violations or (case.by_guest and boot.status) else 0


def _loses(case: Case, commit: str) -> bool:
    """Does the target of that commit lose anything with this history?"""
    with tempfile.TemporaryDirectory(prefix="bisect-", dir=judge.WORK) as name:
        archive = subprocess.Popen(["git", "-C", ROOT, "archive", commit, "target"], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", name], stdin=archive.stdout, check=True)
        if archive.wait():
            raise LabError(f"git archive {commit}: no such commit")
        sources = Path(name) / "target"
        target.build_module(kernels.get(case.kernel), sources, asserts=True)
        bench = Bench(case.kernel, sources / "dm-mtftl.ko", sources, case.seed, case.schedule, case.faults)
        return any(bench.failing(history.parse(case.history)))


def first_bad(commits: Sequence[str], loses: Callable[[str], bool]) -> str | None:
    """The first of these commits, oldest first, that loses; the last one has to."""
    low, high = 0, len(commits) - 1
    if not commits or not loses(commits[high]):
        return None
    while low < high:
        middle = (low + high) // 2
        bad = loses(commits[middle])
        say(f"{commits[middle][:12]}: {'loses' if bad else 'loses nothing'}, {high - low} commits left")
        low, high = (low, middle) if bad else (middle + 1, high)
    return commits[high]


def bisect(folder: Path, good: str) -> int:
    """Name the commit after a good one with which a case begins to lose."""
    case = load(folder)
    if case.bug:
        raise LabError(f"{folder}: the bug {case.bug} was planted, expected a case of the target itself")
    commits = output(["git", "-C", ROOT, "rev-list", "--reverse", f"{good}..HEAD", "--", "target",
                      ":!target/tests"]).split()
    bad = first_bad(commits, lambda commit: _loses(case, commit))
    print(output(["git", "-C", ROOT, "log", "-1", "--format=first bad commit: %h %s", bad]).strip() if bad
          else f"no commit after {good} loses anything")
    return 1 if bad else 0
