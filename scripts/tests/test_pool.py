# SPDX-License-Identifier: GPL-2.0
"""Work side by side: its order, what is said meanwhile, and how it ends; without a guest."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest
from mtlab.util import base, pool, stop


@pytest.fixture(autouse=True)
def durations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pool, "DURATIONS", tmp_path / "durations")
    return tmp_path / "durations"


def test_the_longest_begins_first_and_each_is_told_as_it_ends() -> None:
    """The long one waits for all the others: they are told before it."""
    begun: list[str] = []
    told: list[tuple[str, int]] = []
    others = threading.Semaphore(0)

    def work(name: str) -> Callable[[], int]:
        def one() -> int:
            begun.append(name)
            for _ in range(3 if name == "long" else 0):
                assert others.acquire(timeout=60)
            return len(name)
        return one

    def done(job: pool.Job[int], future: "Future[int]", left: str) -> None:
        told.append((job.name, future.result()))
        assert left.startswith(f"{len(told)} of 4 done, about ")
        others.release()

    jobs = [pool.Job(name, work(name), seconds) for name, seconds in (("a", 1), ("bb", 3), ("long", 9), ("ccc", 1))]
    pool.side_by_side(jobs, 2, done)
    assert begun == ["long", "bb", "a", "ccc"]
    assert sorted(told[:3]) == [("a", 1), ("bb", 2), ("ccc", 3)] and told[3] == ("long", 4)


def test_an_error_is_told_and_the_others_go_on() -> None:
    told: dict[str, str] = {}

    def fail() -> str:
        raise base.LabError("as asked")

    def done(job: pool.Job[str], future: "Future[str]", _left: str) -> None:
        told[job.name] = str(future.exception() or future.result())

    pool.side_by_side([pool.Job("a", fail, 2), pool.Job("b", lambda: "fine", 1)], 1, done)
    assert told == {"a": "as asked", "b": "fine"}


def test_who_is_interrupted_stops_the_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has not begun never begins; what runs is told to stop, because it would take too long."""
    told, runs, begun = threading.Event(), threading.Event(), []
    monkeypatch.setattr(stop, "stop_all", told.set)

    def guest() -> None:
        runs.set()
        begun.append(told.wait(60))

    def done(_job: pool.Job[None], _future: "Future[None]", _left: str) -> None:
        raise KeyboardInterrupt

    jobs = [pool.Job("short", lambda: None if runs.wait(60) else pytest.fail(), 9), pool.Job("guest", guest, 8),
            *(pool.Job(f"never {n}", guest, 1) for n in range(50))]
    with pytest.raises(KeyboardInterrupt):
        pool.side_by_side(jobs, 2, done)
    assert begun in ([True], [True, True])          # the free worker may have taken another one


@pytest.mark.parametrize("turn", [1, 2])
def test_what_one_test_stops_another_one_runs(turn: int) -> None:
    stop.pulse()
    stop.stop_all()
    with pytest.raises(KeyboardInterrupt):
        stop.pulse()


def test_what_is_left_follows_from_who_runs_beside_whom() -> None:
    assert pool.time_left([], [], 2) == 0
    assert pool.time_left([4, 3, 3], [], 2) == 6
    assert pool.time_left([5], [2, 10], 2) == 10
    assert pool.time_left([5], [-3, 1], 2) == 5             # one that takes longer than expected ends any moment
    assert pool.in_words(59) == "59 s" and pool.in_words(600) == "10 min"


def test_the_estimate_follows_the_pace() -> None:
    """All takes twice as long as it did before."""
    queue = pool._Queue([pool.Job(str(n), lambda: None, 100) for n in range(4)], 1)
    now = pool.time.monotonic()
    queue.began["0"] = now - 200
    queue.end(queue.jobs[0])
    assert queue.left() == "1 of 4 done, about 10 min left"
    queue.began["1"] = now - 100
    assert queue.left() == "1 of 4 done, about 8 min left"
    assert queue.line().endswith("left: 1")


def test_durations_are_kept(durations: Path) -> None:
    assert pool.known("x") == {}
    pool.remember("x", {"a": 1.5, "b": 2})
    pool.remember("x", {"b": 3})
    assert pool.known("x") == {"a": 1.5, "b": 3}
    (durations / "x").write_text("no JSON")
    assert pool.known("x") == {}


class _Terminal:
    """What a terminal shows of the standard error: carriage returns begin the line anew."""

    def __init__(self, is_one: bool) -> None:
        self.is_one, self.text = is_one, ""

    def isatty(self) -> bool:
        return self.is_one

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass

    def lines(self) -> list[str]:
        return [line.rpartition("\033[K")[2] for line in self.text.split("\n")]


def test_a_terminal_has_one_line_that_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal(True)
    monkeypatch.setattr(sys, "stderr", terminal)
    base.progress("1 of 3")
    base.progress("2 of 3")
    base.say("said meanwhile")
    assert len(terminal.lines()) == 2
    assert terminal.lines()[0].endswith("said meanwhile") and terminal.lines()[1] == "2 of 3"
    base.progress("")
    assert terminal.lines()[1] == ""


def test_what_is_told_begins_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, told = _Terminal(True), []
    monkeypatch.setattr(sys, "stderr", terminal)

    go_on = threading.Event()

    def done(_job: pool.Job[bool], _future: "Future[bool]", _left: str) -> None:
        told.append(terminal.lines()[-1])
        go_on.set()

    pool.side_by_side([pool.Job("a", lambda: True, 2), pool.Job("b", lambda: go_on.wait(60), 1)], 1, done)
    assert told == ["", ""] and terminal.lines()[-1] == "" and "1 of 2 done" in terminal.text


def test_elsewhere_there_are_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _Terminal(False)
    monkeypatch.setattr(sys, "stderr", plain)
    base.progress("1 of 3")
    base.say("said")
    assert plain.text.endswith("said\n") and "\r" not in plain.text and "1 of 3" not in plain.text
