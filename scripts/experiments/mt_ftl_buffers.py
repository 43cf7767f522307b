# SPDX-License-Identifier: GPL-2.0
"""Figures 2, 5 and 7 of the MT-FTL paper, with its parameters, on a clock with caches.

Figure 2: one buffer of 128 entries and one writer, 16 CPUs, units of 1 and of 8 blocks, 1 to 64 users. Figures 5 and 7:
8 CPUs, 8 users, units of one block, 1,024 entries in all: in one buffer, and 128 in each of eight. The paper shows the
first milliseconds, and for figure 7 those from 4 to 8. One buffer is `lanes=1` of the same code, in pblk's place.
Tracing takes about a microsecond of each block's way, in all lines alike.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures, fio, traces
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, ours, says
from mtlab.exp.sources import MT_FTL
from mtlab.run.options import Options

SERVER, DESKTOP = 16, 8                         # CPUs of the paper's two machines
USERS, QUICK_USERS = (1, 2, 4, 8, 16, 32, 64), (1, 8)
UNITS = (1, 8)
SMALL, LARGE = 128, 1024                        # entries
# lanes, entries in all, write unit, users, CPUs
FIGURE_2 = [(1, SMALL, unit, users, SERVER) for unit in UNITS for users in USERS]
ONE, EIGHT = (1, LARGE, 1, 8, DESKTOP), (8, LARGE, 1, 8, DESKTOP)
END_US, STEP_US = 12000, 200
SEEDS = 3
FROM_US, TO_US, COLUMN_US = 4000, 8000, 100     # figure 7
FULL = 0.95                                     # of a buffer's entries
KEYS = ("lanes", "entries", "write unit", "users", "cpus")
Case = tuple[int, int, int, int, int]


def _name(case: Case) -> str:
    return "-".join(map(str, case))


def _script(cases: list[Case]) -> str:
    lines = ["set -e", "T=/sys/kernel/tracing", "echo 4096 >$T/buffer_size_kb"]
    for case in cases:
        lanes, entries, unit, users, _ = case
        job = fio.command("fio.json", filename="/dev/mapper/ftl", bs="4k", ioengine="psync", rw="randwrite",
                          norandommap=True, numjobs=users, size="1G", time_based=True,
                          runtime=f"{END_US // 1000 + 3}ms")
        lines += ["mtftl format --force /dev/nvme0n1",
                  f"mtftl open /dev/nvme0n1 ftl lanes={lanes} buffer_entries={entries} write_unit={unit}",
                  "echo >$T/trace",
                  "for e in insert free unit_composed; do echo 1 >$T/events/mtftl/mtftl_$e/enable; done", job,
                  "echo 0 >$T/events/mtftl/enable", f"grep mtftl_ $T/trace >{_name(case)}.trace", "mtftl close ftl"]
    return "\n".join(lines)


def runs(quick: bool) -> list[Run]:
    small = [case for case in FIGURE_2 if not quick or (case[2], case[3]) in ((1, 1), (1, 8))]
    parts = {f"figure-2-unit-{unit}": ([case for case in small if case[2] == unit], SERVER) for unit in UNITS}
    parts["figures-5-7"] = [ONE, EIGHT], DESKTOP
    return [Run(name, _script(cases), Options(clock="virtual", cpus=cpus, profile="dram", memory_model="server",
                                              timeout=3600), ("*.trace",), seeds=1 if quick else SEEDS, seconds=30)
            for name, (cases, cpus) in parts.items() if cases]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for name, data in sorted(item for outputs in files.values() for item in outputs.items()):
        case = dict(zip(KEYS, map(int, Path(name).stem.split("-")), strict=True))
        events = traces.parse(data.decode())
        series = [traces.entries_used(events, lane, END_US, STEP_US) for lane in range(case["lanes"])]
        found += [{**case, "lane": lane, "at_us": step * STEP_US, "used": round(used, 3)}
                  for lane, of in enumerate(series) for step, used in enumerate(of)]
        late = [used for of in series for used in of[FROM_US // STEP_US:]]
        each = case["entries"] / case["lanes"]
        found.append({**case, "part": "all", "in_use": round(sum(late) / len(late) / each, 4),
                      "blocks": sum(e.blocks for e in events if e.kind == "composed" and FROM_US <= e.us < TO_US)})
        if case["entries"] == SMALL:
            continue
        columns = (TO_US - FROM_US) // COLUMN_US
        for cpu in range(case["cpus"]):
            rates = [traces.rates(events, kind, cpu, FROM_US, TO_US, columns) for kind in ("inserted", "composed")]
            found += [{**case, "cpu": cpu, "from_us": FROM_US + COLUMN_US * column, "inserted": int(inserted),
                       "composed": int(composed)}
                      for column, (inserted, composed) in enumerate(zip(*rates, strict=True))]
    return found


def _of(found: list[Sample], case: Case, key: str) -> list[Sample]:
    return [s for s in found if tuple(s[k] for k in KEYS) == case and key in s]


def _cases(found: list[Sample]) -> list[Case]:
    return sorted({(s["lanes"], s["entries"], s["write unit"], s["users"], s["cpus"]) for s in found})


def _late(found: list[Sample], case: Case, lane: int = 0) -> list[float]:
    """Shares of a lane's buffer in use, from 4 ms on."""
    each = case[1] / case[0]
    return [s["used"] / each for s in _of(found, case, "used") if s["lane"] == lane and s["at_us"] >= FROM_US]


