# SPDX-License-Identifier: GPL-2.0
"""What durability costs: FUA beside other writers, flushes beside discards, a starved writer, checkpoints."""

from pathlib import Path
from statistics import median

import pytest
from mtlab.build import guest, kernels, target
from mtlab.exp import fio
from test_target import FRESH, QUICK, SMALL, START

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def fua(pytestconfig):
    """A program that writes with FUA alone, and the module that does it."""
    kernel = kernels.get(pytestconfig.getoption("--kernel"))
    return [guest.program("fua", HERE), target.helper_module("fuawrite", HERE / "torture/fuawrite", kernel)]


FUA = START + """
insmod ./fuawrite.ko
mtftl format --force /dev/nvme0n1 > /dev/null
mtftl open /dev/nvme0n1 ftl
# others NAME MILLISECONDS [RATE]: seven users on as many CPUs
others() {
	fio --name=others --filename=/dev/mapper/ftl --rw=randwrite --bs=4k --direct=1 --ioengine=psync --numjobs=7 \\
		--size=512M --norandommap --randseed=$seed --cpus_allowed=0-6 --cpus_allowed_policy=split --time_based \\
		--runtime=$2ms --group_reporting ${3:+--rate_iops=$3} --output-format=json --output=$1.json
	grep -A40 '"write" :' $1.json | awk '/"iops" :/ { print int($3); exit }'
}
lone() { taskset 0x80 ./fua /dev/mapper/ftl 262144 65536 $1 $seed; }
peak=$(others peak 100)
half=$((peak / 14))
alone=$(lone 200)
test "$(field flushes ftl)" = 0
rest=$(others rest 300 $half)
others both 300 $half > both &
usleep 50000
beside=$(lone 200)
wait $!
echo "peak $peak alone $alone beside $beside rest $rest both $(cat both)"
mtftl close ftl
"""


def test_a_fua_write_waits_for_nobody_else(lab_run, helpers, fua):
    """Beside users at half of their peak, FUA takes at most 1.3 times as long as alone and costs them at most 5%."""
    slower, kept = [], []
    for seed in (1, 2, 3):
        result = lab_run(f"seed={seed}\n{FUA}", clock="virtual", profile="tlc", cpus=8, push=[*helpers, *fua],
                         seed=seed)
        assert result.ok, result.output
        words = result.output.split("peak ")[1].split()
        slower.append(int(words[words.index("beside") + 2]) / int(words[words.index("alone") + 2]))
        kept.append(int(words[-1]) / int(words[-3]))
        print(words, slower[-1], kept[-1])
    assert median(slower) <= 1.3, slower
    assert median(kept) >= 0.95, kept


def test_a_fua_write_whose_block_is_discarded(lab_run, helpers, fua):
    """Its block is still buffered when a discard ends it: after the write the version before must not return."""
    result = lab_run(FRESH + """
insmod ./fuawrite.ko
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
# More than are in flight at once; when the writer has sent what it can, the block.
put x 8 48 conv=notrunc
usleep 50000
./fua /dev/mapper/t 0 1 1 1 &
job=$!
hangs $job
blkdiscard -f -l 4k /dev/mapper/t
dmsetup resume layer
wait $job
become flakey /dev/nullb0 0 0 3600
dmsetup remove t
become linear /dev/nullb0 0
dmsetup create t --table "$line"
found=$(dd if=/dev/mapper/t bs=4k count=1 iflag=direct status=none | head -c 1 | od -An -tu1)
echo "found $found"
test $found = 0
""", **QUICK, push=[*helpers, *fua])
    assert result.ok, result.output


