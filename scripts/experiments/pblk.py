# SPDX-License-Identifier: GPL-2.0
"""Beside pblk itself: the FTL of Linux 4.12 to 5.14 for Open-Channel drives, which the single-threaded architecture is.

pblk runs on an Open-Channel drive under Linux 5.10, ours on a zoned drive under 6.12: the same dies, channels, times
and drive buffer; the same CPUs, the same number of buffer entries, the same write unit. What the kernels differ by is
measured too: the same jobs on null_blk under both.

Fresh: 4 KiB random writes on an empty drive. Steady: random overwrites of a full one with a quarter spare, after GC
has begun; write amplification is the drive's, from its own counters.
"""

import struct
from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes
from mtlab import figures, fio
from mtlab.experiments import Check, Experiment, Run, Sample, at_least, shown, spread
from mtlab.options import Options

CPUS, ENTRIES = 8, 1024
USERS, QUICK_USERS = (1, 2, 4, 8), (1, 8)
SETTINGS = (("tlc", 1), ("tlc", 8), ("dram", 1))        # the device and the write unit of fresh drives
STEADY_UNIT = 8
WINDOW_MS, QUICK_WINDOW_MS = 100, 25
LANES = {"single": 1, "multi": CPUS}
LABELS = {"multi": f"dm-mtftl, {CPUS} lanes", "single": "dm-mtftl, 1 lane", "pblk": "pblk (Linux 5.10)"}
KERNELS = {"pblk": "pblk", "single": "6.12", "multi": "6.12"}
OPEN_CHANNEL = {"nvme0.vendor-id": "0x1d1d", "nvme0.device-id": "0x1f1f", "zoned": "off",
                "flash.personality": "ocssd", "ms": "16"}
# 8 x 4 dies as in tlc; a chunk of 6 MiB, 21 lines.
FRESH = {"tlc": {"flash.block_pages": "96"}, "dram": {"flash.channels": "8", "flash.dies": "4", "flash.chunk": "6M"}}
FRESH_SIZE = 21 * 32 * 6
# Four dies with 40 lines, or 40 zones, of 12 MiB.
STEADY = {"flash.channels": "2", "flash.dies": "2", "flash.block_pages": "48"}
STEADY_ZNS = {"flash.size": "640M", "zoned.zone_size": "16M", "zoned.zone_capacity": "12M"}
STEADY_OCSSD = {"flash.size": "480M"}
STEADY_MS = 1000
SPARE = 25
PROGRAMMED = 136            # in the drive's log page: bytes programmed


def _open(line: str, unit: int, dies: int, spare: int | None) -> str:
    if line == "pblk":
        return f"guest-pblk new nvme0n1 ftl 0 {dies - 1} {spare or ''}"
    return (f"mtftl format --force {f'--op {spare}%' if spare else ''} /dev/nvme0n1\n"
            f"mtftl open /dev/nvme0n1 ftl lanes={LANES[line]} buffer_entries={ENTRIES} write_unit={unit}")


def _disk(line: str) -> str:
    return "/dev/ftl" if line == "pblk" else "/dev/mapper/ftl"


def _options(line: str, profile: str, device: Mapping[str, str], unit: int) -> Options:
    append = f"null_blk.nr_devices=0 pblk.write_buffer_size={ENTRIES}" if line == "pblk" else ""
    extra = OPEN_CHANNEL | {"flash.ws_opt": f"{unit}"} if line == "pblk" else {}
    return Options(clock="virtual", cpus=CPUS, profile=profile, timeout=3600, kernel=KERNELS[line],
                   device=dict(device) | extra, append=append)


def _fresh(line: str, profile: str, unit: int, users: int, window_ms: int) -> Run:
    device = FRESH[profile] | {"flash.size": f"{FRESH_SIZE}M"} if line == "pblk" else {}
    job = fio.command("fio.json", filename=_disk(line), rw="randwrite", bs="4k", ioengine="psync", norandommap=True,
                      numjobs=users, time_based=True, ramp_time="10ms", runtime=f"{window_ms}ms", size="1G")
    return Run(f"fresh-{profile}-{line}-{unit}-{users}", f"set -e\n{_open(line, unit, 32, None)}\n{job}",
               _options(line, profile, device, unit))


