# SPDX-License-Identifier: GPL-2.0
"""Planes of a die that read by themselves: what random reads gain, and where the channel takes it back.

No guest: the black box's own FTL and flash model, filled once, and a load of random reads in the host's place
(emulator/simulator/firmware.c). The dies have four planes, and a read of 4 KiB touches one of them. On one drive
transfers take no time, so that only cells bind; on the other one each channel carries 800 MB/s.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, form, ours, shown, within
from mtlab.run.options import MODEL, Options

CHANNELS, DIES, PLANES = 2, 8, 4            # dies in all
READ = 60                                   # us
RATE = 800_000_000                          # bytes a second of a channel, where transfers take time
TRANSFER = 4096 / RATE * 1e6                # us
PAGES = {"together": 0, "apart": 1}
BUSES = {"no transfer": 0, "800 MB/s": RATE}
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 1024)     # reads in flight; with the last one no plane is idle
LOAD, FULL = 32, DEPTHS[-1]
# 16 KiB pages, three of them a program, 48 an erase block.
DRIVE = (f"channels={CHANNELS} dies={DIES // CHANNELS} planes={PLANES} page=16384 program_pages=3 block_pages=48 "
         f"blocks=12 spare_permille=500 buffer=8388608 read_ns={READ}000 reads=100 warm=5000 requests=100000")


def _name(planes: str, bus: str, depth: int) -> str:
    return f"{planes}-{BUSES[bus]}-{depth}"


def runs(_quick: bool) -> list[Run]:
    return [Run("reads", "\n".join(
                f"{_name(planes, bus, depth)} {DRIVE} plane_reads={apart} channel_rate={rate} depth={depth}"
                for planes, apart in PAGES.items() for bus, rate in BUSES.items() for depth in DEPTHS),
                Options(clock=MODEL), seconds=30)]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for planes in PAGES:
        for bus in BUSES:
            for depth in DEPTHS:
                told = json.loads(files["reads"][f"{_name(planes, bus, depth)}.json"])
                reads = told["reads"]
                found.append({"planes": planes, "bus": bus, "depth": depth, "iops": told["iops"],
                              **{key: reads[key] for key in ("mean_us", "p50_us", "p99_us")}})
    return found


def _of(found: list[Sample], planes: str, bus: str, depth: int, field: str = "iops") -> float:
    return float(next(s for s in found if (s["planes"], s["bus"], s["depth"]) == (planes, bus, depth))[field])


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    free, bound = BUSES
    together, apart = PAGES
    channel = CHANNELS / TRANSFER * 1e6
    return [
        within("planes apart, one read at a time: mean (us)", _of(found, apart, bound, 1, "mean_us"), READ + TRANSFER,
               0.01, form("a cell read and a transfer of 4 KiB")),
        within("planes together, no die is idle: reads a second", _of(found, together, free, FULL),
               DIES / READ * 1e6, 0.02, form("dies / read")),
        within("planes apart, no plane is idle: reads a second", _of(found, apart, free, FULL),
               DIES * PLANES / READ * 1e6, 0.04, form("dies x planes / read")),
        within("planes apart, channels of 800 MB/s, all in use: reads a second", _of(found, apart, bound, FULL),
               min(channel, DIES * PLANES / (READ + TRANSFER) * 1e6), 0.05,
               form("the slower of channels and planes, which here are the channels")),
        at_least(f"{LOAD} reads in flight, channels of 800 MB/s: planes apart over together, reads a second",
                 _of(found, apart, bound, LOAD) / _of(found, together, bound, LOAD), 2,
                 ours("32 planes for 32 reads, in place of 8 dies")),
        at_least(f"{LOAD} reads in flight, channels of 800 MB/s: planes together over apart, 99th percentile",
                 _of(found, together, bound, LOAD, "p99_us") / _of(found, apart, bound, LOAD, "p99_us"), 2,
                 ours("a queue before each die is four times as long as one before each plane")),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["planes", "channels", "in flight", "reads a second", "mean us", "median us", "99% us"]]
    for s in found:
        rows.append([str(s["planes"]), str(s["bus"]), f"{s['depth']}", shown(s, "iops", ".0f"),
                     *(shown(s, key, ".1f") for key in ("mean_us", "p50_us", "p99_us"))])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, (rate, tail) = figures.panels(2)
    few = [n for n in DEPTHS if n != FULL]
    pairs = [(planes, bus) for bus in BUSES for planes in PAGES]
    figures.lines(rate, [figures.Line(f"{planes}, {bus}", DEPTHS,
                                      [_of(found, planes, bus, n) / 1e3 for n in DEPTHS]) for planes, bus in pairs],
                  x="reads in flight", y="thousand reads a second", log2_x=True, title="rate")
    figures.lines(tail, [figures.Line(f"{planes}, {bus}", few, [_of(found, planes, bus, n, "p99_us") for n in few])
                         for planes, bus in pairs], x="reads in flight", y="99th percentile (us)", log2_x=True,
                  title="slowest hundredth")
    figures.save(figure, path)


ABOUT = About(
    title="Planes that read by themselves",
    question="What do random reads gain if the planes of a die read by themselves?",
    by=("planes", "bus", "depth"),
    caption="The black box's FTL and flash without a guest: 2 channels, 8 dies of 4 planes, random reads of 4 KiB, "
            "whose cell read takes 60 us. Planes read together or apart; transfers take no time, or each channel "
            "carries 800 MB/s.")
