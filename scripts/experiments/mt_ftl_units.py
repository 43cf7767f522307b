# SPDX-License-Identifier: GPL-2.0
"""Figure 3 of the MT-FTL paper, with its parameters, on a clock with caches: bandwidth by write unit and users.

One buffer of 128 entries and one writer (`lanes=1`), 16 CPUs, a device without NAND delay, 1 to 64 users. The paper's
figure has no numbers, and does not name its units.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, ours, says, shown
from mtlab.exp.sources import KNOWN, MT_FTL
from mtlab.run.options import Options

CPUS, ENTRIES = 16, 128
UNITS, QUICK_UNITS = (1, 2, 4, 8, 16, 32), (1, 32)
USERS, QUICK_USERS = (1, 2, 4, 8, 16, 32, 64), (1, 8)
RAMP_MS, WINDOW_MS = 5, 20
SEEDS = 3
GROWS = 1.5             # times, from the least unit to the largest
MIB = 1 << 20


def _script(unit: int, users: tuple[int, ...]) -> str:
    job = fio.command("$users.json", filename="/dev/mapper/ftl", bs="4k", ioengine="psync", rw="randwrite",
                      norandommap=True, numjobs="$users", size="1G", time_based=True, ramp_time=f"{RAMP_MS}ms",
                      runtime=f"{WINDOW_MS}ms")
    return (f"set -e\nfor users in {' '.join(map(str, users))}; do\nmtftl format --force /dev/nvme0n1\n"
            f"mtftl open /dev/nvme0n1 ftl lanes=1 buffer_entries={ENTRIES} write_unit={unit}\n{job}\n"
            "mtftl close ftl\ndone")


def runs(quick: bool) -> list[Run]:
    units, users = (QUICK_UNITS, QUICK_USERS) if quick else (UNITS, USERS)
    return [Run(str(unit), _script(unit, users),
                Options(clock="virtual", cpus=CPUS, profile="dram", memory_model="server", timeout=3600),
                seeds=1 if quick else SEEDS, seconds=30)
            for unit in units]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found = [{"write unit": int(unit), "users": int(Path(output).stem),
              **fio.sample(data, "write", fio.seconds(data))}
             for unit, outputs in files.items() for output, data in outputs.items()]
    return sorted(found, key=lambda s: (s["write unit"], s["users"]))


def _surface(found: list[Sample]) -> tuple[list[int], list[int], dict[tuple[int, int], float]]:
    units, users = (sorted({s[key] for s in found}) for key in ("write unit", "users"))
    return units, users, {(s["write unit"], s["users"]): s["bytes_per_s"] / MIB for s in found}


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    units, users, at = _surface(found)
    steps = [at[b, n] / at[a, n] for a, b in zip(units, units[1:], strict=False) for n in users]
    growth = {n: at[units[-1], n] / at[units[0], n] for n in users}
    result = [
        at_least("steps to the next size of unit that gain bandwidth, share of all", sum(x > 1 for x in steps) /
                 len(steps), 0.5, says(MT_FTL, "In the most cases, WU is proportional to the I/O bandwidth")),
        at_least(f"{units[-1]} blocks a unit over {units[0]}, least over the numbers of users", min(growth.values()),
                 GROWS, says(MT_FTL, "regardless of the number of the use threads"),
                 "By users: " + ", ".join(f"{n}: {times:.2f}" for n, times in growth.items()) + "."),
    ]
    if 2 in users:
        result.append(at_least(
            f"units of {units[-1]}: two users over one", at[units[-1], 2] / at[units[-1], 1], 1.8,
            ours("a lone user is the limit itself, not its writer: so larger units cannot make it faster"), late=KNOWN))
    for unit in units:
        of = {n: at[unit, n] for n in users}
        best = max(of, key=of.__getitem__)
        result.append(at_most(
            f"units of {unit}: {users[-1]} users over the best number of them", at[unit, users[-1]] / at[unit, best],
            0.9, says(MT_FTL, "the I/O bandwidth significantly decreases with the more users even if WU increases"),
            f"{at[unit, best]:.0f} MiB/s with {best} users, {at[unit, users[-1]]:.0f} with {users[-1]}."))
    return result


def table(found: list[Sample]) -> list[list[str]]:
    units, users, _ = _surface(found)
    at = {(s["write unit"], s["users"]): shown(s, "bytes_per_s", ".0f", MIB) for s in found}
    return [["MiB/s; blocks a unit", *(f"{u} user{'s'[:u - 1]}" for u in users)],
            *([str(unit), *(at[unit, u] for u in users)] for unit in units)]


def draw(found: list[Sample], path: Path) -> None:
    units, users, at = _surface(found)
    figure, (surface,) = figures.panels(1, height=3.2)
    figures.heat(surface, users, units, [[at[unit, u] for u in users] for unit in units],
                 x="users (fio jobs, queue depth 1)", y="blocks a write unit", value="MiB/s", title="3: one buffer")
    figures.save(figure, path)


ABOUT = About(
    title="The MT-FTL paper's figure 3",
    question="How does the bandwidth of one buffer and one writer depend on the write unit and the users, with the "
             "paper's parameters?",
    by=("write unit", "users"),
    caption=f"4 KiB random writes on {CPUS} CPUs, one lane of {ENTRIES} entries, device without NAND delay, caches of "
            f"a server modelled. The median of {SEEDS} seeds.")
