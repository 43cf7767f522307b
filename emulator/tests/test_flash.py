# SPDX-License-Identifier: GPL-2.0-or-later
"""The flash device: the model on the host, the properties without a guest, the whole in a guest.

Times are asserted in virtual time only.
"""

import contextlib
import json
import os
import re
import socket
import statistics
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest
from bare import PROFILES, Driver, Monitor, device, driver
from mtlab.exp import counters
from shared import HERE, LOCKSTEP, MODEL, NVME, SMALL, TOOLS, compile_c, refuses

MIB = 1 << 20


def test_model(tmp_path: Path) -> None:
    """Closed forms and power cuts, on the host, under the sanitizers."""
    program = compile_c(tmp_path / "test_flash", "-fsanitize=address,undefined", f"-I{NVME}", HERE / "test_flash.c",
                        *sorted(MODEL.glob("*.c")), "-lcmocka")
    done = subprocess.run([program], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_big_endian_hosts_are_refused(tmp_path: Path) -> None:
    """The structures of the image are stored as they lie in memory."""
    done = subprocess.run(["gcc", "-std=gnu11", "-c", "-o", tmp_path / "media.o", "-U__BYTE_ORDER__",
                           "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__", MODEL / "media.c"],
                          capture_output=True, text=True)
    assert done.returncode and "little endian" in done.stderr


# Properties, without a guest.


BAD = [
    ({"flash.size": "0"}, "flash.size must be given"),
    ({"flash.size": "100M"}, "multiple of the zone size"),
    ({"flash.size": "32M"}, "at least the size of one zone"),
    ({"flash.channels": "0"}, "flash.channels x flash.dies"),
    ({"flash.channels": "5000"}, "flash.channels x flash.dies"),
    ({"flash.planes": "0"}, "flash.planes"),
    ({"flash.page": "3000"}, "flash.page must be a power of two"),
    ({"flash.page": "2K"}, "multiple of the logical block"),
    ({"flash.plane_reads": "on", "flash.planes": "2", "flash.page": "2K"}, "flash.plane_reads: flash.page (2048)"),
    ({"flash.plane_reads": "on", "flash.booked": "on"}, "needs flash.booked=off"),
    ({"flash.program_pages": "3", "flash.block_pages": "256"}, "multiple of flash.program_pages"),
    ({"flash.page_types": "40000"}, "expected READ/PROGRAM"),
    ({"flash.wear_out": "on"}, "flash.wear_out needs flash.pe_cycles"),
    ({"flash.worn_erase": "200"}, "flash.worn_... needs flash.pe_cycles"),
    ({"flash.wear_out": "on", "flash.pe_cycles": "9", "flash.personality": "ocssd", "zoned": "off"},
     "is of zoned drives"),
    ({"flash.refresh_ns": "1000000000"}, "flash.refresh_ns is of drives with an FTL"),
    ({"flash.suspend_ns": "100000000001"}, "flash.suspend_ns is 100000000001, expected at most 100000000000"),
    ({"flash.resume_ns": str(2**64 - 1)}, "flash.resume_ns is 18446744073709551615, expected at most 100000000000"),
    ({"flash.journal": "journal", "flash.wear_out": "on", "flash.pe_cycles": "9"}, "knows of no end of life"),
    ({"flash.page_types": "1/2:3/4:5/6", "flash.block_pages": "256"}, "multiple of the number of flash.page_types (3)"),
    ({"flash.dies": "4", "flash.zone_dies": "3"}, "must divide the number of dies"),
    ({"flash.blocks": "1"}, "blocks a plane"),
    ({"flash.stream": "nothing"}, "no chardev 'nothing'"),
    ({"zoned": "off"}, "needs zoned=on"),
    ({"flash.journal": "/nowhere/journal"}, "flash.journal '/nowhere/journal': No such file"),
    ({"flash.journal": "journal", "flash.personality": "ocssd", "zoned": "off"}, "is of zoned drives"),
    ({"flash.journal": "journal", "flash.plp": "on"}, "knows of no capacitors"),
    ({"flash.journal": "journal", "zoned.zrwas": "64K", "zoned.numzrwa": "1"}, "knows of no windows"),
    ({"flash.journal": "journal", "zoned.descr_ext_size": "64"}, "knows of no zone descriptor extensions"),
    ({"zoned.zone_capacity": "65M"}, "exceeds zone size"),
    ({"ms": "8", "pi": "1"}, "pi"),
    ({"ms": "8", "mset": "1"}, "mset=0"),
    ({"ms": "24"}, "takes ms 0, 8, 16 or 64"),
    ({"logical_block_size": "1024"}, "512 or 4096"),
    ({"zoned.zrwas": "64K", "zoned.numzrwa": "16"}, "16 windows of 65536 bytes leave nothing of flash.buffer"),
    ({"zoned.zrwas": "64K"}, "64 windows of 65536 bytes"),
    ({"zoned.zrwas": "64K", "zoned.zrwafg": "0"}, "zoned.zrwafg, 0"),
    ({"zoned.zrwas": "64K", "logical_block_size": "0"}, "need a logical_block_size"),
    ({"zoned.zrwas": "64K", "zoned.zrwafg": "2K"}, "zoned.zrwafg, 2048"),
    ({"zoned.zrwas": "512M", "zoned.numzrwa": "1"}, "at most 65535 logical blocks"),
    ({"zoned.cross_read": "on"}, "zoned.cross_read"),
    ({"flash.zone_caches": "3"}, "needs flash.booked=on"),
    ({"flash.zone_caches": "3", "flash.booked": "on", "flash.personality": "ocssd", "zoned": "off"},
     "is of zoned drives"),
    ({"flash.zone_caches": "2000", "flash.booked": "on"}, "at most 1024"),
    ({"flash.zone_caches": "3", "flash.booked": "on", "zoned.zrwas": "64K", "zoned.numzrwa": "1"},
     "does not go with flash.zone_caches"),
    ({"flash.media": "/nowhere/at/all"}, "No such file"),
]


@pytest.mark.parametrize("settings,word", BAD, ids=[w for _, w in BAD])
def test_bad_properties(emulator_binary: Path, bios: Path, tmp_path: Path, settings: dict[str, str], word: str) -> None:
    assert word in refuses(emulator_binary, bios, device(tmp_path / "media", **settings))


def test_image_of_another_geometry(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    media = tmp_path / "media"
    Monitor(emulator_binary, bios, *device(media)).end()
    assert "channels" in refuses(emulator_binary, bios, device(media, **{"flash.channels": "2"}))
    assert "zones" in refuses(emulator_binary, bios, device(media, **{"flash.size": "2G"}))
    media.write_bytes(b"x" * 10000)
    assert "not a flash image" in refuses(emulator_binary, bios, device(media))


@pytest.mark.parametrize("profile", sorted(p.stem for p in PROFILES.glob("*.cfg")))
def test_profile_starts(emulator_binary: Path, bios: Path, tmp_path: Path, profile: str) -> None:
    monitor = Monitor(emulator_binary, bios, *device(tmp_path / "media", profile))
    stats = json.loads(str(monitor.get("stats")))
    monitor.end()
    assert stats["version"] == 1 and len(stats["dies"]) == stats["geometry"]["channels"] * stats["geometry"]["dies"]


def test_live_properties(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    monitor = Monitor(emulator_binary, bios, *device(tmp_path / "media", "tlc"))
    try:
        for name, value in (("read_ns", 60000), ("delay_erase", False), ("buffer", 65536), ("suspend", True)):
            assert "error" not in monitor.set(name, value)
            assert monitor.get(name) == value
        assert "cannot change" in monitor.set("channels", 2)["error"]["desc"]
        assert "needs flash.pe_cycles" in monitor.set("worn_read", 200)["error"]["desc"]
        assert monitor.get("worn_read") == 0
        assert "expected at most 100000000000" in monitor.set("read_ns", 100000000001)["error"]["desc"]
        assert monitor.get("read_ns") == 60000
        assert "error" not in monitor.set("fault", "slow-die 3 200")
        for bad in ("slow-die 99 200", "no-such-thing", "cut x", "read-error 1 0", "offline 999999999999"):
            assert "error" in monitor.set("fault", bad), bad
        assert json.loads(str(monitor.get("stats")))["powered"] == 1
        assert "error" not in monitor.set("fault", "cut")
        assert json.loads(str(monitor.get("stats")))["powered"] == 0
        assert "error" not in monitor.set("fault", "power-on")
        assert json.loads(str(monitor.get("stats")))["powered"] == 1
    finally:
        monitor.end()


# The journal's port.


NOTE, NOTE_PORT = 9, 0xFA8


def notes(journal: Path) -> list[bytes]:
    data, at, found = journal.read_bytes(), 0, []
    while at < len(data):
        kind, size = struct.unpack_from("<8xI16xI", data, at)
        at += 32 + size
        found += [data[at - size:at]] if kind == NOTE else []
    return found


def say(drive: Driver, *words: int) -> None:
    for word in words:
        drive.qtest(f"outl {NOTE_PORT} {word}")


def test_a_reset_ends_a_note(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    """What a guest had begun to say is not taken for the first words of the next one."""
    journal = tmp_path / "journal"
    with driver(emulator_binary, bios, *device(tmp_path / "media", **SMALL | {"flash.journal": str(journal)})) as drive:
        say(drive, 8, 1, 2, 12, 3)
        drive.stream.write('{"execute": "system_reset"}\n')
        drive.stream.flush()
        answers: list[dict] = []
        while not any("event" not in x for x in answers) or not any(x.get("event") == "RESET" for x in answers):
            answers.append(json.loads(drive.stream.readline()))
        say(drive, 4, 5)
    assert notes(journal) == [struct.pack("<2I", 1, 2), struct.pack("<I", 5)]


# In a guest.

def values(output: str) -> dict[str, str]:
    """Lines NAME: VALUE."""
    return dict(re.findall(r"^(\w+): (.*)$", output, re.M))


def test_restart(lab_run, tmp_path: Path) -> None:
    """Flushed data survives the end of QEMU; what only the buffer held does not."""
    media = tmp_path / "media"
    device = SMALL | {"ms": "16"}
    lab_run(TOOLS + "put 0 0 8 a; put 1 0 3 b; sync_; put 2 0 2 c; blkzone finish -o 98304 -c 1 /dev/nvme0n1;"
            "put 5 0 1 e",
            profile="dram", device=device, media=media, **LOCKSTEP)
    got = values(lab_run(TOOLS + "for z in 0 1 2 3 5; do echo z$z: $(wp $z); done;"
                         "echo a: $(get 0 7); echo b: $(get 1 2)",
                         profile="dram", device=device, media=media, **LOCKSTEP).output)
    assert got.pop("z3").endswith("fu")
    assert got == {"z0": "8 cl", "z1": "3 cl", "z2": "0 em", "z5": "0 em", "a": "a", "b": "b"}


def test_power_cuts(lab_run) -> None:
    got = values(lab_run(TOOLS + r"""
        put 0 0 4 a; sync_; put 0 4 2 b
        flash 1; echo cut: $(get 0 0); flash 0
        echo now: $(wp 0) $(get 0 3) $(get 0 4)
        put 1 0 4 c; sync_; flash 2 1; put 1 4 8 d; sleep 0.1; flash 0
        echo program: $(wp 1) $(get 1 3) $(get 1 4) $(get 1 7)
        put 2 0 4 e; sync_; flash 1 500000000; put 2 4 4 f; sync_; sleep 1; echo later: $(get 2 0); flash 0
        echo timed: $(wp 2) $(get 2 3) $(get 2 7)
        put 2 8 4 g; echo on: $?; sync_; echo again: $(get 2 8)
        """, profile="dram", device=SMALL, **LOCKSTEP).output)
    assert got["cut"] == "error"
    assert got["now"] == "4 cl a 0"                 # what was in the buffer is gone, without a trace
    program = got["program"].split()
    assert program[2:] == ["c", "error", "error"]   # torn, and below the write pointer
    assert int(program[0]) in (8, 12)
    assert got["later"] == "error" and got["timed"] == "8 cl e f"
    assert got["on"] == "0" and got["again"] == "g"


# Random write windows: 16 blocks, sliding by 4, in two zones at a time.
WINDOWS = {"zoned.zone_size": "16M", "zoned.zone_capacity": "12M", "zoned.max_open": "4", "zoned.max_active": "4",
           "zoned.zrwas": "64K", "zoned.zrwafg": "16K", "zoned.numzrwa": "2"}
ZRWA = TOOLS + r"""
# Each prints its status: w ZONE BLOCK COUNT BYTE, o ZONE (open with a window), c ZONE BLOCK (commit to it), z VERB ZONE
t() { "$@" >/tmp/out 2>&1; r=$?; s=$(sed -n 's/.*(0x\([0-9a-f]*\)).*/\1/p' /tmp/out); printf '%s ' ${s:-$r}; }
w() { head -c $(($3 * 4096)) /dev/zero | tr '\0' "$4" > /tmp/in$2
    t nvme write --force /dev/nvme0n1 -s $(($1 * 4096 + $2)) -c $(($3 - 1)) -z $(($3 * 4096)) -d /tmp/in$2; }
o() { t nvme zns open-zone /dev/nvme0n1 -s $(($1 * 4096)) -r; }
c() { t nvme zns zrwa-flush-zone /dev/nvme0n1 -l $(($1 * 4096 + $2)); }
z() { t nvme zns $1-zone /dev/nvme0n1 -s $(($2 * 4096)); }
# at ZONE: write pointer, state, attributes
at() { nvme zns report-zones /dev/nvme0n1 -s $(($1 * 4096)) -d 1 |
    sed -n 's/.*WP: *\(0x\)*\([0-9a-f]*\).*State: *\([^ ]*\).*Attrs: *\([^ ]*\).*/\2 \3 \4/p' |
    { read p s a; echo $((0x$p - $1 * 4096)) $s $a; }; }
"""


def test_windows_are_those_of_qemu(lab_run) -> None:
    """What the host sees of random write windows is what it sees on a namespace without flash."""
    script = ZRWA + r"""
        echo limit: $(o 0; o 0; o 1; o 2)
        echo any_order: $(w 0 4 4 a; w 0 0 4 b; w 0 4 1 c) $(at 0) $(get 0 0) $(get 0 4) $(get 0 5) $(get 0 8)
        echo slides: $(w 0 16 4 d) $(at 0) $(get 0 3) $(get 0 19)
        echo outside: $(w 0 0 1 x; w 0 36 1 x) $(get 0 0)
        echo commit: $(c 0 7; c 0 9; c 0 24; c 0 3; c 2 3) $(at 0)
        echo append: $(t nvme zns zone-append /dev/nvme0n1 -s 0 -z 4096 -d /tmp/in0)
        echo closed: $(z close 0) $(at 0) $(o 2) $(w 0 8 1 e) $(at 0) $(get 0 8)
        echo finish: $(w 1 0 6 f; z finish 1) $(at 1) $(get 1 5) $(get 1 6) $(w 1 6 1 x)
        echo back: $(o 2; z reset 0) $(at 0) $(get 0 8) $(o 3; o 0)
        echo unaligned: $(z reset 3; w 3 0 3 g; o 3)
        echo full: $(w 2 0 16 h; for i in $(seq 15 16 3071); do c 2 $i; done | tr -d ' 0') $(at 2)
        echo given_back: $(c 2 3071; o 1; z reset 3; o 3)
        """
    # QEMU's own namespace writes to a file of the host, and virtual time passes meanwhile: as much as a slow host
    # takes. The guest may not give up.
    ours, stock = (values(lab_run(script, profile=profile, device=WINDOWS | more, append="nvme_core.io_timeout=2000000",
                                  **LOCKSTEP).output)
                   for profile, more in (("dram", SMALL | WINDOWS), ("stock", {})))
    assert ours == stock
    assert ours["limit"] == "0 0 0 41b7"
    assert ours["any_order"] == "0 0 0 0 0x30 0x8 b c a 0"
    assert ours["slides"] == "0 4 0x30 0x8 b d"
    assert ours["outside"] == "41bc 41bc b"
    assert ours["commit"] == "0 4002 41b8 41b8 4002 8 0x30 0x8"
    assert ours["closed"] == "0 8 0x40 0x8 41b7 0 8 0x20 0x8 e"
    assert ours["back"] == "0 0 0 0x10 0 0 0 41b7"
    assert ours["given_back"] == "4002 41bf 0 0"


def test_windows_in_time_and_power(lab_run, tmp_path: Path) -> None:
    """Overwritten in place, programmed once, and never lost, whether it was committed or not."""
    media, trace = tmp_path / "media", tmp_path / "trace"
    device = SMALL | WINDOWS | {"flash.write_cmd_ns": "10000", "flash.commit_ns": "20000"}
    got = values(lab_run(ZRWA + r"""
        { o 0; for i in $(seq 50); do w 0 0 16 a; done; w 0 8 8 b; sync_; c 0 3; sleep 0.1; } >/dev/null
        echo before: $(at 0)
        flash 1; echo cut: $(get 0 0); flash 0
        echo after: $(at 0) $(get 0 3) $(get 0 4) $(get 0 15) $(get 0 16)
        echo goes_on: $(w 0 4 4 c; c 0 7) $(at 0) $(get 0 7) $(o 1; o 2)
        put 2 0 1 d
        """, profile="dram", device=device, media=media, **LOCKSTEP,
        qemu=["-trace nvme_flash_submit -trace nvme_flash_done", f"-D {trace}"]).output)
    assert got["before"] == "4 0x30 0x8" and got["cut"] == "error"
    assert got["after"] == "4 0x40 0x8 a a b 0"
    assert got["goes_on"] == "0 0 8 0x20 0x8 c 0 41b7"
    took = re.findall(r"submit .*kind ([18]) .*at (\d+)\n.*done .*at (\d+)", trace.read_text())
    assert {(kind, int(done) - int(at)) for kind, at, done in took} == {("1", 10000), ("8", 20000)}
    assert [kind for kind, *_ in took].count("1") == 50 + 1 + 1 + 1
    got = values(lab_run(ZRWA + r"""
        echo zone: $(at 0) $(get 0 7) $(get 0 8) $(get 0 15); echo lost: $(at 2)
        echo count: $(o 1; o 2; z reset 0; o 2) $(get 0 8)
        """, profile="dram", device=device, media=media, **LOCKSTEP).output)
    assert got["zone"] == "8 0x40 0x8 c b b" and got["lost"] == "0 0x10 0"
    assert got["count"] == "0 41b7 0 0 0"


def test_windows_when_the_controller_resets(lab_run) -> None:
    """Writes that wait to slide their window do so without their host."""
    got = values(lab_run(ZRWA + r"""
        { o 0; w 0 0 16 a; w 0 16 4 b; } >/dev/null
        for i in 20 24 28; do w 0 $i 4 c >/dev/null & done
        sleep 2; nvme reset /dev/nvme0; wait; sleep 20
        echo there: $(at 0) $(get 0 0) $(get 0 19) $(get 0 31)
        echo on: $(w 0 33 1 d) $(at 0) $(get 0 33) $(z reset 0) $(at 0) $(get 0 33)
        """, profile="dram", device=SMALL | WINDOWS | {"flash.program_ns": "5000000000", "flash.buffer": "144K"},
        **LOCKSTEP).output)
    assert got["there"] == "16 0x30 0x8 a b c"
    assert got["on"] == "0 20 0x30 0x8 d 0 0 0x10 0 0"


def test_copy(lab_run, tmp_path: Path) -> None:
    """Copy reads, on two dies here, and then writes; what stops the one or the other leaves the destination alone."""
    trace = tmp_path / "trace"
    got = values(lab_run(ZRWA + r"""
        # y ZONE BLOCK FROM COUNTS: copy blocks to there
        y() { t nvme copy /dev/nvme0n1 -d $(($1 * 4096 + $2)) -s $3 -b $4; }
        w 0 0 4 a >/dev/null; w 0 4 4 b >/dev/null; sync_
        echo copied: $(y 1 0 2,6 1,0) $(at 1) $(get 1 0) $(get 1 1) $(get 1 2) $(get 1 3)
        echo refused: $(y 1 0 0 0; y 1 9 0 0; y 2 0 0,0 127,0; y 2 0 4094 3) $(at 1) $(at 2)
        flash 0x10 5 1; echo unreadable: $(y 1 3 4,5 0,0) $(at 1); flash 0x1f
        flash 0x11 $((4096 + 3)) 1; echo write_fault: $(y 1 3 0 0) $(at 1); flash 0x1f
        o 2 >/dev/null; echo window: $(y 2 4 0 1; y 2 5 4 0; y 1 3 8197 0) $(at 2) $(get 2 4) $(get 2 5) $(get 1 3)
        sync_; flash 1; flash 0; echo cut: $(get 1 1) $(get 1 2) $(get 1 3) $(at 1)
        """, profile="dram", device=SMALL | WINDOWS | {"flash.write_cmd_ns": "10000", "mssrl": "64", "mcl": "100"},
        **LOCKSTEP, qemu=["-trace nvme_flash_submit -trace nvme_flash_done", f"-D {trace}"]).output)
    assert got["copied"] == "0 3 0x20 0 a a b 0"
    assert got["refused"] == "41bc 41bc 4183 41b8 3 0x20 0 0 0x10 0"
    assert got["unreadable"] == "4281 3 0x20 0" and got["write_fault"] == "4280 3 0x20 0"
    assert got["window"] == "0 0 0 0 0x30 0x8 a b b" and got["cut"] == "a b b 4 0x40 0"
    # both sources at once, then the write
    lines = [re.search(r"nvme_flash_(\w+) .*kind (\d) zone (\d) block (\d+) nlb (\d).* at (\d+)", x)
             for x in trace.read_text().splitlines()]
    first = next(i for i, x in enumerate(lines) if x and x.groups()[:5] == ("submit", "0", "0", "2", "2"))
    told = [x.groups()[:5] for x in lines[first:first + 6] if x]
    assert told == [("submit", "0", "0", "2", "2"), ("submit", "0", "0", "6", "1"), ("done", "0", "0", "2", "2"),
                    ("done", "0", "0", "6", "1"), ("submit", "1", "1", "0", "3"), ("done", "1", "1", "0", "3")]
    at = [int(x[6]) for x in lines[first:first + 6] if x]
    assert [x - at[0] for x in at] == [0, 0, 50000, 50000, 50000, 60000]


def test_copy_when_the_controller_resets(lab_run) -> None:
    """A copy whose reads still wait is forgotten: nothing is written later."""
    got = values(lab_run(ZRWA + r"""
        w 0 0 4 a >/dev/null; sync_
        for i in 0 0 0; do nvme copy /dev/nvme0n1 -d 4096 -s $i -b 3 >/dev/null 2>&1 & done
        sleep 0.1; nvme reset /dev/nvme0; wait; sleep 3
        echo forgotten: $(at 1); nvme copy /dev/nvme0n1 -d 4096 -s 0 -b 3 >/dev/null; echo again: $(at 1) $(get 1 3)
        """, profile="dram", device=SMALL | WINDOWS | {"flash.read_ns": "1000000000"}, **LOCKSTEP).output)
    assert got["forgotten"] == "0 0x10 0" and got["again"] == "4 0x20 0 a"


def test_faults(lab_run) -> None:
    got = values(lab_run(TOOLS + r"""
        put 0 0 8 a; put 1 0 8 b; put 2 0 8 c; put 4 0 4 d; sync_
        flash 0x10 3 2; echo range: $(get 0 2) $(get 0 3) $(get 0 4) $(get 0 5); flash 0x1f; echo cleared: $(get 0 3)
        flash 0x10 3 1 1; echo once: $(get 0 3) $(get 0 3)
        flash 0x11 8 1 1; put 0 8 1 x; echo write: $? $(wp 0); put 0 8 1 y; echo rewrite: $? $(get 0 8)
        flash 0x12 1000000; echo rate: $(get 1 0); flash 0x1f
        flash 0x14 1; put 1 8 4 e; sync_; echo hidden: $(get 1 11)
        flash 0x15 8192; put 2 8 1 z; echo ro: $? $(get 2 0) $(wp 2 | cut -d' ' -f2)
        blkzone reset -o 65536 -c 1 /dev/nvme0n1 2>/dev/null; echo reset: $? $(get 4 0)
        flash 0x16 4096; echo off: $(get 1 0) $(wp 1 | cut -d' ' -f2)
        """, profile="dram", device=SMALL, **LOCKSTEP).output)
    assert got["range"] == "a error error a" and got["cleared"] == "a"
    assert got["once"] == "error a"
    assert got["write"] == "1 8 " + got["write"].split()[-1] and got["rewrite"] == "0 y"
    assert got["rate"] == "error" and got["hidden"] == "e"
    assert got["ro"] == "1 c ro"
    assert got["reset"] == "1 d"                    # the neighbour is not reset in its place
    assert got["off"] == "error of"


def test_lost_completion_and_slow_die(lab_run) -> None:
    """The host's abort ends a command that was never answered. A slow die slows itself alone."""
    result = lab_run(TOOLS + r"""
        took() { set -- $(fio --name=t --filename=/dev/nvme0n1 --direct=1 --rw=read --bs=4k --offset=$1 --size=4k \
            --loops=5 --ioengine=psync --output-format=terse | cut -d';' -f38); echo ${1%.*}; }
        put 0 0 8 a; sync_
        echo before: $(took 0) $(took 16k)
        flash 0x17 0 300; echo slow: $(took 0) $(took 16k); flash 0x17 0 100
        flash 0x18 1; echo lost: $(get 0 0) $(dmesg | grep -c "timeout, aborting")
        echo aborts: $(dmesg | grep -c "Abort status: 0x0")
        echo next: $(get 0 0)
        """, profile="dram", device=SMALL, append="nvme_core.io_timeout=1", **LOCKSTEP)
    got = values(result.output)
    (fast0, fast1), (slow0, slow1) = (map(int, got[x].split()) for x in ("before", "slow"))
    assert slow0 - fast0 == pytest.approx(100, abs=1) and slow1 == fast1      # microseconds; a read takes 50
    assert got["lost"] == "a 1" and got["aborts"] == "1" and got["next"] == "a", result.console


FIO = ("fio --name=t --filename=/dev/nvme0n1 --direct=1 --zonemode=zbd --thread "
       "--output-format=json --output=f.json ")


def fio(lab_run, args: str, before: str = "", **options: object) -> dict:
    """What one fio job reports."""
    result = lab_run(before + FIO + args, pull=["f.json"], **options)
    data = json.loads(next(iter(result.files.values())))
    return data["jobs"][0]


def test_little(lab_run) -> None:
    """Requests in flight = rate x time in the system, where the device and not the guest's software sets the rate."""
    for args in ("--rw=write --bs=128k --size=1g --max_open_zones=4", "--rw=randread --bs=4k --size=64m"):
        job = fio(lab_run, f"{args} --ioengine=libaio --iodepth=16 --time_based --ramp_time=500ms --runtime=2",
                  before="dd if=/dev/zero of=/dev/nvme0n1 bs=1M count=64 oflag=direct 2>/dev/null; " * ("read" in args),
                  profile="qlc", device={"flash.read_ns": "5000000"}, **LOCKSTEP)
        side = job["read" if "read" in args else "write"]
        assert side["iops"] * side["lat_ns"]["mean"] / 1e9 == pytest.approx(16, rel=0.03)


def test_latency_is_the_model_plus_a_constant(lab_run) -> None:
    """One read at a time: the guest's software costs the same number of nanoseconds whatever the flash costs."""
    def usual(read_ns: int) -> int:
        result = lab_run("dd if=/dev/zero of=/dev/nvme0n1 bs=1M count=1 oflag=direct 2>/dev/null;" + FIO +
                         "--zonemode=none --rw=read --bs=4k --size=1m --ioengine=psync --write_lat_log=t",
                         pull=["t_clat.1.log"], device=SMALL | {"flash.read_ns": str(read_ns)}, profile="dram",
                         **LOCKSTEP)
        log = next(iter(result.files.values())).decode()
        return statistics.median_low(int(line.split(",")[1]) for line in log.splitlines())

    # Reads of a millisecond cross the periods in which the kernel accounts for load: 300 ns more.
    times = (50000, 150001, 250003)
    software = [usual(ns) - ns for ns in times]
    assert max(software) - min(software) <= 1, software       # fio's clock rounds
    assert 0 < min(software) < 20000


def ask(path: Path, asked: list[int]) -> None:
    """Asks the running device for its counters, again and again, until the emulator ends."""
    question = {"execute": "qom-get", "arguments": {"path": "/machine/peripheral/ns0", "property": "flash.stats"}}
    with socket.socket(socket.AF_UNIX) as monitor, contextlib.suppress(OSError):
        # The socket has a name before anyone listens there.
        while monitor.connect_ex(str(path)):
            time.sleep(0.01)
        stream = monitor.makefile("rw")
        stream.readline()
        for command in ({"execute": "qmp_capabilities"}, *[question] * 1_000_000):
            stream.write(json.dumps(command) + "\n")
            stream.flush()
            if not stream.readline():
                break
            asked.append(1)


def test_queries_leave_no_trace(lab_run, tmp_path: Path) -> None:
    """A read of the counters moves nothing in lockstep, also while a CPU is in the middle of its turn."""
    asked = list[int]()

    def told(name: str, polled: bool) -> bytes:
        poll = threading.Thread(target=ask, args=(tmp_path / name, asked), daemon=True)
        if polled:
            poll.start()
        result = lab_run("dd if=/dev/zero of=/dev/nvme0n1 bs=1M count=8 oflag=direct 2>/dev/null;" + FIO +
                         "--zonemode=none --rw=randread --bs=4k --size=8m --ioengine=libaio --iodepth=4 --numjobs=3 "
                         "--time_based --runtime=100ms --norandommap", pull=["f.json"], profile="tlc", clock="virtual",
                         cpus=4, quantum=20000, module=False, qemu=[f"-qmp unix:{tmp_path / name},server=on,wait=off"])
        if polled:
            poll.join()
        return next(iter(result.files.values()))

    quiet = told("quiet", polled=False)
    assert told("polled", polled=True) == quiet
    assert len(asked) > 100


def test_zn540_data(lab_run, tmp_path: Path) -> None:
    """4 KiB latencies (the device's own), peak bandwidth and read rate within 10% of the published ones."""
    trace = tmp_path / "trace"
    result = lab_run(f"""
job() {{ {FIO.replace("f.json", "$1.json")} --ioengine=io_uring --group_reporting --numjobs=4 \\
    --offset_increment=2g --rw="$@"; }}
head -c 4096 /dev/zero >block
dd if=block of=/dev/nvme0n1 bs=4k oflag=direct,seek_bytes seek=32G 2>/dev/null
nvme zns zone-append /dev/nvme0n1 --zslba=$((17 << 19)) --data-size=4096 --data=block >/dev/null
job write --bs=128k --iodepth=8 --size=2g --io_size=256m --max_open_zones=8
job randread --zonemode=none --bs=4k --iodepth=32 --size=256m --time_based --runtime=200ms --ramp_time=20ms
dd if=/dev/nvme0n1 of=block bs=4k count=1 iflag=direct 2>/dev/null
""", profile="zn540", pull=["*.json"], clock="virtual", cpus=8, module=False,
                     qemu=["-trace nvme_flash_submit -trace nvme_flash_done", f"-D {trace}"])
    write, read = (json.loads(result.files[f"{kind}.json"])["jobs"][0][side]
                   for kind, side in (("write", "write"), ("randread", "read")))
    assert write["bw_bytes"] == pytest.approx(1145 * MIB, rel=0.1)
    assert read["iops"] == pytest.approx(424000, rel=0.1)
    times = re.findall(r"nvme_flash_(?:submit|done) .*kind (\d) zone (\d+) block 0 nlb 1 .*at (\d+)", trace.read_text())
    last = {(kind, zone): int(at) - int(before) for (*_, before), (kind, zone, at) in zip(times, times[1:])}
    assert last["1", "16"] == pytest.approx(11400, rel=0.1)
    assert last["2", "17"] == pytest.approx(14800, rel=0.1)
    assert last["0", "0"] == pytest.approx(72600, rel=0.1)


@pytest.mark.parametrize("profile,bs,rate", [("qlc", "128k", 16 * 64 * 1024 / 12.196e-3), ("femu", "16k", 327.68e6)])
def test_program_bound(lab_run, profile: str, bs: str, rate: float) -> None:
    """The bandwidth that the published experiments saw is what the dies can program while they need not erase."""
    job = fio(lab_run, f"--rw=write --bs={bs} --ioengine=libaio --iodepth=32 --numjobs=4 --group_reporting --size=512m "
              "--offset_increment=512m --max_open_zones=8 --time_based --ramp_time=1 --runtime=3", profile=profile,
              **LOCKSTEP)
    assert job["write"]["bw_bytes"] == pytest.approx(rate, rel=0.01)


def test_random_commands(lab_run, tmp_path: Path) -> None:
    """Valid and garbage commands: the device answers each of them and lives."""
    program = compile_c(tmp_path / "fuzz", "-static", HERE / "guest/fuzz.c")
    count = os.environ.get("MTFTL_FUZZ", "3000")
    result = lab_run(f"./fuzz {count} 1 && nvme id-ns /dev/nvme0n1 >/dev/null", push=[program], profile="tlc",
                     device={"zoned.zrwas": "64K", "zoned.zrwafg": "8K", "zoned.numzrwa": "4"}, cpus=2, module=False,
                     timeout=1200)
    assert result.status == 0, result.output


def test_reset_with_commands_in_flight(lab_run) -> None:
    """Controller reset, queue deletion and unbinding while commands wait for their time."""
    result = lab_run(r"""
        fio --name=f --filename=/dev/nvme0n1 --direct=1 --zonemode=zbd --rw=write --bs=64k --size=48m \
            --thread >/dev/null
        go() { fio --name=t --filename=/dev/nvme0n1 --direct=1 --rw=randread --bs=4k --size=12m --ioengine=libaio \
            --thread --iodepth=250 --numjobs=4 --continue_on_error=all --time_based --runtime=4 >/dev/null 2>&1; }
        for i in 1 2 3 4 5; do
            go & sleep 1; nvme reset /dev/nvme0 || exit 1; sleep 0.5; nvme reset /dev/nvme0; wait
        done
        go & sleep 1; echo 0000:00:$(basename $(readlink /sys/class/nvme/nvme0/device) | cut -d: -f3) > /tmp/bdf
        b=$(cat /tmp/bdf); echo $b > /sys/bus/pci/drivers/nvme/unbind; wait
        echo $b > /sys/bus/pci/drivers/nvme/bind
        for i in $(seq 60); do [ -b /dev/nvme0n1 ] && break; sleep 1; done
        dd if=/dev/nvme0n1 bs=4k count=1 iflag=direct of=/dev/null || exit 2
        go & sleep 1; echo 1 > /sys/bus/pci/devices/$b/remove; wait; echo 1 > /sys/bus/pci/rescan; sleep 2
        dd if=/dev/nvme0n1 bs=4k count=1 iflag=direct of=/dev/null
        """, profile="tlc", device={"flash.read_ns": "200000000"}, module=False, timeout=400)
    assert result.status == 0, result.output


def test_stream_and_log(emulator_binary: Path, bios: Path, tmp_path: Path, lab_run) -> None:
    """Log page and stream tell the same story as the guest."""
    stream = tmp_path / "stream"
    result = lab_run(TOOLS + r"""put 0 0 8 a; sync_; get 0 0 >/dev/null
        nvme get-log /dev/nvme0 --namespace-id=1 --log-id=0xf0 --log-len=392 --raw-binary > log""",
        profile="dram", device=SMALL | {"flash.stream": "s", "flash.stream_ms": "10"}, pull=["log"],
        qemu=[f"-chardev file,id=s,path={stream}"], **LOCKSTEP)
    log = next(iter(result.files.values()))
    assert log[:4] == b"MTFL" and int.from_bytes(log[4:6], "little") == 1
    lines = [json.loads(x) for x in stream.read_text().splitlines()]
    last = lines[-1]
    told = counters.flash(log)
    assert {key: told[key] for key in ("written_bytes", "programmed_bytes", "erases")} == {
        key: last[key] for key in ("written_bytes", "programmed_bytes", "erases")}
    assert told["writes"] == last["commands"]["write"] and told["busy"] * 2 == sum(d["busy_ns"] for d in last["dies"])
    assert len(lines) > 10 and last["written_bytes"] == 32768 and last["commands"]["flush"] >= 1
    assert sum(d["programs"] for d in last["dies"]) == 2 == last["programs_full"]
    assert sum(d["busy_ns"] for d in last["dies"]) == 2_000_000 + 50_000 * last["reads"]
    assert all(b["now_ns"] - a["now_ns"] == 10_000_000 for a, b in zip(lines, lines[1:]))


ZN540_RESET = {0: 1.61, 1 / 275712: 1.70, 0.0625: 5.16, 0.125: 6.05, 0.25: 7.88, 0.5: 11.32, 1: 15.81}
ZN540_FINISH = {1 / 275712: 907, 0.0625: 848, 0.125: 792, 0.25: 681, 0.5: 457}


def test_zn540(lab_run, tmp_path: Path) -> None:
    """Each cell of the published tables within 10%; the device's own time, from its trace events."""
    trace = tmp_path / "trace"
    script = "set -e\nz=0\n"
    for table, op in ((ZN540_RESET, "reset"), (ZN540_FINISH, "finish")):
        for share in table:
            blocks = round(share * 275712)
            if blocks:
                script += (f"dd if=/dev/zero of=/dev/nvme0n1 oflag=direct,seek_bytes seek=$((z << 31)) "
                           f"{'bs=4k count=1' if blocks == 1 else f'bs=64k count={blocks // 16}'} 2>/dev/null\n")
            script += f"sleep 0.05; blkzone {op} -o $((z << 22)) -c 1 /dev/nvme0n1\nz=$((z + 1))\n"
    media = Path(os.environ.get("MTFTL_FLASH", tmp_path)) / "zn540.img"
    try:
        lab_run(script, profile="zn540", media=media, timeout=900, **LOCKSTEP,
                qemu=["-trace nvme_flash_submit -trace nvme_flash_done", f"-D {trace}"])
    finally:
        media.unlink(missing_ok=True)
    begun: dict[str, int] = {}
    took: dict[tuple[str, int], float] = {}
    for line in trace.read_text().splitlines():
        m = re.search(r"nvme_flash_(submit|done) .*kind (\d+) zone (\d+) .* at (\d+)", line)
        if not m or m[2] not in ("6", "7"):
            continue
        if m[1] == "submit":
            begun[m[2] + m[3]] = int(m[4])
        else:
            took[m[2], int(m[3])] = (int(m[4]) - begun[m[2] + m[3]]) / 1e6
    assert [took["7", i] for i in range(7)] == pytest.approx(list(ZN540_RESET.values()), rel=0.10)
    assert [took["6", 7 + i] for i in range(5)] == pytest.approx(list(ZN540_FINISH.values()), rel=0.10)
