# SPDX-License-Identifier: GPL-2.0
"""What of VSSIM's talk needs a guest: its validation against X25-M, and the sizes of programs' writes.

Validation: the slide's job, a file of 512 MiB on ext4, in records of 512 KiB in order and of 4 KiB at random, one at
a time. IOzone is not free software, so fio does what its -i 0 -i 1 -i 2 -I does; of the random records a sixteenth. The
drive is the profile x25m, VSSIM's own file. The bars and curves of the slides are lost: what is left is what the maker
of the drive published. The demerit (Ruemmler and Wilkes) is the root mean square of the horizontal distance of two
distributions of latencies, here over the mean of the published one.

Sizes: real programs in the host's root folder, in a guest on the wall clock: dpkg, the C compiler, cp. Where one of
them falls between two of the kernel's writebacks is chance.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_most, form, ours, says, shown, within
from mtlab.exp.sources import MAKER, TALK
from mtlab.run.options import Options
from mtlab.util.base import ROOT

FILE, RECORD, SMALL = 512 << 20, 512 << 10, 4096
PAGE, CHANNELS, WAYS = 4096, 10, 2
READ, PROGRAM, CARRY, TURN_READ, LINK = 140e-6, 940e-6, 82e-6, 16e-6, 270e6
SOFTWARE = 20e-6                                # ext4, block layer and driver, a request
JOBS = {                                        # what fio is told, and the size of a record
    "sequential write": ({"rw": "write"}, RECORD), "sequential read": ({"rw": "read"}, RECORD),
    "random read": ({"rw": "randread"}, SMALL), "random write": ({"rw": "randwrite"}, SMALL)}
PUBLISHED = {"sequential read": 250, "sequential write": 70}    # MB/s
TAKEN = 8192                                    # random records
STEPS = 200                                     # of a distribution that is kept
BINS = (4, 16, 32, 64, 128)                     # KiB; and above
PACKAGES = ("coreutils", "perl-base", "tzdata", "dpkg")
SONGS, SONG, FILM = 100, "$((3000 + i * 7919 % 3000))k", "512M"
# Sources without data: a read of a hole costs nothing, and what is written are zeroes like others.
PROGRAMS = f"""set -e
T=/sys/kernel/tracing; D=/mnt/drive
mount -t tracefs none $T 2>/dev/null || true
echo 16384 >$T/buffer_size_kb
mkdir -p $D; mkfs.ext4 -q /dev/nvme0n1; mount /dev/nvme0n1 $D
traced() {{
    name=$1; shift
    sync; echo >$T/trace; echo 1 >$T/events/block/block_rq_issue/enable
    "$@" >/dev/null; sync
    echo 0 >$T/events/block/block_rq_issue/enable
    grep -o 'W[A-Z]* [0-9]* ()' $T/trace | cut -d' ' -f2 | sort -n | uniq -c >$name.sizes
}}
mkdir -p /tmp/p /tmp/debs
for p in {' '.join(PACKAGES)}; do
    mkdir -p /tmp/p/$p/DEBIAN
    dpkg-query -L $p | while read -r f; do [ -f "$f" ] && [ ! -L "$f" ] && echo "$f"; done >/tmp/list || true
    tar -C / -cf - -T /tmp/list 2>/dev/null | tar -C /tmp/p/$p -xf -
    printf 'Package: %s\\nVersion: 1\\nArchitecture: all\\nMaintainer: n <n@n>\\nDescription: x\\n' $p \\
        >/tmp/p/$p/DEBIAN/control
    dpkg-deb --root-owner-group -Znone -b /tmp/p/$p /tmp/debs/$p.deb >/dev/null
    rm -r /tmp/p/$p
