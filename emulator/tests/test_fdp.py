# SPDX-License-Identifier: GPL-2.0-or-later
"""Flexible data placement: reclaim units, events and statistics are what the flash did."""

import json
import struct
from pathlib import Path

import pytest
from bare import DATA, FLUSH, WRITE, Driver, Monitor, device, driver
from shared import BOX, LOCKSTEP, refuses

RECEIVE, SEND, GET_LOG, SET_FEATURES = 0x12, 0x1D, 0x02, 0x09
NOT_FULLY_WRITTEN, INVALID_PID, REALLOCATED, MODIFIED = 0x00, 0x03, 0x80, 0x81
UNIT = 64                                               # blocks of a reclaim unit: an erase block on both dies
SUBSYS = "nvme-subsys,id=sub0,fdp=on,fdp.nruh=4,fdp.runs=256K"
HANDLES = {"fdp.ruhs": "0-3", "flash.fdp_persistent": "1"}     # the last one
EMPTY = [UNIT] * 4


def with_fdp(media: Path, subsys: str = SUBSYS, **settings: str) -> list[str]:
    args = device(media, **BOX | HANDLES | settings)
    args[:2] = ["-device", subsys, "-device", "nvme,id=nvme0,serial=mtftl,subsys=sub0,addr=4"]
    return args


def put(drive: Driver, lba: int, handle: int | None = None, count: int = 1) -> None:
    directive = 0 if handle is None else 2 << 20
    assert drive.io(WRITE, prp=DATA, prp2=DATA + 4096, cdw10=lba, cdw12=count - 1 | directive,
                    cdw13=(handle or 0) << 16)[0] == 0


