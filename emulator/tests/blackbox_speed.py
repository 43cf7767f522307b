#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints what a command of the black box costs the host's CPU, over what one of a zoned drive does. Not a test.

The guest runs in virtual time and does the same work for a command on both drives, which is in both figures. A
command's cost is what many more of them add. Usage: emulator/tests/blackbox_speed.py
"""

import resource
import statistics
import subprocess
from pathlib import Path

LAB = Path(__file__).resolve().parents[2] / "scripts/lab"
FEW, MANY, TURNS = 20_000, 120_000, 5
DRIVES = {"zns": [], "blackbox": ["--device", "zoned=off,flash.personality=blackbox"]}
# Zones are written in order, so both are.
JOBS = {("write", "zns"): "--rw=write --zonemode=zbd --max_open_zones=1", ("write", "blackbox"): "--rw=write",
        ("randread", "zns"): "--rw=randread", ("randread", "blackbox"): "--rw=randread"}


def seconds(kind: str, drive: str, commands: int) -> float:
    """Of the host's CPUs, for a guest with so many commands."""
    job = (f"fio --name=job --filename=/dev/nvme0n1 --direct=1 {JOBS[kind, drive]} --bs=4k --ioengine=libaio "
           f"--iodepth=16 --size=900m --number_ios={commands} --output=said && grep -q 'issued rwts.*{commands}' said")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([LAB, "run", "--no-module", "--clock", "virtual", "--cpus", "1", "--profile", "dram",
                    *DRIVES[drive], "--", job], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    for drive in DRIVES:
        seconds("randread", drive, FEW)         # makes what later guests begin from
    for kind in ("write", "randread"):
        cost = {drive: statistics.median((seconds(kind, drive, MANY) - seconds(kind, drive, FEW)) / (MANY - FEW)
                                         for _ in range(TURNS)) for drive in DRIVES}
        print(f"{kind}: {cost['blackbox'] * 1e6:.1f} us, {cost['blackbox'] / cost['zns']:.2f} x zns")


if __name__ == "__main__":
    main()
