# SPDX-License-Identifier: GPL-2.0
"""Headers in metadata: which devices and kernels take them, and that they say all that headers say."""

import pytest
from mtlab.build import kernels
from test_faults import COPY

DRIVE = {"flash.size": "64M", "zoned.zone_size": "1M", "zoned.zone_capacity": "1M", "flash.channels": "2",
         "flash.dies": "2", "flash.planes": "1", "flash.page": "16K", "flash.program_pages": "2",
         "flash.block_pages": "16", "flash.buffer": "1M"}
QUICK = {"clock": "virtual", "profile": "tlc", "cpus": 2}
START = """set -e
. ./guest.sh
drive=/dev/nvme0n1
"""
# Kernel, metadata a block, options of the table.
SHAPES = {
    "6.12": ("6.12", "16", ""),
    "current": (kernels.CURRENT, "16", "gc_policy greedy placement none"),
    "units of one": ("6.12", "16", "write_unit 1 lanes 2"),
    "64 bytes, plain writes": ("6.12", "64", "append off"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_data_is_kept_without_headers(lab_run, helpers, shape):
    """Written over and over with GC at work and read back; after a stop; and what was flushed, after a power cut."""
    kernel, meta, options = SHAPES[shape]
    result = lab_run(START + f"""
mtftl format --op 30% $drive | grep -q 'headers in metadata'
mtftl dump $drive | grep -q '"headers": "metadata"'
dmsetup create t --table "$(table $drive {options})"
verify /dev/mapper/t --size=100% --io_size=45M --do_verify=1
dmsetup remove t
mtftl check $drive
mtftl dump $drive > dump
grep -q '"footer": true' dump
dmsetup create t --table "$(table $drive {options})"
verify /dev/mapper/t --size=100% --io_size=45M --verify_only=1
verify /dev/mapper/t --size=100% --io_size=45M --do_verify=0 --randseed=2 --end_fsync=1
test "$(field victims t)" -gt 0
test "$(field flash_headers t)" = 0
flash 1 0
dmsetup remove t
flash 0 0
mtftl check $drive
dmsetup create t --table "$(table $drive {options})"
verify /dev/mapper/t --size=100% --io_size=45M --verify_only=1 --randseed=2
test "$(field read_errors t)" = 0
dmsetup remove t
mtftl check $drive
""", **QUICK, kernel=kernel, device=DRIVE | {"ms": meta}, push=helpers, timeout=400)
    assert result.ok, result.output


def test_blocks_have_headers_where_that_is_asked_for(lab_run, helpers):
    """On the same drive: by an option, or as there is too little metadata; and nothing in between."""
    result = lab_run(START + """
mtftl format --headers blocks $drive > said
fails grep metadata said
dmsetup create t --table "$(table $drive append on)"
verify /dev/mapper/t --size=100% --io_size=80M --do_verify=1
test "$(field flash_headers t)" -gt 0
dmsetup remove t
mtftl check $drive
""", **QUICK, device=DRIVE | {"ms": "16"}, push=helpers, timeout=200)
    assert result.ok, result.output
    result = lab_run(START + """
mtftl format $drive > said
fails grep metadata said
mtftl format --force --headers metadata $drive 2>&1 && exit 1
mtftl format --force --headers sideways $drive 2>&1 && exit 1
dmsetup create t --table "$(table $drive)"
dmsetup remove t
""", **QUICK, device=DRIVE | {"ms": "8"}, push=helpers, timeout=200)
    assert result.ok, result.output
    assert "8 bytes of metadata a block, expected 16 to 128" in result.output
    assert "expected auto, blocks or metadata" in result.output


def test_a_kernel_that_cannot_says_so(lab_run, helpers):
    """Linux 6.1 frees a bio's payload, whoever made it: headers are in blocks there, those elsewhere are refused."""
    result = lab_run(START + """
mtftl format $drive > said
fails grep metadata said
dmsetup create t --table "$(table $drive)"
verify /dev/mapper/t --size=100% --io_size=40M --do_verify=1
dmsetup remove t
mtftl check $drive
mtftl format --force --headers metadata $drive > said
grep -q metadata said
mtftl check $drive
fails dmsetup create t --table "$(table $drive)"
dmesg | grep -q 'has 0 bytes of metadata a block, expected 16'
""", **QUICK, kernel="6.1", device=DRIVE | {"ms": "16"}, push=helpers, timeout=200)
    assert result.ok, result.output


# One zone to a file and back, with one byte of its block 230 changed: of its data, or of its metadata.
ROT = """
mtftl format --op 30% $drive > /dev/null
dmsetup create t --table "$(table $drive lanes 1 placement none)"
numbered 0 4096 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
dmsetup remove t
zone=$(zones $drive | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
at=$((zone * 256))
for half in 0 128; do
	nvme read $drive -s $((at + half)) -c 127 -z 524288 -y 2048 -d data$half -M meta$half > /dev/null
done
printf x | dd of=FILE bs=1 seek=OFFSET conv=notrunc status=none
blkzone reset -o $((at * 8)) -c 1 $drive
for half in 0 128; do
	nvme write $drive -s $((at + half)) -c 127 -z 524288 -y 2048 -d data$half -M meta$half > /dev/null
done
"""


@pytest.mark.parametrize(("file", "offset"), [("data128", 102 * 4096 + 100), ("meta128", 102 * 16 + 5)])
def test_rot_of_data_or_metadata_is_not_moved(lab_run, helpers, file, offset):
    """GC sees it, and the block reads as an error; all others are moved."""
    result = lab_run(START + COPY + ROT.replace("FILE", file).replace("OFFSET", str(offset)) + """
dmsetup create t --table "$(table $drive lanes 1 placement none)"
test "$(field victims t)" = 0
numbered 0 200 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
dmsetup message t 0 gc
for i in $(seq 100); do
	[ "$(field victims t)" = 0 ] || break
	usleep 100000
done
test "$(field lost t)" = 1
test $(judge /dev/mapper/t 0 4096) = 1
dmsetup remove t
""", **QUICK, device=DRIVE | {"ms": "16"}, push=helpers, timeout=200)
    assert result.ok, result.output
