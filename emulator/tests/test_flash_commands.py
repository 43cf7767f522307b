# SPDX-License-Identifier: GPL-2.0-or-later
"""The flash device's front end, command by command, without a guest: also what no orderly driver sends."""

import json
import struct
from pathlib import Path

import pytest
from bare import (
    APPEND,
    BAR,
    COMPARE,
    COPY,
    DATA,
    FLUSH,
    NOWHERE,
    READ,
    VERIFY,
    WRITE,
    ZONE_SEND,
    Driver,
    device,
    driver,
)

# Zones of 16 MiB on 2 dies, units of 16 KiB: a program of 1 ms, a read of 50 us.
SMALL = {"flash.size": "1G", "zoned.zone_size": "16M", "zoned.zone_capacity": "12M", "flash.channels": "2",
         "flash.page": "16K", "flash.program_ns": "1000000", "flash.read_ns": "50000", "flash.erase_ns": "3000000"}


def flash(drive: Driver, action: int, a: int = 0, b: int = 0, c: int = 0, nsid: int = 1) -> int:
    return drive.admin(0xC0, nsid=nsid, cdw10=action, cdw11=a, cdw13=b, cdw15=c)[0]


def test_write_cache_off(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Switching the cache off writes it back, and what comes after it is on flash when it is acknowledged."""
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL)) as drive:
        assert drive.write(0) == 0
        assert drive.stats()["buffer_used"] == 4096
        assert drive.admin(0x09, cdw10=6, cdw11=0)[0] == 0
        assert drive.stats()["buffer_used"] == 0
        assert drive.write(1) == 0
        assert drive.stats()["buffer_used"] == 0
        assert flash(drive, 1) == 0 and flash(drive, 0) == 0
        assert (drive.read(0), drive.read(1)) == (0x61, 0x61)


def test_write_cache_off_with_writes_in_flight(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A write that waits for the buffer when the cache is switched off is not acknowledged from it."""
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL | {"flash.buffer": "16K"})) as drive:
        drive.store(DATA, b"a" * 8192)
        for lba in range(0, 6, 2):
            drive.submit(1, WRITE, nsid=1, prp=DATA, prp2=DATA + 4096, cdw10=lba, cdw12=1)
        cid = drive.submit(0, 0x09, cdw10=6, cdw11=0)
        assert drive.wait(0, cid)[0] == 0
        drive.step(5_000_000)
        assert [status for _, status, _ in drive.ended(1)] == [0, 0, 0]
        assert flash(drive, 1) == 0 and flash(drive, 0) == 0
        assert [drive.read(lba) for lba in range(6)] == [0x61] * 6


def test_flush_of_all_tells_each_error(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    second = ["-device", "nvme-ns,id=ns1,bus=nvme0,nsid=2,zoned=on,logical_block_size=4096,physical_block_size=4096,"
              f"flash.size=1G,zoned.zone_size=16M,flash.media={tmp_path / 'second'}"]
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL), *second) as drive:
        assert drive.io(FLUSH, nsid=0xFFFFFFFF)[0] == 0
        assert flash(drive, 1) == 0 and flash(drive, 0, nsid=2) == 0
        assert drive.io(FLUSH, nsid=2)[0] == 0
        assert drive.io(FLUSH)[0] == 0x06
        assert drive.io(FLUSH, nsid=0xFFFFFFFF)[0] == 0x06


