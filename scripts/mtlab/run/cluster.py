# SPDX-License-Identifier: GPL-2.0
"""Other machines, by Dask's distributed scheduler: `--scheduler ADDRESS`, docs/lab/machines.md.

Dask's executor does the work: it chooses the worker, notices one that is gone, and does its calls anew elsewhere. What
is here says which workers may have a call, brings them what runs need, and does a share of the calls twice.

A worker offers one unit of a resource for each guest that it runs side by side. The resource's name holds a digest of
its sources, so that a worker of another build gets no call. A call carries the digest of its inputs and the list of
what was built (build/parts.py). A worker fetches what it lacks from the scheduler, computes the digest itself, and
refuses the call if it finds another one.

All of a Cluster belongs to its own thread, except `slots` and the queue through which others reach that thread.
"""

import argparse
import functools
import ipaddress
import queue
import re
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from ..build import debian, parts
from ..util import stop
from ..util.base import LabError, digest, say
from ..util.pool import TICK, Far, Job

RESOURCE = "lab-"               # and a digest of the sources
CONNECT = 30                    # seconds that the scheduler may take to answer


class RefusedError(LabError):
    """A worker does not do a call: it would not be the same run there."""

    def __init__(self, worker: str, why: str) -> None:
        super().__init__(worker, why)
        self.worker, self.why = worker, why

    def __str__(self) -> str:
        return f"worker {self.worker} refuses: {self.why}"


@dataclass(frozen=True)
class Answer:
    """What a worker gave."""

    worker: str
    value: Any


def resource() -> str:
    """What a worker with these sources offers."""
    return RESOURCE + parts.sources()


def _shelf() -> tuple[Callable[..., Any], ...]:
    """Functions for the scheduler, which keeps files for workers. It need not have the lab: these are pickled whole."""
    def lacking(wanted, client, dask_scheduler):  # type: ignore[no-untyped-def]
        shelf = dask_scheduler.__dict__.setdefault("lab_shelf", {})     # of a file: its bytes, and clients that need it
        for old in [old for old, (_, owners) in shelf.items() if owners.isdisjoint(dask_scheduler.clients)]:
            del shelf[old]
        for key in wanted:
            if key in shelf:
                shelf[key][1].add(client)
        return [key for key in wanted if key not in shelf]

    def keep(key, data, client, dask_scheduler):  # type: ignore[no-untyped-def]
        dask_scheduler.__dict__["lab_shelf"][key] = data, {client}

    def give(key, dask_scheduler):  # type: ignore[no-untyped-def]
        return dask_scheduler.__dict__.get("lab_shelf", {}).get(key, (None,))[0]

    return lacking, keep, give


def _fetch(key: str) -> bytes:
    """What the scheduler keeps by that hash, asked for by a worker."""
    from distributed import get_client
    _, _, give = _shelf()
    data = get_client().run_on_scheduler(give, key)
    if not isinstance(data, bytes):
        raise LabError(f"the scheduler does not keep {key}")
    return data


def _call(sources: str, listed: parts.Manifest, name: str, key: str, inputs: Callable[[], str],
          work: Callable[[], Any]) -> Answer:
    """A call as a worker does it. It ends early when nothing waits for its result any more."""
    from distributed import get_worker
    worker = get_worker()
    task = worker.get_current_task()
    if parts.sources() != sources:
        raise RefusedError(worker.address, f"it has build {parts.sources()}, expected {sources}")

    def asked() -> bool:
        state = worker.state.tasks.get(task)
        return state is None or state.state == "cancelled"

    with ExitStack() as around:
        try:
            around.enter_context(parts.given(listed, _fetch))
            found = inputs()
        except LabError as e:
            raise RefusedError(worker.address, str(e)) from None
        if found != key:
            raise RefusedError(worker.address, f"the inputs of {name} are {found} there, expected {key}: its firmware "
                               "or its libraries are others")
        around.enter_context(stop.when(asked))
        try:
            value = work()
        except KeyboardInterrupt:
            raise LabError(f"{name} was ended: nothing waits for it") from None
    return Answer(worker.address, value)


@dataclass(eq=False)
class _Call:
    """A job on its way."""

    job: Job[Any]
    far: Far[Any]
    begin: Callable[[], None]
    future: "Future[Any]"
    tries: int = 0                                  # Dask gives a key that it knows what that key had
    first: Answer | None = None                     # of a call that is done a second time
    among: set[str] = field(default_factory=set)    # the workers that may do it; none: all may

    def end(self, result: Any) -> None:
        """Tell what waits for it, if it has not been told."""
        if self.future.done():
            return
        if isinstance(result, Exception):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)


def _host(worker: str) -> str:
    return worker.rpartition(":")[0]


