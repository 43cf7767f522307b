# SPDX-License-Identifier: GPL-2.0
"""The results as a story: in which order they are read, what each experiment answers in two sentences, and which of
its checks hold, by what they rest on.

Numbers in the answers are taken from the samples: {FIELD FORMAT | KEY=VALUE; ...} is the field of the one sample
with these values, {FIELD/SCALE FORMAT | ...} that in units of SCALE, and {FIELD FORMAT | A over B} the ratio of two.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..exp.experiments import FORM, OURS, SOURCE, load
from ..exp.results import KINDS, bound, counts, measured, why
from ..util.base import LabError

Checks = Sequence[Mapping[str, Any]]
# A chapter is a question; what answers it are experiments, and pages without one: their title and what they have.
CHAPTERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Does it scale?", ("scaling", "width", "several-drives", "mt-ftl-users", "mt-ftl-units", "mt-ftl-buffers",
                           "engines")),
    ("Is it fast where drives live?", ("steady", "gc", "policies", "write-cliff", "headers", "aging")),
    ("Is the tail short?", ("zone-reset", "mount")),
    ("Does it lose nothing?", ("misfortunes", "torture", "boots", "suites")),
    ("Is the emulator true?", ("geometry", "femu", "femu-full", "femu-hot", "fragmentation", "artifact", "vssim",
                               "vssim-guest", "mappings", "fdp", "page-types", "plane-reads", "suspension", "wear",
                               "virtual-time")),
    ("What do others do?", ("peers", "files", "applications", "applications-aged", "pblk", "host-or-drive")),
)
OTHERS = {
    "policies": ("Placement and victims, without time", "what each policy writes for a block, beside the limit"),
    "torture": ("Power cuts, failures, fuzzers", "the last runs, and every bug that they found"),
    "boots": ("A root file system on dm-mtftl", "a Debian through power cuts, reboots and a kernel update"),
    "suites": ("The suites of fio, blktests and xfstests", "their tests on our devices and on plain ones"),
    "virtual-time": ("Speed of the emulator", "what a run costs the host, and what made it cheaper"),
}
NOT_YET = "its checks are written, and it has not been measured yet."
_TLC = "profile=tlc; users=8; line="
_CACHES = "clock=caches; line="
_BUFFER = "part=all; entries=1024; "
_USERS = "clock=caches; cpus=8; write unit=1; users="
_XFS, _LOG, _ZONED = (f"subject={name}; app=" for name in ("mtftl-xfs", "mtftl-xfs-log", "zoned-xfs"))
_OVER, _FULL = "what=overwrite; subject=", "what=full; subject="
_ONE, _STRIPE = "subject=one drive; direction=", "subject=dm-stripe; drives=4; direction="
_USED = "state=steady; unit=8; users=8; line="
ANSWERS = {
    "scaling":
        f"Yes, in units of one block: with 8 users dm-mtftl takes {{iops .1f | {_TLC}multi over {_TLC}single}} times "
        "as many writes as one buffer and one writer. From there on the 8 CPUs are the limit, at "
        f"{{iops/1000 .0f | {_TLC}multi}} thousand writes a second (larger units: `width`).",
    "width":
        f"With the caches of a server, 32 CPUs take {{iops .1f | {_CACHES}multi; cpus=32 over {_CACHES}multi; cpus=8}} "
        f"times the writes of 8. One lane takes {{iops/1000 .0f | {_CACHES}single; cpus=32}} thousand a second "
        "there, because one CPU sends all units.",
    "several-drives":
        f"Under dm-stripe four drives give {{iops .2f | {_STRIPE}read over {_ONE}read}} times the reads and {{iops .2f "
        f"| {_STRIPE}write over {_ONE}write}} times the writes of one. Small writes to RAID 5 on four drives reach "
        f"{{iops .2f | subject=md RAID 5; drives=4; direction=write over {_ONE}write}} times those of one drive.",
    "mt-ftl-users":
        "With the paper's parameters and caches, 8 users write "
        f"{{iops .1f | {_USERS}8; line=multi over {_USERS}8; line=pblk}} times as much as under pblk, and 32 users "
        f"{{iops .1f | {_USERS}32; line=multi over {_USERS}32; line=pblk}} times. One user writes "
        f"{{iops .2f | {_USERS}1; line=multi over {_USERS}1; line=pblk}} times as much.",
    "mt-ftl-buffers":
        f"From 4 ms on, 8 users keep {{in_use .0% | {_BUFFER}lanes=1}} of one buffer of 1,024 entries in use, and "
        f"{{in_use .0% | {_BUFFER}lanes=8}} of eight buffers of 128. Eight writers take "
        f"{{blocks .1f | {_BUFFER}lanes=8 over {_BUFFER}lanes=1}} times as many blocks out of them as one.",
    "mt-ftl-units":
        "With 8 users, units of 32 blocks give "
        "{bytes_per_s .1f | write unit=32; users=8 over write unit=1; users=8} times the bandwidth of one. With units "
        "of 32 blocks, 64 users get {bytes_per_s .0% | write unit=32; users=64 over write unit=32; users=8} of what 8 "
        "do.",
    "engines":
        "Yes: a program that uses io_uring writes "
        "{iops .2f | device=mtftl; direction=write; jobs=4; depth=8; engine=io_uring over "
        "device=mtftl; direction=write; jobs=4; depth=8; engine=libaio} times as much as one that uses libaio. "
        "Reads reach what dm-linear reaches, which does nothing.",
    "steady":
        "Writes are smooth from second to second, and placement by life keeps the write amplification of a skewed load "
        "at {write_amplification .2f | load=zipf; streams=by life; second=None}. "
        "Uniform writes cost {write_amplification .2f | load=uniform; streams=by life; second=None}; the slowest reads "
        "in a thousand notice GC.",
    "gc":
        "With 256 zones the dies are {busy_dies .0% | zones=256; line=8; load=full} busy, and with 32 zones "
        "{busy_dies .0% | zones=32; line=8; load=full}, because an erase stops all dies at once. "
        "At 70% of that rate the slowest write in a thousand takes "
        "{p99.9_us .0f | zones=256; line=8; load=part} and {p99.9_us .0f | zones=32; line=8; load=part} us.",
    "write-cliff":
        "Random writes fall from a peak of {peak_mb_s .0f | workload=randwrite; part=all} MB/s to a plateau of "
        "{plateau_mb_s .0f | workload=randwrite; part=all}, and stay there. Reads have no cliff.",
    "headers":
        "Headers in metadata double the writes of units of one block: "
        "{iops .2f | headers=metadata; unit=1 over headers=blocks; unit=1} times as many. With units of 32 blocks they "
        "give {iops .2f | headers=metadata; unit=32 over headers=blocks; unit=32} times as many.",
    "aging":
        "On dm-mtftl aged files are read at {of_fresh .0% | line=ext4; files=new; state=aged} of the speed of fresh "
        "ones, and GC does not make it worse. On F2FS it is {of_fresh .0% | line=f2fs; files=new; state=aged}.",
    "zone-reset":
        "On the raw drive an erase of 3 ms costs nothing that counts beside 0.78 s of programs; behind the FTL no "
        "write waits for one up to p99. FEMU's own drive gives FEMU's figures without the delay, "
        "{iops .0f | target=script; erase delay=without} IOPS and a p99 of "
        "{p99_us/1000 .0f | target=script; erase delay=without} ms, because its caches hold no write back.",
    "mount":
        "After a stop a device of 4 GiB mounts in {us/1000 .0f | flash GiB=4; mount=clean} ms. After a cut just before "
        "a checkpoint it takes {us/1000 .0f | flash GiB=4; mount=flushed} ms, and "
        "{us/1000 .0f | flash GiB=4; mount=unflushed} if nothing was ever flushed.",
    "geometry":
        "Nothing for writes, which the dies limit in all five drives. Reads fall only with two channels, to what these "
        "carry.",
    "femu":
        "The cliff comes where three quarters of the lines are in use. FEMU charges a victim's moves at once, and "
        "writes {write_amplification .1f | workload=randwrite; mode=femu; part=all} blocks for one; with moves that "
        "take their time it is {write_amplification .1f | workload=randwrite; mode=real; part=all}.",
    "femu-full":
        "At the report's size writes fall from {peak_mb_s .0f | workload=randwrite; mode=femu; part=all} to "
        "{plateau_mb_s .0f | workload=randwrite; mode=femu; part=all} MB/s, and stay there. "
        "The drive programs {write_amplification .1f | workload=randwrite; mode=femu; part=all} blocks for one.",
    "femu-hot":
        "With hot writes apart, uniform writes cost {write_amplification .2f | workload=randwrite; mode=hot} blocks "
        "for one, in place of {write_amplification .2f | workload=randwrite; mode=femu}. If nine writes of ten go to a "
        "tenth of the files, it is {write_amplification .2f | workload=skewed; mode=hot} in place of "
        "{write_amplification .2f | workload=skewed; mode=femu}.",
    "fragmentation":
        "Pieces on one die are read at {mib_per_s .0% | drive=paper; what=append worst 0 over "
        "drive=paper; what=contiguous} of a contiguous file's speed on a drive with its own FTL, as in the paper. "
        "dm-mtftl keeps what was written in order in order, and reads these pieces at "
        "{mib_per_s .0% | drive=host; what=append worst 0 over drive=host; what=contiguous} without hints, and small "
        "files of ten users at "
        "{mib_per_s .0% | drive=host; what=fileserver small over drive=host; what=fileserver small contiguous}.",
    "artifact":
        "On ext4, a file in pieces on one die is read at {mib_per_s .0f | part=file; what=append worst; hints=off} "
        "MiB/s, and with hints at {mib_per_s .0f | part=file; what=append worst; hints=on}, of "
        "{mib_per_s .0f | part=file; what=contiguous worst; hints=off} for a contiguous one. "
        "sqlite selects its rows at {mib_per_s .0f | part=load; what=sqlite; hints=off} MiB/s, and with hints at "
        "{mib_per_s .0f | part=load; what=sqlite; hints=on}.",
    "vssim":
        "With one stripe in flight, half the channels leave {mb_s .0% | part=stripes; point=B over "
        "part=stripes; point=A} of the rate, and a fourth of them {mb_s .0% | part=stripes; point=C over "
        "part=stripes; point=A}; with eight requests in flight the dies hide it. If FAST has as many logs in order "
        "as LAST, LAST writes {mb_s .2f | part=factors; point=8; mapping=last over part=factors; point=8; "
        "mapping=fast} times as much with 8% of logs, and in the page mapping hot writes apart give "
        "{mb_s .2f | part=spare; point=32-install-writes over part=spare; point=32-install-mixed} times the rate at "
        "32% to spare.",
    "vssim-guest":
        "A file of 512 MiB is written at {mb_s .0f | part=iozone; of=sequential write} and read at "
        "{mb_s .0f | part=iozone; of=sequential read} MB/s, where X25-M's maker published 70 and 250. Of the writes "
        "of dpkg {to_4k .0% | part=programs; of=unpack} have at most 4 KiB, and of the writes that copy a film "
        "{more .0% | part=programs; of=film} more than 128.",
    "mappings":
        "Greedy collection writes within 2% of its closed form. Mappings with log blocks are fast in order only: "
        "uniform writes cost FAST {write_amplification .1f | mapping=fast; load=uniform 4 KiB} and BAST "
        "{write_amplification .0f | mapping=bast; load=uniform 4 KiB} blocks for one.",
    "fdp":
        "Under 90% noise, handles that write at random write {of_quiet .0f | quiet=at random; noisy=90; "
        "drive=initially isolated} blocks for one if they are initially isolated, and "
        "{of_quiet .1f | quiet=at random; noisy=90; drive=persistently isolated} if persistently. Handles that write "
        "in order write {of_quiet .2f | quiet=in order; noisy=0; drive=initially isolated} without noise and "
        "{of_quiet .2f | quiet=in order; noisy=90; drive=initially isolated} with it.",
    "page-types":
        "One read at a time takes the mean, and the slowest page's time at worst. With as many reads in flight as "
        "dies, pages of 20, 40 and 120 us give {iops .0% | pages=120 at most; depth=8 over pages=alike; depth=8} of "
        "the rate of pages that take 60 us each, and a 99th percentile of "
        "{p99_us .0f | pages=120 at most; depth=8} us in place of {p99_us .0f | pages=alike; depth=8}.",
    "plane-reads":
        "One read at a time gains nothing, and if no plane is idle and transfers take no time, planes apart give "
        "{iops .1f | planes=apart; bus=no transfer; depth=1024 over planes=together; bus=no transfer; depth=1024} "
        "times the rate. With channels of 800 MB/s and 32 reads in flight they give "
        "{iops .1f | planes=apart; bus=800 MB/s; depth=32 over planes=together; bus=800 MB/s; depth=32} times the "
        "rate, and a 99th percentile of {p99_us .0f | planes=apart; bus=800 MB/s; depth=32} us in place of "
        "{p99_us .0f | planes=together; bus=800 MB/s; depth=32}.",
    "suspension":
        "The median of a read falls from {p50_us .0f | reads=first} us, if reads go first, to "
        "{p50_us .0f | reads=stop in 0 us} us if they interrupt programs, and grows by what flash takes to stop. If "
        "that is 100 us, all requests together come at "
        "{iops .0% | reads=stop in 100 us over reads=in their turn} of the rate without interruptions.",
    "wear":
        "A read takes one cell read more for each retry: {mean_us .0f | drive=half worn; data=left alone; kept=950} "
        "us from half worn blocks whose data has lain for 950 s, in place of "
        "{mean_us .0f | drive=new; data=left alone; kept=50}. A refresh after 300 s keeps it at "
        "{p99_us .0f | drive=half worn; data=refreshed; kept=850} us at most, and costs "
        "{erases .0f | drive=half worn; data=refreshed; kept=950} erases of each block in that time.",
    "peers":
        "dm-mtftl takes {iops/1000 .0f | line=mtftl} thousand random writes a second where dm-zoned, once its "
        "conventional zones are full, copies zones. Below ext4 it takes "
        "{iops .0f | line=mtftl-ext4 over line=btrfs} times what btrfs takes, and on a fifth of the drive "
        "{iops .1f | line=mtftl-ext4-fifth over line=f2fs} times what F2FS takes.",
    "pblk":
        f"On a used drive dm-mtftl takes {{iops .1f | {_USED}multi over {_USED}pblk}} times the writes of pblk, and "
        f"programs {{programmed .1f | {_USED}multi}} blocks for one where pblk programs "
        f"{{programmed .1f | {_USED}pblk}}. On a fresh drive with large units pblk is a little faster.",
    "files":
        f"On files of an aged drive dm-mtftl with XFS takes {{iops .1f | {_OVER}mtftl-xfs over {_OVER}zoned-xfs}} "
        f"times the random overwrites of zoned XFS, and {{iops .1f | {_FULL}mtftl-xfs over {_FULL}zoned-xfs}} times "
        "once both collect garbage. With 16 jobs, 4 KiB writes with fsync reach {iops .2f | what=sync-16; "
        "subject=mtftl over what=sync-16; subject=box} times the rate of a black box of the same flash.",
    "applications":
        f"With XFS, PostgreSQL's simple updates on dm-mtftl are {{rate .2f | {_XFS}postgres-update over "
        f"{_ZONED}postgres-update}} times as many as on zoned XFS, and RocksDB's synced overwrites "
        f"{{rate .2f | {_XFS}rocksdb-sync over {_ZONED}rocksdb-sync}} times, or {{rate .2f | {_LOG}rocksdb-sync over "
        f"{_ZONED}rocksdb-sync}} with the log on the same free device. SQLite's WAL commits {{rate .2f | "
        f"{_XFS}sqlite-wal over subject=box-xfs; app=sqlite-wal}} times as often as on a black box of the same flash.",
    "applications-aged":
        f"On an aged drive, RocksDB overwrites on dm-mtftl with XFS at {{rate .2f | "
        f"{_XFS}rocksdb-overwrite over {_ZONED}rocksdb-overwrite}} times the rate of zoned XFS, and with sync at "
        f"{{rate .2f | {_XFS}rocksdb-sync over {_ZONED}rocksdb-sync}} times. PostgreSQL's simple updates are "
        f"{{rate .2f | {_XFS}postgres-update over {_ZONED}postgres-update}} times as many.",
    "misfortunes":
        "After a power cut dm-mtftl with ext4 lacks {lost_kib .0f | subject=mtftl-ext4; what=power-cut} KiB of what "
        "was synced. If a zone turns read-only while it is written, programs on it see "
        "{errors .0f | subject=mtftl-ext4; what=read-only} errors, on zoned XFS "
        "{errors .0f | subject=zoned-xfs; what=read-only}, and on btrfs "
        "{errors .0f | subject=btrfs; what=read-only}.",
    "host-or-drive":
        "A fresh drive is limited by the core inside: with 8 us a command the host's FTL is "
        "{iops .1f | ftl=host; state=fresh; users=64 over ftl=8; state=fresh; users=64} times as fast. In the steady "
        "state the drive wins with many users, and the host with one.",
}
_TOKEN = re.compile(r"\{([^{}|]+?)(?:/(\d+))? (\.\d[f%]) \| ([^{}]+?)\}")


def _sample(samples: Iterable[Mapping[str, Any]], words: str) -> Mapping[str, Any]:
    wanted = dict(word.strip().split("=", 1) for word in words.split(";"))
    for sample in samples:
        if all(str(sample.get(key)) == value for key, value in wanted.items()):
            return sample
    raise LabError(f"no sample has {words}")


def answer(name: str, samples: Sequence[Mapping[str, Any]]) -> str:
    """An experiment's answer, with its numbers."""
    def number(match: re.Match[str]) -> str:
        field, scale, form, words = match.groups()
        of, _, over = words.partition(" over ")
        value = float(_sample(samples, of)[field]) / float(scale or 1)
        return format(value / float(_sample(samples, over)[field]) if over else value, form)

    return _TOKEN.sub(number, ANSWERS[name])


