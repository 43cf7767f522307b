# SPDX-License-Identifier: GPL-2.0
"""What a zone reset that takes time costs: ten sequential writers on QLC, with and without the erase's delay.

First on the raw zoned device, where each writer has a zone and resets it when it is full; then through the
FTL, which resets in the background what the writers have overwritten. A zone's programs and its erase share
the dies: a zone of Z bytes takes Z / B to program and the erase's time besides, with nothing else in the way.

The source lets fio reset zones when 90% of the device is written (zone_reset_frequency=1). From then on fio
resets zones that are not full; on a drive with a write buffer part of that data is dropped before it is
programmed, and what is measured is no longer the flash. So the source's very job has runs of its own, at its full time
and size. The drive acknowledges writes and resets zones as FEMU's does (profile femu-zns). FEMU's own script asks for 8
channels. Only two of them have a place in FEMU's addresses, but its caches are four times as large then, and a reset
erases each plane four times. That drive's kernel sends a zone's writes all at once, and not one by one. Then the same
flash has the buffer of a real drive, whose room is what has been programmed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from mtlab.build import kernels
from mtlab.exp import figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_most, form, ours, says, within
from mtlab.exp.sources import KNOWN, RESET
from mtlab.run.options import Options

JOBS, DEPTH, BLOCK = 10, 32, 128 << 10
MIB = 1 << 20
ZONE, SMALL_ZONE = 64 * MIB, 16 * MIB           # on the raw drive; for the FTL, which needs many
PROGRAM_S, ERASE_S = 12.196e-3, 3e-3
CEILING = 16 * 64 * 1024 / PROGRAM_S            # 16 planes, 64 KiB in each program
DELAYS = {"without": "off", "with": "on"}
TARGETS = {"raw": "raw zoned device", "ftl": "dm-mtftl", "paced": "dm-mtftl at 61% load"}
PACE = 5 * MIB                                  # a second and writer
START = {"raw": 0.4, "ftl": 0.6, "paced": 0.5}               # of the run: by then all is written, and some of it twice
RUNTIME = {"raw": (25, 7), "ftl": (25, 10), "paced": (12, 8)}      # seconds; the second: quick
PERCENTILES = ("mean_us", "p50_us", "p99_us", "p99.9_us")
# The source's job, by drive and kernel: what each is called, and more of the device.
EXACT = {"femu": "FEMU's caches", "script": "FEMU by its script, zones unlocked", "real": "a real drive's buffer"}
DEVICES: dict[str, dict[str, str]] = {
    "femu": {}, "script": {"flash.buffer": "12M", "flash.erase_ns": "12000000"},
    "real": {"flash.zone_caches": "0", "flash.cache_page_ns": "0", "flash.booked": "off"}}
UNLOCK = "echo none >/sys/block/nvme0n1/queue/scheduler\n"
PAGES_US = BLOCK / 4096                         # until a cache has a write
FLUSH_S = 4 * PROGRAM_S                         # 4 MiB, a cache of the script's, on 8 dies
HALF_ZONE = 128 * MIB
IN_FLIGHT = 30                                  # of 320: what the same job had on other drives
# Its table, in its own words, and what each row is here: IOPS, MiB/s, mean and percentiles in ms.
ROWS = {"IOPS 655.66 654.14 -0.23%": ("IOPS", "iops", 1),
        "Bandwidth (MB/s) 81.96 81.77 -0.23%": ("MiB/s", "bytes_per_s", MIB),
        "Avg Latency (us) 27,309 139,355 +410%": ("mean latency", "mean_us", 1000),
        "P50 Latency (us) 259 50 -80.73%": ("p50", "p50_us", 1000),
        "P99 Latency (us) 1,115,685 4,278,190 +283%": ("p99", "p99_us", 1000),
        "P99.9 Latency (us) 1,568,670 6,006,243 +283%": ("p99.9", "p99.9_us", 1000)}
SOURCE = {"without": (655.66, 81.96, 27.309, 0.259, 1115.685, 1568.670),
          "with": (654.14, 81.77, 139.355, 0.050, 4278.190, 6006.243)}


def _zone(line: str, quick: bool) -> int:
    """Bytes of a zone; one block of each plane, whose pages are as many as that takes."""
    return SMALL_ZONE if quick or line != "raw" else ZONE


def _script(line: str, quick: bool) -> str:
    """Ten writers that have overwritten all once when the measured window begins."""
    common: dict[str, object] = {
        "ioengine": "io_uring", "rw": "write", "bs": BLOCK, "iodepth": DEPTH, "numjobs": JOBS,
        "time_based": True, "runtime": RUNTIME[line][quick], **fio.log("write")}
    if line == "raw":
        zone = _zone(line, quick)
        return fio.command("fio.json", filename="/dev/nvme0n1", zonemode="zbd", size=zone, offset_increment=zone,
                           max_open_zones=JOBS, **common)
    where = {"filename": "/dev/mapper/ftl", "size": f"{100 // JOBS}%", "offset_increment": f"{100 // JOBS}%",
             "cpus_allowed": "0-1", "cpus_allowed_policy": "split"}
    lines = ["set -e", "mtftl format --force /dev/nvme0n1", "mtftl open /dev/nvme0n1 ftl lanes=2"]
    if line == "paced":
        lines.append(fio.command("fill.json", rw="write", bs=BLOCK, numjobs=JOBS, **where))
        common["rate"] = PACE
    return "\n".join([*lines, fio.command("fio.json", **where, **common), "dmsetup status ftl", "mtftl close ftl"])


def _exact(quick: bool) -> list[Run]:
    """The source's job, word for word; on the drive that is ours for half of its time."""
    jobs = {seconds: fio.command("fio.json", filename="/dev/nvme0n1", ioengine="io_uring", zonemode="zbd", rw="write",
                                 bs=BLOCK, iodepth=DEPTH, numjobs=JOBS, max_open_zones=JOBS, zone_reset_frequency="1.0",
                                 zone_reset_threshold="0.9", time_based=True, runtime=seconds) for seconds in (180, 90)}
    return [] if quick else [
        Run(f"{line}-{delay}", (UNLOCK if line == "script" else "") + jobs[90 if line == "real" else 180],
            Options(clock="virtual", cpus=2, profile="femu-zns", timeout=3600, module=False,
                    kernel="6.1" if line == "script" else kernels.DEFAULT,
                    device={"flash.delay_erase": switch, **more}),
            ("*.json",), seconds=60)
        for line, more in DEVICES.items() for delay, switch in DELAYS.items()]


