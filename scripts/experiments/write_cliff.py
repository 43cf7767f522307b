# SPDX-License-Identifier: GPL-2.0
"""The write cliff: five workloads on a drive that fills up, until garbage collection sets the pace.

The black-box SSD report's drive and jobs, scaled: capacity, files and time are 1/SCALE of the report's, so a
moment here is the same moment there, in its share of the run. Blocks are an eighth of the report's and take an
eighth of its time to erase, so there are fewer of them: were they all there, each would be so small that GC
would do nothing but wait for its first read. The five workloads run on ext4 over dm-mtftl, as there on the
drive. A sixth writes the whole logical device at random, without a file system: its write amplification has a
closed form.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from mtlab.exp import counters, figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, shown, spread, within
from mtlab.run.options import Options

SCALE = 32
SEEDS = 3
SECONDS = 150 / SCALE                           # half of the report's run: the plateau comes early in it
MIB = 1 << 20
BLOCK = 4096
DEVICE, FILES, FILE = 4096 * MIB // SCALE, 4, 576 * MIB // SCALE
DIES, BLOCK_PAGES = 16, 32
ZONE = DIES * BLOCK_PAGES * BLOCK
ASIDE = 2 + 2 * 1                               # zones: the superblock's log, two checkpoints
ELSEWHERE = ("free", "open", "resetting", "bad")  # zones of which none is full, or in GC's hands
BEFORE = 3 / SCALE                              # in the first seconds no zone has to be collected
CEILING = DIES * BLOCK / 200e-6                 # all dies programming
SAMPLES = 60                                    # of the target's counters: one for 2.5 s of the report's run
FTL = "lanes=4 buffer_entries=256"
FIO = {"randread": "reads only", "randrw": "reads and writes", "randwrite": "writes only"}
SYSBENCH = {"sysbench-4": 4, "sysbench-32": 32}
UNIFORM = "uniform"
LABELS = {**FIO, "sysbench-4": "sysbench, 4 threads", "sysbench-32": "sysbench, 32 threads"}

# Counters of the target at an even pace: this loop is all that disturbs.
_SAMPLER = """sample() { echo "$EPOCHREALTIME $(dmsetup status ftl)" >>status; }
sampler() { while [ ! -e stop ]; do sample; sleep %.4f; done; sample; }
"""


def _script(name: str, quick: bool) -> str:
    seconds = SECONDS / 10 if quick else SECONDS
    start = (f"set -e\n{_SAMPLER % (seconds / SAMPLES)}"
             f"mtftl format --force --op {25 if name == UNIFORM else 20}% /dev/nvme0n1\n"
             f"mtftl open /dev/nvme0n1 ftl {FTL}\n")
    run_time = {"time_based": True, "runtime": f"{round(seconds * 1000)}ms"}
    logs = {"write_lat_log": "job", "log_offset": 0}
    if name == UNIFORM:
        common = {"filename": "/dev/mapper/ftl", "ioengine": "io_uring", "iodepth": 8}
        fill = fio.command("fill.json", rw="write", bs="128k", **common)
        job = fio.command("fio.json", rw="randwrite", bs="4k", numjobs=4, norandommap=True, **common, **run_time)
        body = f"{fill}\nsampler &\n{job}\ntouch stop\nwait\n"
        return f"{start}{body}mtftl close ftl"
    start += "mke2fs -t ext4 -F -q -m 0 -J size=4 -E lazy_itable_init=0,lazy_journal_init=0 /dev/mapper/ftl\n" \
             "mount -o lazytime /dev/mapper/ftl /mnt\n"
    if name in FIO:
        files = {"directory": "/mnt", "size": FILE, "numjobs": FILES, "ioengine": "psync", "fallocate": "none"}
        fill = fio.command("fill.json", rw="write", bs="128k", **files)
        job = fio.command("fio.json", rw=name, bs="16k", norandommap=True, **files, **run_time, **logs)
        body = f"{fill}\nsync\nsampler &\n{job}\ntouch stop\nwait\n"
    else:
        test = (f"sysbench fileio --file-total-size={FILES * FILE} --file-test-mode=rndrw "
                f"--file-extra-flags=direct --file-fsync-all=on --rand-seed={fio.seed(42)} "
                f"--threads={SYSBENCH[name]} --time={math.ceil(seconds)}")
        body = (f"(cd /mnt && {test} prepare) >/dev/null\nsync\nsampler &\n(cd /mnt && {test} run) >sysbench.txt\n"
                "touch stop\nwait\n")
    return f"{start}{body}umount /mnt\nmtftl close ftl"


def runs(quick: bool) -> list[Run]:
    device = {"flash.size": f"{DEVICE}", "flash.block_pages": f"{BLOCK_PAGES}",
              "flash.erase_ns": f"{2_000_000 * BLOCK_PAGES // 256}",
              "zoned.zone_size": f"{ZONE}", "zoned.zone_capacity": f"{ZONE}"}
    return [Run(name, _script(name, quick),
                Options(clock="virtual", cpus=4, profile="femu", device=dict(device), timeout=3600),
                ("*.json", "*.log", "status") if name in FIO else ("status",),
                seeds=1 if quick else SEEDS, seconds=15)
            for name in (("randwrite",) if quick else (*FIO, *SYSBENCH, UNIFORM))]


def _same(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return all(one[key] == other[key] for key in ("read", "written"))


def _series(text: bytes) -> list[Sample]:
    """Rates between two looks at the counters; blocks of the target are 4 KiB, its zones one block of each die."""
    looks = counters.looks(text)
    while len(looks) > 2 and _same(looks[0], looks[1]):
        del looks[0]                            # the jobs are not yet there
    while len(looks) > 2 and _same(looks[-2], looks[-1]):
        del looks[-1]                           # nor any more
    found = []
    for before, after in zip(looks, looks[1:], strict=False):
        seconds = after["at"] - before["at"]
        if seconds <= 0:
            continue
        grown = counters.grown(before, after)
        found.append({"at": round(after["at"] - looks[0]["at"], 6), "seconds": round(seconds, 6),
                      "mb_s": round((grown["read"] + grown["written"]) * BLOCK / seconds / 1e6, 3),
                      "read_mb_s": round(grown["read"] * BLOCK / seconds / 1e6, 3),
                      "write_mb_s": round(grown["written"] * BLOCK / seconds / 1e6, 3),
                      "erased_blocks": int(grown["wear_total"]) * DIES, "moved_pages": int(grown["flash_gc"]),
                      "stored_pages": int(grown["flash_data"]), "free_zones": int(after["free"]),
                      "used_zones": int(after["zones"]) - ASIDE - sum(int(after[k]) for k in ELSEWHERE),
                      "open_zones": int(after["open"]),
                      "logical_pages": int(after["logical_pages"])})
    return found


def _latency(outputs: Mapping[str, bytes], start: float, end: float) -> float:
    """p99.9 of the writes' completion latency in microseconds, of writes that ended from start to end, in seconds."""
    rows = [line.split(b",") for name, data in outputs.items() if "_clat" in name for line in data.splitlines()]
    found = sorted(int(row[1]) for row in rows
                   if row[2].strip() == b"1" and 1000 * start <= int(row[0]) < 1000 * end)
    return found[math.ceil(0.999 * len(found)) - 1] / 1000 if found else 0


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for name, outputs in sorted(files.items()):
        points = _series(outputs["status"])
        found += [{"workload": name, "step": step, **point} for step, point in enumerate(points)]
        found.append({"workload": name, "part": "all", **_all(points)})
        if name in ("randrw", "randwrite"):
            seconds = fio.seconds(outputs["fio.json"])
            parts = {"before": (0, min(BEFORE, seconds / 10)), "plateau": (seconds / 2, seconds)}
            found += [{"workload": name, "part": part, "p99.9_us": round(_latency(outputs, *when), 3)}
                      for part, when in parts.items()]
    return found


