# SPDX-License-Identifier: GPL-2.0
"""The steady state: what GC costs when every zone has been through it, for writes and for reads beside them.

Uniform and skewed random writes on a device that has been overwritten several times; the target's counters say
what reached flash. Then reads on TLC flash beside writes at a set rate, before GC begins and while it works.
"""

import math
from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import counters, figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_most, ours, shown, spread
from mtlab.run.options import Options

MIB = 1 << 20
DEVICE, DIES, BLOCK_PAGES = 128 * MIB, 16, 32
ZONE = DIES * BLOCK_PAGES * 4096
AGE, SECONDS = 2, 3                             # that make the device old, and that are looked at
SEEDS = 3
LOADS = {"uniform": "", "zipf": "zipf:1.2"}
STREAMS = {"on": "apart", "off": "together", "life": "by life"}
PLACEMENT = {"on": "gc_policy=greedy placement=hot-cold", "off": "gc_policy=greedy placement=none",
             "life": "gc_policy=cost-benefit placement=by-life"}
READS_DEVICE = {"flash.size": "1G", "flash.block_pages": "6", "zoned.zone_size": f"{16 * MIB}",
                "zoned.zone_capacity": f"{12 * MIB}"}
READ_RATE = 5000                                # writes a second beside the reads
BEFORE_MS, DURING_MS = 400, 2000


def _writes(load: str, placement: str) -> str:
    common: dict[str, object] = {"filename": "/dev/mapper/ftl", "ioengine": "io_uring", "iodepth": 8}
    random = {"rw": "randwrite", "bs": "4k", "numjobs": 4, "norandommap": True, "time_based": True, **common,
              **({"random_distribution": LOADS[load]} if LOADS[load] else {})}
    return f"""set -e
look() {{ echo "$EPOCHREALTIME $(dmsetup status ftl)" >>status; }}
mtftl format --force --op 25% /dev/nvme0n1
mtftl open /dev/nvme0n1 ftl lanes=4 buffer_entries=256 {PLACEMENT[placement]}
{fio.command("fill.json", rw="write", bs="128k", **common)}
{fio.command("age.json", runtime=AGE, **random)}
{fio.command("fio.json", runtime=SECONDS + 1, **random)} &
sleep 0.5
for second in $(seq {SECONDS}); do look; sleep 1; done
look
wait
mtftl close ftl
"""


def _reads() -> str:
    common: dict[str, object] = {"filename": "/dev/mapper/ftl", "ioengine": "io_uring", "norandommap": True}

    def beside(name: str, milliseconds: int) -> str:
        timed = {"time_based": True, "runtime": f"{milliseconds}ms", "bs": "4k", **common}
        return (fio.command("writes.json", rw="randwrite", iodepth=4, rate_iops=READ_RATE, **timed) + " &\n"
                + fio.command(f"{name}.json", rw="randread", iodepth=2, **timed) + "\nwait\n")

    return f"""set -e
gc() {{ dmsetup status ftl | sed 's/.* flash_gc \\([0-9]*\\) .*/\\1/' >$1.gc; }}
mtftl format --force --op 25% /dev/nvme0n1
mtftl open /dev/nvme0n1 ftl lanes=4
{fio.command("fill.json", rw="write", bs="256k", iodepth=4, **common)}
sync /dev/mapper/ftl
{beside("before", BEFORE_MS)}gc before
{fio.command("age.json", rw="randwrite", bs="4k", iodepth=16, numjobs=4, io_size="128M", **common)}
dmsetup message ftl 0 reset_stats
{beside("during", DURING_MS)}gc during
mtftl close ftl
"""


def runs(quick: bool) -> list[Run]:
    device = {"flash.size": f"{DEVICE}", "flash.block_pages": f"{BLOCK_PAGES}",
              "flash.erase_ns": f"{2_000_000 * BLOCK_PAGES // 256}", "zoned.zone_size": f"{ZONE}",
              "zoned.zone_capacity": f"{ZONE}"}
    found = [Run(f"{load}-{placement}", _writes(load, placement),
                 Options(clock="virtual", cpus=4, profile="femu", device=dict(device), timeout=3600), ("status",),
                 seeds=SEEDS, seconds=35)
             for load in LOADS for placement in STREAMS]
    reads = Run("reads", _reads(), Options(clock="virtual", cpus=4, profile="tlc", device=dict(READS_DEVICE),
                                           timeout=3600),
                ("before.json", "during.json", "*.gc"), seeds=1 if quick else SEEDS, seconds=20)
    return [reads] if quick else [*found, reads]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for name, outputs in sorted(files.items()):
        if name == "reads":
            found += [{"load": "reads", "gc": part, "moved": int(outputs[f"{part}.gc"]),
                       **fio.sample(outputs[f"{part}.json"], "read", ms / 1000)}
                      for part, ms in (("before", BEFORE_MS), ("during", DURING_MS))]
            continue
        load, placement = name.split("-")
        looks = counters.looks(outputs["status"])
        points = [{k: v for k, v in counters.grown(before, after).items() if k in ("at", "written", *counters.FLASH)}
                  for before, after in zip(looks, looks[1:], strict=False)]
        rates = [grown["written"] / grown["at"] for grown in points]
        of = {"load": load, "streams": STREAMS[placement]}
        found += [{**of, "second": second, "iops": round(rate, 3),
                   **{k: int(v) for k, v in grown.items() if k != "at"}}
                  for second, (rate, grown) in enumerate(zip(rates, points, strict=True))]
        all_of = {k: sum(grown[k] for grown in points) for k in points[0]}
        mean = sum(rates) / len(rates)
        found.append({**of, "iops": round(mean, 3), "moved_over_stored": all_of["flash_gc"] / all_of["flash_data"],
                      "variation": math.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates)) / mean,
                      "write_amplification": sum(all_of[k] for k in counters.FLASH) / all_of["written"]})
    return found