# Of each 4 MiB one block is written: a discard of the drive leaves a record for each of them. Two programs discard
# faster than a slow drive without a cache takes records.
DISCARD = START + """
mtftl format /dev/nvme0n1 > /dev/null
mtftl open /dev/nvme0n1 ftl
fio --name=fill --filename=/dev/mapper/ftl --rw=write:4092k --bs=4k --direct=1 --ioengine=libaio --iodepth=64 \\
	--io_size=$(($(blockdev --getsz /dev/mapper/ftl) / 8192 * 4096)) --output=fill.log
# syncs NAME SECONDS: the longest, in ns, of writes of 4 KiB with an fsync each
syncs() {
	fio --name=syncs --filename=/dev/mapper/ftl --rw=randwrite --bs=4k --direct=1 --ioengine=psync --fsync=1 \\
		--size=64M --offset=50% --norandommap --time_based --runtime=$2 --output-format=json --output=$1.json
	awk '/"sync" :/ { on = 1 } on && /"max" :/ { print int($3); exit }' $1.json
}
alone=$(syncs alone 300ms)
flushed=$(field flushes ftl)
syncs beside 1s > beside &
syncs=$!
until [ "$(field flushes ftl)" -gt $((flushed + 100)) ]; do usleep 10000; done
read -r from rest < /proc/uptime
half=$(($(blockdev --getsz /dev/mapper/ftl) / 4096 * 1048576))
blkdiscard -f -l $half /dev/mapper/ftl &
other=$!
blkdiscard -f -o $half /dev/mapper/ftl
wait $other
read -r to rest < /proc/uptime
kill -0 $syncs
wait $syncs
trimmed=$(field trimmed ftl)
echo "discard of $trimmed blocks, from $from to $to s; alone $alone beside $(cat beside)"
mtftl close ftl
"""
SPARSE = {"flash.size": "64G", "zoned.zone_size": "1G", "zoned.zone_capacity": "1G", "flash.buffer": "0",
          "flash.program_ns": "5000000"}


def test_a_discard_of_the_whole_drive_keeps_no_flush_waiting(lab_run, helpers):
    """The longest fsync beside a discard waits for a few writes of records, not for the discard."""
    result = lab_run(DISCARD, clock="virtual", profile="tlc", cpus=4, push=helpers, timeout=1200, device=SPARSE)
    assert result.ok, result.output
    words = result.output.split()
    alone, beside = (int(words[words.index(name) + 1]) for name in ("alone", "beside"))
    # One that is under way, one beside its own write, and one more if the discard killed what was buffered.
    assert beside <= 5 * alone, result.output


def test_discards_that_waited_leave_the_cpu_to_others(lab_run, helpers):
    """Many discards of blocks that are not mapped wait behind others for room: whoever serves them reschedules."""
    result = lab_run(START + """
null nullb0 size=65536 zone_size=256
dmsetup create layer --table "0 $(cat /sys/class/block/nullb0/size) linear /dev/nullb0 0"
mtftl format --op 10% /dev/mapper/layer > /dev/null
dmsetup create t --table "$(table /dev/mapper/layer lanes 1)"
# Each record of a discard covers 4 MiB: more of them than there is room for.
fio --name=fill --filename=/dev/mapper/t --rw=write:4092k --bs=4k --direct=1 --ioengine=libaio --iodepth=32 \\
	--io_size=4M --output=fill.log
sync /dev/mapper/t
dmsetup suspend --nolockfs --noflush layer
blkdiscard -f /dev/mapper/t &
discard=$!
usleep 500000
(while :; do :; done) &
hog=$!
trace=/sys/kernel/tracing
echo 'prev_comm ~ "kworker*" || next_comm ~ "kworker*"' > $trace/events/sched/sched_switch/filter
echo 1 > $trace/events/sched/sched_switch/enable
dmsetup resume layer
wait $discard
echo 0 > $trace/tracing_on
kill $hog
test "$(field trimmed t)" -gt 0
# The longest time for which a worker kept the CPU, in microseconds.
at='s/.* ([0-9]+)\\.([0-9]+): sched_switch: prev_comm=(.*) prev_pid.*next_comm=(.*) next_pid.*/\\1\\2 \\3 \\4/p'
sed -nE "$at" $trace/trace |
	awk '$2 ~ /kworker/ && since { if ($1 - since > most) most = $1 - since } { since = $3 ~ /kworker/ ? $1 : 0 }
		END { print "longest", most }'
dmsetup remove t
""", **QUICK | {"cpus": 1}, push=helpers)
    assert result.ok, result.output
    longest = int(result.output.split("longest ")[1].split()[0])
    assert longest <= 15_000, longest


