# SPDX-License-Identifier: GPL-2.0
"""The report on FEMU's black box on a black box of a fraction of its size: its twenty figures, and a better drive.

Capacity, files and time are 1/32 of the report's, blocks an eighth, and it is the first two fifths of its run, of reads
alone the first seventh, because nothing happens there; femu-full has the report's size, once. On the same drive as it
should be, moves are reads and programs that wait for each other, and a buffer takes the writes.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mtlab.exp import femu
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, ours, within
from mtlab.exp.sources import KNOWN
from mtlab.run.options import Options

SIZE = femu.Size(scale=32, seconds=120, look=2, block_pages=32, mkfs="-J size=4 ", mount="-o lazytime ")
QUICK, READS = replace(SIZE, seconds=40), replace(SIZE, seconds=44)
SEEDS = 3
REAL = "real"
MODES = {femu.FEMU: "as FEMU charges", REAL: "as it should be"}
DEVICE = {femu.FEMU: femu.AS_FEMU, REAL: {"flash.buffer": f"{femu.MIB}"}}
LOADS = {femu.FEMU: tuple(femu.LABELS), REAL: ("randrw", "randwrite")}
# What was predicted before any result; all other sentences were first held when results of half the time were known.
PREDICTED = (
    "reads only: throughput, least over mean", "reads only: blocks erased", "reads only: pages moved",
    "reads and writes: throughput, plateau over peak", "writes only: throughput, plateau over peak",
    "writes only over reads and writes: requests a second", "writes only over reads and writes: blocks erased",
    "writes only over reads and writes: pages moved", "sysbench: 32 threads over 4, requests a second, at most",
    "sysbench: 32 threads over 4, pages moved", "writes only: best rate over the media's ceiling")


def runs(quick: bool) -> list[Run]:
    def size(load: str) -> femu.Size:
        return QUICK if quick else READS if load == "randread" else SIZE

    return [Run(f"{load}-{mode}", size(load).script(load),
                Options(clock="virtual", cpus=4, profile="femu", module=False, timeout=3600,
                        device=SIZE.device(DEVICE[mode])),
                ("looks", "mark", *(() if load in femu.SYSBENCH else ("*.json",))), seconds=15,
                seeds=1 if quick else SEEDS)
            for mode, loads in LOADS.items() for load in loads
            if not quick or load == "randwrite"]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found = []
    for run, outputs in sorted(files.items()):
        load, mode = run.rsplit("-", 1)
        found += SIZE.samples(load, mode, outputs)
    return found


def checks(found: list[Sample], quick: bool) -> list[Check]:
    said = [*([] if quick else femu.sentences(found)), *SIZE.closed_forms(found)]
    return [*femu.known(said, {check.name for check in said} - {*PREDICTED}, KNOWN), *_as_it_should_be(found)]


def _as_it_should_be(found: list[Sample]) -> list[Check]:
    writes, mode = femu.of(found, "randwrite"), femu.of(found, "randwrite", REAL)
    return [
        at_least("writes only: p99.9 as FEMU charges over as it should be", writes["p99.9_us"] / mode["p99.9_us"], 2,
                 ours("a victim's moves are charged at once: the write that comes next waits for all of them"),
                 f"{writes['p99.9_us'] / 1000:.2f} ms as FEMU charges, {mode['p99.9_us'] / 1000:.2f} ms as it should "
                 f"be: there the buffer fills behind a victim's programs. p50 is {writes['p50_us'] / 1000:.2f} and "
                 f"{mode['p50_us'] / 1000:.2f} ms."),
        within("writes only: plateau as FEMU charges over as it should be",
               writes["plateau_mb_s"] / mode["plateau_mb_s"], 1, 0.15,
               ours("dies work as long for a move, one way or the other"),
               f"There are more moves: {writes['write_amplification']:.2f} blocks are written for one as FEMU "
               f"charges, {mode['write_amplification']:.2f} as it should be. That alone makes the ratio "
               f"{mode['write_amplification'] / writes['write_amplification']:.2f}."),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    return femu.table(found, MODES)


def draw(found: list[Sample], path: Path) -> None:
    femu.draw(found, path, MODES)


ABOUT = About(
    title="FEMU's black box",
    question="Five workloads on a drive with its FTL inside: where is the cliff, how deep is it, and what does the way "
             "in which FEMU charges collection change?",
    by=("workload", "mode", "part", "step"),
    caption="The report's figures 5.1 to 5.20 in its order. Its drive (2 channels x 8 dies, 40/200/2000 us, 3 of 4 GiB "
            f"visible, GC from 75% of the lines on), with jobs on ext4. Capacity, files and time are 1/{SIZE.scale} of "
            f"the report's, and the first {SIZE.seconds:.0f} of its 300 s are shown, {READS.seconds:.0f} of reads "
            "alone; the time axis is scaled back. Requests and MB/s in two seconds, blocks erased and pages moved in "
            "ten. Dashed: moves wait for each "
            "other, and a buffer of 1 MiB takes the writes.")
