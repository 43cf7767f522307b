# SPDX-License-Identifier: GPL-2.0
"""A full drive under random writes: how near GC comes to what flash, buses and CPUs allow, and what users feel.

The drive is filled, then overwritten at random once; only then it is looked at, at full rate, and at 70% of what that
was. Two shapes of the same flash: few large zones, and many small ones, where erasing takes most of the dies' time.
With as many lanes as CPUs, and with one. Few large zones leave room for the CPUs to count: there also with twice as
many of them.
Limits come from the drive's own counters and the guest's accounts: what was done, divided by how busy each was for it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from mtlab.exp import counters, figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, ours, shown, spread
from mtlab.run.options import Options

MIB = 1 << 20
SHAPES = {32: {"flash.size": "2G"},
          256: {"flash.size": "2G", "zoned.zone_size": "8M", "zoned.zone_capacity": "6M", "flash.block_pages": "96"}}
SEEDS = 3                                       # of what the headline is about
DEPTH, PART = 8, 0.7                            # of a job; of the peak, for the tail
SETTLE_MS, FULL_MS, PART_MS = 300, 600, 300
LEAD_MS = 150                                   # from the first write until the look: all jobs write, none starts up
BUS = 8 * 1_200_000_000                         # bytes a second of all channels (profile tlc)
LIMITS = ("dies", "buses", "CPUs")
LOG_BYTES = 2048                                # of the flash's counters, with each die's
TAIL = (99.0, 99.9, 99.99)


class Line(NamedTuple):
    cpus: int
    lanes: str = "percpu"
    seeds: int = 1


LINES = {"8": Line(8, seeds=SEEDS), "8-single": Line(8, "1"), "16": Line(16)}
TAKEN = {32: tuple(LINES), 256: ("8", "8-single")}      # with many zones the dies bind, whatever the CPUs do


def _script(cpus: int, lanes: str) -> str:
    common: dict[str, object] = {"filename": "/dev/mapper/ftl", "ioengine": "io_uring", "norandommap": True}
    random: dict[str, object] = {**common, "rw": "randwrite", "bs": "4k", "iodepth": DEPTH, "numjobs": cpus}
    timed: dict[str, object] = {**random, "time_based": True,
                                "percentile_list": ":".join(f"{p:g}" for p in (50.0, *TAIL))}

    def job(output: str, number: int, milliseconds: int, **more: object) -> str:
        settings = timed | {"randseed": fio.seed(number), "runtime": f"{milliseconds}ms"} | more
        return fio.command(output, **settings)

    return f"""set -e
