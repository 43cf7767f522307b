# SPDX-License-Identifier: GPL-2.0
"""How full the write buffers are over time, and which CPU produces and which consumes; from the target's tracepoints.

The first milliseconds after the users start: one lane of 128 entries with write units of 1 and 8 blocks, and eight
lanes of 128. Tracing is not free: it adds about a microsecond to each block's way, for all lines alike.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures, fio, traces
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, ours, says
from mtlab.exp.sources import KNOWN, MT_FTL
from mtlab.run.options import Options

CPUS = 8
ENTRIES = 128
END_US, STEP_US = 12000, 100
FULL = 0.95                                     # of a buffer's entries
FROM_US, TO_US = 4000, 8000                     # which CPU does what: after the start, before anything fills up
SINGLE = [(1, unit, users) for unit in (1, 8) for users in (1, 2, 4, 8)]
MULTI = (CPUS, 1, 8)
QUICK = [(1, 1, 8), MULTI]


def _script(cases: list[tuple[int, int, int]]) -> str:
    lines = ["set -e", "T=/sys/kernel/tracing", "echo 4096 >$T/buffer_size_kb"]
    for lanes, unit, users in cases:
        job = fio.command("fio.json", filename="/dev/mapper/ftl", bs="4k", ioengine="psync", rw="randwrite",
                          norandommap=True, numjobs=users, size="1G", time_based=True,
                          runtime=f"{END_US // 1000 + 3}ms")
        lines += ["mtftl format --force /dev/nvme0n1",
                  f"mtftl open /dev/nvme0n1 ftl lanes={lanes} buffer_entries={lanes * ENTRIES} write_unit={unit}",
                  "echo >$T/trace",
                  "for e in insert free unit_composed; do echo 1 >$T/events/mtftl/mtftl_$e/enable; done", job,
                  "echo 0 >$T/events/mtftl/enable",
                  f"grep mtftl_ $T/trace >{lanes}-{unit}-{users}.trace", "mtftl close ftl"]
    return "\n".join(lines)


def runs(quick: bool) -> list[Run]:
    return [Run("all", _script(QUICK if quick else [*SINGLE, MULTI]),
                Options(clock="virtual", cpus=CPUS, profile="dram", timeout=1800), ("*.trace",))]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for name, data in sorted(files["all"].items()):
        lanes, unit, users = map(int, Path(name).stem.split("-"))
        case = {"lanes": lanes, "write unit": unit, "users": users}
        events = traces.parse(data.decode())
        for lane in range(lanes):
            found += [{**case, "lane": lane, "at_us": step * STEP_US, "entries": round(entries, 3)}
                      for step, entries in enumerate(traces.entries_used(events, lane, END_US, STEP_US))]
        window = [e for e in events if FROM_US <= e.us < TO_US]
        for cpu in range(CPUS):
            mine = [e for e in window if e.cpu == cpu]
            found.append({**case, "cpu": cpu, "produced": sum(e.blocks for e in mine if e.kind == "inserted"),
                          "consumed": sum(e.blocks for e in mine if e.kind == "composed")})
    return found


def _of(found: list[Sample], case: tuple[int, int, int], key: str) -> list[Sample]:
    return [s for s in found if (s["lanes"], s["write unit"], s["users"]) == case and key in s]


def _mean(found: list[Sample], case: tuple[int, int, int]) -> float:
    """Entries used after the start, as a share of all."""
    late = [s["entries"] for s in _of(found, case, "at_us") if s["at_us"] >= FROM_US]
    return float(sum(late) / len(late) / ENTRIES)


def _full(found: list[Sample], lane: int) -> float:
    """The share of the time after the start in which a lane of eight has hardly any room."""
    late = [s["entries"] for s in _of(found, MULTI, "at_us") if s["at_us"] >= FROM_US and s["lane"] == lane]
    return float(sum(entries >= FULL * ENTRIES for entries in late) / len(late))


def checks(found: list[Sample], quick: bool) -> list[Check]:
    def per_cpu(case: tuple[int, int, int], key: str) -> list[int]:
        return [s[key] for s in _of(found, case, "cpu")]

    consumed = per_cpu((1, 1, 8), "consumed")
    produced = per_cpu(MULTI, "produced")
    full = [_full(found, lane) for lane in range(CPUS)]
    result = [
        at_least("1 lane, 8 users: share of the buffer in use", _mean(found, (1, 1, 8)), 0.75,
                 says(MT_FTL, "the buffer fills up faster in the pblk and this phenomenon lasts until the 8 user "
                      "threads no longer request the write operations")),
        at_least("8 lanes: least over most that a CPU consumed", min(per_cpu(MULTI, "consumed")) /
                 max(per_cpu(MULTI, "consumed")), 0.5, ours("each CPU has a writer and a user of its own")),
        at_least("8 lanes: least over most that a CPU produced", min(produced) / max(produced), 0.5,
                 says(MT_FTL, "the user threads continue to insert more entries even after 0.004 seconds")),
        at_least("8 lanes over 1: blocks consumed", sum(per_cpu(MULTI, "consumed")) / sum(consumed), 2,
                 says(MT_FTL, "in twice or more compared to the existing host-level FTL")),
        at_most("8 lanes: share of the time in which a lane is full, mean of all", sum(full) / CPUS, 0.05,
                says(MT_FTL, "each buffer does not fill up"),
                f"On average {_mean(found, MULTI):.0%} of the entries are in use.", KNOWN),
        at_least("8 lanes: share of the time in which the fullest has room", 1 - max(full), 0.75,
                 says(MT_FTL, "there are usually free space in each buffers"),
                 f"By lane it is full for {', '.join(f'{x:.0%}' for x in full)} of the time.", KNOWN),
    ]
    if not quick:
        result += [
            at_most("1 lane, 8 users: in use with units of 8 over units of 1",
                    _mean(found, (1, 8, 8)) / _mean(found, (1, 1, 8)), 1, ours("larger units drain the buffer faster")),
            at_most("1 lane: in use with 1 user over 8", _mean(found, (1, 1, 1)) / _mean(found, (1, 1, 8)), 1,
                    says(MT_FTL, "when the single user makes the write requests, the producing speed [...] is slower "
                         "than when the multiple users make the write requests")),
            at_most("1 lane, 1 user, units of 8: share of the buffer in use", _mean(found, (1, 8, 1)), 0.5,
                    says(MT_FTL, "the entries do accumulate not too much in the buffer"), late=KNOWN),
            at_least("1 lane, units of 8: in use with 8 users over 1", _mean(found, (1, 8, 8)) /
                     _mean(found, (1, 8, 1)), 1.25,
                     says(MT_FTL, "the I/O requests are still accumulated in the buffer as the number of the user "
                          "threads increases even if the consuming speed is accelerated"), late=KNOWN),
        ]
    return result


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["lanes", "write unit", "users", "in use after 4 ms", "produced 4 to 8 ms", "consumed", "CPUs consuming"]]
    for case in dict.fromkeys((s["lanes"], s["write unit"], s["users"]) for s in found):
        cpus = _of(found, case, "cpu")
        rows.append([*map(str, case), f"{100 * _mean(found, case):.0f}%", str(sum(s["produced"] for s in cpus)),
                     str(sum(s["consumed"] for s in cpus)), str(sum(1 for s in cpus if s["consumed"]))])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    singles = [case for case in dict.fromkeys((s["lanes"], s["write unit"], s["users"]) for s in found)
               if case != MULTI]
    units = sorted({case[1] for case in singles})
    figure, axes = figures.panels(4 + len(units), height=3.1)
    time = "time after the start (ms)"
    for panel, unit in zip(axes, units, strict=False):
        lines = []
        for case in (case for case in singles if case[1] == unit and case[2] in (1, CPUS)):
            points = _of(found, case, "at_us")
            lines.append(figures.Line(f"{case[2]} user{'s'[:case[2] - 1]}", [s["at_us"] / 1000 for s in points],
                                      [s["entries"] for s in points], marker=False))
        figures.lines(panel, lines, x=time, y=f"entries in use, of {ENTRIES}",
                      title=f"1 lane, write unit {unit}", columns=2)
    users = sorted({case[2] for case in singles})
    figures.bars(axes[len(units)], [str(n) for n in users], [
        figures.Bars(f"write unit {unit}", [100 * _mean(found, (1, unit, n)) for n in users if (1, unit, n) in singles])
        for unit in units], x="users", y="entries in use after 4 ms (%)", title="1 lane")
    points = _of(found, MULTI, "at_us")
    at = sorted({s["at_us"] for s in points})
    lanes = [[s["entries"] for s in points if s["at_us"] == when] for when in at]
    figures.lines(axes[-3], [
        figures.Line("mean of the lanes, from the least to the most", [us / 1000 for us in at],
                     [sum(of) / len(of) for of in lanes], marker=False, spread=[(min(of), max(of)) for of in lanes]),
        figures.Line("lane 0", [us / 1000 for us in at], [s["entries"] for s in points if s["lane"] == 0],
                     marker=False)], x=time, y=f"entries in use, of {ENTRIES}", columns=2,
        title="8 lanes, 8 users, write unit 1")
    for panel, case, title in ((axes[-2], (1, 1, 8), "1 lane, 8 users"), (axes[-1], MULTI, "8 lanes, 8 users")):
        figures.bars(panel, [str(cpu) for cpu in range(CPUS)], [
            figures.Bars(f"{key} there", [s[key] for s in _of(found, case, "cpu")])
            for key in ("produced", "consumed")],
            x="CPU", y="blocks, from 4 to 8 ms", title=title)
    figures.save(figure, path)


ABOUT = About(
    title="The write buffers from within",
    question="How full are the buffers, and which CPU fills and which empties them, when one writer serves all "
             "users and when each CPU has its own?",
    by=("lanes", "write unit", "users", "lane", "at_us", "cpu"),
    caption=f"4 KiB random writes on {CPUS} modelled CPUs, {ENTRIES} entries a lane, device without NAND delay; mean "
            f"of each {STEP_US} us. Produced: blocks that went into a buffer on that CPU; consumed: blocks that a "
            "writer took out there.")
