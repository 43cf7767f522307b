# SPDX-License-Identifier: GPL-2.0
"""A violation is shrunk until nothing can be left out, replays to the bit, and has a page with its numbers."""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from mtlab.build import kernels, target
from mtlab.cmd import explain, history, judge, records, replay, shrink, torture
from mtlab.cmd.history import History, Step

BUG = "discard-not-logged"


def _needs_both(histories: Sequence[History]) -> list[History | None]:
    """A bug that takes an overwrite of block 5, and a flush after it."""
    def fails(one: History) -> bool:
        names = [(step.name, step.block) for step in one.steps]
        return names.count(("write", 5)) >= 2 and ("flush", 0) in names[names.index(("write", 5)):]

    return [one if fails(one) else None for one in histories]


def test_what_is_left_is_needed() -> None:
    noise = [Step("fua", at % 5, 2, at % 3, bool(at % 2)) for at in range(40)]
    one = History(3, (*noise[:7], Step("write", 5, 3, 1, True), *noise[7:20], Step("write", 5, 2), *noise[20:],
                      Step("flush", 0, 1, 2), Step("gc")))
    assert shrink.smallest(one, _needs_both) == History(1, (Step("write", 5), Step("write", 5), Step("flush")))


def _deceived(histories: Sequence[History]) -> list[History | None]:
    """The same bug, and what a batch makes of it: the flush seems not to matter."""
    if len(histories) == 1:
        return _needs_both(histories)
    return [begun for one in histories for begun in
            _needs_both([History(one.lanes, (*one.steps[:-1], Step("flush")))])]


def test_what_only_a_batch_shows_is_not_taken() -> None:
    one = History(1, (Step("gc"), Step("write", 5), Step("gc"), Step("write", 5), Step("gc"), Step("flush")))
    assert any(_deceived([one.without(5, 6), one])) and not any(_deceived([one.without(5, 6)]))
    assert shrink.smallest(one, _deceived) == History(1, (Step("write", 5), Step("write", 5), Step("flush")))
    # Nor does what a batch hides remain.
    assert shrink.smallest(one, lambda several: _needs_both(several) if len(several) == 1 else [None] * len(several)
                           ) == History(1, (Step("write", 5), Step("write", 5), Step("flush")))


def test_it_ends_when_it_is_enough() -> None:
    one = History(1, tuple(Step("write", at % 8) for at in range(40)))
    asked = []

    def failing(histories: Sequence[History]) -> list[History | None]:
        asked.append(len(histories))
        return [other if len(other.steps) >= 3 else None for other in histories]

    left = shrink.smallest(one, failing, lambda: len(asked) >= 2)
    assert 3 < len(left.steps) < 40 and len(shrink.smallest(one, failing).steps) == 3


@pytest.mark.parametrize(("output", "summary", "status", "failed"), [
    ("VIOLATION read: block 3\nin workload 1\nin workload 4\n", {"workloads": 6}, 1, [1, 4]),
    ("in workload 1\n", {"cuts": 0}, 1, [1, 5]),       # and the sixth one ended the guest
    ("", {"workloads": 6}, 0, [])])
def test_what_a_guest_found_itself_has_a_history(output: str, summary: dict[str, float], status: int,
                                                failed: list[int]) -> None:
    assert judge.failed_in(torture.Boot(1, status, summary, output, 1, output), 6) == failed


def test_a_history_is_read_as_it_is_written() -> None:
    several = [*history.enumerated(1), history.drawn(3, 30)]
    assert history.parse("".join(map(str, several))) == several
    assert len(several) == 64 and sum(1 for _ in history.enumerated(2)) == 1386
    assert sum(1 for _ in history.enumerated(3)) == 258


def test_to_prepare_is_no_operation() -> None:
    steps = (Step("rest"), Step("fault", 3), Step("linger-gc-send", 0, 8), Step("write"), Step("cut"))
    assert History(1, steps).operations == shrink.Shown(1, steps).operations == 2


@pytest.fixture
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path | None, str, list[History]]]:
    """The module, the drive and the histories of each, in order; none boots.

    A planted bug fails two overwrites of block 5 with a flush. Any module fails a write that is told to fail, and two
    writes of block 7.
    """
    asked: list[tuple[Path | None, str, list[History]]] = []

    def run(seed: int, args: argparse.Namespace, module: Path | None, path: Path,
            histories: Sequence[History]) -> torture.Boot:
        path.write_bytes(b"journal")
        asked.append((module, args.device, list(histories)))
        anyway = [number for number, one in enumerate(histories) if any(step.name == "fault" for step in one.steps)
                  or [(step.name, step.block) for step in one.steps].count(("write", 7)) > 1]
        bad = [number for number, one in enumerate(_needs_both(histories)) if one and module]
        output = "".join(f"in workload {number}\n" for number in sorted({*anyway, *bad}))
        return torture.Boot(seed, bool(output), {"workloads": len(histories)}, output, 1, output)

    def judged(*_args: object) -> judge.Verdict:
        return judge.Verdict({"processor": 1, "workloads": len(asked[-1][2])}, [], "")

    monkeypatch.setattr(judge, "WORK", tmp_path)
    monkeypatch.setattr(shrink, "FOUND", tmp_path / "found")
    for name, value in {"program": lambda _sources: Path(), "journal": run, "judged": judged}.items():
        monkeypatch.setattr(judge, name, value)
    return asked


FIVE, SEVEN, FLUSH = Step("write", 5), Step("write", 7), Step("flush")


