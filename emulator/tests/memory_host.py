#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints what sharing costs two cores of this host, and of the model, as ratios. Not a test: hosts differ.

One unit is a line's way from one to the other: half of what a flag takes that each sets for the other. The host's
figures are the median of several runs; it should have nothing else to do.

Usage: MTFTL_QEMU=... emulator/tests/memory_host.py [PROFILE]
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import lockstep
from lockstep import ATOMIC, FLAG, QUEUE, RWSEM, STORE, SWAP, TICKET

PADDED = 16
ROWS = {"a flag that each waits for": (FLAG, 0), "a word swapped": (SWAP, 0), "one counter": (ATOMIC, 0),
        "one line, words of their own": (STORE, 0), "ticket lock": (TICKET, 0), "queue lock": (QUEUE, 0),
        "lock taken for reading": (RWSEM, 0), "counters of their own, a core's": (ATOMIC, PADDED)}
RUNS = 9


def each(what: int, step: int, time: int, text: str) -> float:
    """Nanoseconds, or the clock's ticks, from one turn to the next of whichever core."""
    done = lockstep.parsed(text)["done"]
    if what in (SWAP, FLAG):
        return done[0] / (2 * time // 200 * 8)
    return time / sum(done) * (len(done) if step else 1)


def on_host(folder: Path, what: int, step: int) -> float:
    source = Path(__file__).resolve().parent / "vtime"
    time = 2000000 if what in (SWAP, FLAG) else 100000000
    program = folder / f"host-{what}-{step}"
    subprocess.run(["gcc", "-O2", "-pthread", f"-DWHAT={what}", f"-DSTEP={step}", f"-DTIME={time}", "-o", program,
                    source / "share.c", source / "host.c"], check=True)
    return statistics.median(each(what, step, time, subprocess.run([program, "2"], check=True, capture_output=True,
                                                                   text=True).stdout) for _ in range(RUNS))


def in_model(folder: Path, profile: str, what: int, step: int) -> float:
    time = 1000000
    image = lockstep.build(folder, "share", WHAT=what, STEP=step, TIME=time)
    icount = f"{lockstep.LOCKSTEP.format(1000)},memory={profile}"
    return each(what, step, time, lockstep.run(image, icount, 2, folder / "out"))


def main() -> None:
    profile = sys.argv[1] if len(sys.argv) > 1 else "server"
    with tempfile.TemporaryDirectory() as scratch:
        units = None
        for name, row in ROWS.items():
            found = on_host(Path(scratch), *row), in_model(Path(scratch), profile, *row)
            units = units or (found[0] / 2, found[1] / 2)
            print(f"{name:32} host {found[0] / units[0]:5.2f}, model {found[1] / units[1]:5.2f}")


if __name__ == "__main__":
    main()