@pytest.mark.parametrize("at_program", [False, True])
def test_a_cut_takes_the_power_of_all_drives(emulator_binary: Path, bios: Path, tmp_path: Path,
                                             at_program: bool) -> None:
    """At one instant, that of the drive to which the cut was told; each comes back by itself."""
    settings = ",".join(f"{key}={value}" for key, value in SMALL.items() if key != "flash.channels")
    second = ["-device", "nvme,id=nvme1,serial=other,addr=5", "-device",
              "nvme-ns,id=ns1,bus=nvme1,zoned=on,logical_block_size=4096,physical_block_size=4096,"
              f"flash.media={tmp_path / 'second'},{settings}"]
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL), *second) as drive:
        other = drive.beside(5)
        for lba in range(0, 12, 2):                     # three programs, which end after 1, 2 and 3 ms
            assert other.write(lba, 2) == 0
        assert flash(drive, *((2, 1) if at_program else (1, 1_500_000))) == 0
        other.step(1_499_999)
        assert other.write(12) == 0
        assert drive.write(0, 2) == 0
        if at_program:
            other.step(1)
        assert drive.write(2, 2) == 0                   # its program begins
        other.step(1)
        assert [x.write(13) for x in (other, drive)] == [0x06, 0x06]
        assert flash(drive, 0) == 0
        assert (drive.write(4096), other.write(4096)) == (0, 0x06)
        assert flash(other, 0) == 0
        assert [other.read(lba) for lba in range(8)] == [0x61] * 4 + [None] * 4
        assert [json.loads(str(drive.get("stats", ns)))["cuts"] for ns in ("ns0", "ns1")] == [1, 1]


def test_completions_into_our_own_registers(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A completion queue in the controller's doorbells: an append's result rings one, and deletes its own queue."""
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL), cq=BAR + 0x1000) as drive:
        slot = drive.tail[0]
        drive.place(0, slot, 0x00, cdw10=1)             # Delete I/O Submission Queue 1
        drive.submit(1, APPEND, nsid=1, prp=DATA, cdw10=0)
        drive.step(2000000)
        for _ in range(slot):                           # the last one's result is the doorbell's value
            drive.submit(1, APPEND, nsid=1, prp=DATA, cdw10=0)
        drive.submit(1, APPEND, nsid=1, prp=DATA, cdw10=0)
        drive.step(2000000)
        assert drive.stats()["commands"]["append"] >= 1
        assert drive.reg(0x1C) & 2                      # the controller gives up


def test_a_larger_buffer_lets_a_write_go_on(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """It ends where the buffer grew: at once, and while completions are held as for any other."""
    settings = SMALL | {"flash.buffer": "16K", "flash.program_ns": "100000000"}
    with driver(emulator_binary, bios, *device(tmp_path / "media", **settings)) as drive:
        cids = [drive.submit(1, WRITE, nsid=1, prp=DATA, cdw10=lba) for lba in range(5)]
        assert [cid for cid, status, _ in drive.ended(1) if not status] == cids[:4]
        assert "error" not in drive.set("buffer", 65536)
        assert [cid for cid, status, _ in drive.ended(1) if not status] == cids[4:]


def test_faults_are_bounded(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL)) as drive:
        got = [flash(drive, 0x10, 3, 1, 1) for _ in range(1030)]
        assert got == [0] * 1024 + [0x81] * 6           # Capacity Exceeded
        assert "too many" in drive.set("fault", "read-error 3 1")["error"]["desc"]
        assert drive.read(3) is None                    # one is used up
        assert flash(drive, 0x10, 3, 1, 1) == 0 and flash(drive, 0x10, 3, 1, 1) == 0x81
        assert flash(drive, 0x1F) == 0 and flash(drive, 0x10, 3, 1) == 0


def test_aborted_commands_are_bounded(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Commands that were aborted still cost the drive their time: one that gets too many is not ready for more."""
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL)) as drive:
        assert drive.write(0, fua=1) == 0
        assert flash(drive, 0x17, 0, 1000000) == 0      # a die that takes half a second for a read
        for _ in range(120):                            # of half a megabyte each
            cid = drive.submit(1, VERIFY, nsid=1, cdw10=0, cdw12=127)
            assert drive.admin(0x08, cdw10=cid << 16 | 1) == (0, 0)
            assert [x[1] for x in drive.ended(1)] == [0x07]
        for _ in range(10):
            cid = drive.submit(1, VERIFY, nsid=1, cdw10=0, cdw12=127)
            drive.admin(0x08, cdw10=cid << 16 | 1)
            status = [x[1] for x in drive.ended(1)]
        assert status == [0x82]                         # Namespace Not Ready
        drive.step(100_000_000_000)
        assert drive.read(0) == 0x61


