# SPDX-License-Identifier: GPL-2.0
"""Makes a violation that `lab cuts` found small enough to be understood.

A long run's operations are taken to the smallest drive, and those without which a block is lost as well are left out,
until none can be (delta debugging). Each guest tries many histories, one behind the other. If a bug was planted, the
target itself must pass what is left. Then the cut is chosen that differs least from the emulator's own. That is a case:
a folder from which it is replayed to the bit.
"""

import argparse
import hashlib
import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..build import target
from ..util.base import LabError, say, write_file
from . import explain, history, judge, torture
from .history import History, Step

FOUND = judge.WORK / "found"
CPUS = 3
STATES = 4096               # of an instant, so that each can be the simplest one
WINDOWS = 12, 24, 48        # operations in front of the cut that are tried first
DRAWS, DRAWN = 24, 40       # histories of a batch, and their operations, if these show nothing
BATCHES = 4
NO_PLACE = -1
NOT_SHOWN = "not shrunk: neither these operations nor drawn ones show it on the smallest drive"


@dataclass(frozen=True)
class Shown:
    """What has shown a violation: the operations of a run, or a history of the smallest drive; or nothing of both."""

    seed: int               # of the guest's schedule
    steps: Sequence[Step] = ()
    history: History | None = None
    linger: bool = False    # threads stand still at points, if others are drawn

    @property
    def operations(self) -> int:
        return history.operations(self.history.steps if self.history else self.steps)


@dataclass(frozen=True)
class Case:
    """All that a violation is a function of, besides the sources, and what it is."""

    bug: str                # that was planted; "": none
    kernel: str
    seed: int               # of the guest's schedule
    history: str
    place: int
    state: int
    choices: int
    journal: str            # its digest
    says: str
    before: int             # operations of the run that showed it first; 0: not counted
    after: int
    tried: int              # histories
    seconds: float          # of the host's processors
    commit: str
    schedule: int | None = None     # changes of priorities; nothing: CPUs stand still now and then
    faults: bool = False    # on the drive for writes that fail
    by_guest: bool = False  # it found it itself: there is no place of a cut

    def numbers(self) -> dict[str, object]:
        """Of what shrinking came to."""
        return {"before": self.before, "after": self.after, "choices": self.choices, "tried": self.tried,
                "seconds": self.seconds, "seed": self.seed, "history": self.history.splitlines()}

    def summary(self, name: str) -> str:
        """Lines for the person who sees the violation."""
        return (f"{self.before} operations, shrunk to {self.after} with {self.tried} histories in {self.seconds} s:\n"
                f"{self.history}replay: scripts/lab cuts --replay {FOUND / name}")


class Bench:
    """Runs histories with one module on one drive, and lets the judge look at all cuts of each."""

    def __init__(self, kernel: str, module: Path | None, sources: Path, seed: int, schedule: int | None = None,
                 faults: bool = False) -> None:
        self.kernel, self.module, self.program = kernel, module, judge.program(sources)
        self.seed, self.schedule, self.faults, self.tried, self.worked = seed, schedule, faults, 0, 0.0
        self._args = argparse.Namespace(kernel=kernel, cpus=CPUS, timeout=600, verbose=False, schedule=schedule,
                                        device=judge.drive(faults))

    def run(self, histories: Sequence[History], place: Path,
            more: Sequence[str | Path] = ()) -> tuple[torture.Boot, judge.Verdict]:
        """One guest."""
        boot = judge.journal(self.seed, self._args, self.module, place / "journal", histories)
        verdict = judge.judged(self.program, self.seed, place / "journal", place, 0, STATES, more)
        self.worked += boot.worked + verdict.summary["processor"]
        return boot, verdict

    def failing(self, histories: Sequence[History]) -> list[History | None]:
        """For each history what of it had begun when a cut lost something; nothing if none did."""
        found: list[History | None] = [None] * len(histories)
        first = 0
        while first < len(histories):
            with tempfile.TemporaryDirectory(prefix="shrink-", dir=judge.WORK) as folder:
                boot, verdict = self.run(histories[first:], Path(folder))
                for violation in verdict.violations:
                    at = first + (violation.workload or 0)
                    begun = judge.steps_begun(Path(folder) / "journal", violation, histories[at])
                    found[at] = replace(histories[at], steps=histories[at].steps[:begun])
            ran = int(verdict.summary["workloads"])
            for number in judge.failed_in(boot, ran):
                found[first + number] = found[first + number] or histories[first + number]
            if not ran:
                raise LabError(f"no history began\n{boot.report}")
            # If a history ended the guest, go on behind it.
            first += ran
        self.tried += len(histories)
        return found


def _size(one: History) -> tuple[int, ...]:
    return (len(one.steps), sum(step.nr for step in one.steps), sum(step.together for step in one.steps), one.lanes,
            sum(step.cpu for step in one.steps))


Failing = Callable[[Sequence[History]], list[History | None]]
Edit = dict[int, dict[str, Any]]    # what becomes of which steps: other fields; none: the step is left out
_PLAIN: tuple[dict[str, Any], ...] = {"nr": 1}, {"together": False}, {"cpu": 0}


def _edited(one: History, edits: Sequence[Edit]) -> History:
    """The history with all of these edits. Lanes go with the CPUs that used them."""
    steps = []
    for at, step in enumerate(one.steps):
        changes = [edit[at] for edit in edits if at in edit]
        if all(changes):
            steps.append(step._replace(**{field: value for change in changes for field, value in change.items()}))
    moved = any("cpu" in change for edit in edits for change in edit.values())
    return History(1 + max((step.cpu for step in steps), default=0) if moved else one.lanes, tuple(steps))


