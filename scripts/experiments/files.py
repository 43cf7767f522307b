# SPDX-License-Identifier: GPL-2.0
"""Small jobs on aged drives: random overwrites of files, synced appends, large reads and writes; and synced writes of
the device itself.

A drive is the one of applications-aged: 640 MiB of files, overwritten at random. The devices themselves are filled and
overwritten alike.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mtlab.exp import applications, figures, fio
from mtlab.exp.applications import BALLAST_MIB, BEYOND, LABELS
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, ours

JOBS = 4
OVERWRITE_MS, FULL_MS, SYNC_MS = 1000, 2500, 400
FULL_MIB, FULL = 768, 90                    # that files have at the end; and percent of what df says, at most
AGAIN_MIB, AGAIN_MS = 400, 4000             # overwritten before that is measured, as much as is free: GC has begun
# 25,000 writes a second on zoned XFS and 188,000 on dm-mtftl; the slowest in a thousand took 0.27 and 1.6 ms.
KNOWN = "what the ageing itself came to was known"
CHANGED = "the drive was 90% full, and not aged again, when two subjects were measured first"
DEVICES = {"mtftl": "dm-mtftl itself", "box": "black box itself"}
PLACES = {"mtftl": "/dev/mapper/ftl", "box": "/dev/nvme0n1"}
NAMES = {**LABELS, **DEVICES}
FILES = tuple(name for name in LABELS if name != "dm-zoned")    # it answered no write for too long: applications.HANGS
THREADS, OF_DEVICE = (1, 4, 16, 32), (1, 2, 4, 8, 16, 32)
QUICK = ("mtftl-xfs", "mtftl")
OWN = ("mtftl-ext4", "mtftl-xfs")
PEERS = {"zoned-xfs": "zoned XFS changes the file's map for each write, and collects zones by one thread",
         "btrfs": "btrfs copies tree nodes for each block that moves, and has checksums",
         "f2fs": "F2FS writes under locks of the whole file system"}
WHATS = {"overwrite": "random overwrites", "full": "the same, three quarters full", "read": "large reads, MiB/s",
         "write": "large writes, MiB/s", **{f"append-{n}": f"synced appends, {n} jobs" for n in THREADS},
         **{f"sync-{n}": f"synced overwrites, {n} jobs" for n in OF_DEVICE}}
FILL: dict[str, object] = {"name": "fill", "directory": "/mnt/ballast", "size": f"{BALLAST_MIB // JOBS}M",
                           "fallocate": "none"}
SAME: dict[str, object] = {"ioengine": "psync", "zero_buffers": True}
RANDOM: dict[str, object] = {**SAME, "rw": "randwrite", "bs": "4k", "norandommap": True}


def _measure(what: str, /, **settings: object) -> str:
    """A job of fio between two looks at what the drive counts; its status stays in a file."""
    return f"measure {what} {fio.command(f'{what}.json', **settings)}"


def _of_files(subject: str, quick: bool) -> str:
    large: dict[str, object] = {**SAME, "bs": "1M", "fallocate": "none"}
    lines = [applications.functions("applications", applications.SHAPE), "dmesg -n 1", f"devices {subject}",
             "[ ! -b $MEMORY ] || zcat kept/memory.gz | dd of=$MEMORY bs=1M iflag=fullblock status=none",
             f"open_it {subject}", "mkdir /mnt/new",
             _measure("overwrite", numjobs=JOBS, runtime=f"{50 if quick else OVERWRITE_MS}ms", time_based=True,
                      randseed=fio.seed(43), **FILL, **RANDOM),
             _measure("read", rw="read", filename="/mnt/ballast/fill.0.0", size=FILL["size"], **large),
             _measure("write", rw="write", directory="/mnt/new", size="16M", numjobs=JOBS, end_fsync=1, **large),
             "rm /mnt/new/*"]
    for number in THREADS:
        lines += [_measure(f"append-{number}", rw="write", bs="4k", directory="/mnt/new", size="16M", fsync=1,
                           fallocate="none", numjobs=number, runtime=f"{50 if quick else SYNC_MS}ms", **SAME),
                  "rm /mnt/new/*", "sync"]
    again = fio.command("again", io_size=f"{AGAIN_MIB // JOBS}M", numjobs=JOBS, randseed=fio.seed(44),
                        runtime=f"{50 if quick else AGAIN_MS}ms", **FILL, **RANDOM)
    lines += ["set -- $(df -m /mnt | tail -n 1); df -m /mnt | tail -n 1 >df",
              f"most=$(($2 * {FULL} / 100)); [ $most -lt {FULL_MIB} ] || most={FULL_MIB}; "
              f"more=$(((most - $3) / {JOBS}))",
              "if [ $more -gt 0 ]; then fio --name=more --directory=/mnt/new --rw=write --bs=128k --direct=1 "
              f"--fallocate=none --zero_buffers --numjobs={JOBS} --size=${{more}}M >more; fi", again,
              _measure("full", numjobs=JOBS, runtime=f"{50 if quick else FULL_MS}ms", time_based=True,
                       randseed=fio.seed(45), **FILL, **RANDOM)]
    return "\n".join(lines)


def _of_device(subject: str, quick: bool) -> str:
    """The drive is filled and aged as the files are."""
    each = BALLAST_MIB // JOBS
    place = PLACES[subject]
    own: dict[str, object] = {"size": f"{each}M", "offset_increment": f"{each}M", "numjobs": JOBS}
    lines = [". ./applications"]
    if subject == "mtftl":
        lines += ["mtftl format --force --op 10% $FLASH", "mtftl open $FLASH ftl lanes=$(nproc)"]
    lines += [fio.command("fill", filename=place, rw="write", bs="128k", **own, **SAME),
              fio.command("age", filename=place, io_size=f"{each}M", **own, **RANDOM,
                          runtime=f"{100 if quick else applications.AGE_MS}ms")]
    lines += [_measure(f"sync-{number}", filename=place, size=f"{BALLAST_MIB}M", numjobs=number, fsync=1,
                       time_based=True, randseed=fio.seed(45), runtime=f"{50 if quick else SYNC_MS}ms", **RANDOM)
              for number in OF_DEVICE]
    return "\n".join(lines)


def runs(quick: bool) -> list[Run]:
    found = [Run(subject, _of_files(subject, quick),
                 applications.machine(subject, applications.preparing(subject, quick)),
                 ("*.json", "*.state", "*.log", "df"), seconds=100) for subject in FILES]
    found += [Run(subject, _of_device(subject, quick), applications.machine(subject), ("*.json", "*.state", "*.log"),
                  seconds=100) for subject in DEVICES]
    return [run for run in found if not quick or run.name in QUICK]


def _sample(files: Mapping[str, bytes], what: str) -> Sample:
    """What a job came to; if it failed, only that."""
    if files[f"{what}.state"].split() != [b"0"]:
        return {"failed": 1}
    data, side = files[f"{what}.json"], "read" if what == "read" else "write"
    timed = what not in ("read", "write")
    found = fio.sample(data, side, fio.seconds(data) if timed else 0)
    if what.startswith(("append", "sync")):         # the write itself ends in the page cache or in a buffer
        latency = json.loads(data[data.index(b"{"):])["jobs"][0]["sync"]["lat_ns"]
        found |= {"mean_us": round(latency["mean"] / 1000, 3), "max_us": round(latency["max"] / 1000, 3),
                  **{f"p{float(p):g}_us": round(ns / 1000, 3) for p, ns in latency["percentile"].items()}}
    for percentile in (50, 95, 99, 99.9):
        if round(found["ios"] * (100 - percentile)) < 100 * BEYOND:
            found.pop(f"p{percentile:g}_us", None)
    block = found["bytes_per_s"] / found["iops"] if found["ios"] else 1
    if side == "write":
        found["programmed"] = round(applications.programmed(files[f"{what}.log"]) / (found["ios"] or 1) / block, 3)
    return {"failed": 0, **found}


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    return [{"subject": subject, "what": what, **_sample(outputs, what)}
            for subject, outputs in files.items() for what in WHATS if f"{what}.state" in outputs]


def _of(found: Sequence[Sample], subject: str, what: str, field: str = "iops") -> float | None:
    """What was measured; nothing if it was not, or failed."""
    return next((float(s[field]) for s in found if (s["subject"], s["what"]) == (subject, what) and field in s), None)


def _over(found: Sequence[Sample], own: str, peer: str, what: str, field: str = "iops") -> float | None:
    a, b = (_of(found, subject, what, field) for subject in (own, peer))
    return a / b if a is not None and b else None


def _overwrites(found: Sequence[Sample]) -> Iterator[Check]:
    for own in OWN:
        for peer, why in PEERS.items():
            for what in ("overwrite", "full"):
                if ratio := _over(found, own, peer, what):
                    yield at_least(f"{WHATS[what]}: {NAMES[own]} over {NAMES[peer]}", ratio, 2, ours(why),
                                   late={"overwrite": KNOWN, "full": CHANGED}[what] if peer == "zoned-xfs" else "")
        box = own.replace("mtftl", "box")
        if ratio := _over(found, own, box, "overwrite"):
            yield at_least(f"{WHATS['overwrite']}: {NAMES[own]} over {NAMES[box]}", ratio, 1, ours(
                "a core of the host is as fast as the drive's, and there are four"))
        for what in ("overwrite", "full"):
            tail = next((key for key in ("p99.9_us", "p99_us") if _over(found, own, "zoned-xfs", what, key)), "")
            if tail:
                yield at_most(f"{WHATS[what]}: {tail[:-3]} of {NAMES[own]} over that of zoned XFS",
                              _over(found, own, "zoned-xfs", what, tail) or 0, 0.5, ours(
                                  "GC takes turns with writers here, and they wait for whole zones there"),
                              late=KNOWN if what == "overwrite" else CHANGED)


SYNCED = (*((f"append-{n}", pair) for n in THREADS for pair in
            (("mtftl-ext4", "box-ext4"), ("mtftl-xfs", "box-xfs"), ("mtftl-xfs-log", "zoned-xfs"))),
          *((f"sync-{n}", ("mtftl", "box")) for n in OF_DEVICE))


def checks(found: list[Sample], quick: bool) -> list[Check]:
    result = [*_overwrites(found)]
    for what, (own, peer) in SYNCED:
        if ratio := _over(found, own, peer, what):
            result.append(at_least(f"{WHATS[what]}: {NAMES[own]} over {NAMES[peer]}", ratio, 1, ours(
                "both have the same free device for the log" if peer == "zoned-xfs" else
                "the same flash, and a sync waits for programs")))
    for own in OWN:
        for what in ("read", "write"):
            if ratio := _over(found, own, "zoned-xfs", what, "bytes_per_s"):
                result.append(at_least(f"{WHATS[what]}: {NAMES[own]} over zoned XFS", ratio, 0.9, ours(
                    "one job and the flash are the limit; pieces of overwritten files lie anywhere in both")))
    return result


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["job", "on", "a second", "mean us", "p99 us", "p99.9 us", "max us", "programmed a byte"]]
    for what, words in WHATS.items():
        for s in (s for s in found if s["what"] == what):
            if s["failed"]:
                rows.append([words, NAMES[s["subject"]], "failed", *["-"] * 5])
                continue
            rate = s["bytes_per_s"] / (1 << 20) if what in ("read", "write") else s["iops"]
            cells = [f"{s[key]:.0f}" if key in s else "-" for key in ("mean_us", "p99_us", "p99.9_us", "max_us")]
            rows.append([words, NAMES[s["subject"]], f"{rate:.0f}", *cells,
                         f"{s['programmed']:.2f}" if "programmed" in s else "-"])
    return rows


def _lines(found: Sequence[Sample], subjects: Sequence[str], kind: str, jobs: Sequence[int]) -> list[figures.Line]:
    rates = {s: [_of(found, s, f"{kind}-{n}") for n in jobs] for s in subjects}
    return [figures.Line(NAMES[s], jobs, [(rate or 0) / 1000 for rate in of]) for s, of in rates.items() if any(of)]


def draw(found: list[Sample], path: Path) -> None:
    figure, (rate, worst, append, sync) = figures.panels(4, height=3.4)
    ran = [s for s in found if s["what"] == "overwrite" and not s["failed"]]
    names = [NAMES[s["subject"]] for s in ran]
    figures.sideways(rate, names, [max(s["iops"], 0.1) for s in ran], x="a second, logarithmic",
                     title="4 KiB random overwrites of files")
    figures.sideways(worst, names, [max(s["max_us"], 1) / 1000 for s in ran], x="ms, logarithmic",
                     title="the longest of them")
    figures.lines(append, _lines(found, FILES, "append", THREADS), x="jobs", y="1000 a second", log2_x=True,
                  title="4 KiB appends with fsync", columns=2)
    figures.lines(sync, _lines(found, (*DEVICES,), "sync", OF_DEVICE), x="jobs", y="1000 a second", log2_x=True,
                  title="4 KiB overwrites with fsync, no files")
    figures.save(figure, path)


ABOUT = About(
    title="Files on an aged drive",
    question="How fast are small overwrites, synced appends and large requests on a drive that was filled and "
             "overwritten?",
    by=("subject", "what"),
    caption=f"{applications.CPUS} modelled CPUs, 1 GiB of TLC flash on 8 dies, in {applications.ZONES} zones of "
            f"{applications.ZONE_MIB} MiB. {BALLAST_MIB} MiB of files, three quarters of what dm-mtftl offers, were "
            f"overwritten at random for {applications.AGE_MS / 1000:g} s or once over before; then {JOBS} jobs "
            f"overwrite them for {OVERWRITE_MS / 1000:g} s, and at the end for {FULL_MS / 1000:g} s, with three "
            "quarters of the flash in use and GC at work. Zoned XFS and F2FS have a device in memory besides, which "
            "takes no time; one row of ours has its log there.")
