# SPDX-License-Identifier: GPL-2.0
"""Databases and synced files, on file systems over dm-mtftl and on what users would pick instead; the same flash.

SQLite commits, mail is delivered, RocksDB fills, overwrites, overwrites with sync, and reads while one thread writes.
PostgreSQL and MariaDB carry out the transactions of pgbench and sysbench. All on a fresh drive (experiment
applications), or on one that was filled and overwritten at random before (applications-aged).
scripts/guest/applications has what the guests do.

Three peers need a device without zones, and one row of ours uses it for its log. It is in the guest's memory and takes
no time, which no real drive offers.
"""

import bisect
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..build import guest
from ..run.options import Options
from ..util.base import ROOT
from . import counters, dmzoned, figures
from .experiments import About, Check, Run, Sample, at_least, at_most, ours

CPUS = 4
PACKAGES = ["rocksdb-tools/forky", "xfsprogs/forky", "postgresql-15", "mariadb-server-core", "mariadb-client-core",
            "sysbench"]
ZONE_MIB, ZONES, CACHE_ZONES = 8, 128, 8
BOX_MIB = 114 * 9
BALLAST_MIB, AGE_MS = 640, 1000                 # with an application's 128 MiB three quarters of the flash
# Milliseconds of what runs for a time; RocksDB's keys, which are written once a benchmark; synced writes of a thread.
# And rows of the databases: PostgreSQL's in hundreds of thousands, those of each of MariaDB's tables.
SIZES = {"MS": 2000, "KEYS": 20000, "SYNCS": 240, "PG_SCALE": 2, "ROWS": 10000}
QUICK = {"MS": 50, "KEYS": 4000, "SYNCS": 5}
SPARE = 15                                      # percent, as black boxes have it
BEYOND = 20                                     # samples that have to lie beyond a percentile
LABELS = {"mtftl-ext4": "dm-mtftl, ext4", "mtftl-xfs": "dm-mtftl, XFS", "mtftl-xfs-log": "dm-mtftl, XFS, free log",
          "zoned-xfs": "zoned XFS", "btrfs": "btrfs", "f2fs": "F2FS", "dm-zoned": "dm-zoned, ext4",
          "box-ext4": "black box, ext4", "box-xfs": "black box, XFS"}
APPS = {"sqlite-wal": "SQLite, WAL", "sqlite-rollback": "SQLite, rollback", "files": "mail-like files",
        "rocksdb-fill": "RocksDB fillrandom", "rocksdb-overwrite": "RocksDB overwrite",
        "rocksdb-sync": "RocksDB overwrite, sync", "rocksdb-mixed": "RocksDB readwhilewriting",
        "postgres-tpcb": "PostgreSQL, TPC-B-like", "postgres-update": "PostgreSQL, simple update",
        "mariadb-write": "MariaDB, oltp_write_only", "mariadb-mixed": "MariaDB, oltp_read_write"}
BYTES = {"sqlite": 200, "files": 8192, "rocksdb": 816}      # that a transaction writes
DATABASES = ("postgres-tpcb", "postgres-update", "mariadb-write", "mariadb-mixed")
# Of two guests one hung beside MariaDB and one beside RocksDB: dm-zoned answered no write for 120 s.
HANGS = {("dm-zoned", app) for app in (*DATABASES, *(app for app in APPS if app.startswith("rocksdb")))}
NOT_AGED = "dm-zoned"                           # so it was not tried on an aged drive
SYNCED = ("sqlite-wal", "sqlite-rollback", "files", "rocksdb-sync", *DATABASES)
QUICK_LABELS, QUICK_APPS = ("mtftl-xfs", "zoned-xfs"), ("sqlite-wal", "files", "rocksdb-sync")
ZONED = ("zoned-xfs", "btrfs", "f2fs", "dm-zoned")
SHAPE = dmzoned.Shape("/dev/nvme0n1", "/dev/nullb0", ZONE_MIB, ZONES, CACHE_ZONES, 16)