look() {{
	echo "$EPOCHREALTIME $(head -n 1 /proc/stat) | $(dmsetup status ftl)" >>status
	{counters.flash_log("$1.log", LOG_BYTES)}
}}
written() {{
	dmsetup status ftl | sed 's/.* written \\([0-9]*\\).*/\\1/'
}}
mtftl format --force --op 25% /dev/nvme0n1 >/dev/null
mtftl open /dev/nvme0n1 ftl lanes={lanes}
{fio.command("fill.json", **common, rw="write", bs="128k", iodepth=DEPTH)}
{fio.command("age.json", **random, io_size=f"$(($(blockdev --getsize64 /dev/mapper/ftl) / {cpus}))")}
{job("settle.json", 43, SETTLE_MS)}
before=$(written)
{job("full.json", 44, FULL_MS)} &
until [ "$(written)" != "$before" ]; do sleep 0.01; done
sleep {LEAD_MS / 1000}
look before
sleep {(FULL_MS - 2 * LEAD_MS) / 1000}
look after
wait
rate=$(tr -d ' ,"' <full.json | sed -n 's/^iops:\\([1-9][0-9]*\\).*/\\1/p' | head -n 1)
{job("part.json", 45, PART_MS, rate_iops=f"$((rate * {round(100 * PART)} / 100 / {cpus}))")}
mtftl close ftl
"""


def runs(quick: bool) -> list[Run]:
    return [Run(f"{zones}-{name}", _script(line.cpus, line.lanes),
                Options(clock="virtual", cpus=line.cpus, profile="tlc", timeout=3600, device=dict(device)),
                ("full.json", "part.json", "status", "*.log"), seeds=1 if quick else line.seeds,
                seconds=120 if zones == 32 else 65)
            for zones, device in SHAPES.items() for name in TAKEN[zones] for line in (LINES[name],)
            if not quick or (zones, name) == (256, "8")]


def _tail(data: bytes) -> Sample:
    job = fio.sample(data, "write")
    return {**{k: job[k] for k in ("p50_us", *(f"p{p:g}_us" for p in TAIL), "max_us")}, "mean_iops": job["iops"]}


def _look(line: str) -> dict[str, float]:
    """The target's counters, and the processors' ticks."""
    kernel, found = line.split(" | ")[0].split(), counters.status(line)
    assert found
    ticks = [int(x) for x in kernel[2:]]
    return found | {"ticks": sum(ticks), "idle": ticks[3] + ticks[4]}


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for name, outputs in files.items():
        zones, line = name.split("-", 1)
        grown = counters.grown(*map(_look, outputs["status"].decode().splitlines()))
        worked = counters.grown(*(counters.flash(outputs[f"{x}.log"]) for x in ("before", "after")))
        rate = grown["written"] / grown["at"]
        busy = {"dies": worked["busy"] / worked["now"],
                "buses": (worked["read_bytes"] + worked["programmed_bytes"]) * 1e9 / worked["now"] / BUS,
                "CPUs": 1 - grown["idle"] / grown["ticks"]}
        on_flash = sum(grown[k] for k in counters.FLASH)
        found += [{"zones": int(zones), "line": line, "load": "full", "iops": round(rate, 3),
                   "write_amplification": round(on_flash / grown["written"], 4),
                   **{f"busy_{k}": round(v, 4) for k, v in busy.items()},
                   **_tail(outputs["full.json"])},
                  {"zones": int(zones), "line": line, "load": "part", **_tail(outputs["part.json"])}]
    return found


def _of(found: list[Sample], zones: int, line: str, load: str = "full") -> Sample:
    return next(s for s in found if (s["zones"], s["line"], s["load"]) == (zones, line, load))


def _nearest(point: Sample) -> float:
    """The share of the least of the limits that was reached."""
    return max(float(point[f"busy_{k}"]) for k in LIMITS)


def _busy(point: Sample) -> str:
    return "Busy: " + ", ".join(f"{k} {point[f'busy_{k}']:.0%}" for k in LIMITS) + "."


def checks(found: list[Sample], quick: bool) -> list[Check]:
    result = []
    for zones in sorted({s["zones"] for s in found}):
        point, part = _of(found, zones, "8"), _of(found, zones, "8", "part")
        result += [
            at_least(f"{zones} zones: share of the least limit", _nearest(point), 0.85,
                     ours("GC works on every core, and no mover waits for another"), _busy(point)),
            at_most(f"{zones} zones, full rate: p99.9 (us)", point["p99.9_us"], 5000,
                    ours("a user waits for slices of GC's work, not for zones")),
            at_most(f"{zones} zones, full rate: worst (us)", point["max_us"], 30000, ours("no wait is for a victim")),
            at_most(f"{zones} zones, 70%: p99 (us)", part["p99_us"], 200, ours("below the peak a wait is rare")),
            at_most(f"{zones} zones, 70%: p99.9 (us)", part["p99.9_us"], 1000, ours("below the peak a wait is rare")),
            at_most(f"{zones} zones, 70%: p99.99 (us)", part["p99.99_us"], 5000, ours("an erase lasts 3.5 ms")),
            at_most(f"{zones} zones, 70%: worst (us)", part["max_us"], 15000, ours("an erase lasts 3.5 ms")),
        ]
        if not quick:
            result += [
                at_least(f"{zones} zones: 8 lanes over 1",
                         point["iops"] / _of(found, zones, "8-single")["iops"], 6,
                         ours("each core has a lane and a thread of GC's"),
                         f"One lane already uses {_nearest(_of(found, zones, '8-single')):.0%} of what binds it, eight "
                         f"use {_nearest(point):.0%}."),
            ]
        if not quick and "16" in TAKEN[zones]:
            more = _of(found, zones, "16")
            result.append(at_least(
                f"{zones} zones: 16 CPUs over 8, or the limit that 16 reach",
                max(more["iops"] / point["iops"], _nearest(more) / 0.85), 1,
                ours("the rate grows until the flash binds"), f"With 16 CPUs: {_busy(more)}"))
    return result


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["zones", "CPUs", "lanes", "load", "kIOPS", "write amplification", *(f"{k} busy" for k in LIMITS),
             "p50 us", *(f"p{p:g} us" for p in TAIL), "worst us"]]
    for s in found:
        line = LINES[s["line"]]
        full = s["load"] == "full"
        rows.append([str(s["zones"]), str(line.cpus),
                     line.lanes.replace("percpu", str(line.cpus)),
                     "full" if full else f"{PART:.0%}", shown(s, "iops" if full else "mean_iops", ".0f", 1000),
                     shown(s, "write_amplification", ".2f") if full else "-",
                     *(shown(s, f"busy_{k}", ".0%") if full else "-" for k in LIMITS),
                     *(shown(s, f"p{p:g}_us", ".0f") for p in (50.0, *TAIL)), shown(s, "max_us", ".0f")])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    shapes = sorted({s["zones"] for s in found})
    loads = {"full": "full rate", "part": f"{PART:.0%} of that"}
    figure, axes = figures.panels(len(shapes) + len(loads), height=3.1)
    for panel, zones in zip(axes, shapes, strict=False):
        full = [s for s in found if s["load"] == "full" and s["zones"] == zones]
        names = []
        for s in full:
            line, limit = LINES[s["line"]], max((s[f"busy_{k}"], k) for k in LIMITS)[1]
            names.append(f"{line.cpus} CPUs, {'1 lane' if line.lanes == '1' else f'{line.cpus} lanes'}"
                         f"\nbusiest: {limit}")
        figures.rows(panel, names, [
            figures.Bars("reached", [s["iops"] / 1000 for s in full], [(x / 1000, y / 1000) for x, y in (
                spread(s, "iops") for s in full)]),
            figures.Bars("limit of the busiest", [s["iops"] / _nearest(s) / 1000 for s in full])],
            x="random writes (1000/s)", title=f"{zones} zones")
    for panel, (load, label) in zip(axes[len(shapes):], loads.items(), strict=True):
        figures.bars(panel, [f"p{p:g}" for p in TAIL] + ["worst"],
                     [figures.Bars(f"{zones} zones", [s[f"p{p:g}_us"] / 1000 for p in TAIL] + [s["max_us"] / 1000])
                      for zones in shapes for s in [_of(found, zones, "8", load)]],
                     y="write latency (ms)", title=f"8 CPUs and lanes, {label}")
    figures.save(figure, path)


ABOUT = About(
    title="A full drive",
    question="How near does GC come to what flash, buses and CPUs allow?",
    by=("zones", "line", "load"),
    caption="4 KiB random writes on TLC flash of 2 GiB, 25% over-provisioning, as many jobs as CPUs, 8 in flight each. "
            "Limits: the rate over how busy dies, buses or CPUs were for it. Virtual time.")