class Cluster:
    """The workers of a scheduler, as pool.side_by_side() wants them."""

    def __init__(self, client: Any, share: float) -> None:
        self.slots = 0
        self._client, self._share = client, share
        self._executor = client.get_executor(resources={resource(): 1})
        self._asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._calls: set[_Call] = set()             # all that have not ended
        self._waiting: deque[_Call] = deque()
        self._running: dict[_Call, Future[Any]] = {}
        self._fit: dict[str, int] = {}              # workers that may have calls, and how many at once
        self._met: set[str] = set()                 # workers of which something was said, or nothing had to be
        self._refused: set[str] = set()
        self._kept: set[str] = set()                # by the scheduler, for workers
        self._did: Counter[str] = Counter()
        self._twice = self._alone = 0
        self._alive, self._lonely = True, False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def submit(self, job: Job[Any], begin: Callable[[], None]) -> "Future[Any]":
        """Have a job done by some worker."""
        assert job.far
        call = _Call(job, job.far, begin, Future())
        self._asked.put(functools.partial(self._add, call))
        if not self._thread.is_alive() and not call.future.done():
            self._add(call)
        return call.future

    def cancel(self) -> None:
        """Let go of all calls that have not ended; guests of workers end."""
        self._asked.put(self._end)
        self._thread.join()

    def close(self) -> None:
        """Say what workers did, once all calls have ended."""
        self.cancel()
        if self._did:
            told = ", ".join(f"{worker} {count}" for worker, count in sorted(self._did.items()))
            say(f"calls by worker: {told}")
        if self._share:
            say(f"{self._twice} calls were done twice, with the same bytes"
                + (f"; {self._alone} were to be, but there was no other worker" if self._alone else ""))

    def _serve(self) -> None:
        """The thread."""
        looked = 0.0
        try:
            while self._alive:
                if time.monotonic() > looked + TICK:
                    self._look()
                    looked = time.monotonic()
                self._feed()
                with suppress(queue.Empty):
                    self._asked.get(timeout=TICK)()
        except Exception as e:          # of Dask: nothing may wait for ever
            self._end()
            for call in list(self._calls):
                self._told(call, LabError(f"the scheduler is lost: {e}"))
        while not self._asked.empty():
            self._asked.get()()

    def _add(self, call: _Call) -> None:
        if self._alive:
            self._calls.add(call)
            self._waiting.append(call)
        else:
            call.end(LabError("the scheduler is lost"))

    def _told(self, call: _Call, result: Any) -> None:
        self._calls.discard(call)
        call.end(result)

    def _end(self) -> None:
        self._alive = False
        for inner in self._running.values():
            inner.cancel()
        self._running.clear()
        self._waiting.clear()

    def _look(self) -> None:
        """See which workers there are. A second run that no worker may do any more begins anew."""
        workers: Mapping[str, Any] = self._client.scheduler_info()["workers"]
        for worker in workers.keys() - self._met:
            offers = [name for name in workers[worker]["resources"] if name.startswith(RESOURCE)]
            if not offers:
                say(f"worker {worker} gets no call: it is none of the lab, expected `scripts/lab worker`")
            elif resource() not in offers:
                say(f"worker {worker} is refused: it has build {offers[0].removeprefix(RESOURCE)}, "
                    f"expected {parts.sources()}")
        self._met |= workers.keys()
        self._fit = {worker: int(about["resources"][resource()]) for worker, about in workers.items()
                     if resource() in about["resources"] and worker not in self._refused}
        self.slots = sum(self._fit.values())
        lonely = bool(self._calls) and not self._fit
        if lonely and not self._lonely:
            say(f"no worker of build {parts.sources()} may have calls: waiting for one")
        self._lonely = lonely
        for call in [call for call in self._running if call.among and not call.among & self._fit.keys()]:
            self._running.pop(call).cancel()
            self._once_more(call)

    def _once_more(self, call: _Call) -> None:
        call.tries += 1
        self._waiting.appendleft(call)

    def _feed(self) -> None:
        """Give Dask as many calls as workers can do, and one more for each: so their order stays ours."""
        while self._waiting and len(self._running) < self.slots + len(self._fit):
            call = self._waiting.popleft()
            if call.far.wanted():
                self._start(call)
            else:
                self._told(call, None)

    def _others(self, worker: str) -> set[str]:
        """Workers for a second run: of other machines, if there are any."""
        others = self._fit.keys() - {worker}
        return {other for other in others if _host(other) != _host(worker)} or others

    def _start(self, call: _Call) -> None:
        call.among = self._others(call.first.worker) if call.first else set(self._fit) if self._refused else set()
        if call.first and not call.among:
            self._alone += 1
            self._told(call, call.first.value)
            return
        only: dict[str, Any] = {"workers": sorted(call.among), "allow_other_workers": False} if call.among else {}
        words = ["run", call.far.key, *(["again"] if call.first else []), *([str(call.tries)] if call.tries else [])]
        call.begin()
        inner: Future[Any] = self._executor.submit(
            _call, parts.sources(), self._listed(), call.job.name, call.far.key, call.far.inputs,
            call.far.again if call.first else call.far.work, key="-".join(words), pure=True, **only)
        self._running[call] = inner
        inner.add_done_callback(lambda inner: self._asked.put(functools.partial(self._ended, call, inner)))

    def _listed(self) -> parts.Manifest:
        """What was built here. The scheduler keeps it for workers that lack some of it."""
        files = parts.files()
        if new := files.keys() - self._kept:
            lacking, keep, _ = _shelf()
            for key in self._client.run_on_scheduler(lacking, sorted(new), self._client.id):
                self._client.run_on_scheduler(keep, key, files[key].read_bytes(), self._client.id)
            self._kept |= new
        return parts.manifest()

    def _ended(self, call: _Call, inner: "Future[Any]") -> None:
        if self._running.get(call) is not inner:        # it was begun anew, or let go of
            return
        del self._running[call]
        try:
            answer: Answer = inner.result()
        except CancelledError:
            self._told(call, LabError(f"{call.job.name}: the scheduler dropped it"))
            return
        except RefusedError as e:
            if e.worker not in self._refused:
                say(str(e))
            self._refused.add(e.worker)
            self._look()
            self._once_more(call)
            return
        except Exception as e:
            self._told(call, _explained(call.job.name, e))
            return
        self._did[answer.worker] += 1
        if call.first:
            self._compare(call, call.first, answer)
        elif self._is_sampled(call.far.key):
            call.first = answer
            self._waiting.appendleft(call)
        else:
            self._told(call, answer.value)

    def _is_sampled(self, key: str) -> bool:
        """Is it in the share of calls that are done twice? The same calls are, each time."""
        return bool(int(digest(key)[:8], 16) < self._share * 2 ** 32)

    def _compare(self, call: _Call, first: Answer, second: Answer) -> None:
        if call.far.proof(first.value) != call.far.proof(second.value):
            self._told(call, LabError(f"{call.job.name}: {first.worker} and {second.worker} gave other bytes for the "
                                      f"same inputs {call.far.key}"))
            return
        self._twice += 1
        self._told(call, first.value)


