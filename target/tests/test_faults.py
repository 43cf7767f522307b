# SPDX-License-Identifier: GPL-2.0
"""The target on devices that break their word: zones that shrink, reads that lie, errors that pass."""

import os
import re
from itertools import pairwise
from pathlib import Path

import pytest
from mtlab.build import kernels, sourcekernel, target
from test_target import FLAKY, FRESH, QUICK, SMALL, START, WAIT

# copy FROM TO [ZONE BLOCKS]: each zone as far as it is written, of ZONE so many blocks less: as a cut leaves it.
# Or to a file, or from one, as far as $layout is written.
COPY = """
copy() {
	local start written condition number=0 blocks flags="conv=notrunc iflag=skip_bytes,count_bytes oflag=seek_bytes"
	[ ! -b $1 ] || flags+=" iflag=direct"
	[ ! -b $2 ] || flags+=" oflag=direct"
	while read -r start written condition; do
		blocks=$((written / 8))
		[ $condition != 14 ] || blocks=1024
		[ "$number" != "$3" ] || blocks=$((blocks - $4))
		number=$((number + 1))
		[ $blocks -gt 0 ] || continue
		dd if=$1 of=$2 bs=64k skip=$((start * 512)) seek=$((start * 512)) count=$((blocks * 4096)) $flags status=none
	done < <(zones ${layout:-$1})
}
# numbered FIRST COUNT: each block says which one it is
numbered() { ./blocks write $1 $2; }
# judge DEVICE FIRST COUNT: blocks that read as errors; none may read as anything but what numbered() put there
judge() { ./blocks judge $1 $2 $3; }
"""


@pytest.mark.parametrize("stopped", [True, False], ids=["clean", "crash"])
def test_a_zone_that_is_shorter_than_it_was(lab_run, helpers, stopped):
    """What it held beyond its write pointer reads as errors, also when the zone is written again, and after a crash."""
    stop = "dmsetup remove t" if stopped else ""
    result = lab_run(START + COPY + f"""
for i in 0 1 2; do null nullb$i size=128; done
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
dmsetup message t 0 checkpoint
sync /dev/mapper/t
{stop}
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 {{ print NR - 1; exit }}')
copy /dev/nullb0 /dev/nullb1 $zone 150
[ ! -e /dev/mapper/t ] || dmsetup remove t
""" + """
dmsetup create t --table "$(table /dev/nullb1 lanes 1)"
lost=$(judge /dev/mapper/t 0 2048)
echo "lost $lost"
test $lost -gt 100
test "$(field lost t)" = $lost
dmesg | grep "$lost blocks are lost"
numbered 4096 3072 | dd of=/dev/mapper/t bs=64k seek=256 iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
test $(judge /dev/mapper/t 0 2048) = $lost
copy /dev/nullb1 /dev/nullb2
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb2 lanes 1)"
test $(judge /dev/mapper/t 0 2048) = $lost
test $(judge /dev/mapper/t 4096 3072) = 0
dmsetup remove t
mtftl check /dev/nullb2
""", **QUICK, push=helpers)
    assert result.ok, result.output