def _all(points: list[Sample]) -> Sample:
    """What a run's table shows of it."""
    late = _since(points, 0.5)
    moved, stored = _sum(late, "moved_pages"), _sum(late, "stored_pages")
    return {"read_mb_s": round(_rate(points, "read_mb_s"), 3), "write_mb_s": round(_rate(points), 3),
            "peak_mb_s": max(s["write_mb_s"] for s in points), "plateau_mb_s": round(_rate(late), 3),
            "moved_pages": _sum(points, "moved_pages"), "erased_blocks": _sum(points, "erased_blocks"),
            **({"moved_over_stored": round(moved / stored, 3)} if stored else {})}


def _since(points: list[Sample], share: float) -> list[Sample]:
    """What was looked at from a share of the run on."""
    return [s for s in points if s["at"] >= share * points[-1]["at"]]


def _points(found: list[Sample], workload: str, since: float = 0) -> list[Sample]:
    """The workload's looks at the counters, from a share of the run on."""
    return _since([s for s in found if s["workload"] == workload and "at" in s], since)


def _sum(points: Sequence[Sample], key: str) -> float:
    return float(sum(s[key] for s in points))


def _rate(points: Sequence[Sample], key: str = "write_mb_s") -> float:
    return float(sum(s[key] * s["seconds"] for s in points) / _sum(points, "seconds"))


