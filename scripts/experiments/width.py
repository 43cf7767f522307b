# SPDX-License-Identifier: GPL-2.0
"""Width: from 1 to 64 CPUs with as many users, on both clocks: without caches and with.

A drive without flash delays and with many small zones, so that neither flash nor open zones bind: what is left is
the software. `read` reads 4 KiB blocks of what was written before; `single` is one lane in the same code.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, ours, shown, spread
from mtlab.run.options import Options

CPUS = (1, 2, 4, 8, 16, 32, 64)
QUICK_CPUS = (1, 4)
CACHES = (1, 8, 32)         # with caches: those that the checks ask for
WINDOW_MS = 20
SINGLE_MS = 100             # its users sleep for long in its queue: a short window counts waves
REPEATED, SEEDS = [("caches", line) for line in ("multi", "single")], 3      # what the README compares
CLOCKS = {"plain": "", "caches": "server"}
SHARES = {"plain": 0.95, "caches": 0.9}     # of linear growth
LINES = {"multi": "a lane a CPU", "unit1": "a lane a CPU, write unit 1", "single": "one lane",
         "single1": "one lane, write unit 1", "read": "reads"}
SINGLE = ("single", "single1")
MOST = "multi"              # of which the checks ask at the most CPUs
ENTRIES = 128               # a CPU
DEVICE = {"flash.size": "5G", "zoned.zone_size": "2M", "zoned.zone_capacity": "2M", "zoned.max_open": "0",
          "zoned.max_active": "0"}


def _line(line: str, cpus: int) -> str:
    """A fresh FTL and one job."""
    options = f"lanes={1 if line in SINGLE else cpus} buffer_entries={max(ENTRIES * cpus, 1024)}"
    common = {"filename": "/dev/mapper/ftl", "ioengine": "psync"}
    measured = {**common, "bs": "4k", "numjobs": cpus, "time_based": True, "ramp_time": "5ms", "norandommap": True,
                "runtime": f"{SINGLE_MS if line in SINGLE else WINDOW_MS}ms"}
    if line == "read":
        job = "\n".join([fio.command("/dev/null", bs="128k", rw="write", size="64M", **common),
                         fio.command("read.json", rw="randread", size="64M", **measured)])
    else:
        job = fio.command(f"{line}.json", rw="randwrite", size="1G", **measured)
    unit = " write_unit=1" if line.endswith("1") else ""
    return (f"mtftl format --force /dev/nvme0n1\nmtftl open /dev/nvme0n1 ftl {options}{unit}\n{job}\n"
            "mtftl close ftl")


def runs(quick: bool) -> list[Run]:
    return [Run(f"{clock}-{cpus}-{line}", f"set -e\n{_line(line, cpus)}",
                Options(clock="virtual", cpus=cpus, memory="4G", profile="dram", device=DEVICE, memory_model=model,
                        timeout=3600),
                seeds=SEEDS if (clock, line) in REPEATED and not quick else 1, seconds=cpus)
            for clock, model in CLOCKS.items() for cpus in (QUICK_CPUS if quick else CPUS) for line in LINES
            if (not model or quick or cpus in CACHES) and (cpus < CPUS[-1] or line == MOST)]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found = []
    for name, outputs in files.items():
        clock, cpus, _ = name.split("-")
        found += [{"clock": clock, "cpus": int(cpus), "line": Path(output).stem,
                   **fio.sample(data, "read" if output == "read.json" else "write", fio.seconds(data))}
                  for output, data in outputs.items()]
    return sorted(found, key=lambda s: (s["clock"], s["line"], s["cpus"]))


def _iops(found: list[Sample], clock: str, line: str) -> dict[int, float]:
    return {s["cpus"]: s["iops"] for s in found if (s["clock"], s["line"]) == (clock, line)}


def checks(found: list[Sample], quick: bool) -> list[Check]:
    result = []
    low, high = QUICK_CPUS if quick else (8, 32)
    for clock in CLOCKS:
        multi, unit1, single, single1, read = (_iops(found, clock, line) for line in LINES)
        for name, line in (("writes", multi), ("writes, unit 1", unit1), ("reads", read)):
            result.append(at_least(f"{clock}: {name}, share of linear from {low} to {high} CPUs",
                                   line[high] * low / (line[low] * high), SHARES[clock],
                                   ours("nothing that one CPU writes for each request is used by another one")))
        if not quick:
            result += [at_least(f"{clock}: multi over single at 32 users", multi[32] / single[32], 10,
                                ours("one lane has one writer, which has to checksum each block")),
                       at_least(f"{clock}: multi over single at 32 users, unit 1", unit1[32] / single1[32], 20,
                                ours("one lane has one writer, which sends each block by itself"),
                                f"One lane takes {1e6 / single1[32]:.1f} us of its writer for a write. With a lane a "
                                f"CPU a write takes {32e6 / unit1[32]:.1f} us of a CPU, its user's part included.")]
    if not quick:
        plain = _iops(found, "plain", "multi")
        result.append(at_least("plain: 64 over 32 CPUs", plain[64] / plain[32], 1.5, ours("64 CPUs still grow")))
    return result


def table(found: list[Sample]) -> list[list[str]]:
    at = {(s["clock"], s["line"], s["cpus"]): s for s in found}
    rows = [["clock", "CPUs and users", *(f"{label}, k/s" for label in LINES.values()), "multi/single",
             "unit 1: multi/single"]]
    for clock in CLOCKS:
        multi, unit1, single, single1, _ = (_iops(found, clock, line) for line in LINES)
        rows += [[clock, str(cpus), *(shown(at[of], "iops", scale=1000) if (of := (clock, line, cpus)) in at else "-"
                                      for line in LINES),
                  *(f"{many[cpus] / one[cpus]:.2f}" if cpus in one else "-" for many, one in (
                      (multi, single), (unit1, single1)))] for cpus in sorted(multi)]
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, axes = figures.panels(len(CLOCKS))
    for panel, clock in zip(axes, CLOCKS, strict=True):
        lines = []
        for line, label in LINES.items():
            points = [s for s in found if (s["clock"], s["line"]) == (clock, line)]
            lines.append(figures.Line(label, [s["cpus"] for s in points], [s["iops"] / 1000 for s in points],
                                      spread=[(x / 1000, y / 1000) for x, y in (spread(s, "iops") for s in points)]))
        figures.lines(panel, lines, x="CPUs, and as many users", y="4 KiB requests (kIOPS)",
                      title={"plain": "an instruction is a nanosecond", "caches": "with caches"}[clock], log2_x=True,
                      ticks=lines[0].x)
    figures.save(figure, path)


ABOUT = About(
    title="From 1 to 64 CPUs",
    question="Does the throughput of writes and reads grow with the CPUs, also where a line of memory that moves "
             "between them costs what it costs?",
    by=("clock", "line", "cpus"),
    caption="4 KiB, random, by pwrite and pread, as many users as CPUs; a fresh drive without flash delays, of "
            f"2,560 zones of 2 MiB. {WINDOW_MS} ms each, one lane {SINGLE_MS}. Plain: each instruction costs a "
            "nanosecond. With caches: those of a server of 32 cores; there writes with the default unit are medians of "
            f"{SEEDS} seeds, bars from the least to the most.")