done
mkdir -p $D/root/var/lib/dpkg/updates $D/root/var/lib/dpkg/info; touch $D/root/var/lib/dpkg/status
traced unpack dpkg --root=$D/root --force-all --unpack /tmp/debs/*.deb
cp -r {ROOT}/emulator $D/source
build() {{
    cd $D/source
    for f in simulator/firmware.c hw/nvme/flash/model/*.c hw/nvme/flash/ftl/*.c; do
        cc -g -O0 -Ihw/nvme -c $f -o $(basename $f .c).o
    done
    cc -o firmware *.o
    cd /root
}}
traced compile build
mkdir -p /tmp/music
for i in $(seq {SONGS}); do truncate -s {SONG} /tmp/music/$i.mp3; done
traced songs cp -r --sparse=never /tmp/music $D/
truncate -s {FILM} /tmp/film.mkv
traced film cp --sparse=never /tmp/film.mkv $D/
"""


def _iozone(quick: bool) -> str:
    lines = ["set -e", "mkfs.ext4 -q /dev/nvme0n1; mount /dev/nvme0n1 /mnt"]
    for name, (job, record) in JOBS.items():
        size = FILE // 8 if quick else FILE
        less = {"number_ios": TAKEN // 8 if quick else TAKEN} if record == SMALL else {}
        file = name.replace(" ", "-")
        lines.append(fio.command(f"{file}.json", filename="/mnt/iozone", ioengine="psync", size=size, bs=record,
                                 fallocate="none", end_fsync=int("write" in name), **job, **less, **fio.log(file)))
    return "\n".join(lines)


def runs(quick: bool) -> list[Run]:
    drive = Options(clock="virtual", cpus=1, profile="x25m", module=False, timeout=3600)
    box = Options(clock="wall", cpus=2, profile="femu", module=False, timeout=3600, host_root=True,
                  device={"zoned": "off", "flash.personality": "blackbox", "flash.size": "2G"})
    return [Run("iozone", _iozone(quick), drive, ("*.json", "*.log"), seconds=90),
            *([] if quick else [Run("programs", PROGRAMS, box, ("*.sizes",), seconds=120)])]


def _quantiles(took: list[float]) -> list[float]:
    """A distribution in equal steps: the middle of each."""
    ordered = sorted(took)
    return [ordered[min(len(ordered) - 1, int((n + 0.5) / STEPS * len(ordered)))] for n in range(STEPS)]


def _distance(one: list[float], other: list[float]) -> float:
    """The root mean square of the horizontal distance of two distributions."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / len(one))


def _job(name: str, outputs: Mapping[str, bytes]) -> Sample:
    record = JOBS[name][1]
    rows = [line.split(b",") for file, data in outputs.items() if file.startswith(name.replace(" ", "-") + "_lat.")
            for line in data.splitlines()]
    took = [int(row[1]) / 1000 for row in rows]
    told = fio.sample(outputs[name.replace(" ", "-") + ".json"], name.split()[1])
    quantiles = _quantiles(took)
    sample = {"part": "iozone", "of": name, "mb_s": round(told["bytes_per_s"] / 1e6, 3), "requests": len(took),
              "mean_us": round(sum(took) / len(took), 3),
              **{f"q{n}_us": round(quantiles[n], 2) for n in range(0, STEPS, 5)}}
    if name in PUBLISHED:
        mean = record / PUBLISHED[name]
        sample["demerit"] = round(_distance(quantiles, [mean] * STEPS) / mean, 4)
    return sample


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = [_job(name, files["iozone"]) for name in JOBS]
    for file, data in sorted(files.get("programs", {}).items()):
        found.append({"part": "programs", "of": file.rsplit(".", 1)[0], **_binned(data.decode())})
    return found


def _binned(text: str) -> Sample:
    """Shares of requests by size; flushes have none."""
    sizes = {int(size): int(count) for count, size in re.findall(r"(\d+) (\d+)", text) if int(size)}
    total, binned, below = sum(sizes.values()), {}, 0
    for edge in BINS:
        binned[f"to_{edge}k"] = round(sum(n for size, n in sizes.items() if below < size <= edge << 10) / total, 4)
        below = edge << 10
    return {"requests": total, **binned, "more": round(sum(n for size, n in sizes.items() if size > below) / total, 4)}


def _of(found: list[Sample], part: str) -> dict[str, Sample]:
    return {s["of"]: s for s in found if s["part"] == part}


def predicted(name: str) -> float:
    """MB/s of one record at a time, by VSSIM's file."""
    dies = CHANNELS * WAYS
    if name == "random read":
        return SMALL / (READ + CARRY + PAGE / LINK + SOFTWARE) / 1e6
    if name == "sequential read":
        # the pages of a record are carried one turn after the other; the link carries the last behind them
        return RECORD / (READ + (RECORD // PAGE - 1) * TURN_READ + CARRY + PAGE / LINK + SOFTWARE) / 1e6
    # the buffer takes a record while the one before is programmed
    return dies * PAGE / (CARRY + PROGRAM) / 1e6


def _ends(sample: Sample) -> float:
    return float(sample["to_4k"] + sample["to_128k"] + sample["more"])


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    jobs, programs = _of(found, "iozone"), _of(found, "programs")
    result = [within(f"{name}: by the form (MB/s)", jobs[name]["mb_s"], predicted(name), 0.05,
                     form("the times of VSSIM's file, one record at a time")) for name in JOBS]
    result += [within(f"{name}: as published (MB/s)", jobs[name]["mb_s"], value, 0.2,
                      says(MAKER, f"{name} (MB/s): {value}"))
               for name, value in PUBLISHED.items()]
    result += [at_most(f"{name}: demerit against the published rate", jobs[name]["demerit"], 0.25,
                       ours("a rate within a fifth, and few records that wait for the journal"))
               for name in PUBLISHED]
    if programs:
        total = sum(s["requests"] for s in programs.values())
        result.append(within(
            "writes of at most 4 or more than 64 KiB, share of all programs'",
            sum(s["requests"] * _ends(s) for s in programs.values()) / total, 0.76, 0.2,
            says(TALK, "76% of write operations are either less than 4KB or larger than 64KB"),
            "By program: " + ", ".join(f"{name} {_ends(s):.0%} of {s['requests']:.0f}" for name, s in programs.items())
            + "."))
    return result


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["what", "MB/s", "by the form", "published", "mean us", "demerit"]]
    for name, s in _of(found, "iozone").items():
        rows.append([name, shown(s, "mb_s", ".2f"), f"{predicted(name):.2f}", str(PUBLISHED.get(name, "-")),
                     shown(s, "mean_us"), shown(s, "demerit", ".3f") if "demerit" in s else "-"])
    for name, s in _of(found, "programs").items():
        shares = ", ".join(f"to {edge}: {100 * s[f'to_{edge}k']:.0f}%" for edge in BINS)
        rows.append([f"{name}: {s['requests']:.0f} writes", f"{shares}, more: {100 * s['more']:.0f}% (KiB)", "-", "-",
                     "-", "-"])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, panels = figures.panels(4)
    jobs, programs = _of(found, "iozone"), _of(found, "programs")
    bars, reads, writes, sizes = panels
    figures.rows(bars, list(JOBS), [
        figures.Bars("VSSIM's file, measured", [jobs[name]["mb_s"] for name in JOBS]),
        figures.Bars("by the form", [predicted(name) for name in JOBS]),
        figures.Bars("published", [PUBLISHED.get(name, 0) for name in JOBS])], x="MB/s", title="IOzone's file")
    share = [(n + 0.5) / STEPS for n in range(0, STEPS, 5)]
    for axes, name in ((reads, "sequential read"), (writes, "sequential write")):
        took = [jobs[name][f"q{n}_us"] / 1000 for n in range(0, STEPS, 5)]
        mean = RECORD / PUBLISHED[name] / 1000
        figures.lines(axes, [figures.Line("measured", took, share, marker=False),
                             figures.Line("published rate", [mean, mean], [0, 1], marker=False, dashed=True)],
                      x="latency of 512 KiB (ms)", y="share of records", title=name)
        axes.set_xlim(left=0)
    if programs:
        figures.stacked(sizes, list(programs), [
            figures.Bars(label, [100 * s[key] for s in programs.values()])
            for label, key in ((*((f"to {edge} KiB", f"to_{edge}k") for edge in BINS), ("more", "more")))],
            x="writes (%)", title="sizes of requests", columns=3)
    figures.save(figure, path)


ABOUT = About(
    title="VSSIM's talk: X25-M, and the sizes of programs' writes",
    question="Is a drive by VSSIM's own file as fast as X25-M, and do programs write small or large requests, and few "
             "between?",
    by=("part", "of"),
    caption="X25-M: one record at a time to a file of 512 MiB on ext4 and the profile x25m, in virtual time. Sizes: "
            "what dpkg, cc and cp write to ext4 on a black box, on the wall clock.")