def _null(kernel: str, users: int, window_ms: int) -> Run:
    job = fio.command("fio.json", filename="/dev/nullb0", rw="randwrite", bs="4k", ioengine="psync", norandommap=True,
                      numjobs=users, time_based=True, ramp_time="10ms", runtime=f"{window_ms}ms", size="1G")
    load = f"modprobe null_blk submit_queues={CPUS}\n" if kernel == "6.12" else ""
    append = "" if kernel == "6.12" else f"null_blk.submit_queues={CPUS}"
    return Run(f"null-{kernel}-{users}", f"set -e\n{load}{job}",
               Options(clock="virtual", cpus=CPUS, profile="none", timeout=3600, kernel=kernel, append=append,
                       module=False))


def _steady(line: str, unit: int) -> Run:
    """The drive is filled, overwritten once at random, and looked at."""
    common: dict[str, object] = {"filename": _disk(line), "ioengine": "psync", "size": "$size"}
    look = "nvme get-log /dev/nvme0 --namespace-id=1 --log-id=0xc1 --log-len=256 --raw-binary"
    random: dict[str, object] = {"rw": "randwrite", "bs": "4k", "norandommap": True, "numjobs": CPUS, **common}
    script = f"""set -e
{_open(line, unit, 4, SPARE)}
size=$(blockdev --getsize64 {_disk(line)})
{fio.command("fill.json", rw="write", bs="128k", **common)}
{fio.command("age.json", io_size=f"$((size / {CPUS} / 4096 * 4096))", **random)}
{look} >before.log
{fio.command("fio.json", time_based=True, runtime=f"{STEADY_MS}ms", **{**random, "randseed": fio.seed(43)})}
{look} >after.log
"""
    device = STEADY | (STEADY_OCSSD if line == "pblk" else STEADY_ZNS)
    return Run(f"steady-tlc-{line}-{unit}-{CPUS}", script, _options(line, "tlc", device, unit),
               ("fio.json", "*.log"), seconds=120)


def runs(quick: bool) -> list[Run]:
    users, window_ms = (QUICK_USERS, QUICK_WINDOW_MS) if quick else (USERS, WINDOW_MS)
    found = [_fresh(line, profile, unit, n, window_ms) for profile, unit in (SETTINGS[:1] if quick else SETTINGS)
             for line in LABELS for n in users]
    found += [_null(kernel, n, window_ms) for kernel in ("pblk", "6.12") for n in users]
    return found if quick else found + [_steady(line, STEADY_UNIT) for line in LABELS]


def _programmed(log: bytes) -> int:
    if log[:4] != b"MTFL":
        raise ValueError("this is not the drive's log page")
    return int(struct.unpack_from("<Q", log, PROGRAMMED)[0])


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found = []
    for name, outputs in files.items():
        words = name.split("-")
        data = outputs["fio.json"]
        one = fio.sample(data, "write", fio.seconds(data))
        if words[0] == "null":
            of = {"state": "null", "profile": "none", "line": words[1], "unit": 0}
        else:
            of = {"state": words[0], "profile": words[1], "line": words[2], "unit": int(words[3])}
        if words[0] == "steady":
            written = _programmed(outputs["after.log"]) - _programmed(outputs["before.log"])
            one["amplification"] = round(written / (4096 * one["ios"]), 3)
        found.append({**of, "users": int(words[-1]), **one})
    return sorted(found, key=lambda s: (s["state"], s["profile"], s["unit"], s["line"], s["users"]))


def _iops(found: list[Sample], state: str, profile: str, unit: int, line: str) -> dict[int, float]:
    return {s["users"]: s["iops"] for s in found
            if (s["state"], s["profile"], s["unit"], s["line"]) == (state, profile, unit, line)}


