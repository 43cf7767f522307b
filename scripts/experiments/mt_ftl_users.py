# SPDX-License-Identifier: GPL-2.0
"""Figure 6 of the MT-FTL paper, with its parameters, beside pblk itself, on a clock with caches.

4 KiB random writes by 1 to 32 users on 8 CPUs, units of one block, 1,024 entries in all, a device without NAND delay.
One lane is the single-threaded architecture in the same code. Beyond the figure: all units at 1, 2 and 8 users, 32
users on 32 CPUs, and one lane against pblk on the plain clock.

pblk runs under Linux 5.10, ours under 6.12, in the same small configuration. The same jobs run on a device that drops
all writes under both, because the two kernels differ nevertheless.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mtlab.build import sourcekernel
from mtlab.exp import figures, fio, pblk
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, ours, says, shown, spread
from mtlab.exp.sources import MT_FTL
from mtlab.run.options import Options

CPUS, MANY_CPUS, ENTRIES = 8, 32, 1024
USERS, FEW_USERS, QUICK_USERS = (1, 2, 4, 8, 16, 32), (1, 2, 8), (1, 8)
MOST = USERS[-1]
UNITS, WIDE_UNITS, PLAIN_UNIT = (1, 2, 4, 8, 16, 32), (1, 8), 8
SEEDS = 3
RAMP_MS, WINDOW_MS = 10, 40
CACHES, PLAIN = "caches", "plain"           # clocks
LABELS = {"multi": "dm-mtftl, a lane a CPU", "single": "dm-mtftl, 1 lane", "pblk": "pblk (Linux 5.10)"}
PULLED = dict.fromkeys(("multi", "single"), ("*.json", "*.waits"))
FLOORS = {"floor-pblk": "Linux 5.10", "floor": "Linux 6.12"}        # no FTL


@dataclass(frozen=True)
class Case:
    """One guest: a line, its clock, CPUs, blocks a unit, and one job after the other by so many users."""

    line: str
    clock: str
    cpus: int
    unit: int
    users: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.clock} {self.cpus} {self.unit} {self.line}"


def _cases(quick: bool) -> list[Case]:
    if quick:
        return [Case(line, CACHES, CPUS, 1, QUICK_USERS) for line in (*LABELS, *FLOORS)]
    return [*(Case(line, CACHES, CPUS, 1, USERS) for line in (*LABELS, *FLOORS)),
            *(Case(line, CACHES, CPUS, unit, FEW_USERS) for line in ("multi", "pblk") for unit in UNITS[1:]),
            *(Case(line, CACHES, MANY_CPUS, unit, (MOST,)) for line in ("multi", "pblk") for unit in WIDE_UNITS),
            *(Case(line, PLAIN, CPUS, PLAIN_UNIT, USERS[:4]) for line in ("single", "pblk"))]


def _job(filename: str) -> str:
    return fio.command("$users.json", filename=filename, rw="randwrite", bs="4k", ioengine="psync", norandommap=True,
                       numjobs="$users", time_based=True, ramp_time=f"{RAMP_MS}ms", runtime=f"{WINDOW_MS}ms", size="1G")


def _script(case: Case) -> str:
    if case.line == "pblk":
        body = f"{pblk.NEW}\n{_job(pblk.DISK)}\nguest-pblk remove ftl"
    elif case.line in LABELS:
        lanes = 1 if case.line == "single" else case.cpus
        body = ("mtftl format --force /dev/nvme0n1\n"
                f"mtftl open /dev/nvme0n1 ftl lanes={lanes} buffer_entries={ENTRIES} write_unit={case.unit}\n"
                f"{_job('/dev/mapper/ftl')}\ndmsetup message ftl 0 latency >$users.waits\nmtftl close ftl")
    else:
        body = ("[ -b /dev/mapper/drop ] || echo '0 2097152 flakey /dev/nullb0 0 0 1000000 1 drop_writes' | "
                f"dmsetup create drop\n{_job('/dev/mapper/drop')}")
    return f"set -e\nfor users in {' '.join(map(str, case.users))}; do\n{body}\ndone"


def _options(case: Case) -> Options:
    theirs, floor = "pblk" in case.line, case.line in FLOORS
    append = "" if floor else pblk.append(ENTRIES) if theirs else sourcekernel.BOOT.strip()
    return Options(clock="virtual", cpus=case.cpus, memory_model="server" if case.clock == CACHES else "",
                   kernel=pblk.KERNEL if theirs else sourcekernel.SMALL, profile="none" if floor else "dram",
                   module=not theirs and not floor, timeout=3600, append=append,
                   device=dict(pblk.drive("dram", case.unit)) if theirs and not floor else {})


def runs(quick: bool) -> list[Run]:
    return [Run(case.name, _script(case), _options(case), seconds=4 * len(case.users) * case.cpus / CPUS,
                pull=PULLED.get(case.line, ("*.json",)), seeds=1 if quick else SEEDS) for case in _cases(quick)]


def _waiting(lanes: bytes) -> float:
    """Microseconds for which writes waited for room, of the lanes' lines: counts for 0, 1, 2 to 3, 4 to 7, ... of them.

    Writes in a step waited for one and a half times its least on average, if they spread evenly.
    """
    return sum(int(count) * 0.75 * (1 << step) for line in lanes.decode().splitlines()
               for step, count in enumerate(line.split()[1:]) if step)


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for name, outputs in files.items():
        clock, cpus, unit, line = name.split()
        for output, data in outputs.items():
            if not output.endswith(".json"):
                continue
            users = int(Path(output).stem)
            found.append({"line": line, "clock": clock, "cpus": int(cpus), "write unit": int(unit), "users": users,
                          **fio.sample(data, "write", fio.seconds(data))})
            if (waits := outputs.get(f"{users}.waits")) is not None:
                found[-1]["waiting"] = round(_waiting(waits) / (users * (RAMP_MS + WINDOW_MS) * 1000), 4)
    return sorted(found, key=lambda s: (s["line"], s["clock"], s["cpus"], s["write unit"], s["users"]))


def _of(found: list[Sample], line: str, clock: str = CACHES, cpus: int = CPUS, unit: int = 1) -> dict[int, float]:
    """Writes a second, by users."""
    return {s["users"]: s["iops"] for s in found
            if (s["line"], s["clock"], s["cpus"], s["write unit"]) == (line, clock, cpus, unit)}


def _share(found: list[Sample], line: str) -> float:
    """The share of their time for which as many users as CPUs wait for room."""
    return next(float(s["waiting"]) for s in found if (s["line"], s["clock"], s["cpus"], s["write unit"], s["users"])
                == (line, CACHES, CPUS, 1, CPUS))


def _over_pblk(found: list[Sample], kernels: dict[int, float], quick: bool) -> list[Check]:
    """Ours over pblk with caches: the paper's sentence from as many users as CPUs on, and ours for a few users."""
    result = []
    for unit in UNITS[:1] if quick else UNITS:
        multi, theirs = (_of(found, line, unit=unit) for line in ("multi", "pblk"))
        for n, iops in multi.items():
            name = f"units of {unit}: ours over pblk at {n} user{'s'[:n - 1]}"
            cause = (f"{iops / 1000:.0f} against {theirs[n] / 1000:.0f} thousand a second. Without any FTL Linux 5.10 "
                     f"does {kernels[n]:.2f} times what 6.12 does.") if n in kernels else ""
            if n >= CPUS:
                result.append(at_least(name, iops / theirs[n], 2, says(
                    MT_FTL, "in twice or more compared to the existing host-level FTL"), cause))
            elif n <= 2:
                result.append(at_least(name, iops / theirs[n], 1, ours(
                    "a few users must not pay for lanes they do not use; in the paper they do"), cause))
    for unit in () if quick else WIDE_UNITS:
        wide, wide_pblk = (_of(found, line, cpus=MANY_CPUS, unit=unit)[MOST] for line in ("multi", "pblk"))
        result.append(at_least(f"units of {unit}: ours over pblk, {MOST} users on {MANY_CPUS} CPUs",
                               wide / wide_pblk, 4, ours("in pblk all CPUs write to the lines of one ring"),
                               f"{wide / 1000:.0f} against {wide_pblk / 1000:.0f} thousand a second."))
    return result


