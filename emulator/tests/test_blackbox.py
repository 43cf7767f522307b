# SPDX-License-Identifier: GPL-2.0-or-later
"""The black box: its commands without a guest, media that outlives the emulator, file systems in a guest."""

import json
import struct
from pathlib import Path

import pytest
from bare import COMPARE, COPY, DATA, DSM, FLUSH, VERIFY, WRITE, WRITE_ZEROES, Driver, Monitor, device, driver
from shared import BOX, LOCKSTEP, refuses

MAPPINGS = ("page", "dftl", "bast", "fast", "last")
OUT_OF_RANGE = 0x80
BLOCKS = (24 << 20) // 4096 * 100 // 125
DEVICE = {**BOX, "flash.size": "48M"}


def box(media: Path, **settings: str) -> list[str]:
    return device(media, **BOX | settings)


def trim(drive: Driver, *ranges: tuple[int, int], deallocate: int = 4) -> int:
    """Dataset Management; the status."""
    drive.store(DATA, b"".join(struct.pack("<IIQ", 0, count, lba) for lba, count in ranges))
    return drive.io(DSM, prp=DATA, prp2=DATA + 4096, cdw10=len(ranges) - 1, cdw11=deallocate)[0]


def cut(drive: Driver) -> None:
    """And power on again."""
    for action in (1, 0):
        assert drive.admin(0xC0, nsid=1, cdw10=action)[0] == 0


BAD = [
    ({"zoned": "on", "flash.size": "128M"}, "needs zoned=off"),
    ({"ms": "8"}, "no metadata"),
    ({"flash.personality": "whitebox"}, "there is no 'whitebox'"),
    ({"flash.mapping": "guess"}, "there is no mapping 'guess'"),
    ({"flash.spare": "2"}, "give it more to spare"),
    ({"flash.mapping": "fast", "flash.log_blocks": "64"}, "64 log blocks"),
    ({"flash.mapping": "bast", "flash.log_blocks": "0"}, "of 0 in all"),
    ({"flash.mapping": "last", "flash.log_ways": "9"}, "9 log blocks in turn, of 8"),
    ({"flash.mapping": "fast", "flash.log_ways": "0"}, "at least 1"),
    ({"flash.mapping": "fast", "flash.seq_logs": "8"}, "8 log blocks for writes in order"),
    ({"flash.gc_begin": "96"}, "flash.gc_begin (96)"),
    ({"flash.gc_urgent": "101"}, "at most 100"),
    ({"flash.gc_gain": "0"}, "flash.gc_gain"),
    ({"flash.map_pages": "0"}, "flash.map_pages"),
    ({"flash.refresh_ns": "999999999"}, "flash.refresh_ns is 999999999, expected 0 or at least 1000000000"),
    ({"flash.refresh_ns": "1000000000", "flash.mapping": "fast"}, "needs the mapping 'page' or 'dftl', not 'fast'"),
    ({"flash.size": "25100K"}, "multiple of the zone size"),
    ({"flash.block_pages": "0"}, "flash.block_pages"),
]


@pytest.mark.parametrize("settings,word", BAD, ids=[x[1] for x in BAD])
def test_bad_properties(emulator_binary: Path, bios: Path, tmp_path: Path, settings: dict[str, str], word: str) -> None:
    assert word in refuses(emulator_binary, bios, box(tmp_path / "media", **settings))
    Monitor(emulator_binary, bios, *box(tmp_path / "media")).end()      # as it would have been the first one