def device(subject: str, zones: int, box_mib: int) -> dict[str, str]:
    """8 dies, with a 43rd of the profile's pages in an erase block, and of its time to erase one."""
    flash = {"flash.channels": "4", "flash.dies": "2", "flash.block_pages": "18", "flash.buffer": "4M",
             "flash.erase_ns": f"{3_500_000 * 18 // 768}", "flash.size": f"{zones * ZONE_MIB}M"}
    if subject.startswith("box"):
        return flash | {"flash.size": f"{box_mib}M", "zoned": "off", "flash.personality": "blackbox",
                        "flash.spare": f"{SPARE}", "flash.service_ns": "1000"}
    return flash | {"zoned.zone_size": f"{ZONE_MIB}M", "zoned.zone_capacity": f"{ZONE_MIB}M"}


def functions(script: str, shape: dmzoned.Shape) -> str:
    """How a guest begins: with a script's functions, and the one that formats dm-zoned."""
    return "\n".join([f". ./{script}", f"echo '{shape.table}' >dmz.table", "format_dm_zoned() {", *shape.format(), "}"])


def preparing(subject: str, quick: bool) -> str:
    """What fills and ages a subject's drive. Experiments with the same words and the same machine share the drive."""
    return f"{functions('applications', SHAPE)}\nprepare {subject} {BALLAST_MIB} {100 if quick else AGE_MS}"


def machine(subject: str, before: str = "") -> Options:
    """A guest of a subject, its drive prepared by what runs before."""
    push = [ROOT / "scripts/guest/applications",
            guest.program("guest-commits", kind=(), libraries=("-lsqlite3", "-lpthread"))]
    return Options(clock="virtual", kernel="current", cpus=CPUS, memory="3G", profile="tlc", timeout=7200,
                   module=subject.startswith("mtftl"), device=device(subject, ZONES, BOX_MIB), packages=PACKAGES,
                   push=push, before=before)


def _script(subject: str, state: str, quick: bool) -> str:
    """What is measured."""
    apps = " ".join(QUICK_APPS if quick else [app for app in APPS if (subject, app) not in HANGS])
    settings = "\n".join([f"APPS='{apps}'", *(f"{key}={value}" for key, value in (QUICK if quick else SIZES).items())])
    return f"{functions('applications', SHAPE)}\n{settings}\napplications {subject} {state}"


def runs(state: str, quick: bool) -> list[Run]:
    """A guest for each subject, on a fresh drive or on an aged one."""
    found = []
    for subject in QUICK_LABELS if quick else LABELS:
        if (subject, state) == (NOT_AGED, "aged"):
            continue
        before = preparing(subject, quick) if state == "aged" else ""
        found.append(Run(subject, _script(subject, state, quick), machine(subject, before),
                         ("*.out", "*.state", "*.log", "*.cpus", "window", "complaints",
                          *(["kept"] if before else [])), seconds=100 if before else 60))
    return found


def _busy(looks: str) -> int:
    """Instructions of tasks on all processors between two looks: each carries out one a ns.

    The kernel sums the ns that tasks ran. Interrupts of an idle processor do not count.
    """
    before, after = (sum(int(line.split()[7]) for line in look.splitlines() if line.startswith("cpu"))
                     for look in looks.split("look\n")[1:])
    return after - before


def _of_rocks(out: str) -> Sample:
    """What db_bench prints."""
    rate = re.search(r"micros/op (\d+) ops/sec", out)
    took = re.search(r"Count: (\d+) Average: ([\d.]+)[^\n]*\nMin: [\d.]+ +Median: [\d.]+ +Max: ([\d.]+)\n"
                     r"Percentiles:.* P99: ([\d.]+) P99.9: ([\d.]+)", out)
    if not rate or not took:
        raise ValueError("db_bench did not say what it measured")
    return {"count": int(took[1]), "rate": float(rate[1]), "mean_us": float(took[2]), "max_us": float(took[3]),
            "p99_us": float(took[4]), "p99.9_us": float(took[5])}


def _of_commits(out: str, ms: int) -> Sample:
    """What guest-commits prints: ns of each transaction that ended in a time."""
    took = sorted(int(line) / 1000 for line in out.split())
    if not took:
        raise ValueError("no transaction ended in that time")
    return {"count": len(took), "rate": len(took) * 1000 / ms, "mean_us": round(sum(took) / len(took), 1),
            "max_us": took[-1],
            **{f"p{p:g}_us": took[math.ceil(p / 100 * len(took)) - 1] for p in (99, 99.9)}}


