# SPDX-License-Identifier: GPL-2.0
"""dm-zoned in a guest: its formatter is not in Debian, so its superblocks are written here.

As the kernel's dm-zoned-metadata.c reads them: metadata version 2, a cache device and a zoned device.
"""

import struct
import zlib
from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Shape:
    """A zoned device beside a device without zones, which is taken to have some."""

    flash: str                  # the devices
    memory: str
    zone_mib: int
    zones: int                  # of the zoned device
    cache_zones: int            # that the other one is taken to have
    reserved: int               # zones of them that hold no chunk; dmzadm takes 16
    synced: bool = False        # is what formats them on flash, so that a power cut leaves it?

    @property
    def chunks(self) -> int:
        """Without both metadata zones and the zoned device's first."""
        return self.cache_zones + self.zones - 2 - 1 - self.reserved

    @property
    def table(self) -> str:
        """The line for dmsetup."""
        return f"0 {self.chunks * self.zone_mib * 2048} zoned {self.memory} {self.flash}"

    def _superblock(self, generation: int, zone: int) -> bytes:
        """A superblock in a zone, without the zeroes that follow."""
        every = self.cache_zones + self.zones
        fields = struct.pack("<4sIQQIIIII", b"DBZD", 2, generation, zone * (self.zone_mib * MIB // 4096), 2 + every,
                             self.reserved, self.chunks, 1, every)
        names = struct.pack("<32s16s16s", b"dmz", b"dm-mtftl peers 1", b"dm-mtftl peers 2")
        checksum = ~zlib.crc32((fields + bytes(4) + names).ljust(4096, b"\0"), ~generation & 0xffffffff) & 0xffffffff
        return fields + struct.pack("<I", checksum) + names

    def format(self) -> list[str]:
        """Commands that write two superblocks with map and bitmaps, and one on the zoned device."""
        lines = []
        for zone, device, at in ((0, self.memory, 0), (1, self.memory, self.zone_mib * 256),
                                 (self.cache_zones, self.flash, 0)):
            data = "".join(f"\\x{byte:02x}" for byte in self._superblock(int(device == self.memory), zone))
            write = f"dd of={device} bs=4096 conv=sync{',fsync' * self.synced} oflag=direct status=none"
            lines.append(f"printf '{data}' | {write} seek={at}")
            if device == self.memory:
                lines.append(f"tr '\\0' '\\377' </dev/zero | head -c 4096 | {write} iflag=fullblock seek={at + 1}")
        return lines