def test_an_image_that_cannot_be_mapped_is_none(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """It had its length and its header by then."""
    narrow = tmp_path / "narrow"
    narrow.write_text(f'#!/bin/sh\nulimit -v {64 << 20}\nexec {emulator_binary} "$@"\n')
    narrow.chmod(0o755)
    assert "Cannot allocate memory" in refuses(narrow, bios, box(tmp_path / "media", **{"flash.size": "128G"}))
    Monitor(emulator_binary, bios, *box(tmp_path / "media")).end()


def test_a_refused_start_keeps_the_data(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    media = tmp_path / "media"
    with driver(emulator_binary, bios, *box(media)) as drive:
        assert drive.write(7, fua=1) == 0
    assert "flash.gc_begin" in refuses(emulator_binary, bios, box(media, **{"flash.gc_begin": "96"}))
    assert "zone descriptor extension" in refuses(emulator_binary, bios, box(media, **{"flash.spare": "1"}))
    with driver(emulator_binary, bios, *box(media)) as drive:
        assert drive.read(7) == 0x61


def test_media_of_another_drive(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    media = tmp_path / "media"
    Monitor(emulator_binary, bios, *box(media)).end()
    assert "another kind of drive" in refuses(emulator_binary, bios, box(media, **{"flash.mapping": "fast"}))
    zoned = {"flash.size": "24M", "flash.channels": "2", "flash.block_pages": "32", "zoned.zone_size": "256K",
             "zoned.zone_capacity": "256K"}
    assert "another kind of drive" in refuses(emulator_binary, bios, device(media, **zoned))
    Monitor(emulator_binary, bios, *box(media)).end()


def test_commands(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    with driver(emulator_binary, bios, *box(tmp_path / "media")) as drive:
        assert drive.write(7) == 0 and drive.write(5, 2, byte=0x62) == 0 and drive.write(6, byte=0x63) == 0
        assert [drive.read(lba) for lba in range(4, 9)] == [0, 0x62, 0x63, 0x61, 0]
        assert drive.write(BLOCKS) == OUT_OF_RANGE and drive.io(VERIFY, cdw10=BLOCKS)[0] == OUT_OF_RANGE
        assert drive.io(VERIFY, cdw10=5, cdw12=2)[0] == 0
        drive.store(DATA, b"\x62" * 4096)
        assert drive.io(COMPARE, prp=DATA, cdw10=5) == (0, 0) and drive.io(COMPARE, prp=DATA, cdw10=6)[0] == 0x285
        assert drive.io(COPY, prp=DATA, cdw10=0, cdw12=0)[0] != 0       # it identifies with none
        assert drive.admin(0x80, nsid=1, cdw10=0)[0] == 0x10A and drive.read(7) == 0x61     # Format is refused
        assert drive.io(FLUSH)[0] == 0
        stats = drive.stats()
        assert stats["written_bytes"] == 4 * 4096 and stats["ftl"]["host"] == 4 and stats["ftl"]["mapping"] == "page"
        assert stats["ftl"]["logical_blocks"] == BLOCKS


def test_hints(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Where writes go without hints, after a predecessor, over what is there; hints that say nothing are not taken."""
    append, overwrite = 1 << 24, 1 << 25
    few = {"flash.channels": "4", "flash.dies": "2", "flash.zone_dies": "1", "flash.hints": "on", "flash.size": "32M"}
    with driver(emulator_binary, bios, *box(tmp_path / "media", **few)) as drive:
        written = [0] * 8

        def die(lba: int, hint: int = 0, near: int = 0) -> int:
            """On which the block is written."""
            assert drive.io(WRITE, prp=DATA, cdw2=near & 0xFFFFFFFF, cdw3=near >> 32, cdw10=lba, cdw12=hint)[0] == 0
            assert drive.io(FLUSH)[0] == 0
            now = [x["programs"] for x in drive.stats()["dies"]]
            grown = [i for i in range(8) if now[i] > written[i]]
            written[:] = now
            assert len(grown) == 1
            return grown[0]

        assert [die(lba) for lba in range(10)] == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]
        assert die(100, append, 7) == 0 and die(101, append, 100) == 1 and die(102) == 2
        assert die(5, overwrite) == 5 and die(6) == 6 and die(5, overwrite) == 5
        assert die(103, append, 500) == 6 and die(104, overwrite) == 7      # neither is mapped
        assert die(105, append, 1 << 40) == 0
    few["flash.hints"] = "off"
    with driver(emulator_binary, bios, *box(tmp_path / "off", **few)) as drive:
        written = [0] * 8
        assert [die(0), die(1, append, 0), die(0, overwrite), die(2, append, 0)] == [0, 1, 2, 3]


def test_trim(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Ranges beyond the end are refused as a whole; 256 that overlap are taken."""
    with driver(emulator_binary, bios, *box(tmp_path / "media")) as drive:
        for lba in range(0, 16, 2):
            assert drive.write(lba, 2) == 0
        assert trim(drive, (0, 1), (BLOCKS - 1, 2)) == OUT_OF_RANGE and drive.read(0) == 0x61
        assert trim(drive, (0, 1), (1 << 63, 1)) == OUT_OF_RANGE and drive.read(0) == 0x61
        assert trim(drive, (0, 1), deallocate=0) == 0 and drive.read(0) == 0x61
        assert trim(drive, (1, 0), (2, 2), (BLOCKS - 1, 1)) == 0
        assert [drive.read(lba) for lba in range(5)] == [0x61, 0x61, 0, 0, 0x61]
        assert trim(drive, *[(4 + i // 128, 4) for i in range(256)]) == 0
        assert [drive.read(lba) for lba in range(4, 10)] == [0] * 5 + [0x61]
        assert drive.io(WRITE_ZEROES, cdw10=9, cdw12=1)[0] == 0
        assert drive.io(WRITE_ZEROES, cdw10=BLOCKS, cdw12=0)[0] == OUT_OF_RANGE
        assert drive.read(9) == 0 == drive.read(10) and drive.read(11) == 0x61
        assert drive.stats()["ftl"]["trimmed"] == 2 + 5 + 2


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_cut(emulator_binary: Path, bios: Path, tmp_path: Path, mapping: str) -> None:
    """What was flushed, written through or trimmed holds, here and in the next process; the rest is old or new."""
    media = tmp_path / "media"
    with driver(emulator_binary, bios, *box(media, **{"flash.mapping": mapping})) as drive:
        for lba in range(8):
            assert drive.write(lba) == 0
        assert drive.io(FLUSH)[0] == 0
        assert drive.write(0, byte=0x62) == 0 and drive.write(1, byte=0x62, fua=1) == 0 and trim(drive, (2, 1)) == 0
        cut(drive)
        assert drive.read(0) in (0x61, 0x62) and drive.read(1) == 0x62 and drive.read(2) == 0
        assert [drive.read(lba) for lba in range(3, 8)] == [0x61] * 5
        assert drive.write(2, byte=0x63, fua=1) == 0
    with driver(emulator_binary, bios, *box(media, **{"flash.mapping": mapping})) as drive:
        assert [drive.read(lba) for lba in range(1, 8)] == [0x62, 0x63] + [0x61] * 5


def test_a_damaged_drive_stays_off_alone(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """One whose image was changed while it had no power; the machine's other drive goes on."""
    media = tmp_path / "media"
    second = ["-device", "nvme,id=nvme1,serial=other,addr=5", "-device",
              "nvme-ns,id=ns1,bus=nvme1,zoned=on,logical_block_size=4096,physical_block_size=4096,"
              f"flash.media={tmp_path / 'second'},flash.size=1G,zoned.zone_size=16M"]
    with driver(emulator_binary, bios, *box(media), *second) as drive, media.open("r+b") as image:
        other = drive.beside(5)
        assert drive.write(0, fua=1) == 0
        assert drive.admin(0xC0, nsid=1, cdw10=1)[0] == 0
        assert other.admin(0xC0, nsid=1, cdw10=0)[0] == 0 and other.write(0) == 0
        image.seek(4096 + 2 * 4096)                     # behind the header and the zones: when blocks were trimmed
        image.write(b"\xff" * 8)
        image.flush()
        assert drive.admin(0xC0, nsid=1, cdw10=0)[0] == 0x06
        assert (drive.write(1), other.write(1)) == (0x06, 0)
        assert other.stats()["powered"] == 0 and json.loads(str(other.get("stats", "ns1")))["powered"] == 1
        image.seek(4096 + 2 * 4096)
        image.write(bytes(8))
        image.flush()
        assert drive.admin(0xC0, nsid=1, cdw10=0)[0] == 0 and drive.read(0) == 0x61
        assert drive.stats()["cuts"] == 1


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_verified(lab_run, mapping: str) -> None:
    """Three times the drive at random, verified, then ext4; what was trimmed is not moved."""
    result = lab_run(r"""set -e
        job() { fio --name=v --filename=/dev/nvme0n1 --direct=1 --ioengine=io_uring --thread --verify=crc32c \
            --verify_fatal=1 --do_verify=1 "$@" >/dev/null; }
        job --rw=randwrite --bs=4k --iodepth=16 --loops=3; job --rw=write --bs=32k --iodepth=4
        blkdiscard /dev/nvme0n1; cmp -n 8388608 /dev/nvme0n1 /dev/zero
        mkfs.ext4 -q /dev/nvme0n1; mount -o discard /dev/nvme0n1 /mnt
        for i in 1 2 3; do head -c 3000000 /dev/urandom >/mnt/$i; done
        rm /mnt/2; sha256sum /mnt/1 /mnt/3 >/mnt/sums; umount /mnt
        e2fsck -f -n /dev/nvme0n1 >/dev/null; mount /dev/nvme0n1 /mnt; sha256sum -c -s /mnt/sums; umount /mnt
        """, profile="dram", device=DEVICE | {"flash.mapping": mapping, "flash.program_ns": "20000"}, timeout=900,
        **LOCKSTEP)
    assert result.status == 0, result.output + result.console


@pytest.mark.parametrize("make,check", [("mkfs.ext4 -q", "e2fsck -f -n"), ("mkfs.xfs -q", "xfs_repair -n")],
                         ids=["ext4", "XFS"])
def test_clean_restart(lab_run, tmp_path: Path, make: str, check: str) -> None:
    """Two guests, one drive: what the first left, the second finds."""
    media = tmp_path / "media"
    large = DEVICE | {"flash.size": "384M"}         # XFS takes no less than 300 MiB
    first = lab_run(f"set -e; {make} /dev/nvme0n1; mount /dev/nvme0n1 /mnt\n"
                    "head -c 9000000 /dev/urandom >/mnt/file; sha256sum /mnt/file >/mnt/sum; umount /mnt",
                    profile="dram", device=large, media=media, **LOCKSTEP)
    assert first.status == 0, first.output
    second = lab_run(f"set -e; {check} /dev/nvme0n1 >/dev/null; mount /dev/nvme0n1 /mnt\n"
                     "sha256sum -c -s /mnt/sum", profile="dram", device=large, media=media, **LOCKSTEP)
    assert second.status == 0, second.output


def test_the_same_twice(lab_run, tmp_path: Path) -> None:
    """GC belongs to virtual time: two runs leave the same counters, to the nanosecond."""
    found = []
    for turn in "ab":
        stream = tmp_path / turn
        lab_run("fio --name=w --filename=/dev/nvme0n1 --direct=1 --rw=randwrite --bs=4k --ioengine=io_uring "
                "--iodepth=8 --norandommap --loops=2 --thread >/dev/null", profile="dram",
                device=DEVICE | {"flash.stream": "s"},
                qemu=[f"-chardev file,id=s,path={stream}"], **LOCKSTEP)
        found.append(stream.read_bytes())
    assert found[0] == found[1]
    last = json.loads(found[0].splitlines()[-1])
    put = last["ftl"]["moved"] + last["ftl"]["host"]
    assert last["ftl"]["moved"] > 0 and last["programmed_bytes"] + last["buffer_used"] >= 4096 * put
