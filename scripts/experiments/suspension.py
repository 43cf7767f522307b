# SPDX-License-Identifier: GPL-2.0
"""Reads that interrupt programs: what they wait for, and what the programs pay.

No guest: the black box's own FTL and flash model, partly filled, and a closed loop of small requests, nine tenths of
them writes, which keep all dies busy (emulator/simulator/firmware.c). A program unit is one page, nothing is
collected, and transfers take no time, so that a read waits for cell arrays alone.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, shown
from mtlab.run.options import MODEL, Options

READ, PROGRAM, RESUME = 60, 600, 20         # us
STOPS = (0, 10, 20, 50, 100)                # us until the cell array has stopped
DIES, UNIT = 8, 4                           # blocks of a program unit
SHARE = 10                                  # percent of requests that are reads
PER_PROGRAM = UNIT * SHARE / (100 - SHARE)  # reads
QUEUED, FIRST = "in their turn", "first"
DRIVE = (f"channels=4 dies={DIES // 4} page={UNIT * 4096} program_pages=1 block_pages=48 blocks=64 spare_permille=400 "
         f"area=30 buffer=1048576 read_ns={READ}000 program_ns={PROGRAM}000 erase_ns=3000000 resume_ns={RESUME}000 "
         f"reads={SHARE} depth=64 warm=4000 requests=30000")
WAYS = {QUEUED: "read_first=0", FIRST: "read_first=1",
        **{f"stop in {stop} us": f"suspend=1 suspend_ns={stop}000" for stop in STOPS}}


def _way(stop: int) -> str:
    return f"stop in {stop} us"


def runs(_quick: bool) -> list[Run]:
    return [Run("reads", "\n".join(f"{n} {DRIVE} {words}" for n, words in enumerate(WAYS.values())),
                Options(clock=MODEL), seconds=30)]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for n, way in enumerate(WAYS):
        told = json.loads(files["reads"][f"{n}.json"])
        found.append({"reads": way, "iops": told["iops"],
                      **{key: told["reads"][key] for key in ("mean_us", "p50_us", "p99_us")}})
    return found


def _of(found: list[Sample], way: str, field: str) -> float:
    return float(next(s for s in found if s["reads"] == way)[field])


def _rate(stop: int) -> float:
    """Requests a second, if each read interrupts a program by itself."""
    cycle = PROGRAM + PER_PROGRAM * (stop + READ + RESUME)
    return DIES * UNIT / cycle * 1e6 * 100 / (100 - SHARE)


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    slowest, longest = _way(STOPS[0]), _way(STOPS[-1])
    off = max(abs(_of(found, _way(stop), "p50_us") / (stop + READ) - 1) for stop in STOPS)
    slow = max(abs(_of(found, _way(stop), "iops") / _rate(stop) - 1) for stop in STOPS)
    return [
        at_most("suspended: the median that is furthest from its closed form, relative", off, 0.01,
                form("time to stop + read")),
        at_most("suspended: the rate of all requests that is furthest from its closed form, relative", slow, 0.01,
                form("units x blocks / (program + reads of a program x (stop + read + resume))")),
        at_least("first over suspended in 0 us: median of a read", _of(found, FIRST, "p50_us") /
                 _of(found, slowest, "p50_us"), 5, ours("half a program, and a read, in place of a read")),
        at_least("in their turn over first: median of a read", _of(found, QUEUED, "p50_us") /
                 _of(found, FIRST, "p50_us"), 5, ours("a buffer of 64 units before 8 dies, in place of half a unit")),
        at_least("suspended in 100 us over in their turn: rate of all requests", _of(found, longest, "iops") /
                 _of(found, QUEUED, "iops"), 0.88, ours("reads cost programs 80 us each, 0.44 a program")),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["reads", "mean us", "median us", "99% us", "requests a second"]]
    for s in found:
        rows.append([str(s["reads"]), *(shown(s, key, ".1f") for key in ("mean_us", "p50_us", "p99_us")),
                     shown(s, "iops", ".0f")])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, (wait, rate) = figures.panels(2)
    figures.lines(wait, [figures.Line(label, STOPS, [_of(found, _way(stop), field) for stop in STOPS])
                         for label, field in (("median", "p50_us"), ("99%", "p99_us"))],
                  x="time to stop (us)", y="a read (us)", title="reads that interrupt")
    figures.lines(rate, [figures.Line("measured", STOPS, [_of(found, _way(stop), "iops") / 1e3 for stop in STOPS]),
                         figures.Line("closed form", STOPS, [_rate(stop) / 1e3 for stop in STOPS])],
                  x="time to stop (us)", y="thousand requests a second", title="all requests")
    figures.save(figure, path)


ABOUT = About(
    title="Reads that interrupt programs",
    question="What does a read gain if it interrupts a program, and what does it cost that flash has to stop first?",
    by=("reads",),
    caption="The black box's FTL and flash without a guest: 8 dies, 64 requests of 4 KiB in flight, one tenth of them "
            "reads. A cell read takes 60 us, a program of four blocks 600 us, and 20 us more each time that it goes "
            "on. Transfers take no time.")
