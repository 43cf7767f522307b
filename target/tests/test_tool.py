# SPDX-License-Identifier: GPL-2.0
"""mtftl(8) in a guest: what it refuses and how it says so, and what check and dump find.

One boot runs all commands, each on a device of its own or one that it leaves as it was; the tests
look at what came out. Devices are null_blk, 4 MiB zones; media that are damaged or foreign are
written by media.py, which knows only docs/design/format.md.
"""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from media import BLOCK, CLEAN, Media
from mtlab.build import target
from mtlab.run.testing import LabRun

ZONE_BLOCKS, CAPACITY, ZONES = 1024, 768, 32
SETUP = """
null() { # name size-MiB [attribute=value...]: a null_blk device
	local d=/sys/kernel/config/nullb/$1 x; mkdir $d; echo $2 >$d/size; shift 2
	echo 4096 >$d/blocksize; echo 1 >$d/memory_backed
	for x in "$@"; do echo ${x#*=} >$d/${x%%=*}; done
	echo 1 >$d/power
}
zoned() { local n=$1 s=$2; shift 2; null $n $s zoned=1 zone_size=4 zone_capacity=3 "$@"; }
put() { # file device zone: at the start of an empty zone
	dd if=$1 of=/dev/$2 bs=4096 seek=$(($3 * 1024)) oflag=direct conv=notrunc 2>/dev/null
}
try() { # name command...: run it, mark its output
	local name=$1; shift
	echo "@@ $name"; "$@"; echo "@@= $?"
}
zone_commands() { # device command...: the zone commands that a null_blk device gets from it, and their zones
	local t=/sys/kernel/tracing d=$1; shift
	echo >$t/trace; echo 1 >$t/events/nullb/nullb_zone_op/enable
	"$@" >/dev/null
	echo 0 >$t/events/nullb/nullb_zone_op/enable
	sed -nE "s/.*disk=$d,? +req=(ZONE_[A-Z_]*) +zone_no=([0-9]+).*/\\1 \\2/p" $t/trace
}
export -f zone_commands
until_true() { # command...: true before long
	local i
	for i in $(seq 500); do
		! "$@" >/dev/null 2>&1 || return 0
		usleep 10000
	done
	return 1
}
is_open() { # name: a program has opened the device
	dmsetup info -c --noheadings -o open $1 | grep -q 1
}
is_gone() { # name
	! dmsetup info $1 >/dev/null 2>&1
}
hold() { # name: a program opens it and keeps it open
	tail -f /dev/null </dev/mapper/$1 >/dev/null 2>&1 &
	echo $! >holder
	until_true is_open $1
}
look_into() { # name: a program opens it and reads, as blkid does
	dd if=/dev/mapper/$1 of=/dev/null bs=4k count=1 iflag=direct >/dev/null 2>&1 &
	until_true is_open $1
}
asks() { # a second open of the same drive, until it waits for the first one
	mtftl open $1 second lanes=0 >/dev/null 2>second &
	until_true grep waiting second
}
export -f until_true is_open is_gone hold look_into asks
modprobe null_blk nr_devices=0
"""


@dataclass
class Case:
    """A command, and what must come of it."""

    command: str
    status: int
    says: str = ""              # a pattern in its output
    before: str = ""            # shell that prepares the device


def zoned(*attributes: str, size: int = 128) -> str:
    return f"zoned %s {size} {' '.join(attributes)}"


GOOD = Media(ZONES, ZONE_BLOCKS, CAPACITY)
OTHER = Media(ZONES + 1, ZONE_BLOCKS, CAPACITY)


def flipped(data: bytes, at: int) -> bytes:
    """Media with one bit changed."""
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


LARGE = Media(64, 1 << 18, 1 << 18, 12 << 20)       # 64 GiB
HUGE = Media(64, 1 << 24, 1 << 24, 1 << 29)         # 4 TiB
HISTORY = GOOD.unit(6, 1, {7: b"old", 8: b"eight"}) + GOOD.unit(6, 4, {7: b"new"}, durable=1)
TRIMMED = GOOD.trim(7, 6, 8, 1, 5)
# Pieces that go to the start of zones: name -> bytes.
PIECES = {
    "good": GOOD.superblock(),
    "clean": GOOD.superblock(flags=CLEAN),
    "version": GOOD.superblock(version=2),
    "feature": GOOD.superblock() + GOOD.superblock(generation=2, incompat=4),
    "absurd": GOOD.superblock(logical_blocks=1 << 40),
    "other": OTHER.superblock(),
    "large": LARGE.superblock(),
    "huge": HUGE.superblock(),
    "torn": GOOD.superblock() + flipped(GOOD.superblock(generation=2), 90),
    "hidden": GOOD.superblock(flags=CLEAN) + flipped(GOOD.superblock(generation=2), 90),
    "gone": flipped(GOOD.superblock(), 90),
    "history": HISTORY,
    "foreign": flipped(HISTORY, 20),
    "trimmed": TRIMMED,
    "damaged": flipped(HISTORY, 4 * BLOCK + 100),
    "durable": GOOD.unit(8, 9, {20: b"x"}, durable=6),
    "twice": GOOD.unit(8, 4, {21: b"another"}),
    "newer": GOOD.unit(8, 9, {20: b"x"}, version=2),
    "past": GOOD.unit(8, 9, {GOOD.logical_blocks: b"x"}),
}


def media(**places: int) -> str:
    """Shell that makes a device and puts pieces to zones."""
    puts = "; ".join(f"put {piece} %s {zone}" for piece, zone in places.items())
    return f"{zoned()}; {puts}"


WRITE = "./blocks write 0 500 | dd of=/dev/mapper/ftl bs=64k iflag=fullblock oflag=direct conv=fsync 2>/dev/null"
IN_USE = zoned() + "; mtftl format -- /dev/%s >/dev/null; dmsetup create held-%s --table '0 8192 linear /dev/%s 0'"
EXT4 = "mke2fs -q -F -b 4096 image 8192 2>/dev/null; " + zoned() + "; dd if=image of=/dev/%s bs=64k count=1" \
       " oflag=direct 2>/dev/null"
