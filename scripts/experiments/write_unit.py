# SPDX-License-Identifier: GPL-2.0
"""Bandwidth of the single-threaded FTL as a surface: how many blocks a write unit holds, how many users write.

One lane, a buffer of 128 entries, on the device without NAND delay: what is seen is the writer thread alone.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, ours, says, shown
from mtlab.exp.sources import KNOWN, MT_FTL
from mtlab.run.options import Options

CPUS = 8
ENTRIES = 128
UNITS = (1, 2, 4, 8, 16, 32)
USERS = (1, 2, 4, 8, 16, 32, 64)
QUICK_UNITS, QUICK_USERS = (1, 32), (1, 8)
REPEATED = USERS[-1]    # users that take turns: little things decide which is next
SEEDS = 5
WINDOW_MS = 20
GROWS = 1.5             # times, from the least unit to the largest
MIB = 1 << 20


def _script(unit: int, users: tuple[int, ...]) -> str:
    job = fio.command("$users.json", filename="/dev/mapper/ftl", bs="4k", ioengine="psync", rw="randwrite",
                      norandommap=True, numjobs="$users", size="1G", time_based=True, ramp_time="10ms",
                      runtime=f"{WINDOW_MS}ms")
    return (f"set -e\nfor users in {' '.join(map(str, users))}; do\nmtftl format --force /dev/nvme0n1\n"
            f"mtftl open /dev/nvme0n1 ftl lanes=1 buffer_entries={ENTRIES} write_unit={unit}\n{job}\n"
            "mtftl close ftl\ndone")


def runs(quick: bool) -> list[Run]:
    units, users = (QUICK_UNITS, QUICK_USERS) if quick else (UNITS, USERS)
    others = tuple(u for u in users if u != REPEATED)
    options = Options(clock="virtual", cpus=CPUS, profile="dram", timeout=1800)
    return [run for unit in units for run in (
        Run(str(unit), _script(unit, others), options, seconds=20),
        *([Run(f"{unit}-crowd", _script(unit, (REPEATED,)), options, seconds=6, seeds=SEEDS)]
          if REPEATED in users else []))]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found = [{"write unit": int(name.split("-")[0]), "users": int(Path(output).stem),
              **fio.sample(data, "write", WINDOW_MS / 1000)}
             for name, outputs in files.items() for output, data in outputs.items()]
    return sorted(found, key=lambda s: (s["write unit"], s["users"]))


def _surface(found: list[Sample]) -> tuple[list[int], list[int], dict[tuple[int, int], float]]:
    units, users = (sorted({s[key] for s in found}) for key in ("write unit", "users"))
    return units, users, {(s["write unit"], s["users"]): s["bytes_per_s"] / MIB for s in found}


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    units, users, at = _surface(found)
    least, most, crowd = units[0], units[-1], users[-1]
    return [
        at_least(f"{most} blocks a unit over {least}, {crowd} users", at[most, crowd] / at[least, crowd], 2,
                 ours("the writer is the limit, and most of its work is once a unit: header, checksum, bio, "
                      "completion")),
        at_least("least growth from one unit size to the next, at the most users",
                 min(at[b, crowd] / at[a, crowd] for a, b in zip(units, units[1:], strict=False)), 0.98,
                 ours("a larger unit never costs more a block")),
        at_least(f"{most} blocks a unit over {least}, 1 user", at[most, 1] / at[least, 1], 0.98,
                 ours("the writer takes what is there: a lone user waits for no unit to fill")),
        *_as_the_paper_says(units, users, at),
    ]


def _as_the_paper_says(units: list[int], users: list[int], at: dict[tuple[int, int], float]) -> list[Check]:
    """Its figure 3 has colours, no numbers: directions."""
    steps = [at[b, n] / at[a, n] for a, b in zip(units, units[1:], strict=False) for n in users]
    growth = {n: at[units[-1], n] / at[units[0], n] for n in users}
    flat = [str(n) for n, times in growth.items() if times < GROWS]
    worst = max(units, key=lambda unit: at[unit, users[-1]] / max(at[unit, n] for n in users))
    best = max(users, key=lambda n: at[worst, n])
    return [
        at_least("steps to the next size of unit that gain bandwidth, share of all", sum(x > 1 for x in steps) /
                 len(steps), 0.5, says(MT_FTL, "In the most cases, WU is proportional to the I/O bandwidth"),
                 late=KNOWN),
        at_least(f"{units[-1]} blocks a unit over {units[0]}, least over the numbers of users", min(growth.values()),
                 GROWS, says(MT_FTL, "regardless of the number of the use threads"),
                 f"Not with {', '.join(flat)} user{'s'[:flat != ['1']]}; {max(growth.values()):.1f} times at most.",
                 KNOWN),
        at_most(f"{users[-1]} users over the best number of them, most over the sizes of unit",
                at[worst, users[-1]] / at[worst, best], 0.9,
                says(MT_FTL, "the I/O bandwidth significantly decreases with the more users even if WU increases"),
                f"Units of {worst} blocks: {at[worst, best]:.0f} MiB/s with {best} users, {at[worst, users[-1]]:.0f} "
                f"with {users[-1]}.", KNOWN),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    units, users, _ = _surface(found)
    at = {(s["write unit"], s["users"]): shown(s, "bytes_per_s", ".0f", MIB) for s in found}
    return [["MiB/s; blocks a unit", *(f"{u} user{'s'[:u - 1]}" for u in users)],
            *([str(unit), *(at[unit, u] for u in users)] for unit in units)]


def draw(found: list[Sample], path: Path) -> None:
    units, users, at = _surface(found)
    figure, (surface,) = figures.panels(1, height=3.2)
    figures.heat(surface, users, units, [[at[unit, u] for u in users] for unit in units],
                 x="users (fio jobs, queue depth 1)", y="blocks a write unit", value="MiB/s",
                 title="4 KiB random writes")
    figures.save(figure, path)


ABOUT = About(
    title="Write units and users of the single-threaded FTL",
    question="How does the bandwidth of one buffer and one writer depend on the size of a write unit and on the users?",
    by=("write unit", "users"),
    caption=f"4 KiB random writes, {CPUS} modelled CPUs, one lane of {ENTRIES} entries, device without NAND delay.")
