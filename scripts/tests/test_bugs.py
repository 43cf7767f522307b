# SPDX-License-Identifier: GPL-2.0
"""`lab bugs` tries one method after the other, within its time, and keeps rows; without guests here."""

import argparse
import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mtlab.build import target
from mtlab.cmd import bugs, shrink, torture
from mtlab.cmd.bugs import Look
from mtlab.util.base import LabError

FOUND, LOST = "discard-not-logged", "gc-waits-unaware"


def _args(out: Path, **more: object) -> argparse.Namespace:
    return argparse.Namespace(**{"bugs": [FOUND, LOST], "seed": 1, "seconds": 100.0, "shrink_seconds": 0.0,
                                 "methods": [*bugs.METHODS],
                                 "kernel": "6.12", "timeout": 60, "jobs": 1, "json": out} | more)


def _run(monkeypatch: pytest.MonkeyPatch, out: Path, **more: object) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """The tries, in their order, and the rows, if the fourth boot of lingering finds the first bug."""
    tries: list[str] = []

    def boot(bug: str, method: str, seed: int, _args: argparse.Namespace) -> Look:
        tries.append(f"{bug} {method} {seed}")
        return Look(10.0, 5, "VIOLATION" if (bug, method, seed) == (FOUND, "lingering", 4) else "", shrink.Shown(seed))

    monkeypatch.setattr(bugs, "_boot", boot)
    monkeypatch.setattr(bugs, "_counters", lambda bug, seed, args: boot(bug, "counters", seed, args))
    monkeypatch.setattr(target, "need_module", lambda kernel: None)
    bugs.bugs(_args(out, **more))
    return tries, {row["bug"]: row for row in json.loads(out.read_text())["bugs"]}


def test_methods_follow_each_other_until_one_finds_the_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries, rows = _run(monkeypatch, tmp_path / "out.json")
    assert [name for name in tries if name.startswith(FOUND)] == [
        *(f"{FOUND} {method} {seed}" for method, seed in (
            ("drawn", 1), ("drawn", 2), ("lingering", 1), ("lingering", 2), ("faults", 1), ("lingering", 3),
            ("lingering", 4)))]
    row = rows[FOUND]
    assert (row["method"], row["cuts"], row["seconds"], row["says"]) == ("lingering", 35, 70, "VIOLATION")
    assert row["tried"] == {"drawn": {"times": 2, "cuts": 10, "seconds": 20},
                            "lingering": {"times": 4, "cuts": 20, "seconds": 40},
                            "faults": {"times": 1, "cuts": 5, "seconds": 10}}


def test_it_ends_when_its_time_is_used_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries, rows = _run(monkeypatch, tmp_path / "out.json")
    assert len([name for name in tries if name.startswith(LOST)]) == 10
    assert not rows[LOST]["method"] and rows[LOST]["test"].endswith("gc_that_waits_for_space_tries_resets_again.sh")
    tries, rows = _run(monkeypatch, tmp_path / "longer.json", seconds=400.0)
    assert {"stalls", "priorities", "counters"} <= set(rows[LOST]["tried"]) and len(tries) == 7 + 40


def test_only_these_methods_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _run(monkeypatch, tmp_path / "out.json", methods=["lingering", "stalls"])[1]
    assert set(rows[LOST]["tried"]) == {"lingering", "stalls"}
    assert not [*bugs._tries("torn-unit-ends-scan", _args(tmp_path, methods=["model"]))]


@pytest.mark.parametrize(("method", "schedule"), [("judge", None), ("drawn", None), ("priorities", 2)])
def test_what_each_method_found_is_shrunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str,
                                          schedule: int | None) -> None:
    """With the schedule of the boots that found it, and within the time for that."""
    asked: list[object] = []
    numbers = argparse.Namespace(numbers=lambda: {"before": 47, "after": 3})

    def bench(*args: object) -> argparse.Namespace:
        asked.append(args[4])
        return argparse.Namespace(worked=0)

    def shrunk(_name: str, _bench: object, _shown: object, bug: str, seconds: float) -> argparse.Namespace:
        asked.append((bug, seconds))
        return numbers

    monkeypatch.setattr(bugs, "_tries", lambda bug, args: iter([(method, lambda: Look(1.0, 2, "VIOLATION",
                                                                                      shrink.Shown(1)))]))
    monkeypatch.setattr(bugs.shrink, "Bench", bench)
    monkeypatch.setattr(bugs.shrink, "shrink", shrunk)
    monkeypatch.setattr(torture, "buggy_module", lambda name, kernel: tmp_path / "dm-mtftl.ko")
    row = bugs._row(FOUND, _args(tmp_path / "out", shrink_seconds=9.0))
    assert row["shrunk"] == {"before": 47, "after": 3} and asked == [schedule, (FOUND, 9.0)]