def test_failed_transfer_leaves_the_zone_alone(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """With no delay at all data goes straight to the image: what does not come must not count."""
    with driver(emulator_binary, bios, *device(tmp_path / "media")) as drive:
        assert drive.write(0, 2) == 0
        assert drive.io(WRITE, prp=NOWHERE, cdw10=2)[0] == 0x04
        assert drive.io(WRITE, prp=DATA, prp2=NOWHERE, cdw10=2, cdw12=1)[0] == 0x04
        assert [drive.read(lba) for lba in range(4)] == [0x61, 0x61, 0, 0]
        assert drive.write(2, 1, byte=0x62) == 0
        assert [drive.read(lba) for lba in range(4)] == [0x61, 0x61, 0x62, 0]
        stats = drive.stats()
        assert stats["commands"]["write"] == 2 and stats["written_bytes"] == 3 * 4096


def test_instant_appends_are_appends(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    with driver(emulator_binary, bios, *device(tmp_path / "media")) as drive:
        assert drive.io(APPEND, prp=DATA, cdw10=0) == (0, 0)
        assert drive.io(APPEND, prp=DATA, cdw10=0) == (0, 1)
        assert drive.stats()["commands"]["append"] == 2 and drive.stats()["commands"]["write"] == 0


def test_fua_read(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """What it returned survives a cut."""
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL)) as drive:
        assert drive.write(0) == 0 and drive.write(4096) == 0
        assert drive.read(0, cdw12=1 << 30) == 0x61
        assert drive.read(4096) == 0x61
        assert flash(drive, 1) == 0 and flash(drive, 0) == 0
        assert (drive.read(0), drive.read(4096)) == (0x61, 0)


def test_read_behind_a_reset(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A read takes its data when it ends: the zone is empty from the submission of its reset on."""
    there = DATA + 0x10000
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL | {"flash.service_ns": "100000"})) as drive:
        assert drive.write(0, fua=1) == 0 and drive.write(4096, fua=1) == 0
        drive.store(there, b"a" * 4096)
        drive.store(there + 4096, struct.pack("<QQHHIII", 0, 0, 0, 0, 0, 0, 0))
        before = drive.submit(1, COMPARE, nsid=1, prp=there, cdw10=0)
        drive.submit(1, ZONE_SEND, nsid=1, cdw10=0, cdw13=4)
        drive.submit(1, READ, nsid=1, prp=DATA, cdw10=0)
        after = drive.submit(1, COMPARE, nsid=1, prp=there, cdw10=0)
        drive.submit(1, COPY, nsid=1, prp=there + 4096, cdw10=4097)
        drive.step(10_000_000)
        status = {cid: status for cid, status, _ in drive.ended(1)}
        assert len(status) == 5 and sum(status.values()) == status[after] + status[before]
        assert drive.load(DATA, 4096) == bytes(4096)
        assert status[after] == 0x285                   # Compare Failure
        assert drive.read(4096) == 0x61 and drive.read(4097) == 0


def test_copy_stays_inside(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """What a copy moves does not pass the host's link: neither its reads nor its write."""
    slow = {"flash.link_rate": str(4096 * 100), "flash.channel_rate": "0"}      # 10 ms a block
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL | slow)) as drive:
        assert drive.write(0, 2, fua=1) == 0
        drive.store(DATA, struct.pack("<QQHHIII", 0, 0, 1, 0, 0, 0, 0))
        drive.submit(1, COPY, nsid=1, prp=DATA, cdw10=4096)
        drive.step(49_999)                              # a read of 50 us, and a write into the buffer
        assert not list(drive.ended(1))
        drive.step(1)
        assert [status for _, status, _ in drive.ended(1)] == [0]
        drive.store(DATA, b"a" * 4096)
        drive.submit(1, WRITE, nsid=1, prp=DATA, cdw10=4098)
        drive.step(9_999_999)
        assert not list(drive.ended(1))
        drive.step(1)
        assert [status for _, status, _ in drive.ended(1)] == [0]