SECTOR = zoned("blocksize=512") + "; dd if=good of=/dev/%s bs=512 count=1 seek=$((6 * 8192)) oflag=direct 2>/dev/null"
DIRTY = "mtftl open /dev/%s ftl && dd if=/dev/zero of=/dev/mapper/ftl bs=4k count=1 oflag=direct 2>/dev/null"
CASES = {
    # The command line.
    "nothing": Case("mtftl", 16, "usage: mtftl format"),
    "help": Case("mtftl --help", 0, "usage: mtftl format"),
    "help-of-one": Case("mtftl open --help", 0, "mtftl open .--readonly. .DEVICE. NAME.*options, such as lanes=8"),
    "help-with-command": Case("mtftl help rename && test $(mtftl help rename | wc -l) = 3", 0,
                              "^usage: mtftl rename NAME NEW\n.*mtftl-rename.8."),
    "no-command": Case("mtftl frobnicate", 16, "no command 'frobnicate'"),
    "format-nothing": Case("mtftl format", 16, "0 devices given, expected one"),
    "format-two": Case("mtftl format a b", 16, "2 devices given, expected one"),
    "format-option": Case("mtftl format --frob x", 16, "unrecognized option '--frob'"),
    "op-word": Case("mtftl format --op much x", 16, "--op much: expected a percentage from 1 to 90"),
    "op-zero": Case("mtftl format --op 0 x", 16, "--op 0: expected a percentage from 1 to 90"),
    "op-hundred": Case("mtftl format --op 100% x", 16, "--op 100%: expected"),
    "uuid": Case("mtftl format --uuid 123 x", 16, "--uuid 123: expected a UUID"),
    "check-nothing": Case("mtftl check", 16, "0 devices given, expected one"),
    "dump-two": Case("mtftl dump a b", 16, "2 devices given, expected one"),
    "open-nothing": Case("mtftl open", 16, "expected a device and a name, or a name in /etc/mtftltab"),
    "open-option": Case("mtftl open /dev/null x lanes", 16, "'lanes', expected key=value"),
    "close-nothing": Case("mtftl close", 16, "0 names given, expected one"),
    "status-nothing": Case("mtftl status", 16, "0 names given, expected one"),
    # Devices that format refuses.
    "no-device": Case("mtftl format /dev/nothing", 8, "/dev/nothing: No such file or directory"),
    "file": Case("mtftl format /proc/version", 8, "/proc/version: not a block device, expected a zoned one"),
    "not-zoned": Case("mtftl format /dev/%s", 8, "not zoned, expected a host-managed zoned device", "null %s 64"),
    "conventional": Case("mtftl format /dev/%s", 8, "1 usable zones, expected 9 or more", zoned("zone_nr_conv=31")),
    "few-zones": Case("mtftl format /dev/%s", 8, "8 usable zones, expected 9 or more", zoned(size=32)),
    "few-open": Case("mtftl format /dev/%s", 8, "at most 3 open zones, expected 4 or more",
                     zoned("zone_max_open=3")),
    "few-active": Case("mtftl format /dev/%s", 8, "at most 3 active zones, expected 4 or more",
                       zoned("zone_max_active=3")),
    "last-zone": Case("mtftl format /dev/%s", 0, "1 zones are left alone", zoned("zone_capacity=4", size=130)),
    "too-large": Case("mtftl format /dev/%s", 8, "17.0 TiB, expected 16 TiB less 8 GiB at most",
                      f"null %s {17 << 20} memory_backed=0 zoned=1 zone_size=65536"),
    "in-use": Case("mtftl format --force /dev/%s", 8,
                   "in use, held by dm-[0-9]+ .held-nullb[0-9]+., expected an idle device", IN_USE),
    "offline-0": Case("mtftl format /dev/%s", 8, "zone 0 is offline, expected a writable one for superblocks",
                      zoned() + "; echo 0 >/sys/kernel/config/nullb/%s/zone_offline"),
    "signature": Case("mtftl format /dev/%s", 8,
                      "holds a signature of ext[234], 1 of 32 zones are written; --force erases it", EXT4),
    "ours": Case("mtftl format /dev/%s", 8, "holds the mtftl device 6d656469-6120-666f-7220-746573747321, 2 of 32 zones"
                 " are written; --force erases it", media(good=0, history=6)),
    "ours-newer": Case("mtftl format /dev/%s", 8, "holds a superblock of another version", media(version=0)),
    "unknown": Case("mtftl format /dev/%s", 8,
                    "holds data without a known signature, 1 of 32 zones are written; --force erases it",
                    media(history=6)),
    "unknown-sector": Case("mtftl format /dev/%s", 8, "without a known signature, 1 of 32 zones are written", SECTOR),
    "asked-no": Case("./pty yes mtftl format /dev/%s; test $? = 8 && blkzone report -o 49152 -c 1 /dev/%s", 0,
                     "WARNING: /dev/nullb[0-9]+ holds data without a known signature, 1 of 32 zones are written.*"
                     "Are you sure.*not confirmed with YES, nothing is changed.*wptr 0x000028", media(history=6)),
    # Devices that it takes.
    "format": Case("mtftl format --uuid 01234567-89ab-cdef-0123-456789abcdef /dev/%s && mtftl check /dev/%s", 0,
                   "over-provisioning 25.0%, UUID 01234567-89ab-cdef-0123-456789abcdef.*0 errors", zoned()),
    "format-512": Case("mtftl format --op 7.5 /dev/%s && mtftl check /dev/%s", 0, "over-provisioning 7.5%",
                       zoned("blocksize=512")),
    "format-force": Case("mtftl format --force /dev/%s && mtftl check /dev/%s", 0, "0 units", media(good=0, history=6)),
    "format-ext4": Case("mtftl format --force /dev/%s && mtftl check /dev/%s", 0, "0 errors", EXT4),
    "format-asked": Case("./pty YES mtftl format /dev/%s && mtftl check /dev/%s", 0, "Are you sure.*0 units.*0 errors",
                         media(history=6)),
    "format-not-asked": Case("./pty no mtftl format /dev/%s && mtftl check /dev/%s", 0, "^/dev/nullb[0-9]+: [0-9]+ MiB",
                             zoned()),
    "format-resets": Case("zone_commands %s mtftl format --force /dev/%s && mtftl check /dev/%s", 0,
                          "^ZONE_RESET 0\nZONE_RESET_ALL 6\nZONE_RESET_ALL 7\n.*0 units.*0 errors",
                          media(good=0, history=6, trimmed=7)),
    "format-resets-nothing": Case("zone_commands %s mtftl format --force /dev/%s", 0, "^$", zoned()),
    "offline-5": Case("mtftl format /dev/%s && mtftl check /dev/%s", 0, "zone 5: offline",
                      zoned() + f"; echo {5 * 8192} >/sys/kernel/config/nullb/%s/zone_offline"),
    # Check.
    "check-clean": Case("mtftl check /dev/%s", 0, "0 units.*0 errors, 0 notes", media(clean=0)),
    "check-history": Case("mtftl check /dev/%s", 0, "3 units, 3 blocks verified, 1 mapped.*0 errors, 0 notes",
                          media(good=0, history=6, trimmed=7)),
    "check-torn": Case("mtftl check /dev/%s", 0, "2 mapped, 0 lost, 1 torn.*0 errors", media(good=0, damaged=6)),
    "check-damaged": Case("mtftl check /dev/%s", 4,
                          "error: logical block 7 at zone 6 block 4: its checksum does not match",
                          media(good=0, damaged=6, durable=8)),
    "check-unclean": Case("mtftl check /dev/%s", 4, "unit 4 is newer than the clean checkpoint's 0",
                          media(clean=0, history=6)),
    "check-twice": Case("mtftl check /dev/%s", 4, "number 4 given twice: zone 6 block 3, zone 8 block 0",
                        media(good=0, history=6, twice=8)),
    "check-newer": Case("mtftl check /dev/%s", 4, "zone 8: a unit of a newer version", media(good=0, newer=8)),
    "check-unclean-hidden": Case("mtftl check /dev/%s", 0, "3 units, 3 blocks verified, 1 mapped",
                                 media(hidden=0, history=6, trimmed=7)),
    "check-past": Case("mtftl check /dev/%s", 4, "logical block 1024 is past the end", media(good=0, past=8)),
    "check-torn-super": Case("mtftl check /dev/%s", 0, "note: zone 0 block 1: no whole superblock", media(torn=0)),
    "check-nothing-there": Case("mtftl check /dev/%s", 8, "no mtftl superblock, expected a device made by mtftl format",
                                media(gone=0)),
    "check-version": Case("mtftl check /dev/%s", 8, "a superblock of another version", media(version=0)),
    "check-feature": Case("mtftl check /dev/%s", 8, "a superblock of another version, expected version 1",
                          media(feature=0)),
    "check-absurd": Case("mtftl check /dev/%s", 8, "fields contradict each other", media(absurd=0)),
    "check-geometry": Case("mtftl check /dev/%s", 8, "written for another geometry", media(other=0)),
    "check-large": Case("ulimit -v 180000; mtftl check /dev/%s", 0, "0 units.*0 errors",
                        "null %s 65536 zoned=1 zone_size=1024; put large %s 0"),
    "check-huge": Case("mtftl check /dev/%s", 8,
                       "takes 4.0 GiB of memory, expected at most the [0-9].[0-9] GiB that are available",
                       "null %s 4194304 zoned=1 zone_size=65536; put huge %s 0"),
    "rebuild-huge": Case("mtftl check --rebuild /dev/%s", 8, "takes 2.0 GiB of memory, expected at most",
                         "null %s 4194304 zoned=1 zone_size=65536; put huge %s 0"),
    "dump-huge": Case("mtftl dump /dev/%s", 8, "takes 2.0 GiB of memory, expected at most",
                      "null %s 4194304 zoned=1 zone_size=65536; put huge %s 0"),
    "check-in-use": Case("mtftl check /dev/%s", 8, "in use, held by dm-[0-9]+", IN_USE),
    "check-ignoring": Case("mtftl check --ignore-read-errors /dev/%s", 0, "3 units, 3 blocks verified, 1 mapped",
                           media(good=0, history=6, trimmed=7)),
    "force-alone": Case("mtftl check --force x", 16, "--force without --rebuild, expected both"),
    "rebuild-whole": Case("mtftl check --rebuild --force /dev/%s", 0, "the checkpoint is whole, there is nothing to",
                          media(good=0, history=6)),
    "rebuild-in-use": Case("mtftl check --rebuild /dev/%s", 8, "in use, held by dm-[0-9]+", IN_USE),
    "rebuild-nothing-there": Case("mtftl check --rebuild /dev/%s", 8, "no mtftl superblock", media(gone=0)),
    "dump": Case("mtftl dump --units /dev/%s", 0, "", media(good=0, history=6, trimmed=7)),
    "dump-nowhere": Case("mtftl dump --units /dev/%s >/dev/full", 8, "cannot write the output: No space left",
                         media(good=0, history=6)),
    # Opening; the devices are closed again.
    "open": Case("mtftl open /dev/%s ftl lanes=2 write_unit=8 && mtftl status --counters ftl && mtftl close ftl &&"
                 " mtftl check /dev/%s", 0, "mode +rw.*lanes +2.*0 errors", media(clean=0)),
    "open-history": Case("mtftl open /dev/%s ftl lanes=1 && head -c 32773 /dev/mapper/ftl | tail -c 4101 | head -c 3;"
                         "mtftl close ftl && mtftl check /dev/%s", 0, "^new.* 1 mapped.*0 errors",
                         media(good=0, history=6, trimmed=7)),
    "open-twice": Case("mtftl open /dev/%s ftl; mtftl open /dev/%s ftl2; s=$?; mtftl close ftl; exit $s", 8,
                       "in use, held by dm-[0-9]+ .ftl., expected an idle device", media(clean=0)),
    "open-refused": Case("mtftl open /dev/%s ftl frob=1", 8, "^mtftl: ftl: cannot open /dev/nullb[0-9]+: "
                         "option frob is not known, expected [a-z_, ]+ or low_water$", media(clean=0)),
    "open-range": Case("mtftl open /dev/%s ftl lanes=0", 8, "lanes is 0, expected percpu or 1 to 1024$",
                       media(clean=0)),
    "open-zones": Case("mtftl open /dev/%s ftl && mtftl status --counters ftl && mtftl close ftl", 0, "mode +read-only",
                       media(clean=0) + "; for z in $(seq 2 31); do "
                       "echo $((z * 8192)) >/sys/kernel/config/nullb/%s/zone_readonly; done"),
    "status": Case("mtftl open /dev/%s ftl lanes=2; mtftl status ftl; mtftl close ftl", 0,
                   "^ftl works and is well\n  size     4 MiB, on /dev/nullb[0-9]+\n.*  space .* zones are empty.*"
                   "2 lanes\n.*wear ", media(clean=0)),
    "status-suspended": Case("mtftl open /dev/%s ftl; dmsetup suspend ftl; mtftl status ftl; mtftl list;"
                             " mtftl close ftl", 0, "^ftl is suspended\n  advice   let it go on .dmsetup resume.: until"
                             " then writes wait\n  size .*\nftl .*  suspended\n$", media(clean=0)),
    "status-read-only": Case("mtftl open /dev/%s ftl; mtftl status ftl; mtftl list; mtftl close ftl", 0,
                             "^ftl is read-only, the kernel.s log says why.*\n  advice   copy the data while it can"
                             " be read; .*\nftl .*  read-only\n$",
                             media(clean=0) + "; for z in $(seq 2 31); do "
                             "echo $((z * 8192)) >/sys/kernel/config/nullb/%s/zone_readonly; done"),
    # All devices, and their names.
    "list": Case("mtftl open /dev/%s ftl && mtftl open --readonly /dev/%s-b b && mtftl list; mtftl close ftl;"
                 " mtftl close b", 0, "^b +/dev/nullb[0-9]+-b +[0-9]+ MiB  opened read-only\n"
                 "ftl +/dev/nullb[0-9]+ +4 MiB  well\n$",
                 media(clean=0) + "; zoned %s-b 128; mtftl format /dev/%s-b >/dev/null; null %s-c 64;"
                 " dmsetup create other-%s --table '0 8 linear /dev/%s-c 0'"),
    "list-word": Case("mtftl list x", 16, "list: 1 words more than expected"),
    "rename": Case("mtftl open /dev/%s ftl && mtftl rename ftl \"a b\" && mtftl status \"a b\" && mtftl close \"a b\"",
                   0, "^a b works and is well\n", media(clean=0)),
    "rename-taken": Case("mtftl open /dev/%s ftl; dmsetup create taken --notable; mtftl rename ftl taken; s=$?; dmsetup"
                         " remove taken; mtftl close ftl; exit $s", 8, "taken: there is a device of this name already",
                         media(clean=0)),
    "rename-slash": Case("mtftl open /dev/%s ftl; mtftl rename ftl a/b; s=$?; mtftl close ftl; exit $s", 16,
                         "'a/b' cannot be a name", media(clean=0)),
    "rename-unknown": Case("mtftl rename nobody x", 8, "nobody: no such device-mapper device"),
    "rename-nothing": Case("mtftl rename x", 16, "1 names given, expected the old and the new one"),
    # The superblock of a drive: lost, of a smaller drive.
    "header": Case("mtftl header-backup /dev/%s kept && mtftl open /dev/%s ftl lanes=1 &&"
                   " dd if=/dev/urandom of=/dev/mapper/ftl bs=64k count=32 oflag=direct conv=fsync 2>/dev/null &&"
                   f" {WRITE} && mtftl close ftl && blkzone reset -c 2 /dev/%s && mtftl probe /dev/%s;"
                   " test $? = 2 && mtftl header-restore /dev/%s kept && mtftl open /dev/%s ftl &&"
                   " ./blocks judge /dev/mapper/ftl 0 500 && mtftl close ftl && mtftl check /dev/%s && stat -c %a kept",
                   0, "no mtftl superblock.*is [0-9a-f-]{36} again; the next mount looks at all zones\n0\n"
                   ".* 512 mapped.*0 errors, [0-9]+ notes\n600\n$", zoned() + "; mtftl format /dev/%s >/dev/null"),
    "header-there": Case("mtftl header-backup /dev/%s there; mtftl header-restore /dev/%s there; test $? = 8 &&"
                         " mtftl header-restore --force /dev/%s there && mtftl check /dev/%s", 0,
                         "has a superblock that is whole; expected .* or --force\n.* again; .*2 mapped.*0 errors",
                         media(clean=0, history=6)),
    "header-stays": Case("mtftl header-restore --force /dev/%s there; test $? = 8 && blkzone report -c 1 /dev/%s", 0,
                         "a record stays in zone 0 or 1, which is read-only: a superblock of another version, .*;"
                         " nothing is written\n.*wptr 0x000008",
                         media(clean=0, version=1) + "; echo 8192 >/sys/kernel/config/nullb/%s/zone_readonly"),
    "header-of-another": Case("mtftl header-restore /dev/%s there; test $? = 8 && mtftl header-restore --force /dev/%s"
                              " there", 0, "none of 1 zones begins with a unit by the key of the backup, expected the"
                              " backup of this drive, or --force\n.* again",
                              zoned() + "; put foreign %s 6"),
    "header-exists": Case("mtftl header-backup /dev/%s there", 8, "there: cannot create: File exists", media(clean=0)),
    "header-none": Case("mtftl header-backup /dev/%s kept2", 8, "no mtftl superblock", media(gone=0)),
    "header-other": Case("mtftl header-restore /dev/%s there", 8, "33 zones of 768 blocks, the backup is of a drive of"
                         " 32 zones of 768 blocks: expected the same drive", zoned(size=132)),
    "header-file": Case("mtftl header-restore /dev/%s /proc/version", 8,
                        "no backup of a header, expected a file of 4096", zoned()),
    "header-damaged": Case("head -c 4096 /dev/urandom >noise; mtftl header-restore /dev/%s noise", 8,
                           "noise: no backup of a header: no mtftl superblock", zoned()),
    "header-word": Case("mtftl header-backup x", 16, "header-backup: 1 words given, expected a device and a file"),
    "resize": Case("dmsetup create small --table \"0 131072 linear /dev/%s 0\" && mtftl format /dev/mapper/small"
                   f" >/dev/null && mtftl open /dev/mapper/small ftl lanes=1 && {WRITE} && mtftl close ftl &&"
                   " dmsetup remove small && dmsetup create small --table \"0 262144 linear /dev/%s 0\";"
                   " mtftl open /dev/mapper/small ftl; mtftl resize /dev/mapper/small &&"
                   " mtftl check /dev/mapper/small && mtftl open /dev/mapper/small ftl lanes=1 &&"
                   " ./blocks judge /dev/mapper/ftl 0 500 && dd if=/dev/zero of=/dev/mapper/ftl bs=1M oflag=direct"
                   " 2>/dev/null; mtftl status ftl; mtftl close ftl && mtftl check /dev/mapper/small; s=$?;"
                   " dmsetup remove small; exit $s", 0,
                   "written for another geometry.*/dev/mapper/small: [0-9]+ MiB, was [0-9]+ MiB; 32 zones, were 16\n"
                   ".*500 mapped.*0 errors.*\n0\nftl works and is well; it is full.*0 errors", zoned()),
    "resize-same": Case("mtftl resize /dev/%s", 8, "has 32 zones as when it was formatted, expected more",
                        media(clean=0)),
    "resize-written": Case("mtftl resize /dev/%s", 8, "an appended zone is not empty, expected empty ones from zone 32",
                           zoned(size=132) + "; put clean %s 0; put history %s 32"),
    "resize-none": Case("mtftl resize /dev/%s", 8, "no mtftl superblock", media(gone=0)),
    "resize-other": Case("mtftl resize /dev/%s", 8, "written for another geometry", media(other=0)),
    "discard": Case(f"mtftl open /dev/%s ftl lanes=1 && {WRITE} && mtftl discard --force ftl && mtftl status --counters"
                    " ftl; mtftl close ftl && mtftl check /dev/%s", 0, "mapped +0\n.* 0 mapped.*0 errors",
                    media(clean=0)),
    "discard-asks": Case("mtftl open /dev/%s ftl; mtftl discard ftl; s=$?; mtftl close ftl; exit $s", 8,
                         "ftl: all data would be lost; --force discards it", media(clean=0)),
    "discard-no": Case(f"mtftl open /dev/%s ftl; {WRITE}; ./pty yes mtftl discard ftl; mtftl status --counters ftl;"
                       " mtftl close ftl", 0, "Are you sure.*not confirmed.*mapped +500", media(clean=0)),
    "discard-busy": Case("mtftl open /dev/%s ftl; dmsetup create above --table \"0 8 linear /dev/mapper/ftl 0\";"
                         " mtftl discard --force ftl; s=$?; dmsetup remove above; mtftl close ftl; exit $s", 8,
                         "in use, expected an idle device", media(clean=0)),
    "discard-readonly": Case("mtftl open --readonly /dev/%s ftl; mtftl discard --force ftl; s=$?; mtftl close ftl;"
                             " exit $s", 8, "opened read-only, expected a device that takes writes", media(clean=0)),
    # What devices do, and their zones.
    "top": Case("mtftl open /dev/%s ftl && mtftl top --count 2 --interval 0.1 | cat; mtftl close ftl", 0,
                "^(name .*\n.*MiB/s.*\nftl +well +0.0 .* 2[0-9]/32 +idle +0\n){2}$", media(clean=0)),
    "top-interval": Case("mtftl top --interval 0", 16, "--interval 0: expected a number from 0.1 to 3600"),
    "top-unknown": Case("mtftl top nobody", 8, "nobody: no such mtftl device, or it has been closed"),
    "top-closed": Case("mtftl open /dev/%s ftl; mtftl top --interval 0.1 ftl >out 2>err & until_true grep well out;"
                       " mtftl close ftl; wait $!; s=$?; cat err; exit $s", 8,
                       "ftl: no such mtftl device, or it has been closed", media(clean=0)),
    "top-vanished": Case("mtftl open /dev/%s gone; mtftl top --interval 0.1 >out 2>err & until_true grep well out;"
                         " echo 0 >/sys/kernel/config/nullb/%s/power; wait $!; s=$?; cat err;"
                         " dmsetup remove gone >/dev/null 2>&1; exit $s", 8,
                         "gone: its drive /dev/nullb[0-9]+ has vanished", media(clean=0)),
    "zones": Case("mtftl open /dev/%s ftl lanes=1; dd if=/dev/zero of=/dev/mapper/ftl bs=4k count=40 oflag=direct"
                  " conv=fsync 2>/dev/null; mtftl zones ftl; mtftl close ftl", 0,
                  "^ftl: 32 zones of /dev/nullb[0-9]+, a cell is 1\nstate .*\n +SSC+[.o]+\nvalid .*\nage .*\n"
                  "wear .*\n", media(clean=0)),
    "zones-json": Case("mtftl open /dev/%s ftl lanes=1; dd if=/dev/zero of=/dev/mapper/ftl bs=4k count=40 oflag=direct"
                       " conv=fsync 2>/dev/null; mtftl zones --json ftl; mtftl close ftl", 0, "", media(clean=0)),
    "zones-svg": Case("mtftl open /dev/%s ftl lanes=1; mtftl zones --svg file ftl && cat file; mtftl close ftl", 0, "",
                      media(clean=0)),
    "zones-nowhere": Case("mtftl open /dev/%s ftl; mtftl zones --svg /nowhere/file ftl; s=$?; mtftl close ftl; exit $s",
                          8, "/nowhere/file: cannot write: No such file", media(clean=0)),
    "zones-unmounted": Case("dmsetup create ftl --notable -u mtftl-x; mtftl zones ftl; s=$?; mtftl close ftl; exit $s",
                            8, "ftl: the target does not tell of its zones, expected one that is mounted", "true"),
    "metrics": Case("mtftl open /dev/%s ftl lanes=2; dd if=/dev/zero of=/dev/mapper/ftl bs=4k count=40 oflag=direct"
                    " conv=fsync 2>/dev/null; mtftl metrics --output file && mtftl metrics ftl | grep -v _seconds |"
                    " cmp - <(grep -v _seconds file) && cat file && mtftl status --counters ftl; mtftl close ftl",
                    0, "", media(clean=0)),
    "metrics-nowhere": Case("mtftl metrics --output /nowhere/file", 8, "/nowhere/file.*: cannot write: No such file"),
    "watch-unknown": Case("mtftl watch nobody", 8, "nobody: no such device-mapper device"),
    "watch-nothing": Case("mtftl watch", 16, "watch: 0 names given, expected one"),
    "metrics-unknown": Case("mtftl metrics nobody", 8, "nobody: no such device-mapper device"),
    "status-json": Case("mtftl open /dev/%s ftl lanes=1; mtftl status --json ftl; mtftl close ftl", 0, "",
                        media(clean=0)),
    "close-busy": Case("mtftl open /dev/%s ftl; (mtftl close ftl) 9</dev/mapper/ftl; s=$?; mtftl close ftl; exit $s", 8,
                       "ftl: cannot remove: in use, expected an idle device", media(clean=0)),
    "close-held": Case("mtftl open /dev/%s ftl; TASK=2 BEFORE=\"hold ftl\" LD_PRELOAD=./meanwhile mtftl close ftl;"
                       " test $? = 8 && dmsetup info ftl | grep State; kill -9 $(cat holder); mtftl close ftl", 0,
                       "ftl: cannot remove: in use, expected an idle device\nState: +ACTIVE", media(clean=0)),
    "close-opened-once": Case("mtftl open /dev/%s ftl; TASK=2 BEFORE=\"hold ftl\" AFTER=\"kill -9 \\$(cat holder)\""
                              " LD_PRELOAD=./meanwhile mtftl close ftl", 0, "^$", media(clean=0)),
    "close-looked-into": Case("mtftl open /dev/%s ftl; TASK=2 BEFORE=\"look_into ftl\" LD_PRELOAD=./meanwhile"
                              " mtftl close ftl", 0, "^$", media(clean=0)),
    "close-then-opened": Case("mtftl open /dev/%s ftl && TASK=2 AFTER=\"mtftl open /dev/%s next && dd if=/dev/zero"
                              " of=/dev/mapper/next bs=4k count=1 oflag=direct 2>/dev/null\" LD_PRELOAD=./meanwhile"
                              " mtftl close ftl && mtftl close next", 0, "^$", media(clean=0)),
    "close-path": Case("mtftl open /dev/%s ftl && mtftl close /dev/mapper/ftl", 0, "^$", media(clean=0)),
    "close-force": Case("mtftl open /dev/%s ftl && mtftl close --force ftl && mtftl check /dev/%s", 0, "0 errors",
                        media(clean=0)),
    "close-suspended": Case(f"{DIRTY} && dmsetup suspend ftl && mtftl close ftl && mtftl check /dev/%s", 0,
                            "1 mapped.*0 errors", media(clean=0)),
    "close-not-flushed": Case(f"{DIRTY} && dmsetup suspend --noflush ftl; mtftl close ftl; s=$?;"
                              " mtftl close --force ftl && mtftl check /dev/%s >/dev/null 2>&1 && exit $s", 8,
                              "ftl: not closed: suspended, and not all of it is on /dev/nullb[0-9]+, expected a device"
                              " that goes on", media(clean=0)),
    "close-deferred": Case("mtftl open /dev/%s ftl; hold ftl; mtftl close --deferred ftl && mtftl list && kill -9"
                           " $(cat holder); until_true mtftl check /dev/%s; mtftl check /dev/%s", 0, "^ftl .*0 errors",
                           media(clean=0)),
    "close-deferred-idle": Case("mtftl open /dev/%s ftl; mtftl close --deferred ftl && is_gone ftl && mtftl probe"
                                " /dev/%s", 0, "MTFTL_CLEAN=1\n", media(clean=0)),
    "close-cut-off": Case("dmsetup create ftl --notable -u mtftl-x; mtftl status ftl; mtftl close ftl", 0,
                          "^ftl is not open: it was never resumed\n  advice   remove it"
                          " .mtftl close., and open it again\n$", "true"),
    "name-blank": Case("mtftl open /dev/%s \"a b\" && mtftl status \"a b\" && mtftl close \"a b\" && "
                       "mtftl check /dev/%s", 0, "^a b works.*0 errors", media(clean=0)),
    "name-letters": Case("mtftl open /dev/%s Grün*% && mtftl status Grün*% && mtftl close Grün*%", 0,
                         "^Grün\\*% works", media(clean=0)),
    "name-slash": Case("mtftl open /dev/%s x/y", 16, "^mtftl: 'x/y' cannot be a name, expected up to 127 characters",
                       media(clean=0)),
    "name-empty": Case("mtftl open /dev/%s \"\"", 16, "'' cannot be a name", media(clean=0)),
    "name-long": Case("mtftl open /dev/%s $(printf %0128d 7)", 16, "cannot be a name, expected up to 127 characters",
                      media(clean=0)),
    "name-taken": Case("dmsetup create taken --notable; mtftl open /dev/%s taken; s=$?; dmsetup remove taken; exit $s",
                       8, "taken: there is a device of this name already, expected another name", media(clean=0)),
    "uuid-taken": Case("mtftl open /dev/%s ftl; mtftl open /dev/%s-copy copy; s=$?; mtftl close ftl; exit $s", 8,
                       "copy: cannot open /dev/nullb[0-9]+-copy: it has the UUID of ftl, which is open",
                       media(clean=0) + "; zoned %s-copy 128; put clean %s-copy 0"),
    "path-odd": Case("ln -s /dev/%s \"/dev/a drive\\\\x20\"; mtftl open \"/dev/a drive\\\\x20\" ftl && mtftl"
                     " status ftl && mtftl close ftl; s=$?; rm /dev/a*; exit $s", 0, "on /dev/nullb[0-9]+\n",
                     media(clean=0)),
    "open-readonly": Case("mtftl open --readonly /dev/%s ftl && mtftl status ftl && head -c 32773 /dev/mapper/ftl |"
                          " tail -c 4101 | head -c 3; dd if=/dev/zero of=/dev/mapper/ftl bs=4k count=1 2>/dev/null;"
                          " echo; mtftl close ftl; s=$?; blkzone report -o 0 -c 1 /dev/%s; exit $s", 0,
                          "^ftl is open read-only\n.*\nnew\n.*wptr 0x000008",
                          media(good=0, history=6, trimmed=7)),
    "open-others": Case("TASK=0 BEFORE=\"mtftl open /dev/%s-b other lanes=0 || true\" LD_PRELOAD=./meanwhile"
                        " mtftl open /dev/%s ftl frob=1; exit 0", 0,
                        "^mtftl: other: cannot open /dev/nullb[0-9]+-b: lanes is 0, expected percpu or 1 to 1024\n"
                        "mtftl: ftl: cannot open /dev/nullb[0-9]+: option frob is not known, "
                        "expected [a-z_, ]+ or low_water\n$",
                        media(clean=0) + "; zoned %s-b 128; put clean %s-b 0"),
    "open-at-once": Case("TASK=0 BEFORE=\"asks /dev/%s\" LD_PRELOAD=./meanwhile mtftl open /dev/%s ftl frob=1;"
                         " until_true grep cannot second; grep cannot second", 0,
                         "^mtftl: ftl: cannot open /dev/nullb[0-9]+: option frob is not known, "
                         "expected [a-z_, ]+ or low_water\n"
                         "mtftl: second: cannot open /dev/nullb[0-9]+: lanes is 0, expected percpu or 1 to 1024\n$",
                         media(clean=0)),
    # What a drive is, and drives by their UUID.
    "probe": Case("mtftl probe /dev/%s", 0, "^ID_FS_TYPE=mtftl\nID_FS_USAGE=other\nID_FS_VERSION=1\n"
                  "ID_FS_UUID=6d656469-6120-666f-7220-746573747321\n.*MTFTL_CLEAN=1\nMTFTL_HEADERS=blocks\n$",
                  media(clean=0)),
    "probe-open": Case("mtftl open /dev/%s ftl && mtftl probe /dev/%s; s=$?; mtftl close ftl; exit $s", 0,
                       "^ID_FS_TYPE=mtftl", media(clean=0)),
    "probe-nothing": Case("mtftl probe /dev/%s", 2, "^mtftl: [^\n]*no mtftl superblock[^\n]*\n$", media(gone=0)),
    "probe-version": Case("mtftl probe /dev/%s", 4, "^mtftl: [^\n]*a superblock of another version", media(version=0)),
    "probe-absurd": Case("mtftl probe /dev/%s", 4, "^mtftl: [^\n]*fields contradict each other", media(absurd=0)),
    "probe-other": Case("mtftl probe /dev/%s", 4, "^mtftl: [^\n]*written for another geometry", media(other=0)),
    "probe-file": Case("mtftl probe /proc/version", 8, "not a block device"),
    "open-uuid": Case("mtftl format --uuid 11111111-89ab-cdef-0123-456789abcdef /dev/%s >/dev/null &&"
                      " mtftl open UUID=11111111-89AB-cdef-0123-456789abcdef ftl && mtftl status ftl &&"
                      " mtftl close ftl", 0, "on /dev/nullb[0-9]+\n", zoned()),
    "open-uuid-none": Case("mtftl open UUID=22222222-89ab-cdef-0123-456789abcdef ftl", 8,
                           "UUID=22222222-.*: no idle drive has it, expected one"),
    "open-uuid-twice": Case("for d in %s %s-copy; do mtftl format --uuid 33333333-89ab-cdef-0123-456789abcdef /dev/$d"
                            " >/dev/null; done; mtftl open UUID=33333333-89ab-cdef-0123-456789abcdef ftl", 8,
                            "UUID=33333333-[^\n]*: /dev/nullb[0-9]+ and /dev/nullb[0-9]+-copy have it, expected one"
                            " drive: none is opened", zoned() + "; zoned %s-copy 128"),
    "open-tab": Case("echo \"ftl /dev/%s lanes=1,readonly,nofail\" >tab; MTFTLTAB=tab mtftl open ftl &&"
                     " mtftl status ftl && dmsetup table ftl && mtftl close ftl", 0,
                     "^ftl is open read-only\n.* mtftl [0-9:]+ [0-9]+ lanes 1 [^\n]*\n$", media(clean=0)),
    "open-tab-wrong": Case("printf \"ftl /dev/%s lanes=1\nbad /dev/x frob\n\" >tab; MTFTLTAB=tab mtftl open ftl &&"
                           " mtftl close ftl; s=$?; MTFTLTAB=tab mtftl open bad; test $? = 8 && exit $s", 0,
                           "tab: line 2: an option is not one.*mtftl: bad: not in tab", media(clean=0)),
    "open-nothing-there": Case("mtftl open /dev/%s x", 8, "no mtftl superblock", media(gone=0)),
    "open-in-use": Case("mtftl open /dev/%s x", 8, "in use, held by dm-[0-9]+", IN_USE),
    "close-unknown": Case("mtftl close nobody", 8, "nobody: no such device-mapper device"),
    "status-unknown": Case("mtftl status nobody", 8, "nobody: no such device-mapper device"),
    "close-foreign": Case("mtftl close foreign-%s", 8, "of target linear, expected mtftl",
                          "null %s 64; dmsetup create foreign-%s --table '0 8 linear /dev/%s 0'"),
    "status-foreign": Case("mtftl status foreign-%s", 8, "of target linear, expected mtftl",
                           "null %s 64; dmsetup create foreign-%s --table '0 8 linear /dev/%s 0'"),
}