def checks(found: list[Sample], quick: bool) -> list[Check]:
    multi, single, theirs, old, new = (_of(found, line) for line in (*LABELS, *FLOORS))
    result = _over_pblk(found, {n: old[n] / new[n] for n in new}, quick)
    if quick:
        return result
    best = {name: max(of, key=of.__getitem__) for name, of in (("pblk", theirs), ("1 lane", single))}
    plain, plain_pblk = (_of(found, line, PLAIN, unit=PLAIN_UNIT) for line in ("single", "pblk"))
    return [
        *result,
        *(at_most(f"{name}: {MOST} users over its best", of[MOST] / of[best[name]], 0.75,
                  says(MT_FTL, "In pblk, the performance drops sharply as the number of the user threads increases"),
                  f"{of[best[name]] / 1000:.0f} thousand a second at {best[name]} users, {of[MOST] / 1000:.0f} "
                  f"thousand at {MOST}.") for name, of in (("pblk", theirs), ("1 lane", single))),
        at_least(f"ours: {MOST} users over 1", multi[MOST] / multi[1], 2,
                 says(MT_FTL, "MT-FTL significantly improves the performance with the increasing number of the user "
                      "threads")),
        at_most(f"ours: share of {CPUS} users' time in which they wait for room", _share(found, "multi"), 0.25,
                says(MT_FTL, "the user threads do not have to waste time waiting for the free space of the buffer"),
                f"With one lane it is {_share(found, 'single'):.0%}."),
        at_least("ours over one lane at 32 users", multi[MOST] / single[MOST], 4,
                 ours("independent lanes share nothing on the write path")),
        at_least("one lane over pblk at 8 users", single[CPUS] / theirs[CPUS], 1,
                 ours("one lane is what pblk is: one buffer and one writer"),
                 f"{single[CPUS] / 1000:.0f} against {theirs[CPUS] / 1000:.0f} thousand a second."),
        *(at_least(f"plain clock, units of {PLAIN_UNIT}: one lane over pblk at {n} user{'s'[:n - 1]}",
                   iops / plain_pblk[n], 1, ours("one lane is what pblk is: one buffer and one writer"),
                   f"{iops / 1000:.0f} against {plain_pblk[n] / 1000:.0f} thousand a second.")
          for n, iops in plain.items()),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["clock", "CPUs", "blocks a unit", "users", *(f"{label}, kIOPS" for label in LABELS.values()), "ours/pblk",
             *(f"{LABELS[line]}: users wait" for line in ("multi", "single")),
             *(f"no FTL, {label}, kIOPS" for label in FLOORS.values())]]
    at = {(s["clock"], s["cpus"], s["write unit"], s["users"], s["line"]): s for s in found}
    for point in sorted({key[:4] for key in at if key[4] not in FLOORS}):
        of = [at.get((*point, line)) for line in (*LABELS, *FLOORS)]
        ratio = f"{of[0]['iops'] / of[2]['iops']:.2f}" if of[0] and of[2] else ""
        cells = [shown(s, "iops", scale=1000) if s else "" for s in of]
        waits = [f"{s['waiting']:.0%}" if s else "" for s in of[:2]]
        rows.append([*map(str, point), *cells[:3], ratio, *waits, *cells[3:]])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, (ftl, units, floor) = figures.panels(3)
    first = [s for s in found if (s["clock"], s["cpus"], s["write unit"]) == (CACHES, CPUS, 1)]
    eight = [s for s in found if (s["clock"], s["cpus"], s["users"]) == (CACHES, CPUS, CPUS)]
    for panel, samples_of, by, labels, title in (
            (ftl, first, "users", LABELS, "6: by users, units of one block"),
            (units, eight, "write unit", {name: LABELS[name] for name in ("multi", "pblk")}, f"{CPUS} users, by unit"),
            (floor, first, "users", {"floor": "Linux 6.12", "floor-pblk": "Linux 5.10"}, "no FTL, by kernel")):
        lines = []
        for line, label in labels.items():
            points = [s for s in samples_of if s["line"] == line]
            lines.append(figures.Line(label, [s[by] for s in points], [s["iops"] / 1000 for s in points],
                                      spread=[(x / 1000, y / 1000) for x, y in (spread(s, "iops") for s in points)]))
        figures.lines(panel, lines, x="blocks a write unit" if by != "users" else "users (fio jobs, queue depth 1)",
                      y="4 KiB random writes (kIOPS)", title=title, log2_x=True, ticks=lines[0].x)
    figures.save(figure, path)


ABOUT = About(
    title="The MT-FTL paper's figure 6",
    question="How many random writes do many lanes take as users grow, and how many pblk, with the paper's parameters?",
    by=("line", "clock", "cpus", "write unit", "users"),
    caption=f"4 KiB random writes, device without NAND delay, {ENTRIES} entries in all; {CPUS} CPUs and the caches of "
            "a server modelled where the table says nothing else. pblk: Open-Channel drive, Linux 5.10; dm-mtftl: "
            f"zoned drive, Linux 6.12, in the same small configuration. The median of {SEEDS} seeds, bars from the "
            "least to the most.")
