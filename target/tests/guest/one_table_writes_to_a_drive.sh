#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A suspended table is removed while another one is created: that one is refused, or comes when
# all is written.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small
# pull: trace
# judge: test_faults.py

set -e
. ./guest.sh

line=$(slow_drive)
trace_mounts
rounds=$1
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
test -z "$(dmesg | grep 'superblock log\|clean stop failed')"
cp /sys/kernel/tracing/trace trace
mtftl check /dev/nvme0n1
