# SPDX-License-Identifier: GPL-2.0
"""`lab schedules` counts boots until a planted bug is found, without guests here."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest
from mtlab.build import target
from mtlab.cmd import schedules, torture
from mtlab.util.base import LabError

BUGS = ["reset-under-readers", "map-blind-store"]
REPORT = "\nlate\nVIOLATION here"


def _run(monkeypatch: pytest.MonkeyPatch, out: Path, honest_fails: int = 0,
         report: str = REPORT) -> dict[str, object]:
    """With guests in which D changes find the first bug by the boot with seed 5 - D, and nothing the second one."""
    def boot(seed: int, cuts: int, args: argparse.Namespace, module: Path | None = None) -> torture.Boot:
        bad = (seed == honest_fails if module is None
               else module.name == BUGS[0] and args.schedule is not None and seed >= 5 - args.schedule)
        return torture.Boot(seed, int(bad), {"cuts": cuts}, report if bad else "", 1, "", 2)

    monkeypatch.setattr(torture, "run_boot", boot)
    monkeypatch.setattr(torture, "buggy_module", lambda name, kernel: Path(name))
    monkeypatch.setattr(target, "need_module", lambda kernel: None)
    args = argparse.Namespace(bugs=BUGS, seed=1, seeds=4, cuts=25, cpus=3, kernel="6.12", jobs=1, json=out)
    assert schedules.schedules(args) == 0
    return json.loads(out.read_text())


@pytest.mark.parametrize(("cpus", "clock", "schedule", "by"), [
    (2, "virtual", None, "stall"), (2, "virtual", 0, "priorities"), (1, "virtual", 0, "stall"),
    (2, "wall", None, "none")])
def test_each_boot_is_disturbed(cpus: int, clock: str, schedule: int | None, by: str) -> None:
    chosen = replace(torture.shape(3), stall=1000)
    expected = {"stall": {"stall": 1000}, "none": {"stall": 0},
                "priorities": {"schedule": 4, "changes": 0, "period": chosen.period}}
    assert torture.turns(3, chosen, cpus, clock, schedule) == expected[by]


def test_boots_are_counted_until_one_finds_the_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _run(monkeypatch, tmp_path / "out.json")["rows"]
    assert [(row["bug"], row["schedule"], row["seeds"], row["found"], row["cuts"]) for row in rows] == [
        (BUGS[0], None, 4, False, 100), (BUGS[0], 0, 4, False, 100), (BUGS[0], 1, 4, True, 100),
        (BUGS[0], 2, 3, True, 75), (BUGS[0], 3, 2, True, 50),
        *((BUGS[1], kind, 4, False, 100) for kind in schedules.KINDS)]
    assert [row["by"] for row in rows if row["found"]] == ["VIOLATION here"] * 3
    assert (tmp_path / "out.svg").stat().st_size > 1000


def test_a_boot_that_fails_without_a_word_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _run(monkeypatch, tmp_path / "out.json", report="")["rows"]
    assert [row["by"] for row in rows if row["found"]] == ["no report"] * 3


def test_what_the_honest_target_fails_at_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LabError, match="seed 4, priorities, 1 change: the target fails without a planted bug"):
        _run(monkeypatch, tmp_path / "out.json", honest_fails=4)


def test_an_unknown_bug_is_refused() -> None:
    with pytest.raises(LabError, match="no planted bug no-such: there are .*map-blind-store"):
        schedules.schedules(argparse.Namespace(bugs=["no-such"]))
