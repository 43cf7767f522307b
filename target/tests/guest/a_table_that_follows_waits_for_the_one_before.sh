#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# An old table, replaced by one of `error`, still writes when a new table of the same name is
# resumed.
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
is_replaced() { dmsetup table x | grep error; }
for round in 1 2 3 4; do
	[ -e /dev/mapper/x ] || dmsetup create x --table "$line"
	yes "$round" | dd of=/dev/mapper/x bs=4k count=16 iflag=fullblock oflag=direct status=none
	dmsetup suspend --noflush --nolockfs x
	dmsetup load x --table "$(echo "$line" | awk '{ print 0, $2, "error" }')"
	dmsetup resume x &
	job=$!
	until_true 10 is_replaced
	usleep $((round * 20000))
	dmsetup load x --table "$line"
	dmsetup suspend --noflush --nolockfs x
	dmsetup resume x
	cmp -n 65536 <(yes "$round") <(dd if=/dev/mapper/x bs=4k count=16 iflag=direct status=none)
	wait $job
done
dmsetup remove x
test -z "$(dmesg | grep 'superblock log\|clean stop failed')"
cp /sys/kernel/tracing/trace trace
mtftl check /dev/nvme0n1