def lambert_w(x: float) -> float:
    """The principal branch of w exp(w) = x, by Newton's iteration; x from -1/e to 0 here."""
    w = -1 + math.sqrt(2 * (1 + math.e * x))
    for _ in range(50):
        w -= (w * math.exp(w) - x) / (math.exp(w) * (w + 1))
    return w


def greedy_waf(ratio: float) -> float:
    """Write amplification of greedy GC under uniform random writes; ratio: physical over logical.

    L. Xiang, B. Kurkoski: An Improved Analytical Expression for Write Amplification in NAND Flash, 2011.
    """
    return ratio / (ratio + lambert_w(-ratio * math.exp(-ratio)))


def uniform_waf(found: list[Sample]) -> tuple[float, float]:
    """Measured and predicted, in the second half of the run; the ratio counts what the target can use for data.

    A zone holds as many data pages as were written for each zone that was erased: headers and footers are
    not among them. Zones in use are the full ones, those that GC is emptying, which were full when GC chose them,
    and half of those that are being written.
    """
    points = _points(found, UNIFORM, 0.5)
    stored, moved = _sum(points, "stored_pages"), _sum(points, "moved_pages")
    zones = _sum(points, "erased_blocks") / DIES
    used = _sum(points, "used_zones") / len(points)
    open_zones = _sum(points, "open_zones") / len(points)
    usable = (used + open_zones / 2) * (stored + moved) / zones
    return (stored + moved) / stored, greedy_waf(usable / points[0]["logical_pages"])


def checks(found: list[Sample], quick: bool) -> list[Check]:
    result = []
    if not quick:
        reads = [s["read_mb_s"] for s in _points(found, "randread")][1:-1]
        result.append(at_least("reads only: least over mean rate", min(reads) / (sum(reads) / len(reads)), 0.95,
                               ours("without writes nothing is collected: no cliff")))
    for name in ("randwrite",) if quick else ("randrw", "randwrite"):
        before, after = (_latency_of(found, name, part) for part in ("before", "plateau"))
        result.append(at_most(f"{FIO[name]}: p99.9 on the plateau over before the cliff", after / before, 3,
                              ours("the rate limiter spreads what GC costs over all writes")))
    plateau = _points(found, "randwrite", 0.5)[:-1]
    rates = [s["write_mb_s"] for s in plateau]
    mean = sum(rates) / len(rates)
    deviation = math.sqrt(sum((r - mean) ** 2 for r in rates) / len(rates))
    result += [
        at_most("writes only: coefficient of variation on the plateau", deviation / mean, 0.05,
                ours("the rate limiter admits users smoothly")),
        at_most("writes only: best rate over the media's ceiling",
                max(s["write_mb_s"] for s in _points(found, "randwrite")) * 1e6 / CEILING, 1.02,
                form("16 dies x 4 KiB / 200 us = 327.7 MB/s")),
    ]
    if quick:
        return result
    peak = max(s["write_mb_s"] for s in _points(found, "randwrite", 0)[:10])
    result += [
        at_most("writes only: plateau over the peak", mean / peak, 0.8,
                ours("once zones are short each write pays for moved pages")),
        at_least("pages moved, writes only over reads and writes", _sum(_points(found, "randwrite"), "moved_pages") /
                 max(1, _sum(_points(found, "randrw"), "moved_pages")), 1,
                 ours("more writes in the same time move more")),
        Check("sysbench: 32 threads over 4", _both(found, "sysbench-32") / _both(found, "sysbench-4"), 1, 8,
              ours("every write is followed by an fsync, and the fsyncs of one journal share commits"),
              late="was <= 8, which less than one passes, until a result was known"),
        within("uniform random writes: write amplification", *uniform_waf(found), 0.05,
               form("greedy under uniform random writes: a / (a + W(-a exp(-a))), a = usable over logical pages"),
               late="what counts as usable was defined anew twice when a result was known"),
    ]
    return result


