# SPDX-License-Identifier: GPL-2.0-or-later
"""What several tests of the flash device share: its sources, small drives, and shell for guests."""

import subprocess
from pathlib import Path

from bare import STOPPED

HERE = Path(__file__).resolve().parent
NVME = HERE.parent / "hw/nvme"
MODEL = NVME / "flash/model"
LOCKSTEP = {"clock": "virtual", "cpus": 1, "module": False}
# A small device whose buffer holds nothing back by itself: 2 dies, units of 16 KiB.
SMALL = {"flash.size": "1G", "zoned.zone_size": "16M", "zoned.zone_capacity": "12M", "flash.channels": "2",
         "flash.page": "16K", "flash.program_ns": "1000000", "flash.read_ns": "50000", "flash.erase_ns": "3000000"}
# 2 dies, erase blocks of 256 KiB on both, 24 MiB of flash, 4 KiB programs of 200 us.
BOX = {"zoned": "off", "flash.personality": "blackbox", "flash.size": "24M", "flash.channels": "2",
       "flash.block_pages": "32", "flash.spare": "25", "flash.log_blocks": "8", "flash.program_ns": "200000",
       "flash.map_pages": "4", "flash.read_ns": "40000", "flash.erase_ns": "2000000", "flash.buffer": "64K"}
# Three groups of two PUs of five chunks of 48 sectors: each field of an address has values that are none. A program
# unit is four sectors.
GROUPS, PUS, PER_PU, SECTORS, META = 3, 2, 5, 48, 16
OCSSD = {"zoned": "off", "flash.personality": "ocssd", "ms": str(META), "flash.size": "5760K", "flash.channels": "3",
         "flash.dies": "2", "flash.page": "16K", "flash.block_pages": "12", "flash.program_ns": "1000000",
         "flash.read_ns": "50000", "flash.erase_ns": "3000000", "flash.ws_min": "2"}
TOOLS = r"""
flash() { nvme admin-passthru /dev/nvme0 --opcode=0xc0 --namespace-id=1 --cdw10=$1 --cdw11=${2:-0} --cdw13=${3:-0} \
    --cdw15=${4:-0} >/dev/null 2>&1; }
# write ZONE BLOCK COUNT BYTE [dd flag]: so many blocks of that byte
put() { head -c $(($3 * 4096)) /dev/zero | tr '\0' "$4" > /tmp/in
    dd if=/tmp/in of=/dev/nvme0n1 bs=4096 count=$3 seek=$(($1 * 4096 + $2)) oflag=direct${5:+,$5} iflag=fullblock \
    2>/dev/null; }
# get ZONE BLOCK: the block's first byte, or "error"
get() { dd if=/dev/nvme0n1 bs=4096 count=1 skip=$(($1 * 4096 + $2)) iflag=direct 2>/dev/null > /tmp/out && \
    { head -c 1 /tmp/out | tr '\0' 0; } || printf error; }
wp() { blkzone report -o $(($1 * 32768)) -c 1 /dev/nvme0n1 | sed 's/.*wptr 0x\([0-9a-f]*\).*(\(..\)).*/\1 \2/' | \
    { read w s; echo $((0x$w / 8)) $s; }; }
sync_() { nvme flush /dev/nvme0 --namespace-id=1 >/dev/null; }
"""


def compile_c(target: Path, *args: str | Path) -> Path:
    subprocess.run(["gcc", "-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-result",
                    "-o", target, *args], check=True)
    return target


def refuses(binary: Path, bios: Path, args: list[str]) -> str:
    done = subprocess.run([binary, *STOPPED, "-bios", bios, *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    # Under ASan each emulator begins with a warning of its own.
    lines = [x for x in done.stderr.splitlines() if x and not x.startswith("==")]
    assert len(lines) == 1, done.stderr
    return lines[0]
