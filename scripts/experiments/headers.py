# SPDX-License-Identifier: GPL-2.0
"""What headers cost: in blocks of their own, or in the metadata of the blocks that they speak of.

A flash of four dies, which binds: 4 x 192 KiB a program of 700 us are 274,000 blocks a second, headers included.
Fresh, so without GC.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import counters, figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, shown, spread
from mtlab.run.options import Options

CPUS, USERS = 8, 8
UNITS, QUICK_UNITS = (1, 2, 8, 32), (1, 32)
PLACES = {"blocks": "headers in blocks", "metadata": "headers in metadata"}
WINDOW_MS = 60
SEEDS = 3
DEVICE = {"flash.channels": "2", "flash.dies": "2", "ms": "16"}


def _run(place: str, unit: int, seeds: int) -> Run:
    job = fio.command("fio.json", filename="/dev/mapper/ftl", rw="randwrite", bs="4k", ioengine="psync",
                      norandommap=True, numjobs=USERS, time_based=True, ramp_time="20ms", runtime=f"{WINDOW_MS}ms",
                      size="1G")
    script = f"""set -e
mtftl format --force --headers {place} /dev/nvme0n1
mtftl open /dev/nvme0n1 ftl lanes={CPUS} write_unit={unit}
{job}
dmsetup status ftl >status"""
    return Run(f"{place}-{unit}", script,
               Options(clock="virtual", cpus=CPUS, profile="tlc", device=dict(DEVICE), timeout=1800),
               ("fio.json", "status"), seeds=seeds, seconds=8)


def runs(quick: bool) -> list[Run]:
    return [_run(place, unit, 1 if quick else SEEDS)
            for place in PLACES for unit in (QUICK_UNITS if quick else UNITS)]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for name, outputs in files.items():
        place, unit = name.split("-")
        status, = counters.looks(outputs["status"])
        data, headers, meta = (status[f"flash_{what}"] for what in ("data", "headers", "meta"))
        found.append({"headers": place, "unit": int(unit),
                      **fio.sample(outputs["fio.json"], "write", fio.seconds(outputs["fio.json"])),
                      "written": (data + headers + meta) / data})
    return sorted(found, key=lambda s: (s["unit"], s["headers"]))


def _at(found: list[Sample], place: str, unit: int, key: str) -> float:
    return float(next(s[key] for s in found if (s["headers"], s["unit"]) == (place, unit)))


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    units = sorted({s["unit"] for s in found})
    gain = {unit: _at(found, "metadata", unit, "iops") / _at(found, "blocks", unit, "iops") for unit in units}
    return [
        at_least("units of one: metadata over blocks", gain[1], 1.8, form("half of what is programmed was headers")),
        at_most("units of one, metadata: blocks written for one of data", _at(found, "metadata", 1, "written"), 1.01,
                form("no headers; checkpoints and zones' ends are what is left")),
        *(at_least(f"units of {unit}: metadata over blocks", gain[unit], 1,
                   ours("fewer blocks are never slower")) for unit in units[1:]),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["blocks a unit", *(f"{text}, kIOPS" for text in PLACES.values()), "gain",
             *(f"{text}: written for one block" for text in PLACES.values())]]
    for unit in sorted({s["unit"] for s in found}):
        of = [next(s for s in found if (s["headers"], s["unit"]) == (place, unit)) for place in PLACES]
        rows.append([str(unit), *(shown(s, "iops", scale=1000) for s in of), f"{of[1]['iops'] / of[0]['iops']:.2f}",
                     *(f"{s['written']:.3f}" for s in of)])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, (panel,) = figures.panels(1)
    lines = []
    for place, label in PLACES.items():
        points = [s for s in found if s["headers"] == place]
        lines.append(figures.Line(label, [s["unit"] for s in points], [s["iops"] / 1000 for s in points],
                                  spread=[(x / 1000, y / 1000) for x, y in (spread(s, "iops") for s in points)]))
    figures.lines(panel, lines, x="blocks a write unit", y="4 KiB random writes (kIOPS)", log2_x=True,
                  ticks=lines[0].x)
    figures.save(figure, path)


ABOUT = About(
    title="Headers in blocks, and in metadata",
    question="What do the headers of write units cost where flash is the limit, and what if they are in metadata?",
    by=("headers", "unit"),
    caption=f"4 KiB random writes of {USERS} users at queue depth 1 on {CPUS} modelled CPUs; four dies of TLC, "
            "16 bytes of metadata a block; fresh drives: no GC.")