def _edits(one: History, size: int) -> list[Edit]:
    """Leave out each chunk of so many steps. With a size of 0: leave out, or make simpler, each step or all of them."""
    every = range(len(one.steps))
    chunks: list[Edit] = [{at: {} for at in every[first:first + (size or 1)]} for first in every[::size or 1]]
    if size:
        return chunks
    plain: list[Edit] = [*(dict.fromkeys(every, fields) for fields in _PLAIN),
                         *({at: fields} for at in every for fields in _PLAIN)]
    return chunks + [edit for edit in plain if _edited(one, [edit]) != one]


def _first_alone(histories: Sequence[History], failing: Failing) -> History | None:
    """The first of these that fails in a guest of its own: in a batch those before it leave traces in the guest."""
    return next((one for one in histories if any(failing([one]))), None)


def _likely(tried: Sequence[History], found: Sequence[History | None]) -> list[History]:
    """What failed in a batch, and what of it had begun by then, smallest first."""
    return sorted(dict.fromkeys(one for whole, begun in zip(tried, found, strict=True) if begun
                                for one in (begun, whole)), key=_size)


def smallest(one: History, failing: Failing, enough: Callable[[], bool] = lambda: False) -> History:
    """Leave out as many steps as can be: in the end none can be left out or made simpler, unless it is enough before.

    A batch says what is likely to fail. Only what then fails alone is taken, and at last all that is left is tried so.
    """
    size = max(1, len(one.steps) // 2)
    ahead: list[History] = []       # with all edits that do alone, and with half of them
    while not enough():
        edits = _edits(one, size)
        tried = [*ahead, *(_edited(one, [edit]) for edit in edits)]
        found = failing(tried)
        good = [edit for edit, other in zip(edits, found[len(ahead):], strict=True) if other]
        likely = _likely(tried, found)
        rest = [] if size else [other for other in tried if other not in likely]
        best = _first_alone([other for other in [*likely, *rest] if _size(other) < _size(one)], failing)
        if best:
            ahead = [other for number in (len(good), len(good) // 2) if number > 1
                     and _size(other := _edited(one, good[:number])) < _size(best)]
            one = best
            size = min(size, max(1, len(one.steps) // 2))
        elif not size:
            return one
        else:
            ahead = []
            size //= 2
    return one


def _batches(shown: Shown, faults: bool) -> Iterator[tuple[int, list[History]]]:
    """Histories that may show what was shown, and seeds: first a run's last operations, then drawn ones."""
    seed = shown.seed
    yield seed, [shown.history] if shown.history else list(history.windows(shown.steps, WINDOWS))
    for batch in range(1, BATCHES + 1):
        yield seed + batch, [history.workload(seed * 1000 + batch * DRAWS + number, DRAWN, shown.linger, faults)
                             for number in range(DRAWS)]


def _first(bench: Bench, shown: Shown) -> History | None:
    """A history that fails, if one is found; the bench keeps its seed."""
    for seed, histories in _batches(shown, bench.faults):
        bench.seed = seed
        one = _first_alone(_likely(histories, bench.failing(histories)), bench.failing)
        if one:
            return one
    return None


def _honest_passes(bench: Bench, one: History) -> bool:
    """Does the target itself lose nothing with this history? Otherwise it is not the planted bug that shows."""
    honest = Bench(bench.kernel, None, target.SOURCE, bench.seed, bench.schedule, bench.faults)
    lost = any(honest.failing([one]))
    bench.worked += honest.worked
    return not lost


def _simplest_cut(bench: Bench, one: History, folder: Path) -> judge.Violation | None:
    """In a guest of its own, the violation of the cut that takes the fewest choices; its journal stays there.

    If only the guest itself finds something wrong, there is no cut: the violation has no place.
    """
    boot, verdict = bench.run([one], folder, ["-w"])
    if verdict.violations:
        return verdict.violations[-1]
    return judge.Violation(judge.said(boot), boot.report, NO_PLACE, 0, 0, 0) if boot.status else None


def digest_of(path: Path) -> str:
    """Of a journal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _explain(bench: Bench, case: Case, folder: Path) -> None:
    """Make the one cut again, for the page."""
    tale = folder / "cut.json"
    verdict = judge.judged(bench.program, case.seed, folder / "journal", folder, 0, STATES,
                           ["-a", f"{case.place}:{case.state}", "-x", tale])
    explain.write(folder, case, verdict.report, tale)


def shrink(name: str, bench: Bench, shown: Shown, bug: str = "", seconds: float = math.inf) -> Case | None:
    """The case of what was shown; nothing if it does not show on the smallest drive, or without the planted bug, too.

    After so many seconds of a processor it stays as small as it is then.
    """
    start = _first(bench, shown)
    if not start:
        return None
    one = smallest(start, bench.failing, lambda: bench.worked > seconds)
    if bug and not _honest_passes(bench, one):
        say(f"{name}: dropped, because the target fails without the planted bug, too:\n{one}")
        return None
    folder = FOUND / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    violation = _simplest_cut(bench, one, folder)
    if not violation:
        return None
    case = Case(bug, bench.kernel, bench.seed, str(one), violation.place, violation.state, violation.choices,
                digest_of(folder / "journal"), violation.says, shown.operations, one.operations, bench.tried,
                round(bench.worked, 1), torture.commit(), bench.schedule, bench.faults,
                violation.place == NO_PLACE)
    write_file(folder / "case.json", json.dumps(asdict(case), indent=1) + "\n")
    if not case.by_guest:
        _explain(bench, case, folder)
    say(f"{name}: {case.before} operations, then {case.after}")
    return case


def load(folder: Path) -> Case:
    """The case that a folder has."""
    try:
        return Case(**json.loads((folder / "case.json").read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise LabError(f"{folder}: expected the folder of a case ({error})") from error