def script() -> str:
    lines = [SETUP]
    for number, (name, case) in enumerate(CASES.items()):
        device = f"nullb{number}"
        command = case.command.replace("/dev/%s", f"/dev/{device}").replace("%s", device)
        lines.append(case.before.replace("%s", device))
        lines.append(f"try {name} bash -c '{command}'")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def results(lab_run: LabRun, helpers: list[Path], meanwhile: Path,
            tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Every case's exit status and output, from one boot."""
    if target.tool() is None:
        pytest.skip("there is no mtftl")
    folder = tmp_path_factory.mktemp("media")
    files: list[Path] = []
    for name, data in PIECES.items():
        files.append(folder / name)
        files[-1].write_bytes(data)
    run = lab_run(script(), push=[*files, *helpers, meanwhile], profile="none", timeout=900)
    found = re.findall(r"^@@ (\S+)\n(.*?)^@@= (\d+)$", run.output, re.M | re.S)
    return {name: (int(status), text) for name, text, status in found}


@pytest.mark.parametrize("name", CASES)
def test_case(results: dict[str, tuple[int, str]], name: str) -> None:
    status, text = results[name]
    assert re.search(CASES[name].says, text, re.S), text
    assert status == CASES[name].status, text


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.status == 8])
def test_a_refusal_is_one_line(results: dict[str, tuple[int, str]], name: str) -> None:
    assert re.fullmatch(r"mtftl: .*\n", results[name][1])


