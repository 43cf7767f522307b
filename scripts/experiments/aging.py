# SPDX-License-Identifier: GPL-2.0
"""Files that have aged: how fast they are read in order, on file systems over dm-mtftl and beside it.

The drive is the fragmentation paper's, zoned. Files of 8 MiB are written one after the other and read (fresh).
Then half of what they hold is overwritten at random, every second file is deleted, and as many are written again, four
at a time, 32 KiB and a flush (aged). Then other data are overwritten until the flash was filled once more (collected).
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import counters, figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, ours
from mtlab.run.options import Options

MIB = 1 << 20
FILES, FILE = 16, 8                             # MiB
ZONE, ZONES = 4, 96
FLASH, MEMORY = "/dev/nvme0n1", "/dev/nullb0"
CONVENTIONAL = 128                              # MiB in memory, for F2FS
LABELS = {"ext4": "dm-mtftl, ext4", "xfs": "dm-mtftl, XFS", "f2fs": "F2FS"}
OVER = ("ext4", "xfs")                          # dm-mtftl
STATES = ("fresh", "aged", "collected")
SORTS = {"kept": "overwritten at random", "new": "written again, four at a time"}


def _names(sort: str, quick: bool) -> list[str]:
    """Files that are there to the end (overwritten), and those that come later."""
    count = FILES // 4 if quick else FILES
    return [f"/mnt/{sort}{i}" for i in range(count // 2)]


def _script(line: str, quick: bool) -> str:
    kept, gone, new = (_names(sort, quick) for sort in ("kept", "gone", "new"))
    size = len(kept) * FILE
    start = ["set -e"]
    if line in OVER:
        start += [f"mtftl format --force --op 10% {FLASH} >/dev/null", f"mtftl open {FLASH} ftl"]
    if line == "f2fs":
        start += ["modprobe null_blk nr_devices=0", "n=/sys/kernel/config/nullb/nullb0", "mkdir $n",
                  f"echo {CONVENTIONAL} >$n/size", "echo 4096 >$n/blocksize", "echo 1 >$n/memory_backed",
                  "echo 1 >$n/power"]
    start += {"ext4": ["mkfs.ext4 -F -q -m 0 -E lazy_itable_init=0,lazy_journal_init=0 /dev/mapper/ftl",
                       "mount /dev/mapper/ftl /mnt"],
              "xfs": ["mkfs.xfs -q /dev/mapper/ftl", "mount /dev/mapper/ftl /mnt"],
              "f2fs": [f"mkfs.f2fs -q -f -m -c {FLASH} {MEMORY}", f"mount -t f2fs {MEMORY} /mnt"]}[line]

    def read(output: str, names: list[str]) -> str:
        return fio.command(output, filename=":".join(names), rw="read", bs="1m", ioengine="psync",
                           file_service_type="sequential", allow_file_create=0, loops=4, size=f"{len(names) * FILE}M")

    def reads(state: str, second: list[str]) -> list[str]:
        return ["sync", "echo 3 >/proc/sys/vm/drop_caches", read(f"{state}-kept.json", kept),
                read(f"{state}-new.json", second)]

    lines = [*start, *(f"dd if=/dev/zero of={name} bs=1M count={FILE} oflag=direct conv=fsync status=none"
                       for pair in zip(kept, gone, strict=True) for name in pair)]
    lines += reads("fresh", gone)
    lines += [fio.command("over.json", filename=":".join(kept + gone), rw="randwrite", bs="16k", ioengine="psync",
                          norandommap=True, size=f"{2 * size}M", io_size=f"{size}M", fsync=16),
              f"rm {' '.join(gone)}", "sync"]
    # four at a time, each its share of the files one after the other
    shares = [new[i::4] for i in range(min(4, len(new)))]
    lines += [fio.command(f"again-{i}.json", filename=":".join(share), rw="write", bs="32k", ioengine="psync",
                          fdatasync=1, fallocate="none", file_service_type="sequential",
                          size=f"{len(share) * FILE}M") + " & again+=($!)" for i, share in enumerate(shares)]
    lines.append('for each in "${again[@]}"; do wait "$each"; done')
    lines += reads("aged", new)
    lines.append(fio.command("gc.json", filename="/mnt/other", rw="randwrite", bs="16k", ioengine="psync",
                             norandommap=True, size=f"{ZONE * ZONES // 8}M", fsync=64,
                             io_size=f"{ZONE * ZONES // (2 if quick else 1)}M", fallocate="none"))
    lines += reads("collected", new)
    if line in OVER:
        lines.append("dmsetup status ftl >status")
    return "\n".join([*lines, "umount /mnt"])


def runs(quick: bool) -> list[Run]:
    device = {"zoned": "on", "flash.personality": "zns", "flash.zone_dies": "0", "flash.size": f"{ZONE * ZONES}M",
              "zoned.zone_size": f"{ZONE}M", "zoned.zone_capacity": f"{ZONE}M", "zoned.max_open": "14",
              "zoned.max_active": "14", "flash.block_pages": "16", "flash.cache": "on", "nvme0.mdts": "6"}
    return [Run(line, _script(line, quick),
                Options(clock="virtual", cpus=4, speed=2, profile="fast24", timeout=3600, module=line in OVER,
                        device=device), ("*.json", *(("status",) if line in OVER else ())), seeds=3, seconds=15)
            for line in (LABELS if not quick else OVER[:1])]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for line, outputs in files.items():
        looks = counters.looks(outputs.get("status", b""))
        victims = {"victims": int(looks[0]["victims"])} if looks else {}
        for sort in SORTS:
            fresh = 0.0
            for state in STATES:
                speed = fio.sample(outputs[f"{state}-{sort}.json"], "read")["bytes_per_s"] / MIB
                fresh = fresh or speed
                found.append({"line": line, "files": sort, "state": state, "mib_per_s": round(speed, 1),
                              "of_fresh": round(speed / fresh, 4), **victims})
    return found


def _of(found: list[Sample], line: str, sort: str, state: str) -> Sample:
    return next(s for s in found if (s["line"], s["files"], s["state"]) == (line, sort, state))


def checks(found: list[Sample], quick: bool) -> list[Check]:
    return [at_least(f"{LABELS[line]}: {SORTS[sort]}, {state} over fresh",
                     _of(found, line, sort, state)["of_fresh"], 0.9,
                     ours("writers in order have zones of their own, and GC keeps the order of a zone"))
            for line in OVER[:1] for sort in SORTS for state in STATES[1:]]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["on", "files", *(f"{state} MiB/s" for state in STATES), *(f"{state} of fresh" for state in STATES[1:])]]
    for line in dict.fromkeys(s["line"] for s in found):
        for sort, words in SORTS.items():
            of = [_of(found, line, sort, state) for state in STATES]
            rows.append([LABELS[line], words, *(f"{s['mib_per_s']:.0f}" for s in of),
                         *(f"{s['of_fresh']:.0%}" for s in of[1:])])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, panels = figures.panels(len(SORTS))
    lines = list(dict.fromkeys(s["line"] for s in found))
    for axes, (sort, words) in zip(panels, SORTS.items(), strict=True):
        figures.bars(axes, [LABELS[x] for x in lines],
                     [figures.Bars(state, [_of(found, x, sort, state)["mib_per_s"] for x in lines])
                      for state in STATES], y="MiB/s", title=words)
    figures.save(figure, path)


ABOUT = About(
    title="Aged files",
    question="How fast is a file read that has aged, and after garbage collection?",
    by=("line", "files", "state"),
    caption=f"Direct reads of 1 MiB of files of {FILE} MiB, in order. The drive of `fragmentation` that reads the next "
            f"cell during a transfer, zoned, {ZONE * ZONES} MiB. Aged: half of all data overwritten at random by "
            "16 KiB, every second file deleted and written again, four at a time, 32 KiB and a flush. Collected: then "
            "as much as the flash holds overwritten at random in another file. F2FS has conventional zones in memory "
            "besides.")
