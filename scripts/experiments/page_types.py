# SPDX-License-Identifier: GPL-2.0
"""Pages of a word line with read times of their own: what the mean and the tail of random reads see.

No guest: the black box's own FTL and flash model, filled once, and a load of random reads in the host's place
(emulator/simulator/firmware.c). Only dies take time: transfers, link and firmware do not. The three drives have the
same mean, and with the number of reads in flight the share of reads that wait behind another one grows.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, shown, within
from mtlab.run.options import MODEL, Options

DIES = 8
MEAN = 60                                   # us of a read, on all drives
PAGES = {"alike": (60, 60, 60), "85 at most": (40, 55, 85), "120 at most": (20, 40, 120)}
ALIKE, MILD, STEEP = PAGES
DEPTHS = (1, 2, 4, 8, 16, 32, 1024)         # reads in flight; with the last one no die is idle
LOAD, FULL = DIES, DEPTHS[-1]
# 16 KiB pages, three of them a program, 48 an erase block.
DRIVE = ("channels=4 dies=2 page=16384 program_pages=3 block_pages=48 blocks=24 spare_permille=300 buffer=8388608 "
         "reads=100 warm=5000 requests=200000")


def _name(pages: str, depth: int) -> str:
    return f"{pages.replace(' ', '-')}-{depth}"


def runs(_quick: bool) -> list[Run]:
    return [Run("reads", "\n".join(
                f"{_name(pages, depth)} {DRIVE} page_types={':'.join(f'{us}000/0' for us in times)} depth={depth}"
                for pages, times in PAGES.items() for depth in DEPTHS),
                Options(clock=MODEL), seconds=20)]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for pages in PAGES:
        for depth in DEPTHS:
            told = json.loads(files["reads"][f"{_name(pages, depth)}.json"])
            reads = told["reads"]
            found.append({"pages": pages, "depth": depth, "iops": told["iops"],
                          **{key: reads[key] for key in ("mean_us", "p50_us", "p99_us", "p99.9_us")}})
    return found


def _of(found: list[Sample], pages: str, depth: int, field: str = "iops") -> float:
    return float(next(s for s in found if (s["pages"], s["depth"]) == (pages, depth))[field])


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    def over(pages: str, depth: int, field: str = "iops") -> float:
        return _of(found, pages, depth, field) / _of(found, ALIKE, depth, field)

    return [
        within(f"pages of {STEEP}, one read at a time: mean (us)", _of(found, STEEP, 1, "mean_us"), MEAN, 0.01,
               form("the mean of the pages' times")),
        within(f"pages of {STEEP}, one read at a time: 99th percentile (us)", _of(found, STEEP, 1, "p99_us"),
               max(PAGES[STEEP]), 0.001, form("a third of the reads are of the slowest page")),
        within(f"pages of {STEEP}, no die is idle: reads a second", _of(found, STEEP, FULL), DIES / MEAN * 1e6, 0.02,
               form("dies / the mean of the pages' times")),
        at_most(f"{LOAD} reads in flight on {DIES} dies: pages of {STEEP} over alike, reads a second",
                over(STEEP, LOAD), 0.96, ours("a read behind a slow one waits longer than one behind a fast one gains, "
                                              "and dies idle meanwhile")),
        at_least(f"{LOAD} reads in flight on {DIES} dies: pages of {MILD} over alike, reads a second",
                 over(MILD, LOAD), 0.97, ours("their times vary by a third of their mean, and what is lost grows with "
                                              "the square")),
        at_least(f"{LOAD} reads in flight: pages of {MILD} over alike, 99th percentile", over(MILD, LOAD, "p99_us"),
                 1.05, ours("a slow read behind slow ones")),
        at_most(f"no die is idle: pages of {STEEP} over alike, 99th percentile", over(STEEP, FULL, "p99_us"), 1.1,
                ours("a read waits behind a hundred others, whose times average out")),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["slowest page", "in flight", "reads a second", "mean us", "median us", "99% us", "99.9% us"]]
    for s in found:
        rows.append([str(s["pages"]), f"{s['depth']}", shown(s, "iops", ".0f"),
                     *(shown(s, key, ".1f") for key in ("mean_us", "p50_us", "p99_us", "p99.9_us"))])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, (rate, tail) = figures.panels(2)
    figures.lines(rate, [figures.Line(pages, DEPTHS, [_of(found, pages, n) / 1e3 for n in DEPTHS])
                         for pages in PAGES], x="reads in flight", y="thousand reads a second", log2_x=True,
                  title="rate")
    few = [n for n in DEPTHS if n != FULL]
    figures.lines(tail, [figures.Line(pages, few, [_of(found, pages, n, "p99_us") for n in few])
                         for pages in PAGES], x="reads in flight", y="99th percentile (us)", log2_x=True,
                  title="slowest hundredth")
    figures.save(figure, path)


ABOUT = About(
    title="Pages of a word line that differ",
    question="What do random reads see if the pages of a word line take different times?",
    by=("pages", "depth"),
    caption="The black box's FTL and flash without a guest: 8 dies, random reads of 4 KiB, which take 60 us on "
            "average on all three drives. Pages of a word line take 60, 60 and 60 us; 40, 55 and 85 us; 20, 40 and "
            "120 us. Transfers and firmware take no time.")