def _seconds(found: list[Sample], load: str, streams: str) -> list[Sample]:
    return [s for s in found if (s["load"], s.get("streams")) == (load, streams) and "second" in s]


def _whole(found: list[Sample], load: str, streams: str) -> Sample:
    return next(s for s in found if (s["load"], s.get("streams")) == (load, streams) and "second" not in s)


def _read(found: list[Sample], gc: str) -> Sample:
    return next(s for s in found if s.get("gc") == gc)


def checks(found: list[Sample], quick: bool) -> list[Check]:
    result = [
        at_most("reads: p99.9 while GC works over before it begins",
                _read(found, "during")["p99.9_us"] / _read(found, "before")["p99.9_us"], 3,
                ours("a read waits for what its die is at: of GC's work no more than of users' writes")),
    ]
    if quick:
        return result
    result += [at_most(f"{load}, {streams}: coefficient of variation from second to second",
                       _whole(found, load, streams)["variation"], 0.05, ours("the rate limiter admits users smoothly"))
               for load in LOADS for streams in STREAMS.values()]
    zipf = [_whole(found, "zipf", streams) for streams in STREAMS.values()]
    apart, together, by_life = (of["write_amplification"] for of in zipf)
    moved = [of["moved_over_stored"] for of in zipf]
    result.append(at_most("zipf 1.2: write amplification with streams apart over together", apart / together, 0.75,
                          ours("blocks that GC moves are cold; apart from new data they are not moved again with "
                               "it"),
                          f"GC moves {moved[0] / moved[1]:.2f} times as much for each block that is stored, but each "
                          f"is stored once either way, {1 / (1 + moved[1]):.2f} of all writes without streams."))
    result.append(at_most("zipf 1.2: write amplification by life over together", by_life / together, 0.75,
                          ours("users' hot and cold blocks lie apart, too, and hot zones are left to die")))
    return result


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["load", "streams of users and GC", "writes/s", "variation", "moved/stored", "write amplification",
             "read p50 (us)", "p99.9 (us)"]]
    for load in LOADS:
        for streams in STREAMS.values():
            if _seconds(found, load, streams):
                all_of = _whole(found, load, streams)
                rows.append([load, streams, shown(all_of, "iops", ".0f"), shown(all_of, "variation", ".1%"),
                             shown(all_of, "moved_over_stored", ".2f"), shown(all_of, "write_amplification", ".3f"),
                             "-", "-"])
    for gc in ("before", "during"):
        point = _read(found, gc)
        rows.append([f"reads beside {READ_RATE} writes/s, {'no' if gc == 'before' else 'with'} GC", "apart", "-", "-",
                     "-", "-", shown(point, "p50_us", ".0f"), shown(point, "p99.9_us", ".0f")])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    written = {f"{load}, {streams}": _seconds(found, load, streams) for load in LOADS for streams in STREAMS.values()}
    lines = [figures.Line(label, [s["second"] for s in points], [s["iops"] / 1000 for s in points],
                          spread=[(x / 1000, y / 1000) for x, y in (spread(s, "iops") for s in points)])
             for label, points in written.items() if points]
    figure, axes = figures.panels(2 if lines else 1)
    if lines:
        figures.lines(axes[0], lines, x="second", y="writes (1000/s)", title="writes, second by second")
    figures.bars(axes[-1], [f"p{p:g}" for p in fio.PERCENTILES],
                 [figures.Bars(label, [_read(found, gc)[f"p{p:g}_us"] for p in fio.PERCENTILES],
                               [spread(_read(found, gc), f"p{p:g}_us") for p in fio.PERCENTILES])
                  for gc, label in (("before", "no GC"), ("during", "with GC"))],
                 y="latency (us)", title="reads beside writes")
    figures.save(figure, path)


ABOUT = About(
    title="The steady state",
    question="How smooth are writes when every zone has been through GC, what does it cost to keep hot and cold data "
             "apart, and what do reads notice?",
    by=("load", "streams", "second", "gc"),
    caption="Writes: 4 KiB, four jobs with 8 each in flight, 128 MiB of flash (16 dies, 40/200 us), a quarter of it "
            f"spare, after several overwrites; {SECONDS} seconds. Reads: two in flight, TLC flash of 1 GiB. "
            f"Medians of {SEEDS} seeds, bars from the least to the most.")
