#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints how many guest instructions the emulator executes in a second of host CPU time. Not a test: hosts differ.

Usage: MTFTL_QEMU=... emulator/tests/vtime_speed.py
"""

import resource
import tempfile
from pathlib import Path

import lockstep


def cpu_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def main() -> None:
    plain = "shift=0,sleep=off"
    with tempfile.TemporaryDirectory() as scratch:
        image = lockstep.build(Path(scratch), "code", TURNS=2000)
        for cpus, icounts in ((1, (plain, f"{plain},quantum=1000")),
                              (8, (plain, *(f"{plain},quantum={q}" for q in (100, 500, 1000, 5000))))):
            instructions = None
            for icount in reversed(icounts):
                begin = cpu_seconds()
                text = lockstep.run(image, icount, cpus, Path(scratch) / "out")
                spent = cpu_seconds() - begin
                # The same work in each: only with a quantum does every CPU's own clock count it.
                instructions = instructions or sum(lockstep.parsed(text)["took"])
                print(f"{cpus} vCPUs, -icount {icount}: {instructions / spent / 1e6:.0f} M instructions/s")


if __name__ == "__main__":
    main()
