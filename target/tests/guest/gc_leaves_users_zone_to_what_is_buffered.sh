#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# With one open zone for all, and few empty ones, GC waits until the buffers have taken theirs.
#
# But for a unit now and then: what is traced is when it goes out, not when it looked.
#
# clock: virtual
# cpus: 2
# profile: none
# pull: trace
# judge: test_target.py

set -e
. ./guest.sh

null nullb0 size=40 zone_size=1 zone_max_open=4 zone_max_active=4
mtftl format --op 20% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1 buffer_entries 256)"
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --end_fsync=1 --output=fio.log --eta=never
echo "$(field free t) free, reserve $(field reserve t), open_limit $(field open_limit t)"
echo 20000 > /sys/kernel/tracing/buffer_size_kb
echo 1 > /sys/kernel/tracing/events/mtftl/enable
# What is looked for is rare: two loads meet it more often than one.
for load in "32k --iodepth=32" "128k --iodepth=4"; do
	fio --name=age --filename=/dev/mapper/t --direct=1 --rw=randwrite --ioengine=libaio --bs=$load --norandommap \
		--io_size=60M --output=fio.log --eta=never
done
echo 0 > /sys/kernel/tracing/events/mtftl/enable
cp /sys/kernel/tracing/trace trace
dmsetup remove t
mtftl check /dev/nullb0
