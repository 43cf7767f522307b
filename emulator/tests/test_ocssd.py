# SPDX-License-Identifier: GPL-2.0-or-later
"""The Open-Channel personality: each command, field and error, by a driver of its own, without a guest."""

import itertools
import os
import random
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from bare import (
    BAR,
    COMPARE,
    COPY,
    DATA,
    DSM,
    FLUSH,
    NOWHERE,
    READ,
    VERIFY,
    WRITE,
    WRITE_ZEROES,
    Driver,
    Monitor,
    device,
)
from shared import GROUPS, META, OCSSD, PER_PU, PUS, SECTORS

RESET, VWRITE, VREAD, VCOPY = 0x90, 0x91, 0x92, 0x93
GEOMETRY, CHUNKS, NOTES, FEEDBACK = 0xE2, 0xCA, 0xD0, 0xCA
FREE, CLOSED, OPEN, OFFLINE = 1, 2, 4, 8
INVALID_OPCODE, INVALID_FIELD, TRANSFER, POWER = 0x01, 0x02, 0x04, 0x06
WRITE_FAULT, UNREADABLE, DULB, OFFLINE_CHUNK, INVALID_RESET, OUT_OF_ORDER = 0x280, 0x281, 0x287, 0x2C0, 0x2C1, 0x2F2
LIST, TO, PRPS, OOB = DATA - 0x4000, DATA - 0x3000, DATA - 0x2000, DATA - 0x1000
MAX = 64


def addr(group: int = 0, pu: int = 0, chunk: int = 0, sector: int = 0) -> int:
    return ((group << 1 | pu) << 3 | chunk) << 6 | sector


EVERY = list(itertools.product(range(GROUPS), range(PUS), range(PER_PU)))
HOLES = [addr(3), addr(chunk=5), addr(sector=48), addr(sector=63), 1 << 12, 1 << 40]


def run(first: int, count: int) -> list[int]:
    return list(range(first, first + count))


class Drive(Driver):
    """A host of an Open-Channel drive; a command gives its status and which of its sectors failed."""

    def vector(self, opcode: int, addresses: list[int], to: list[int] | None = None, mptr: int = 0,
               **fields: int) -> tuple[int, int]:
        return self.wait(1, self.start(opcode, addresses, to, mptr, **fields))

    def start(self, opcode: int, addresses: list[int], to: list[int] | None = None, mptr: int = 0,
              **fields: int) -> int:
        """The same, submitted only; a list of one is in the command itself."""
        at = [addresses[0], to[0] if to else 0] if len(addresses) == 1 else [LIST, TO]
        self.store(LIST, struct.pack(f"<{len(addresses)}Q", *addresses))
        if to:
            self.store(TO, struct.pack(f"<{len(to)}Q", *to))
        self.pages(DATA, len(addresses))
        cdw = {"cdw10": at[0] & 0xFFFFFFFF, "cdw11": at[0] >> 32, "cdw12": len(addresses) - 1,
               "cdw14": at[1] & 0xFFFFFFFF, "cdw15": at[1] >> 32}
        prp2 = PRPS if len(addresses) > 2 else DATA + 4096
        return self.submit(1, opcode, **{"nsid": 1, "prp": DATA, "prp2": prp2, "mptr": mptr} | cdw | fields)

    def pages(self, at: int, count: int) -> None:
        self.store(PRPS, struct.pack(f"<{max(count - 1, 1)}Q", *(at + 4096 * i for i in range(1, max(count, 2)))))

    def put(self, addresses: list[int], seed: int = 1, **fields: int) -> tuple[int, int]:
        """Writes what sector() says, metadata too."""
        self.store(DATA, b"".join(content(a, seed)[0] for a in addresses))
        self.store(OOB, b"".join(content(a, seed)[1] for a in addresses))
        return self.vector(VWRITE, addresses, mptr=OOB, **fields)

    def look(self, addresses: list[int]) -> list[tuple[bytes, bytes]]:
        """Data and metadata, which must be readable."""
        self.store(DATA, b"\xaa" * 4096 * len(addresses))
        self.store(OOB, b"\xaa" * META * len(addresses))
        assert self.vector(VREAD, addresses, mptr=OOB) == (0, 0)
        return self.found(len(addresses))

    def found(self, count: int) -> list[tuple[bytes, bytes]]:
        data, oob = self.load(DATA, 4096 * count), self.load(OOB, META * count)
        return [(data[4096 * i:][:4096], oob[META * i:][:META]) for i in range(count)]

    def scalar(self, opcode: int, first: int, count: int = 1, **fields: int) -> int:
        self.pages(DATA, count)
        return self.io(opcode, **{"prp": DATA, "prp2": PRPS if count > 2 else DATA + 4096, "cdw10": first,
                                  "cdw12": count - 1} | fields)[0]

    def log(self, page: int, size: int, offset: int = 0, nsid: int = 1) -> bytes | int:
        words = size // 4 - 1
        status, _ = self.admin(2, nsid=nsid, prp=DATA, prp2=DATA + 4096, cdw10=page | (words & 0xFFFF) << 16,
                               cdw11=words >> 16, cdw12=offset)
        return status or self.load(DATA, size)

    def chunk(self, group: int = 0, pu: int = 0, chunk: int = 0) -> tuple[int, int]:
        """State and write pointer."""
        at = 32 * ((group * PUS + pu) * PER_PU + chunk)
        entry = self.log(CHUNKS, 32, at)
        assert isinstance(entry, bytes)
        state, kind, _, first, size, wp = struct.unpack("<BBB5xQQQ", entry)
        assert (kind, first, size) == (1, addr(group, pu, chunk), SECTORS)
        return state, wp

    def fault(self, action: int, a: int = 0, b: int = 0, c: int = 0) -> int:
        return self.admin(0xC0, nsid=1, cdw10=action, cdw11=a, cdw13=b, cdw15=c)[0]