def missed(checks: Checks) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Checks that do not hold, by what is known about the cause, in the order of the first of each."""
    causes: dict[str, list[Mapping[str, Any]]] = {}
    for check in checks:
        if not check["pass"]:
            causes.setdefault(str(check.get("analysis") or ""), []).append(check)
    return list(causes.items())


def claims(checks: Checks) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """What the sources say, each claim with the checks that hold it against what was measured."""
    said: dict[str, list[Mapping[str, Any]]] = {}
    for check in checks:
        if check["kind"] == SOURCE:
            said.setdefault(why(check), []).append(check)
    return list(said.items())


def verdicts(checks: Checks) -> str:
    """How many checks hold; all claims of sources; and which of the others are missed. As Markdown."""
    lines = [counts(checks) + "."]
    said = claims(checks)
    if said:
        lines += ["", "**What the sources say**", ""]
    for words, of in said:
        lines.append(f"- {words}")
        lines += [f"  - {'Holds' if c['pass'] else 'Missed'}: {c['name']}: {measured(c)}, expected {bound(c)}. "
                  f"{'' if c['pass'] else c.get('analysis', '')}".rstrip() for c in of]
    for kind in (FORM, OURS):
        causes = missed([check for check in checks if check["kind"] == kind])
        if causes:
            lines += ["", f"**Missed {KINDS[kind]}**", ""]
        for cause, of in causes:
            single = [f"{c['name']}: {measured(c)}, predicted {bound(c)}." for c in of]
            if len(single) == 1 or not cause:
                lines += [f"- {one} {cause}".rstrip() for one in single]
            else:
                lines += [f"- {cause}", *(f"  - {one}" for one in single)]
    return "\n".join(lines)


def _seeds(results: Mapping[str, Any]) -> str:
    """How many seeds the runs had; nothing where the caption says it."""
    numbers = sorted({run.get("seeds", 1) for run in results["provenance"].get("settings", {}).values()})
    if not numbers or "seed" in results["caption"]:
        return ""
    if numbers == [1]:
        return "One run each, of one seed."
    several = " or ".join(str(number) for number in numbers if number > 1)
    return f"Medians of {several} seeds{', some runs of one' * (1 in numbers)}."


def opening(results: Mapping[str, Any], newer: str) -> str:
    """The top of an experiment's page: question, answer, figure, where it was measured, and what is newer."""
    return "\n\n".join([
        f"**{results['question']}**", answer(results["experiment"], results["samples"]),
        f"![{results['title']}](figure.svg)",
        " ".join(filter(None, [results["caption"], _seeds(results), f"Commit {results['provenance']['commit']}.",
                               newer]))]) + "\n"


def index(results: Path) -> str:
    """How many checks hold, then all pages by chapter, each experiment with its answer."""
    judged = [check for path in sorted(results.glob("*/results.json"))
              for check in json.loads(path.read_text())["checks"]]
    late = sum("late" in check for check in judged)
    lines = [f"{counts(judged)}. The bounds of {late} were set or changed when a result was known; each says so.", ""]
    for chapter, names in CHAPTERS:
        lines += [f"### {chapter}", ""]
        for name in names:
            if name in OTHERS:
                title, said = OTHERS[name]
            elif not (results / name / "results.json").exists():
                title, said = load(name).about.title, NOT_YET
            else:
                found = json.loads((results / name / "results.json").read_text())
                title = found["title"]
                said = f"{answer(name, found['samples'])} {counts(found['checks'])}."
            lines.append(f"- [{title}]({name}/README.md): {said}")
        lines.append("")
    return "\n".join(lines)