def test_a_cpu_that_is_taken_stops_no_write(lab_run, helpers):
    """A real-time task takes CPU 1 for itself while nothing is flushed: what waits in lane 1 goes on all the same."""
    result = lab_run(START + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
take_cpu
fio --name=job --filename=/dev/mapper/t --rw=write --bs=512k --direct=1 --ioengine=psync --size=64M --cpus_allowed=0 \\
	--thinktime=25000 --output-format=json --output=job.json
return_cpu
dmsetup status t
test "$(field flushes t)" = 0
dmsetup remove t
""", clock="virtual", profile="tlc", cpus=2, push=helpers, pull=["job.json"], timeout=200, device=SMALL)
    assert result.ok, result.output
    longest = fio.sample(result.files["job.json"], "write")["max_us"]
    assert longest <= 100_000, longest


def test_lanes_keep_off_isolated_cpus(lab_run, helpers):
    """A CPU that is isolated, or without ticks, gets no lane and no writer; users there have one all the same."""
    result = lab_run(START + """
mtftl format --op 30% /dev/nvme0n1 > /dev/null
mtftl open /dev/nvme0n1 ftl
echo "lanes $(field lanes ftl)"
for task in /proc/[0-9]*; do
	case $(cat $task/comm 2> /dev/null) in
	mtftl/*) grep Cpus_allowed_list $task/status;;
	esac
done
taskset 0x8 dd if=/dev/urandom of=/dev/mapper/ftl bs=64k count=100 oflag=direct status=none
mtftl close ftl
""", clock="virtual", profile="tlc", cpus=4, push=helpers, append="isolcpus=1 nohz_full=3", device=SMALL)
    assert result.ok, result.output
    assert "lanes 2" in result.output
    assert sorted(line.split()[1] for line in result.output.splitlines() if "Cpus_allowed" in line) == ["0", "2"]


# Just large enough that the log's length depends on the size of the map: 8192 blocks.
LARGE = {"flash.size": "56G", "zoned.zone_size": "16M", "zoned.zone_capacity": "16M"}


def test_what_checkpoints_cost_a_database(lab_run, helpers):
    """With an fsync after each 4 KiB, over ten lengths of the log, checkpoints write at most half of what users do."""
    result = lab_run(START + """
mtftl format --op 25% /dev/nvme0n1 > /dev/null
mtftl open /dev/nvme0n1 ftl
blocks=$(($(blockdev --getsz /dev/mapper/ftl) / 8))
map=$(((blocks + 1023) / 1024))
dmsetup message ftl 0 checkpoint
dmsetup message ftl 0 reset_stats
fio --name=job --filename=/dev/mapper/ftl --rw=randwrite --bs=4k --direct=1 --ioengine=psync --fsync=1 --norandommap \\
	--size=1G --io_size=$((20 * map * 4096)) --output=job.log
for name in written flash_data flash_headers flash_meta checkpoints; do echo "$name $(field $name ftl)"; done
echo "map $map"
mtftl close ftl
""", clock="virtual", profile="dram", cpus=2, push=helpers, timeout=1200, device=LARGE)
    assert result.ok, result.output
    count = {name: int(value) for name, value in (line.split() for line in result.output.splitlines()
                                                  if len(line.split()) == 2)}
    assert count["map"] >= 8192 and count["written"] == 20 * count["map"], count
    # A checkpoint is the map, with a header for each 31 of its blocks; a unit takes one number. The log is two maps
    # long, plus what is written until the next zone is opened, when the target looks at its length.
    assert 8 <= count["checkpoints"] <= 10, count
    share = count["flash_meta"] / count["written"]
    print(f"flash_meta is {share:.1%} of what users wrote")
    assert 0.4 <= share <= 0.5 * 1.05, count