def runs(quick: bool) -> list[Run]:
    found = _exact(quick)
    for line in TARGETS:
        zone = _zone(line, quick)
        size = (JOBS + 1) * zone if line == "raw" else (1024 if line == "ftl" and not quick else 512) * MIB
        device = {"flash.size": f"{size}", "zoned.zone_size": f"{zone}", "zoned.zone_capacity": f"{zone}",
                  "flash.block_pages": f"{256 * zone // ZONE}"}
        for delay, switch in DELAYS.items():
            options = Options(clock="virtual", cpus=2, profile="qlc", timeout=1800, module=line != "raw",
                              device={**device, "flash.delay_erase": switch})
            found.append(Run(f"{line}-{delay}", _script(line, quick), options, ("*.json", "*.log")))
    return found


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found = []
    for name, outputs in sorted(files.items()):
        line, delay = name.split("-")
        if line in EXACT:
            found.append({"target": line, "erase delay": delay, **fio.sample(outputs["fio.json"], "write")})
            continue
        seconds = fio.seconds(outputs["fio.json"])
        measured = fio.logged(outputs, "write", START[line] * seconds, seconds, BLOCK)
        found.append({"target": line, "erase delay": delay, **measured})
    return found


def _of(found: list[Sample], line: str, delay: str) -> Sample:
    return next(s for s in found if (s["target"], s["erase delay"]) == (line, delay))


def _in_flight(sample: Sample) -> float:
    """Little's law."""
    return float(sample["iops"] * sample["mean_us"] / 1e6)


def _has_exact(found: list[Sample]) -> bool:
    return any(s["target"] in EXACT for s in found)


