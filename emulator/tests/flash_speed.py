#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints how fast the flash device is on the wall clock, beside two others in one guest. Not a test: hosts differ.

One is QEMU's own zoned namespace, the other null_blk: no device, so the most that this guest can do.
Usage: emulator/tests/flash_speed.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

LAB = Path(__file__).resolve().parents[2] / "scripts/lab"
SCRIPT = """
modprobe null_blk nr_devices=0
mkdir /sys/kernel/config/nullb/n0 && cd /sys/kernel/config/nullb/n0
for set in blocksize=4096 size=1024 memory_backed=1 zoned=1 zone_size=16 power=1; do echo ${set#*=} >${set%=*}; done
for turn in 1 2 3; do for kind in randread randwrite; do for pair in flash=nvme0n1 stock=nvme1n1 null_blk=n0; do
    echo $kind ${pair%=*} $(fio --name=job --filename=/dev/${pair#*=} --direct=1 --zonemode=zbd --max_open_zones=12 \
        --rw=$kind --bs=4k --ioengine=io_uring --iodepth=32 --size=128m --runtime=4 --ramp_time=1 --time_based \
        --output-format=terse | cut -d';' -f8,49 | tr ';' '+')
done; done; done
"""


def main() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
        media = Path(scratch) / "stock"
        with open(media, "wb") as f:
            f.truncate(1 << 30)
        stock = (f"-drive file={media},id=stock,format=raw,if=none,cache=unsafe -device nvme,id=nvme1,serial=stock "
                 "-device nvme-ns,bus=nvme1,drive=stock,logical_block_size=4096,physical_block_size=4096,zoned=on,"
                 "zoned.zone_size=16M,zoned.zone_capacity=16M")
        done = subprocess.run([LAB, "run", "--no-module", "--profile", "dram", "--media", Path(scratch) / "flash",
                               "--qemu", stock, "--", SCRIPT], stdout=subprocess.PIPE, text=True)
    rates: dict[tuple[str, str], list[int]] = {}
    for kind, name, numbers in (line.split() for line in done.stdout.splitlines() if line.startswith("rand")):
        rates.setdefault((kind, name), []).append(sum(map(int, numbers.split("+"))))
    for (kind, name), samples in rates.items():
        ratio = max(samples) / max(rates[kind, "stock"])
        print(f"{kind} {name}: {max(samples)} IOPS, {ratio:.2f} x stock; all turns: {samples}")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
