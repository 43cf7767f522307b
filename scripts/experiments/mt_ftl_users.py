# SPDX-License-Identifier: GPL-2.0
"""Figure 6 of the MT-FTL paper, with its parameters, beside pblk itself, on a clock with caches.

4 KiB random writes by 1 to 32 users on 8 CPUs, units of one block, 1,024 entries in all, a device without NAND delay.
pblk runs under Linux 5.10 in a small configuration, ours under Debian's 6.12: so the same jobs run on a device that
drops all writes, under both. One lane is the single-threaded architecture in the same code.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures, fio, pblk
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, ours, says, shown, spread
from mtlab.exp.sources import MT_FTL
from mtlab.run.options import Options

CPUS, ENTRIES = 8, 1024
USERS, QUICK_USERS = (1, 2, 4, 8, 16, 32), (1, 8)
MOST = USERS[-1]
REPEATED, SEEDS = 8, 3
RAMP_MS, WINDOW_MS = 10, 40
LANES = {"single": 1, "multi": CPUS}
LABELS = {"multi": f"dm-mtftl, {CPUS} lanes", "single": "dm-mtftl, 1 lane", "pblk": "pblk (Linux 5.10)"}
FLOORS = {"floor-pblk": pblk.KERNEL, "floor": "6.12"}       # no FTL


def _job(filename: str, output: str = "$users.json") -> str:
    return fio.command(output, filename=filename, rw="randwrite", bs="4k", ioengine="psync", norandommap=True,
                       numjobs="$users", time_based=True, ramp_time=f"{RAMP_MS}ms", runtime=f"{WINDOW_MS}ms", size="1G")


def _script(line: str, users: tuple[int, ...]) -> str:
    if line == "pblk":
        body = f"{pblk.NEW}\n{_job(pblk.DISK)}\nguest-pblk remove ftl"
    elif line in LANES:
        body = ("mtftl format --force /dev/nvme0n1\n"
                f"mtftl open /dev/nvme0n1 ftl lanes={LANES[line]} buffer_entries={ENTRIES} write_unit=1\n"
                f"{_job('/dev/mapper/ftl')}\nmtftl close ftl")
    else:
        body = ("[ -b /dev/nullb0 ] || modprobe null_blk\n"
                "[ -b /dev/mapper/drop ] || echo '0 2097152 flakey /dev/nullb0 0 0 1000000 1 drop_writes' | "
                f"dmsetup create drop\n{_job('/dev/mapper/drop')}")
    return f"set -e\nfor users in {' '.join(map(str, users))}; do\n{body}\ndone"


def _options(line: str) -> Options:
    kernel = pblk.KERNEL if line == "pblk" else FLOORS.get(line, "6.12")
    return Options(clock="virtual", cpus=CPUS, memory_model="server", timeout=3600, kernel=kernel,
                   profile="none" if line in FLOORS else "dram", module=line in LANES,
                   device=dict(pblk.drive("dram", 1)) if line == "pblk" else {},
                   append=pblk.append(ENTRIES) if line == "pblk" else "")


def runs(quick: bool) -> list[Run]:
    users = QUICK_USERS if quick else USERS
    others = tuple(n for n in users if n != REPEATED)
    return [Run(f"{line}{part}", _script(line, of), _options(line), seconds=60,
                seeds=SEEDS if of == (REPEATED,) and not quick else 1)
            for line in (*LABELS, *FLOORS) for part, of in (("", others), (f"-{REPEATED}", (REPEATED,)))]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for name, outputs in files.items():
        line = name.removesuffix(f"-{REPEATED}")
        found += [{"line": line, "users": int(Path(output).stem), **fio.sample(data, "write", fio.seconds(data))}
                  for output, data in outputs.items()]
    return sorted(found, key=lambda s: (s["line"], s["users"]))


def _iops(found: list[Sample], line: str) -> dict[int, float]:
    return {s["users"]: s["iops"] for s in found if s["line"] == line}


def checks(found: list[Sample], quick: bool) -> list[Check]:
    multi, single, theirs = (_iops(found, line) for line in ("multi", "single", "pblk"))
    old, new = (_iops(found, line) for line in FLOORS)

    def by_kernel(users: int) -> str:
        ratio = multi[users] / theirs[users]
        return (f"Without any FTL Linux 5.10 does {old[users] / new[users]:.2f} times what 6.12 does. Divided by that, "
                f"ours over pblk is {ratio * old[users] / new[users]:.2f}.")

    result = [at_least(f"ours over pblk at {n} users", multi[n] / theirs[n], 2,
                       says(MT_FTL, "in twice or more compared to the existing host-level FTL"), by_kernel(n))
              for n in multi if n >= CPUS]
    result += [at_least(f"ours over pblk at {n} user{'s'[:n - 1]}", multi[n] / theirs[n], 1,
                        ours("a few users must not pay for lanes they do not use; in the paper they do"), by_kernel(n))
               for n in multi if n <= 2]
    if quick:
        return result
    best = {name: max(of, key=of.__getitem__) for name, of in (("pblk", theirs), ("1 lane", single))}
    return [
        *result,
        *(at_most(f"{name}: {MOST} users over its best", of[MOST] / of[best[name]], 0.75,
                  says(MT_FTL, "In pblk, the performance drops sharply as the number of the user threads increases"),
                  f"{of[best[name]] / 1000:.0f} thousand a second at {best[name]} users, {of[MOST] / 1000:.0f} "
                  f"thousand at {MOST}.") for name, of in (("pblk", theirs), ("1 lane", single))),
        at_least(f"ours: {MOST} users over 1", multi[MOST] / multi[1], 2,
                 says(MT_FTL, "MT-FTL significantly improves the performance with the increasing number of the user "
                      "threads")),
        at_least("ours over one lane at 32 users", multi[MOST] / single[MOST], 4,
                 ours("independent lanes share nothing on the write path")),
        at_least("one lane over pblk at 8 users", single[CPUS] / theirs[CPUS], 1,
                 ours("one lane is what pblk is: one buffer and one writer"),
                 f"{single[CPUS] / 1000:.0f} against {theirs[CPUS] / 1000:.0f} thousand a second."),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["users", *(f"{label}, kIOPS" for label in LABELS.values()), "ours/pblk", "ours/1 lane",
             "no FTL, 5.10 / 6.12, kIOPS"]]
    at = {(s["line"], s["users"]): s for s in found}
    for n in sorted(_iops(found, "multi")):
        of = [at[line, n] for line in LABELS]
        rows.append([str(n), *(shown(s, "iops", scale=1000) for s in of), f"{of[0]['iops'] / of[2]['iops']:.2f}",
                     f"{of[0]['iops'] / of[1]['iops']:.2f}",
                     " / ".join(f"{at[line, n]['iops'] / 1000:.0f}" for line in FLOORS)])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, (ftl, floor) = figures.panels(2)
    for panel, labels, title in ((ftl, LABELS, "6: by users"),
                                 (floor, {"floor": "Linux 6.12", "floor-pblk": "Linux 5.10"}, "no FTL, by kernel")):
        lines = []
        for line, label in labels.items():
            points = [s for s in found if s["line"] == line]
            lines.append(figures.Line(label, [s["users"] for s in points], [s["iops"] / 1000 for s in points],
                                      spread=[(x / 1000, y / 1000) for x, y in (spread(s, "iops") for s in points)]))
        figures.lines(panel, lines, x="users (fio jobs, queue depth 1)", y="4 KiB random writes (kIOPS)", title=title,
                      log2_x=True, ticks=lines[0].x)
    figures.save(figure, path)


ABOUT = About(
    title="The MT-FTL paper's figure 6",
    question="How many random writes do many lanes take as users grow, and how many pblk, with the paper's parameters?",
    by=("line", "users"),
    caption=f"4 KiB random writes on {CPUS} CPUs, device without NAND delay, {ENTRIES} entries in all, units of one "
            "block, caches of a server modelled. pblk: Open-Channel drive, Linux 5.10 in a small configuration; "
            f"dm-mtftl: zoned drive, Debian's 6.12. {REPEATED} users: the median of {SEEDS} seeds, bars from the least "
            "to the most.")
