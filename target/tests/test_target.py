# SPDX-License-Identifier: GPL-2.0
"""The kernel module in a guest: data, geometries, what may happen under load, what is refused."""

import json
import re
from pathlib import Path

import pytest
from media import BLOCK, CKPT, CLEAN, Media
from mtlab.build import kernels

# The least that most of these tests need. In virtual time they begin from a saved state, and sleep at no cost;
# what is about work side by side runs on the wall clock, where CPUs are threads.
QUICK = {"clock": "virtual", "profile": "none", "cpus": 2}
START = "set -e\n. ./guest.sh\n"
FRESH = START + "null nullb0\nmtftl format --op 30% /dev/nullb0 > /dev/null\n"

GEOMETRIES = {
    "append": ("", ""),
    "plain writes": ("", "append off"),
    "capacity below size": ("zone_capacity=3", ""),
    "four open zones": ("zone_max_open=4 zone_max_active=4", "lanes 8"),
    "units of one": ("", "write_unit 1 lanes 2"),
    "blocks of 512": ("blocksize=512", "gc_policy greedy placement none"),
}


def test_writers_in_order_part_ways(lab_run, helpers):
    """Three that write in order, in turn: what each writes lies together, but for the beginning."""
    result = lab_run(START + """
null nullb0 size=1024
mtftl format /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 4)"
for i in $(seq 0 63); do for writer in 0 1 2; do
	dd if=/dev/zero of=/dev/mapper/t bs=32k seek=$((writer * 1000 + i)) count=1 oflag=direct conv=fsync 2> /dev/null
done; done
dmsetup remove t
mtftl dump --units /dev/nullb0 > dump.json
""", **QUICK, push=helpers, pull=["dump.json"])
    assert result.status == 0, result.output
    units = [(zone["zone"], unit) for zone in json.loads(result.files["dump.json"])["zones"]
             for unit in zone.get("list", []) if unit["type"] == "data"]
    torn = 0
    for writer in range(3):
        ours = sorted((unit["blocks"][0], zone, unit["block"]) for zone, unit in units
                      if unit["blocks"] and unit["blocks"][0] // 8000 == writer)
        assert len(ours) == 64
        torn += sum((zone, at) != (before, end + 9) for (_, before, end), (_, zone, at) in zip(ours, ours[1:],
                                                                                                 strict=False))
    # each zone that is full is such a place, and so are the first rounds
    assert torn <= 12, torn


def test_a_read_in_parts_does_not_wait_for_the_last_one(lab_run, helpers):
    """A read of 512 parts, for which the caller plugs: each is at the drive before the next ones are made."""
    result = lab_run(FRESH + """
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
# Each block lies apart from its neighbours.
for first in 0 1; do
	fio --name=job --filename=/dev/mapper/t --direct=1 --rw=write:4k --bs=4k --offset=$((first * 4))k \
		--size=2M --io_size=1M --ioengine=psync --output=fio.log
done
sync /dev/mapper/t
trace=/sys/kernel/tracing
for event in block_getrq block_rq_issue; do echo 1 > $trace/events/block/$event/enable; done
dd if=/dev/mapper/t of=/dev/null bs=2M count=1 iflag=direct status=none
echo 0 > $trace/tracing_on
sed -nE 's/.*(getrq|issue): .* \\+ ([0-9]+) .*/\\1 \\2/p' $trace/trace > events
dmsetup remove t
""", **QUICK, push=helpers, pull=["events"])
    assert result.status == 0, result.output
    waiting, most, made = 0, 0, 0
    for event in result.files["events"].decode().splitlines():
        kind, sectors = event.split()
        waiting += int(sectors) if kind == "getrq" else -int(sectors)
        made += int(sectors) if kind == "getrq" else 0
        most = max(most, waiting)
    assert made >= 2048
    assert most <= 24 * 8, most


def test_lanes_are_on_the_node_of_their_cpu(lab_run, helpers):
    """128 MiB of buffers for two lanes on two nodes: half of it on each, wherever the table is loaded."""
    result = lab_run(START + """
free() { awk '/MemFree/ {printf " %d", $4}' /sys/devices/system/node/node*/meminfo; }
null nullb0 size=2048
mtftl format --op 50% /dev/nullb0 > /dev/null
for cpu in 1 2; do
	before=$(free)
	taskset $cpu dmsetup create t --table "$(table /dev/nullb0 lanes 2 buffer_entries 32768)"
	echo taken $before $(free) $(field entries t)
	dmsetup remove t
done
""", **QUICK, memory_model="server2", push=helpers)
    assert result.status == 0, result.output
    rows = [[int(word) for word in line.split()[1:]] for line in result.output.splitlines() if line.startswith("taken")]
    assert len(rows) == 2
    for *free, entries in rows:
        assert entries == 16384
        for before, after in zip(free[:2], free[2:], strict=True):
            assert 60 << 10 < before - after < 90 << 10, rows


def test_users_stay_on_their_node(lab_run, helpers):
    """Who writes alone goes to an idle neighbour's lane, but not to one on the other node, though that one be next."""
    result = lab_run(START + """
null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 4)"
for cpu in 1 3; do
	taskset $((1 << cpu)) dd if=/dev/zero of=/dev/mapper/t bs=4k seek=$((cpu * 1000)) count=100 oflag=direct
done
dmsetup remove t
mtftl dump --units /dev/nullb0 > dump.json
""", **{**QUICK, "cpus": 4}, memory_model="server2", push=helpers, pull=["dump.json"])
    assert result.status == 0, result.output
    units = [unit for zone in json.loads(result.files["dump.json"])["zones"] for unit in zone.get("list", [])
             if unit["type"] == "data" and unit["blocks"]]
    lanes = {cpu: {unit["lane"] for unit in units if unit["blocks"][0] // 1000 == cpu} for cpu in (1, 3)}
    assert lanes == {1: {0}, 3: {2}}


def test_docs_name_everything(lab_run, helpers):
    """The status, options, messages and tracepoints are those in docs/use/."""
    page = "".join((Path(__file__).resolve().parents[2] / "docs/use" / name).read_text()
                   for name in ("options.md", "status.md"))
    result = lab_run(START + """
null nullb0
mtftl format /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
echo status $(dmsetup status t | cut -d' ' -f5-)
echo table $(dmsetup table t | cut -d' ' -f6-)
dmsetup message t 0 no-such 2> /dev/null ||
	dmesg | sed -n 's/.*expected \\(.*\\) or \\(.*\\)/message \\1, \\2/p' | tail -1
echo trace $(ls -d /sys/kernel/tracing/events/mtftl/*/)
dmsetup remove t
""", **QUICK, push=helpers)
    said = dict(line.split(" ", 1) for line in result.output.splitlines())
    status, table = said["status"].split(), said["table"].split()
    shown = {
        "name": set(status[::2]),
        "option": set(table[::2]),
        "message": {words.split()[0] for words in said["message"].split(", ")},
        "Tracepoints": {Path(p).name for p in said["trace"].split()},
    }
    for part, names in shown.items():
        text = page.partition(f"| {part} |")[2] or page.partition(part)[2].partition(": ")[2].partition("`.")[0] + "`"
        rows = [row.split("|")[1] for row in text.strip().partition("\n\n")[0].splitlines() if row.startswith("|")]
        assert names == set(re.findall(r"`(\w+)", " ".join(rows) or text)), part


@pytest.mark.parametrize("kernel", kernels.SERIES)
def test_every_geometry_keeps_its_data(lab_run, helpers, kernel):
    """Written more than once over, GC at work, read back; stopped, mounted again, read back."""
    script = START
    for i, (device, options) in enumerate(GEOMETRIES.values()):
        script += f"""
echo geometry {i}
null nullb{i} size=64 {device}
mtftl format --op 30% /dev/nullb{i} > /dev/null
dmsetup create t --table "$(table /dev/nullb{i} {options})"
verify /dev/mapper/t --size=100% --io_size=45M --randseed={i} --do_verify=1
dmsetup message t 0 checkpoint
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb{i} {options})"
verify /dev/mapper/t --size=100% --io_size=45M --randseed={i} --verify_only=1
test "$(field read_errors t)" = 0
dmsetup remove t
mtftl check /dev/nullb{i}
echo 0 > /sys/kernel/config/nullb/nullb{i}/power
"""
    result = lab_run(script, kernel=kernel, profile="none", cpus=2, push=helpers, timeout=400)
    assert result.ok, result.output
    assert result.output.count("geometry") == len(GEOMETRIES)


@pytest.mark.parametrize("kernel", kernels.SERIES)
def test_fio_reads_what_it_wrote(lab_run, helpers, kernel):
    """Sizes, depths, four jobs, synchronous and io_uring, buffered and direct: each writes its part three times over.

    fio verifies behind the writes, and again what went through the page cache. Beside them two jobs write and
    discard the same blocks, all the time: fio cannot verify those, the torture run does. Half of io_size are reads.
    """
    result = lab_run(START + """
null nullb0 size=96
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
part=$(($(blockdev --getsize64 /dev/mapper/t) / 5 / 65536 * 65536))
for engine in psync io_uring; do
	for direct in 0 1; do
		dmsetup message t 0 reset_stats
		fio --filename=/dev/mapper/t --direct=1 --bsrange=4k-64k --size=$part --offset=$((4 * part)) --time_based \\
			--runtime=300 --rate_iops=100 --eta=never --output=discards.log \\
			--name=writes --rw=randwrite --name=discards --rw=randtrim &
		jobs="--ioengine=$engine --direct=$direct --iodepth=7 --numjobs=4 --size=$part --offset_increment=$part"
		verify /dev/mapper/t $jobs --bsrange=4k-256k --io_size=$((6 * part)) --do_verify=1 --verify_backlog=50
		verify /dev/mapper/t $jobs --bsrange=4k-64k --do_verify=0 --end_fsync=1
		kill -INT $!
		wait $! || true
		echo 3 > /proc/sys/vm/drop_caches
		verify /dev/mapper/t $jobs --bsrange=4k-64k --verify_only=1
		test "$(field written t)" -gt $((4 * 4 * part / 4096))
		test "$(field trimmed t)" -gt 0
	done
done
test "$(field victims t)" -gt 0
test "$(field read_errors t)" = 0
dmsetup remove t
mtftl check /dev/nullb0
""", kernel=kernel, profile="none", cpus=2, push=helpers, timeout=400)
    assert result.ok, result.output


def test_nothing_is_lost_under_suspend_reload_hotplug_and_remove(lab_run, helpers):
    """A verifying job runs while its device is suspended, reloaded with other options, and CPUs go and come."""
    result = lab_run(FRESH + """
dmsetup create t --table "$(table /dev/nullb0 lanes 4)"
verify /dev/mapper/t --size=64M --io_size=96M --rate_iops=400 --do_verify=1 &
job=$!
turns=0
while kill -0 $job 2> /dev/null; do
	dmsetup suspend t; dmsetup resume t
	dmsetup suspend --noflush --nolockfs t; dmsetup resume t
	dmsetup load t --table "$(table /dev/nullb0 lanes $((turns % 3 + 1)) write_unit $((turns % 7 + 1)))"
	dmsetup resume t
	dmsetup load t --table "$(table /dev/nullb0 lanes 4)"
	dmsetup suspend --noflush --nolockfs t
	dmsetup resume t
	echo 0 > /sys/devices/system/cpu/cpu1/online
	dmsetup message t 0 gc
	echo 1 > /sys/devices/system/cpu/cpu1/online
	turns=$((turns + 1))
done
wait $job
test $turns -gt 2
test "$(field write_errors t)" = 0
dmsetup remove t
mtftl check /dev/nullb0
""", profile="none", cpus=4, push=helpers, timeout=300)
    assert result.ok, result.output


def test_each_cpu_has_a_lane_whatever_its_number(lab_run, helpers):
    """Of eight CPUs every second one is off: each of the four writes to the lane that lies on it."""
    result = lab_run(START + """
for cpu in 1 3 5 7; do echo 0 > /sys/devices/system/cpu/cpu$cpu/online; done
null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
dmsetup status t | grep 'lanes 4 '
trace=/sys/kernel/tracing
echo 20000 > $trace/buffer_size_kb
fio --name=w --filename=/dev/mapper/t --rw=randwrite --bs=4k --direct=1 --ioengine=io_uring --iodepth=8 --numjobs=4 \\
	--cpus_allowed=0,2,4,6 --cpus_allowed_policy=split --ramp_time=50ms --time_based --runtime=300ms --output=fio.log &
job=$!
usleep 200000
echo 1 > $trace/events/mtftl/mtftl_insert/enable
wait $job
for cpu in 0 2 4 6; do
	sed -n "s/.*\\[00$cpu\\].* mtftl_insert: .* lane \\([0-9]*\\) .*/\\1/p" $trace/trace > lanes
	echo "CPU $cpu: $(grep -c $((cpu / 2)) lanes) of $(wc -l < lanes) writes"
done
dmsetup remove t
""", profile="none", cpus=8, clock="virtual", push=helpers, timeout=120)
    assert result.ok, result.output
    for own, of in re.findall(r"CPU \d: (\d+) of (\d+) writes", result.output):
        assert int(own) > 0.6 * int(of) > 0, result.output


def test_a_block_that_a_cut_left_in_part_is_made_whole(lab_run, helpers):
    """Blocks of 512 bytes: a copy of the device has write pointers inside a block of ours, as after a power cut."""
    result = lab_run(START + """
null nullb0 blocksize=512 size=64
null nullb1 blocksize=512 size=64
mtftl format --op 40% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
verify /dev/mapper/t --size=8M --do_verify=0
sync /dev/mapper/t
torn=0
while read -r start wp cond; do
	dd if=/dev/nullb0 of=/dev/nullb1 bs=4k skip=$((start / 8)) seek=$((start / 8)) count=$((wp / 8)) \
		iflag=direct oflag=direct status=none
	[ $cond = 2 ] && [ $start -ge 16384 ] || continue
	fio --name=torn --filename=/dev/nullb1 --direct=1 --rw=write --bs=512 --size=1536 \\
		--offset=$(((start + wp) * 512)) --output=fio.log
	torn=$((torn + 1))
done < <(zones /dev/nullb0)
test $torn -gt 0
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb1 lanes 2)"
verify /dev/mapper/t --size=8M --verify_only=1
verify /dev/mapper/t --size=8M --randseed=2 --do_verify=1
test "$(field write_errors t)" = 0
dmsetup remove t
mtftl check /dev/nullb1
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_discards_stay_after_a_flush_and_a_stop(lab_run, helpers):
    result = lab_run(FRESH + """
dmsetup create t --table "$(table /dev/nullb0)"
tr '\\0' 'x' < /dev/zero | head -c 8m > ones
dd if=ones of=/dev/mapper/t bs=1M oflag=direct status=none
blkdiscard -o 1M -l 2M /dev/mapper/t
blkdiscard -z -o 5M -l 4k /dev/mapper/t
sync /dev/mapper/t
expected() { head -c 1m ones; head -c 2m /dev/zero; head -c 2m ones; head -c 4k /dev/zero; head -c 3141632 ones; }
expected | cmp - <(dd if=/dev/mapper/t bs=1M count=8 iflag=direct status=none)
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb0)"
expected | cmp - <(dd if=/dev/mapper/t bs=1M count=8 iflag=direct status=none)
dmsetup remove t
""", **QUICK, push=helpers)
    assert result.ok, result.output


WAIT = """
# wait_for TEXT: until the status line has it, for a minute at most: the host may be busy
wait_for() {
	for i in $(seq 600); do
		[[ ! "$(dmsetup status t)" =~ $1 ]] || return 0
		usleep 100000
	done
	dmsetup status t
	return 1
}
"""


# /dev/mapper/flaky on nullb0
FLAKY = """
raw=$(cat /sys/class/block/nullb0/size)
# become DOWN [FEATURE]: from now on the device fails, in all or as said
become() {
	local down=$1
	shift
	dmsetup load flaky --table "0 $raw flakey /dev/nullb0 0 $((down ? 0 : 1)) $down $# $*"
	dmsetup suspend --nolockfs --noflush flaky
	dmsetup resume flaky
}
dmsetup create flaky --table "0 $raw flakey /dev/nullb0 0 1 0"
"""


def test_zones_that_could_not_be_reset_are_not_forgotten(lab_run, helpers):
    """A flush fails before a reset: they count as coming, so nobody else would ask for zones."""
    result = lab_run(START + WAIT + """
null nullb0 cache_size=1
mtftl format --op 30% /dev/nullb0 > /dev/null
""" + FLAKY + """
dmsetup create t --table "$(table /dev/mapper/flaky)"
# Zones without valid data, all of it durable.
for turn in 1 2; do dd if=/dev/zero of=/dev/mapper/t bs=1M count=32 oflag=direct conv=fsync status=none; done
become 3600 error_writes
dmsetup message t 0 gc
wait_for 'resetting [1-9]'
become 0
wait_for 'resetting 0'
test "$(field bad t)" = 0

echo it says so when the device does not answer at all
become 3600
dmsetup message t 0 gc
wait_for 'mtftl read-only'
dmesg | grep -q 'read-only: the device does not answer'
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_mount_that_failed_may_be_tried_again(lab_run, helpers):
    """The checkpoint after a crash cannot be written; then the device recovers, and the same table is resumed."""
    result = lab_run(FRESH + FLAKY + """
line=$(table /dev/mapper/flaky lanes 2)
dmsetup create t --table "$line"
verify /dev/mapper/t --size=64M --io_size=96M --do_verify=1 --end_fsync=1
become 3600 error_writes
dmsetup remove t
dmsetup create t --notable
dmsetup load t --table "$line"
for turn in 1 2; do
	fails dmsetup resume t
done
become 0
dmsetup resume t
verify /dev/mapper/t --size=64M --io_size=96M --verify_only=1
verify /dev/mapper/t --size=64M --io_size=96M --randseed=2 --do_verify=1
test "$(field write_errors t)" = 0
dmsetup remove t flaky
mtftl check /dev/nullb0
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_device_that_takes_no_writes_keeps_its_superblock(lab_run, helpers):
    """Two lanes and the flusher meet a superblock log that cannot be written: none of them resets the last record."""
    result = lab_run(FRESH + FLAKY + """
line=$(table /dev/mapper/flaky lanes 2)
for turn in 1 2 3; do
	dmsetup create t --table "$line"
	become 3600 error_writes
	for job in 1 2 3 4; do
		dd if=/dev/zero of=/dev/mapper/t bs=4k count=1 seek=$job oflag=direct conv=fsync status=none 2> /dev/null &
	done
	wait
	dmsetup remove t
	become 0
	test "$(table /dev/nullb0 lanes 2)" = "${line/mapper\\/flaky/nullb0}"
done
dmsetup create t --table "$line"
verify /dev/mapper/t --size=16M --do_verify=1
dmsetup remove t
""", **QUICK, push=helpers)
    assert result.ok, result.output


@pytest.mark.parametrize("kernel", [kernels.DEFAULT, kernels.CURRENT])
def test_another_program_that_writes_to_the_drive_is_named(lab_run, helpers, kernel):
    """A plain dd onto the drive: where it fails the log stays in its zone, else the kernel says so."""
    result = lab_run(FRESH + """
mtftl open /dev/nullb0 t
log() { zones /dev/nullb0 | awk 'NR == 1 { print $2 / 8 }'; }
dd if=/dev/zero of=/dev/mapper/t bs=64k count=4 oflag=direct conv=fsync status=none
before=$(log)
fails dd if=/dev/zero of=/dev/nullb0 bs=4k count=4 oflag=direct status=none
dmsetup message t 0 checkpoint
test "$(log)" = $((before + 1))
mtftl close t
mtftl open /dev/nullb0 t
dd if=/dev/zero of=/dev/mapper/t bs=64k count=4 oflag=direct conv=fsync status=none
dd if=/dev/zero of=/dev/nullb0 bs=4k count=3 seek=$(log) oflag=direct status=none
dmesg -c > /dev/null
dmsetup message t 0 checkpoint
dmesg | grep 'superblock log: zone 0 is written up to block .* or by another program'
dmsetup status t | grep 'mtftl rw'
verify /dev/mapper/t --size=16M --do_verify=1
mtftl close t
mtftl check /dev/nullb0
""", kernel=kernel, **QUICK, push=helpers)
    assert result.ok, result.output


def test_close_says_what_it_could_not_do(lab_run, helpers):
    """What is lost for good only goes with --force: until then it can be read."""
    result = lab_run(FRESH + FLAKY + """
# close_says PATTERN [OPTION]: status 8, one line
close_says() {
	local status=0
	mtftl close $2 t 2> said || status=$?
	cat said
	test $status = 8
	test $(wc -l < said) = 1
	grep -q "$1" said
}
# What is in block 0 is not on the drive.
refused() {
	close_says 't: not closed: what was written since the last flush cannot be made durable'
	dmsetup info t | grep -q 'State: *ACTIVE'
	test "$(dd if=/dev/mapper/t bs=4k count=1 iflag=direct status=none | tr -d '\\0')" = "$1"
	close_says 't: closed, but what was written since the last flush is lost' --force
	fails dmsetup status t 2> /dev/null
}
put() { printf $1 | dd of=/dev/mapper/t bs=4k count=1 conv=sync oflag=direct iflag=fullblock status=none; }
echo what is buffered cannot be written
mtftl open /dev/mapper/flaky t
dd if=/dev/zero of=/dev/mapper/t bs=4k count=8 oflag=direct conv=fsync status=none
become 3600 error_writes
put first
refused first
become 0
mtftl open /dev/mapper/flaky t
mtftl close t 2>&1 | fails grep .

echo it was read-only before, with what was buffered
mtftl open /dev/mapper/flaky t
become 3600 error_writes
put second
fails sync /dev/mapper/t 2> /dev/null
dmsetup status t | grep -q 'mtftl read-only'
refused second
become 0
dmsetup remove flaky

echo all is on the drive, but the log cannot say so
mtftl open /dev/nullb0 t
dd if=/dev/zero of=/dev/mapper/t bs=4k count=8 oflag=direct conv=fsync status=none
for zone in 0 1; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
close_says 't: closed, with all data on /dev/nullb0, but the clean stop could not be written'
fails dmsetup status t 2> /dev/null
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_damaged_checkpoint_is_rebuilt(lab_run, helpers):
    """Copies of a drive, each with one block of the checkpoint damaged: refused, looked at, rebuilt, as they were."""
    result = lab_run(START + """
null nullb0
null nullb1
mtftl format --op 30% /dev/nullb0 > /dev/null
mtftl open /dev/nullb0 t
verify /dev/mapper/t --size=40M --io_size=24M --do_verify=0
blkdiscard -o 1M -l 2M /dev/mapper/t
verify /dev/mapper/t --offset=120M --size=8M --randseed=2 --do_verify=0
sync /dev/mapper/t
# What was written and discarded, and the second part.
content() { ./blocks sum /dev/mapper/t 0 $((40 * 256)) $((120 * 256)) $((8 * 256)); }
content > before
mtftl close t
record() { # BLOCK TYPE PLACE: a field of the superblock record there
	dd if=/dev/nullb0 bs=4k count=1 skip=$1 iflag=direct status=none | od -An -t$2 -j$3 -N${2#u} | tr -d ' '
}
last=$(($(zones /dev/nullb0 | awk 'NR == 1 { print $2 / 8 }') - 1))
place=$(record $last u4 104)
blocks=$(record $last u8 88)
i=0
while read -r start wp cond; do
	dd if=/dev/nullb0 of=zone$i bs=4k skip=$((start / 8)) count=$((wp / 8)) iflag=direct status=none
	i=$((i + 1))
done < <(zones /dev/nullb0)
echo "zone $place, $blocks blocks, $(stat -c %s zone$place) bytes"
test "$blocks" -gt 33
# The headers of both units; zone records, the map's first block and its last one.
for at in 0 1 2 32 $((blocks + (blocks - 1) / 31)); do
	echo damage at block $at
	blkzone reset /dev/nullb1
	cp zone$place whole
	printf '\252' | dd of=zone$place bs=1 seek=$((at * 4096 + 70)) conv=notrunc status=none
	i=0
	while read -r start rest; do
		[ ! -s zone$i ] || dd if=zone$i of=/dev/nullb1 bs=64k seek=$((start / 128)) oflag=direct status=none
		i=$((i + 1))
	done < <(zones /dev/nullb0)
	cp whole zone$place
	fails mtftl open /dev/nullb1 t 2> said
	test $(wc -l < said) = 1
	grep 'checkpoint: zone .*; mtftl check --rebuild' said
	if [ "$at" = 0 ]; then
		zones /dev/nullb1 > untouched
		status=0
		mtftl check --rebuild /dev/nullb1 || status=$?
		test $status = 4
		zones /dev/nullb1 | cmp - untouched
	fi
	mtftl check --rebuild --force /dev/nullb1
	mtftl check /dev/nullb1
	mtftl open /dev/nullb1 t
	content | cmp - before
	dd if=/dev/zero of=/dev/mapper/t bs=64k count=8 oflag=direct conv=fsync status=none
	mtftl close t
done
mtftl check /dev/nullb1
""", **QUICK, push=helpers, timeout=400)
    assert result.ok, result.output


def test_without_a_superblock_zone_data_can_be_read(lab_run, helpers):
    """Both zones of the log turn read-only, and the device was not stopped: it mounts, read-only, with all its data."""
    result = lab_run(FRESH + """
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --do_verify=1 --end_fsync=1
for zone in 0 1; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb0)"
dmsetup status t | grep 'mtftl read-only'
verify /dev/mapper/t --size=32M --verify_only=1
fails dd if=/dev/zero of=/dev/mapper/t bs=4k count=1 oflag=direct status=none
dmsetup suspend t
dmsetup resume t
verify /dev/mapper/t --size=32M --verify_only=1
dmsetup remove t
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_without_zones_for_a_checkpoint_data_can_be_read(lab_run, helpers):
    """The checkpoints' zones and all empty ones turn read-only, and there was no stop: it mounts, read-only."""
    result = lab_run(FRESH + """
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --do_verify=1 --end_fsync=1
zones /dev/nullb0 | while read -r start written condition; do
	[ "$start" -lt 16384 ] || [ "$start" -ge 32768 -a "$condition" != 1 ] ||
		echo "$start" > /sys/kernel/config/nullb/nullb0/zone_readonly
done
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb0)"
dmesg | grep 'read-only: no zones are left for a checkpoint'
verify /dev/mapper/t --size=32M --verify_only=1
fails dd if=/dev/zero of=/dev/mapper/t bs=4k count=1 oflag=direct status=none
dmsetup remove t
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_worn_out_device_turns_read_only(lab_run, helpers):
    """Zone after zone fails until none of the others is worth collecting: writes end with errors, not never."""
    result = lab_run(START + WAIT + """
null nullb0 size=128
mtftl format --op 5% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
size=$(blockdev --getsize64 /dev/mapper/t)
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --end_fsync=1 --output=fill.log
for zone in 9 10 11 12 13 14 15; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
fails fio --name=job --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --io_size=$((2 * size)) --output=fio.log
wait_for read-only
dmesg | grep 'read-only: no zone is left'
dd if=/dev/mapper/t of=/dev/null bs=1M iflag=direct status=none
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK, push=helpers, timeout=120)
    assert result.ok, result.output


def test_writes_that_failed_and_find_no_place_end(lab_run, helpers):
    """Under GC the last zones fail, all at once: what was in flight has no place to go, and GC waits for it."""
    result = lab_run(START + WAIT + """
null nullb0 size=128 irqmode=2 completion_nsec=5000000
""" + FLAKY + """
device=/dev/mapper/flaky
work="--filename=/dev/mapper/t --direct=1 --ioengine=io_uring --iodepth=8 --output=fio.log"
for round in 1 2 3; do
	become 0
	mtftl format --force --op 15% $device > /dev/null
	dmsetup create t --table "$(table $device lanes 1 buffer_entries 256)"
	fio --name=fill $work --rw=write --bs=256k --end_fsync=1
	fio --name=wear $work --rw=randwrite --bs=4k --time_based --runtime=1h &
	# Where nothing can be gained from those that are left it ends by itself, with more than one that is free.
	while [ "$(field free t)" -gt 1 ] && dmsetup status t | grep -q ' rw '; do
		zone=$(zones /dev/nullb0 | awk '$3 == 2 && $1 >= 16384 { print $1; exit }')
		[ -z "$zone" ] || echo "$zone" > /sys/kernel/config/nullb/nullb0/zone_readonly
		usleep 200000
	done
	become 1 error_writes
	wait_for read-only
	fails wait $!
	dd if=/dev/mapper/t of=/dev/null bs=1M iflag=direct status=none
	dmsetup remove t
	mtftl check $device
	# null_blk takes it back when it is told so a second time.
	for zone in $(zones /dev/nullb0 | awk '$3 == 13 { print $1 }'); do
		echo "$zone" > /sys/kernel/config/nullb/nullb0/zone_readonly
	done
done
""", **QUICK, push=helpers, timeout=300)
    assert result.ok, result.output


# 24 zones of 8 MiB, of which four may be open.
SMALL = {
    "flash.size": "192M", "zoned.zone_size": "8M", "zoned.zone_capacity": "8M", "zoned.max_open": "4",
    "zoned.max_active": "4", "flash.channels": "2", "flash.dies": "2", "flash.planes": "1", "flash.page": "16K",
    "flash.program_pages": "1", "flash.block_pages": "128"}


# 128 zones of 2 MiB on all dies, which erase one of them for longer than they program it.
SLOW_TO_ERASE = SMALL | {
    "flash.size": "256M", "zoned.zone_size": "2M", "zoned.zone_capacity": "2M", "zoned.max_open": "14",
    "zoned.max_active": "14", "flash.block_pages": "32", "flash.program_ns": "100000", "flash.erase_ns": "5000000"}


JOB = """
job() {
	fio --name=job --filename=/dev/mapper/t --direct=1 --ioengine=io_uring --iodepth=8 --norandommap \\
		--output=fio.log "$@"
}
"""


def test_users_slow_down_before_the_gate(lab_run, helpers):
    """Zones come back one by one: in steady state nobody takes them faster, and nobody stands before the last ones."""
    result = lab_run(START + JOB + """
mtftl format --op 25% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 buffer_entries 256)"
random() {
	job --rw=randwrite --bs=4k --numjobs=4 --group_reporting --percentile_list=99.9 --output-format=json "$@"
}
job --rw=write --bs=128k
random --io_size=$(($(blockdev --getsize64 /dev/mapper/t) / 4))
random --time_based --runtime=1000ms &
usleep 300000
short=0
for look in $(seq 60); do
	usleep 10000
	dmsetup status t | grep -q 'gc active' && active=yes
	dmsetup status t | grep -q 'gc short' && short=$((short + 1))
done
wait
echo "at the gate: $short of 60 looks"
test "$active" = yes
test "$short" -le 1
tail=$(sed -n 's/.*"99.900000" : \\([1-9][0-9]*\\).*/\\1/p' fio.log | head -n 1)
echo "p99.9: $tail ns"
test "$tail" -lt 12500000
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=4, push=helpers, timeout=300, device=SLOW_TO_ERASE)
    assert result.ok, result.output


def test_users_who_are_slowed_get_even_shares(lab_run, helpers):
    """One on each CPU, more of them than what a zone that comes back is parted in: nobody goes short for another."""
    result = lab_run(START + JOB + """
mtftl format --op 25% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 buffer_entries 512)"
job --rw=write --bs=128k
job --rw=randwrite --bs=4k --io_size=$(($(blockdev --getsize64 /dev/mapper/t) / 2))
job --rw=randwrite --bs=4k --numjobs=8 --cpus_allowed=0-7 --cpus_allowed_policy=split \\
	--ramp_time=200ms --time_based --runtime=1000ms --output-format=json
sed -n 's/.*"total_ios" : \\([1-9][0-9]*\\).*/user: \\1 writes/p' fio.log
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=8, push=helpers, timeout=300, device=SLOW_TO_ERASE)
    assert result.ok, result.output
    writes = [int(x) for x in re.findall(r"user: (\d+) writes", result.output)]
    assert len(writes) == 8
    assert min(writes) > 0.8 * sum(writes) / 8, writes


def test_users_who_are_slowed_still_overwrite_what_is_buffered(lab_run, helpers):
    """They enter slowly, and zones that are reset want this and that written: buffers are kept filled all the same."""
    result = lab_run(START + JOB + """
mtftl format --op 25% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 buffer_entries 512 placement none)"
job --rw=write --bs=128k
job --rw=randwrite --bs=4k --io_size=$(($(blockdev --getsize64 /dev/mapper/t) / 2))
dmsetup message t 0 reset_stats
job --rw=randwrite --bs=4k --numjobs=4 --random_distribution=zipf:1.2 --time_based --runtime=1000ms
written=$(field written t) absorbed=$(field absorbed t)
echo "absorbed: $absorbed of $written"
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=4, push=helpers, timeout=300, device=SLOW_TO_ERASE)
    assert result.ok, result.output
    absorbed, written = re.search(r"absorbed: (\d+) of (\d+)", result.output).groups()
    assert int(absorbed) > 0.5 * int(written)


def test_a_zone_that_takes_long_to_finish_is_not_the_end(lab_run, helpers):
    """A write failed, and the device pads its zone for longer than nothing may move: the only place that will come."""
    result = lab_run(START + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 1)"
dd if=/dev/zero of=/dev/mapper/t bs=1M count=1 oflag=direct conv=fsync status=none
start=$(zones /dev/nvme0n1 | awk '$3 == 2 { start = $1 } END { print start }')
flash 0x17 0 10000
flash 0x11 $((start / 8)) 2048 1
dd if=/dev/zero of=/dev/mapper/t bs=64k count=1 seek=20 oflag=direct status=none
blkdiscard --offset 0 --length 65536 /dev/mapper/t
before=$(hundredths)
sync /dev/mapper/t
took=$(($(hundredths) - before))
echo "the flush took $took hundredths of a second"
test $took -gt 600
test "$(field write_errors t)" = 1
dmsetup status t | grep 'mtftl rw'
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=helpers, timeout=300, device=SMALL)
    assert result.ok, result.output


@pytest.mark.parametrize("append", ["on", "off"])
def test_commands_sent_twice_cost_no_zone(lab_run, helpers, append):
    """Completions are lost, the controller is reset, and the driver sends again what it got no answer to."""
    result = lab_run(START + f"""
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 4 append {append})"
verify /dev/mapper/t --size=64M --io_size=256M --do_verify=1 --end_fsync=1 &
for turn in 1 2 3 4 5 6; do
	until [ "$(field written t)" -ge $((turn * 4096)) ]; do usleep 50000; done
	flash 0x18 1
	usleep 100000
	# What comes after the reset is answered: else it would be half a minute to the next.
	flash 0x18 0
	nvme reset /dev/nvme0
done
wait $!
""" + """
dmsetup status t | grep 'mtftl rw'
echo "$(field write_errors t) writes failed"
test "$(field write_errors t)" -gt 0
test "$(field bad t)" = 0
verify /dev/mapper/t --size=64M --io_size=256M --verify_only=1
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=4, push=helpers, timeout=300, device=SMALL)
    assert result.ok, result.output


def test_a_zone_whose_writes_go_on_failing_retires(lab_run, helpers):
    """One failed write costs no zone. One that fails again after its reset does, and what it held is moved."""
    result = lab_run(START + WAIT + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 1)"
dd if=/dev/zero of=/dev/mapper/t bs=1M count=1 oflag=direct conv=fsync status=none
overwrite() { verify /dev/mapper/t --size=100% --io_size=256M --do_verify=1 --end_fsync=1; }
zone=$(zones /dev/nvme0n1 | awk '$3 == 2 { start = $1 } END { print start / 8 }')
flash 0x11 $zone 2048 1
overwrite
overwrite
test "$(field write_errors t)" = 1
test "$(field bad t)" = 0
flash 0x11 $zone 2048 0
for turn in 1 2 3 4 5 6 7 8; do [ "$(field bad t)" = 1 ] || overwrite; done
test "$(field bad t)" = 1
test "$(field write_errors t)" -ge 3
overwrite
test "$(field bad t)" = 1
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=helpers, timeout=400, device=SMALL)
    assert result.ok, result.output


def test_zones_that_go_offline_take_only_what_they_held(lab_run, helpers):
    """Three zones go offline under GC: their blocks read as errors until they are written again, others are right."""
    result = lab_run(START + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
blocks=$(($(blockdev --getsz /dev/mapper/t) / 8))
work="--size=100% --randseed=2 --io_size=$((3 * 4096 * blocks))"
read_all() {
	verify /dev/mapper/t $work --verify_only=1 --continue_on_error=read --verify_fatal=0
	grep 'errors *: total=' fio.log
}
verify /dev/mapper/t --size=100% --rw=write --do_verify=0
start=$(field written t)
verify /dev/mapper/t $work --do_verify=0 --eta=never &
# Late in the third overwrite: not all that is lost is written again.
for tenths in 24 26 28; do
	until [ "$(field written t)" -ge $((start + tenths * blocks / 10)) ]; do usleep 50000; done
	flash 0x16 "$(zones /dev/nvme0n1 | awk '$3 == 14 && $1 >= 65536 { print $1 / 8; exit }')"
done
wait $!
test "$(field victims t)" -gt 0
dmsetup status t | grep 'mtftl rw'
read_all > before
cat before
dmsetup remove t
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
read_all | cmp - before
verify /dev/mapper/t --size=100% --rw=write --do_verify=1
test "$(field bad t)" = 3
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=helpers, timeout=400, device=SMALL)
    assert result.ok, result.output
    assert re.search(r"total= *[1-9]", result.output), result.output


def test_a_low_water_below_the_reserve_is_raised(lab_run, helpers):
    """As `dmsetup table` gives it back, with more buffer_entries: GC begins before users have to wait."""
    result = lab_run(FRESH + """
dmsetup create t --table "$(table /dev/nullb0 low_water 1)"
test "$(field low_water t)" -gt "$(field reserve t)"
verify /dev/mapper/t --size=100% --io_size=300M --do_verify=1
dmsetup remove t
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_device_serves_one_name(lab_run, helpers):
    """A second device on the same flash would write to the same zones; a new table for the first one may."""
    result = lab_run(FRESH + """
line=$(table /dev/nullb0)
dmsetup create t --table "$line"
fails dmsetup create u --table "$line"
dmesg | grep 'in use by another mtftl device, expected one for each device'
verify /dev/mapper/t --size=16M --do_verify=1
dmsetup load t --table "$line"
dmsetup resume t
verify /dev/mapper/t --size=16M --verify_only=1
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK, push=helpers)
    assert result.ok, result.output


MEDIA = Media(32, 1024, 768)
OLD = MEDIA.unit(6, 1, {7: b"old", 10: b"a", 11: b"b", 12: b"c"})
NEW = MEDIA.unit(6, 4, {7: b"new"}, durable=1)
# Zones' content, and what fills block 7 then.
READ = {
    "newest record torn": ({0: MEDIA.superblock(flags=CLEAN) + bytes(BLOCK), 6: OLD + NEW}, "new"),
    "a checkpoint that no record names": (
        {0: MEDIA.superblock(), 6: OLD + MEDIA.unit(6, 4, {7: b"new"})[:BLOCK] + bytes(BLOCK),
         7: MEDIA.unit(7, 5, {0: b"map"}, kind=CKPT, durable=4)}, "old"),
    "two places of a durable number, neither whole": (
        {0: MEDIA.superblock(), 6: OLD + MEDIA.unit(6, 9, {8: b"x"}, durable=8),
         **{zone: MEDIA.unit(zone, 4, {7: b"new"})[:BLOCK] + bytes(BLOCK) for zone in (7, 8)}}, ""),
    "two places of a durable number, one whole": (
        {0: MEDIA.superblock(), 6: OLD + MEDIA.unit(6, 9, {8: b"x"}, durable=8),
         7: MEDIA.unit(7, 4, {7: b"new"}), 8: MEDIA.unit(8, 4, {7: b"new"})[:BLOCK] + bytes(BLOCK)}, "new"),
    "copy of a header": ({0: MEDIA.superblock(), 6: OLD + bytes(BLOCK) + OLD[:BLOCK] + NEW + bytes(3 * BLOCK)}, "new"),
}


@pytest.fixture(scope="module")
def mounted(lab_run, helpers, tmp_path_factory):
    """What block 7 holds on each of the media, and the status of mtftl check; from one boot."""
    folder = tmp_path_factory.mktemp("media")
    script, files = START, []
    for number, (zones, _) in enumerate(READ.values()):
        device = f"/dev/nullb{number}"
        script += f"null nullb{number} size=128 zone_capacity=3\n"
        for zone, data in zones.items():
            files.append(folder / f"{number}-{zone}")
            files[-1].write_bytes(data)
            script += f"dd if={files[-1].name} of={device} bs=4k seek={zone * MEDIA.zone_blocks}" \
                " oflag=direct status=none\n"
        script += f"""
dmsetup create t --table "$(table {device})"
held=$(dd if=/dev/mapper/t bs=4k skip=7 count=1 iflag=direct status=none 2> /dev/null | head -c 3)
dmsetup remove t
status=0
mtftl check {device} > /dev/null 2>&1 || status=$?
echo "$held $status"
"""
    result = lab_run(script, **QUICK, push=[*helpers, *files])
    assert result.ok, result.output
    return dict(zip(READ, result.output.splitlines(), strict=True))


@pytest.mark.parametrize("name", READ)
def test_a_mount_finds_what_the_media_hold(mounted, name):
    """A clean record with one behind it that is not whole; a copy of a header in a torn unit's payload."""
    assert mounted[name] == f"{READ[name][1]} 0"


def test_a_zone_found_read_only_is_cleared_and_retired_once(lab_run, helpers):
    result = lab_run(FRESH + WAIT + """
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=64M --io_size=96M --do_verify=1
dmsetup remove t
zone=$(blkzone report /dev/nullb0 | grep -n '(fu)' | tail -1 | cut -d: -f1)
echo $(((zone - 1) * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly
dmsetup create t --table "$(table /dev/nullb0)"
wait_for 'bad 1'
wait_for 'gc idle'
verify /dev/mapper/t --size=64M --io_size=96M --verify_only=1
test "$(field victims t)" = 1
dmsetup remove t
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_checkpoints_go_elsewhere_when_their_zones_fail(lab_run, helpers):
    """Both sets' zones become read-only while mounted: checkpoints and stops succeed, in other zones."""
    result = lab_run(FRESH + """
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --io_size=48M --do_verify=1
for zone in 2 3; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
dmsetup message t 0 checkpoint
dmsetup message t 0 checkpoint
test "$(field bad t)" = 2
dmsetup suspend t
dmsetup resume t
dmsetup remove t
test -z "$(dmesg | grep 'clean stop failed')"
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --io_size=48M --verify_only=1
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_zones_left_in_part_leave_room_for_a_checkpoint(lab_run, helpers):
    """More zones are written in part than the target would ever have open: it finishes what is too much."""
    result = lab_run(START + """
null nullb0 zone_max_open=4 zone_max_active=4
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --io_size=48M --do_verify=1
dmsetup remove t
for zone in 61 62 63; do
	[ "$(blkzone report /dev/nullb0 | grep -c '(oi)\\|(oe)\\|(cl)')" = 4 ] ||
		dd if=/dev/urandom of=/dev/nullb0 bs=4k count=1 seek=$((zone * 1024)) oflag=direct status=none
done
dmsetup create t --table "$(table /dev/nullb0)"
dmsetup message t 0 checkpoint
verify /dev/mapper/t --size=32M --io_size=48M --verify_only=1
verify /dev/mapper/t --size=32M --io_size=48M --do_verify=1
test "$(field bad t)" = 0
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_zone_that_the_superblock_log_left_is_finished(lab_run, helpers):
    """A write to the log fails: it goes on in the other zone, and the device counts only one of them as active."""
    result = lab_run(START + """
null nullb0 zone_max_open=4 zone_max_active=4
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --io_size=48M --do_verify=1
# With both checkpoints' zones and one for data all four are taken.
for turn in 1 2; do dmsetup message t 0 checkpoint; done
test "$(blkzone report /dev/nullb0 | grep -c '(oi)\\|(oe)\\|(cl)')" = 4
read -r start written condition < <(zones /dev/nullb0)
echo "+$((start + written))-8191" > /sys/kernel/config/nullb/nullb0/badblocks
dmsetup message t 0 checkpoint
# It takes writes again: null_blk's bad blocks cannot be read either, and that error is none of the medium's.
echo "-$((start + written))-8191" > /sys/kernel/config/nullb/nullb0/badblocks
test "$(blkzone report /dev/nullb0 | sed -n '1,2p' | grep -c '(oi)\\|(oe)\\|(cl)')" = 1
verify /dev/mapper/t --size=32M --io_size=48M --verify_only=1
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --io_size=48M --verify_only=1
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_one_failed_write_does_not_end_the_superblock_log(lab_run, helpers):
    """The log's zone is full and the first write to the other one fails: it is tried again."""
    result = lab_run(START + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1)"
# Zone 1 has 128 blocks from LBA 128 on; one write among them fails.
flash 0x11 128 128 1
for turn in $(seq 132); do dmsetup message t 0 checkpoint; done
read -r start written condition < <(zones /dev/nvme0n1 | sed -n 2p)
test "$written" -gt 0
dmesg | grep 'nvme0n1: .*I/O Error'
dmsetup status t | grep 'mtftl rw'
verify /dev/mapper/t --size=8M --do_verify=1
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", push=helpers, device={
        "flash.size": "32M", "zoned.zone_size": "512K", "zoned.zone_capacity": "512K", "flash.channels": "2",
        "flash.dies": "2", "flash.planes": "1", "flash.program_pages": "1", "flash.block_pages": "8"})
    assert result.ok, result.output


def test_a_full_device_with_little_to_spare_goes_on(lab_run, helpers):
    """Zones full of valid data are no victims: users fill what is open, GC's zone too, instead of waiting for ever.

    With small buffers what is buffered makes too little garbage for a victim.
    """
    script = START + "null nullb0 size=96\n"
    for options in ("lanes 2 buffer_entries 128", "lanes 1 buffer_entries 16"):
        script += f"""
mtftl format --force --op 5% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 {options})"
dd if=/dev/zero of=/dev/mapper/t bs=1M oflag=direct status=none 2> /dev/null || true
timeout 60 fio --name=job --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --io_size=8M --ioengine=psync \\
	--randseed=3 --output=fio.log || {{ dmsetup status t; exit 1; }}
dmsetup remove t
mtftl check /dev/nullb0
"""
    result = lab_run(script, **QUICK, push=helpers, timeout=250)
    assert result.ok, result.output


def test_gc_begins_with_no_more_than_it_can_end(lab_run, helpers):
    """On a full device with little to spare victims find the place that they were promised, and are not given up.

    But for one in hundreds whose place a flush took: nothing else here may.
    """
    result = lab_run(START + """
null nullb0 size=40 zone_size=1
mtftl format --op 5% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1 buffer_entries 64)"
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --output=fio.log --eta=never
echo 1 > /sys/kernel/tracing/events/mtftl/mtftl_zone_state/enable
fio --name=age --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=libaio --iodepth=32 \\
	--norandommap --io_size=16M --output=fio.log --eta=never
# became STATE: so many victims
became() { grep -c "victim -> $1 " /sys/kernel/tracing/trace || true; }
emptied=$(became resetting)
given_up=$(became full)
echo "$emptied victims were emptied, $given_up given up"
test $emptied -ge 100
test $((given_up * 50)) -le $emptied
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK, push=helpers, timeout=120)
    assert result.ok, result.output


def test_gc_leaves_users_zone_to_what_is_buffered(lab_run, helpers):
    """With one open zone for all, and few empty ones, GC waits until the buffers have taken theirs.

    But for a unit now and then: what is traced is when it goes out, not when it looked.
    """
    result = lab_run(START + """
null nullb0 size=40 zone_size=1 zone_max_open=4 zone_max_active=4
mtftl format --op 20% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1 buffer_entries 256)"
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --end_fsync=1 --output=fio.log --eta=never
echo "$(field free t) free, reserve $(field reserve t), open_limit $(field open_limit t)"
echo 20000 > /sys/kernel/tracing/buffer_size_kb
echo 1 > /sys/kernel/tracing/events/mtftl/enable
# What is looked for is rare: two loads meet it more often than one.
for load in "32k --iodepth=32" "128k --iodepth=4"; do
	fio --name=age --filename=/dev/mapper/t --direct=1 --rw=randwrite --ioengine=libaio --bs=$load --norandommap \\
		--io_size=60M --output=fio.log --eta=never
done
echo 0 > /sys/kernel/tracing/events/mtftl/enable
cp /sys/kernel/tracing/trace trace
dmsetup remove t
mtftl check /dev/nullb0
""", **QUICK, push=helpers, pull=["trace"], timeout=120)
    assert result.ok, result.output
    found = re.search(r"(\d+) free, reserve (\d+), open_limit 1\b", result.output)
    assert found, result.output
    empty, kept, used = int(found[1]), int(found[2]) - 2, 0     # of the reserve two zones are GC's
    units = early = 0
    for line in result.files["trace"].decode().splitlines():
        if state := re.search(r"mtftl_zone_state: .* (\w+) -> (\w+) wp", line):
            empty += (state[2] == "empty") - (state[1] == "empty")
        elif buffer := re.search(r"mtftl_(?:insert|free): .* used (\d+)", line):
            used = int(buffer[1])
        elif re.search(r"mtftl_unit_submitted: .* gc seq", line):
            units += 1
            early += used > 0 and empty < kept
    assert units >= 2000
    assert early * 500 <= units, (units, early)


def test_a_flush_covers_what_is_discarded_while_it_runs(lab_run, helpers):
    """The newest write is still buffered when a discard ends it: after the flush the one before must not return."""
    result = lab_run(FRESH + WAIT + """
raw=$(cat /sys/class/block/nullb0/size)
become() {
	dmsetup load layer --table "0 $raw $*"
	dmsetup suspend --nolockfs --noflush layer
	dmsetup resume layer
}
dmsetup create layer --table "0 $raw linear /dev/nullb0 0"
line=$(table /dev/mapper/layer lanes 1 write_unit 1 buffer_entries 128)
dmsetup create t --table "$line"
put() {
	tr '\\0' "$1" < /dev/zero |
		dd of=/dev/mapper/t bs=4k seek=$2 count=$3 iflag=fullblock oflag=direct "$4" status=none
}
put 1 0 1 conv=fsync
dmsetup suspend --nolockfs --noflush layer
# More than are in flight at once, then the block.
put x 8 48 conv=notrunc
put 2 0 1 conv=notrunc
sync /dev/mapper/t &
job=$!
hangs $job
blkdiscard -l 4k /dev/mapper/t
dmsetup resume layer
wait $job
become flakey /dev/nullb0 0 0 3600
dmsetup remove t
become linear /dev/nullb0 0
dmsetup create t --table "$line"
found=$(dd if=/dev/mapper/t bs=4k count=1 iflag=direct status=none | head -c 1 | od -An -tu1)
echo "found $found"
test $found = 0
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_thousand_mounts_leave_nothing_behind(lab_run, helpers, pytestconfig):
    """Mounted, written, stopped, again and again; then kmemleak looks for memory that nobody points to."""
    if pytestconfig.getoption("--kernel") != "kasan":
        pytest.skip("only the debug kernel has kmemleak: KERNEL=kasan")
    result = lab_run(START + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
line=$(table /dev/nullb0 lanes 2)
for turn in $(seq 1000); do
	dmsetup create t --table "$line"
	dd if=/dev/zero of=/dev/mapper/t bs=64k count=2 oflag=direct conv=fsync status=none
	dmsetup remove t
done
# It takes objects of the last 5 seconds for live ones, and two scans to be sure.
sleep 6
for turn in 1 2; do echo scan > /sys/kernel/debug/kmemleak; done
cat /sys/kernel/debug/kmemleak
test -z "$(cat /sys/kernel/debug/kmemleak)"
""", profile="none", push=helpers, timeout=400)
    assert result.ok, result.output


def test_the_module_leaves_when_nobody_uses_it(lab_run, helpers):
    """Unloaded and loaded between two mounts; refused while a device is there. What was written stays."""
    result = lab_run(START + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
line=$(table /dev/nullb0 lanes 2)
for turn in 1 2 3; do
	dmsetup create t --table "$line"
	if [ $turn -gt 1 ]; then cmp -n 1048576 /dev/mapper/t data; fi
	head -c 1048576 /dev/urandom > data
	dd if=data of=/dev/mapper/t bs=64k oflag=direct status=none
	if rmmod dm_mtftl; then exit 1; fi
	dmsetup remove t
	rmmod dm_mtftl
	if dmsetup targets | grep mtftl; then exit 1; fi
	insmod /lab/dm-mtftl.ko
done
mtftl check /dev/nullb0
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_gc_needs_no_memory(lab_run, helpers, pytestconfig):
    """Every allocation below the target fails: writes and discards go on, though GC has to take checkpoints."""
    if pytestconfig.getoption("--kernel") != "kasan":
        pytest.skip("only the debug kernel can fail allocations: KERNEL=kasan")
    result = lab_run(START + """
fail() {
	local folder
	read -r _ size _ _ _ address _ < <(grep ^dm_mtftl /proc/modules)
	for folder in failslab fail_page_alloc; do
		cd /sys/kernel/debug/$folder
		echo $address > require-start
		printf '0x%x' $((address + size)) > require-end
		echo N > ignore-gfp-wait
		echo 0 > verbose
		echo -1 > times
		echo $1 > probability
		cd - > /dev/null
	done
}
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
echo 0 > /sys/kernel/debug/fail_page_alloc/min-order
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --ioengine=psync --output=fio.log --eta=never
fail 100
timeout 60 fio --filename=/dev/mapper/t --direct=1 --bs=4k --ioengine=psync --output=fio.log --eta=never \\
	--io_size=64M --name=write --rw=randwrite --fdatasync=64 \\
	--name=discard --rw=randtrim --number_ios=3000 --thinktime=3ms ||
	{ dmsetup status t; exit 1; }
fail 0
test "$(field checkpoints t)" -gt 0
dmsetup remove t
mtftl check /dev/nvme0n1
""", profile="tlc", clock="virtual", cpus=2, push=helpers,
                     device={"flash.size": "32M", "zoned.zone_size": "1M", "zoned.zone_capacity": "1M"}, timeout=500)
    assert result.ok, result.output


FILE_SYSTEMS = {
    "ext4": ("mke2fs -q -F -t ext4", "e2fsck -f -n"),
    "xfs": ("mkfs.xfs -q -f", "xfs_repair -n"),
    "btrfs": ("mkfs.btrfs -q -f", "btrfs check"),
    "f2fs": ("mkfs.f2fs -q -f", "fsck.f2fs --dry-run"),
}


@pytest.mark.parametrize("kernel, names", [("6.12", ("ext4", "xfs")), ("6.1", ("btrfs", "f2fs"))])
def test_file_systems_are_clean_after_work(lab_run, helpers, kernel, names):
    """Files written, buffered and direct, moved, linked and removed, with discards; all there after a stop."""
    script = START + """
null nullb0 size=640
mtftl format --op 25% /dev/nullb0 > /dev/null
mkdir -p /mnt
"""
    for name in names:
        make, check = FILE_SYSTEMS[name]
        script += f"""
dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
{make} /dev/mapper/t
mount -t {name} -o discard /dev/mapper/t /mnt
for turn in 1 2 3; do
	mkdir /mnt/$turn
	fio --directory=/mnt/$turn --filesize=4k-512k --nrfiles=60 --openfiles=8 --file_service_type=random --size=12M \\
		--rw=randwrite --fsync=64 --verify=crc32c --name=buffered --bsrange=1k-64k \\
		--name=direct --direct=1 --bsrange=4k-64k --output=fio.log || {{ cat fio.log; exit 1; }}
	for i in $(seq 20); do
		mkdir /mnt/$turn/d
		echo $i > /mnt/$turn/d/a
		ln /mnt/$turn/d/a /mnt/$turn/d/b
		mv /mnt/$turn/d/b /mnt/$turn/file$i
		rm -r /mnt/$turn/d
	done
	[ $turn = 1 ] || rm -r /mnt/$((turn - 1))
done
find /mnt -type f | sort | xargs md5sum > sums
test $(wc -l < sums) -ge 140
umount /mnt
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
{check} /dev/mapper/t > fsck.log 2>&1 || {{ cat fsck.log; exit 1; }}
mount -t {name} -o ro /dev/mapper/t /mnt
md5sum -c sums > md5.log || {{ grep -v OK md5.log; exit 1; }}
umount /mnt
dmsetup remove t
echo {name} clean
"""
    result = lab_run(script + "mtftl check /dev/nullb0\n", kernel=kernel, profile="none", cpus=2, push=helpers,
                     timeout=400)
    assert result.ok, result.output
    assert result.output.count(" clean") == len(names)


REFUSED = {
    "": "Expected <device>",
    "/dev/nosuch": "Cannot open the device",
    "/dev/nullb1": "not zoned",
    "/dev/nullb2": "No superblock found",
    "/dev/nullb0 3 lanes 1": "Expected <device> [<number of words>",
    "/dev/nullb0 2 lanes 0": "lanes is 0, expected percpu or 1 to 1024",
    "/dev/nullb0 2 lanes many": "lanes is many, expected percpu or 1 to 1024",
    "/dev/nullb0 2 buffer_entries 0": "buffer_entries is 0, expected",
    "/dev/nullb0 2 write_unit 253": "write_unit is 253, expected 1 to 252",
    "/dev/nullb0 2 gc_policy best": "gc_policy is best, expected greedy or cost-benefit",
    "/dev/nullb0 2 placement best": "placement is best, expected none, hot-cold, by-age or by-life",
    "/dev/nullb0 2 streams best": "placement is best, expected none, hot-cold, by-age or by-life",
    "/dev/nullb0 2 append here": "append is here, expected on or off",
    "/dev/nullb0 2 low_water 65536": "low_water is 65536, expected 0 to 65535",
    "/dev/nullb0 2 colour blue": "option colour is not known, expected lanes, buffer_entries",
}
MESSAGES = {
    "nonsense": "message nonsense is not known, expected checkpoint",
    "gc now": "message gc has 2 words, expected 1",
    "low_water 1": "low_water is 1, expected",
    "gc_policy best": "gc_policy is best, expected greedy or cost-benefit",
}


def test_what_is_refused_says_why_and_is_not_written_to(lab_run, helpers):
    script = START + """
null nullb0 size=64
null nullb1 size=64 zoned=0
null nullb2 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
sum() { ./blocks sum /dev/nullb0; blkzone report /dev/nullb0 | md5sum; }
sum > before
"""
    for params, reason in REFUSED.items():
        script += f"""
dmesg -c > /dev/null
fails dmsetup create t --table "0 8192 mtftl {params}" 2> /dev/null
dmesg | grep -F -q '{reason}' || {{ echo 'table {params}: expected {reason}'; dmesg; exit 1; }}
dmsetup remove t 2> /dev/null || true
"""
    script += """
dmesg -c > /dev/null
fails dmsetup create t --table "0 4096 mtftl /dev/nullb0" 2> /dev/null
dmesg | grep -q 'length is 4096 sectors, expected'
dmsetup remove t 2> /dev/null || true
sum | cmp - before
dmsetup create t --table "$(table /dev/nullb0)"
"""
    for words, reason in MESSAGES.items():
        script += f"""
dmesg -c > /dev/null
fails dmsetup message t 0 {words} 2> /dev/null
dmesg | grep -F -q '{reason}' || {{ echo 'message {words}: expected {reason}'; dmesg; exit 1; }}
"""
    result = lab_run(script + "dmsetup remove t\n", **QUICK, push=helpers)
    assert result.ok, result.output


def test_a_table_is_printed_as_it_is_read(lab_run, helpers):
    """In today's words: each form that they replaced is accepted with a warning that names the new one."""
    result = lab_run(START + """
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
old() { dmesg | grep -c 'is an old form' || true; }
warned() { dmesg | grep -F -q "0: option $1 is an old form, which the next release will refuse, expected $2"; }
dmsetup create t --table "$(table /dev/nullb0 lanes 2 streams hot-cold placement write)"
warned 'streams hot-cold' 'placement hot-cold'
warned 'placement write' 'append off'
test "$(old)" = 2
line=$(dmsetup table t)
echo "$line" | grep -E ' 14 lanes 2 .* gc_policy cost-benefit placement hot-cold append off low_water [0-9]+$'
dmsetup load t --table "${line/placement hot-cold append off/streams none placement append}"
dmsetup resume t
warned 'streams none' 'placement none'
warned 'placement append' 'append on'
test "$(old)" = 4
dmsetup table t | grep ' placement none append on '
dmsetup load t --table "$line"
dmsetup resume t
test "$(dmsetup table t)" = "$line"
dmsetup remove t
mtftl open /dev/nullb0 t placement=by-age append=off
test "$(old)" = 4
dmsetup table t | grep ' placement by-age append off '
mtftl close t
mtftl open /dev/nullb0 t streams=by-age
test "$(old)" = 5
mtftl close t
""", **QUICK, push=helpers)
    assert result.ok, result.output


def test_who_must_not_block_does_not(lab_run, helpers):
    """Writes go without a detour, and reads too; where the drive has few requests, a read in parts waits for them.

    A caller whose read ends with EAGAIN in an interrupt may never read again: io_uring on 6.1 tells its user.
    """
    result = lab_run(START + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
test "$(./blocks nowait /dev/mapper/t 2048)" = "0 0"
cat /sys/block/nvme0n1/queue/nr_requests
echo 4 > /sys/block/nvme0n1/queue/nr_requests
read -r writes reads < <(./blocks nowait /dev/mapper/t 2048)
echo "$writes writes and $reads reads said EAGAIN"
test "$writes" = 0
test "$reads" = 0
# Whoever has read is no reader any more: zones are reset.
for turn in 1 2 3 4 5 6; do
	./blocks nowait /dev/mapper/t 8192
done
test "$(field victims t)" -ge 2
dmsetup remove t
mtftl check /dev/nvme0n1
""", clock="virtual", profile="tlc", cpus=2, push=helpers, timeout=300, device=SMALL)
    assert result.ok, result.output