def content(where: int, seed: int = 1) -> tuple[bytes, bytes]:
    """Data and metadata of a sector."""
    word = struct.pack("<QQ", where, seed)
    return word * 256, bytes(x ^ 0xFF for x in word)


NOTHING = (bytes(4096), bytes(META))


@contextmanager
def booted(binary: Path, bios: Path, *args: str) -> Iterator[Drive]:
    running = Drive(binary, bios, *args)
    try:
        yield running
        assert running.process.poll() is None
    finally:
        running.end()


def boot(binary: Path, bios: Path, media: Path, **settings: str) -> AbstractContextManager[Drive]:
    return booted(binary, bios, *device(media, **OCSSD | settings))


@pytest.fixture
def drive(emulator_binary: Path, bios: Path, tmp_path: Path) -> Iterator[Drive]:
    with boot(emulator_binary, bios, tmp_path / "media") as running:
        yield running


# What the drive says of itself.


def test_geometry(drive: Drive) -> None:
    assert drive.admin(GEOMETRY, nsid=1, prp=DATA)[0] == 0
    g = drive.load(DATA, 4096)
    assert g[:2] == b"\x02\x00" and g[8:12] == bytes([2, 1, 3, 6])
    assert struct.unpack_from("<I", g, 16) == (7,)
    assert struct.unpack_from("<HHII", g, 64) == (GROUPS, PUS, PER_PU, SECTORS)
    assert struct.unpack_from("<5I", g, 128) == (2, 4, 0, 30, 5)
    assert struct.unpack_from("<6I", g, 192) == (50_000, 50_000, 1_000_000, 1_000_000, 3_000_000, 3_000_000)
    assert not any(g[2:8] + g[12:16] + g[20:64] + g[76:128] + g[148:192] + g[216:])
    for nsid in (0, 2, 0xFFFFFFFF):
        assert drive.admin(GEOMETRY, nsid=nsid, prp=DATA)[0] == 0x0B
    assert drive.admin(GEOMETRY, nsid=1, prp=NOWHERE)[0] == TRANSFER


