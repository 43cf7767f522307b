# SPDX-License-Identifier: GPL-2.0-or-later
"""What databases ask of a drive: atomic writes and a protected buffer, with power cuts, and how worn it is."""

import json
import math
import os
import random
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from bare import DATA, FLUSH, READ, WRITE, Driver, device, driver
from shared import BOX, HERE, LOCKSTEP, OCSSD, SMALL, compile_c, refuses

INVALID_FIELD, POWER, OFFLINE = 0x02, 0xC0, 0x1BB
UNIT = 16                       # blocks of a program: 64 KiB
# 2 dies, erase blocks of 512 KiB on both: a small drive that collects all the time.
PAGES = BOX | {"flash.planes": "2", "flash.page": "16K", "flash.program_pages": "2", "flash.block_pages": "8",
               "flash.size": "16M", "flash.buffer": "512K", "flash.spare": "50", "flash.program_ns": "700000"}
SEEN = (16 << 20) // 4096 * 100 // 150 * 4096           # bytes that the host sees of it
LISTS, BACK = 0x700000, 0x900000
CUTS = int(os.environ.get("MTFTL_DATABASE_CUTS", 40))
AREA = 1024                     # logical blocks that are written
VWC, AWUN, AWUPF = 525, 526, 528


def box(media: Path, *controller: str, **settings: str) -> list[str]:
    args = device(media, **PAGES | settings)
    return [args[0], ",".join([args[1], *controller]), *args[2:]]


def identify(drive: Driver, cns: int) -> bytes:
    assert drive.admin(6, nsid=0 if cns else 1, prp=DATA, cdw10=cns)[0] == 0
    return drive.load(DATA, 4096)


def log(drive: Driver, page: int, cdw11: int = 0) -> bytes:
    assert drive.admin(2, nsid=0xFFFFFFFF, prp=DATA, cdw10=page | 127 << 16, cdw11=cdw11)[0] == 0
    return drive.load(DATA, 512)


class Writer:
    """Writes of numbered versions, as many under way as the caller likes, and what may be found after a cut."""

    def __init__(self, drive: Driver, seed: int) -> None:
        self.drive, self.random = drive, random.Random(seed)
        self.value = [0] * AREA                         # that was found after the last cut
        self.flying: dict[int, tuple[int, int, int]] = {}
        self.sent: list[tuple[int, int, int]] = []      # since the last cut: first block, blocks, version
        self.acked: list[tuple[int, int, int]] = []
        self.version = 0
        for slot in range(64):                          # a page for each slot, which all blocks of a write repeat
            drive.store(LISTS + 4096 * slot, struct.pack(f"<{UNIT - 1}Q", *[DATA + 4096 * slot] * (UNIT - 1)))
        drive.store(LISTS + 4096 * 64, struct.pack("<511Q", *(BACK + 4096 * i for i in range(1, 512))))

    def write(self, lba: int, blocks: int) -> None:
        self.version += 1
        at = self.version % 64
        self.drive.store(DATA + 4096 * at, struct.pack("<Q", self.version))
        second = LISTS + 4096 * at if blocks > 2 else DATA + 4096 * at
        cid = self.drive.submit(1, WRITE, nsid=1, prp=DATA + 4096 * at, prp2=second, cdw10=lba, cdw12=blocks - 1)
        self.flying[cid] = (lba, blocks, self.version)
        self.sent.append(self.flying[cid])

    def any(self) -> None:
        blocks = self.random.choice((1, 2, 4, UNIT, UNIT, UNIT))
        self.write(self.random.randrange(AREA - blocks), blocks)

    def reap(self) -> None:
        for cid, status, _ in self.drive.ended(1):
            sent = self.flying.pop(cid)
            if not status:
                self.acked.append(sent)

    def run(self) -> None:
        """Some writes, at most 16 at a time, then the power goes and comes back."""
        for _ in range(self.random.randrange(4, 48)):
            self.any()
            while True:
                self.reap()
                if len(self.flying) < self.random.randrange(1, 17):
                    break
                self.drive.step(self.random.randrange(200_000))
        self.drive.step(self.random.randrange(1_500_000))
        self.reap()
        assert self.drive.admin(POWER, nsid=1, cdw10=1)[0] == 0
        for _, status, _ in self.drive.ended(1):
            assert status
        self.flying.clear()
        assert self.drive.admin(POWER, nsid=1, cdw10=0)[0] == 0

    def found(self) -> list[int]:
        values = []
        for lba in range(0, AREA, 128):
            assert self.drive.io(READ, prp=BACK, prp2=LISTS + 4096 * 64, cdw10=lba, cdw12=127)[0] == 0
            values += [struct.unpack_from("<Q", self.drive.load(BACK + 4096 * i, 8))[0] for i in range(128)]
        return values

    def check(self) -> tuple[int, int]:
        """Writes that a cut tore, and acknowledged ones of which it lost a block."""
        values, torn, lost = self.found(), 0, 0
        for lba, blocks, version in self.sent:
            seen = values[lba:lba + blocks]
            torn += version in seen and min(seen) < version
        for lba, blocks, version in self.acked:
            lost += min(values[lba:lba + blocks]) < version
        known = {(lba + i, version) for lba, blocks, version in self.sent for i in range(blocks)}
        assert all(value == old or (lba, value) in known
                   for lba, (value, old) in enumerate(zip(values, self.value, strict=True)))
        self.value, self.sent, self.acked = values, [], []
        return torn, lost