@pytest.mark.parametrize(("steps", "left"), [((FIVE, SEVEN, FIVE, FLUSH), (FIVE, FIVE, FLUSH)),
                                             ((SEVEN, FLUSH, SEVEN), None)])
def test_what_the_honest_target_fails_at_is_dropped(
        guests: list[tuple[Path | None, str, list[History]]], tmp_path: Path, steps: tuple[Step, ...],
        left: tuple[Step, ...] | None) -> None:
    bench = shrink.Bench("6.12", Path("dm-mtftl.ko"), Path(), 1)
    found = shrink.shrink("case", bench, shrink.Shown(1, history=History(1, steps)), BUG)
    assert (found and history.parse(found.history)[0].steps) == left
    assert (tmp_path / "found/case").exists() == bool(left)
    # The honest target's turn comes once.
    assert [len(histories) for module, _device, histories in guests if not module] == [1]
    # Nobody plants a bug to show what the target itself loses.
    assert shrink.shrink("case", bench, shrink.Shown(1, history=History(1, (SEVEN, SEVEN))))


@pytest.mark.parametrize("faults", [False, True])
def test_all_histories_of_a_case_have_one_drive(guests: list[tuple[Path | None, str, list[History]]],
                                                faults: bool) -> None:
    """Also those from which the write that fails was left out; what is drawn has as many as the drive stands."""
    bench = shrink.Bench("6.12", Path("dm-mtftl.ko"), Path(), 1, faults=faults)
    start = (FIVE, FIVE, FLUSH, *[Step("fault", 1)] * faults)
    found = shrink.shrink("case", bench, shrink.Shown(1, history=History(1, start)), "")
    assert found and found.faults == faults
    shrink._first(bench, shrink.Shown(1, linger=True))
    assert {device for _module, device, _histories in guests} == {judge.SPARED if faults else judge.SMALLEST}
    drawn = [str(one).count("fault") for *_, histories in guests for one in histories if len(one.steps) > 20]
    assert len(drawn) >= shrink.DRAWS and all(bool(faults) <= number <= history.MOST_FAULTS * faults
                                              for number in drawn)
    replay._bench(shrink.load(shrink.FOUND / "case")).failing([History(1, start)])
    assert guests[-1][1] == guests[0][1]


@pytest.mark.parametrize("first", range(9))
def test_the_first_bad_commit_is_named(first: int) -> None:
    asked: list[str] = []

    def loses(commit: str) -> bool:
        asked.append(commit)
        return int(commit) >= first

    assert replay.first_bad([str(number) for number in range(9)], loses) == str(first) and len(asked) <= 5
    assert replay.first_bad([str(number) for number in range(first)], loses) is None


@pytest.fixture(scope="module")
def case(emulator_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[shrink.Bench, Path]:
    """A planted bug's case, shrunk from drawn operations."""
    kernel = kernels.get(kernels.DEFAULT)
    module = torture.buggy_module(BUG, kernel)
    bench = shrink.Bench(kernels.DEFAULT, module, module.parent, seed=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shrink, "FOUND", tmp_path_factory.mktemp("found"))
        found = shrink.shrink("case", bench, shrink.Shown(1, history.drawn(1, 40).steps), BUG)
        assert found
        return bench, shrink.FOUND / "case"


def test_no_operation_can_be_left_out(case: tuple[shrink.Bench, Path]) -> None:
    bench, folder = case
    found = shrink.load(folder)
    one, = history.parse(found.history)
    # Of several histories that need all their operations, which one is met depends on the instruction. It is short.
    assert found.after <= 20 < found.before and found.after == one.operations
    assert all(bench.failing([one]))
    # Each in a guest of its own.
    assert not any(any(bench.failing([one.without(at, at + 1)])) for at in range(len(one.steps)))
    # And it is the bug: the target itself loses nothing.
    assert not any(shrink.Bench(kernels.DEFAULT, None, target.SOURCE, found.seed).failing([one]))


def test_it_replays_to_the_bit(lab: Path, case: tuple[shrink.Bench, Path]) -> None:
    _bench, folder = case
    done = subprocess.run([sys.executable, "-B", lab, "cuts", "--replay", folder], capture_output=True, text=True)
    assert done.returncode == 1 and "the same to the bit" in done.stdout, done.stdout + done.stderr
    assert shrink.load(folder).says in done.stdout


def test_the_page_has_the_numbers_of_the_run(case: tuple[shrink.Bench, Path]) -> None:
    _bench, folder = case
    found, page = shrink.load(folder), (folder / "page.html").read_text()
    told = json.loads((folder / "cut.json").read_text())
    notes = list(records.notes(folder / "journal", found.place))
    # The drive is formatted for the history: what the guest did before is not part of the case.
    formatted = max(at for at, note in enumerate(notes) if note.kind == records.NOTE_FORMATTED)
    begun = [note for note in notes[formatted:] if note.kind in records.BEGINS]
    # The first and the last operation, and the cut, at their own instants.
    for now in (begun[-1].now, told["now"]):
        assert f"{(now - begun[0].now) / 1000:.3f}" in page
    # The block that is wrong has the version that the judge found, and the promised one is another.
    block, version = map(int, re.findall(r"block (\d+): .*found version (\d+)", found.says)[0])
    assert told["versions"][block] == version
    came = explain.came_back(explain.operations(folder / "journal", found.place), told["versions"], block)
    wrong, = (one for one in came if one.wrong)
    assert (wrong.block, wrong.found) == (block, version) and wrong.acknowledged != version
    assert f"lab cuts --replay {folder}" in page and page.count("<rect") > len(explain.FATES)
