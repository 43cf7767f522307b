# SPDX-License-Identifier: GPL-2.0
"""Several drives with what Linux has: dm-stripe, md and LVM over one, two and four drives of dm-mtftl.

A drive has a single die, so that flash is the limit and 8 CPUs are not. Reads and writes of 4 KiB at random, on
blocks that were written before, by eight programs with 32 requests in flight each: the drives never run out of work.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, form, ours, shown, spread, within
from mtlab.run.options import Options

CPUS, DEPTH, BLOCK = 8, 32, 4096
WARM_MS, WINDOW_MS, QUICK_WINDOW_MS = 20, 100, 40
SIZE_M = 128            # of data on each drive: what its buffers hold is as much of that, however many there are
CHUNK_K = 64
# Units of 192 KiB, of which a zone has 32.
DEVICE = {"flash.size": "512M", "zoned.zone_size": "8M", "zoned.zone_capacity": "6M", "flash.channels": "1",
          "flash.dies": "1", "flash.block_pages": "96", "flash.buffer": "1M"}
ONE, STRIPE, LVM = "one drive", "dm-stripe", "LVM, striped"
# Of each subject how many drives it has, and how it is made of $members.
MADE = {(ONE, 1): "top=/dev/mapper/m0"}
MADE |= {(STRIPE, n): f"stripe {n}" for n in (2, 4)}
MADE |= {(f"md RAID {level}", n): f"array {level} {n}" for level, n in ((0, 2), (0, 4), (1, 2), (10, 4), (5, 4))}
MADE |= {(LVM, 4): "volume 4"}
COPIES = {"md RAID 1": 2, "md RAID 10": 2}
MEASURED = (ONE, 1), (STRIPE, 4)        # what is compared by number
SEEDS = 5
QUICK = (*MEASURED, ("md RAID 5", 4))
FUNCTIONS = f"""
stripe() {{
    each=$(($(blockdev --getsz /dev/mapper/m0) / {2 * CHUNK_K} * {2 * CHUNK_K}))
    dmsetup create top --table "0 $(($1 * each)) striped $1 {2 * CHUNK_K} $(for i in $(seq 0 $(($1 - 1))); do
        echo /dev/mapper/m$i 0; done | xargs)"
    top=/dev/mapper/top
}}
array() {{
    chunk=--chunk={CHUNK_K}
    [ $1 != 1 ] || chunk=
    MDADM_NO_UDEV=1 mdadm --create /dev/md0 --run --quiet --assume-clean --level=$1 --raid-devices=$2 $chunk $members
    top=/dev/md0
}}
volume() {{
    vgcreate -qq pair $members
    lvcreate -qq --zero n --wipesignatures n --stripes $1 --stripesize {CHUNK_K}k --extents 100%FREE --name top pair
    top=/dev/pair/top
}}
"""


def _name(subject: tuple[str, int]) -> str:
    return f"{subject[0].lower().replace(',', '').replace(' ', '-')}-{subject[1]}"


def _script(subject: tuple[str, int], window_ms: int) -> str:
    data = subject[1] / COPIES.get(subject[0], 1) - (subject[0] == "md RAID 5")
    common = {"filename": "$top", "ioengine": "io_uring", "size": f"{SIZE_M * data:.0f}M"}
    measured = {**common, "bs": BLOCK, "iodepth": DEPTH, "numjobs": CPUS, "time_based": True, "norandommap": True,
                "runtime": f"{WARM_MS + window_ms}ms"}
    fill = fio.command("/dev/null", bs="128k", rw="write", iodepth=8, end_fsync=1, **common)
    return "\n".join((
        f"set -e{FUNCTIONS}members=", f"for i in $(seq 0 {subject[1] - 1}); do", "mtftl format --force /dev/nvme${i}n1",
        "mtftl open /dev/nvme${i}n1 m$i buffer_entries=1024", 'members="$members /dev/mapper/m$i"', "done",
        MADE[subject], fill, fio.command("read.json", rw="randread", **measured, **fio.log("read")),
        fio.command("write.json", rw="randwrite", **measured, **fio.log("write"))))


def runs(quick: bool) -> list[Run]:
    return [Run(_name(subject), _script(subject, QUICK_WINDOW_MS if quick else WINDOW_MS),
                Options(clock="virtual", cpus=CPUS, profile="tlc", device=DEVICE, drives=subject[1],
                        memory_model="server", packages=["mdadm", "lvm2"], timeout=3600), ("*.json", "*.log"),
                seeds=SEEDS if subject in MEASURED and not quick else 1, seconds=60)
            for subject in (QUICK if quick else MADE)]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    subjects = {_name(subject): subject for subject in MADE}
    return [{"subject": subjects[name][0], "drives": subjects[name][1], "direction": way,
             **fio.logged(files[name], way, WARM_MS / 1000, fio.seconds(files[name][f"{way}.json"]), BLOCK)}
            for name in subjects if name in files for way in ("read", "write")]


def _iops(found: list[Sample], subject: str, drives: int, way: str) -> float:
    wanted = subject, drives, way
    return float(next(s for s in found if (s["subject"], s["drives"], s["direction"]) == wanted)["iops"])


def _over_one(found: list[Sample], subject: str, drives: int, way: str) -> float:
    """0 where --only left out the one drive."""
    if not any(s["subject"] == ONE for s in found):
        return 0
    return _iops(found, subject, drives, way) / _iops(found, ONE, 1, way)


def checks(found: list[Sample], quick: bool) -> list[Check]:
    dies = form("four drives have four times the dies, and 8 CPUs are not the limit")
    result = [at_least(f"dm-stripe: {way}s, four drives over one", _over_one(found, STRIPE, 4, way), 3.8, dies)
              for way in ("read", "write")]
    # A die programs 48 blocks in 700 us and reads one in 53. A small write reads two blocks and writes two.
    result.append(within("RAID 5: writes, four drives over one", _over_one(found, "md RAID 5", 4, "write"),
                         4 * (700 / 48) / (2 * 53.4 + 2 * 700 / 48), 0.2,
                         form("a write reads old data and parity and writes both anew: 2 reads and 2 writes")))
    if quick:
        return result
    for subject in ("md RAID 0", LVM):
        result += [at_least(f"{subject}: {way}s, over dm-stripe on four drives",
                            _iops(found, subject, 4, way) / _iops(found, STRIPE, 4, way), 0.95,
                            ours("it sends the same blocks to the same drives")) for way in ("read", "write")]
    mirrored = form("each block is written twice, and read from either copy")
    return [*result,
            at_least("RAID 1: reads, two drives over one", _over_one(found, "md RAID 1", 2, "read"), 1.8, mirrored),
            at_least("RAID 1: writes, two drives over one", _over_one(found, "md RAID 1", 2, "write"), 0.95, mirrored),
            at_least("RAID 10: reads, four drives over one", _over_one(found, "md RAID 10", 4, "read"), 3.6, mirrored),
            at_least("RAID 10: writes, four drives over one", _over_one(found, "md RAID 10", 4, "write"), 1.9,
                     mirrored),
            at_least("RAID 5: reads, four drives over one", _over_one(found, "md RAID 5", 4, "read"), 3.6, dies)]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["what", "drives", "read k/s", "over one drive", "written k/s", "over one drive", "write p99 us"]]
    for subject, drives in dict.fromkeys((s["subject"], s["drives"]) for s in found):
        read, write = (next(s for s in found if (s["subject"], s["drives"], s["direction"]) == (subject, drives, way))
                       for way in ("read", "write"))
        rows.append([subject, str(drives), shown(read, "iops", scale=1000),
                     f"{_over_one(found, subject, drives, 'read'):.2f}", shown(write, "iops", scale=1000),
                     f"{_over_one(found, subject, drives, 'write'):.2f}", f"{write['p99_us']:.0f}"])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    names = list(dict.fromkeys((s["subject"], s["drives"]) for s in found))
    figure, (axes,) = figures.panels(1, height=4)
    series = []
    for way, label in (("read", "reads"), ("write", "writes")):
        one = _iops(found, ONE, 1, way)
        of = {(s["subject"], s["drives"]): s for s in found if s["direction"] == way}
        series.append(figures.Bars(label, [of[name]["iops"] / one for name in names],
                                   [(low / one, high / one) for low, high in (spread(of[name], "iops")
                                                                              for name in names)]))
    figures.rows(axes, [ONE if name == ONE else f"{name} on {drives}" for name, drives in names], series,
                 x="requests of 4 KiB a second, over one drive's")
    figures.save(figure, path)


ABOUT = About(
    title="Several drives",
    question="Do two and four drives of dm-mtftl give two and four times of one, under what Linux has for several "
             "drives?",
    by=("subject", "drives", "direction"),
    caption=f"Random requests of 4 KiB, {CPUS} programs with {DEPTH} in flight each, on 8 modelled CPUs with the "
            f"caches of a server; chunks of {CHUNK_K} KiB. A drive is one die of TLC: it programs 48 blocks in 700 us "
            f"and reads one in 50. One drive, and dm-stripe on four: medians of {SEEDS} seeds, bars from the least to "
            "the most.")
