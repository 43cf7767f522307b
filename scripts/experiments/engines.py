# SPDX-License-Identifier: GPL-2.0
"""How programs ask: pwrite and pread, libaio, io_uring; on the raw drive, below dm-linear, and below the target.

Programs of today use io_uring, which asks not to be made to wait (REQ_NOWAIT): a device that cannot promise that is
served by worker threads. dm-linear only passes requests on, so it says what device-mapper itself takes.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, ours
from mtlab.run.options import Options

CPUS = 4
ENGINES = ("psync", "libaio", "io_uring")
JOBS, QUICK_JOBS = (1, 4), (4,)
DEPTHS = (1, 8)
WINDOW_MS = 60
SEEDS = 3
AREA = "480M"               # of what was written before: all that is read is on flash
DEVICES = {"raw": ("/dev/nvme0n1", ("read",)), "linear": ("/dev/mapper/linear", ("read",)),
           "mtftl": ("/dev/mapper/ftl", ("read", "write"))}


def _jobs(device: str, quick: bool) -> str:
    path, directions = DEVICES[device]
    return "\n".join(
        fio.command(f"{device}-{direction}-{jobs}-{depth}-{engine}.json", filename=path, rw=f"rand{direction}",
                    bs="4k", size=AREA, ioengine=engine, iodepth=depth, numjobs=jobs, norandommap=True, time_based=True,
                    ramp_time="10ms", runtime=f"{WINDOW_MS}ms")
        for direction in directions for jobs in (QUICK_JOBS if quick else JOBS) for engine in ENGINES
        for depth in (DEPTHS[:1] if engine == "psync" else DEPTHS))


def _script(quick: bool) -> str:
    fill = {"rw": "write", "bs": "128k", "size": AREA, "ioengine": "psync"}
    return f"""set -e
{fio.command("/dev/null", filename="/dev/nvme0n1", zonemode="zbd", **fill)}
{_jobs("raw", quick)}
dmsetup create linear --table "0 $(blockdev --getsz /dev/nvme0n1) linear /dev/nvme0n1 0"
{_jobs("linear", quick)}
dmsetup remove linear
mtftl format --force /dev/nvme0n1
mtftl open /dev/nvme0n1 ftl
{fio.command("/dev/null", filename="/dev/mapper/ftl", **fill)}
{_jobs("mtftl", quick)}
mtftl close ftl"""


def runs(quick: bool) -> list[Run]:
    return [Run("engines", _script(quick), Options(clock="virtual", cpus=CPUS, profile="dram", timeout=1800),
                seeds=1 if quick else SEEDS)]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found = []
    for name, data in files["engines"].items():
        device, direction, jobs, depth, engine = Path(name).stem.split("-")
        found.append({"device": device, "direction": direction, "jobs": int(jobs), "depth": int(depth),
                      "engine": engine, **fio.sample(data, direction, fio.seconds(data))})
    return sorted(found, key=lambda s: (s["direction"], s["jobs"], s["depth"], s["engine"], s["device"]))


def _iops(found: list[Sample], device: str, direction: str, jobs: int, depth: int, engine: str) -> float:
    wanted = (device, direction, jobs, depth, engine)
    return next((s["iops"] for s in found
                 if (s["device"], s["direction"], s["jobs"], s["depth"], s["engine"]) == wanted), 0)


def _rows(found: list[Sample]) -> list[tuple[str, int, int]]:
    return sorted({(s["direction"], s["jobs"], s["depth"]) for s in found if s["device"] == "mtftl"})


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    ratios = [_iops(found, "mtftl", *row, "io_uring") / _iops(found, "mtftl", *row, "libaio") for row in _rows(found)]
    uring = {device: _iops(found, device, "read", 4, 8, "io_uring") for device in DEVICES}
    return [
        at_least("least of io_uring over libaio, all rows", min(ratios), 1, ours("no request needs a worker thread")),
        at_least("reads by io_uring, 4 jobs: over dm-linear", uring["mtftl"] / uring["linear"], 0.95,
                 ours("a look at the map, and a count of readers")),
        at_least("reads by io_uring, 4 jobs: over the raw drive", uring["mtftl"] / uring["raw"], 0.95,
                 ours("device-mapper costs little"),
                 f"dm-linear, which only passes requests on, reaches {uring['linear'] / uring['raw']:.3f}."),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    names = {"raw": "raw", "linear": "dm-linear", "mtftl": "dm-mtftl"}
    rows = [["", "jobs", "depth", *(f"{name}, {engine}, kIOPS" for name in names.values() for engine in ENGINES)]]
    for row in _rows(found):
        reached = [_iops(found, device, *row, engine) for device in names for engine in ENGINES]
        rows.append([f"{row[0]}s", str(row[1]), str(row[2]), *(f"{x / 1000:.1f}" if x else "-" for x in reached)])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, panels = figures.panels(2)
    for panel, direction in zip(panels, ("read", "write"), strict=True):
        rows = [row for row in _rows(found) if row[0] == direction]
        figures.bars(panel, [f"{jobs} x {depth}" for _, jobs, depth in rows],
                     [figures.Bars(f"{engine}, {device}", [_iops(found, device, *row, engine) / 1000 for row in rows])
                      for device in DEVICES for engine in ENGINES[1:]
                      if direction in DEVICES[device][1]],
                     x="jobs x depth", y="kIOPS", title=f"4 KiB random {direction}s")
    figures.save(figure, path)


ABOUT = About(
    title="pwrite, libaio, io_uring",
    question="Is a program that uses io_uring served as well as one that uses libaio?",
    by=("device", "direction", "jobs", "depth", "engine"),
    caption=f"4 KiB, jobs x queue depth, {CPUS} CPUs, a fresh drive without flash delays; reads of what is on flash. "
            f"Medians of {SEEDS} seeds.")
