# SPDX-License-Identifier: GPL-2.0
"""Read retries of blocks that are worn and of data that is old, and what a refresh makes of them.

No guest: the black box's own FTL and flash model, filled once, then it stands for a while, then random reads one at a
time (emulator/simulator/firmware.c). Time is the model's own, so half an hour takes no longer than what the drive does
in it. Ages are short, so that a figure shows several refreshes: only their ratios matter.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, shown, within
from mtlab.run.options import MODEL, Options

READ, STEP = 60, 100                        # us of a read; seconds after which a read takes one retry more
REFRESH, LOOK = 300, 300 / 64               # seconds until data is moved, and between two looks for it
KEPT = tuple(range(50, 1000, 100))          # seconds that the drive stands
CYCLES, PER_RETRY, GROWTH = 3000, 1000, 120     # erases of a life, of a retry; percent of a read's time at the end
WORN = {"new": 0, "half worn": 1500}
NEW, HALF = WORN
KEEPS = {"left alone": 0, "refreshed": REFRESH}
ALONE, MOVED = KEEPS
DRIVE = (f"channels=4 dies=2 page=16384 program_pages=3 block_pages=48 blocks=16 spare_permille=600 buffer=8388608 "
         f"read_ns={READ}000 program_ns=600000 erase_ns=3000000 pe_cycles={CYCLES} worn_read={GROWTH} "
         f"retry_erases={PER_RETRY} retry_age_ns={STEP}000000000 reads=100 warm=100 requests=2000")


def _name(worn: str, keep: str, kept: int) -> str:
    return f"{worn}-{keep}-{kept}".replace(" ", "-")


def runs(_quick: bool) -> list[Run]:
    return [Run("reads", "\n".join(
                f"{_name(worn, keep, kept)} {DRIVE} worn={erases} refresh_ns={refresh}000000000 kept_ns={kept}000000000"
                for worn, erases in WORN.items() for keep, refresh in KEEPS.items() for kept in KEPT),
                Options(clock=MODEL), seconds=30)]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for worn in WORN:
        for keep in KEEPS:
            for kept in KEPT:
                told = json.loads(files["reads"][f"{_name(worn, keep, kept)}.json"])
                reads = told["reads"]
                found.append({"drive": worn, "data": keep, "kept": kept, "retries": told["read_retries"] / told["reads"]
                              ["count"], "erases": told["erases_most"], "mean_us": reads["mean_us"],
                              "p99_us": reads["p99_us"]})
    return found


def _of(found: list[Sample], worn: str, keep: str, kept: int, field: str = "mean_us") -> float:
    return float(next(s for s in found if (s["drive"], s["data"], s["kept"]) == (worn, keep, kept))[field])


def _expected(worn: str, age: float) -> float:
    erases = WORN[worn]
    read = READ * (1 + (GROWTH / 100 - 1) * erases / CYCLES)
    return read * (1 + erases // PER_RETRY + age // STEP)


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    last = KEPT[-1]
    off = max(abs(_of(found, worn, ALONE, kept) / _expected(worn, kept) - 1) for worn in WORN for kept in KEPT)
    most = max(_of(found, HALF, MOVED, kept, "p99_us") for kept in KEPT)
    rounds = last // (REFRESH + LOOK)
    return [
        at_most("left alone: a mean that is furthest from its closed form, relative", off, 0.01,
                form("read x (1 + growth x erases / life) x (1 + erases / erases of a retry + age / age of a retry)")),
        at_most("refreshed, half worn: the longest 99th percentile (us)", most,
                _expected(HALF, REFRESH + LOOK + STEP / 10), form("no data gets older than a refresh and a look")),
        within(f"refreshed: most erases of a block after {last} s", _of(found, NEW, MOVED, last, "erases"), rounds,
               0.34, form("one for each whole time that data may age")),
        at_least(f"left alone over refreshed, half worn, {last} s: mean", _of(found, HALF, ALONE, last) /
                 _of(found, HALF, MOVED, last), 3, ours("nine retries for age, in place of none or one")),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["drive", "data", "kept (s)", "retries a read", "mean us", "99% us", "most erases"]]
    for s in found:
        rows.append([str(s["drive"]), str(s["data"]), f"{s['kept']}", shown(s, "retries", ".2f"),
                     *(shown(s, key, ".1f") for key in ("mean_us", "p99_us")), shown(s, "erases", ".0f")])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, panels = figures.panels(2)
    for axes, worn in zip(panels, WORN, strict=True):
        figures.lines(axes, [figures.Line(keep, KEPT, [_of(found, worn, keep, kept) for kept in KEPT])
                             for keep in KEEPS], x="seconds since the drive was filled", y="mean of a read (us)",
                      title=worn)
    figures.save(figure, path)


ABOUT = About(
    title="Worn blocks and old data",
    question="What do wear and age cost a read, and what does a refresh save?",
    by=("drive", "data", "kept"),
    caption="The black box's FTL and flash without a guest: random reads of 4 KiB, one at a time, after the drive has "
            "stood for so long. A read takes 60 us, one retry for each 100 s of age and for each 1,000 erases; a block "
            "that is half worn has had 1,500 of 3,000 erases, and reads 10% slower. Refreshed: data that is 300 s old "
            "is moved.")
