# SPDX-License-Identifier: GPL-2.0-or-later
"""What a controller with modelled flash announces is kept, and what it cannot keep is not announced."""

import json
import struct
import subprocess
from pathlib import Path

import pytest
from bare import (
    COMPARE,
    COPY,
    DATA,
    FLUSH,
    NOWHERE,
    READ,
    VERIFY,
    WRITE,
    WRITE_ZEROES,
    ZONE_SEND,
    Driver,
    Monitor,
    device,
    driver,
)
from shared import BOX, LOCKSTEP, OCSSD, SMALL, TOOLS, refuses

MIB = 1 << 20
ZONE_RECEIVE, ABORTED = 0x7A, 0x07
INVALID_OPCODE, INVALID_FIELD, COMPARE_FAILURE, INVALID_TRANSITION = 0x01, 0x02, 0x285, 0x1BF
FULL, CLOSED = 0xE, 0x4
BY_CONTROLLER = 1                                       # a zone's attribute
KINDS = {"zns": SMALL, "blackbox": BOX, "ocssd": OCSSD}
OPTIONAL = {COMPARE: 1 << 0, WRITE_ZEROES: 1 << 3, VERIFY: 1 << 7, COPY: 1 << 8}
PRPS = DATA - 0x100000                                  # lists of 1 MiB in all
LIMIT = 256 * MIB


def with_controller(args: list[str], extra: str) -> list[str]:
    return [args[0], f"{args[1]},{extra}", *args[2:]]


def power(drive: Driver) -> None:
    """Off, and on again."""
    for action in (1, 0):
        assert drive.admin(0xC0, nsid=1, cdw10=action)[0] == 0