def _exact_checks(found: list[Sample]) -> list[Check]:
    if not _has_exact(found):
        return []
    femu, script, real = ({delay: _of(found, line, delay) for delay in DELAYS} for line in EXACT)
    result = [*_as_the_source_says(found, "femu"), *_as_the_source_says(found, "script")]
    for delay in DELAYS:
        result += [
            within(f"the source's job, {EXACT['femu']}, {delay} delay: requests in flight", _in_flight(femu[delay]),
                   IN_FLIGHT, 0.25, ours("as many as on other drives: fio's jobs wait for each other's zones, with "
                                         "nothing in flight meanwhile")),
            Check(f"the source's job, {EXACT['script']}, {delay} delay: p50 (us)", script[delay]["p50_us"],
                  PAGES_US, 2 * PAGES_US,
                  form("31 of 32 writes only go into a cache, 1 us a page; software comes on top")),
            within(f"the source's job, {EXACT['real']}, {delay} delay: MiB/s", real[delay]["bytes_per_s"] / MIB,
                   CEILING / MIB, 0.05, ours("dies always have programs; a reset drops at most 3 MiB of them")),
        ]
    p999 = script["without"]["p99.9_us"] / 1000
    result += [
        within(f"the source's job, {EXACT['script']}, without delay: p99.9 (ms)", p999, 1000 * DEPTH * FLUSH_S, 0.1,
               form("each of a job's 32 requests waits for a flush of 4 MiB, one behind the other")),
        within(f"the source's job, {EXACT['script']}, without delay: p99.9 (ms), the source's own", p999,
               SOURCE["without"][5], 0.1, says(RESET, list(ROWS)[5]))]
    result += [within(f"the source's job, {EXACT['script']}, without delay: {column} (ms)",
                      script["without"][key] / scale, SOURCE["without"][place], 0.1, says(RESET, row), late=KNOWN)
               for place, (row, (column, key, scale)) in enumerate(ROWS.items()) if 2 <= place < 5]
    result.append(within(
        f"the source's job, {EXACT['real']}: MiB/s with delay over without",
        real["with"]["bytes_per_s"] / real["without"]["bytes_per_s"], 1 / (1 + ERASE_S * CEILING / HALF_ZONE),
        0.01, ours("an erase of 3 ms for each 128 MiB: zones are half full when they are reset")))
    return result


def _as_the_source_says(found: list[Sample], line: str) -> list[Check]:
    """Its table, row by row."""
    runs_ = {delay: _of(found, line, delay) for delay in DELAYS}
    result = []
    for place, (row, (column, key, scale)) in enumerate(ROWS.items()):
        before, after = (SOURCE[delay][place] for delay in DELAYS)
        latency = key.endswith("_us")
        if not latency:
            result += [within(f"the source's job, {EXACT[line]}, {delay} delay: {column}", run[key] / scale,
                              SOURCE[delay][place], 0.1, says(RESET, row)) for delay, run in runs_.items()]
        result.append(within(
            f"the source's job, {EXACT[line]}: {column} with delay over without",
            runs_["with"][key] / runs_["without"][key], after / before, 0.2 if latency else 0.01, says(RESET, row),
            f"The source's {SOURCE['without'][0]:.0f} requests a second of {SOURCE['without'][2]:.1f} ms are "
            f"{SOURCE['without'][0] * SOURCE['without'][2] / 1000:.0f} in flight, with the delay "
            f"{SOURCE['with'][0] * SOURCE['with'][2] / 1000:.0f}. Here the same job has "
            f"{_in_flight(runs_['without']):.0f} and {_in_flight(runs_['with']):.0f}." if latency else
            f"{runs_['without'][key] / scale:.1f} without, {runs_['with'][key] / scale:.1f} with it; the source has "
            f"{before:g} and {after:g}."))
    return result


