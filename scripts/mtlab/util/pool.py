# SPDX-License-Identifier: GPL-2.0
"""Work side by side: longest first, results as they come, one line that says what is left and for how long.

How long something takes is what it took before, kept below build/durations; it decides about the order and the
estimate, never about a result.
"""

import heapq
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

from . import stop
from .base import BUILD, progress, write_file

T = TypeVar("T")
DURATIONS = BUILD / "durations"
TICK = 1.0                  # seconds between two lines of progress in a terminal


@dataclass(frozen=True)
class Job(Generic[T]):
    """Something to do, and about how many seconds it takes."""

    name: str
    work: Callable[[], T]
    seconds: float


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
    """Jobs on their way. All is one thread's, but `began`, where each job's own thread enters itself."""

    def __init__(self, jobs: Sequence[Job[T]], at_once: int) -> None:
        self.jobs = sorted(jobs, key=lambda job: -job.seconds)          # stable: equals stay in their order
        self.at_once, self.count = at_once, len(jobs)
        self.began: dict[str, float] = {}
        self._expected = self._took = 0.0                               # by those that ended

    def one(self, job: Job[T]) -> T:
        self.began[job.name] = time.monotonic()
        return job.work()

    def end(self, job: Job[T]) -> None:
        self.jobs.remove(job)
        self._expected += job.seconds
        self._took += time.monotonic() - self.began[job.name]

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


def side_by_side(jobs: Sequence[Job[T]], at_once: int, done: Callable[[Job[T], "Future[T]", str], None]) -> None:
    """Do all jobs; `done` is told of each as it ends, with words about what is left. If it raises, guests end."""
    queue = _Queue(jobs, at_once)
    with ThreadPoolExecutor(at_once) as pool:
        pending = {pool.submit(queue.one, job): job for job in list(queue.jobs)}
        try:
            while pending:
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
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            progress("")