def _mean(found: list[Sample], case: Case) -> float:
    late = [used for lane in range(case[0]) for used in _late(found, case, lane)]
    return float(sum(late) / len(late))


def _full(found: list[Sample], case: Case, lane: int = 0) -> float:
    """The share of the time from 4 ms on in which a lane's buffer has hardly any room."""
    late = _late(found, case, lane)
    return float(sum(used >= FULL for used in late) / len(late))


def _filled_at(found: list[Sample], case: Case, share: float) -> float:
    """Microseconds until so much of the first buffer is in use; at the end if that never is."""
    of = [s for s in _of(found, case, "used") if s["lane"] == 0]
    ends = [*(s["at_us"] for s in of[1:]), END_US]
    return float(next((end for s, end in zip(of, ends, strict=True) if s["used"] >= share * case[1] / case[0]), END_US))


def _columns(found: list[Sample], case: Case) -> dict[int, list[tuple[int, int]]]:
    """Blocks inserted and composed, by CPU."""
    return {cpu: [(s["inserted"], s["composed"]) for s in _of(found, case, "from_us") if s["cpu"] == cpu]
            for cpu in range(case[4])}


def _inserting(found: list[Sample], case: Case) -> float:
    """The share of a CPU's columns of time in which a block enters a buffer there, on average."""
    columns = [inserted > 0 for of in _columns(found, case).values() for inserted, _ in of]
    return sum(columns) / len(columns)


