# SPDX-License-Identifier: GPL-2.0
"""What pblk needs: an Open-Channel drive of the same flash as the zoned one, a kernel that has it, and its buffer."""

from collections.abc import Mapping

KERNEL = "pblk"                 # Linux 5.10
DISK = "/dev/ftl"
OPEN_CHANNEL = {"nvme0.vendor-id": "0x1d1d", "nvme0.device-id": "0x1f1f", "zoned": "off",
                "flash.personality": "ocssd", "ms": "16"}
# 8 x 4 dies as in tlc; a chunk of 6 MiB, 21 lines.
GEOMETRY = {"tlc": {"flash.block_pages": "96"}, "dram": {"flash.channels": "8", "flash.dies": "4", "flash.chunk": "6M"}}
SIZE_MIB = 21 * 32 * 6
NEW = "guest-pblk new nvme0n1 ftl 0 31"


def drive(profile: str, unit: int) -> Mapping[str, str]:
    """Properties of a drive on which nothing is collected yet, with that write unit."""
    return GEOMETRY[profile] | {"flash.size": f"{SIZE_MIB}M"} | OPEN_CHANNEL | {"flash.ws_opt": f"{unit}"}


def append(entries: int) -> str:
    """For the kernel's command line: so many entries in the buffer, and no null_blk that is there already."""
    return f"null_blk.nr_devices=0 pblk.write_buffer_size={entries}"
