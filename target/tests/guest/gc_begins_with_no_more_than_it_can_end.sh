#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# On a full device with little to spare victims find the place that they were promised, and are
# not given up.
#
# But for a few whose place a flush took. If GC promised too much, every seventh one would be given up.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=40 zone_size=1
mtftl format --op 5% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1 buffer_entries 64)"
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --output=fio.log --eta=never
echo 1 > /sys/kernel/tracing/events/mtftl/mtftl_zone_state/enable
fio --name=age --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=libaio --iodepth=32 \
	--norandommap --io_size=16M --output=fio.log --eta=never
# became STATE: so many victims
became() { grep -c "victim -> $1 " /sys/kernel/tracing/trace || true; }
emptied=$(became resetting)
given_up=$(became full)
echo "$emptied victims were emptied, $given_up given up"
test $emptied -ge 100
test $((given_up * 20)) -le $emptied
dmsetup remove t
mtftl check /dev/nullb0
