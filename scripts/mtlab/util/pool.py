# SPDX-License-Identifier: GPL-2.0
"""Work side by side: longest first, results as they come, one line that says what is left and for how long.

Work is done in threads here. Jobs that are functions of their inputs may go to other machines instead: to whatever has
the interface of Elsewhere, which gives futures of concurrent.futures, too.

How long something takes is what it took before, kept below build/durations; it decides about the order and the
estimate, never about a result.
"""

import functools
import heapq
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from . import stop
from .base import BUILD, progress, write_file

T = TypeVar("T")
DURATIONS = BUILD / "durations"
TICK = 1.0                  # seconds between two lines of progress in a terminal


@dataclass(frozen=True)
class Far(Generic[T]):
    """How a job is done by another machine, which gets inputs, work and again pickled."""

    key: str                            # a digest of all that the result is a function of
    inputs: Callable[[], str]           # that digest, as the other machine finds it
    work: Callable[[], T]
    again: Callable[[], T]              # the same, even if something kept a result of it
    proof: Callable[[T], object]        # of a result: what is the same each time
    wanted: Callable[[], bool] = lambda: True       # asked here when it is the job's turn; if not, its result is None


@dataclass(frozen=True)
class Job(Generic[T]):
    """Something to do, and about how many seconds it takes."""

    name: str
    work: Callable[[], T]
    seconds: float
    far: Far[T] | None = None           # nothing: it is done here


class Elsewhere(Protocol):
    """Other machines, which do jobs."""

    slots: int              # how many they do side by side

    def submit(self, job: Job[Any], begin: Callable[[], None]) -> "Future[Any]":
        """Have a job done that has `far`; begin is called when it is its turn."""

    def cancel(self) -> None:
        """Let go of all jobs that have not ended."""


def known(kind: str) -> dict[str, float]:
    """What took how long when it was last done; nothing where that cannot be read."""
    try:
        return {name: float(seconds) for name, seconds in json.loads((DURATIONS / kind).read_text()).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def remember(kind: str, took: Mapping[str, float]) -> None:
    """Keep what something took, for the next time."""
    both = known(kind) | {name: round(seconds, 3) for name, seconds in took.items()}
    write_file(DURATIONS / kind, json.dumps(both, indent=1, sort_keys=True) + "\n")


def time_left(waiting: Sequence[float], running: Sequence[float], at_once: int) -> float:
    """Seconds until all is done, the waiting ones in their order."""
    ends = [max(0.0, seconds) for seconds in running] + [0.0] * (at_once - len(running))
    heapq.heapify(ends)
    for seconds in waiting:
        heapq.heappush(ends, heapq.heappop(ends) + seconds)
    return max(ends, default=0.0)


def in_words(seconds: float) -> str:
    """About how long that is."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class _Queue(Generic[T]):
    """Jobs on their way. All is one thread's, except `began`: each job enters itself there when it begins."""

    def __init__(self, jobs: Sequence[Job[T]], at_once: int) -> None:
        self.jobs = sorted(jobs, key=lambda job: -job.seconds)          # stable: equals stay in their order
        self.at_once, self.count = at_once, len(jobs)
        self.began: dict[str, float] = {}
        self._expected = self._took = 0.0                               # by those that ended

    def begin(self, job: Job[T]) -> None:
        self.began.setdefault(job.name, time.monotonic())

    def one(self, job: Job[T]) -> T:
        self.begin(job)
        return job.work()

    def end(self, job: Job[T]) -> None:
        self.jobs.remove(job)
        self._expected += job.seconds
        self._took += time.monotonic() - self.began.get(job.name, time.monotonic())

    def left(self) -> str:
        """How far it is, and how long the rest takes if it goes on as it went."""
        now = time.monotonic()
        pace = self._took / self._expected if self._took and self._expected else 1.0
        began = dict(self.began)
        running = [job.seconds * pace - (now - began[job.name]) for job in self.jobs if job.name in began]
        waiting = [job.seconds * pace for job in self.jobs if job.name not in began]
        return (f"{self.count - len(self.jobs)} of {self.count} done, "
                f"about {in_words(time_left(waiting, running, self.at_once))} left")

    def line(self) -> str:
        began = dict(self.began)
        return f"{self.left()}: {', '.join(job.name for job in self.jobs if job.name in began)}"


def side_by_side(jobs: Sequence[Job[T]], at_once: int, done: Callable[[Job[T], "Future[T]", str], None],
                 elsewhere: Elsewhere | None = None) -> None:
    """Do all jobs; `done` is told of each as it ends, with words about what is left. If it raises, guests end."""
    queue = _Queue(jobs, at_once)

    def submit(job: Job[T]) -> "Future[T]":
        if elsewhere and job.far:
            return elsewhere.submit(job, functools.partial(queue.begin, job))
        return pool.submit(queue.one, job)

    with ThreadPoolExecutor(at_once) as pool:
        try:
            pending = {submit(job): job for job in list(queue.jobs)}
            while pending:
                queue.at_once = max(at_once, elsewhere.slots if elsewhere else 0)
                progress(queue.line())
                ended = wait(pending, TICK, FIRST_COMPLETED).done
                if ended:
                    progress("")            # what `done` prints begins a line
                for future in [future for future in pending if future in ended]:        # in the queue's order
                    job = pending.pop(future)
                    queue.end(job)
                    done(job, future, queue.left())
        except BaseException:
            stop.stop_all()
            if elsewhere:
                elsewhere.cancel()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            progress("")
