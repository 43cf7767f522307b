# SPDX-License-Identifier: GPL-2.0
"""How long a full device takes to mount: after a stop, and after a power cut just before a checkpoint was due.

Each device is written in full, then at random, a block a unit, until nearly as many units are newer than the
checkpoint as the target lets become. Then the flash loses power: once with a flush after each write, once without
any. The target tells what each mount took.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_most, ours
from mtlab.run.options import Options

SIZES = (1, 2, 4)                               # GiB of flash
QUICK_SIZES = (1,)
GIB = 1 << 30
ZONE = 16 << 20
DUE = 0.8                                       # of the units after which a checkpoint comes
MIN_DUE = 16384                                 # units, or two for each block of the checkpoint
STEPS = 8                                       # in which they are written
LONGEST = ("load checkpoint", "scan", "verify payload", "forget resets", "count")      # that take longest
KINDS = {"clean": "after a stop", "flushed": "after a cut, with flushes", "unflushed": "after a cut, never flushed"}


def _limit(size: int) -> int:
    """Units that may be newer than a checkpoint, whose blocks hold 1024 pages each."""
    return max(MIN_DUE, 2 * size * GIB // 4096 // 1024)


def _script(size: int) -> str:
    common: dict[str, object] = {"filename": "/dev/mapper/ftl", "ioengine": "io_uring"}
    fill = fio.command("fill.json", rw="write", bs="128k", iodepth=16, **common)
    due = round(DUE * _limit(size))
    some = fio.command("some.json", rw="randwrite", bs="4k", norandommap=True, allrandrepeat=0,
                       io_size=due // STEPS * 4096, **common)
    flash = "nvme admin-passthru /dev/nvme0 --opcode=0xc0 --namespace-id=1"
    return f"""set -e
log() {{ dmsetup status ftl | sed 's/.* since_checkpoint \\([0-9]*\\) .*/\\1/'; }}
start() {{ dmesg -c >/dev/null; mtftl open /dev/nvme0n1 ftl; dmesg | sed -n 's/.*: mount: //p' >$1.mount; }}
# crash NAME FIO'S OPTIONS: random writes and a power cut.
crash() {{
	dmsetup message ftl 0 checkpoint
	while [ $(log) -lt {due} ]; do {some} $2; done
	log >$1.newer
	{flash} --cdw10=1
	dmsetup remove ftl
	{flash} --cdw10=0
	start $1
}}
mtftl format --force --op 10% /dev/nvme0n1
mtftl open /dev/nvme0n1 ftl
{fill}
mtftl close ftl
mtftl open /dev/nvme0n1 ftl write_unit=1
crash flushed --fsync=1
crash unflushed --iodepth=32
mtftl close ftl
start clean
mtftl close ftl
"""


def runs(quick: bool) -> list[Run]:
    return [Run(str(size), _script(size),
                Options(clock="virtual", cpus=2, profile="tlc", timeout=1800,
                        device={"flash.size": f"{size}G", "zoned.zone_size": f"{ZONE}",
                                "zoned.zone_capacity": f"{ZONE}"}), ("*.mount", "*.newer"),
                seconds=30 * size)
            for size in (QUICK_SIZES if quick else SIZES)]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for size, outputs in sorted(files.items()):
        for kind in KINDS:
            text = outputs[f"{kind}.mount"].decode()
            steps = {m[1]: int(m[2]) for m in re.finditer(r"^(.*): (\d+) us$", text, re.M)}
            us, per_tib, _, memory = map(int, re.findall(
                r"(\d+) us in all, (\d+) us per TiB; map and zones: (\d+) KiB, (\d+) KiB per TiB", text)[0])
            found.append({"flash GiB": int(size), "mount": kind, "us": us, "us per TiB": per_tib,
                          "KiB per TiB": memory, "newer units": int(outputs.get(f"{kind}.newer", b"0")),
                          "found units": int(next(iter(re.findall(r"^(\d+) units newer", text, re.M)), 0)),
                          **{f"{step} us": taken for step, taken in steps.items()}})
    return found


def _of(found: list[Sample], kind: str) -> list[Sample]:
    return [s for s in sorted(found, key=lambda s: int(s["flash GiB"])) if s["mount"] == kind]


# A bound in its place had missed: after a cut over after a stop at most five times.
_REPLACED = "set when a result was known, in place of one that it had missed"


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    clean, flushed, unflushed = (_of(found, kind) for kind in KINDS)
    return [
        at_most(f"after a stop, {clean[-1]['flash GiB']} GiB (ms)", clean[-1]["us"] / 1000, 100,
                ours("the map is read from one checkpoint: 4 bytes a block of 4 KiB")),
        at_most("units newer than the checkpoint over the limit",
                max(s["newer units"] / _limit(s["flash GiB"]) for s in (*flushed, *unflushed)), 1,
                ours("a checkpoint comes when twice as many units are newer as it has blocks")),
        at_most("scan after a cut, for each newer unit and each zone (us)", max(
            s["scan us"] / (s["found units"] + s["flash GiB"] * GIB // ZONE) for s in (*flushed, *unflushed)), 80,
                ours("one header is read: 50 us of cell time, 12 for the way there and back"), late=_REPLACED),
        at_most("payload never flushed, for each newer unit (us)",
                max(s["verify payload us"] / s["found units"] for s in unflushed), 80,
                ours("one block a unit is read"), late=_REPLACED),
        at_most("memory for map and zones (MiB a mapped GiB)",
                max(s["KiB per TiB"] for s in found) / (1 << 20), 1.1, ours("4 bytes a block, and its zones")),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    return [["flash", "mount", "newer units", "in all (ms)", "seconds a TiB", *(f"{s} (ms)" for s in LONGEST)],
            *([f"{s['flash GiB']} GiB", KINDS[s["mount"]], str(s["found units"]), f"{s['us'] / 1000:.1f}",
               f"{s['us per TiB'] / 1e6:.0f}", *(f"{s.get(f'{step} us', 0) / 1000:.1f}" for step in LONGEST)]
              for kind in KINDS for s in _of(found, kind))]


def draw(found: list[Sample], path: Path) -> None:
    figure, (whole, parts) = figures.panels(2, height=3.3)
    sizes = [s["flash GiB"] for s in _of(found, "clean")]
    figures.lines(whole, [figures.Line(label, sizes, [s["us"] / 1000 for s in _of(found, kind)])
                          for kind, label in KINDS.items()], x="flash (GiB)", y="mount (ms)", ticks=sizes,
                  title="the whole mount")
    last = [_of(found, kind)[-1] for kind in KINDS]
    steps = {step: [s.get(f"{step} us", 0) / 1000 for s in last] for step in LONGEST}
    steps["other"] = [s["us"] / 1000 - sum(of) for s, of in zip(last, zip(*steps.values(), strict=True), strict=True)]
    figures.stacked(parts, [label.replace(", ", ",\n") for label in KINDS.values()],
                    [figures.Bars(step, took) for step, took in steps.items()], x="mount (ms)",
                    title=f"its steps, {sizes[-1]} GiB")
    figures.save(figure, path)


ABOUT = About(
    title="How long a mount takes",
    question="How long does a full device take to mount, after a stop and after a power cut at a bad moment?",
    by=("flash GiB", "mount"),
    caption="TLC flash of three sizes, all of it written, then written at random, a block a unit, until a checkpoint "
            "is nearly due; 2 modelled CPUs. Units that no flush covers are read and checked, block by block.")
