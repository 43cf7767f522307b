# SPDX-License-Identifier: GPL-2.0
"""Traces of block requests, as others publish them, as one list of requests with times.

Formats: `msr` (MSR Cambridge), `snia` (the block traces of SYSTOR '17 in SNIA's repository), `blkparse` (its text),
`cachelib` (Meta's kvcache). A file may be compressed with gzip. What is wrong in it is named with its line.
"""

import gzip
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import IO

from ..util.base import LabError

SECTOR = 512
READ, WRITE, FUA_WRITE, FLUSH, TRIM, RESET = tuple("rwWftz")
REGION = 16 << 20           # CacheLib writes its log by regions, at most so large
REGIONS = 16                # ... and there are at least so many
PIECE = 128 << 10           # of a region, in one request
RATE = 10_000               # requests a second of a trace without times
_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class Request:
    """One request; ns: since the trace began."""

    ns: int
    op: str                 # READ, ...
    offset: int
    bytes: int


class BadLine(Exception):
    """What is wrong with a line, and what was expected."""


Lines = Iterator[tuple[int, str]]
Parsed = Iterator[tuple[int, Request]]


def _number(text: str, what: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise BadLine(f"{what} '{text}', expected a number")
    return value


def _seconds(text: str, what: str) -> int:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal(-1)
    if not value.is_finite() or value < 0:
        raise BadLine(f"{what} '{text}', expected seconds")
    return int(value * _SECOND)


def _fields(line: str, names: str) -> list[str]:
    found = [field.strip() for field in line.split(",")]
    if len(found) != names.count(",") + 1:
        raise BadLine(f"{len(found)} fields, expected {names}")
    return found


def _msr(line: str, _number_of: int) -> Iterator[Request]:
    time, _host, _disk, kind, offset, size, _took = _fields(
        line, "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime")
    if kind.lower() not in ("read", "write"):
        raise BadLine(f"type '{kind}', expected Read or Write")
    yield Request(100 * _number(time, "time stamp"), READ if kind.lower() == "read" else WRITE,
                  _number(offset, "offset"), _number(size, "size"))


def _snia(line: str, number: int) -> Iterator[Request]:
    time, _took, kind, _lun, offset, size = _fields(line, "Timestamp,Response,IOType,LUN,Offset,Size")
    if number == 1 and time == "Timestamp":
        return
    if kind not in ("R", "W", ""):
        raise BadLine(f"IOType '{kind}', expected R, W or nothing")
    if kind:
        yield Request(_seconds(time, "time stamp"), READ if kind == "R" else WRITE, _number(offset, "offset"),
                      _number(size, "size"))


# device, CPU, sequence, time, process, action, what it is, and where
_EVENT = re.compile(r"\s*\d+,\d+\s+\d+\s+\d+\s+(\d+\.\d+)\s+\d+\s+([A-Za-z]{1,2})\s+([A-Z]+)\s+"
                    r"(?:(\d+)\s+\+\s+(\d+)\s+)?")
_DEVICE = re.compile(r"\s*\d+,\d+\s")
_KINDS = {"R": READ, "W": WRITE, "D": TRIM, "ZA": WRITE, "ZR": RESET}


def _kind(rwbs: str) -> tuple[bool, str]:
    """Does a flush go first; what follows it, or ""."""
    flush = rwbs.startswith("F")
    rest = rwbs[flush:]
    name = rest[:2] if rest.startswith("Z") else rest[:1]
    kind = _KINDS.get(name, "")
    return flush, FUA_WRITE if kind == WRITE and "F" in rest[len(name):] else kind


def _blkparse(line: str, _number_of: int) -> Iterator[Request]:
    """What the driver was given ("D"); summaries at the end are passed over."""
    event = _EVENT.match(line)
    if not event:
        if _DEVICE.match(line):
            raise BadLine("expected DEVICE CPU SEQUENCE SECONDS PID ACTION RWBS [SECTOR + SECTORS]")
        return
    time, action, rwbs, sector, count = event.groups()
    if action != "D":
        return
    ns = _seconds(time, "time stamp")
    flush, kind = _kind(rwbs)
    if flush:
        yield Request(ns, FLUSH, 0, 0)
    if not kind or (flush and count == "0"):
        return
    if sector is None:
        raise BadLine(f"request {rwbs} without SECTOR + SECTORS")
    yield Request(ns, kind, int(sector) * SECTOR, int(count) * SECTOR)


class _Cache:
    """Where CacheLib would keep objects: a log of regions, the oldest of which makes way; no cache in memory.

    An object that is set goes to the region in memory, which is written when it is full. One that is got is read if
    a written region has it.
    """

    def __init__(self, size: int) -> None:
        self.region = min(REGION, size // REGIONS // PIECE * PIECE)
        if not self.region:
            raise LabError(f"a cache of {size} bytes, expected at least {REGIONS * PIECE}")
        self.slots = size // self.region
        self.written: OrderedDict[int, list[str]] = OrderedDict()
        self.places: dict[str, tuple[int, int]] = {}        # region's number, and where in it
        self.number = self.used = 0
        self.keys: list[str] = []

    def get(self, ns: int, key: str, size: int) -> Iterator[Request]:
        place = self.places.get(key)
        if place and place[0] != self.number:
            yield Request(ns, READ, place[0] % self.slots * self.region + place[1], size)

    def set(self, ns: int, key: str, size: int) -> Iterator[Request]:
        size = min(size, self.region)
        if self.used + size > self.region:
            yield from self._write(ns)
        self.places[key] = (self.number, self.used)
        self.keys.append(key)
        self.used += size

    def _write(self, ns: int) -> Iterator[Request]:
        for at in range(0, self.region, PIECE):
            yield Request(ns, WRITE, self.number % self.slots * self.region + at, PIECE)
        self.written[self.number] = self.keys
        self.number, self.used, self.keys = self.number + 1, 0, []
        if len(self.written) == self.slots:
            oldest, keys = self.written.popitem(last=False)
            for key in keys:
                if self.places.get(key, (None,))[0] == oldest:
                    del self.places[key]

    def drop(self, key: str) -> None:
        self.places.pop(key, None)


_COLUMNS = ["key", "op", "size", "op_count", "key_size", "ttl"]     # without a header


@dataclass
class _Clock:
    """Times of a trace that has whole seconds (spread evenly), or none."""

    rate: int
    number: int = 0
    second: int = -1

    def of(self, waiting: Sequence[int | None]) -> Iterator[int]:
        """Times of a run of requests with the same second."""
        for i, second in enumerate(waiting):
            if second is None:
                yield self.number * _SECOND // self.rate
                self.number += 1
            else:
                yield second * _SECOND + i * _SECOND // len(waiting)


def _object(line: str, columns: list[str]) -> tuple[int | None, str, str, int, int]:
    """Second, operation, key, bytes and repetitions."""
    row = dict(zip(columns, _fields(line, ",".join(columns)), strict=True))
    if row["op"] not in ("GET", "GET_LEASE", "SET", "SET_LEASE", "DELETE"):
        raise BadLine(f"op '{row['op']}', expected GET, SET, DELETE, GET_LEASE or SET_LEASE")
    second = _number(row["op_time"], "op_time") if row.get("op_time") else None
    size = _number(row["size"], "size") + (_number(row["key_size"], "key_size") if row.get("key_size") else 0)
    return second, row["op"], row["key"], max(size, 1), _number(row.get("op_count") or "1", "op_count")


def _cachelib(lines: Lines, size: int, rate: int) -> Iterator[Request]:
    cache, clock, columns = _Cache(size), _Clock(rate), _COLUMNS
    waiting: list[tuple[int | None, str, str, int]] = []

    def requests() -> Iterator[Request]:
        times = clock.of([one[0] for one in waiting])
        for ns, (_second, op, key, length) in zip(times, waiting, strict=True):
            if op.startswith("GET"):
                yield from cache.get(ns, key, length)
            elif op.startswith("SET"):
                yield from cache.set(ns, key, length)
            else:
                cache.drop(key)
        waiting.clear()

    for number, line in lines:
        if number == 1 and "key" in (names := [name.strip() for name in line.split(",")]):
            columns = names
            if missing := {"op", "size"} - set(names):
                raise BadLine(f"no column {', '.join(sorted(missing))}, expected key, op and size")
            continue
        second, op, key, length, count = _object(line, columns)
        if waiting and waiting[0][0] != second:
            yield from requests()
        waiting += [(second, op, key, length)] * count
    yield from requests()


_BY_LINE: dict[str, Callable[[str, int], Iterator[Request]]] = {"msr": _msr, "snia": _snia, "blkparse": _blkparse}
FORMATS = (*_BY_LINE, "cachelib")


def guess(line: str) -> str:
    """The format of a trace with that first line, or ""."""
    fields = [field.strip() for field in line.split(",")]
    if "op" in fields or (len(fields) >= 3 and fields[1] in ("GET", "SET", "DELETE", "GET_LEASE", "SET_LEASE")):
        return "cachelib"
    if len(fields) == 7 and fields[3].lower() in ("read", "write"):
        return "msr"
    if len(fields) == 6 and (fields[0] == "Timestamp" or fields[2] in ("R", "W", "")):
        return "snia"
    return "blkparse" if _DEVICE.match(line) else ""


def _open(path: Path) -> IO[str]:
    with open(path, "rb") as f:
        packed = f.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rt", errors="replace") if packed else open(path, errors="replace")


def _parse(path: Path, kind: str, size: int, rate: int) -> Iterator[Request]:
    at = 0

    def lines(file: IO[str]) -> Lines:
        nonlocal at
        for number, line in enumerate(file, 1):
            at = number
            if line.strip():
                yield number, line.rstrip("\n")

    with _open(path) as file:
        try:
            if kind == "cachelib":
                yield from _cachelib(lines(file), size, rate)
            else:
                for number, line in lines(file):
                    yield from _BY_LINE[kind](line, number)
        except BadLine as wrong:
            raise LabError(f"{path}:{at}: {wrong}") from None
        except (OSError, EOFError) as wrong:        # a damaged archive
            raise LabError(f"{path}:{at + 1}: cannot be read: {wrong}") from None


def _format(path: Path) -> str:
    with _open(path) as file:
        first = next((line for line in file if line.strip()), "")
    if not (kind := guess(first)):
        raise LabError(f"{path}:1: of no format that is known, expected format={'|'.join(FORMATS)}")
    return kind


def read(path: Path, kind: str = "", *, size: int, speed: float = 1, rate: int = RATE,
         most: int | None = None) -> list[Request]:
    """The first `most` requests of a trace, by time, from 0 on and `speed` times as fast.

    size: bytes of the drive, for objects of a cache; rate: requests a second where the trace has no times.
    """
    if kind and kind not in FORMATS:
        raise LabError(f"no format '{kind}': there are {', '.join(FORMATS)}")
    if not path.is_file():
        raise LabError(f"{path} is no file, expected a trace")
    if speed <= 0 or rate <= 0:
        raise LabError(f"speed {speed:g} and rate {rate}, expected more than 0")
    found: list[Request] = []
    for request in _parse(path, kind or _format(path), size, rate):
        if most is not None and len(found) == most:
            break
        found.append(request)
    if not found:
        raise LabError(f"{path}: no request in it")
    found.sort(key=lambda request: request.ns)
    first = found[0].ns
    return [Request(int((one.ns - first) / speed), one.op, one.offset, one.bytes) for one in found]


def lines(requests: Sequence[Request]) -> str:
    """A line for each: what the programs of emulator/simulator and the guest read."""
    return "".join(f"{one.ns} {one.op} {one.offset} {one.bytes}\n" for one in requests)
