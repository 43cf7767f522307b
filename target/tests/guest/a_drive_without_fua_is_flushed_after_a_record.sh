#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For FUA the kernel would send a flush of its own, and a failure would not say whether the write or
# the flush had failed. So the target sends the flush itself.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

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