@pytest.mark.parametrize("needed", [True, False], ids=["needed", "discarded"])
def test_check_knows_an_erase_that_was_cut(lab_run, helpers, needed):
    """Units that read as zeroes while their footer is still there: no harm, unless somebody needs them."""
    discard = "" if needed else "blkdiscard -l 8M /dev/mapper/t\n"
    verdict = "!" if needed else ""
    result = lab_run(START + COPY + f"""
for i in 0 1; do null nullb$i size=128; done
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
{discard}dmsetup remove t
mtftl check /dev/nullb0
copy /dev/nullb0 image
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 {{ print NR - 1; exit }}')
dd if=/dev/zero of=image bs=4096 seek=$((zone * 1024 + 100)) count=500 conv=notrunc status=none
layout=/dev/nullb0
copy image /dev/nullb1
{verdict} mtftl check /dev/nullb1
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_superblock_log_that_is_shorter_than_it_was(lab_run, helpers):
    """The newest record that is left says that the device was stopped cleanly. What came later is there too."""
    result = lab_run(START + COPY + """
for i in 0 1; do null nullb$i size=64; done
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
dmsetup remove t
records() { zones /dev/nullb0 | awk 'NR == 1 { print $2 / 8 }'; }
before=$(records)
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 4096 1024 | dd of=/dev/mapper/t bs=64k seek=256 iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
copy /dev/nullb0 /dev/nullb1 0 $(($(records) - before))
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb1 lanes 1)"
echo "$(judge /dev/mapper/t 4096 1024) blocks are not there"
test $(judge /dev/mapper/t 0 2048) = 0
test $(judge /dev/mapper/t 4096 1024) = 0
dmesg | grep 'newer records are missing'
dmsetup remove t
mtftl check /dev/nullb1
""", profile="none", push=helpers)
    assert result.ok, result.output


# /dev/mapper/flaky on a device of zones of 4 MiB. zone_is ZONE FEATURE...: that zone is flakey, in all or as said;
# zone_is ZONE error: and cannot be reset; zone_is -: none is
ZONES = """
base=/dev/nullb0
zone_is() {
	local size=$(($(cat /sys/class/block/${base#/dev/}/size))) zone=$1
	shift
	{
		if [ $zone = - ]; then
			echo "0 $size linear $base 0"
		else
			echo "0 $((zone * 8192)) linear $base 0"
			case "$*" in
			error) echo "$((zone * 8192)) 8192 error $base $((zone * 8192))";;
			*) echo "$((zone * 8192)) 8192 flakey $base $((zone * 8192)) 0 3600 $# $*";;
			esac
			echo "$(((zone + 1) * 8192)) $((size - (zone + 1) * 8192)) linear $base $(((zone + 1) * 8192))"
		fi
	} > flaky.table
	if dmsetup info flaky > /dev/null 2>&1; then
		dmsetup load flaky flaky.table
		dmsetup suspend --nolockfs --noflush flaky
		dmsetup resume flaky
	else
		dmsetup create flaky flaky.table
	fi
}
zone_is -
says() { dmesg | grep -q "$1"; }
"""


def test_a_reset_that_is_refused_once_retires_no_zone(lab_run, helpers):
    """GC comes back to the zone. Refused again, it is of no more use."""
    result = lab_run(START + COPY + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
""" + ZONES + """
dmsetup create t --table "$(table /dev/mapper/flaky lanes 1 gc_policy greedy)"
# Twice the same: nothing is left of the first two zones.
for turn in 1 2; do
	numbered 0 2200 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
	sync /dev/mapper/t
done
full=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1 }')
set -- $full
echo "full: $*"
is_empty() { zones /dev/nullb0 | awk -v zone=$1 'NR - 1 == zone { exit $3 != 1 }'; }
zone_is $1 error
# It is the first of those that hold nothing, and the last one when it was refused.
for i in 1 2; do dmsetup message t 0 gc; done
until_true 10 says "zone $1: reset failed"
test "$(field bad t)" = 0
zone_is -
dmsetup message t 0 gc
until_true 20 is_empty $1
test "$(field bad t)" = 0
test $(judge /dev/mapper/t 0 2200) = 0
dmsetup remove t flaky
mtftl check /dev/nullb0
""", profile="none", push=helpers, timeout=120)
    assert result.ok, result.output


def test_errors_that_pass_lose_nothing(lab_run, helpers):
    """A zone cannot be read for a while: GC leaves it for later, a mount is refused. Then all is there."""
    result = lab_run(START + COPY + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
""" + ZONES + """
line=$(table /dev/mapper/flaky lanes 1)
dmsetup create t --table "$line"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
# Of that zone little is left: the best victim.
numbered 0 900 | dd of=/dev/mapper/t bs=4k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
zone_is $zone
dmsetup message t 0 gc
until_true 10 says "zone $zone: read failed" || test "$(field lost t)" = 0
echo "GC lost $(field lost t)"
test "$(field lost t)" = 0
zone_is -
test $(judge /dev/mapper/t 0 2048) = 0
dmsetup message t 0 gc
until_true 10 gained
test $(judge /dev/mapper/t 0 2048) = 0
numbered 0 1024 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t

echo now the mount
last=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { zone = NR - 1 } END { print zone }')
null nullb1 size=64
copy /dev/nullb0 /dev/nullb1
dmsetup remove t
dmsetup remove flaky
base=/dev/nullb1
zone_is $last
fails dmsetup create t --table "$line"
dmsetup remove t 2> /dev/null || true
zone_is -
dmsetup create t --table "$line"
test $(judge /dev/mapper/t 0 2048) = 0
test "$(field lost t)" = 0
dmsetup remove t flaky
mtftl check /dev/nullb1
""", **QUICK, push=helpers, timeout=120)
    assert result.ok, result.output


def test_rot_is_not_moved(lab_run, helpers):
    """One bit of a block flips on the medium: GC sees it, and the block reads as an error; not as what it is now."""
    result = lab_run(START + COPY + """
for i in 0 1; do null nullb$i size=64; done
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
dmsetup remove t
layout=/dev/nullb0
copy /dev/nullb0 image
at=$(./blocks find image 950)
printf x | dd of=image bs=1 seek=$((at * 4096 + 2000)) conv=notrunc status=none
copy image /dev/nullb1
dmsetup create t --table "$(table /dev/nullb1 lanes 1)"
numbered 0 900 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
dmsetup message t 0 gc
until_true 10 gained
echo "lost $(field lost t)"
test "$(field lost t)" = 1
test $(judge /dev/mapper/t 0 2048) = 1
fails dd if=/dev/mapper/t of=/dev/null bs=4k skip=950 count=1 iflag=direct status=none
dmsetup remove t
mtftl check /dev/nullb1
""", **QUICK, push=helpers, timeout=120)
    assert result.ok, result.output


def test_a_read_that_lied_once_loses_nothing(lab_run, helpers):
    """Reads of more than a block come back with a byte changed: GC reads those blocks again, one by one."""
    result = lab_run(START + COPY + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
""" + ZONES + """
dmsetup create t --table "$(table /dev/mapper/flaky lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
numbered 0 900 | dd of=/dev/mapper/t bs=4k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
zone_is $zone corrupt_bio_byte 5000 r 7 0
dmsetup message t 0 gc
until_true 10 gained
zone_is -
test "$(field lost t)" = 0
test $(judge /dev/mapper/t 0 2048) = 0
dmsetup remove t
""", **QUICK, push=helpers, timeout=120)
    assert result.ok, result.output


def test_gc_allocates_nothing(lab_run, helpers):
    """No kmalloc by its threads and works while it collects zones with footers: that could loop for ever."""
    result = lab_run(START + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
verify /dev/mapper/t --size=100% --io_size=30M --do_verify=0 --eta=never
cd /sys/kernel/tracing
echo 1 > options/stacktrace
for event in kmalloc kmalloc_node; do
	[ -d events/kmem/$event ] || continue
	echo 'comm ~ "mtftl_gc*" || comm ~ "kworker*"' > events/kmem/$event/filter
	echo 1 > events/kmem/$event/enable
done
cd - > /dev/null
verify /dev/mapper/t --size=100% --io_size=60M --randseed=2 --do_verify=0 --eta=never
test "$(field victims t)" -ge 4
echo 0 > /sys/kernel/tracing/events/enable
# Whatever has us on its stack; but the device below keeps its data in memory.
awk '/call_site=/ { event = /null_blk|null_insert_page/ ? "" : $0 }
	/\\[dm_mtftl\\]/ && event { print event; event = "" }' /sys/kernel/tracing/trace > allocated
head -3 allocated
test ! -s allocated
dmsetup remove t
""", **QUICK, push=helpers, timeout=120)
    assert result.ok, result.output


def test_memory_that_is_short_waits_for_gc_only(lab_run, helpers, pytestconfig):
    """A file in memory that is larger than the memory, all swap on the target: GC frees what memory waits for."""
    if pytestconfig.getoption("--kernel") in sourcekernel.DEBUG:
        pytest.skip("the debug kernels cannot swap")
    result = lab_run(START + """
mtftl format --op 20% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
mkswap /dev/mapper/t > /dev/null
swapon /dev/mapper/t
mkdir full
mount -t tmpfs -o size=100% none full
# What else lies in memory may be swapped out too.
free=$(awk '/MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
mount -o remount,size=$((free + 200))M full
for turn in 1 2 3 4 5 6 7 8; do
	[ "$(field victims t)" -lt 10 ] || break
	fio --name=turn --filename=full/file --size=$((free + 170))M --rw=randwrite --bs=4k --ioengine=psync \
		--io_size=$((free + 200))M --randseed=$turn --verify=crc32c --verify_fatal=1 --do_verify=1 \
		--output=fio.log --eta=never || { cat fio.log; exit 1; }
	swapped=$(awk '/SwapTotal/ { all = $2 } /SwapFree/ { print int((all - $2) / 1024) }' /proc/meminfo)
	echo "$free MiB free at first, $swapped swapped, $(field written t) blocks written, $(field victims t) victims"
done
test "$(field victims t)" -ge 10
dmsetup status t | grep 'mtftl rw'
test "$(field write_errors t)" = 0
umount full
swapoff /dev/mapper/t
dmsetup remove t
mtftl check /dev/nvme0n1
""", profile="tlc", memory="512M", push=helpers, timeout=400, device=SMALL | {"flash.size": "320M"})
    assert result.ok, result.output


def test_a_burst_of_failed_writes_is_one_failure(lab_run, helpers):
    """Four open zones fail what is in flight, at once: nothing says yet that writes fail wherever they go.

    Other writes take so long that none succeeds before the last one of the burst has failed.
    """
    result = lab_run(START + """
null nullb0 size=128 zone_size=2 irqmode=2 completion_nsec=20000000
mtftl format --op 30% /dev/nullb0 > /dev/null
# layer ZONE...: these fail
layer() {
	local zone failing=" $* "
	for zone in $(seq 0 63); do
		case $failing in
		*" $zone "*) echo "$((zone * 4096)) 4096 flakey /dev/nullb0 $((zone * 4096)) 0 3600 1 error_writes";;
		*) echo "$((zone * 4096)) 4096 linear /dev/nullb0 $((zone * 4096))";;
		esac
	done
}
layer | dmsetup create layer
dmsetup create t --table "$(table /dev/mapper/layer lanes 4)"
work="--filename=/dev/mapper/t --direct=1 --ioengine=psync --rw=write --bs=128k --size=512k --offset_increment=1M"
work+=" --numjobs=4 --cpus_allowed=0-3 --cpus_allowed_policy=split --output=fio.log"
fio --name=first $work --end_fsync=1 --eta=never
echo 1 > /sys/kernel/tracing/events/mtftl/mtftl_unit_submitted/enable
dmsetup suspend --nolockfs --noflush layer
# More than the buffers take: every lane has units on their way.
fio --name=burst $work --offset=8M --size=2M --eta=never &
used() { grep -o 'zone [0-9]*' /sys/kernel/tracing/trace | sort -u | cut -d' ' -f2; }
all_used() { test $(used | wc -l) -ge 4; }
until_true 10 all_used
echo "writes on their way to" $(used)
layer $(used) | dmsetup load layer
dmsetup resume layer
wait $!
sync /dev/mapper/t
echo "$(field write_errors t) writes failed"
test "$(field write_errors t)" -ge 4
dmsetup status t | grep 'mtftl rw'
dmsetup remove t layer
mtftl check /dev/nullb0
""", clock="virtual", profile="none", cpus=4, push=helpers, timeout=200)
    assert result.ok, result.output


def test_a_zone_that_is_reset_while_a_checkpoint_waits(lab_run, helpers):
    """A unit that the checkpoint waits for fails, and goes to a zone that was reset meanwhile: it is there after a cut.

    Each zone is a device of its own, so what is sent to it waits as long as that is suspended.
    """
    result = lab_run(START + COPY + """
null nullb0 size=32 zone_size=1
for zone in $(seq 0 31); do
	dmsetup create zone$zone --table "0 2048 linear /dev/nullb0 $((zone * 2048))"
	echo "$((zone * 2048)) 2048 linear /dev/mapper/zone$zone 0"
done > layer.table
dmsetup create layer layer.table
mtftl format --op 30% /dev/mapper/layer > /dev/null
dmsetup create t --table "$(table /dev/mapper/layer lanes 1 gc_policy greedy)"
numbered 0 480 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
worn_least=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
# All others are erased twice, but for those blocks' second zone. So the first one will be opened before them.
fill() { dd if=/dev/zero of=/dev/mapper/t bs=64k seek=30 count=$1 oflag=direct status=none; }
until gained 60; do fill 220; done
with_room() { zones /dev/nullb0 | awk 'NR > 4 && $3 == 2 && $2 < 1024 { print NR - 1 }'; }
sync /dev/mapper/t
until [ "$(with_room)" ]; do fill 1; sync /dev/mapper/t; done
failing=$(with_room)
# waits PROCESS FUNCTION: it sleeps in there
waits() { grep -qs $2 /proc/$1/stack; }
saw() { grep -q "$1" /sys/kernel/tracing/trace; }
echo 1 > /sys/kernel/tracing/events/mtftl/enable

# A reset waits, a write of users, and a checkpoint for that write.
dmsetup suspend --nolockfs --noflush zone$worn_least
blkdiscard -f -l 1M /dev/mapper/t 2> /dev/null
dmsetup message t 0 gc
until_true 10 waits '*' blkdev_zone_mgmt
saw "zone $worn_least victim -> resetting"
dmsetup suspend --nolockfs --noflush zone$failing
numbered 320 16 | dd of=/dev/mapper/t bs=64k seek=20 iflag=fullblock oflag=direct conv=fsync status=none &
writer=$!
until_true 10 saw "submitted: .* data .* zone $failing "
dmsetup message t 0 checkpoint &
checkpoint=$!
until_true 10 waits $checkpoint mtftl_flush_sync

dmsetup resume zone$worn_least
until_true 10 saw "zone $worn_least resetting -> empty"
dmsetup load zone$failing --table "0 2048 flakey /dev/nullb0 $((failing * 2048)) 0 3600 1 error_writes"
dmsetup resume zone$failing
wait $writer
wait $checkpoint
grep ' data ' /sys/kernel/tracing/trace
saw "completed: .* data .* zone $worn_least offset 0 status 0"

# The power goes.
dmsetup wipe_table layer
dmsetup remove t
dmsetup remove_all
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
lost=$(judge /dev/mapper/t 256 224)
echo "$lost blocks read as errors"
test "$lost" = 0
test "$(field lost t)" = 0
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK, push=helpers)
    assert result.ok, result.output


def _hold(pytestconfig):
    """A module that holds who comes first to a place in the target."""
    kernel = pytestconfig.getoption("--kernel")
    if kernel in sourcekernel.DEBUG:
        pytest.skip("the debug kernels have no kprobes")
    return target.helper_module("hold", Path(__file__).parent / "hold", kernels.get(kernel))


# holds WHAT...: see hold.c
HOLDS = """
holds() {
	insmod ./hold.ko ${*/#/what=}
	held=$*
	echo 1 > /sys/kernel/tracing/events/mtftl/enable
}
is_held() { grep -q $1 /sys/module/hold/parameters/held; }
go() { echo $1 > /sys/module/hold/parameters/go; }
"""


