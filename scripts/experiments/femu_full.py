# SPDX-License-Identifier: GPL-2.0
"""The report on FEMU's black box at its full size: 4 GiB in 256 lines, its five loads, in its twenty figures.

The loads run for 300 s of virtual time, as in the report. One seed, because that takes more than an hour of a
processor: `lab exp --all` leaves it out. femu has the same at a fraction of the size with several seeds.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mtlab.exp import femu
from mtlab.exp.experiments import About, Check, Run, Sample
from mtlab.run.options import Options

SECONDS, QUICK = femu.RUN, 40
SIZE = femu.Size(scale=1, seconds=SECONDS, look=1, block_pages=256, mkfs="", mount="")
MODES = {femu.FEMU: "as FEMU charges"}
PROBED = "set when its first 20 s were known"


def runs(quick: bool) -> list[Run]:
    seconds = QUICK if quick else SECONDS
    return [Run(load, replace(SIZE, seconds=seconds).script(load),
                Options(clock="virtual", cpus=4, profile="femu", module=False, timeout=6 * 3600,
                        device=SIZE.device(femu.AS_FEMU)),
                ("looks", "mark", *(() if load in femu.SYSBENCH else ("*.json",))), seconds=3 * seconds)
            for load in femu.LABELS]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    return [s for load, outputs in sorted(files.items()) for s in SIZE.samples(load, femu.FEMU, outputs)]


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
    question="What do the report's twenty figures look like on this drive, at the report's size?",
    by=("workload", "mode", "part", "step"),
    caption="The report's figures 5.1 to 5.20 in its order: 4 GiB of flash (2 channels x 8 dies, 256 lines, "
            "40/200/2000 us, 3 GiB visible, GC from 75% of the lines on, charged as FEMU does), ext4. The report's "
            f"{SECONDS} s. Requests and MB/s in each second, blocks erased and pages moved in ten.",
    long=True)
