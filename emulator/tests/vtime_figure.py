#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws docs/virtual-time/quantum.svg: how far a contended lock is off, against the quantum; prints it as a table.

Usage: MTFTL_QEMU=... emulator/tests/vtime_figure.py
"""

import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "mtftl"
import lockstep  # noqa: E402
from matplotlib import pyplot  # noqa: E402

FIGURE = lockstep.HERE.parents[1] / "docs/virtual-time/quantum.svg"
QUANTA = [1, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
NANOSECONDS = 1000000
CPUS = 8


def main() -> None:
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    print("| hold / rest | spin | " + " | ".join(f"Q={q}" for q in QUANTA) + " |")
    print("|---" * (len(QUANTA) + 2) + "|")
    with tempfile.TemporaryDirectory() as scratch:
        console = Path(scratch) / "out"
        for panel, spin in zip(panels, (False, True)):
            for hold, rest in lockstep.CONTENTION:
                image = lockstep.build(Path(scratch), "lock", HOLD=hold, REST=rest, TIME=NANOSECONDS)
                icounts = [lockstep.LOCKSTEP.format(q) + ("" if spin else f",spin={q}") for q in QUANTA]
                taken = [lockstep.throughput(image, icount, console, CPUS) for icount in icounts]
                errors = [100 * (count / taken[0] - 1) for count in taken]
                print(f"| {hold} / {rest} | {'4' if spin else 'Q'} | {taken[0]} | "
                      + " | ".join(f"{error:+.1f}%" for error in errors[1:]) + " |")
                panel.plot(QUANTA, errors, marker="o", markersize=3, label=f"{hold} held, {rest} not")
            panel.set_xscale("log")
            panel.set_xlabel("quantum, instructions")
            panel.set_title("short rounds while CPUs spin (default)" if spin else "rounds of a quantum always (spin=Q)")
            panel.grid(alpha=0.3)
    panels[0].set_ylabel("lock throughput, error in %")
    panels[0].legend(title="instructions", fontsize="small")
    figure.savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