# Blocks of zones of 1 MiB behind a layer that can be taken away: as a cut does.
HELD = COPY + HOLDS + """
null nullb0 size=32 zone_size=1
dmsetup create layer --table "0 $((32 * 2048)) linear /dev/nullb0 0"
mtftl format --op 30% /dev/mapper/layer > /dev/null
open() { dmsetup create t --table "$(table $1 lanes 1 gc_policy greedy)"; }
open /dev/mapper/layer
# put FIRST AT COUNT [CONVERSION]: blocks that say they are FIRST and on
put() { numbered $1 $3 | dd of=/dev/mapper/t bs=4k seek=$2 iflag=fullblock oflag=direct conv=notrunc$4 status=none; }
saw() { grep -q "$1" /sys/kernel/tracing/trace; }
# reset_begins ZONE FUNCTION: GC has emptied it; its reset waits in there, or should have
reset_begins() {
	until_true 10 saw "zone $1 victim -> resetting"
	waits_or_is_reset() { saw "zone $zone resetting -> empty" || grep -qs $function /proc/*/stack; }
	zone=$1 function=$2 until_true 10 waits_or_is_reset
}
cut() {
	dmsetup wipe_table layer
	for what in $held; do go $what; done
	dmsetup remove t
	open /dev/nullb0
}
ends() {
	dmsetup remove t
	mtftl check /dev/nullb0
}
"""


# become TARGET...: what is behind the layer
FLAKY_LAYER = """
become() {
	dmsetup load layer --table "0 $((32 * 2048)) $*"
	dmsetup suspend --nolockfs --noflush layer
	dmsetup resume layer
}
"""