def test_methods_do_not_take_the_bugs_name(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    bugs.add_command(parser.add_subparsers())
    args = parser.parse_args(["bugs", "--methods", "judge,drawn", FOUND])
    assert (args.methods, args.bugs) == (["judge", "drawn"], [FOUND])
    with pytest.raises(SystemExit):
        parser.parse_args(["bugs", "--methods", f"judge,{FOUND}"])
    assert f"--methods: no method {FOUND}: there are model, judge," in capsys.readouterr().err


def test_what_a_kernel_cannot_do_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LabError, match="--kernel kasan: it cannot do lingering, faults, counters, expected other "):
        _run(monkeypatch, tmp_path / "out.json", kernel="kasan")
    with pytest.raises(LabError, match="--kernel kcsan: it cannot do priorities, counters, expected"):
        _run(monkeypatch, tmp_path / "out.json", kernel="kcsan", methods=["stalls", "priorities", "counters"])
    bugs._need_kernel(_args(tmp_path, kernel="kcsan", methods=["stalls", "drawn"]))


def test_rows_are_kept_until_the_target_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.json"
    first = _run(monkeypatch, out, bugs=[FOUND])[1]
    tries, rows = _run(monkeypatch, out)
    assert rows[FOUND] == first[FOUND] and {name.split()[0] for name in tries} == {LOST}
    monkeypatch.setattr(bugs, "_methods", lambda: "another")
    assert {name.split()[0] for name in _run(monkeypatch, out)[0]} == {FOUND, LOST}


@pytest.mark.parametrize("more", [{"methods": ["drawn"]}, {"seconds": 20.0}, {"seed": 2}, {"shrink_seconds": 9.0},
                                  {"kernel": "6.1"}])
def test_rows_are_kept_for_the_same_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                            more: dict[str, Any]) -> None:
    out = tmp_path / "out.json"
    monkeypatch.setattr(bugs.kernels, "get", lambda name: argparse.Namespace(release=name))
    monkeypatch.setattr(bugs.shrink, "shrink", lambda *_args: None)
    monkeypatch.setattr(bugs.shrink, "Bench", lambda *_args: argparse.Namespace(worked=0))
    monkeypatch.setattr(torture, "buggy_module", lambda name, kernel: tmp_path / "dm-mtftl.ko")
    first = _run(monkeypatch, out)[1]
    tries, rows = _run(monkeypatch, out, bugs=[LOST], **more)
    assert tries and rows[LOST]["inputs"] != first[LOST]["inputs"]
    assert rows[LOST]["asked"] == first[LOST]["asked"] | more and not _run(monkeypatch, out, bugs=[LOST], **more)[0]
    # The other bug's row says what it was, and holds.
    assert rows[FOUND] == first[FOUND] and not _run(monkeypatch, out, bugs=[FOUND])[0]
    assert set(json.loads(out.read_text())) == {"methods", "bugs"}


def test_the_cheapest_come_first() -> None:
    """The host alone, if the bug is in what runs there."""
    def first(bug: str) -> str:
        tries: Iterator[tuple[str, Callable[[], Look]]] = bugs._tries(bug, _args(Path("out")))
        return next(tries)[0]

    assert [first(bug) for bug in ("users-empty-the-reserve", "torn-unit-ends-scan", "map-blind-store")] == [
        "model", "judge", "drawn"]


def test_the_checker_finds_a_bug_of_admission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bugs.judge, "WORK", tmp_path)
    assert bugs._model("gc-leaves-nothing-for-a-failed-write", _args(tmp_path / "out")).says


