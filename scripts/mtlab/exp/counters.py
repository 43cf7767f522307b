# SPDX-License-Identifier: GPL-2.0
"""What the target's status line and the flash device's log page say, as numbers by name.

The guest asks with `dmsetup status` (docs/use/status.md) and flash_log() (docs/emulator/README.md); status() and
flash() read the answers.
"""

import re
import struct
from collections.abc import Mapping
from typing import Any

FLASH = ("flash_data", "flash_gc", "flash_headers", "flash_meta")       # all that the target writes to flash
LISTS = ("fill", "latency", "latency_ns")      # the last two: commands by how long they took, and the bounds of that
_PLACES = {"now": 40, "reads": 48, "writes": 56, "read_bytes": 120, "written_bytes": 128, "programmed_bytes": 136,
           "erases": 192}                       # of 64-bit numbers in the log page
COUNTERS = 200                                  # bytes of it, without what is said of each die


def status(line: str) -> dict[str, Any] | None:
    """`TIME ... START LENGTH mtftl MODE KEY VALUE ...`; None: not all of it is there."""
    at, *words = line.split()[:1] + line.partition(" mtftl ")[2].split()
    if not words:
        return None
    found: dict[str, Any] = {"at": float(at), "mode": words[0],
                             "logical_pages": int(line.partition(" mtftl ")[0].split()[-1]) // 8}
    for key, value in zip(words[1::2], words[2::2], strict=False):
        if key in LISTS:
            found[key] = [int(x) for x in re.split("[,:]", value)]
        else:
            found[key] = float(value) if re.fullmatch(r"-?[\d.]+", value) else value
    return found if "wear_total" in found else None         # the last word is there: the line is whole


def looks(data: bytes) -> list[dict[str, Any]]:
    """Of a file of status lines, those that are whole."""
    return [found for line in data.decode().splitlines() if (found := status(line))]


def grown(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, float]:
    """By how much each number did, from one look to the next."""
    return {k: after[k] - v for k, v in before.items() if isinstance(v, float | int) and k in after}


def flash_log(to: str, size: int = COUNTERS) -> str:
    """The command that appends the flash device's log page to a file."""
    return f"nvme get-log /dev/nvme0 --namespace-id=1 --log-id=0xf0 --log-len={size} --raw-binary >>{to}"


def flash(log: bytes) -> dict[str, float]:
    """The counters of a log page; with how long a die was busy on average, if the page has each."""
    found: dict[str, float] = {key: struct.unpack_from("<Q", log, place)[0] for key, place in _PLACES.items()}
    header, size = struct.unpack_from("<HH", log, 6)
    channels, dies = struct.unpack_from("<II", log, 12)
    if len(log) >= header + size * channels * dies:
        busy = [struct.unpack_from("<Q", log, header + size * n)[0] for n in range(channels * dies)]
        found["busy"] = sum(busy) / len(busy)
    return found
