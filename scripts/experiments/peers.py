# SPDX-License-Identifier: GPL-2.0
"""dm-mtftl beside what else makes a zoned device take random writes: dm-zoned, F2FS, btrfs; on the same flash.

Eight jobs write 4 KiB at random over 75% of the device, first until GC or reclaim has begun, then for the
window that is measured. dm-zoned and F2FS need conventional zones: they get a memory disk besides, which is
faster than any flash. The file systems write eight files; so does ext4 on dm-mtftl.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import dmzoned, figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, ours, shown, spread
from mtlab.run.options import Options

JOBS, CPUS = 8, 4
WINDOW_MS = 500
SEEDS = 3
ZONE_MIB = 64
SHARE, QUICK_SHARE = 0.75, 0.5                  # of the device that is written
FIFTH = 0.2                                     # F2FS keeps 57% of few zones in reserve: with more it stands still
CACHE_ZONES = 8                                 # of memory, for what needs conventional zones
FLASH, MEMORY = "/dev/nvme0n1", "/dev/nullb0"
LABELS = {"raw": "raw zoned device", "mtftl": "dm-mtftl", "dm-zoned": "dm-zoned", "mtftl-ext4": "dm-mtftl, ext4",
          "btrfs": "btrfs", "mtftl-ext4-fifth": "dm-mtftl, ext4, a fifth", "f2fs": "F2FS, a fifth"}
BLOCKS = ("raw", "mtftl", "dm-zoned")


def _zones(quick: bool) -> int:
    return 24 if quick else 48


def _dm_zoned(zones: int) -> list[str]:
    """Commands that format and open dm-zoned."""
    shape = dmzoned.Shape(FLASH, MEMORY, ZONE_MIB, zones, CACHE_ZONES, zones // 3)
    return [*shape.format(), f"echo '{shape.table}' | dmsetup create dmz"]


def _script(line: str, quick: bool) -> str:
    zones = _zones(quick)
    part = FIFTH if line in ("f2fs", "mtftl-ext4-fifth") else SHARE
    share = int(zones * ZONE_MIB * (QUICK_SHARE if quick else part))
    common: dict[str, object] = {"ioengine": "psync", "numjobs": JOBS}
    where: dict[str, object]
    if line in ("dm-zoned", "f2fs"):
        start = ["modprobe null_blk nr_devices=0", "n=/sys/kernel/config/nullb/nullb0", "mkdir $n",
                 f"echo {CACHE_ZONES * ZONE_MIB} >$n/size", "echo 4096 >$n/blocksize", "echo 1 >$n/memory_backed",
                 "echo 1 >$n/power"]
    elif line.startswith("mtftl"):
        start = [f"mtftl format --force --op 1% {FLASH}", f"mtftl open {FLASH} ftl lanes={CPUS}"]
    else:
        start = []
    if line in BLOCKS:
        name = {"raw": FLASH, "mtftl": "/dev/mapper/ftl", "dm-zoned": "/dev/mapper/dmz"}[line]
        each = share // JOBS
        where = {"filename": name, "size": f"{each}M", "offset_increment": f"{each}M"}
        start += _dm_zoned(zones) if line == "dm-zoned" else []
    else:
        where = {"directory": "/mnt", "size": f"{share // JOBS}M", "fallocate": "none"}
        start += {"mtftl": ["mke2fs -t ext4 -F -q -m 0 -J size=16 -E lazy_itable_init=0,lazy_journal_init=0 "
                            "/dev/mapper/ftl", "mount /dev/mapper/ftl /mnt"],
                  "f2fs": [f"mkfs.f2fs -q -f -m -c {FLASH} {MEMORY}", f"mount -t f2fs {MEMORY} /mnt"],
                  "btrfs": [f"mkfs.btrfs -q -f -d single -m single {FLASH}", f"mount -t btrfs {FLASH} /mnt"],
                  }[line.split("-")[0]]
    zbd: dict[str, object] = {"zonemode": "zbd", "max_open_zones": JOBS} if line == "raw" else {}
    fill = fio.command("fill.json", rw="write", bs="128k", **common, **where, **zbd)
    random: dict[str, object] = {"rw": "randwrite", "bs": "4k", "norandommap": True, **common, **where, **zbd}
    before = fio.command("before.json", io_size=f"{zones * ZONE_MIB // 4 // JOBS}M", runtime="1s" if quick else "2s",
                         **random)
    random["randseed"] = fio.seed(43)           # not the same blocks again
    job = fio.command("fio.json", time_based=True, runtime="200ms" if quick else f"{WINDOW_MS}ms", **random)
    return "\n".join(["set -e", *start, fill, "sync", before, job])


def runs(quick: bool) -> list[Run]:
    return [Run(line, _script(line, quick),
                Options(clock="virtual", cpus=CPUS, profile="tlc", timeout=3600, memory="3G",
                        module=line.startswith("mtftl"),
                        device={"flash.size": f"{_zones(quick) * ZONE_MIB}M", "zoned.zone_capacity": f"{ZONE_MIB}M"}),
                seeds=1 if quick or line == "raw" else SEEDS, seconds=60)
            for line in (BLOCKS if quick else LABELS)]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    return [{"line": line, "before_ios": fio.sample(files[line]["before.json"], "write")["ios"],
             **fio.sample(files[line]["fio.json"], "write")} for line in LABELS if line in files]


def _rate(found: list[Sample], line: str) -> float:
    """Writes a second; where none ended in the window, as if one had in ten times that time."""
    return max(float(next(s["iops"] for s in found if s["line"] == line)), 100 / WINDOW_MS)


def checks(found: list[Sample], quick: bool) -> list[Check]:
    result = [at_least("dm-mtftl over dm-zoned", _rate(found, "mtftl") / _rate(found, "dm-zoned"), 50,
                       ours("dm-zoned copies a 64 MiB zone for a few writes to it, dm-mtftl only what is still "
                            "valid"))]
    if not quick:
        result += [at_least(f"dm-mtftl with ext4 over {peer} on the same files",
                            _rate(found, line) / _rate(found, peer), 1, ours(why)) for line, peer, why in
                   (("mtftl-ext4", "btrfs", "btrfs copies tree nodes for each block that moves, and checksums"),
                    ("mtftl-ext4-fifth", "f2fs", "F2FS writes under locks of the whole file system"))]
    return result


def table(found: list[Sample]) -> list[list[str]]:
    return [["4 KiB random writes on", "IOPS", "MB/s", "mean us", "p99 us", "p99.9 us", "max us"],
            *([LABELS[s["line"]], shown(s, "iops", ".0f"), f"{s['bytes_per_s'] / 1e6:.2f}", f"{s['mean_us']:.0f}",
               f"{s.get('p99_us', 0):.0f}", f"{s.get('p99.9_us', 0):.0f}", f"{s['max_us']:.0f}"] for s in found)]


def draw(found: list[Sample], path: Path) -> None:
    figure, (rate, latency) = figures.panels(2)
    names = [LABELS[s["line"]] for s in found]
    figures.sideways(rate, names, [_rate(found, s["line"]) / 1000 for s in found],
                     spread=[(least / 1000, most / 1000) for least, most in (spread(s, "iops") for s in found)],
                     x="kIOPS, logarithmic", title="4 KiB random writes")
    figures.sideways(latency, names, [s["max_us"] / 1000 if s["ios"] else WINDOW_MS for s in found],
                     x="ms, logarithmic", title="longest latency")
    figures.save(figure, path)


ABOUT = About(
    title="Beside dm-zoned, F2FS and btrfs",
    question="How many random writes does the same zoned flash take under dm-mtftl, and how many under what Linux has?",
    by=("line",),
    caption=f"{JOBS} jobs write 4 KiB at random at queue depth 1 over 75% of a TLC device with 64 MiB zones, after GC "
            f"or reclaim has begun; {CPUS} modelled CPUs. dm-zoned and F2FS have 512 MiB of memory besides for their "
            "conventional zones. F2FS keeps more than half of so small a device in reserve: its files have a fifth, "
            "and dm-mtftl's beside it. "
            f"The raw device's writes are sequential within its zones. The others: medians of {SEEDS} seeds, bars "
            "from the least to the most.")