def _of_sysbench(out: str) -> Sample:
    """What sysbench prints, with its histogram: milliseconds, and how many transactions took as long."""
    rate = re.search(r"transactions: +(\d+) +\(([\d.]+) per sec", out)
    took = re.search(r"avg: +([\d.]+)\n +max: +([\d.]+)", out)
    bars = [(float(ms), int(count)) for ms, count in re.findall(r"^ *([\d.]+) \|\** +(\d+)$", out, re.M)]
    if not rate or not took or not bars:
        raise ValueError("sysbench did not say what it measured")
    found: Sample = {"count": int(rate[1]), "rate": float(rate[2]), "mean_us": round(float(took[1]) * 1000, 1),
                     "max_us": round(float(took[2]) * 1000, 1)}
    so_far = [*itertools.accumulate(count for _, count in bars)]
    for p in (99, 99.9):
        found[f"p{p:g}_us"] = bars[bisect.bisect_left(so_far, p / 100 * so_far[-1])][0] * 1000
    return found


def _took(app: str, out: str, window: int) -> Sample:
    """Transactions and their times, as the program of an application prints them."""
    if app.startswith("rocksdb"):
        return _of_rocks(out)
    if app.startswith("mariadb"):
        return _of_sysbench(out)
    return _of_commits(out, window)


def programmed(log: bytes) -> float:
    """Bytes that the flash programmed between two looks."""
    return counters.grown(*(counters.flash(log[at:at + counters.COUNTERS])
                            for at in (0, counters.COUNTERS)))["programmed_bytes"]


def _sample(files: Mapping[str, bytes], app: str) -> Sample:
    """What an application came to; if it failed, only that."""
    if files[f"{app}.state"].split() != [b"0"]:
        return {"failed": 1}
    out = files[f"{app}.out"].decode()
    found = _took(app, out, int(files["window"]))
    for percentile in (99, 99.9):
        if round(found["count"] * (100 - percentile)) < 100 * BEYOND:
            del found[f"p{percentile:g}_us"]
    found["instructions"] = round(_busy(files[f"{app}.cpus"].decode()) / found["count"])
    if app != "rocksdb-mixed" and app not in DATABASES:     # what a transaction writes is not known
        found["programmed"] = round(programmed(files[f"{app}.log"]) / found["count"] / BYTES[app.split("-")[0]], 3)
    return {"failed": 0, **found}


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for subject, outputs in files.items():
        found += [{"subject": subject, "app": app, **_sample(outputs, app)}
                  for app in APPS if f"{app}.state" in outputs]
        found.append({"subject": subject, "app": "all", "complaints": int(outputs["complaints"]), **_aged(outputs)})
    return found


def _aged(outputs: Mapping[str, bytes]) -> Sample:
    """How far the ageing came: blocks overwritten for one of the files'."""
    if "kept/age.json" not in outputs:
        return {}
    text = outputs["kept/age.json"]
    jobs = json.loads(text[text.index(b"{"):])["jobs"]
    return {"overwritten": round(sum(job["write"]["io_bytes"] for job in jobs) / (BALLAST_MIB << 20), 3)}


def _rate(found: Sequence[Sample], subject: str, app: str) -> float | None:
    """Transactions a second; of what failed, one a window; nothing: it was not measured."""
    for s in found:
        if (s["subject"], s["app"]) == (subject, app):
            return float(s.get("rate") or 1000 / SIZES["MS"])
    return None


def _best(found: Sequence[Sample], subjects: Sequence[str], app: str) -> float | None:
    return max((rate for s in subjects if (rate := _rate(found, s, app))), default=None)


# Of ours, beside which peers, why; and the bound where it is not 1: RocksDB's tables are what zoned XFS is best at.
PAIRS: tuple[tuple[str, tuple[str, ...], tuple[str, ...], str], ...] = (
    ("dm-mtftl over btrfs", ("mtftl-ext4", "mtftl-xfs"), ("btrfs",),
     "btrfs writes a tree for each sync, and both have nothing but the flash"),
    ("dm-mtftl with XFS and a free log over zoned XFS", ("mtftl-xfs-log",), ("zoned-xfs",),
     "the same file system with the same free device for its log; zoned XFS has its metadata there besides"),
    ("dm-mtftl over F2FS", ("mtftl-ext4", "mtftl-xfs", "mtftl-xfs-log"), ("f2fs",),
     "F2FS has its metadata on the free device, but writes under locks of the whole file system"),
    ("dm-mtftl over dm-zoned, ext4 on both", ("mtftl-ext4",), ("dm-zoned",),
     "dm-zoned copies zones once its 64 MiB of free zones are full, and syncs its own metadata"),
    ("dm-mtftl over the black box, ext4 on both", ("mtftl-ext4",), ("box-ext4",),
     "a core of the host is as fast as the drive's, and there are four"),
    ("dm-mtftl over the black box, XFS on both", ("mtftl-xfs",), ("box-xfs",),
     "a core of the host is as fast as the drive's, and there are four"),
)