def _settings(found: list[Sample]) -> list[tuple[str, str, int]]:
    return sorted({(s["state"], s["profile"], s["unit"]) for s in found if s["state"] != "null"})


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    result = []
    for state, profile, unit in _settings(found):
        ours, theirs = (_iops(found, state, profile, unit, line) for line in ("multi", "pblk"))
        what = f"{state}, {profile}, write unit {unit}"
        result.append(at_least(f"{what}: ours over pblk at 8 users", ours[8] / theirs[8], 3,
                               "pblk has one ring under one lock, and one writer" if state == "fresh" else
                               "pblk's GC shares ring, writer and lines with its users"))
        result += [at_least(f"{what}: ours over pblk at {n} user{'s'[:n - 1]}", ours[n] / theirs[n], 1,
                            "a few users must not pay for lanes they do not use") for n in (1, 2) if n in ours]
    return result


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["state", "device", "unit", "users", *(f"{LABELS[line]}, kIOPS" for line in LABELS), "ours/pblk",
             "null_blk 5.10 / 6.12, kIOPS"]]
    at = {(s["state"], s["profile"], s["unit"], s["line"], s["users"]): s for s in found}
    null = {kernel: _iops(found, "null", "none", 0, kernel) for kernel in ("pblk", "6.12")}
    for state, profile, unit in _settings(found):
        for n in sorted(_iops(found, state, profile, unit, "pblk")):
            of = [at[state, profile, unit, line, n] for line in LABELS]
            rows.append([state, profile, str(unit), str(n), *(shown(s, "iops", scale=1000) for s in of),
                         f"{of[0]['iops'] / of[-1]['iops']:.2f}",
                         " / ".join(f"{null[kernel][n] / 1000:.0f}" for kernel in null)])
            if state == "steady":
                rows.append(["", "", "", "write amplification", *(f"{s['amplification']:.2f}" for s in of), "", ""])
                rows.append(["", "", "", "99.9%, us", *(f"{s['p99.9_us']:.0f}" for s in of), "", ""])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    settings = [x for x in _settings(found) if x[0] == "fresh"]
    figure, axes = figures.panels(len(settings) + 1)
    for panel, (state, profile, unit) in zip(axes, settings, strict=False):
        _panel(panel, found, [(label, state, profile, unit, line) for line, label in LABELS.items()],
               f"{profile}, write unit {unit}")
    _panel(axes[-1], found, [(f"null_blk, {label}", "null", "none", 0, line)
                             for line, label in (("6.12", "Linux 6.12"), ("pblk", "Linux 5.10"))],
           "what the kernels differ by")
    figures.save(figure, path)


def _panel(panel: Axes, found: list[Sample], wanted: list[tuple[str, str, str, int, str]], title: str) -> None:
    lines = []
    for label, *of in wanted:
        points = sorted((s for s in found if [s["state"], s["profile"], s["unit"], s["line"]] == of),
                        key=lambda s: int(s["users"]))
        lines.append(figures.Line(label, [s["users"] for s in points], [s["iops"] / 1000 for s in points],
                                  spread=[(x / 1000, y / 1000) for x, y in (spread(s, "iops") for s in points)]))
    figures.lines(panel, lines, x="users (fio jobs, queue depth 1)", y="4 KiB random writes (kIOPS)", title=title,
                  log2_x=True, ticks=lines[0].x)


EXPERIMENT = Experiment(
    name="pblk", title="Beside pblk",
    question="How many random writes does the same flash take under dm-mtftl, and how many under pblk, the FTL that "
             "the kernel had for drives of the Open-Channel kind?",
    runs=runs, samples=samples, checks=checks, table=table, draw=draw, by=("state", "profile", "unit", "line", "users"),
    caption=f"4 KiB random writes at queue depth 1 on {CPUS} modelled CPUs; {ENTRIES} buffer entries and the same "
            "write unit for all. pblk: Open-Channel drive, Linux 5.10; dm-mtftl: zoned drive, Linux 6.12; the same "
            f"dies, channels and times. Steady: four dies, {SPARE}% spare, after a fill and one random overwrite.")
