# SPDX-License-Identifier: GPL-2.0
"""The report on FEMU's black box at its full size: 4 GiB in 256 lines, five loads, 300 s each, in its twenty figures.

One seed, because it takes more than an hour of a processor: `lab exp --all` leaves it out. femu has the same at a
fraction of the size with several seeds.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mtlab.exp import femu
from mtlab.exp.experiments import About, Check, Run, Sample
from mtlab.run.options import Options

SIZE = femu.Size(scale=1, seconds=femu.RUN, look=1, block_pages=256, mkfs="", mount="")
QUICK = replace(SIZE, seconds=40)
MODES = {femu.FEMU: "as FEMU charges"}
PROBED = "set when its first 20 s were known"
SECONDS = {"randread": 1500, "randrw": 900, "randwrite": 700, "sysbench-4": 700, "sysbench-32": 1200}


def runs(quick: bool) -> list[Run]:
    size = QUICK if quick else SIZE
    return [Run(load, size.script(load),
                Options(clock="virtual", cpus=4, profile="femu", module=False, timeout=6 * 3600,
                        device=size.device(femu.AS_FEMU)),
                ("looks", "mark", "*.json") if load in femu.FIO else ("looks", "mark"), seconds=SECONDS[load])
            for load in femu.LABELS]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    return [s for load, outputs in sorted(files.items())
            for s in SIZE.samples(load, femu.FEMU, outputs)]


def checks(found: list[Sample], quick: bool) -> list[Check]:
    return femu.known([*femu.sentences(found), *SIZE.closed_forms(found)],
                      [f"writes only: {name}, plateau over peak" for name in ("requests a second", "throughput")],
                      PROBED)


def table(found: list[Sample]) -> list[list[str]]:
    return femu.table(found, MODES)


def draw(found: list[Sample], path: Path) -> None:
    femu.draw(found, path, MODES)


ABOUT = About(
    title="FEMU's black box at the report's full size",
    question="What do the report's twenty figures look like on this drive, at the report's size and for as long?",
    by=("workload", "mode", "part", "step"),
    caption="The report's figures 5.1 to 5.20 in its order: 4 GiB of flash (2 channels x 8 dies, 256 lines, "
            "40/200/2000 us, 3 GiB visible, GC from 75% of the lines on, charged as FEMU does), ext4, 300 s of "
            "virtual time each. Requests and MB/s in each second, blocks erased and pages moved in ten.",
    long=True)