def checks(found: list[Sample], quick: bool) -> list[Check]:
    raw, raw_delay = (_of(found, "raw", delay) for delay in DELAYS)
    ftl, ftl_delay = (_of(found, "ftl", delay) for delay in DELAYS)
    paced, paced_delay = (_of(found, "paced", delay) for delay in DELAYS)
    predicted = 1 / (1 + ERASE_S * CEILING / _zone("raw", quick))
    return _exact_checks(found) + [
        within("raw: bandwidth without delay (MiB/s)", raw["bytes_per_s"] / MIB, CEILING / MIB, 0.01,
               form("16 planes x 64 KiB / 12.196 ms: nothing but programs takes time that counts")),
        within("raw: bandwidth with delay over without", raw_delay["bytes_per_s"] / raw["bytes_per_s"], predicted, 0.01,
               form("each zone costs its dies 3 ms more than its programs (64 MiB: 0.78 s)")),
        *(Check(f"raw, {delay} delay: requests in flight (Little's law)", _in_flight(s),
                0.93 * JOBS * DEPTH, 1.01 * JOBS * DEPTH,
                form("arrival rate x mean latency is what is in flight: 10 jobs x depth 32, except for a job that "
                     "lets its queue run empty before it resets its zone, as fio does"),
                late="was 313.6 to 326.4 until a result missed it")
          for delay, s in (("without", raw), ("with", raw_delay))),
        at_most("dm-mtftl: p99 write latency with delay over without", ftl_delay["p99_us"] / ftl["p99_us"], 1.05,
                ours("resets run in the background: no write waits for one")),
        at_most("dm-mtftl at 61% load: p99 write latency with delay over without",
                paced_delay["p99_us"] / paced["p99_us"], 1.05,
                ours("resets run in the background: no write waits for one")),
        at_most("dm-mtftl at 61% load: p99.9 write latency with delay over without",
                paced_delay["p99.9_us"] / paced["p99.9_us"], 1.05,
                ours("resets run in the background: no write waits for one"),
                f"{paced['p99.9_us']:.0f} us become {paced_delay['p99.9_us']:.0f}, the slowest "
                f"{paced['max_us'] / 1000:.1f} ms become {paced_delay['max_us'] / 1000:.1f}: an erase holds all dies "
                "for 3 ms.", KNOWN),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["target", "erase delay", "IOPS", "MiB/s", "mean ms", "p50 ms", "p99 ms", "p99.9 ms"]]
    for line, label in TARGETS.items():
        for delay in DELAYS:
            s = _of(found, line, delay)
            rows.append([label, delay, f"{s['iops']:.2f}", f"{s['bytes_per_s'] / MIB:.2f}",
                         *(f"{s[p] / 1000:.2f}" for p in PERCENTILES)])
    for delay, (iops, mib, *latencies) in SOURCE.items():
        rows.append(["FEMU's own figures", delay, f"{iops:.2f}", f"{mib:.2f}", *(f"{ms:.2f}" for ms in latencies)])
        for s in (s for s in found if s["target"] in EXACT and s["erase delay"] == delay):
            rows.append([f"the same job: {EXACT[s['target']]}", delay, f"{s['iops']:.2f}",
                         f"{s['bytes_per_s'] / MIB:.2f}",
                         *(f"{s[p] / 1000:.2f}" for p in PERCENTILES)])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    exact = _has_exact(found)
    figure, axes = figures.panels(6 if exact else 3)

    def bars(panel: Axes, points: list[tuple[str, str]], names: list[str], scale: float, **words: Any) -> None:
        figures.bars(panel, names, [
            figures.Bars(f"{delay} erase delay", [_of(found, line, delay)[key] / scale for line, key in points])
            for delay in DELAYS], **words)

    bars(axes[0], [(line, "bytes_per_s") for line in TARGETS],
         [label.replace(" ", "\n", 1) for label in TARGETS.values()], MIB, y="sequential writes (MiB/s)",
         title="bandwidth", limit=CEILING / MIB, limit_label="16 planes always busy")
    for panel, lines, title in ((axes[1], ("raw", "ftl"), "latency at full load"),
                                (axes[2], ("paced",), "latency at 61% load")):
        points = [(line, p) for line in lines for p in PERCENTILES[1:]]
        bars(panel, points, [f"{'raw' if line == 'raw' else 'mtftl'}\n{p[:-3]}" for line, p in points], 1000,
             y="write latency (ms)", title=title)
    if exact:
        # FEMU's own figures beside the same job
        for panel, (place, label, scale) in zip(axes[3:], ((1, "MiB/s", MIB), (2, "mean latency (ms)", 1000),
                                                           (5, "p99.9 latency (ms)", 1000)), strict=True):
            key = {1: "bytes_per_s", 2: "mean_us", 5: "p99.9_us"}[place]
            figures.bars(panel, ["FEMU's\nown", "its\ncaches", "by its\nscript", "real\nbuffer"], [
                figures.Bars(f"{delay} erase delay", [SOURCE[delay][place],
                                                      *(_of(found, line, delay)[key] / scale for line in EXACT)])
                for delay in DELAYS], y=label, title="the source's job")
    figures.save(figure, path)


ABOUT = About(
    title="What the delay of a zone reset costs",
    question="How much bandwidth and latency does an erase of 3 ms cost ten sequential writers, "
             "on the raw device and behind an FTL that resets in the background?",
    by=("target", "erase delay"),
    caption="fio, 10 jobs of 128 KiB sequential writes at depth 32 on QLC flash: 16 planes, 64 KiB a plane and "
            "program of 12.196 ms, zones of 64 MiB, erase 3 ms. A bandwidth of 82 MiB/s with 320 requests in "
            "flight means a mean latency of 488 ms, whatever the erase costs. Behind the FTL p99 at full load depends "
            "on how two lanes share the flash; it moves by a third with any change of the code. The source's job: its "
            "4 GiB in zones of 256 MiB, for its 180 s, and for 90 s with a real drive's buffer.")
