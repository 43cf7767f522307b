# SPDX-License-Identifier: GPL-2.0
"""Channels against ways: VSSIM's five drives, sequential writes and reads on the raw zoned device.

A, B, C have eight dies, D and E four larger ones; from one drive to the next the ways double and the channels
halve. A die holds one page register: it is busy from the first transfer to the end of the program, and from
the cell's read to the end of the transfer; a channel carries one transfer at a time.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, form, says, within
from mtlab.exp.sources import TALK
from mtlab.run.options import Options

CHANNEL = 40e6
BLOCK = 64 << 10
SEEDS = 3
START = 0.2                                     # of the run: by then the drive's buffer is full
DRIVES = {                                      # channels, ways, page, read, program
    "a": (8, 1, 2048, 60e-6, 800e-6), "b": (4, 2, 2048, 60e-6, 800e-6), "c": (2, 4, 2048, 60e-6, 800e-6),
    "d": (4, 1, 4096, 50e-6, 900e-6), "e": (2, 2, 4096, 50e-6, 900e-6)}
DOUBLED = (("a", "b"), ("b", "c"), ("d", "e"))
WAYS = {"write": "sequential writes", "read": "sequential reads"}


def _script(runtime: str) -> str:
    common = {"filename": "/dev/nvme0n1", "ioengine": "io_uring", "bs": BLOCK, "runtime": runtime,
              "time_based": True}
    write = fio.command("write.json", rw="write", zonemode="zbd", numjobs=4, max_open_zones=4, iodepth=32,
                        size="256M", offset_increment="256M", **common, **fio.log("write"))
    read = fio.command("read.json", rw="read", iodepth=64, size="2M", **common, **fio.log("read"))
    return f"set -e\n{write}\n{read}"


def runs(quick: bool) -> list[Run]:
    return [Run(drive, _script("600ms" if quick else "2500ms"),
                Options(clock="virtual", cpus=2, profile=f"vssim-{drive}", module=False, timeout=1800,
                        device={"flash.size": "1G"}), ("*.json", "*.log"),
                seeds=1 if quick else SEEDS, seconds=10)
            for drive in (("a", "c") if quick else DRIVES)]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found = []
    for drive, outputs in sorted(files.items()):
        for way in WAYS:
            end = fio.seconds(outputs[f"{way}.json"])
            found.append({"drive": drive, "way": way, **fio.logged(outputs, way, START * end, end, BLOCK)})
    return found


def _rate(found: list[Sample], drive: str, way: str) -> float:
    return float(next(s["bytes_per_s"] / 1e6 for s in found if (s["drive"], s["way"]) == (drive, way)))


def predicted(drive: str, way: str) -> float:
    """MB/s: all dies busy, or all channels where those are slower."""
    channels, ways, page, read, program = DRIVES[drive]
    transfer = page / CHANNEL
    die = transfer + (read if way == "read" else program)
    return channels * min(ways * page / die, page / transfer) / 1e6


def _drives(found: list[Sample]) -> list[str]:
    return sorted({s["drive"] for s in found})


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    drives = _drives(found)
    result = [within(f"drive {drive.upper()}: {WAYS[way]} (MB/s)", _rate(found, drive, way),
                     predicted(drive, way), 0.03,
                     form("channels x the slower of: ways x page / (cell + transfer), page / transfer"))
              for way in WAYS for drive in drives]
    result += [Check(f"writes: drive {after.upper()} over {before.upper()}",
                     _rate(found, after, "write") / _rate(found, before, "write"), 0.92, 0.96,
                     says(TALK, "AS # of ways is doubled and # of channels is reduced, the performance decreases by "
                          "4~8%"),
                     f"Dies bind both drives: the channels of {after.upper()} carry data for "
                     f"{_rate(found, after, 'write') * 1e6 / DRIVES[after][0] / CHANNEL:.0%} of the time.",
                     "was >= 0.92, which a drive that loses nothing passes, until a result was known")
               for before, after in DOUBLED if {before, after} <= set(drives)]
    return result


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["drive", "channels x ways", "write MB/s", "predicted", "read MB/s", "predicted"]]
    for drive in _drives(found):
        channels, ways = DRIVES[drive][:2]
        rows.append([drive.upper(), f"{channels} x {ways}", *(f"{rate:.2f}" for way in WAYS for rate in
                                                              (_rate(found, drive, way), predicted(drive, way)))])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, panels = figures.panels(2)
    drives = _drives(found)
    names = [f"{drive.upper()}: {DRIVES[drive][0]}x{DRIVES[drive][1]}" for drive in drives]
    for panel, (way, label) in zip(panels, WAYS.items(), strict=True):
        figures.bars(panel, names, [figures.Bars("measured", [_rate(found, d, way) for d in drives]),
                                    figures.Bars("predicted", [predicted(d, way) for d in drives])],
                     x="drive: channels x ways", y="MB/s", title=label)
    figures.save(figure, path)


ABOUT = About(
    title="Channels against ways",
    question="What does it cost to put the same dies on half the channels?",
    by=("drive", "way"),
    caption="VSSIM's drives on the raw zoned device, 64 KiB requests. A to C: eight dies, 2 KiB pages, "
            "60/800/1500 us; D and E: four dies, 4 KiB pages, 50/900/2000 us. The source does not say how fast its "
            f"channels are: here 40 MB/s. Medians of {SEEDS} seeds.")