def cuts(drive: Driver, seed: int, count: int) -> Iterator[tuple[int, int]]:
    writer = Writer(drive, seed)
    for _ in range(count):
        writer.run()
        yield writer.check()


# Atomic writes.


PROMISES = [
    ("controller", ["atomic.awun=15", "atomic.awupf=15"], {}),
    ("namespace", [], {"atomic.nawun": "15", "atomic.nawupf": "15"}),
    ("protected", ["atomic.awun=15", "atomic.awupf=15"], {"flash.plp": "on"}),
    ("dies", ["atomic.awun=15", "atomic.awupf=15"], {"flash.zone_dies": "1"}),
    ("heat", ["atomic.awun=15", "atomic.awupf=15"], {"flash.hot_writes": "on", "flash.hot_cold": "off"}),
]


@pytest.mark.parametrize("controller,settings", [x[1:] for x in PROMISES], ids=[x[0] for x in PROMISES])
def test_no_cut_tears_an_atomic_write(emulator_binary: Path, bios: Path, tmp_path: Path, controller: list[str],
                                      settings: dict[str, str]) -> None:
    """Up to 64 KiB at any block, 16 at a time; MTFTL_DATABASE_CUTS asks for more cuts."""
    with driver(emulator_binary, bios, *box(tmp_path / "media", *controller, **settings)) as drive:
        assert [torn for torn, _ in cuts(drive, 1, CUTS)] == [0] * CUTS
        assert drive.stats()["ftl"]["victims"] > CUTS / 4


