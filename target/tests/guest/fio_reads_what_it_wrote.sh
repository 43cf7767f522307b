#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Sizes, depths, four jobs, synchronous and io_uring, buffered and direct: each writes its part
# three times over.
#
# fio verifies behind the writes, and again what went through the page cache. Beside them two jobs
# write and discard the same blocks, all the time: fio cannot verify those, the torture run does.
# Half of io_size are reads.
#
# clock: wall
# cpus: 2
# profile: none
# timeout: 1200
# kernels: 6.1 6.12 current

set -e
. ./guest.sh

null nullb0 size=96
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
trims() { test "$(field trimmed t)" -gt 0; }
part=$(($(blockdev --getsize64 /dev/mapper/t) / 5 / 65536 * 65536))
for engine in psync io_uring; do
	for direct in 0 1; do
		dmsetup message t 0 reset_stats
		fio --filename=/dev/mapper/t --direct=1 --bsrange=4k-64k --size=$part --offset=$((4 * part)) --time_based \
			--runtime=1h --rate_iops=100 --eta=never --output=discards.log \
			--name=writes --rw=randwrite --name=discards --rw=randtrim &
		jobs="--ioengine=$engine --direct=$direct --iodepth=7 --numjobs=4 --size=$part --offset_increment=$part"
		verify /dev/mapper/t $jobs --bsrange=4k-256k --io_size=$((6 * part)) --do_verify=1 --verify_backlog=50
		verify /dev/mapper/t $jobs --bsrange=4k-64k --do_verify=0 --end_fsync=1
		# However late the jobs beside began.
		until_true 60 trims
		kill -INT $!
		wait $! || true
		echo 3 > /proc/sys/vm/drop_caches
		verify /dev/mapper/t $jobs --bsrange=4k-64k --verify_only=1
		test "$(field written t)" -gt $((4 * 4 * part / 4096))
	done
done
test "$(field victims t)" -gt 0
test "$(field read_errors t)" = 0
dmsetup remove t
mtftl check /dev/nullb0