def log(drive: Driver, page: int, size: int, cdw11: int = 0, nsid: int = 0xFFFFFFFF) -> bytes:
    assert drive.admin(2, nsid=nsid, prp=DATA, cdw10=page | (size // 4 - 1) << 16, cdw11=cdw11)[0] == 0
    return drive.load(DATA, size)


def zone(drive: Driver, index: int, extension: int = 0) -> tuple[int, int, bytes]:
    """State, attributes and descriptor extension, by an extended report of one zone."""
    size = 64 + 64 + extension
    first = index * (16 * MIB // 4096)
    assert drive.io(ZONE_RECEIVE, prp=DATA, cdw10=first, cdw12=size // 4 - 1, cdw13=1 << 16 | bool(extension))[0] == 0
    report = drive.load(DATA, size)
    return report[65] >> 4, report[66], report[128:]


def finish(drive: Driver, index: int, action: int = 2) -> int:
    return drive.io(ZONE_SEND, cdw10=index * (16 * MIB // 4096), cdw13=action)[0]


def statuses(drive: Driver) -> list[tuple[int, int]]:
    return [(cid, status) for cid, status, _ in drive.ended(1)]


# Atomic writes.


def test_conflicts_wait_for_an_end(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A command that overlaps an atomic write in flight begins at the instant at which that ends; others at once."""
    args = with_controller(device(tmp_path / "media", **BOX), "atomic.awun=3")
    with driver(emulator_binary, bios, *args) as drive:
        assert drive.write(0, 2, fua=1) == 0 and drive.write(8, 1, fua=1) == 0
        reads = [drive.submit(1, READ, nsid=1, prp=DATA, cdw10=0) for _ in range(2)]
        write = drive.submit(1, WRITE, nsid=1, prp=DATA, prp2=DATA + 4096, cdw10=0, cdw12=1 | 1 << 30)
        drive.step(39_999)
        assert statuses(drive) == []
        drive.step(40_001)                              # two reads of one die
        assert statuses(drive) == [(reads[0], 0), (reads[1], 0)]
        drive.store(DATA + 0x10000, b"\x62" * 8192)
        again = drive.submit(1, WRITE, nsid=1, prp=DATA + 0x10000, prp2=DATA + 0x11000, cdw10=1, cdw12=1)
        look = drive.submit(1, READ, nsid=1, prp=DATA + 0x20000, cdw10=1)
        behind = drive.submit(1, READ, nsid=1, prp=DATA + 0x30000, cdw10=100)
        drive.step(399_999 - 80_000 + 40_000)
        ended = statuses(drive)
        assert [cid for cid, _ in ended] == [write, again, look, behind] and not any(s for _, s in ended)
        assert drive.load(DATA + 0x20000, 1) == b"\x62"


def test_conflict_of_two_queues(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """When the queue of the atomic write is deleted, the command that waited begins."""
    args = with_controller(device(tmp_path / "media", **BOX | {"flash.program_ns": "1000000000"}), "atomic.awun=3")
    with driver(emulator_binary, bios, *args) as drive:
        drive.sq.append(0x280000)
        assert drive.admin(1, prp=drive.sq[2], cdw10=63 << 16 | 2, cdw11=1 << 16 | 1)[0] == 0
        drive.place(2, 0, WRITE, nsid=1, prp=DATA, cdw10=0, cdw12=1 << 30)
        drive.reg(0x1010, 1)
        waits = drive.submit(1, WRITE, nsid=1, prp=DATA, cdw10=0)
        drive.step(1_000_000)
        assert statuses(drive) == []
        assert drive.admin(0, cdw10=2)[0] == 0
        drive.step(1)
        assert statuses(drive)[-1] == (waits, 0)


def test_conflict_of_two_controllers(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """An atomic write of one controller is whole for the other, which promises none; its reset strands no command."""
    args = device(tmp_path / "media", **BOX)
    args[:2] = ["-device", "nvme-subsys,id=sub0", "-device", "nvme,id=nvme1,serial=mtftl,subsys=sub0,addr=5",
                "-device", "nvme,id=nvme0,serial=mtftl,subsys=sub0,addr=4,atomic.awun=3"]
    with driver(emulator_binary, bios, *args) as drive:
        other = drive.beside(5)
        assert drive.write(0, 2, fua=1) == 0
        write = drive.submit(1, WRITE, nsid=1, prp=DATA, prp2=DATA + 4096, cdw10=0, cdw12=1 | 1 << 30)
        drive.step(100_000)
        read = other.submit(1, READ, nsid=1, prp=DATA + 0x10000, cdw10=1)
        other.step(99_999)
        assert statuses(other) == [] == statuses(drive)
        other.step(40_001)
        assert statuses(drive) == [(write, 0)] and statuses(other) == [(read, 0)]
        read = other.submit(1, READ, nsid=1, prp=DATA + 0x10000, cdw10=1)
        write = drive.submit(1, WRITE, nsid=1, prp=DATA, prp2=DATA + 4096, cdw10=0, cdw12=1 | 1 << 30)
        drive.step(10_000)
        assert drive.stats()["commands"]["write"] == 2
        other.reg(0x14, 0)                              # the other controller is disabled, its read is gone
        drive.step(1)
        assert drive.stats()["commands"]["write"] == 3
        drive.step(300_000)
        assert statuses(drive) == [(write, 0)]


def test_only_what_has_blocks_conflicts(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A flush is no write of block 0; a Compare that overlaps sees a write as a whole."""
    args = with_controller(device(tmp_path / "media", **BOX), "atomic.awun=3")
    with driver(emulator_binary, bios, *args) as drive:
        write = drive.submit(1, WRITE, nsid=1, prp=DATA, cdw10=0, cdw12=1 << 30)
        flush = drive.submit(1, FLUSH, nsid=1)
        compare = drive.submit(1, COMPARE, nsid=1, prp=DATA, cdw10=0)
        drive.step(200_000)
        assert sorted(statuses(drive))[:2] == [(write, 0), (flush, 0)]
        drive.step(100_000)
        assert compare == flush + 1 and drive.stats()["commands"]["flush"] == 1


def test_atomic_across_a_power_cut_is_refused(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Programs are torn: no more than a block may be promised, by no controller of the namespace."""
    args = with_controller(device(tmp_path / "media", **SMALL), "atomic.awun=7,atomic.awupf=3")
    assert "atomic.awupf is 3: expected 0" in refuses(emulator_binary, bios, args)
    args = device(tmp_path / "media", **SMALL)
    args[:2] = ["-device", "nvme-subsys,id=sub0", "-device", "nvme,id=nvme0,serial=mtftl,subsys=sub0,addr=4"]
    with driver(emulator_binary, bios, *args) as drive:
        late = {"driver": "nvme", "serial": "mtftl", "subsys": "sub0"}
        answer = drive("device_add", id="late", **{"atomic.awun": 7, "atomic.awupf": 1}, **late)
        assert "atomic.awupf is 1" in answer["error"]["desc"]
        assert "return" in drive("device_add", id="late", **{"atomic.awun": 7}, **late)


def test_fdp_is_refused(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A drive without an FTL places nothing."""
    args = device(tmp_path / "media", **OCSSD | {"ms": "0"})
    args[:2] = ["-device", "nvme-subsys,id=sub0,fdp=on,fdp.nruh=4", "-device", "nvme,id=nvme0,serial=mtftl,subsys=sub0"]
    assert "of fdp=on only drives with an FTL know: expected fdp=off" in refuses(emulator_binary, bios, args)


# Identify.


@pytest.mark.parametrize("kind", KINDS)
def test_optional_commands(emulator_binary: Path, bios: Path, tmp_path: Path, kind: str) -> None:
    """Each announced command works, each other one is refused; the limits of Copy are announced with it."""
    settings = KINDS[kind] | ({"ms": "0"} if kind == "ocssd" else {})
    with driver(emulator_binary, bios, *device(tmp_path / "media", **settings)) as drive:
        assert drive.admin(6, prp=DATA, cdw10=1)[0] == 0
        controller = drive.load(DATA, 4096)
        oncs, ocfs = struct.unpack_from("<H", controller, 520)[0], struct.unpack_from("<H", controller, 534)[0]
        assert drive.admin(6, nsid=1, prp=DATA)[0] == 0
        mssrl, mcl, msrc = struct.unpack_from("<HIB", drive.load(DATA, 4096), 74)
        effects = log(drive, 5, 4096, nsid=0)
        drive.store(DATA, struct.pack("<QQHHIII", 0, 0, 0, 0, 0, 0, 0))
        for opcode, bit in OPTIONAL.items():
            there = drive.io(opcode, prp=DATA, cdw10=0)[0] != INVALID_OPCODE
            if opcode != VERIFY:                        # QEMU's Identify does not mention it
                assert there == bool(oncs & bit), opcode
            if kind != "zns":
                assert there == bool(effects[1024 + 4 * opcode] & 1), opcode
        assert oncs & 1 << 2                            # Dataset Management
        assert oncs & 7 << 8 == (7 << 8 if kind == "zns" else 0)                # Copy, and how it does it
        assert (kind == "zns") == (mssrl != 0) == (mcl != 0) == (msrc != 0)
        assert ocfs == (1 if kind == "zns" else 0)
        assert bool(effects[1024 + 4 * 0x91] & 1) == bool(effects[4 * 0xE2] & 1) == (kind == "ocssd")
        assert drive.io(COPY, prp=DATA, cdw10=8, cdw12=1 << 8)[0] in (INVALID_FIELD, INVALID_OPCODE)     # format 1


def test_log_page_number(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """0xC0 to 0xC5 belong to the Open Compute Project's log pages."""
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL)) as drive:
        assert log(drive, 0xF0, 512, nsid=1)[:4] == b"MTFL"
        for page in range(0xC0, 0xC6):
            assert drive.admin(2, nsid=1, prp=DATA, cdw10=page | 127 << 16)[0] == INVALID_FIELD


def test_limits_of_transfers(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """MDTS is for what crosses the link; Copy has limits of its own, Verify another one."""
    args = with_controller(device(tmp_path / "media", **SMALL | {"mssrl": "32", "mcl": "40"}), "mdts=1,vsl=3")
    with driver(emulator_binary, bios, *args) as drive:
        for lba in range(0, 64, 2):
            assert drive.write(lba, 2) == 0
        assert drive.io(WRITE, prp=DATA, prp2=DATA + 4096, cdw10=64, cdw12=2)[0] == INVALID_FIELD
        assert drive.io(COMPARE, prp=DATA, prp2=DATA + 4096, cdw10=0, cdw12=2)[0] == INVALID_FIELD
        assert drive.io(VERIFY, cdw10=0, cdw12=7)[0] == 0
        assert drive.io(VERIFY, cdw10=0, cdw12=8)[0] == INVALID_FIELD
        there = DATA + 0x10000
        for (first, second), status in (((32, 8), 0), ((32, 9), 0x183), ((33, 1), 0x183)):
            wp = 4096 + drive.stats()["written_bytes"] // 4096 - 64
            drive.store(there, b"".join(struct.pack("<QQHHIII", 0, 0, n - 1, 0, 0, 0, 0) for n in (first, second)))
            assert drive.io(COPY, prp=there, cdw10=wp, cdw12=1)[0] == status
        assert drive.read(4096 + 39) == 0x61 and drive.read(4096 + 40) == 0


def test_compare_of_metadata(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL | {"ms": "8"})) as drive:
        there = DATA + 0x10000
        drive.store(DATA, b"a" * 4096)
        drive.store(there, b"metadata")
        assert drive.io(WRITE, prp=DATA, mptr=there, cdw10=0)[0] == 0
        assert drive.io(COMPARE, prp=DATA, mptr=there, cdw10=0)[0] == 0
        drive.store(there, b"another.")
        assert drive.io(COMPARE, prp=DATA, mptr=there, cdw10=0)[0] == COMPARE_FAILURE
        assert drive.io(COMPARE, prp=DATA, mptr=NOWHERE, cdw10=0)[0] == 0x04
        assert drive.io(COMPARE, prp=DATA, cdw10=0)[0] == 0                     # of the data alone


# Health.


def smart(drive: Driver) -> dict[str, int]:
    page = log(drive, 2, 512)
    words = struct.unpack_from("<18Q", page, 32)[::2]
    names = ("read", "written", "reads", "writes", "busy", "starts", "hours", "cuts", "errors")
    return dict(zip(names, words)) | {"spare": page[3], "used": page[5]}


@pytest.mark.parametrize("kind", KINDS)
def test_smart(emulator_binary: Path, bios: Path, tmp_path: Path, kind: str) -> None:
    """The host's commands and bytes, whatever personality; not what failed or stayed inside."""
    settings = KINDS[kind] | ({"ms": "0"} if kind == "ocssd" else {})
    with driver(emulator_binary, bios, *device(tmp_path / "media", **settings)) as drive:
        assert smart(drive) == {"read": 0, "written": 0, "reads": 0, "writes": 0, "busy": 0, "starts": 1, "hours": 0,
                                "cuts": 0, "errors": 0, "spare": 100, "used": 0}
        for lba in range(0, 32, 2):                     # 256 sectors of 512 bytes
            assert drive.write(lba, 2) == 0
        assert drive.io(FLUSH)[0] == 0
        assert drive.write(1 << 31, 2) != 0
        reads = 0
        for lba in range(32):
            assert drive.read(lba) == 0x61
            reads += 1
        got = smart(drive)
        assert (got["writes"], got["written"], got["reads"], got["read"]) == (16, 1, reads, 1)
        for lba in range(32, 44, 2):
            assert drive.write(lba, 2) == 0             # 22 x 16 = 352 sectors
        for _ in range(4):
            for lba in range(32):
                assert drive.read(lba) == 0x61
        got = smart(drive)
        assert (got["writes"], got["written"]) == (22, 1) and (got["reads"], got["read"]) == (160, 2)
        assert drive.admin(0xC0, nsid=1, cdw10=0x10, cdw11=3, cdw13=1, cdw15=1)[0] == 0
        assert drive.read(3) is None
        power(drive)
        got = smart(drive)
        assert (got["errors"], got["cuts"], got["starts"], got["reads"]) == (1, 1, 2, 160)


def test_smart_of_other_commands(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Compare reads, Append writes; Copy and Write Zeroes bring nothing from the host."""
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL)) as drive:
        drive.store(DATA, b"a" * 4096)
        assert drive.io(0x7D, prp=DATA, cdw10=0)[0] == 0
        assert drive.io(COMPARE, prp=DATA, cdw10=0)[0] == 0
        assert drive.io(WRITE_ZEROES, cdw10=1, cdw12=3)[0] == 0
        drive.store(DATA, struct.pack("<QQHHIII", 0, 0, 0, 0, 0, 0, 0))
        assert drive.io(COPY, prp=DATA, cdw10=5)[0] == 0
        assert drive.io(COMPARE, prp=DATA, cdw10=0)[0] == COMPARE_FAILURE
        got = smart(drive)
        assert (got["writes"], got["reads"]) == (1, 2)
        assert drive.io(FLUSH)[0] == 0
        cid = drive.submit(1, READ, nsid=1, prp=DATA, cdw10=0)
        assert drive.admin(0x08, cdw10=cid << 16 | 1) == (0, 0)
        assert statuses(drive) == [(cid, ABORTED)] and smart(drive)["reads"] == 2


def test_media_units(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """What the flash programmed and read, in the endurance group's log and in that of the Open Compute Project."""
    args = with_controller(device(tmp_path / "media", **SMALL), "ocp=on")
    with driver(emulator_binary, bios, *args) as drive:
        assert drive.write(0, fua=1) == 0 and drive.write(4096, fua=1) == 0
        assert drive.read(0) == 0x61
        stats = drive.stats()
        assert stats["programmed_bytes"] == 2 * 16384 and stats["reads"] == 1
        extended = log(drive, 0xC0, 512, nsid=1)
        assert struct.unpack_from("<QQQQ", extended) == (32768, 0, 16384, 0)
        group = log(drive, 9, 512, cdw11=1 << 16)
        assert group[3] == 100 and struct.unpack_from("<6Q", group, 48)[::2] == (1, 1, 1)
        power(drive)
        assert struct.unpack_from("<I", log(drive, 0xC0, 512, nsid=1), 112) == (1,)


def test_smart_in_a_guest(lab_run) -> None:
    result = lab_run(TOOLS + r"""put 0 0 250 a; sync_; get 0 0 >/dev/null
        nvme smart-log /dev/nvme0 --output-format=json > smart""", profile="dram", device=SMALL, pull=["smart"],
        **LOCKSTEP)
    said = json.loads(next(iter(result.files.values())))
    got = {key: int(value) for key, value in said.items() if str(value).isdigit()}
    assert got["data_units_written"] == 2 and got["host_write_commands"] >= 2
    assert got["data_units_read"] >= 1 and got["host_read_commands"] > 1
    assert got["avail_spare"] == 100 and got["percent_used"] == 0 and got["media_errors"] == 0


# Memory.


def test_memory_in_flight_is_bounded(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """1,023 writes of 512 KiB: those beyond the limit wait in their queue, and all end well and in order."""
    blocks = 128
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL | {"flash.buffer": "64K"})) as drive:
        drive.store(PRPS, struct.pack(f"<{blocks - 1}Q", *[DATA] * (blocks - 1)))
        drive.store(DATA, b"a" * 4096)
        per_zone = 12 * MIB // (blocks * 4096)
        for i in range(1023):
            lba = i // per_zone * 4096 + i % per_zone * blocks
            drive.submit(1, WRITE, nsid=1, prp=DATA, prp2=PRPS, cdw10=lba, cdw12=blocks - 1)
        status = Path(f"/proc/{drive.process.pid}/status").read_text()
        resident = int(next(x for x in status.splitlines() if x.startswith("RssAnon")).split()[1]) * 1024
        assert resident < 2 * LIMIT
        assert LIMIT <= drive.stats()["held"] == drive.stats()["held_max"] < LIMIT + MIB
        ended = []
        for _ in range(400):
            drive.step(50_000_000)
            ended += statuses(drive)
        assert ended == [(i, 0) for i in range(1023)]
        assert drive.stats()["held"] == 0 and drive.stats()["held_max"] < LIMIT + MIB
        assert drive.stats()["written_bytes"] == 1023 * blocks * 4096


def test_aborted_writes_hold_memory(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """What an aborted write holds counts until the drive is done with it."""
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL | {"flash.buffer": "16K"})) as drive:
        cids = [drive.submit(1, WRITE, nsid=1, prp=DATA, cdw10=lba) for lba in range(16)]
        before = drive.stats()["held"]
        assert drive.admin(0x08, cdw10=cids[-1] << 16 | 1) == (0, 0)
        assert before > 8 * 4096 and drive.stats()["held"] == before
        drive.step(20_000_000)
        assert drive.stats()["held"] == 0


def test_zeroes_take_no_memory(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Write Zeroes has no limit of its own; into a zone, and into a window."""
    large = SMALL | {"zoned.zone_size": "256M", "zoned.zone_capacity": "256M", "flash.buffer": "2M",
                     "zoned.zrwas": "256K", "zoned.zrwafg": "64K", "zoned.numzrwa": "1"}
    with driver(emulator_binary, bios, *device(tmp_path / "media", **large)) as drive:
        drive.submit(1, WRITE_ZEROES, nsid=1, cdw10=0, cdw12=65535)
        assert drive.stats()["held"] < MIB
        drive.step(20_000_000_000)
        assert statuses(drive) == [(0, 0)] and drive.stats()["written_bytes"] == 256 * MIB
        assert drive.io(ZONE_SEND, cdw10=65536, cdw13=3 | 1 << 9)[0] == 0       # open, with a window
        for lba in range(0, 64, 2):
            assert drive.write(65536 + lba, 2) == 0
        assert drive.io(WRITE_ZEROES, cdw10=65536 + 8, cdw12=79)[0] == 0
        assert [drive.read(65536 + lba) for lba in (7, 8, 63, 64, 87)] == [0x61, 0, 0, 0, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_held_memory_comes_back(emulator_binary: Path, bios: Path, tmp_path: Path, kind: str) -> None:
    settings = KINDS[kind] | ({"ms": "0"} if kind == "ocssd" else {})
    with driver(emulator_binary, bios, *device(tmp_path / "media", **settings)) as drive:
        for turn in range(3):
            for i in range(8):
                drive.submit(1, WRITE, nsid=1, prp=DATA, prp2=DATA + 4096, cdw10=16 * turn + 2 * i, cdw12=1 | 1 << 30)
                drive.submit(1, READ, nsid=1, prp=DATA, cdw10=2 * i)
            assert drive.stats()["held"] > 16 * 4096
            if turn == 1:
                assert drive.admin(0xC0, nsid=1, cdw10=1)[0] == 0
                assert drive.stats()["held"] == 0
                assert drive.admin(0xC0, nsid=1, cdw10=0)[0] == 0
                break
            drive.step(100_000_000)
            assert drive.stats()["held"] == 0


# Zones.


def test_extension_of_a_zone_in_use(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Only an empty zone gets one; that of another stays what it was."""
    settings = SMALL | {"zoned.descr_ext_size": "64"}
    with driver(emulator_binary, bios, *device(tmp_path / "media", **settings)) as drive:
        drive.store(DATA, b"a" * 64)
        assert drive.io(ZONE_SEND, prp=DATA, cdw10=0, cdw13=0x10)[0] == 0
        assert zone(drive, 0, 64) == (CLOSED, 0x80, b"a" * 64)
        drive.store(DATA, b"b" * 64)
        assert drive.io(ZONE_SEND, prp=DATA, cdw10=0, cdw13=0x10)[0] == INVALID_TRANSITION
        assert zone(drive, 0, 64) == (CLOSED, 0x80, b"a" * 64)
        assert drive.io(ZONE_SEND, prp=NOWHERE, cdw10=4096, cdw13=0x10)[0] == 0x04
        assert zone(drive, 1, 64) == (1, 0, bytes(64))


def test_zones_that_the_drive_finished(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Zones that the controller finished say so after each power cycle; a second finish is free, a reset clears it."""
    few = {"zoned.max_active": "2", "zoned.max_open": "2"}
    media = tmp_path / "media"
    with driver(emulator_binary, bios, *device(media, **SMALL)) as drive:
        for index in range(3):
            assert drive.write(4096 * index, fua=1) == 0
    with driver(emulator_binary, bios, *device(media, **SMALL | few)) as drive:
        for _ in range(3):
            states = [zone(drive, i)[:2] for i in range(3)]
            assert states == [(CLOSED, 0), (CLOSED, 0), (FULL, BY_CONTROLLER)]
            power(drive)
        padded = drive.stats()["programs_finish"]
        assert finish(drive, 2) == 0 and drive.stats()["programs_finish"] == padded
        erases = drive.stats()["erases"]
        assert finish(drive, 2, action=4) == 0 and drive.stats()["erases"] == erases + 1
        assert zone(drive, 2)[:2] == (1, 0)
    with driver(emulator_binary, bios, *device(media, **SMALL | few)) as drive:
        assert zone(drive, 2)[:2] == (1, 0)


def test_a_zone_that_is_closed_by_the_drive(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """The command that needs the place pays for the close, be it a write or an open."""
    settings = SMALL | {"zoned.max_open": "1", "flash.close_ns": "70000", "flash.open_ns": "20000",
                        "flash.write_cmd_ns": "5000"}
    with driver(emulator_binary, bios, *device(tmp_path / "media", **settings)) as drive:
        for lba, opcode, took in ((0, WRITE, 25_000), (1, WRITE, 5_000), (4096, WRITE, 95_000), (4097, WRITE, 5_000),
                                  (8192, ZONE_SEND, 90_000)):
            cid = drive.submit(1, opcode, nsid=1, prp=DATA, cdw10=lba, cdw13=3 if opcode == ZONE_SEND else 0)
            drive.step(took - 1)
            assert statuses(drive) == []
            drive.step(1)
            assert statuses(drive) == [(cid, 0)]


# States of a machine.


def test_loadvm_under_a_live_controller(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A machine with a controller, perhaps at work, refuses a saved state without one."""
    disk = tmp_path / "disk.qcow2"
    blank = ["-blockdev", f"file,node-name=file,filename={disk}"]
    with disk.open("wb"):
        pass
    made = Monitor(emulator_binary, bios, *blank)
    made("blockdev-create", **{"job-id": "make", "options": {"driver": "qcow2", "file": "file", "size": 1 << 20}})
    while made("query-jobs")["return"][0]["status"] not in ("concluded", "null"):
        pass
    made("blockdev-add", **{"driver": "qcow2", "node-name": "disk", "file": "file"})
    assert made("human-monitor-command", **{"command-line": "savevm state"})["return"] == ""
    made.end()
    with_disk = [*blank, "-blockdev", "qcow2,node-name=disk,file=file"]
    plain = Monitor(emulator_binary, bios, *with_disk)
    assert plain("human-monitor-command", **{"command-line": "loadvm state"})["return"] == ""
    plain.end()
    # A namespace of ours has a block device without snapshots, which is a reason by itself.
    for more, why in ((["-device", "nvme,serial=mtftl"], "non-migratable device"),
                      (device(tmp_path / "media", **SMALL), "does not support snapshots")):
        busy = Monitor(emulator_binary, bios, *with_disk, *more)
        answer = busy("human-monitor-command", **{"command-line": "loadvm state"})["return"]
        busy.end()
        assert why in answer


def test_image_of_a_maker_that_was_killed(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """The file has its length, but nothing was written yet."""
    media = tmp_path / "media"
    Monitor(emulator_binary, bios, *device(media, **SMALL)).end()
    size = media.stat().st_size
    media.unlink()
    with media.open("wb") as file:
        file.truncate(size)
    with driver(emulator_binary, bios, *device(media, **SMALL)) as drive:
        assert drive.write(0, fua=1) == 0
    with driver(emulator_binary, bios, *device(media, **SMALL)) as drive:
        assert drive.read(0) == 0x61
    with media.open("r+b") as file:
        file.write(bytes(8))
    assert "not a flash image" in refuses(emulator_binary, bios, device(media, **SMALL))
    subprocess.run(["truncate", "-s", "0", media], check=True)
    Monitor(emulator_binary, bios, *device(media, **SMALL)).end()