def left(drive: Driver) -> list[int]:
    """Blocks that the units of the handles still take."""
    assert drive.io(RECEIVE, prp=DATA, cdw10=1, cdw11=(16 + 4 * 32) // 4 - 1)[0] == 0
    status = drive.load(DATA, 16 + 4 * 32)
    assert struct.unpack_from("<H", status, 14)[0] == 4
    return [struct.unpack_from("<HHIQ", status, 16 + 32 * i)[3] for i in range(4)]


def renew(drive: Driver, *handles: int) -> int:
    drive.store(DATA, struct.pack(f"<{len(handles)}H", *handles))
    return drive.io(SEND, prp=DATA, cdw10=1 | len(handles) - 1 << 16)[0]


def log(drive: Driver, page: int, size: int) -> bytes:
    assert drive.admin(GET_LOG, prp=DATA, cdw10=page | (size // 4 - 1) << 16, cdw11=1 << 16)[0] == 0
    return drive.load(DATA, size)


def stats(drive: Driver) -> tuple[int, ...]:
    """Bytes of the host, and of the media written and erased."""
    return struct.unpack_from("<6Q", log(drive, 0x22, 64))[::2]


def watch(drive: Driver, *kinds: int) -> None:
    for handle in range(4):
        drive.store(DATA, bytes(kinds))
        assert drive.admin(SET_FEATURES, nsid=1, prp=DATA, cdw10=0x1E, cdw11=handle | len(kinds) << 16, cdw12=1)[0] == 0


def events(drive: Driver, host: bool) -> list[tuple[int, int, int, bytes]]:
    """Kind, placement identifier, handle and what belongs to the kind."""
    count = struct.unpack_from("<I", log(drive, 0x23 | host << 8, 64))[0]
    text = log(drive, 0x23 | host << 8, 64 + 64 * count)[64:]
    return [(text[i], struct.unpack_from("<H", text, i + 2)[0], text[i + 34], text[i + 16:i + 32])
            for i in range(0, len(text), 64)]


def handles(drive: Driver) -> list[dict[str, float]]:
    return drive.stats()["ftl"]["handles"]


def test_reclaim_units(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Each handle writes a unit of its own; no directive, or a wrong one, means the first handle."""
    with driver(emulator_binary, bios, *with_fdp(tmp_path / "media")) as drive:
        watch(drive, INVALID_PID)
        assert left(drive) == EMPTY
        put(drive, 0, handle=1, count=2)
        put(drive, 2, handle=3)
        put(drive, 3)
        assert left(drive) == [63, 62, 64, 63]
        put(drive, 4, handle=9)
        assert left(drive) == [62, 62, 64, 63] and events(drive, host=True)[0][:2] == (INVALID_PID, 9)
        for lba in range(6, 68, 2):
            put(drive, lba, handle=1, count=2)
        assert left(drive) == [62, 64, 64, 63]          # the 64th block filled it
        put(drive, 68, handle=1)
        assert left(drive)[1] == 63
        assert [h["host"] for h in handles(drive)] == [2, 65, 0, 1]
        assert log(drive, 0x20, 128)[16 + 64:16 + 64 + 16:4] == bytes([1, 1, 1, 2])    # types of the handles


def test_update(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """The host's update begins a new unit, and programs nothing but what was waiting."""
    with driver(emulator_binary, bios, *with_fdp(tmp_path / "media")) as drive:
        watch(drive, NOT_FULLY_WRITTEN)
        drive.store(DATA, b"\x62" * 4096)
        put(drive, 0, handle=2)
        assert drive.io(FLUSH)[0] == 0
        before = drive.stats()["programmed_bytes"]
        assert renew(drive, 2) == 0 and left(drive) == EMPTY
        assert drive.stats()["programmed_bytes"] == before
        assert [e[:3] for e in events(drive, host=True)] == [(NOT_FULLY_WRITTEN, 2, 2)]
        put(drive, 2, handle=2)
        assert left(drive)[2] == 63 and drive.read(0) == 0x62
        assert renew(drive, 0, 1, 2, 3) == 0 and renew(drive, 0, 4) != 0


def test_padding_is_told(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Flushes pad program units: a unit that ends by that was not filled by the host."""
    args = with_fdp(tmp_path / "media", SUBSYS, **{"flash.page": "16K", "flash.block_pages": "8"})
    with driver(emulator_binary, bios, *args) as drive:
        watch(drive, MODIFIED)
        for lba in range(16):
            assert left(drive)[1] == UNIT - 4 * lba
            put(drive, lba, handle=1)
            assert drive.io(FLUSH)[0] == 0
        assert left(drive) == EMPTY and [e[:3] for e in events(drive, host=False)] == [(MODIFIED, 1, 1)]
        assert stats(drive)[:2] == (16 * 4096, UNIT * 4096)


def churn(drive: Driver) -> int:
    """Handle 0 leaves data that lasts; three others overwrite, each its own part. How many blocks were written."""
    end = int(drive.stats()["ftl"]["logical_blocks"]) & ~7
    part = end // 4
    state, written = 1, 0
    for lba in range(0, end, 2):
        put(drive, lba, lba // part if lba < 4 * part else 0, 2)
        written += 2
    for _ in range(2 * end):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        handle = 1 + (state >> 8) % 3
        put(drive, handle * part + (state >> 12) % part, handle)
        written += 1
    return written


def test_collection_is_told(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Statistics are the flash's; moves are told of handles whose data may be mixed, and the newest are kept."""
    # without delays, so that a write ends at once
    quick = {f"flash.delay_{kind}": "off" for kind in ("read", "program", "erase", "transfer")}
    with driver(emulator_binary, bios, *with_fdp(tmp_path / "media", **quick)) as drive:
        watch(drive, REALLOCATED)
        written = churn(drive)
        assert drive.io(FLUSH)[0] == 0
        drive.step(1_000_000_000)
        (host, media, erased), flash, found = stats(drive), drive.stats(), events(drive, host=False)
    assert host == written * 4096
    assert media == flash["programmed_bytes"] and erased == flash["erases"] * 32 * 4096
    told = flash["ftl"]["handles"]
    assert sum(h["host"] for h in told) == flash["ftl"]["host"] == written
    assert sum(h["moved"] for h in told) == flash["ftl"]["moved"] and told[1]["moved"] > 0 < told[3]["moved"]
    for handle in told:
        assert handle["write_amplification"] == pytest.approx(1 + handle["moved"] / handle["host"], abs=1e-4)
    # no program unit has more than a block, so nothing was padded
    assert host + 4096 * flash["ftl"]["moved"] == pytest.approx(media, abs=64 * 4096)
    part = (flash["ftl"]["logical_blocks"] & ~7) // 4
    assert len(found) == 63
    for kind, placement, handle, more in found:
        assert kind == REALLOCATED and placement == handle < 3
        flags, _, blocks, lba = struct.unpack("<BBHQ", more[:12])
        assert flags == 1 and 0 < blocks < UNIT and (lba // part == handle or handle == 0)


def test_what_does_not_go_with_it(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    wrong = {
        "fdp.runs is 100663296, expected 262144": (SUBSYS.replace(",fdp.runs=256K", ""), {}),
        "fdp.nrg is 2, expected 1": (SUBSYS + ",fdp.nrg=2", {}),
        "flash.fdp_persistent is 5, expected at most fdp.nruh (4)": (SUBSYS, {"flash.fdp_persistent": "5"}),
        "placement handles need the mapping 'page', not 'dftl'": (SUBSYS, {"flash.mapping": "dftl"}),
        "placement handles need erase blocks on all dies": (SUBSYS.replace("256K", "128K"), {"flash.zone_dies": "1"}),
        "invalid reclaim unit handle identifier": (SUBSYS, {"fdp.ruhs": "9"}),
        "hot_writes=off": (SUBSYS, {"flash.hot_writes": "on"}),
        "flash.fdp_persistent needs a subsystem with fdp=on": ("nvme-subsys,id=sub0", {}),
    }
    for words, (subsys, settings) in wrong.items():
        assert words in refuses(emulator_binary, bios, with_fdp(tmp_path / "media", subsys, **settings))
    # what was refused has left nothing that would refuse a sound drive
    Monitor(emulator_binary, bios, *with_fdp(tmp_path / "media")).end()


def test_alone_in_its_subsystem(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """Another namespace is refused before and behind it, whatever it is."""
    args = with_fdp(tmp_path / "media")
    second = ["-drive", "if=none,id=plain,driver=null-co,size=1M",
              "-device", "nvme-ns,id=ns1,drive=plain,bus=nvme0,nsid=2,logical_block_size=4096,physical_block_size=4096"]
    for both in ([*args, *second], [*args[:4], *second, *args[4:]]):
        assert "the namespace must be alone, but there is namespace" in refuses(emulator_binary, bios, both)
    Monitor(emulator_binary, bios, *args).end()


def test_another_kind_of_drive(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """An image remembers its handles: no drive with others mixes what is apart."""
    with driver(emulator_binary, bios, *with_fdp(tmp_path / "media")) as drive:
        put(drive, 0, handle=3)
        assert drive.io(FLUSH)[0] == 0
    with driver(emulator_binary, bios, *with_fdp(tmp_path / "media")) as drive:
        assert left(drive) == [64, 64, 64, 63]          # it goes on in the same unit
    args = with_fdp(tmp_path / "media", **{"flash.fdp_persistent": "0"})
    assert "another kind of drive" in refuses(emulator_binary, bios, args)


GUEST = r"""
set -e
ph() { nvme write /dev/nvme0n1 --start-block=$1 --block-count=15 --data-size=65536 --data=/tmp/data --dir-type=2 \
    --dir-spec=$2; }
head -c 65536 /dev/zero >/tmp/data
nvme fdp set-events /dev/nvme0n1 --placement-handle=1 --enable --event-types=0
ph 0 1; ph 16 2; ph 32 2
nvme fdp status /dev/nvme0n1 --output-format=json >status
nvme fdp update /dev/nvme0n1 --pids=1
nvme fdp usage /dev/nvme0 --endgrp-id=1 --output-format=json >usage
nvme fdp stats /dev/nvme0 --endgrp-id=1 --output-format=json >stats
nvme fdp events /dev/nvme0 --endgrp-id=1 --host-events --output-format=json >events
nvme fdp configs /dev/nvme0 --endgrp-id=1 --output-format=json >configs
"""


def test_in_a_guest(lab_run) -> None:
    """nvme-cli writes by handles, and reads what became of it."""
    names = ["status", "usage", "stats", "events", "configs"]
    subsys = {f"subsys0.{key}": value for key, value in (("fdp", "on"), ("fdp.nruh", "4"), ("fdp.runs", "256K"))}
    result = lab_run(GUEST, profile="dram", device=BOX | HANDLES | subsys, pull=names, **LOCKSTEP)
    assert result.status == 0, result.output
    told = {name: json.loads(result.files[name]) for name in names}
    assert [(ruh["ruhid"], ruh["ruamw"]) for ruh in told["status"]["ruhss"]] == [(0, 64), (1, 48), (2, 32), (3, 64)]
    assert [ruh["ruha"] for ruh in told["usage"]["ruhus"]] == [1] * 4
    assert int(told["stats"]["hbmw"]) == int(told["stats"]["mbmw"]) == 48 * 4096 and int(told["stats"]["mbe"]) == 0
    assert [(event["type"], event["pid"], event["nsid"]) for event in told["events"]["events"]] == [(0, 1, 1)]
    assert [(c["nrg"], c["nruh"], c["runs"]) for c in told["configs"]["configs"]] == [(1, 4, UNIT * 4096)]