def checks(found: list[Sample], quick: bool) -> list[Check]:
    full = [_full(found, EIGHT, lane) for lane in range(EIGHT[0])]
    sums = {cpu: tuple(map(sum, zip(*of, strict=True))) for cpu, of in _columns(found, EIGHT).items()}
    balance = [inserted / max(composed, 1) for inserted, composed in sums.values()]
    small = {(unit, users): (1, SMALL, unit, users, SERVER) for unit in UNITS for users in USERS}
    result = [
        at_least("figure 5a, one buffer: share of the time in which it is full", _full(found, ONE), 0.5,
                 says(MT_FTL, "the buffer fills up faster in the pblk and this phenomenon lasts until the 8 user "
                      "threads no longer request the write operations"),
                 f"On average {_mean(found, ONE):.0%} of the entries are in use."),
        at_most("figure 5a, one buffer: full after (us)", _filled_at(found, ONE, FULL), 4000,
                says(MT_FTL, "pblk is full when the experiment is over 0.004 seconds from the start")),
        at_most("figure 5b, eight buffers: share of the time in which one is full, mean of all",
                sum(full) / len(full), 0.05, says(MT_FTL, "each buffer does not fill up"),
                f"On average {_mean(found, EIGHT):.0%} of the entries are in use."),
        at_least("figure 5c, eight buffers: share of the time in which the fullest has room", 1 - max(full), 0.75,
                 says(MT_FTL, "there are usually free space in each buffers"),
                 f"By lane it is full for {', '.join(f'{x:.0%}' for x in full)} of the time."),
        at_most("figure 7a, one buffer: share of CPUs and time in which a block is inserted", _inserting(found, ONE),
                0.5, says(MT_FTL, "the user threads cannot insert an entry continuously in pblk")),
        at_least("figure 7b, eight buffers: share of CPUs and time in which a block is inserted",
                 _inserting(found, EIGHT), 0.5,
                 says(MT_FTL, "the user threads continue to insert more entries even after 0.004 seconds in MT-FTL")),
        at_least("figure 7b: least of inserted over composed, by CPU", min(balance), 0.75,
                 says(MT_FTL, "there is no difference between the producing and consuming speed")),
        at_most("figure 7b: most of inserted over composed, by CPU", max(balance), 1.33,
                says(MT_FTL, "there is no difference between the producing and consuming speed")),
        at_least("figure 7: blocks composed, eight buffers over one", sum(c for _, c in sums.values()) / max(1, sum(
            composed for of in _columns(found, ONE).values() for _, composed in of)), 2,
                 says(MT_FTL, "in twice or more compared to the existing host-level FTL")),
        at_least("figure 2a, units of 1: time until half is in use, 1 user over 8",
                 _filled_at(found, small[1, 1], 0.5) / _filled_at(found, small[1, 8], 0.5), 1.5,
                 says(MT_FTL, "the producing speed is accelerated with the increasing number of the user threads")),
        at_least("figure 2a, units of 1: share in use with 8 users", _mean(found, small[1, 8]), 0.75,
                 ours("one writer does not follow eight users")),
    ]
    if quick:
        return result
    return [
        *result,
        at_most("figure 2b, units of 8: share in use with 1 user", _mean(found, small[8, 1]), 0.5,
                says(MT_FTL, "the entries do accumulate not too much in the buffer"),
                f"With units of 1 it is {_mean(found, small[1, 1]):.0%}, with 8 users it is "
                f"{_mean(found, small[8, 8]):.0%}."),
        at_least("figure 2b, units of 8: in use with 8 users over 1", _mean(found, small[8, 8]) /
                 _mean(found, small[8, 1]), 1.25,
                 says(MT_FTL, "the I/O requests are still accumulated in the buffer as the number of the user threads "
                      "increases even if the consuming speed is accelerated")),
        at_most("figure 2: share in use with 64 users, units of 8 over units of 1", _mean(found, small[8, 64]) /
                _mean(found, small[1, 64]), 1, ours("larger units drain the buffer faster")),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["buffers", "entries in all", "write unit", "users", "CPUs", "in use from 4 ms on", "full",
             "half in use after (us)"]]
    for case in _cases(found):
        full = [_full(found, case, lane) for lane in range(case[0])]
        rows.append([*map(str, case), f"{_mean(found, case):.0%}", f"{sum(full) / len(full):.0%}",
                     f"{_filled_at(found, case, 0.5):.0f}"])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    time = "time after the start (ms)"
    users = sorted({case[3] for case in _cases(found) if case[1] == SMALL})
    units = sorted({case[2] for case in _cases(found) if case[1] == SMALL})
    figure, axes = figures.panels(4 + len(units), height=3.3)
    for panel, unit in zip(axes, units, strict=False):
        lines = []
        for n in users:
            points = _of(found, (1, SMALL, unit, n, SERVER), "used")
            lines.append(figures.Line(f"{n} user{'s'[:n - 1]}", [s["at_us"] / 1000 for s in points],
                                      [s["used"] for s in points], marker=False))
        figures.lines(panel, lines, x=time, y=f"entries in use, of {SMALL}", columns=3,
                      title=f"2{'ab'[unit > 1]}: one buffer, units of {unit}")
    for panel, case, title in ((axes[-4], ONE, "5a: one buffer"), (axes[-3], EIGHT, "5b, c: eight buffers")):
        each = case[1] // case[0]
        lines = []
        for lane in range(min(case[0], 2)):
            points = [s for s in _of(found, case, "used") if s["lane"] == lane]
            lines.append(figures.Line("the buffer" if case == ONE else f"buffer {lane}",
                                      [s["at_us"] / 1000 for s in points], [s["used"] for s in points], marker=False))
        if case == EIGHT:
            at = [s["at_us"] for s in points]
            of = [[s["used"] for s in _of(found, case, "used") if s["at_us"] == when] for when in at]
            lines.append(figures.Line("mean of all, least to most", [us / 1000 for us in at],
                                      [sum(x) / len(x) for x in of], marker=False,
                                      spread=[(min(x), max(x)) for x in of]))
        figures.lines(panel, lines, x=time, y=f"entries in use, of {each}", title=title, columns=3)
    for panel, case, title in ((axes[-2], ONE, "7a: one buffer"), (axes[-1], EIGHT, "7b: eight buffers")):
        rows = {f"CPU {cpu}": tuple([x[place] for x in of] for place in (0, 1))
                for cpu, of in _columns(found, case).items()}
        figures.timeline(panel, rows, (FROM_US / 1000, TO_US / 1000), ("inserted", "composed"), x=time, title=title)
    figures.save(figure, path)


ABOUT = About(
    title="The MT-FTL paper's figures 2, 5 and 7",
    question="How full are the buffers over time, and which CPU fills and which empties them, with the paper's "
             "parameters?",
    by=(*KEYS, "part", "lane", "at_us", "cpu", "from_us"),
    caption=f"4 KiB random writes, device without NAND delay, caches of a server modelled; mean of each {STEP_US} us. "
            f"2: {SERVER} CPUs. 5 and 7: {DESKTOP} CPUs and users, units of one block, {LARGE} entries in all. "
            f"7: blocks that enter a buffer above each CPU's line, blocks that a writer takes out below it. Medians of "
            f"{SEEDS} seeds.")