def test_geometry_of_page_types(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Of pages that differ the typical and the longest times."""
    types = "20000/300000:40000/600000:90000/1500000"
    with boot(emulator_binary, bios, tmp_path / "media", **{"flash.page_types": types}) as drive:
        assert drive.admin(GEOMETRY, nsid=1, prp=DATA)[0] == 0
        assert struct.unpack_from("<4I", drive.load(DATA, 4096), 192) == (50_000, 90_000, 800_000, 1_500_000)


def test_identify(drive: Drive) -> None:
    """What Linux looks at: the mark, the size with its holes, metadata apart."""
    assert drive.admin(6, nsid=1, prp=DATA)[0] == 0
    ns = drive.load(DATA, 4096)
    assert ns[384] == 1 and struct.unpack_from("<3Q", ns) == (1 << 12,) * 3
    size, shift, _ = struct.unpack_from("<HBB", ns, 128 + 4 * (ns[26] & 15))
    assert (size, shift, ns[26] & 16) == (META, 12, 0)


def test_pci_ids(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    args = device(tmp_path / "media", **OCSSD)
    args[1] += ",vendor-id=0x1d1d,device-id=0x1f1f"
    with booted(emulator_binary, bios, *args) as drive:
        drive.qtest(f"outl 0xcf8 {0x80000000 | 4 << 11}")
        assert int(drive.qtest("inl 0xcfc"), 0) == 0x1F1F1D1D
        assert drive.admin(6, prp=DATA, cdw10=1)[0] == 0 and drive.load(DATA, 2) == b"\x1d\x1d"


def test_chunk_log(drive: Drive) -> None:
    """Every chunk at its place, in pieces of any size."""
    assert [drive.chunk(*c) for c in EVERY] == [(FREE, 0)] * len(EVERY)
    size = 32 * len(EVERY)
    whole = drive.log(CHUNKS, size)
    assert isinstance(whole, bytes)
    assert [struct.unpack_from("<Q", whole, 32 * i + 8)[0] for i in range(len(EVERY))] == [addr(*c) for c in EVERY]
    for at, length in ((4, 8), (28, 40), (size - 4, 4), (60, size - 60)):
        assert drive.log(CHUNKS, length, at) == whole[at:at + length]
    drive.store(DATA, b"\xaa" * 64)
    assert drive.log(CHUNKS, 64, size - 32) == whole[-32:] + b"\xaa" * 32
    assert drive.log(CHUNKS, 4, size) == drive.log(CHUNKS, 4, 1 << 31) == INVALID_FIELD
    assert drive.log(CHUNKS, 4, 0, nsid=2) == drive.log(CHUNKS, 4, 2) == INVALID_FIELD


def test_feedback(drive: Drive) -> None:
    get = {"cdw10": FEEDBACK, "nsid": 1}
    assert drive.admin(0x0A, **get) == (0, 0)
    assert drive.admin(0x09, cdw11=3, **get)[0] == 0
    assert drive.admin(0x0A, **get) == (0, 3)
    assert drive.admin(0x0A, cdw10=FEEDBACK | 1 << 8, nsid=1) == (0, 0)         # its default
    assert drive.admin(0x0A, cdw10=FEEDBACK | 3 << 8, nsid=1) == (0, 6)         # changeable, of the namespace
    assert drive.admin(0x09, cdw11=4, **get)[0] == INVALID_FIELD
    assert drive.admin(0x09, cdw10=FEEDBACK | 1 << 31, nsid=1)[0] == 0x10D
    assert drive.admin(0x0A, cdw10=FEEDBACK, nsid=2)[0] == INVALID_FIELD
    assert drive.admin(0x0A, **get) == (0, 3)


def test_notifications(drive: Drive) -> None:
    """A chunk that fails is told of, the newest first; more than the log holds are counted."""
    assert drive.log(NOTES, 4096) == bytes(4096)
    assert drive.fault(0x16, addr(1, 1, 2, 7)) == 0 and drive.fault(0x15, addr(2)) == 0
    log = drive.log(NOTES, 192)
    assert isinstance(log, bytes)
    assert struct.unpack_from("<QQIHB", log, 0) == (2, addr(2), 1, 1 << 4, 2)
    assert struct.unpack_from("<QQIHB", log, 64) == (1, addr(1, 1, 2), 1, 1 << 3, 2)
    assert log[128:] == bytes(64)
    for _ in range(100):
        assert drive.fault(0x15, addr(2)) == 0
    log = drive.log(NOTES, 4096)
    assert isinstance(log, bytes)
    assert [struct.unpack_from("<Q", log, at)[0] for at in range(0, 4096, 64)] == list(range(102, 38, -1))
    assert drive.log(NOTES, 4, 4096) == INVALID_FIELD


def test_other_drives_have_none_of_it(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    with booted(emulator_binary, bios, *device(tmp_path / "media")) as drive:
        assert [drive.vector(op, [0, 1])[0] for op in (RESET, VWRITE, VREAD, VCOPY)] == [INVALID_OPCODE] * 4
        assert drive.admin(GEOMETRY, nsid=1, prp=DATA)[0] == 0x0B
        assert drive.log(CHUNKS, 32) == drive.log(NOTES, 64) == INVALID_FIELD
        assert drive.admin(0x0A, cdw10=FEEDBACK, nsid=1)[0] == INVALID_FIELD


BAD = [
    ({"zoned": "on", "flash.size": "4G"}, "needs zoned=off"),
    ({"flash.personality": "disk"}, "there is no 'disk'"),
    ({"flash.personality": ""}, "needs zoned=on"),
    ({"flash.ws_min": "0"}, "multiple of flash.ws_min"),
    ({"flash.ws_opt": "3"}, "multiple of flash.ws_min"),
    ({"flash.ws_opt": "66"}, "at most 64"),
    ({"flash.ws_min": "3", "flash.ws_opt": "6", "flash.buffer": "120K"}, "must divide a program unit"),
    ({"flash.chunk": "20K"}, "multiple of flash.ws_opt"),
    ({"flash.size": "192K"}, "shared evenly"),
    ({"flash.size": "5764K"}, "multiple of the zone size"),
    ({"flash.buffer": "100K"}, "multiple of flash.ws_min"),
]


@pytest.mark.parametrize("settings,word", BAD, ids=[w for _, w in BAD])
def test_bad_properties(emulator_binary: Path, bios: Path, tmp_path: Path, settings: dict[str, str], word: str,
                        capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((ValueError, OSError)):
        Monitor(emulator_binary, bios, *device(tmp_path / "media", **OCSSD | settings))
    assert word in capfd.readouterr().err


def test_properties_of_a_running_drive(drive: Drive) -> None:
    assert "multiple of flash.ws_min" in drive.set("buffer", 4096)["error"]["desc"]
    assert drive.get("buffer") == 1 << 20
    assert "cannot change" in drive.set("ws_min", 1)["error"]["desc"]


# Reads and writes.


def test_write_and_read(drive: Drive) -> None:
    """A list over several chunks; a list of one; the range of a scalar command: all see the same."""
    where = run(addr(), 4) + run(addr(2, 1, 4), 8) + run(addr(1, 0, 3), 2)
    assert drive.put(where) == (0, 0)
    mixed = random.Random(1).sample(where, len(where))
    assert drive.look(mixed) == [content(a) for a in mixed]
    assert all(drive.look([a]) == [content(a)] for a in where)
    assert drive.scalar(READ, addr(2, 1, 4), 8, mptr=OOB) == 0
    assert drive.found(8) == [content(a) for a in run(addr(2, 1, 4), 8)]
    assert [drive.chunk(*c) for c in ((0, 0, 0), (2, 1, 4), (1, 0, 3), (1, 0, 2))] == [
        (OPEN, 4), (OPEN, 8), (OPEN, 2), (FREE, 0)]


def test_full_chunk_and_list_of_all(drive: Drive) -> None:
    """64 sectors, in stripes over four chunks, and one chunk to its end."""
    stripes = [addr(g, p, 1, 4 * k + i) for k in range(4) for g in (0, 1) for p in (0, 1) for i in range(4)]
    assert len(stripes) == MAX and drive.put(stripes) == (0, 0)
    assert drive.look(stripes) == [content(a) for a in stripes]
    assert [drive.chunk(g, p, 1) for g in (0, 1) for p in (0, 1)] == [(OPEN, 16)] * 4
    assert drive.put(run(addr(), SECTORS)) == (0, 0)
    assert drive.chunk() == (CLOSED, SECTORS)
    assert drive.put(run(addr(), 2)) == (WRITE_FAULT, 3)


def test_scalar_write(drive: Drive) -> None:
    drive.store(DATA, b"".join(content(a)[0] for a in run(addr(1), 4)))
    assert drive.scalar(WRITE, addr(1), 4) == 0
    assert drive.look(run(addr(1), 4)) == [(content(a)[0], bytes(META)) for a in run(addr(1), 4)]
    assert drive.scalar(WRITE, addr(1), 2) == drive.scalar(WRITE, addr(1, sector=6), 2) == OUT_OF_ORDER
    assert drive.scalar(WRITE, addr(1, sector=4), 1) == INVALID_FIELD
    assert drive.scalar(WRITE, addr(1, sector=4), 46) == WRITE_FAULT            # beyond the chunk
    assert drive.scalar(WRITE, addr(1, sector=4), 44) == 0 and drive.chunk(1) == (CLOSED, SECTORS)
    assert drive.scalar(WRITE, addr(1), 2) == WRITE_FAULT
    assert drive.scalar(WRITE, 1 << 12, 2) == WRITE_FAULT                       # beyond all chunks
    assert drive.scalar(READ, 1 << 12, 2) == 0x80                               # LBA out of range


def test_what_was_never_written(drive: Drive) -> None:
    """Holes, free chunks, beyond the write pointer: zeroes, or an error where the host wants one."""
    assert drive.put(run(addr(), 2)) == (0, 0)
    where = [addr(), *HOLES, addr(1, 1, 1), addr(sector=2), addr(sector=1)]
    full = [0, len(where) - 1]
    assert drive.look(where) == [content(a) if i in full else NOTHING for i, a in enumerate(where)]
    drive.store(DATA, b"\xaa" * 8 * 4096)
    assert drive.scalar(READ, addr(sector=44), 8) == 0 and drive.load(DATA, 8 * 4096) == bytes(8 * 4096)
    assert drive.admin(0x09, cdw10=5, cdw11=1 << 16, nsid=1)[0] == 0
    assert drive.vector(VREAD, where) == (DULB, 0xFF << 1)
    assert drive.load(DATA, 4096) == content(addr())[0]
    assert drive.vector(VREAD, where[:1]) == (0, 0)
    assert drive.scalar(READ, addr(sector=1), 2) == DULB
    assert drive.scalar(READ, addr(), 2) == 0


def test_kept_units(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """mw_cunits: the end of an open chunk cannot be read until more is written, or it is full."""
    with boot(emulator_binary, bios, tmp_path / "media", **{"flash.mw_cunits": "8"}) as drive:
        for wp in range(2, SECTORS + 1, 2):
            assert drive.put(run(addr(sector=wp - 2), 2)) == (0, 0)
            there = wp if wp == SECTORS else max(wp - 8, 0)
            assert drive.look(run(addr(), wp)) == [content(a) if a < there else NOTHING for a in range(wp)]


def test_refused_writes(drive: Drive) -> None:
    """The first wrong run gives the status, each one its bits, and nothing is stored."""
    good = run(addr(0, 1), 4)
    assert drive.put(run(addr(), 4)) == (0, 0)
    for bad, status in (
            ([addr(), addr() + 1], OUT_OF_ORDER),                               # behind the write pointer
            (run(addr(sector=6), 2), OUT_OF_ORDER),                             # before it
            (run(addr(sector=46), 4), OUT_OF_ORDER),
            ([addr(sector=4)], INVALID_FIELD),                                  # less than ws_min
            (run(addr(sector=4), 3), INVALID_FIELD),
            *(([hole, hole + 1], WRITE_FAULT) for hole in HOLES)):
        for first in (True, False):
            where = bad + good if first else good + bad
            bits = (1 << len(bad)) - 1
            assert drive.put(where) == (status, bits if first else bits << 4), (bad, first)
    assert drive.put([addr(sector=5), addr(sector=4)])[0] == OUT_OF_ORDER
    assert drive.put([addr(sector=4), addr(sector=4)])[0] == INVALID_FIELD
    assert drive.put([*run(addr(sector=4), 2), *run(addr(sector=4), 2)]) == (OUT_OF_ORDER, 0b1100)
    assert drive.put([addr(sector=4), *good, addr(sector=5)]) == (INVALID_FIELD, 0b100001)
    assert (drive.chunk(), drive.chunk(0, 1)) == ((OPEN, 4), (FREE, 0))
    assert drive.put([*run(addr(sector=4), 2), *good, *run(addr(sector=6), 2)]) == (0, 0)
    assert drive.chunk() == (OPEN, 8) and drive.stats()["commands"]["write"] == 4


def test_two_writes_to_a_chunk_at_once(drive: Drive) -> None:
    drive.store(DATA, b"".join(content(a)[0] for a in run(addr(), 2)))
    same = [drive.start(VWRITE, run(addr(), 2)), drive.start(VWRITE, run(addr(), 2)),
            drive.start(VWRITE, run(addr(sector=2), 2))]
    drive.step(10_000_000)
    ended = {cid: status for cid, status, _ in drive.ended(1)}
    assert [ended[cid] for cid in same] == [0, OUT_OF_ORDER, 0] and drive.chunk() == (OPEN, 4)


def test_reset_under_a_waiting_write(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A write that waits for the buffer fails when its chunk is reset; another chunk's does not."""
    with boot(emulator_binary, bios, tmp_path / "media", **{"flash.buffer": "16K"}) as drive:
        fill = drive.start(VWRITE, run(addr(), 4))
        wait = drive.start(VWRITE, run(addr(sector=4), 4))
        other = drive.start(VWRITE, run(addr(1), 4))
        reset = drive.start(RESET, [addr()])
        drive.step(20_000_000)
        ended = {cid: (status, bits) for cid, status, bits in drive.ended(1)}
        assert ended == {fill: (0, 0), wait: (OUT_OF_ORDER, 15), other: (0, 0), reset: (0, 0)}
        assert (drive.chunk(), drive.chunk(1)) == ((FREE, 0), (OPEN, 4))
        assert drive.put(run(addr(), 2)) == (0, 0)


def test_copy(drive: Drive) -> None:
    source = [addr(sector=3), addr(1, 1, 0, 2), addr(), addr(sector=1)]
    target = [*run(addr(2, 0, 1), 2), *run(addr(2, 1, 1), 2)]
    assert drive.put(run(addr(), 4)) == drive.put(run(addr(1, 1), 4)) == (0, 0)
    assert drive.vector(VCOPY, source, target) == (0, 0)
    assert drive.look(target) == [content(a) for a in source]
    assert drive.vector(VCOPY, source, target) == (OUT_OF_ORDER, 15)
    assert drive.vector(VCOPY, [addr(4 - 1), addr()], run(addr(0, 1), 2)) == (0, 0)     # a hole is zeroes
    assert drive.look(run(addr(0, 1), 2)) == [NOTHING, content(addr())]
    assert drive.fault(0x10, addr(sector=1), 1) == 0
    assert drive.vector(VCOPY, source, run(addr(2, 0, 1, 2), 4)) == (UNREADABLE, 8)
    assert drive.chunk(2, 0, 1) == (OPEN, 2)
    assert drive.vector(VCOPY, source[:2], [addr(5), addr(5) + 1]) == (WRITE_FAULT, 3)
    assert drive.vector(VCOPY, [addr()], [addr(0, 1, 0, 2)]) == (INVALID_FIELD, 1)


# Resets.


def test_reset(drive: Drive) -> None:
    """Open and full chunks, several at once, by any of their sectors; what they hold is gone."""
    assert drive.put(run(addr(), SECTORS)) == drive.put(run(addr(1), 2)) == (0, 0)
    drive.step(100_000_000)
    assert drive.vector(RESET, [addr(sector=7), addr(1), addr(2, 1, 4)], mptr=OOB) == (0, 0)
    entries = drive.load(OOB, 96)
    assert [struct.unpack_from("<BBB5xQQQ", entries, 32 * i) for i in range(3)] == [
        (FREE, 1, 1, addr(), SECTORS, 0), (FREE, 1, 1, addr(1), SECTORS, 0), (FREE, 1, 1, addr(2, 1, 4), SECTORS, 0)]
    assert drive.look(run(addr(), 4)) == [NOTHING] * 4
    assert drive.put(run(addr(), 4), seed=2) == (0, 0) and drive.look([addr()]) == [content(addr(), 2)]
    assert drive.stats()["erases"] == 1         # the open one was in the buffer yet, the free one empty


def test_refused_resets(drive: Drive) -> None:
    assert drive.fault(0x16, addr(1)) == 0
    assert drive.put(run(addr(), 2)) == (0, 0)
    for hole in HOLES:
        assert drive.vector(RESET, [addr(), hole]) == (INVALID_RESET, 2)
        assert drive.vector(RESET, [hole]) == (INVALID_RESET, 1)
    assert drive.vector(RESET, [addr(1), addr()]) == (OFFLINE_CHUNK, 1)
    assert drive.chunk() == (OPEN, 2)           # all of it, or nothing


def test_deallocate(drive: Drive) -> None:
    def dsm(*ranges: tuple[int, int], attributes: int = 4) -> int:
        drive.store(DATA, b"".join(struct.pack("<IIQ", 0, n, at) for at, n in ranges))
        return drive.io(DSM, prp=DATA, cdw10=len(ranges) - 1, cdw11=attributes)[0]

    assert drive.put([*run(addr(), 2), *run(addr(1), 2)]) == (0, 0)
    assert dsm((addr(), SECTORS), (addr(1), SECTORS - 1)) == INVALID_RESET
    assert dsm((addr(sector=1), SECTORS)) == dsm((addr(3), SECTORS)) == INVALID_RESET
    assert dsm((addr(), SECTORS), attributes=0) == 0 and drive.chunk() == (OPEN, 2)
    assert dsm((addr(), SECTORS), (addr(1), SECTORS)) == 0
    assert (drive.chunk(), drive.chunk(1)) == ((FREE, 0), (FREE, 0))
    assert drive.io(DSM, prp=NOWHERE, cdw11=4)[0] == TRANSFER


# Faults.


def test_failed_chunks(drive: Drive) -> None:
    """Closed early: what it holds stays, until it is reset. Offline: for good."""
    assert drive.put([*run(addr(), 4), *run(addr(1), 4)]) == (0, 0)
    assert drive.fault(0x15, addr()) == 0 and drive.fault(0x16, addr(1, sector=3)) == 0
    assert drive.chunk() == (CLOSED, 4) and drive.chunk(1) == (OFFLINE, (1 << 64) - 1)
    assert drive.put(run(addr(sector=4), 2)) == drive.put(run(addr(1, sector=4), 2)) == (WRITE_FAULT, 3)
    assert drive.look([addr(), addr(1)]) == [content(addr()), NOTHING]
    assert drive.vector(RESET, [addr()]) == (0, 0) and drive.chunk() == (FREE, 0)
    assert drive.fault(0x15, addr(1)) == 0 and drive.chunk(1)[0] == OFFLINE     # it stays so
    assert drive.fault(0x15, addr(3)) == drive.fault(0x16, addr(sector=48)) == INVALID_FIELD


def test_read_and_write_errors(drive: Drive) -> None:
    """Of a list, the sectors that fail; the others come, and a refused write stores nothing."""
    where = run(addr(), 8)
    assert drive.put(where) == (0, 0)
    assert drive.fault(0x10, addr(sector=2), 3, 6) == 0
    drive.store(DATA, bytes(4096 * 8))
    assert drive.vector(VREAD, where, mptr=OOB) == (UNREADABLE, 0b11100)
    assert [x for i, x in enumerate(drive.found(8)) if i not in (2, 3, 4)] == [
        content(a) for i, a in enumerate(where) if i not in (2, 3, 4)]
    assert drive.scalar(READ, addr(sector=3), 1) == UNREADABLE
    assert drive.fault(0x1F) == 0 and drive.look(where) == [content(a) for a in where]
    assert drive.fault(0x11, addr(1, sector=1), 1, 1) == 0
    assert drive.put([*run(addr(0, 1), 2), *run(addr(1), 4)]) == (WRITE_FAULT, 0b1000)
    assert drive.chunk(0, 1) == drive.chunk(1) == (FREE, 0)
    assert drive.put([*run(addr(0, 1), 2), *run(addr(1), 4)]) == (0, 0)


def test_dropped_completion(drive: Drive) -> None:
    """A list's completion can be lost too, and the driver's abort finds it."""
    assert drive.fault(0x18, 1) == 0
    cid = drive.start(VREAD, run(addr(), 2))
    drive.step(1_000_000_000)
    assert not list(drive.ended(1))
    assert drive.admin(0x08, cdw10=cid << 16 | 1) == (0, 0)
    assert [(c, s) for c, s, _ in drive.ended(1)] == [(cid, 0x07)]
    assert drive.look([addr()]) == [NOTHING]


def test_aborted_lists(drive: Drive) -> None:
    """A list that is aborted while its reads are on their way ends once, as aborted."""
    assert drive.put(run(addr(), 8)) == drive.vector(FLUSH, [0]) == (0, 0)
    for opcode, to in ((VREAD, None), (VCOPY, run(addr(1), 8)), (RESET, None)):
        cid = drive.start(opcode, run(addr(), 8), to)
        assert drive.admin(0x08, cdw10=cid << 16 | 1) == (0, 0)
        drive.step(50_000_000)
        assert [(c, s) for c, s, _ in drive.ended(1)] == [(cid, 0x07)]
    assert (drive.chunk(), drive.chunk(1)) == ((FREE, 0), (FREE, 0))


# Power.


def test_power_cut(drive: Drive) -> None:
    """What was programmed is there, with its metadata; the buffer is not; a torn unit cannot be read."""
    assert drive.put(run(addr(), 8)) == (0, 0)
    drive.step(10_000_000)                      # both units are on flash
    assert drive.put(run(addr(sector=8), 6)) == (0, 0)
    drive.step(500_000)                         # one is on its way, two sectors are in the buffer
    assert drive.fault(1) == 0
    assert [drive.vector(op, [addr(), addr() + 1]) for op in (RESET, VWRITE, VREAD)] == [(POWER, 0)] * 3
    assert drive.fault(0) == 0
    assert drive.chunk() == (OPEN, 12)
    assert drive.look(run(addr(), 8)) == [content(a) for a in run(addr(), 8)]
    assert drive.vector(VREAD, run(addr(sector=6), 6)) == (UNREADABLE, 0b111100)
    assert drive.put(run(addr(sector=12), 2)) == (0, 0)


def test_power_cut_under_commands(drive: Drive) -> None:
    """What is on its way fails as a whole, with each of its bits."""
    assert drive.put(run(addr(), 8)) == drive.vector(FLUSH, [0]) == (0, 0)
    on = [drive.start(VREAD, run(addr(), 4)), drive.start(VWRITE, run(addr(1), 4), cdw12=3 | 1 << 30),
          drive.start(VCOPY, run(addr(), 2), run(addr(2), 2))]
    drive.step(10_000)
    assert drive.fault(1) == 0
    ended = {cid: (status, bits) for cid, status, bits in drive.ended(1)}
    assert [ended[cid] for cid in on] == [(POWER, 15), (POWER, 15), (POWER, 3)]
    assert drive.fault(0) == 0 and drive.chunk(1)[0] in (FREE, OPEN) and drive.chunk(2) == (FREE, 0)


def test_writes_larger_than_the_buffer_and_a_cut(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """They enter piece by piece; write pointers stand at multiples of ws_min whenever the power goes."""
    with boot(emulator_binary, bios, tmp_path / "media", **{"flash.buffer": "24K"}) as drive:
        for i in range(12):
            chunk = EVERY[i]
            drive.start(VWRITE, run(addr(*chunk), 46))
            drive.step(370_000 * i + 1)
            assert drive.fault(1) == 0 and drive.fault(0) == 0
            state, wp = drive.chunk(*chunk)
            assert wp % 2 == 0 and state == (OPEN if wp else FREE)
            assert [status for _, status, _ in drive.ended(1)] == [POWER]
            assert drive.put(run(addr(*chunk, wp), 2)) == (0, 0)


def test_restart(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """State and metadata are in the image."""
    with boot(emulator_binary, bios, tmp_path / "media") as drive:
        assert drive.put([*run(addr(), SECTORS), *run(addr(1), 4), *run(addr(2, 1, 4), 4)]) == (0, 0)
        assert drive.fault(0x16, addr(2)) == drive.fault(0x15, addr(2, 1, 4)) == 0
        assert drive.vector(FLUSH, [0])[0] == 0
    with boot(emulator_binary, bios, tmp_path / "media") as drive:
        assert [drive.chunk(), drive.chunk(1), drive.chunk(2)[0], drive.chunk(2, 1, 4), drive.chunk(2, 1)] == [
            (CLOSED, SECTORS), (OPEN, 4), OFFLINE, (CLOSED, 4), (FREE, 0)]
        where = [*run(addr(), 20), *run(addr(1), 4), *run(addr(2, 1, 4), 4)]
        assert drive.look(where) == [content(a) for a in where]
        assert drive.put(run(addr(1, sector=4), 2)) == (0, 0)


# Bad input.


def test_counts_and_opcodes(drive: Drive) -> None:
    for opcode in (RESET, VWRITE, VREAD, VCOPY):
        assert drive.vector(opcode, run(addr(), 2), cdw12=64) == (INVALID_FIELD, 0)
        assert drive.vector(opcode, run(addr(), 2), cdw12=0xFFFF) == (INVALID_FIELD, 0)
    for opcode in (COMPARE, VERIFY, COPY, WRITE_ZEROES, 0x79, 0x7D, 0x94, 0xFF):
        assert drive.vector(opcode, run(addr(), 2)) == (INVALID_OPCODE, 0)
    assert drive.admin(0x80, nsid=1, cdw10=4)[0] == 0x10A                       # Format: Invalid Format
    assert drive.scalar(READ, (1 << 12) - 1, 2) == 0x80
    assert drive.scalar(READ, 0, 1000) == INVALID_FIELD                         # more than MDTS


def test_bad_pointers(drive: Drive) -> None:
    """Lists, data and metadata where no memory is, or in our own registers: an error, and nothing stored."""
    assert drive.put(run(addr(), 8)) == (0, 0)
    for where in (NOWHERE, BAR + 0x1000, (1 << 64) - 16):
        low, high = where & 0xFFFFFFFF, where >> 32
        for opcode in (RESET, VWRITE, VREAD, VCOPY):
            assert drive.vector(opcode, run(addr(1), 4), cdw10=low, cdw11=high)[0] in (TRANSFER, INVALID_RESET), opcode
        assert drive.vector(VCOPY, run(addr(), 2), run(addr(1), 2), cdw14=low, cdw15=high)[0] == TRANSFER
        assert drive.vector(VWRITE, run(addr(1), 4), mptr=where)[0] == TRANSFER
        assert drive.vector(VREAD, run(addr(), 4), mptr=where)[0] == TRANSFER
    for where in (NOWHERE, BAR + 0x1000):
        assert drive.vector(VWRITE, run(addr(1), 4), prp=where)[0] == TRANSFER
        assert drive.vector(VREAD, run(addr(), 4), prp=where)[0] == TRANSFER
    end = 64 << 20                              # a list that reaches beyond the guest's memory
    drive.store(end - 16, struct.pack("<QQ", addr(1), addr(1) + 1))
    assert drive.vector(VWRITE, run(addr(1), 4), cdw10=end - 16, cdw11=0)[0] == TRANSFER
    assert drive.vector(VREAD, run(addr(), 4), mptr=end - 32)[0] == TRANSFER
    assert drive.chunk(1) == (FREE, 0) and drive.look(run(addr(), 8)) == [content(a) for a in run(addr(), 8)]


@dataclass
class Book:
    """What the drive should hold: written beside it."""

    chunks: dict[int, int] = field(default_factory=dict)           # write pointer, by a chunk's first address
    offline: set[int] = field(default_factory=set)
    held: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)

    def there(self, a: int) -> bool:
        return a >> 12 == 0 and a >> 10 < GROUPS and (a >> 6 & 7) < PER_PU and (a & 63) < SECTORS

    def write(self, addresses: list[int]) -> tuple[int, int]:
        """Status and bits, by the rules again: sector by sector, then by lengths of runs."""
        wps, runs = dict(self.chunks), []
        for i, a in enumerate(addresses):
            both = (self.there(a), self.there(addresses[i - 1]))
            if runs and (both == (False, False) or (both == (True, True) and a == addresses[i - 1] + 1)):
                runs[-1].append(a)
            else:
                runs.append([a])
        status = bits = at = 0
        for part in runs:
            first, wrong = part[0] & ~63, 0
            if not self.there(part[0]) or first in self.offline or self.chunks.get(first, 0) == SECTORS:
                wrong = WRITE_FAULT
            elif part[0] & 63 != wps.get(first, 0):
                wrong = OUT_OF_ORDER
            elif len(part) % 2:
                wrong = INVALID_FIELD
            wps[first] = wps.get(first, 0) + len(part)
            bits |= ((1 << len(part)) - 1) << at if wrong else 0
            status, at = status or wrong, at + len(part)
        if not status:
            self.chunks = wps
        return status, bits


def test_against_a_book(drive: Drive) -> None:
    """Thousands of lists, sensible and not: status, bits, data, metadata and write pointers are as foretold."""
    dice, book = random.Random(26), Book()
    firsts = [addr(*c) for c in EVERY]

    def anything() -> int:
        return dice.choice([dice.choice(HOLES), dice.randrange(1 << 12), dice.getrandbits(64), dice.choice(firsts)])

    def for_writing() -> list[int]:
        where: list[int] = []
        ends = dict(book.chunks)
        for _ in range(dice.randint(1, 4)):
            first = dice.choice(firsts)
            wp, count = ends.get(first, 0), dice.choice([2, 4, 4, 8, 16])
            count = min(count, SECTORS - wp, MAX - len(where))
            ends[first] = wp + count
            where += run(first + wp, count)
        if dice.random() < 0.2 and where:
            where[dice.randrange(len(where))] = anything()
        return where or [anything()]

    for step in range(int(os.environ.get("MTFTL_FUZZ", "1500"))):
        do = dice.random()
        if do < 0.45:
            where = for_writing()
            want = book.write(where)
            assert drive.put(where, seed=step) == want, (step, where)
            if not want[0]:
                book.held |= {a: content(a, step) for a in where}
        elif do < 0.75:
            known = list(book.held)
            where = [dice.choice(known) if known and dice.random() < 0.8 else anything()
                     for _ in range(dice.choice([1, 2, 7, 64]))]
            assert drive.look(where) == [book.held.get(a, NOTHING) for a in where], (step, where)
        elif do < 0.85:
            source = [dice.choice(list(book.held) or HOLES) for _ in range(dice.choice([2, 4]))]
            target = for_writing()[:len(source)]
            if len(target) == len(source):
                want = book.write(target)
                assert drive.vector(VCOPY, source, target) == want, (step, source, target)
                if not want[0]:
                    book.held |= dict(zip(target, [book.held.get(a, NOTHING) for a in source], strict=True))
        elif do < 0.98:
            where = [dice.choice(firsts) if dice.random() < 0.95 else anything() for _ in range(dice.randint(1, 3))]
            wrong = [INVALID_RESET if not book.there(a) else OFFLINE_CHUNK if a & ~63 in book.offline else 0
                     for a in where]
            status = next((w for w in wrong if w), 0)
            assert drive.vector(RESET, where) == (status, sum(1 << i for i, w in enumerate(wrong) if w)), (step, where)
            for first in {a & ~63 for a in where} if not status else ():
                book.chunks[first] = 0
                book.held = {a: x for a, x in book.held.items() if a & ~63 != first}
        elif len(book.offline) < 5:
            first = dice.choice(firsts)
            assert drive.fault(0x16, first) == 0
            book.offline.add(first)
            book.held = {a: x for a, x in book.held.items() if a & ~63 != first}
        first = dice.choice(firsts)
        wp = book.chunks.get(first, 0)
        assert drive.chunk(first >> 10, first >> 9 & 1, first >> 6 & 7) == (
            (OFFLINE, (1 << 64) - 1) if first in book.offline else
            (FREE if not wp else CLOSED if wp == SECTORS else OPEN, wp)), step


def test_garbage(drive: Drive) -> None:
    """Commands of random words, several at once, with cuts and aborts between: the drive lives, and still works."""
    dice = random.Random(7)
    places = [LIST, TO, DATA, OOB, NOWHERE, BAR, BAR + 0x1000, (64 << 20) - 8, 0, (1 << 64) - 8]
    for _ in range(int(os.environ.get("MTFTL_FUZZ", "1500")) // 10):
        drive.store(LIST, struct.pack("<64Q", *(dice.choice([dice.randrange(1 << 12), dice.getrandbits(64),
                                                             addr(*dice.choice(EVERY))]) for _ in range(64))))
        cids = []
        for _ in range(dice.randint(1, 12)):
            at, to = dice.choice(places), dice.choice(places)
            cids.append(drive.submit(
                1, dice.choice([READ, WRITE, DSM, RESET, VWRITE, VREAD, VCOPY, dice.getrandbits(8)]),
                nsid=1, prp=dice.choice(places), prp2=dice.choice(places), mptr=dice.choice([0, *places]),
                cdw10=at & 0xFFFFFFFF, cdw11=dice.choice([at >> 32, dice.getrandbits(32), 4]),
                cdw12=dice.choice([dice.randrange(64), dice.getrandbits(32)]), cdw13=dice.getrandbits(32),
                cdw14=to & 0xFFFFFFFF, cdw15=to >> 32))
        drive.step(dice.randrange(2_000_000))
        if dice.random() < 0.2:
            drive.admin(0x08, cdw10=dice.choice(cids) << 16 | 1)
        if dice.random() < 0.2:
            assert drive.fault(1) == 0 and drive.fault(0) == 0
        drive.step(100_000_000)
        list(drive.ended(1))
    for chunk in EVERY:
        assert drive.vector(RESET, [addr(*chunk)]) == (0, 0)
        assert drive.put(run(addr(*chunk), 4)) == (0, 0) and drive.look([addr(*chunk, 3)]) == [content(addr(*chunk, 3))]


# Time: the closed forms of docs/emulator/model.md.

# A unit's transfer takes 40 us, a sector's 10.
EXACT = OCSSD | {"flash.channel_rate": "409600000", "flash.buffer": "4M"}
PROGRAM, CELL, ERASE, UNIT, SECTOR = 1_000_000, 50_000, 3_000_000, 40_000, 10_000


@pytest.fixture
def clocked(emulator_binary: Path, bios: Path, tmp_path: Path) -> Iterator[Drive]:
    with boot(emulator_binary, bios, tmp_path / "media", **EXACT) as running:
        yield running


def ends(drive: Drive, count: int, step: int = 1000) -> list[int]:
    """When the next commands end, in ns from now, in steps."""
    got: list[int] = []
    for now in itertools.count(step, step):
        drive.step(step)
        got += [now for _, status, _ in drive.ended(1) if status == 0]
        if len(got) >= count:
            return got
        assert now < 1_000_000_000
    raise AssertionError


def test_time_of_vector_writes_over_all_pus(clocked: Drive) -> None:
    """Two PUs of a channel share its bus; the programs overlap."""
    where = [a for g in range(GROUPS) for p in range(PUS) for a in run(addr(g, p), 4)]
    clocked.start(VWRITE, where, cdw12=len(where) - 1 | 1 << 30)
    assert ends(clocked, 1) == [2 * UNIT + PROGRAM]
    more = [a for g in range(GROUPS) for p in range(PUS) for a in run(addr(g, p, 0, 4), 8)]
    clocked.start(VWRITE, more, cdw12=len(more) - 1 | 1 << 30)
    assert ends(clocked, 1) == [2 * (UNIT + PROGRAM) + UNIT]


def test_time_of_reads_of_one_pu(clocked: Drive) -> None:
    """A cell read and a transfer each, one after the other; of two PUs on two channels at once."""
    assert clocked.put(run(addr(), 16)) == clocked.put(run(addr(1), 16)) == (0, 0)
    assert clocked.vector(FLUSH, [0])[0] == 0
    one = [addr(sector=s) for s in (0, 4, 8, 12)]       # four pages
    clocked.start(VREAD, one)
    assert ends(clocked, 1) == [4 * (CELL + SECTOR)]
    clocked.start(VREAD, one + [addr(1, sector=s) for s in (0, 4, 8, 12)])
    assert ends(clocked, 1) == [4 * (CELL + SECTOR)]
    clocked.start(VREAD, run(addr(), 4))                # one page
    assert ends(clocked, 1) == [CELL + 4 * SECTOR]


def test_time_of_an_erase_behind_a_program(clocked: Drive) -> None:
    assert clocked.put(run(addr(), 4)) == clocked.vector(FLUSH, [0]) == (0, 0)
    clocked.start(VWRITE, run(addr(chunk=1), 4))        # the same die
    clocked.start(RESET, [addr()])
    assert ends(clocked, 2)[-1] == UNIT + PROGRAM + ERASE