def _explained(name: str, error: Exception) -> Exception:
    """An error of a call, in words if it is Dask's."""
    if type(error).__name__ == "KilledWorker":
        return LabError(f"{name}: too many workers ended while they had it; the limit is the scheduler's setting "
                        "allowed-failures")
    return error


def check(address: str) -> None:
    """Refuse to speak to a scheduler in clear over a public network: it does what it is sent, and so do its workers."""
    found = re.fullmatch(r"(?:(\w+)://)?\[?([\w.:-]+?)\]?:(\d+)", address)
    if not found or (found[1] or "tcp") not in ("tcp", "tls"):
        raise LabError(f"--scheduler {address}: expected tcp://HOST:PORT or tls://HOST:PORT")
    if found[1] == "tls":
        return
    try:
        numbers = {str(one[4][0]).partition("%")[0] for one in socket.getaddrinfo(found[2], None)}
    except OSError as e:
        raise LabError(f"--scheduler {address}: {e.strerror}") from None
    if public := [number for number in numbers if not ipaddress.ip_address(number).is_private]:
        raise LabError(f"--scheduler {address}: {public[0]} is in a public network, expected tls://")


@contextmanager
def connect(address: str, share: float = 0) -> Iterator[Cluster | None]:
    """The workers of the scheduler at an address; "": there is none."""
    if not address:
        if share:
            raise LabError("--twice: one machine compares nothing, expected --scheduler")
        yield None
        return
    if not 0 <= share <= 1:
        raise LabError(f"--twice {share:g}: expected 0 to 1")
    check(address)
    debian.ensure("scheduler")
    from distributed import Client
    try:
        client = Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as e:
        raise LabError(f"--scheduler {address}: {e}") from None
    try:
        cluster = Cluster(client, share)
        try:
            yield cluster
        finally:
            cluster.close()
    finally:
        client.close()


def add_options(parser: argparse.ArgumentParser) -> None:
    """`--scheduler` and `--twice` of a command."""
    parser.add_argument("--scheduler", default="", metavar="ADDRESS",
                        help="let the workers of a Dask scheduler do it: tls://HOST:PORT, or tcp://HOST:PORT in a "
                        "private network; default: this machine alone")
    parser.add_argument("--twice", type=float, default=0, metavar="SHARE",
                        help="with --scheduler: do this share of the runs on two workers, and compare the bytes; "
                        "default %(default)s")