def test_a_mount_can_be_killed(lab_run, helpers, pytestconfig):
    """A mount after a cut is killed at each of its long steps; the next mount succeeds, and all data is there."""
    result = lab_run(START + HELD + """
put 0 0 64 ,fsync
dmsetup message t 0 checkpoint
put 64 64 64 ,fsync
dmsetup wipe_table layer
dmsetup remove t
dmsetup create t --notable
dmsetup load t --table "$(table /dev/nullb0 lanes 1)"
holds load scan sort first
for what in load scan sort first; do
	dmsetup resume t &
	pid=$!
	until_true 10 is_held $what
	kill -9 $pid
	go $what
	fails wait $pid
	dmsetup info t | grep -q SUSPENDED
done
test $(dmesg | grep -c 'mount: recover: .*, failed') = 3
dmesg | grep -q 'mount: first checkpoint: .*, failed'
dmsetup resume t
test "$(judge /dev/mapper/t 0 128)" = 0
ends
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_gc_that_looked_earlier_loses_to_users(lab_run, helpers, pytestconfig):
    """A mover found blocks alive, and users write them before its unit goes out: theirs are there, after a cut too.

    Another module holds the mover: what it does in between waits for nothing that a device could delay.
    """
    result = lab_run(START + HELD + """
# The first zone becomes full, and a third of it garbage.
put 10000 0 480 ,fsync
put 20000 0 64 ,fsync
holds gc
dmsetup message t 0 gc
until_true 10 is_held gc
fails saw 'submitted: .* gc'
# All that it may have found.
put 0 0 480 ,fsync
go gc
until_true 10 gained
grep 'completed: .* gc seq' /sys/kernel/tracing/trace
test "$(judge /dev/mapper/t 0 480)" = 0
cut
now=$(judge /dev/mapper/t 0 480) || true
echo "after the cut: $now"
test "$now" = 0
ends
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_a_failed_flush_is_not_forgotten(lab_run, helpers):
    """The device could not flush, and what it dropped is not known: no later flush may say that all is well."""
    result = lab_run(START + WAIT + COPY + """
null nullb0 size=64 cache_size=1
mtftl format --op 30% /dev/nullb0 > /dev/null
""" + FLAKY + """
dmsetup create t --table "$(table /dev/mapper/flaky lanes 2)"
numbered 0 1024 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
numbered 0 64 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
wait_for 'fill 0,0'
become 3600 error_writes
fails sync /dev/mapper/t
become 0
fails sync /dev/mapper/t
dmsetup status t | grep 'mtftl read-only'
dmesg | grep 'read-only: a flush failed'
test $(judge /dev/mapper/t 0 1024) = 0
dmsetup remove t
dmsetup create t --table "$(table /dev/mapper/flaky lanes 2)"
test $(judge /dev/mapper/t 0 1024) = 0
dmsetup status t | grep 'mtftl rw'
sync /dev/mapper/t
dmsetup remove t flaky
mtftl check /dev/nullb0
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_flush_beside_one_that_fails_fails_too(lab_run, helpers, pytestconfig):
    """A reset's flush is under way, and will fail: what it drops nobody's flush may call durable meanwhile.

    Another module holds it: the user's flush is asked for in between, whatever the device's times are.
    """
    hold = _hold(pytestconfig)
    result = lab_run(START + COPY + """
null nullb0 size=32 zone_size=1 cache_size=1
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
write() { dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none; }
# The first zone becomes full, and a third of it garbage.
numbered 10000 480 | write
numbered 20000 64 | write
insmod ./hold.ko what=flush
hold=/sys/module/hold/parameters
dmsetup message t 0 gc
until_true 10 grep flush $hold/held
before=$(cat $hold/asked)
asked() { test "$(cat $hold/asked)" -gt "$before"; }
sync /dev/mapper/t &
until_true 10 asked
echo flush > $hold/go
fails wait $!
dmesg | grep 'read-only: a flush failed'
fails sync /dev/mapper/t
dmsetup remove t
""", **QUICK, push=[*helpers, hold])
    assert result.ok, result.output


def test_a_write_that_failed_once_loses_to_newer_ones(lab_run, helpers, pytestconfig):
    """Its unit waits for another place while the block is written again: that one is there after a cut."""
    result = lab_run(START + HELD + """
becomes() {
	dmsetup load layer --table "0 $((32 * 2048)) $*"
	dmsetup suspend --nolockfs --noflush layer
	dmsetup resume layer
}
holds redo
put 10000 0 64 ,fsync
becomes flakey /dev/nullb0 0 0 3600 1 error_writes
put 20000 0 16
until_true 10 is_held redo
becomes linear /dev/nullb0 0
echo > /sys/kernel/tracing/trace
put 0 0 16
until_true 10 saw 'completed: .* data .* status 0'
go redo
sync /dev/mapper/t
grep ' data ' /sys/kernel/tracing/trace
cut
test "$(judge /dev/mapper/t 0 16)" = 0
ends
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_what_waited_for_a_place_has_no_old_number(lab_run, helpers, pytestconfig):
    """GC moves a block while a lane waits for a place; what users write to the block then is there after a cut."""
    result = lab_run(START + HELD + """
put 10000 0 720 ,fsync
put 10100 100 140 ,fsync
put 10300 300 120 ,fsync
holds place
put 1000 1000 1
until_true 10 is_held place
dmsetup message t 0 gc
until_true 10 gained
fails saw 'submitted: .* data'
put 0 0 100
go place
# A place appears.
dmsetup message t 0 gc
until_true 10 gained 1
sync /dev/mapper/t
cut
test "$(judge /dev/mapper/t 0 100)" = 0
ends
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_a_flush_of_what_finds_no_place_ends(lab_run, helpers, pytestconfig):
    """A lane is refused for ever. A flush waits for it, and the resets that would give it a place for the flush."""
    result = lab_run(START + HELD + """
put 0 0 64 ,fsync
holds place
put 64 64 32
sync /dev/mapper/t &
is_read_only() { dmsetup status t | grep -q 'mtftl read-only'; }
until_true 60 is_read_only
fails wait $!
dmesg | grep 'read-only: no zone is left from which space could be gained'
test "$(judge /dev/mapper/t 0 96)" = 0
dmsetup remove t
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_a_zone_is_not_reset_before_what_is_on_its_way(lab_run, helpers, pytestconfig):
    """What is newer than its blocks left the buffers, and the device has not got it: a cut must find the old ones."""
    result = lab_run(START + HELD + """
put 0 0 480 ,fsync
put 64 64 100 ,fsync
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
holds submit
put 10000 0 1
until_true 10 is_held submit
dmsetup message t 0 gc
reset_begins $zone mtftl_flush_sync
cut
test "$(judge /dev/mapper/t 0 480)" = 0
ends
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_a_zone_is_not_reset_under_who_reads_it(lab_run, helpers, pytestconfig):
    """He has looked up where a block is, and it is written anew: what he reads is the block, old or new."""
    result = lab_run(START + HELD + """
put 0 0 480 ,fsync
# Now the first two blocks are not read as one.
put 1 1 1 ,fsync
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
holds read
dd if=/dev/mapper/t of=got bs=8k count=1 iflag=direct status=none &
until_true 10 is_held read
put 10000 0 480 ,fsync
dmsetup message t 0 gc
reset_begins $zone synchronize_srcu
go read
wait $!
test "$(judge got 0 1)" = 0
until_true 10 saw "zone $zone resetting -> empty"
cut
ends
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_a_discard_ends_what_was_composed_before_it(lab_run, helpers, pytestconfig):
    """It waits for the map while its block is written: who saw the block gone finds it gone after a cut."""
    result = lab_run(START + HELD + """
put 10000 0 1 ,fsync
holds discard
blkdiscard -l 4k /dev/mapper/t &
until_true 10 is_held discard
put 20000 0 1 ,fsync
go discard
wait $!
sync /dev/mapper/t
cmp -n 4096 /dev/mapper/t /dev/zero
cut
cmp -n 4096 /dev/mapper/t /dev/zero
ends
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_gc_that_waits_for_space_tries_resets_again(lab_run, helpers, pytestconfig):
    """All that GC moves waits for a zone, and the reset that would give one has failed: nobody else tries it again."""
    result = lab_run(START + HELD + """
put 0 0 4096 ,fsync
put 0 0 300 ,fsync
for i in $(seq 1 12); do put $((i * 300)) $((i * 300)) 50 ,fsync; done
holds starve reset
dmsetup message t 0 gc
until_true 10 is_held reset
zone=$(grep -o 'zone [0-9]* victim -> resetting' /sys/kernel/tracing/trace)
# Until GC has one victim more than there is room for.
taken() { grep -c 'full -> victim' /sys/kernel/tracing/trace; }
more() { test $(taken) -gt $before; }
before=0
while more; do
	before=$(taken)
	dmsetup message t 0 gc
	until_true 1 more || break
done
until_true 10 is_held starve
go reset
until_true 10 saw "${zone%% victim*} resetting -> empty"
go starve
cut
test "$(judge /dev/mapper/t 0 4096)" = 0
ends
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_a_drive_without_fua_is_flushed_after_a_record(lab_run, helpers):
    """For FUA the kernel would send a flush of its own, and nobody could tell what it is that failed."""
    result = lab_run(START + """
modprobe null_blk nr_devices=0
grep -qw fua /sys/kernel/config/nullb/features || { echo "no such drive here"; exit 0; }
echo 1 > /sys/kernel/tracing/events/mtftl/mtftl_flush/enable
for fua in 1 0; do
	null nullb$fua size=64 cache_size=1 fua=$fua
	mtftl format --op 30% /dev/nullb$fua > /dev/null
	dmsetup create t --table "$(table /dev/nullb$fua lanes 1)"
	dd if=/dev/zero of=/dev/mapper/t bs=64k count=100 oflag=direct conv=fsync status=none
	echo > /sys/kernel/tracing/trace
	dmsetup message t 0 checkpoint
	flushes[fua]=$(grep -c mtftl_flush: /sys/kernel/tracing/trace)
	dmsetup remove t
	mtftl check /dev/nullb$fua
done
echo "flushes: ${flushes[1]} with FUA, ${flushes[0]} without"
test ${flushes[0]} -eq $((flushes[1] + 1))
""", **QUICK, push=helpers)
    assert result.ok, result.output


RAGGED = {"logical_block_size": "512", "flash.size": "64M", "zoned.zone_size": "2M", "zoned.zone_capacity": "1574400",
          "zoned.max_open": "14", "zoned.max_active": "14", "flash.channels": "2", "flash.dies": "2",
          "flash.planes": "1", "flash.page": "16K", "flash.program_pages": "1", "flash.block_pages": "32"}


def test_full_zones_of_a_capacity_that_is_no_multiple_of_blocks_are_finished(lab_run, helpers):
    """They never become full by themselves, and the device counts them: none would be left for a mount."""
    result = lab_run(START + """
active() { zones /dev/nvme0n1 | awk '$3 >= 2 && $3 <= 4' | wc -l; }
mtftl format --op 25% /dev/nvme0n1 > /dev/null
line=$(table /dev/nvme0n1 lanes 2)
dmsetup create t --table "$line"
for turn in 1 2 3; do
	verify /dev/mapper/t --size=100% --io_size=50M --randseed=$turn --do_verify=1 --end_fsync=1
	for i in $(seq 200); do dmsetup message t 0 checkpoint; done
	echo "$(active) active, $(field write_errors t) writes failed"
	test "$(field write_errors t)" = 0
	dmsetup status t | grep 'mtftl rw'
	flash 0x01 0
	dmsetup remove t
	flash 0x00 0
	echo /dev/nvme0n1 is back
	dmsetup create t --table "$line"
	verify /dev/mapper/t --size=100% --io_size=50M --randseed=$turn --verify_only=1
done
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=helpers, timeout=400, device=RAGGED)
    assert result.ok, result.output


def test_conventional_zones_are_refused(lab_run, helpers):
    """Their write pointer means nothing."""
    result = lab_run(START + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
line=$(table /dev/nullb0)
dd if=/dev/nullb0 of=record bs=4k count=1 iflag=direct status=none
null nullb1 size=64 zone_nr_conv=4
dd if=record of=/dev/nullb1 bs=4k oflag=direct status=none
fails timeout 20 dmsetup create t --table "${line/nullb0/nullb1}"
dmesg | grep 'Device has conventional zones, expected sequential ones only'
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_resume_allocates_little(lab_run, helpers):
    """While the device is suspended memory may wait for it: map, buffers and threads come with the load."""
    result = lab_run(START + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
line=$(table /dev/nullb0 lanes 2)
dmsetup create t --table "$line"
verify /dev/mapper/t --size=16M --do_verify=1
dmsetup load t --table "$line"
cd /sys/kernel/tracing
echo 'order >= 3 && comm ~ "dmsetup*"' > events/kmem/mm_page_alloc/filter
echo 'parent_comm ~ "kthreadd*"' > events/sched/sched_process_fork/filter
for event in kmem/mm_page_alloc sched/sched_process_fork; do echo 1 > events/$event/enable; done
dmsetup suspend t
dmsetup resume t
echo 0 > events/enable
cd - > /dev/null
grep -v '^#' /sys/kernel/tracing/trace > allocated || true
# A slab that would be large (debug kernels' are) is asked for like that, and does without.
grep -v 'child_comm=kworker\\|kworker\\|NOMEMALLOC' allocated > ours || true
head -3 ours
test ! -s ours
verify /dev/mapper/t --size=16M --verify_only=1
dmsetup remove t
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_load_that_is_killed_says_so(lab_run, helpers, pytestconfig):
    """A table load is killed before its threads are made: it is not out of memory, and the next load succeeds."""
    result = lab_run(START + HOLDS + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
line=$(table /dev/nullb0 lanes 2)
dmsetup create t --notable
holds threads
dmsetup load t --table "$line" &
job=$!
until_true 10 is_held threads
kill -9 $job
go threads
wait $job || true
dmesg | grep 'mtftl: Interrupted by a signal'
dmesg | fails grep 'Out of memory'
dmsetup load t --table "$line"
dmsetup resume t
dmsetup remove t
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_threads_and_queues_are_named_for_their_device(lab_run, helpers):
    result = lab_run(START + """
for i in 0 1; do
	null nullb$i size=64
	mtftl format --op 30% /dev/nullb$i > /dev/null
	dmsetup create t$i --table "$(table /dev/nullb$i lanes 2)"
done
names() { cat /proc/[0-9]*/comm | grep mtftl | sort; }
names
dmsetup remove t0
names | fails grep 'dm-0'
dmsetup remove t1
""", **QUICK, push=helpers)
    assert result.ok, result.output
    names = result.output.split()
    for device in ("dm-0", "dm-1"):
        for name in (f"mtftl/{device}/0", f"mtftl/{device}/1", f"mtftl_gc/{device}/2", f"mtftl_gc/{device}",
                     f"mtftl_flush/{device}"):
            assert name in names
    assert all("dm-0" in name or "dm-1" in name for name in names if "kworker" not in name), names


def test_read_only_tables_write_nothing(lab_run, helpers):
    """After a crash: what is there can be read, and the device stays as it is, byte for byte and zone for zone."""
    result = lab_run(START + COPY + """
for i in 0 1; do null nullb$i size=64; done
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
copy /dev/nullb0 /dev/nullb1
dmsetup remove t
sum() { ./blocks sum /dev/nullb1; blkzone report /dev/nullb1 | md5sum; }
sum > before
dmsetup create t --readonly --table "$(table /dev/nullb1 lanes 1)"
dmsetup status t | grep 'mtftl read-only'
test $(judge /dev/mapper/t 0 2048) = 0
fails dmsetup message t 0 checkpoint
dmsetup message t 0 gc
dmsetup suspend t
dmsetup resume t
test $(judge /dev/mapper/t 0 2048) = 0
dmsetup remove t
sum | cmp - before
dmsetup create t --table "$(table /dev/nullb1 lanes 1)"
dmsetup status t | grep 'mtftl rw'
test $(judge /dev/mapper/t 0 2048) = 0
dmsetup remove t
mtftl check /dev/nullb1
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_device_that_hangs_blocks_no_other(lab_run, helpers):
    """One drive does not answer, and its table is being removed: another is mounted, suspended and removed."""
    result = lab_run(START + """
for i in 0 1; do null nullb$i size=64; mtftl format --op 30% /dev/nullb$i > /dev/null; done
dmsetup create layer --table "0 $(cat /sys/class/block/nullb0/size) linear /dev/nullb0 0"
dmsetup create t --table "$(table /dev/mapper/layer lanes 1)"
dd if=/dev/zero of=/dev/mapper/t bs=64k count=4 oflag=direct status=none
dmsetup suspend --nolockfs --noflush layer
dmsetup remove t &
job=$!
hangs $job
timeout 20 dmsetup create u --table "$(table /dev/nullb1 lanes 1)"
dd if=/dev/zero of=/dev/mapper/u bs=64k count=4 oflag=direct status=none
timeout 20 dmsetup suspend u
timeout 20 dmsetup resume u
timeout 20 dmsetup remove u
dmsetup resume layer
wait $job
""", **QUICK, push=helpers, timeout=150)
    assert result.ok, result.output


def test_a_suspend_without_flush_waits_for_no_device(lab_run, helpers):
    """The drive hangs: writes, flushes and discards that wait go back to device-mapper, until the resume."""
    result = lab_run(START + """
null nullb0 size=160
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create layer --table "0 $(cat /sys/class/block/nullb0/size) linear /dev/nullb0 0"
dmsetup create t --table "$(table /dev/mapper/layer lanes 2)"
for turn in 1 2 3; do
	verify /dev/mapper/t --size=32M --io_size=16M --randseed=$turn --do_verify=0 --fsync=100 --rate_iops=500 &
	job=$!
	fio --name=discards --filename=/dev/mapper/t --offset=40M --size=8M --rw=randtrim --bs=4k --direct=1 \\
		--io_size=32M --output=discards.log --eta=never &
	discards=$!
	usleep 700000
	dmsetup suspend --nolockfs --noflush layer
	dd if=/dev/zero of=/dev/mapper/t bs=64k count=100 seek=800 oflag=direct conv=fsync status=none &
	writer=$!
	# Until the buffers are full, and the flush and both jobs wait.
	for i in $(seq 100); do usleep 20000; done
	echo suspend $turn
	timeout 20 dmsetup suspend --nolockfs --noflush t
	echo done $turn
	dmsetup resume layer
	dmsetup resume t
	wait $writer
	wait $discards
	wait $job
	verify /dev/mapper/t --size=32M --io_size=16M --randseed=$turn --verify_only=1
	test "$(field write_errors t)" = 0
done
dmsetup remove t
mtftl check /dev/mapper/layer
""", profile="none", cpus=2, push=helpers, timeout=200)
    assert result.ok, result.output


# Each mount's beginning and its end, in the order in which they happened.
MOUNTS = """
echo mtftl_device_prepare mtftl_recover mtftl_device_unprepare > /sys/kernel/tracing/set_ftrace_filter
echo function > /sys/kernel/tracing/current_tracer
"""


def mounts_at_once(trace: bytes) -> tuple[int, int]:
    """How many mounts there were, and the most at a time."""
    now = most = mounts = 0
    made = set()
    for process, function in re.findall(r"-(\d+) .*: (mtftl_\w+) <-", trace.decode()):
        if function == "mtftl_device_prepare":
            made.add(process)
        elif function == "mtftl_recover":
            mounts += 1
            now += 1
        # A refused table is destroyed by the process that made it.
        elif process not in made:
            now -= 1
        most = max(most, now)
    return mounts, most


# A drive whose last flush and checkpoint take seconds.
SLOW = """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
line=$(table /dev/nvme0n1 lanes 2)
for die in 0 1 2 3; do flash 0x17 $die 30000; done > /dev/null
"""


def test_one_table_writes_to_a_drive(lab_run, helpers):
    """A suspended table is removed while another one is created: that one is refused, or comes when all is written."""
    rounds = int(os.environ.get("MTFTL_ROUNDS", "6"))
    result = lab_run(START + SLOW + MOUNTS + f"rounds={rounds}" + """
refused=0
for round in $(seq $rounds); do
	dmsetup create x --table "$line"
	yes "$round" | dd of=/dev/mapper/x bs=4k count=16 seek=$((round % 100)) iflag=fullblock oflag=direct status=none
	dmsetup suspend --noflush --nolockfs x
	dmsetup remove x &
	job=$!
	usleep $((1000 + round * 7919 % 400 * 1000))
	dmsetup create y --table "$line" 2> said || { grep -q 'Device or resource busy' said; refused=$((refused + 1)); }
	wait $job
	[ -e /dev/mapper/y ] || dmsetup create y --table "$line"
	cmp -n 65536 <(yes "$round") <(dd if=/dev/mapper/y bs=4k count=16 skip=$((round % 100)) iflag=direct status=none)
	dmsetup remove y
done
echo "$refused of $rounds refused"
test $refused -gt $((rounds / 4))
test -z "$(dmesg | grep 'superblock log\\|clean stop failed')"
cp /sys/kernel/tracing/trace trace
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=helpers, pull=["trace"], timeout=120 + 2 * rounds, device=SMALL)
    assert result.ok, result.output
    print(result.output)
    assert mounts_at_once(result.files["trace"]) == (2 * rounds, 1)


def test_a_table_that_follows_waits_for_the_one_before(lab_run, helpers):
    """An old table, replaced by one of `error`, still writes when a new table of the same name is resumed."""
    result = lab_run(START + SLOW + MOUNTS + """
for round in 1 2 3 4; do
	[ -e /dev/mapper/x ] || dmsetup create x --table "$line"
	yes "$round" | dd of=/dev/mapper/x bs=4k count=16 iflag=fullblock oflag=direct status=none
	dmsetup suspend --noflush --nolockfs x
	dmsetup load x --table "$(echo "$line" | awk '{ print 0, $2, "error" }')"
	dmsetup resume x &
	job=$!
	usleep $((round * 20000))
	dmsetup load x --table "$line"
	dmsetup suspend --noflush --nolockfs x
	dmsetup resume x
	cmp -n 65536 <(yes "$round") <(dd if=/dev/mapper/x bs=4k count=16 iflag=direct status=none)
	wait $job
done
dmsetup remove x
test -z "$(dmesg | grep 'superblock log\\|clean stop failed')"
cp /sys/kernel/tracing/trace trace
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=helpers, pull=["trace"], timeout=200, device=SMALL)
    assert result.ok, result.output
    assert mounts_at_once(result.files["trace"])[1] == 1


def test_a_drive_is_known_by_what_is_on_it(lab_run, helpers):
    """Two tables with one superblock, on a layer or on a copy of the drive: the second is refused, in either order."""
    result = lab_run(START + COPY + """
null nullb0
null nullb1
mtftl format --op 30% /dev/nullb0 > /dev/null
copy /dev/nullb0 /dev/nullb1
dmsetup create layer --table "0 $(cat /sys/class/block/nullb0/size) linear /dev/nullb0 0"
for first in /dev/nullb0 /dev/mapper/layer; do
	dmsetup create t --table "$(table $first)"
	for second in /dev/nullb0 /dev/mapper/layer /dev/nullb1; do
		fails dmsetup create u --table "$(table $second)" 2> said
		grep 'Device or resource busy' said
	done
	dmesg | grep 'has the same superblock as .*, which another mtftl device uses, expected one for each drive'
	dmesg -c > /dev/null
	numbered 0 64 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
	# The same name may go over to another way to the drive.
	dmsetup load t --table "$(table /dev/mapper/layer)"
	dmsetup resume t
	test $(judge /dev/mapper/t 0 64) = 0
	dmsetup remove t
done
dmsetup create u --table "$(table /dev/nullb1)"
dmsetup remove u layer
mtftl check /dev/nullb0
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_suspend_without_flush_takes_no_message(lab_run, helpers):
    """A checkpoint would wait for the resume; and a reload, which resumes too, for the message."""
    result = lab_run(START + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
dd if=/dev/zero of=/dev/mapper/t bs=64k count=100 oflag=direct status=none
dmsetup suspend --nolockfs --noflush t
fails timeout 20 dmsetup message t 0 checkpoint > said 2>&1
grep 'Device or resource busy' said
dmsetup load t --table "$(table /dev/nullb0 lanes 1)"
timeout 20 dmsetup resume t
dmsetup message t 0 checkpoint
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK, push=helpers)
    assert result.ok, result.output


# silent COMMAND...: while it runs no command reaches a drive
SILENT = """
silent() {
	echo 0 > /sys/kernel/tracing/tracing_on
	echo > /sys/kernel/tracing/trace
	echo 1 > /sys/kernel/tracing/events/block/block_rq_issue/enable
	echo 1 > /sys/kernel/tracing/tracing_on
	"$@"
	echo 0 > /sys/kernel/tracing/events/block/block_rq_issue/enable
	! grep block_rq_issue /sys/kernel/tracing/trace | head -5 | grep .
}
"""


@pytest.mark.parametrize("how", ["", "--noflush"], ids=["flush", "noflush"])
def test_a_suspended_device_is_silent(lab_run, helpers, how):
    """Messages that would take commands are refused, others are not; from the suspend to the resume none is sent."""
    result = lab_run(START + SILENT + f"how={how}" + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
dd if=/dev/zero of=/dev/mapper/t bs=64k count=100 oflag=direct status=none
refused() {
	for message in checkpoint gc; do
		fails dmsetup message t 0 $message 2> said
		grep 'Device or resource busy' said
	done
	dmsetup message t 0 low_water $(($(field reserve t) + 2))
	dmsetup message t 0 gc_policy greedy
	dmsetup message t 0 latency
	dmsetup message t 0 reset_stats
	dmsetup status t
	usleep 500000
}
dmsetup suspend --nolockfs $how t
silent refused
dmsetup resume t
dmsetup message t 0 checkpoint
dmsetup message t 0 gc
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=helpers, device=SMALL)
    assert result.ok, result.output


def test_a_victim_that_is_listed_waits_for_the_resume(lab_run, helpers):
    """A zone without a footer: GC reads a header for each of many units, until a suspend, and again after it."""
    result = lab_run(START + SILENT + COPY + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
line=$(table /dev/nvme0n1 lanes 1 write_unit 1)
dmsetup create t --table "$line"
numbered 0 400 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
# What is open at a mount gets no footer.
dmsetup load t --table "$line"
dmsetup resume t
numbered 400 4000 | dd of=/dev/mapper/t bs=64k seek=25 iflag=fullblock oflag=direct conv=fsync status=none
# Little is left of what was there before: the best victim.
numbered 0 300 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
for die in 0 1 2 3; do flash 0x17 $die 5000; done > /dev/null
dmsetup message t 0 gc
silently() { fails gained; usleep 3000000; fails gained; }
for turn in 1 2; do
	usleep 200000
	dmsetup suspend --nolockfs --noflush t
	silent silently
	dmsetup resume t
done
until_true 30 gained
fails grep 'found by the map alone' <(dmesg)
test $(judge /dev/mapper/t 0 4400) = 0
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=helpers, timeout=200, device=SMALL)
    assert result.ok, result.output


# heard COMMAND...: device-mapper tells of it within three seconds
HEARD = """
heard() {
	local event job
	event=$(dmsetup info -c --noheadings -o events t)
	timeout 3 dmsetup wait t $event > /dev/null &
	job=$!
	"$@"
	wait $job
}
"""


def test_who_waits_for_events_hears_of_faults(lab_run, helpers):
    """A zone that retires, blocks that are lost, a device that turns read-only; and many at once are a few events."""
    result = lab_run(START + COPY + HEARD + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
fails heard true
retire() {
	for zone in 2 3; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
	dmsetup message t 0 checkpoint
	dmsetup message t 0 checkpoint
}
before=$(dmsetup info -c --noheadings -o events t)
heard retire
test "$(field bad t)" = 2
usleep 3000000
test $(($(dmsetup info -c --noheadings -o events t) - before)) -le 2
lose() {
	echo $(($1 * 8192)) > /sys/kernel/config/nullb/nullb0/zone_offline
	dmsetup message t 0 gc
	until_true 10 lost
}
lost() { [ "$(field lost t)" -gt 0 ]; }
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
numbered 0 900 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
usleep 3000000
heard lose $zone
usleep 3000000
end() {
	for zone in 0 1; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
	fails dmsetup message t 0 checkpoint
}
heard end
dmsetup status t | grep 'mtftl read-only'
dmsetup remove t
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_the_table_can_be_measured(lab_run, helpers):
    """What IMA gets: name, version, device and options, as other targets write it."""
    result = lab_run(START + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1 gc_policy greedy)"
dmsetup table t
dmsetup measure t
dmsetup remove t
""", **QUICK, push=helpers)
    assert result.ok, result.output
    table, measured = result.output.splitlines()
    words = table.split(" mtftl ")[1].split()
    options = dict(zip(words[2::2], words[3::2], strict=True))
    said = measured.split(" mtftl ")[1]
    assert said.endswith(";")
    fields = dict(field.split("=") for field in said[:-1].split(","))
    assert re.fullmatch(r"\d+\.\d+\.\d+", fields.pop("target_version"))
    assert fields == {"target_name": "mtftl", "device_name": words[0], **options}


def test_what_is_not_supported_says_so(lab_run, helpers):
    """A device without zones: operations on them, and a secure erase, are not supported, and cost nothing."""
    result = lab_run(FRESH + """
dmsetup create t --table "$(table /dev/nullb0)"
for command in "blkzone reset" "blkzone report" "blkzone finish"; do
	fails $command /dev/mapper/t
done
fails blkdiscard --secure --length 4096 /dev/mapper/t 2> said
grep 'Operation not supported' said
dmsetup status t | grep 'mtftl rw'
verify /dev/mapper/t --size=4M --do_verify=1
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_suspended_device_has_no_timer(lab_run, helpers):
    """Users were slowed when it came: nobody is while nothing is written, so nothing ticks for them."""
    result = lab_run(START + """
null nullb0 size=64 zone_size=1
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 2 low_water 32)"
fio --name=w --filename=/dev/mapper/t --rw=randwrite --bs=4k --direct=1 --ioengine=io_uring --iodepth=8 \\
	--io_size=1G --time_based --runtime=1 --output=fio.log &
job=$!
trace=/sys/kernel/tracing
echo 1 > $trace/events/timer/hrtimer_expire_entry/enable
ticks() { grep -c 'function=tick \\[dm_mtftl\\]' $trace/trace; }
until_true 20 ticks
dmsetup suspend --nolockfs --noflush t
echo > $trace/trace
usleep 50000
echo "ticks: $(ticks)"
test "$(ticks)" -le 1
dmsetup resume t
wait $job
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK | {"clock": "virtual"}, push=helpers)
    assert result.ok, result.output


def test_a_suspend_without_flush_fails_no_write_that_may_not_block(lab_run, helpers):
    """What waits goes back when device-mapper holds it: until then that sends it again, and may say EAGAIN."""
    result = lab_run(START + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2 buffer_entries 128)"
fio --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=64 --numjobs=2 \\
	--time_based --runtime=60 --name=job --output=fio.log --eta=never &
job=$!
for turn in $(seq 100); do
	usleep $((3000 + turn * 7))
	dmsetup suspend --nolockfs --noflush t
	dmsetup resume t
done
kill -0 $job
killall -INT fio
wait $job || true
cat fio.log
fails grep 'err=[^ ]*[1-9]' fio.log
# The kernel closes io_uring's files after their process.
until_true 1 dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, append="preempt=full", push=helpers, timeout=200, device=SMALL)
    assert result.ok, result.output


def test_a_suspend_that_takes_long_to_hold_bios_fails_no_write(lab_run, helpers, pytestconfig):
    """A suspend sleeps before device-mapper holds bios: bios that must not block are not given back until it does."""
    result = lab_run(START + HOLDS + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2 buffer_entries 128)"
fio --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=64 --numjobs=2 \
	--time_based --runtime=60 --name=job --output=fio.log --eta=never &
job=$!
usleep 50000
holds presuspend probe
echo mtftl_lanes_give_back > /sys/kernel/tracing/set_ftrace_filter
echo function > /sys/kernel/tracing/current_tracer
given_back() { grep -q 'mtftl_lanes_give_back <-' /sys/kernel/tracing/trace; }
dmsetup suspend --nolockfs --noflush t &
suspend=$!
until_true 10 is_held presuspend
# An error of another kind says nothing.
until_true 10 is_held probe
usleep 20000
fails given_back
go probe
usleep 20000
fails given_back
go presuspend
wait $suspend
given_back
usleep 20000
dmsetup resume t
usleep 20000
kill -0 $job
killall -INT fio
wait $job || true
cat fio.log
fails grep 'err=[^ ]*[1-9]' fio.log
until_true 1 dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=[*helpers, _hold(pytestconfig)], timeout=200, device=SMALL)
    assert result.ok, result.output


def test_a_suspend_that_a_signal_ends_fails_no_write(lab_run, helpers, pytestconfig):
    """Device-mapper sends bios again before the target hears that the suspend has ended: they are not given back."""
    result = lab_run(START + HOLDS + """
null nullb0 size=32 zone_size=1
dmsetup create layer --table "0 $(cat /sys/class/block/nullb0/size) linear /dev/nullb0 0"
mtftl format --op 30% /dev/mapper/layer > /dev/null
dmsetup create t --table "$(table /dev/mapper/layer lanes 1 buffer_entries 128)"
dd if=/dev/zero of=/dev/mapper/t bs=4k count=1 oflag=direct conv=fsync status=none
dmsetup suspend --nolockfs --noflush layer
# The drive has this one, so the suspend waits for it.
dd if=/dev/mapper/t of=/dev/null bs=4k count=1 iflag=direct status=none &
reader=$!
hangs $reader
dd if=/dev/zero of=/dev/mapper/t bs=64k count=100 oflag=direct conv=fsync status=none &
writer=$!
hangs $writer
holds undo
dmsetup suspend --nolockfs --noflush t &
suspend=$!
usleep 100000
kill $suspend
until_true 10 is_held undo
usleep 20000
go undo
fails wait $suspend
dmsetup resume layer
wait $reader
wait $writer
dmsetup remove t
mtftl check /dev/mapper/layer
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_gc_goes_on_after_a_suspend_without_flush(lab_run, helpers):
    """A victim was moved in part, and all that moves waited for programs: nothing else is there to wake them."""
    result = lab_run(START + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
fill() {
	fio --name=fill --filename=/dev/mapper/t --direct=1 --ioengine=io_uring --iodepth=8 --output=fio.log \\
		--eta=never "$@"
}
fill --rw=write --bs=64k
fill --rw=randwrite --bs=4k --io_size=10%
sync /dev/mapper/t
before=$(field victims t)
dmsetup message t 0 gc
usleep 10000
dmsetup suspend --nolockfs --noflush t
test "$(field flash_gc t)" -gt 0
fails gained $before
dmsetup resume t
until_true 2 gained $before
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=helpers, timeout=120, device=SMALL | {
        "flash.program_ns": "20000000", "flash.suspend": "on", "flash.buffer": "0"})
    assert result.ok, result.output


def test_pauses_that_follow_each_other_do_not_stop_gc(lab_run, helpers):
    """GC moves and resets a victim though each pause begins before what it reads has come."""
    result = lab_run(START + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
fill() {
	fio --name=fill --filename=/dev/mapper/t --direct=1 --ioengine=io_uring --iodepth=8 --output=fio.log \
		--eta=never "$@"
}
fill --rw=write --bs=64k
fill --rw=randwrite --bs=4k --io_size=10%
sync /dev/mapper/t
before=$(field victims t)
trace=/sys/kernel/tracing
echo 1 > $trace/events/mtftl/mtftl_zone_state/enable
saw() { grep -q "$1" $trace/trace; }
dmsetup message t 0 gc
for turn in $(seq 100); do
	timeout 4 dmsetup suspend --nolockfs --noflush t
	dmsetup resume t
	! saw 'resetting -> empty' || break
done
echo "$turn pauses"
grep mtftl_zone_state $trace/trace
fails saw 'victim -> full'
gained $before
saw 'resetting -> empty'
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=helpers, timeout=200, device=SMALL | {
        "flash.read_ns": "10000000", "flash.program_ns": "10000000", "flash.suspend": "on", "flash.buffer": "0"})
    assert result.ok, result.output


def test_pauses_that_follow_each_other_do_not_stop_resets(lab_run, helpers, pytestconfig):
    """A reset has failed, and each pause begins before GC knows whether the device answers: still it is tried again."""
    result = lab_run(START + HOLDS + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 1)"
# Two zones with garbage alone.
for turn in 1 2; do
	dd if=/dev/zero of=/dev/mapper/t bs=1M count=16 oflag=direct conv=fsync status=none
done
saw() { grep -q "$1" /sys/kernel/tracing/trace; }
holds reset
dmsetup message t 0 gc
until_true 10 is_held reset
go reset
for turn in $(seq 10); do
	dmsetup suspend --nolockfs --noflush t
	dmsetup resume t
	! saw 'resetting -> empty' || break
done
echo "$turn pauses"
grep mtftl_zone_state /sys/kernel/tracing/trace
saw 'resetting -> empty'
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=[*helpers, _hold(pytestconfig)], timeout=200,
                     device=SMALL | {"flash.read_ns": "20000000"})
    assert result.ok, result.output


def test_users_wait_at_the_gate_of_a_new_table(lab_run, helpers):
    """A mount begins with few zones empty: users' writes must not take what is kept for GC and flushes."""
    result = lab_run(START + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
line="$(table /dev/nvme0n1 lanes 1 buffer_entries 512 write_unit 1)"
dmsetup create t --table "$line"
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --ioengine=io_uring --iodepth=8 \\
	--output=fio.log --eta=never
fio --name=job --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=64 \\
	--numjobs=4 --time_based --runtime=60 --output=fio.log --eta=never &
job=$!
for turn in $(seq 30); do
	usleep 2000
	dmsetup load t --table "$line"
	dmsetup suspend --nolockfs --noflush t
	dmsetup resume t
	test "$(field free t)" -gt 0
done
killall -INT fio
wait $job || true
fails grep 'err=[^ ]*[1-9]' fio.log
until_true 1 dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=helpers, timeout=120, device=SMALL)
    assert result.ok, result.output


# quiet DRIVE MICROSECONDS: nothing is written to it so long. A flush, which the kernel counts as a write too, may end.
QUIET = """
written() { awk '{ print $5 - $16 }' /sys/class/block/$1/stat; }
quiet() {
	local before=$(written $1) after
	usleep $2
	after=$(written $1)
	echo "$before $after"
	test $before = $after
}
"""


def test_nothing_is_written_while_suspended(lab_run, helpers):
    """Also without a flush: lanes, GC and checkpoints stop until the resume."""
    result = lab_run(START + QUIET + """
null nullb0 size=96
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
verify /dev/mapper/t --size=100% --io_size=60M --do_verify=0
for turn in $(seq 12); do
	fio --name=job --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=16 \\
		--io_size=12M --randseed=$turn --output=fio.log --eta=never &
	usleep $((turn * 60000))
	dmsetup message t 0 gc
	[ $((turn % 3)) != 0 ] || dmsetup message t 0 checkpoint &
	dmsetup suspend --nolockfs --noflush t
	quiet nullb0 300000
	dmsetup resume t
	wait
done
test "$(field victims t)" -gt 0
dmsetup remove t
mtftl check /dev/nullb0
""", profile="none", cpus=2, push=helpers, timeout=200)
    assert result.ok, result.output


def test_a_drive_that_comes_back_during_a_suspend_gets_nothing(lab_run, helpers):
    """It hung for longer than the suspend waits, with a record of the log half done: the rest waits for the resume."""
    result = lab_run(START + """
null nullb0 size=32 zone_size=1
dmsetup create layer --table "0 $(cat /sys/class/block/nullb0/size) linear /dev/nullb0 0"
mtftl format --op 30% /dev/mapper/layer > /dev/null
dmsetup create t --table "$(table /dev/mapper/layer lanes 1)"
dmsetup suspend --nolockfs --noflush layer
# The log has to say first that the device is in use: a flush, then a record.
dd if=/dev/zero of=/dev/mapper/t bs=64k count=4 oflag=direct conv=fsync status=none &
job=$!
usleep 100000
dmsetup suspend --nolockfs --noflush t
events=/sys/kernel/tracing/events/block/block_bio_queue
IFS=: read -r major minor < /sys/block/dm-0/dev
echo "dev == $((major << 20 | minor))" > $events/filter
echo 1 > $events/enable
dmsetup resume layer
usleep 500000
echo 0 > $events/enable
fails grep block_bio_queue: /sys/kernel/tracing/trace
dmsetup resume t
wait $job
dmsetup remove t
mtftl check /dev/mapper/layer
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_pause_ends_what_would_go_on(lab_run, helpers):
    """Zones that are erased one after another, and are long about it: at most the one under way comes to its end."""
    result = lab_run(START + QUIET + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
dmsetup message t 0 low_water 12
for turn in $(seq 8); do
	fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --output=fio.log --eta=never
	# Nothing is left in any zone: GC has all of them erased.
	blkdiscard /dev/mapper/t
	usleep $((turn * 17300))
	dmsetup suspend --nolockfs --noflush t
	quiet nvme0n1 100000
	dmsetup resume t
done
test "$(field victims t)" -gt 0
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=helpers, timeout=200, device=SMALL | {"flash.erase_ns": "40000000"})
    assert result.ok, result.output


def test_each_zone_is_free_as_soon_as_it_is_erased(lab_run, helpers):
    """Zones lie on all dies, so they are erased one after the other: none waits for those behind it."""
    result = lab_run(START + """
mtftl format --op 25% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 4)"
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=128k --ioengine=libaio --iodepth=8 \\
	--output=fio.log --eta=never
echo 1 > /sys/kernel/tracing/events/mtftl/mtftl_zone_state/enable
fio --name=age --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=libaio --iodepth=8 --numjobs=4 \\
	--norandommap --io_size=100M --output=fio.log --eta=never
sed -n 's/.* \\([0-9.]*\\): mtftl_zone_state: .*resetting -> empty.*/\\1/p' /sys/kernel/tracing/trace > erased
cat erased
dmsetup remove t
""", clock="virtual", profile="tlc", cpus=4, push=helpers, timeout=200,
                     device={"flash.size": "512M", "zoned.zone_size": "8M", "zoned.zone_capacity": "6M",
                             "flash.block_pages": "96"})
    assert result.ok, result.output
    erased = [float(line) for line in result.output.split()]
    assert len(erased) >= 50
    # An erase takes 3.5 ms, and dies do not begin with it at the same moment.
    apart = [later - earlier for earlier, later in pairwise(erased)]
    assert sum(time < 0.001 for time in apart) <= len(apart) / 20


def test_discards_cost_no_checkpoint_for_each_victim(lab_run, helpers):
    """GC logs those of its victims again, as long as that writes less than a checkpoint would."""
    result = lab_run(START + """
null nullb0 size=160
mtftl format --op 30% /dev/nullb0 > /dev/null
line=$(table /dev/nullb0 lanes 2)
dmsetup create t --table "$line"
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --output=fio.log --eta=never
dmsetup message t 0 reset_stats
fio --filename=/dev/mapper/t --direct=1 --bs=4k --output=fio.log --eta=never --randseed=7 \\
	--size=16M --name=write --rw=randwrite --io_size=300M --rate=60M --ioengine=psync \\
	--name=discard --rw=randtrim --io_size=16M --number_ios=2500 --thinktime=2ms
sync /dev/mapper/t
echo "$(field victims t) victims, $(field checkpoints t) checkpoints, trimmed $(field trimmed t)"
test "$(field victims t)" -ge 10
test "$(field trimmed t)" -ge 1000
# One in all, as the log grows.
test $(($(field checkpoints t) * 20)) -le "$(field victims t)"
dd if=/dev/mapper/t bs=64k iflag=direct status=none | md5sum > before
dmsetup remove t
dmsetup create t --table "$line"
dd if=/dev/mapper/t bs=64k iflag=direct status=none | md5sum | cmp - before
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK, push=helpers, timeout=300)
    assert result.ok, result.output


def test_a_cpu_that_is_taken_stops_no_flush(lab_run, helpers):
    """A real-time task takes CPU 1 for itself: lane 1's writer works elsewhere, and flushes end."""
    result = lab_run(START + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
for cpu in 1 2; do taskset $cpu dd if=/dev/zero of=/dev/mapper/t bs=4k count=300 oflag=direct status=none; done
sync /dev/mapper/t
# ten NAME: flushes that lane 1 has its part in, and the hundredths of a second that they took
ten() {
	local before=$(hundredths)
	for i in 1 2 3 4 5 6 7 8 9 10; do
		taskset 1 dd if=/dev/zero of=/dev/mapper/t bs=4k seek=$((i * 300)) count=200 oflag=direct conv=fsync status=none
	done
	took=$(($(hundredths) - before))
	echo "ten flushes, $1: $took hundredths"
}
ten undisturbed
allowed=$((2 * took + 10))
take_cpu
ten "a CPU is taken"
return_cpu
test $took -le $allowed
dmsetup remove t
""", clock="virtual", profile="tlc", cpus=2, push=helpers, timeout=200, device=SMALL)
    assert result.ok, result.output


def test_hibernation_takes_everything_along(lab_run, helpers, pytestconfig, tmp_path):
    """Under load, with GC at work: nothing is written after the image is taken, nor before what wakes up goes on."""
    if pytestconfig.getoption("--kernel") in sourcekernel.DEBUG:
        pytest.skip("the debug kernels cannot swap")
    with (tmp_path / "swap").open("wb") as swap:
        swap.truncate(2 << 30)
    result = lab_run(START + """
for drive in /dev/nvme0n1 /dev/nvme1n1; do
	until [ -e /sys/class/block/${drive#/dev/}/queue/zoned ]; do usleep 10000; done
	case $(cat /sys/class/block/${drive#/dev/}/queue/zoned) in
	none) other=$drive;;
	*) zoned=$drive controller=${drive%n1};;
	esac
done
mtftl format --op 30% $zoned > /dev/null
dmsetup create t --table "$(table $zoned lanes 2)"
# Where the image goes: another drive.
mkswap $other > /dev/null
swapon $other
echo 0 > /sys/power/image_size
cat /sys/class/block/${other#/dev/}/dev > /sys/power/resume
echo test_resume > /sys/power/disk
for turn in 1 2; do
	fio --name=load --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=16 \
		--offset=32M --size=32M --time_based --runtime=100 --output=load.log --eta=never &
	load=$!
	verify /dev/mapper/t --size=16M --io_size=48M --randseed=$turn --do_verify=0 --eta=never
	# GC has a lot to do, on slow dies: it would be at work all the while.
	dmsetup message t 0 low_water 12
	for die in 0 1 2 3; do flash 0x17 $die 2000; done
	before=$(field victims t)
	echo disk > /sys/power/state
	echo "woke up, $before victims before, $(field victims t) now, $(field free t) zones free"
	flash 0x1f 0
	verify /dev/mapper/t --size=16M --io_size=48M --randseed=$turn --verify_only=1 --eta=never
	kill -INT $load
	wait $load || true
	dmsetup status t | grep -o 'mtftl rw'
	test "$(field write_errors t)" = 0
done
dmesg | grep -c 'PM: hibernation: Image restored successfully\\|hibernation: hibernation exit'
swapoff $other
dmsetup remove t
mtftl check $zoned
""", profile="tlc", cpus=2, push=helpers, timeout=400, device=SMALL, qemu=[
        "-drive", f"file={tmp_path / 'swap'},if=none,id=swap,format=raw", "-device", "nvme,serial=swap,drive=swap"])
    assert result.ok, result.output


def test_a_completion_that_stands_still_outlives_the_unmount(lab_run, helpers, pytestconfig):
    """A thread that completes a unit loses its CPU after the unit has landed: the lane must not be freed yet.

    Drivers do that: nvme-tcp, and nvme with threaded interrupts.
    """
    result = lab_run(START + HELD + """
holds late landed
put 0 0 1
until_true 10 is_held landed
dmsetup remove t &
remove=$!
sleep 1
ended=$(kill -0 $remove 2> /dev/null && echo no || echo yes)
go landed
wait $remove
echo "removed before: $ended"
test $ended = no
open /dev/mapper/layer
test "$(judge /dev/mapper/t 0 1)" = 0
dmsetup remove t layer
mtftl check /dev/nullb0
""", **QUICK | {"append": "preempt=full"}, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_an_erase_that_takes_long_is_no_end(lab_run, helpers, pytestconfig):
    """A unit that failed finds no place while the drive erases a zone, for longer than "nothing moves" takes."""
    result = lab_run(START + HELD + FLAKY_LAYER + """
put 10000 0 720 ,fsync
put 10100 100 140 ,fsync
put 10300 300 120 ,fsync
holds erase nowhere
dmsetup message t 0 gc
until_true 10 is_held erase
become flakey /dev/nullb0 0 0 3600 1 error_writes
put 2000 2000 16 ,fsync &
writer=$!
failed() { test "$(field write_errors t)" -ge 1; }
until_true 10 failed
until_true 10 is_held nowhere
become linear /dev/nullb0 0
sleep 30
dmsetup status t
dmsetup status t | grep 'mtftl rw'
go erase
go nowhere
wait $writer
test "$(judge /dev/mapper/t 2000 16)" = 0
dmsetup status t | grep 'mtftl rw'
dmsetup remove t layer
mtftl check /dev/nullb0
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_zones_that_the_drive_finishes_by_itself(lab_run, helpers):
    """All that is open, again and again: no write is lost for it, no zone retires, and nothing is read-only."""
    result = lab_run(START + COPY + """
null nullb0 size=96
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 4)"
finished=0
for round in $(seq 40); do
	numbered $((round * 64)) 256 |
		dd of=/dev/mapper/t bs=16k seek=$((round * 16)) iflag=fullblock oflag=direct conv=notrunc status=none
	sync /dev/mapper/t
	while read -r start written condition; do
		[ $condition = 2 ] && [ $start -ge $((2 * 8192)) ] || continue
		blkzone finish -f -o $start -l 8192 /dev/nullb0
		finished=$((finished + 1))
	done < <(zones /dev/nullb0)
done
dmsetup status t
echo "$finished finished, $(field write_errors t) writes failed"
test $finished -ge 40
test "$(field write_errors t)" -ge 20
test "$(field bad t)" = 0
if dmesg | grep retired; then exit 1; fi
dmsetup status t | grep 'mtftl rw'
test "$(judge /dev/mapper/t 64 2752)" = 0
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_suspend_that_fails_beside_a_wake_up_stops_nothing(lab_run, helpers, pytestconfig):
    """The machine wakes up while a suspend begins, and a signal ends that suspend: writes must go on."""
    result = lab_run(START + HOLDS + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
dd if=/dev/zero of=/dev/mapper/t bs=64k count=10 oflag=direct status=none
holds wake presuspend
# As far as devices sleep, and back.
echo devices > /sys/power/pm_test
echo disk > /sys/power/state &
machine=$!
until_true 60 is_held wake
# It waits for the wake-up, and the suspend for it.
{ dd if=/dev/zero of=/dev/mapper/t bs=64k count=100 oflag=direct conv=fsync status=none; touch wrote; } &
usleep 100000
fails test -e wrote
dmsetup suspend --nolockfs t &
suspend=$!
until_true 10 is_held presuspend
go wake
wait $machine
kill $suspend
go presuspend
wait $suspend || true
# What was written by then, it did not have to wait for.
dmsetup info t | grep 'State: *ACTIVE' || dmsetup resume t
until_true 20 test -e wrote
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK, push=[*helpers, _hold(pytestconfig)], timeout=200)
    assert result.ok, result.output


def test_a_writer_that_waits_for_the_drive_keeps_its_cpu(lab_run, helpers, pytestconfig):
    """A writer sleeps in the drive's queue: it does not lack its CPU, so it is not moved to another one."""
    result = lab_run(START + HOLDS + """
null nullb0 size=32 zone_size=1
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
places() {
	for comm in $(grep -l '^mtftl/' /proc/[0-9]*/comm); do
		grep Cpus_allowed_list ${comm%comm}status
	done
}
places > before
cat before
holds submit
dd if=/dev/zero of=/dev/mapper/t bs=4k count=1 oflag=direct status=none
until_true 10 is_held submit
for look in $(seq 20); do
	usleep 20000
	places | cmp - before
done
go submit
sync /dev/mapper/t
dmsetup remove t
""", **QUICK | {"clock": "virtual", "cpus": 2}, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_a_zone_is_closed_once(lab_run, helpers, pytestconfig):
    """The drive keeps a zone's footer for long; a resume, which closes zones that a pause left, closes no other."""
    result = lab_run(START + HELD + """
holds close
put 0 0 480
until_true 10 is_held close
# It waits for the footer for five seconds.
dmsetup suspend --nolockfs --noflush t
dmsetup resume t
go close
until_true 10 saw 'closing -> full'
# Zones are closed one after the other.
put 1000 1000 480 ,fsync
closed() { test $(grep -c 'closing -> full' /sys/kernel/tracing/trace) -ge 2; }
until_true 10 closed
fails saw 'full -> full'
dmsetup remove t layer
mtftl check /dev/nullb0
test -z "$(dmesg | grep -i 'warning:')"
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_a_drive_that_ends_each_zone_is_given_up(lab_run, helpers, pytestconfig):
    """Each write fails, and the drive says that it has finished the zone: that must not go on for ever."""
    result = lab_run(START + HELD + FLAKY_LAYER + """
put 10000 0 64 ,fsync
holds full
become flakey /dev/nullb0 0 0 3600 1 error_writes
{ put 20000 0 16 ,fsync || touch failed; } 2> /dev/null &
writer=$!
read_only() { dmsetup status t | grep 'mtftl read-only'; }
until_true 20 read_only
wait $writer
test -e failed
test "$(field write_errors t)" -le 10
become linear /dev/nullb0 0
dmsetup remove t layer
mtftl check /dev/nullb0
""", **QUICK, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_a_discard_that_empties_a_zone_is_logged_before_its_reset(lab_run, helpers, pytestconfig):
    """GC erases the zone of the discarded block while the discard is not listed yet: a cut must not lose the block."""
    result = lab_run(START + HELD + """
put 0 0 480 ,fsync
put 20001 1 479 ,fsync
dmsetup message t 0 checkpoint
holds list
blkdiscard -l 4k /dev/mapper/t &
until_true 10 is_held list
dmsetup message t 0 gc
wait $!
cut
test "$(judge /dev/mapper/t 0 1)" = 0 || cmp -n 4096 /dev/mapper/t /dev/zero
ends
""", **QUICK | {"cpus": 4}, push=[*helpers, _hold(pytestconfig)])
    assert result.ok, result.output


def test_a_sleep_of_a_suspended_device(lab_run, helpers, pytestconfig):
    """The machine wakes up: a suspended device sends nothing, and one whose drive is not ready yet tries again."""
    result = lab_run(START + HOLDS + """
null nullb0 size=32 zone_size=1
dmsetup create layer --table "0 $((32 * 2048)) linear /dev/nullb0 0"
become() {
	dmsetup load layer --table "0 $((32 * 2048)) $*"
	dmsetup suspend --nolockfs --noflush layer
	dmsetup resume layer
}
mtftl format --op 30% /dev/mapper/layer > /dev/null
dmsetup create t --table "$(table /dev/mapper/layer lanes 1)"
dd if=/dev/zero of=/dev/mapper/t bs=64k count=10 oflag=direct conv=fsync status=none
commands() { awk '{ print $1 + $5 }' /sys/class/block/nullb0/stat; }
echo devices > /sys/power/pm_test
# Suspended by an administrator meanwhile.
dmsetup suspend --nolockfs --noflush t
before=$(commands)
echo disk > /sys/power/state
usleep 100000
test $(commands) = $before
dmsetup resume t
test $(commands) -gt $before
dmsetup status t | grep 'mtftl rw'
# Reads fail when it wakes up, and then no more.
holds wake
echo disk > /sys/power/state &
machine=$!
until_true 60 is_held wake
become flakey /dev/nullb0 0 0 3600 1 error_reads
go wake
wait $machine
{ dd if=/dev/zero of=/dev/mapper/t bs=64k count=100 oflag=direct conv=fsync status=none; touch wrote; } &
usleep 100000
fails test -e wrote
dmesg | grep 'the superblock log cannot be read after a sleep'
dmsetup status t | grep 'mtftl rw'
become linear /dev/nullb0 0
until_true 20 test -e wrote
dmsetup status t | grep 'mtftl rw'
dmsetup remove t layer
mtftl check /dev/nullb0
""", **QUICK, push=[*helpers, _hold(pytestconfig)], timeout=200)
    assert result.ok, result.output