def test_reset_under_a_read(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A reset that comes while a slow die reads is what the read finds; one after its end is not."""
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL)) as drive:
        for found in (0, 0x61):
            assert drive.write(0, fua=1) == 0
            drive.submit(1, READ, nsid=1, prp=DATA, cdw10=0)
            drive.step(60_000 if found else 40_000)
            drive.submit(1, ZONE_SEND, nsid=1, cdw10=0, cdw13=4)
            drive.step(10_000_000)
            assert [status for _, status, _ in drive.ended(1)] == [0, 0]
            assert drive.load(DATA, 1)[0] == found


def test_read_into_our_own_registers(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """What a read found rings no doorbell, and an aborted read goes nowhere."""
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL)) as drive:
        assert drive.write(0, byte=1, fua=1) == 0
        assert drive.io(READ, prp=BAR + 0x1000, cdw10=0)[0] == 0x04
        drive.store(DATA, bytes(4096))
        cid = drive.submit(1, READ, nsid=1, prp=DATA, cdw10=0)
        assert drive.admin(0x08, cdw10=cid << 16 | 1) == (0, 0)
        drive.step(10_000_000)
        assert [status for _, status, _ in drive.ended(1)] == [0x07]
        assert drive.load(DATA, 4096) == bytes(4096)
        assert drive.read(0) == 1


def test_read_into_another_controllers_registers(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A namespace's event engages all controllers that share it: none comes back into it, in either direction."""
    args = device(tmp_path / "media", **SMALL)
    args[:2] = ["-device", "nvme-subsys,id=sub0", "-device", "nvme,id=nvme0,serial=mtftl,subsys=sub0,addr=4",
                "-device", "nvme,id=nvme1,serial=mtftl,subsys=sub0,addr=5"]
    with driver(emulator_binary, bios, *args) as drive:
        other = drive.beside(5)
        assert drive.write(0, byte=1, fua=1) == 0
        assert drive.io(READ, prp=other.bar + 0x1000, cdw10=0)[0] == 0x04
        assert other.io(READ, prp=drive.bar + 0x1000, cdw10=0)[0] == 0x04
        assert (drive.read(0), other.read(0)) == (1, 1)


def test_long_stream_interval(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Intervals of more than 4.3 s do not wrap."""
    stream = tmp_path / "stream"
    settings = SMALL | {"flash.stream": "s", "flash.stream_ms": "5000"}
    with driver(emulator_binary, bios, *device(tmp_path / "media", **settings),
                "-chardev", f"file,id=s,path={stream}") as drive:
        drive.step(4_900_000_000)
        assert len(stream.read_text().splitlines()) == 1
        drive.step(200_000_000)
        assert len(stream.read_text().splitlines()) == 2


def test_drives_neither_come_nor_go(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """A controller can, but a namespace cannot: no drive begins or ends while others are at work."""
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL)) as drive:
        added = drive("device_add", driver="nvme-ns", bus="nvme0", id="ns1", **{"flash.media": str(tmp_path / "new")})
        assert "does not support hotplugging" in added["error"]["desc"]
        assert "does not support hotplugging" in drive("device_del", id="ns0")["error"]["desc"]


@pytest.mark.parametrize("shared", (False, True))
def test_unplug(emulator_binary: Path, bios: Path, tmp_path: Path, shared: bool) -> None:
    """The controller goes while its programs go on; the namespace stays."""
    args = device(tmp_path / "media", **SMALL)
    if shared:
        args[:2] = ["-device", "nvme-subsys,id=sub0", "-device", "nvme,id=nvme0,serial=mtftl,subsys=sub0,addr=4",
                    "-device", "nvme,id=nvme1,serial=mtftl,subsys=sub0,addr=5"]
    with driver(emulator_binary, bios, *args) as drive:
        drive.store(DATA, b"a" * 4096)
        for lba in range(16):
            drive.submit(1, WRITE, nsid=1, prp=DATA, cdw10=lba)
        drive.submit(1, READ, nsid=1, prp=DATA, cdw10=0)
        drive.submit(1, FLUSH, nsid=1)
        assert "return" in drive("device_del", id="nvme0")
        drive.qtest("outl 0xae10 0")
        drive.qtest(f"outl 0xae08 {1 << 4}")
        assert "error" in drive("qom-get", path="/machine/peripheral/nvme0", property="serial")
        drive.step(10_000_000)
        assert drive.stats()["buffer_used"] == 0 and drive.stats()["programs_full"] == 4