def test_a_cut_tears_other_writes(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """The same without the promise, which is what the test above would see."""
    with driver(emulator_binary, bios, *box(tmp_path / "media")) as drive:
        assert sum(torn for torn, _ in cuts(drive, 1, 40)) > 0


def test_a_boundary(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A write across a boundary may be torn, and so is not kept together: it begins in a unit that is half full."""
    settings = {"atomic.nawun": "15", "atomic.nawupf": "15", "atomic.nabsn": "15", "atomic.nabspf": "15",
                "atomic.nabo": "4"}
    with driver(emulator_binary, bios, *box(tmp_path / "media", **settings)) as drive:
        writer = Writer(drive, 1)
        for lba, padded in ((4, 0), (20, 0), (100, 1), (124, 1), (132, 2)):
            writer.write(lba, 8 if lba == 100 else UNIT)
            drive.step(10_000_000)
            writer.reap()
            assert not writer.flying and drive.stats()["programs_padded"] == (0 if padded == 1 else padded // 2), lba
            if lba == 100:
                assert drive.stats()["programs_full"] == 2
            if lba == 124:                              # 8 of its blocks fill the unit
                assert drive.stats()["programs_full"] == 3


def test_what_is_announced(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    with driver(emulator_binary, bios, *box(tmp_path / "media", "atomic.awun=7", "atomic.awupf=3", **{
            "atomic.nawun": "15", "atomic.nawupf": "14", "atomic.nabsn": "63", "atomic.nabspf": "31",
            "atomic.nabo": "8"})) as drive:
        assert struct.unpack_from("<HH", identify(drive, 1), AWUN) == (7, 3)
        namespace = identify(drive, 0)
        assert namespace[24] & 2 and struct.unpack_from("<HHHHHH", namespace, 34) == (15, 14, 0, 63, 8, 31)
    with driver(emulator_binary, bios, *box(tmp_path / "media")) as drive:
        namespace = identify(drive, 0)
        assert not namespace[24] & 2 and namespace[34:46] == bytes(12)


REFUSED = [
    (["atomic.awun=16", "atomic.awupf=16"], {}, "more than 16 blocks, but atomic.awupf is 16: expected at most 15"),
    ([], {"atomic.nawun": "31", "atomic.nawupf": "31"}, "but atomic.nawupf is 31: expected at most 15"),
    (["atomic.awun=1", "atomic.awupf=1"], {"flash.mapping": "fast"}, "atomic.awupf is 1: expected 0"),
    (["atomic.awun=1", "atomic.awupf=1"], {"flash.mapping": "dftl"}, "atomic.awupf is 1: expected 0"),
    ([], {"atomic.nawun": "1", "atomic.nawupf": "2"}, "atomic.nawupf is 2: expected at most atomic.nawun (1)"),
    ([], {"atomic.nawun": "7", "atomic.nabsn": "3"}, "atomic.nabsn is 3: expected 0, or at least atomic.nawun (7)"),
    ([], {"atomic.nawun": "7", "atomic.nawupf": "7", "atomic.nabspf": "3"}, "atomic.nabspf is 3: expected 0"),
    ([], {"atomic.nawun": "7", "atomic.nabo": "1"}, "atomic.nabo is 1: expected at most"),
    (["atomic.awun=7"], {"atomic.nawun": "3"}, "atomic.nawun is 3: expected 0, or at least atomic.awun (7)"),
    (["atomic.awun=7", "atomic.awupf=7"], {"atomic.nawun": "7", "atomic.nawupf": "3"},
     "atomic.nawupf is 3: expected at least atomic.awupf (7)"),
]


@pytest.mark.parametrize("controller,settings,why", REFUSED, ids=[x[2] for x in REFUSED])
def test_promises_that_cannot_be_kept(emulator_binary: Path, bios: Path, tmp_path: Path, controller: list[str],
                                      settings: dict[str, str], why: str) -> None:
    assert why in refuses(emulator_binary, bios, box(tmp_path / "media", *controller, **settings))


# A drive that collects little; its program unit is 64 KiB, too.
LARGE = PAGES | {"flash.size": "768M", "flash.block_pages": "64", "flash.buffer": "1M"}
FILE_SYSTEMS = {"ext4": "mkfs.ext4 -q -O bigalloc -C 65536", "xfs": "mkfs.xfs -q"}
CUT_AND_CHECK = r"""set -e
    {make} /dev/nvme0n1; mount /dev/nvme0n1 /mnt
    head -c 4259840 /dev/zero >/mnt/slots; sync
    for delay in 20 23 26 29 32 35; do
        nvme admin-passthru /dev/nvme0 --opcode=0xc0 --namespace-id=1 --cdw10=1 --cdw11=$((delay * 1000100)) >/dev/null
        ./atomic write /mnt/slots {how}
        umount -f /mnt || umount -l /mnt
        nvme admin-passthru /dev/nvme0 --opcode=0xc0 --namespace-id=1 --cdw10=0 >/dev/null
        mount /dev/nvme0n1 /mnt; ./atomic check /mnt/slots
    done"""


@pytest.mark.parametrize("kind", FILE_SYSTEMS)
def test_atomic_writes_of_a_file_system(lab_run, tmp_path: Path, kind: str) -> None:
    """64 KiB by RWF_ATOMIC, and six cuts: no slot of the file holds parts of two writes."""
    program = compile_c(tmp_path / "atomic", "-static", HERE / "guest/atomic.c")
    device = LARGE | {"atomic.nawun": "15", "atomic.nawupf": "15"}
    result = lab_run("cat /sys/block/nvme0n1/queue/atomic_write_unit_max_bytes\n" +
                     CUT_AND_CHECK.format(make=FILE_SYSTEMS[kind], how=""), profile="dram", device=device,
                     kernel="current", push=[program], **LOCKSTEP)
    assert result.status == 0, result.output + result.console
    assert result.output.split()[0] == "65536"
    assert result.output.count("torn 0") == 6, result.output
    assert min(map(int, re.findall(r"written (\d+)", result.output))) > 8, result.output


def test_other_writes_of_a_file_system_are_torn(lab_run, tmp_path: Path) -> None:
    program = compile_c(tmp_path / "atomic", "-static", HERE / "guest/atomic.c")
    result = lab_run(CUT_AND_CHECK.format(make=FILE_SYSTEMS["ext4"], how="plain"), profile="dram", device=LARGE,
                     kernel="current", push=[program], **LOCKSTEP)
    assert result.status == 0 and result.output.count("torn") == 6, result.output + result.console
    assert result.output.count("torn 0") < 6


# Power-loss protection.


@pytest.mark.parametrize("mapping", ["page", "dftl", "bast", "fast"])
def test_a_cut_loses_nothing_that_was_acknowledged(emulator_binary: Path, bios: Path, tmp_path: Path,
                                                   mapping: str) -> None:
    """Without a flush."""
    settings = {"flash.plp": "on", "flash.mapping": mapping, "flash.log_blocks": "4"}
    with driver(emulator_binary, bios, *box(tmp_path / "media", **settings)) as drive:
        assert [lost for _, lost in cuts(drive, 2, CUTS)] == [0] * CUTS
        assert drive.stats()["lost_bytes"] == 0 and drive.stats()["programs_full"] > CUTS


def test_a_cut_loses_an_unprotected_buffer(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    with driver(emulator_binary, bios, *box(tmp_path / "media")) as drive:
        assert sum(lost for _, lost in cuts(drive, 2, 10)) > 0 and drive.stats()["lost_bytes"] > 0


def test_a_killed_emulator_keeps_the_buffer(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    args = box(tmp_path / "media", **{"flash.plp": "on"})
    with driver(emulator_binary, bios, *args) as drive:
        for lba in range(9):
            assert drive.write(lba) == 0
        assert drive.stats()["programmed_bytes"] == 0
    with driver(emulator_binary, bios, *args) as drive:
        assert [drive.read(lba) for lba in range(10)] == [0x61] * 9 + [0]


def test_zones_of_a_protected_drive(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """The write pointer stands behind all that was acknowledged, and no block is an error."""
    args = device(tmp_path / "media", **SMALL | {"flash.plp": "on"})
    with driver(emulator_binary, bios, *args) as drive:
        for lba in range(7):
            assert drive.write(lba) == 0
        for action in (1, 0):
            assert drive.admin(POWER, nsid=1, cdw10=action)[0] == 0
        assert [drive.read(lba) for lba in range(8)] == [0x61] * 7 + [0]
        assert drive.write(7) == 0 and drive.io(0x79, cdw10=0, cdw13=4)[0] == 0
        assert drive.read(0) == 0 and drive.write(0, byte=0x62) == 0
        for action in (1, 0):
            assert drive.admin(POWER, nsid=1, cdw10=action)[0] == 0
        assert drive.read(0) == 0x62 and drive.read(1) == 0


def test_chunks_of_a_protected_drive(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """An Open-Channel drive: six sectors, the last two in a unit that is half full."""
    args = device(tmp_path / "media", **OCSSD | {"ms": "0", "flash.plp": "on"})
    with driver(emulator_binary, bios, *args) as drive:
        for lba in range(0, 6, 2):
            assert drive.write(lba, 2) == 0
        for action in (1, 0):
            assert drive.admin(POWER, nsid=1, cdw10=action)[0] == 0
        assert [drive.read(lba) for lba in range(6)] == [0x61] * 6
        assert drive.write(6, 2, byte=0x62) == 0 and drive.read(7) == 0x62


def test_flushes_are_free(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """No cache is announced, none can be switched off; a flush and a FUA write take no program."""
    with driver(emulator_binary, bios, *box(tmp_path / "media", **{"flash.plp": "on"})) as drive:
        assert identify(drive, 1)[VWC] == 6             # a flush of all namespaces is still taken
        assert drive.admin(9, cdw10=6, cdw11=0)[0] == INVALID_FIELD
        for select in range(4):                         # current, default, saved, supported
            assert drive.admin(10, cdw10=6 | select << 8)[0] == INVALID_FIELD
        drive.submit(1, WRITE, nsid=1, prp=DATA, cdw10=0)
        drive.submit(1, FLUSH, nsid=1)
        drive.submit(1, WRITE, nsid=1, prp=DATA, cdw10=1, cdw12=1 << 30)
        drive.submit(1, FLUSH, nsid=0xFFFFFFFF)
        assert [status for _, status, _ in drive.ended(1)] == [0] * 4
        assert drive.stats()["programs_padded"] == 0
    with driver(emulator_binary, bios, *box(tmp_path / "other")) as drive:
        assert identify(drive, 1)[VWC] == 7
        assert drive.admin(10, cdw10=6) == (0, 1)
        assert drive.admin(9, cdw10=6, cdw11=0)[0] == 0


def test_caches_of_zones_are_not_protected(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    settings = SMALL | {"flash.plp": "on", "flash.zone_caches": "2", "flash.booked": "on"}
    assert "expected flash.plp=off" in refuses(emulator_binary, bios, device(tmp_path / "media", **settings))


def test_no_flushes_in_a_guest(lab_run) -> None:
    """Linux sends none, nor FUA: a file that is synced costs no program."""
    result = lab_run("""cat /sys/block/nvme0n1/queue/write_cache /sys/block/nvme0n1/queue/fua
        fio --name=w --filename=/dev/nvme0n1 --size=1M --rw=randwrite --bs=4k --fsync=1 --number_ios=20 >/dev/null
        nvme id-ctrl /dev/nvme0 | grep '^vwc '""", profile="dram", device=PAGES | {"flash.plp": "on"}, **LOCKSTEP)
    assert result.status == 0, result.output
    assert result.output.split()[:3] == ["write", "through", "0"], result.output
    assert result.output.split()[-1] == "0x6", result.output


# Wear.


def used(drive: Driver) -> tuple[int, int, int, int]:
    """Critical warning, spare, its threshold and percentage used: the same in both logs."""
    smart, group = log(drive, 2), log(drive, 9, cdw11=1 << 16)
    found = struct.unpack_from("<B2xBBB", smart)
    assert found == struct.unpack_from("<B2xBBB", group)
    return found


def test_percentage_used(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Of the erases that blocks are made for, their mean; it outlives the emulator."""
    args = box(tmp_path / "media", **{"flash.pe_cycles": "20"})
    with driver(emulator_binary, bios, *args) as drive:
        assert used(drive) == (0, 100, 0, 0)
        writer = Writer(drive, 3)
        while drive.stats()["ftl"]["erases_most"] < 10:
            for _ in range(16):
                writer.any()
            while writer.flying:
                drive.step(1_000_000)
                writer.reap()
        drive.step(1_000_000_000)
        percent = 100 * drive.stats()["erases"] // 64 // 20     # 32 of each die
        assert percent > 10 and used(drive) == (0, 100, 0, percent)
        estimate, = struct.unpack_from("<Q", log(drive, 9, cdw11=1 << 16), 32)
        assert estimate == math.ceil(20 * (16 << 20) / 10**9)
    with driver(emulator_binary, bios, *args) as drive:
        assert percent <= used(drive)[3] <= percent + 1         # it collects when it starts
    args[-1] = "device.ns0.flash.pe_cycles=1"
    with driver(emulator_binary, bios, *args) as drive:
        assert used(drive)[3] == 255


def test_resets_that_erase_little(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """An erase block that is empty is not erased when its zone is reset, and wears no more."""
    # 4 dies, an erase block of each in each of 4 zones
    args = device(tmp_path / "media", **SMALL | {"flash.size": "64M", "flash.block_pages": "1024", "flash.page": "4K",
                                                 "flash.pe_cycles": "1"})
    with driver(emulator_binary, bios, *args) as drive:
        for zone in range(4):
            for _ in range(3):
                assert drive.io(0x79, cdw10=zone << 12, cdw13=4)[0] == 0
        assert drive.stats()["erases"] == 0 == used(drive)[3]
        for erased in (1, 2):
            assert drive.write(0) == 0 and drive.io(0x79, cdw10=0, cdw13=4)[0] == 0
            assert drive.stats()["erases"] == erased and used(drive)[3] == 100 * erased // 16
    with driver(emulator_binary, bios, *args) as drive:
        assert used(drive)[3] == 12


def test_worn_out(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A zone whose blocks have had their erases goes offline with the reset, for good; others go on."""
    # 2 dies, an erase block of each in each zone; the pages of four writes are on both
    args = device(tmp_path / "media", **SMALL | {"flash.size": "64M", "flash.block_pages": "2048", "flash.page": "4K",
                                                 "flash.pe_cycles": "3", "flash.wear_out": "on"})

    def live(drive: Driver, zone: int) -> int:
        start = zone << 12
        written = [drive.write(start + i, byte=0x30 + zone) for i in range(4)]
        assert len(set(written)) == 1
        if not written[0]:
            assert drive.read(start + 3) == 0x30 + zone
            assert drive.io(0x79, cdw10=start, cdw13=4)[0] == 0
        return written[0] & 0x7FF

    with driver(emulator_binary, bios, *args) as drive:
        assert [live(drive, 0) for _ in range(4)] == [0, 0, 0, OFFLINE]
        assert drive.read(0) is None and drive.io(0x79, cdw10=0, cdw13=4)[0] & 0x7FF != 0
        assert [live(drive, 1) for _ in range(2)] == [0, 0]
    with driver(emulator_binary, bios, *args) as drive:
        assert live(drive, 0) == OFFLINE
        assert [live(drive, 1) for _ in range(2)] == [0, OFFLINE]


def test_a_long_life(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """More bytes than 64 bits count."""
    args = device(tmp_path / "media", **SMALL | {"flash.size": "8G", "flash.pe_cycles": str(2**32 - 1)})
    with driver(emulator_binary, bios, *args) as drive:
        estimate, = struct.unpack_from("<Q", log(drive, 9, cdw11=1 << 16), 32)
        assert estimate == -(-(8 << 30) * (2**32 - 1) // 10**9)


def test_spare(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A failed program takes an erase block of the reserve; the host is warned below a tenth."""
    # 32 on both dies are the zones'; 12 blocks of each plane and die stay.
    with driver(emulator_binary, bios, *box(tmp_path / "media", **{"flash.blocks": "38"})) as drive:
        assert used(drive) == (0, 100, 10, 0)
        for failed in range(1, 14):
            assert drive.admin(POWER, nsid=1, cdw10=0x14, cdw11=1)[0] == 0
            assert drive.write(0, fua=1) == 0 and drive.read(0) == 0x61
            assert drive.stats()["programs_retried"] == failed
            left = 100 * max(12 - failed, 0) // 12
            assert used(drive) == (left < 10, left, 10, 0)


def test_wear_in_a_guest(lab_run) -> None:
    """nvme-cli reads the same of both logs."""
    result = lab_run("""fio --name=w --filename=/dev/nvme0n1 --direct=1 --rw=randwrite --bs=64k --loops=3 >/dev/null
        nvme smart-log /dev/nvme0 --output-format=json >smart
        nvme endurance-log /dev/nvme0 --group-id=1 --output-format=json >group""", profile="dram",
                     device=PAGES | {"flash.pe_cycles": "10", "flash.blocks": "38"}, pull=["smart", "group"],
                     **LOCKSTEP)
    assert result.status == 0, result.output
    smart, group = (json.loads(result.files[name]) for name in ("smart", "group"))
    assert 10 < smart["percent_used"] < 60 and smart["percent_used"] == group["percent_used"]
    assert smart["avail_spare"] == 100 and smart["spare_thresh"] == 10
    assert [group[key] for key in group if "spare" in key] == [100, 10], group
    assert int(smart["data_units_written"]) == math.ceil(3 * (SEEN // 512) / 1000)
    assert int(group["data_units_written"]) == int(group["media_units_written"]) == 1
