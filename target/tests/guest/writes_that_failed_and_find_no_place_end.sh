#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Under GC the last zones fail, all at once: what was in flight has no place to go, and GC waits
# for it.
#
# clock: virtual
# cpus: 2
# profile: none
# timeout: 300

set -e
. ./guest.sh

null nullb0 size=128 irqmode=2 completion_nsec=5000000
flaky_is 0
device=/dev/mapper/flaky
work="--filename=/dev/mapper/t --direct=1 --ioengine=io_uring --iodepth=8 --output=fio.log"
for round in 1 2 3; do
	flaky_is 0
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
	flaky_is 1 error_writes
	wait_for read-only
	fails wait $!
	dd if=/dev/mapper/t of=/dev/null bs=1M iflag=direct status=none
	# The kernel closes io_uring's files after their process.
	until_true 10 dmsetup remove t
	mtftl check $device
	# null_blk takes it back when it is told so a second time.
	for zone in $(zones /dev/nullb0 | awk '$3 == 13 { print $1 }'); do
		echo "$zone" > /sys/kernel/config/nullb/nullb0/zone_readonly
	done
done