def test_dump_is_json(results: dict[str, tuple[int, str]]) -> None:
    dump = json.loads(results["dump"][1])
    assert dump["superblock"]["zone_capacity"] == CAPACITY
    assert "key" not in dump["superblock"]
    assert dump["map"]["mapped"] == 1
    assert dump["map"]["max_seq"] == 6
    zone = {z["zone"]: z for z in dump["zones"]}
    assert len(zone) == ZONES - 2
    assert zone[6]["units"]["data"] == 2
    assert zone[6]["mapped_blocks"] == 1
    assert [u["seq"] for u in zone[6]["list"]] == [1, 4]
    assert zone[6]["list"][0]["blocks"] == [7, 8]
    assert zone[7]["list"][0]["ranges"] == [{"block": 8, "blocks": 1, "seq": 5, "kind": "trim"}]
    assert zone[5]["condition"] == "empty"


def test_metrics_are_the_counters(results: dict[str, tuple[int, str]], promtool: Path) -> None:
    """Each counter that they share has one value; promtool finds nothing in the format."""
    text = results["metrics"][1]
    metrics = re.findall(r"^(?:#.*|mtftl_\w+\{.*\} \d+)\n", text, re.M)
    counters = {m[1]: int(m[2]) for m in re.finditer(r"^(\w+) +(\d+)$", text, re.M)}
    values = {m[1] + m[2]: int(m[3]) for m in
              re.finditer(r'^(mtftl_\w+)\{name="ftl",?(.*)\} (\d+)$', text, re.M)}
    assert counters["written"] == 40
    buckets = [(float(m[1]), int(m[2])) for m in
               re.finditer(r'^mtftl_buffer_wait_seconds_bucket\{name="ftl",le="(.*)"\} (\d+)$', text, re.M)]
    assert buckets == sorted(buckets) and len(buckets) == 24
    assert [limit for limit, _ in buckets[:4]] == [0, 1e-06, 3e-06, 7e-06] and buckets[-1][0] == float("inf")
    assert buckets[-1][1] == values["mtftl_buffer_wait_seconds_count"]
    for metric, counter in [("written_bytes_total", "written"),
                            ("flash_written_bytes_totalkind=\"data\"", "flash_data"),
                            ("flash_written_bytes_totalkind=\"metadata\"", "flash_meta")]:
        assert values[f"mtftl_{metric}"] == BLOCK * counters[counter]
    for metric, counter in [("flushes_total", "flushes"), ("zones", "zones"), ("zones_in_statestate=\"free\"", "free"),
                            ("zone_erases_total", "wear_total"), ("reserve_zones", "reserve")]:
        assert values[f"mtftl_{metric}"] == counters[counter]
    done = subprocess.run([promtool, "check", "metrics"], input="".join(metrics), capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, ""), done.stdout + done.stderr


def test_zones_are_drawn(results: dict[str, tuple[int, str]]) -> None:
    zones = json.loads(results["zones-json"][1])["zones"]
    assert [zone["zone"] for zone in zones] == [*range(ZONES)]
    assert sum(zone["valid"] for zone in zones) == 40
    assert [zone["state"] for zone in zones[:3]] == ["super", "super", "checkpoint"]
    svg = ElementTree.fromstring(results["zones-svg"][1])
    assert len([cell for cell in svg.iter() if cell.get("class") == "zone"]) == ZONES


def test_status_is_json(results: dict[str, tuple[int, str]]) -> None:
    status = json.loads(results["status-json"][1])
    assert status["mode"] == "rw"
    assert status["lanes"] == 1
    assert status["fill"] == [0]
    assert status["zones"] == ZONES
    assert isinstance(status["waf"], float)
