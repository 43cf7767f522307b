# SPDX-License-Identifier: GPL-2.0
"""Writes blocks of the on-media format from docs/design/format.md alone, for tests of its readers."""

import struct
from collections.abc import Sequence

BLOCK = 4096
DATA, GC, RANGES, CKPT = 1, 2, 3, 4
ANY_OFFSET = 0xFFFFFFFF
CLEAN = 1


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = _table()


def crc32c(start: int, data: bytes) -> int:
    """CRC-32C without inversions."""
    for byte in data:
        start = start >> 8 ^ TABLE[(start ^ byte) & 0xFF]
    return start


def _sealed(used: bytes, start: int, at: int) -> bytes:
    """Fill in the checksum of what is used of a block, which is zero so far."""
    return (used[:at] + struct.pack("<I", crc32c(start, used)) + used[at + 4:]).ljust(BLOCK, b"\0")


class Media:
    """A device's geometry, UUID and key."""

    def __init__(self, zones: int, zone_blocks: int, capacity: int, logical_blocks: int = 1024) -> None:
        self.zones, self.zone_blocks, self.capacity = zones, zone_blocks, capacity
        self.logical_blocks = logical_blocks
        self.uuid, self.key = b"media for tests!", 0xC0FFEE
        self.seed = crc32c(self.key, self.uuid)

    def superblock(self, flags: int = 0, generation: int = 1, version: int = 1, incompat: int = 0,
                   zones: int | None = None, op: int = 250, logical_blocks: int | None = None) -> bytes:
        """A record without a checkpoint."""
        fields = struct.pack("<8sIHH16sQQQQIIIIQQII", b"MTFTFSB1", 0, version, flags, self.uuid, generation, 0,
                             incompat, self.logical_blocks if logical_blocks is None else logical_blocks,
                             zones or self.zones, self.zone_blocks, self.capacity, op, 0, 0, 0, self.key)
        return _sealed(fields.ljust(BLOCK, b"\0"), 0xFFFFFFFF, 8)

    def _header(self, kind: int, zone: int, seq: int, entries: Sequence[bytes], blocks: int, durable: int,
                version: int) -> bytes:
        fields = struct.pack("<IIBBHHHQQIII20x", 0x5554464D, 0, version, kind, len(entries), blocks, 0, seq,
                             durable, zone, ANY_OFFSET, 0)
        return _sealed(fields + b"".join(entries), self.seed, 4)

    def unit(self, zone: int, seq: int, content: dict[int, bytes], kind: int = DATA, durable: int = 0,
             version: int = 1) -> bytes:
        """A unit of data: logical block -> what fills it."""
        payload = [(text * BLOCK)[:BLOCK] for text in content.values()]
        entries = [struct.pack("<QII", lba, crc32c(self.seed, data), 0)
                   for lba, data in zip(content, payload, strict=True)]
        return self._header(kind, zone, seq, entries, len(payload), durable, version) + b"".join(payload)

    def trim(self, zone: int, seq: int, lba: int, blocks: int, number: int) -> bytes:
        """A unit with one range record."""
        return self._header(RANGES, zone, seq, [struct.pack("<QQII", lba, number, blocks, 1)], 0, 0, 1)