def test_the_checkers_time_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it runs, a child of another job works and ends."""
    (tmp_path / "make").write_text(f"#!/bin/sh\ncd {tmp_path}\n: >begun\nread line <ended\necho 'wrong: it'\nexit 2\n")
    (tmp_path / "make").chmod(0o755)
    os.mkfifo(tmp_path / "begun")
    os.mkfifo(tmp_path / "ended")
    monkeypatch.setattr(bugs.judge, "WORK", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with ThreadPoolExecutor() as other:
        look = other.submit(bugs._model, "users-empty-the-reserve", _args(tmp_path / "out"))
        (tmp_path / "begun").read_text()
        subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 1: pass"], check=True)
        (tmp_path / "ended").write_text("now\n")
    assert look.result().says == "wrong: it" and look.result().seconds < 0.5


def test_what_the_honest_target_fails_at_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = torture.Boot(1, 1, {"cuts": 3}, "VIOLATION here", 1, "", 2)
    verdict = bugs.judge.Verdict({"cuts": 1, "processor": 1, "workloads": 1}, [], "")
    outcome = bugs.cuts.Outcome(1, {}, {}, 0, 0, 0, "the guest's own cuts: VIOLATION here", 1)
    monkeypatch.setattr(bugs.judge, "WORK", tmp_path)
    for name, value in {"journal": failed, "judged": verdict, "program": Path()}.items():
        monkeypatch.setattr(bugs.judge, name, functools.partial(lambda value, *_args: value, value))
    monkeypatch.setattr(torture, "buggy_module", lambda name, kernel: tmp_path / "dm-mtftl.ko")
    monkeypatch.setattr(bugs.cuts, "_boot", lambda seed, run: outcome)
    with pytest.raises(LabError, match="seed 3, stalls: the target fails without a planted bug, too"):
        bugs._boot(FOUND, "stalls", 3, _args(tmp_path / "out"))


@pytest.mark.parametrize(("pairs", "says"), [
    ([({"full to victim": 90, "victim to full": 52}, {"full to victim": 80, "victim to full": 6}),
      ({"victim to full": 3}, {"victim to full": 6})],
     "zones went from victim to full 52, 3 times, without the bug 6, 6 times"),
    ([({"victim to full": 30}, {"victim to full": 10}), ({"victim to full": 30}, {"victim to full": 20})], ""),
    ([({"full to bad": 16}, {})], "zones went from full to bad 16 times, without the bug 0 times"),
    ([({"full to bad": 15}, {})], ""), ([({}, {"full to bad": 99})], "")])
def test_a_count_is_odd_in_all_workloads_together(pairs: list[tuple[dict[str, int], dict[str, int]]],
                                                  says: str) -> None:
    assert bugs.odd(pairs) == says


def test_counters_compare_the_same_workloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with the bug and without; what the honest target counted is kept."""
    ran: list[tuple[int, bool]] = []

    def boot(seed: int, _cuts: int, _args: argparse.Namespace, module: Path | None, workload: int,
             counted: bool) -> torture.Boot:
        assert seed == 2 and counted
        ran.append((workload, module is not None))
        times = 40 if module and odd else 3
        return torture.Boot(seed, 0, {"cuts": 7}, "", 1, f"{{ from:   5, to:  4 }} hitcount:    {times}\n", 2)

    monkeypatch.setattr(torture, "run_boot", boot)
    monkeypatch.setattr(torture, "buggy_module", lambda name, kernel: tmp_path / "dm-mtftl.ko")
    bugs._honest_counts.cache_clear()
    odd = True
    look = bugs._counters(LOST, 2, _args(tmp_path / "out"))
    assert (look.says, look.cuts, look.seconds) == (
        "zones went from victim to full 40, 40, 40 times, without the bug 3, 3, 3 times", 21, 6)
    assert ran == [(workload, planted) for workload in (2, 1002, 2002) for planted in (False, True)]
    ran.clear()
    odd = False
    assert not bugs._counters(LOST, 2, _args(tmp_path / "out")).says
    assert ran == [(workload, True) for workload in (2, 1002, 2002)]
    bugs._honest_counts.cache_clear()


def test_one_honest_journal_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def journal(seed: int, _run: argparse.Namespace, _module: object, path: Path) -> torture.Boot:
        made.append(seed)
        path.write_text(str(seed))
        return torture.Boot(seed, 0, {}, "", 1, "")

    monkeypatch.setattr(bugs.judge, "WORK", tmp_path)
    monkeypatch.setattr(bugs.judge, "journal", journal)
    monkeypatch.setattr(bugs.cuts, "_inputs", lambda seed, run: f"inputs-{seed}")
    for seed in (1, 1, 2):
        path = bugs._honest_journal(seed, argparse.Namespace())
        assert path.read_text() == str(seed) and [*path.parent.iterdir()] == [path]
    assert made == [1, 2]


def test_the_table_says_what_only_a_test_finds() -> None:
    rows = [{"bug": "one", "method": "drawn", "cuts": 1234, "seconds": 4.4,
             "shrunk": {"before": 47, "after": 5, "seconds": 90.0}},
            *({"bug": name, "method": "", "cuts": 99, "seconds": 600.0, "shrunk": {}, "test": test}
              for name, test in (("two", "target/tests/guest/two.sh"), ("three", "")))]
    lines = bugs.table(rows).splitlines()
    assert lines[2:5] == ["| one | drawn | 1,234 | 4 | 47 | 5 | 1.5 |", "| two | only its test | 99 | 600 |  |  | |",
                          "| three | not found | 99 | 600 |  |  | |"]
    assert lines[-1] == ("1 of 3 were found by a general method; of 1 that were shrunk the median is 5 operations")
