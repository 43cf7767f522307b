# SPDX-License-Identifier: GPL-2.0
"""Misfortunes of a drive below file systems: what programs see, for how long, and what is lost of what was synced.

One guest has the misfortune. A second one with the same drive mounts it, as after a reboot, judges and writes again.
scripts/guest/misfortunes has what the guests do, and guest-promises.c is who judges, the same for all.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mtlab.build import guest
from mtlab.exp import applications, dmzoned, figures
from mtlab.exp.applications import ZONE_MIB
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, ours
from mtlab.run.options import Options
from mtlab.util.base import ROOT

CPUS = 4
ZONES, CACHE_ZONES = 64, 4
DRIVE_MIB = ZONE_MIB * ZONES
BOX_MIB = DRIVE_MIB * 8 // 9 // 9 * 9
SHAPE = dmzoned.Shape("/dev/nvme0n1", "/dev/mapper/mem", ZONE_MIB, ZONES, CACHE_ZONES, 16)
SUBJECTS = {"mtftl-ext4": "dm-mtftl, ext4", "mtftl-xfs": "dm-mtftl, XFS", "zoned-xfs": "zoned XFS", "btrfs": "btrfs",
            "f2fs": "F2FS", "dm-zoned": "dm-zoned, ext4", "box-ext4": "black box, ext4",
            "mtftl-ext4-journal": "dm-mtftl, ext4, journal elsewhere"}
OWN = ("mtftl-ext4", "mtftl-xfs")
ELSEWHERE = "mtftl-ext4-journal"        # an ordering of two drives matters if the power goes, and then only
# ms of load before the misfortune and at least after it, MiB after it, ms at most, blocks of a write
USUAL, SHORT = "300,700,0,150000,1", "300,100,0,2000,1"
MISFORTUNES = {
    "failed-write": ("a failed write", USUAL),
    "read-only": ("a zone turns read-only", USUAL),
    "offline": ("a zone goes offline", USUAL),
    "refused-reset": ("a refused reset", f"300,700,{DRIVE_MIB * 5 // 4},8000,8"),
    "timed-out": ("commands that time out, carried out", USUAL),
    "power-cut": ("a power cut", SHORT),
    "cut-in-mount": ("cuts in the mounts after a cut", SHORT),
    "rot-data": ("rot in data", SHORT),
    "rot-metadata": ("rot in metadata", SHORT),
    "full": ("a full drive, overwritten ten times", f"100,100,{DRIVE_MIB * 10},6000,16"),
    "hang": ("a drive that hangs for 40 s", USUAL),
    "reset": ("a controller reset under load", USUAL),
}
FILE_BLOCKS, FULL_PERCENT = 512, 90     # of a file; of what df offers, where the drive is to be full
OF_ZONES = ("read-only", "offline", "refused-reset")
CUTS = ("power-cut", "cut-in-mount")
WITH_MEMORY = ("zoned-xfs", "f2fs", "dm-zoned", ELSEWHERE)
# A disk in memory that was stopped answers nothing, and a thread that waits for it cannot end. Later it fails them.
GIVE_UP = ("{ until dmsetup info mem 2>/dev/null | grep -q SUSPENDED; do usleep 20000; done; sleep 1; "
           "dmsetup wipe_table mem; } >/dev/null 2>&1 &\n")
# The first guest of a cut was ended after eleven minutes of the host's clock. Neither is booted again.
ENDLESS = {("dm-zoned", what) for what in CUTS}
AT_REST = ("rot-data", "rot-metadata")
# The load itself becomes slower there: GC begins, or the drive is full from the start.
NO_PACE = (*CUTS, *AT_REST, "refused-reset", "full")
THREADS, FILES = 4, 3                   # of the load; of a thread
STEADY = 4                              # windows over which a pace is taken
HANGS, NONE = "hangs", "no zones"


def _cells() -> Iterator[tuple[str, str]]:
    for subject in SUBJECTS:
        for what in MISFORTUNES:
            if subject != ELSEWHERE or what == "power-cut":
                yield subject, what


def _without(subject: str, what: str) -> str:
    """Why a cell is not booted; nothing if it is."""
    if subject.startswith("box") and what in OF_ZONES:
        return NONE
    return HANGS if (subject, what) in ENDLESS else ""


def runs(quick: bool) -> list[Run]:
    push = [ROOT / "scripts/guest/applications", ROOT / "scripts/guest/misfortunes", guest.program("guest-promises")]
    found = []
    for subject, what in _cells():
        if _without(subject, what) or (quick and (subject, what) != (OWN[0], "failed-write")):
            continue
        # dm-zoned alone is formatted by hand, and sends its zoned device no flush: so the end of a guest sends one.
        by_hand = subject == "dm-zoned"
        functions = applications.functions("misfortunes", replace(SHAPE, synced=by_hand))
        size = FULL_PERCENT if what == "full" else FILE_BLOCKS
        give_up = GIVE_UP if what in CUTS and subject in WITH_MEMORY else ""
        before = f"{functions}\n{give_up}misfortune {subject} {what} {MISFORTUNES[what][1]} {size}"
        if by_hand and what not in CUTS:
            before += f"\nwithin 60 kept/flushed nvme flush {SHAPE.flash}"
        found.append(Run(f"{subject} {what}", f"{functions}\nafterwards {subject} {what}",
                         Options(clock="virtual", kernel="current", cpus=CPUS, memory="2G", profile="tlc",
                                 timeout=900, module=subject.startswith("mtftl"),
                                 device=applications.device(subject, ZONES, BOX_MIB),
                                 packages=["xfsprogs/forky"], push=push, before=before),
                         ("kept", "after"), seconds=15))
    return found


def _json(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    """What the judge printed; nothing, if it did not end."""
    found: dict[str, Any] = json.loads(files.get(f"{name}.out", b"").strip() or b"{}")
    return found


def _live(files: Mapping[str, bytes], work: Mapping[str, Any]) -> str:
    """What programs saw while the machine went on."""
    if not work:
        return HANGS if b"hangs" in files.get("kept/work", b"") else "cannot begin"
    if work["stuck"]:
        return HANGS
    if work["well"] == work["threads"]:
        return "goes on"
    live = _json(files, "kept/live")
    if live and live["unreadable"] >= live["promised"]:
        return "shut down"
    if "EROFS" in work["errors"] or b" ro," in files.get("kept/mounts", b""):
        return "read-only"
    return "no space" if "ENOSPC" in work["errors"] else "fails"


def _slow_ms(work: Mapping[str, Any]) -> int:
    """From the misfortune until the load has half of its pace again, and keeps it."""
    width = work["window_ms"]
    counts = dict(work["windows"])
    first, last = -(-work["struck_ms"] // width), work["ended_ms"] // width
    before = [counts.get(i, 0) for i in range(STEADY // 2, work["struck_ms"] // width)]
    half = sum(before) / len(before) / 2
    for end in range(last, first + STEADY - 1, -1):
        if sum(counts.get(i, 0) for i in range(end - STEADY, end)) / STEADY < half:
            return int(end * width - work["struck_ms"])
    return 0


def _mounted(files: Mapping[str, bytes]) -> str:
    """How the next guest could mount it."""
    if files.get("after/mount", b"").strip() == b"0":
        return "mounts"
    if files.get("after/repaired", b"").strip() == b"0":
        return "after a repair"
    if files.get("after/readable", b"").strip() == b"0":
        return "to read only"
    said = b"".join(files.get(f"after/{name}", b"") for name in ("mount", "repaired", "readable"))
    return HANGS if HANGS.encode() in said else "no mount"


def _sample(subject: str, what: str, files: Mapping[str, bytes]) -> Sample:
    work, judged, later, again = (_json(files, name) for name in
                                  ("kept/work", "after/judged", "after/later", "after/again"))
    found: Sample = {"subject": subject, "what": what, "live": "-" if what in (*CUTS, *AT_REST) else _live(files, work),
                     "mount": _mounted(files), "errors": int(work["failed"] + work["stuck"]) if work else THREADS}
    if work and what not in NO_PACE and found["live"] == "goes on":
        found["slow_ms"] = _slow_ms(work)
    if what == "full" and work:
        since = sum(count for at, count in work["windows"] if at * work["window_ms"] >= work["struck_ms"])
        found["overwritten"] = round(since / 256 / DRIVE_MIB, 2)
    every = {"promised": THREADS * FILES * FILE_BLOCKS * 4096}
    found["promised_kib"] = (judged or _json(files, "kept/live") or every)["promised"] // 1024
    if judged:
        worst = {key: max(judged[key], later.get(key, 0)) // 1024 for key in ("lost", "unreadable", "wrong")}
        found |= {f"{key}_kib": value for key, value in worst.items()}
    found["writes_again"] = int(bool(again) and again["well"] == again["threads"])
    return found


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    return [_sample(subject, what, files[f"{subject} {what}"]) if f"{subject} {what}" in files else
            {"subject": subject, "what": what, "live": _without(subject, what)}
            for subject, what in _cells() if f"{subject} {what}" in files or _without(subject, what)]


def _of(found: Sequence[Sample], subject: str, what: str) -> Sample | None:
    return next((s for s in found if (s["subject"], s["what"]) == (subject, what) and "mount" in s), None)


def _gone(sample: Sample) -> int:
    """KiB of what was synced that are not there, or not right. All, if nothing mounts it."""
    if "lost_kib" not in sample:
        return int(sample["promised_kib"])
    return int(sample["lost_kib"] + sample["unreadable_kib"] + sample["wrong_kib"])


def _own_checks(found: Sequence[Sample], subject: str, what: str) -> Iterator[Check]:
    sample = _of(found, subject, what)
    if not sample:
        return
    name = f"{SUBJECTS[subject]}: {MISFORTUNES[what][0]}"
    if what == "rot-data":
        yield at_least(f"{name}: KiB that read as something else", sample.get("wrong_kib", 0), 4, ours(
            "a read trusts the drive: checksums are compared when GC moves a block, and neither file system has any "
            "of its files' data"))
        return
    if what == "rot-metadata":
        yield at_most(f"{name}: KiB that read as something else", sample.get("wrong_kib", 1 << 20), 0, ours(
            "ext4 and XFS have checksums of their metadata"))
        return
    yield at_most(f"{name}: KiB lost", _gone(sample), ZONE_MIB << 10 if what == "offline" else 0, ours(
        "what a zone held goes with it, and nothing else" if what == "offline" else
        "what an fsync covered is on flash, in a zone that is still there"))
    if what not in CUTS:
        yield at_most(f"{name}: errors that programs see", sample["errors"], 0,
                      ours("a write that fails is repeated in another zone, and programs wait meanwhile"))


PEERS: tuple[tuple[str, str, str], ...] = (
    ("zoned-xfs", "failed-write", "the first write of data that fails shuts it down"),
    ("zoned-xfs", "read-only", "its open zone takes no more, and it has no way to leave it"),
    ("btrfs", "failed-write", "a write that fails in the log or in the tree aborts the transaction"),
    ("btrfs", "read-only", "its active block group takes no more, and is not left"),
    ("f2fs", "failed-write", "a checkpoint that saw an error stops it"),
    ("f2fs", "read-only", "its open section takes no more, and a checkpoint that saw an error stops it"),
    ("dm-zoned", "read-only", "its zone for random writes is given up, but the write fails"),
)


def checks(found: list[Sample], quick: bool) -> list[Check]:
    result = [check for subject in OWN for what in MISFORTUNES for check in _own_checks(found, subject, what)]
    for subject, what, why in PEERS:
        if sample := _of(found, subject, what):
            result.append(at_least(f"{SUBJECTS[subject]}: {MISFORTUNES[what][0]}: errors that programs see",
                                   sample["errors"], 1, ours(why)))
    for subject in SUBJECTS:
        if subject not in OWN and (sample := _of(found, subject, "power-cut")):
            result.append(at_most(f"{SUBJECTS[subject]}: a power cut: KiB lost", _gone(sample), 0,
                                  ours("an fsync is a promise that all of them keep")))
    if sample := _of(found, "btrfs", "rot-data"):
        result.append(at_most("btrfs: rot in data: KiB that read as something else", sample.get("wrong_kib", 1 << 20),
                              0, ours("it compares a checksum at each read")))
    return result


def _slow(sample: Sample) -> str:
    if "overwritten" in sample:
        return f"{sample['overwritten']:.1f} times"
    return f"{sample['slow_ms'] / 1000:.1f} s" if sample.get("slow_ms") else "-"


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["misfortune", "on", "programs", "errors", "slower for", "next mount", "lost KiB", "unreadable KiB",
             "wrong KiB", "writes again", "scripts/lab exp misfortunes --only"]]
    for what, (words, _) in MISFORTUNES.items():
        for s in found:
            if s["what"] == what and "mount" not in s:
                rows.append([words, SUBJECTS[s["subject"]], s["live"], *["-"] * 8])
            elif s["what"] == what:
                kib = [str(s.get(f"{key}_kib", "-")) for key in ("lost", "unreadable", "wrong")]
                rows.append([words, SUBJECTS[s["subject"]], s["live"], str(s["errors"]), _slow(s), s["mount"], *kib,
                             "yes" if s["writes_again"] else "no", f"'{s['subject']} {what}'"])
    return rows


def _grade(sample: Sample | None) -> tuple[int, str]:
    """For the figure: how bad it is, from 0 to 3, and in a word."""
    if not sample or ("mount" not in sample and sample["live"] != HANGS):
        return -1, ""
    if "lost_kib" not in sample:
        return 3, "no mount" if "mount" in sample else HANGS
    if sample["wrong_kib"]:
        return 3, "wrong data"
    if sample["lost_kib"]:
        return 3, f"{sample['lost_kib']} KiB lost"
    if sample["unreadable_kib"]:
        return 2, f"{sample['unreadable_kib']} KiB unreadable"
    if sample["live"] not in ("goes on", "-"):
        return 2, sample["live"]
    if sample["errors"] and sample["live"] == "goes on":
        return 1, "goes on, errors"
    if sample["mount"] != "mounts":
        return 1, sample["mount"]
    return 0, sample["live"] if sample["live"] != "-" else "all there"


def draw(found: list[Sample], path: Path) -> None:
    subjects = [s for s in SUBJECTS if any(f["subject"] == s and f["live"] != NONE for f in found)]
    tried = [what for what in MISFORTUNES if any(f["what"] == what for f in found)]
    figure, (axes,) = figures.panels(1, height=0.6 + 0.4 * len(tried), width=figures.PAGE)
    cells = [[_grade(next((f for f in found if (f["subject"], f["what"]) == (s, what)), None)) for s in subjects]
             for what in tried]
    figures.grades(axes, [SUBJECTS[s] for s in subjects], [MISFORTUNES[what][0] for what in tried], cells)
    figures.save(figure, path)


ABOUT = About(
    title="Misfortunes of a drive",
    question="What do programs see, and what is lost of what they synced, if a drive or its power fails below each "
             "file system?",
    by=("subject", "what"),
    caption=f"{CPUS} modelled CPUs, {DRIVE_MIB} MiB of TLC flash on 8 dies, in {ZONES} zones of {ZONE_MIB} MiB; four "
            "threads overwrite and append to files with fsync. Zoned XFS, F2FS and dm-zoned have a disk in memory "
            "besides, which has no misfortune of its own and stops when the power goes. Empty: a black box has no "
            "zones. Green: no program noticed more than a pause; yellow: errors, or a repair, and nothing lost; "
            "orange: it stopped, or says that data cannot be read; red: synced data is lost or wrong, or nothing "
            "mounts it.")