def _latency_of(found: list[Sample], workload: str, part: str) -> float:
    return float(next(s["p99.9_us"] for s in found if (s["workload"], s.get("part")) == (workload, part)))


def _both(found: list[Sample], workload: str) -> float:
    return sum(_rate(_points(found, workload), key) for key in ("read_mb_s", "write_mb_s"))


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["workload", "read MB/s", "write MB/s", "write peak", "write plateau", "pages moved", "blocks erased",
             "moved/stored"]]
    for name, label in {**LABELS, UNIFORM: "uniform 4 KiB, no file system"}.items():
        for s in (s for s in found if (s["workload"], s.get("part")) == (name, "all")):
            rows.append([label, *(shown(s, f"{key}_mb_s") for key in ("read", "write", "peak", "plateau")),
                         *(shown(s, key, ".0f") for key in ("moved_pages", "erased_blocks")),
                         shown(s, "moved_over_stored", ".2f") if "moved_over_stored" in s else "-"])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, (iops, rate, erased, moved) = figures.panels(4, height=3.2, columns=2)
    names = [name for name in LABELS if _points(found, name)]

    def series(value: str) -> list[figures.Line]:
        def scale(point: Sample) -> float:
            return {"mb_s": 1, "iops": (16 << 10) * 1000 / 1e6}.get(value, 1000 * point["seconds"])

        key = "mb_s" if value == "iops" else value
        points = {name: _points(found, name) for name in names}
        return [figures.Line(LABELS[name], [s["at"] * SCALE for s in points[name]],
                             [s[key] / scale(s) for s in points[name]], marker=False,
                             spread=[(x / scale(s), y / scale(s)) for s in points[name] for x, y in [spread(s, key)]])
                for name in names]

    time = f"time x {SCALE} (s)"
    figures.lines(iops, series("iops"), x=time, y="16 KiB requests (1000/s)", title="requests", legend=False)
    figures.lines(rate, series("mb_s"), x=time, y="reads and writes (MB/s)", title="bandwidth", legend=False)
    figures.lines(erased, series("erased_blocks"), x=time, y="blocks erased (1000/s)", title="erases", columns=2)
    figures.lines(moved, series("moved_pages"), x=time, y="valid pages moved (1000/s)", title="moves", columns=2)
    figures.save(figure, path)


ABOUT = About(
    title="The write cliff",
    question="What happens when a drive fills up and garbage collection begins: how deep is the fall, how smooth the "
             "plateau?",
    by=("workload", "part", "step"),
    caption=f"The report's drive (2 channels x 8 dies, 40/200/2000 us) and jobs at 1/{SCALE} of capacity, files and "
            "time, under dm-mtftl with ext4; the time axis is scaled back. 16 KiB requests, four jobs on files of "
            "9/16 of the drive; sysbench fileio rndrw with an fsync after each write. "
            f"Medians of {SEEDS} seeds, with bands from the least to the most.")