def checks(found: list[Sample], quick: bool) -> list[Check]:
    result = []
    for name, own, peers, why in PAIRS:
        for app, label in APPS.items():
            best = [_best(found, subjects, app) for subjects in (own, peers)]
            ran = any("rate" in s for s in found if s["app"] == app and s["subject"] in peers)
            if best[0] and best[1] and ran:             # beside peers that all failed a check could not fail
                low = 1.0 if app in SYNCED else 0.95
                result.append(at_least(f"{label}: {name}", best[0] / best[1], low, ours(why)))
    return result


def tails(found: Sequence[Sample]) -> list[Check]:
    """Checks of the slowest transactions beside GC, where enough of them ran to tell."""
    result = []
    for app, label in APPS.items():
        own, peers = (min((s["p99.9_us"] for s in found if s["app"] == app and s["subject"] in of and "p99.9_us" in s),
                          default=None) for of in (("mtftl-ext4", "mtftl-xfs"), ("zoned-xfs", "btrfs", "f2fs")))
        if own and peers:
            result.append(at_most(f"{label}: p99.9 of dm-mtftl over the best of zoned XFS, btrfs and F2FS",
                                  own / peers, 0.5, ours("GC takes turns with writers"),
                                  late="dm-mtftl's own figures on XFS were known, and no peer's"))
    return result


def _cells(sample: Sample) -> Iterator[str]:
    if sample.get("failed"):
        yield from ("failed", *["-"] * 6)
        return
    for key, form in (("rate", ".0f"), ("mean_us", ".0f"), ("p99_us", ".0f"), ("p99.9_us", ".0f"), ("max_us", ".0f"),
                      ("programmed", ".2f"), ("instructions", ".0f")):
        yield f"{sample[key]:{form}}" if key in sample else "-"


def _over_best(found: Sequence[Sample], sample: Sample) -> str:
    """A row of ours over the best of the peers that are given the same flash as zones."""
    best, own = _best(found, ZONED, sample["app"]), _rate(found, sample["subject"], sample["app"])
    return f"{own / best:.2f}" if best and own and sample["subject"].startswith("mtftl") else "-"


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["application", "on", "a second", "mean us", "p99 us", "p99.9 us", "max us", "programmed a byte",
             "instructions", "over the best zoned peer"]]
    for app, label in APPS.items():
        rows += [[label, LABELS[s["subject"]], *_cells(s), _over_best(found, s)] for s in found if s["app"] == app]
    return rows


def draw(found: list[Sample], path: Path) -> None:
    apps = [app for app in APPS if any(s["app"] == app for s in found)]
    figure, panels = figures.panels(len(apps), height=3.4)
    for axes, app in zip(panels, apps, strict=True):
        rates = {LABELS[s]: rate for s in LABELS if (rate := _rate(found, s, app))}
        figures.sideways(axes, [*rates], [*rates.values()], x="a second, logarithmic", title=APPS[app])
    figures.save(figure, path)


def about(title: str, question: str, drive: str) -> About:
    """What an experiment says of itself; of the drive it says how it begins."""
    return About(
        title=title, question=question, by=("subject", "app"),
        caption=f"{CPUS} modelled CPUs, 1 GiB of TLC flash on 8 dies, in {ZONES} zones of {ZONE_MIB} MiB; {drive} "
                "SQLite has one thread, all others have four. Zoned XFS, F2FS and dm-zoned have a device in "
                "memory besides, which takes no time, for metadata, log or conventional zones; one row of ours has "
                f"its log there. The FTL inside the black box takes 1 us a command and has {SPARE}% to spare.")
