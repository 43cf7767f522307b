#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The longest fsync beside a discard waits for a few writes of records, not for the discard.
#
# clock: virtual
# cpus: 4
# profile: tlc
# device: sparse
# timeout: 1200
# judge: test_flush.py

set -e
. ./guest.sh

# Of each 4 MiB one block is written: a discard of the drive leaves a record for each of them. Two programs discard
# faster than a slow drive without a cache takes records.

mtftl format /dev/nvme0n1 > /dev/null
mtftl open /dev/nvme0n1 ftl
fio --name=fill --filename=/dev/mapper/ftl --rw=write:4092k --bs=4k --direct=1 --ioengine=libaio --iodepth=64 \
	--io_size=$(($(blockdev --getsz /dev/mapper/ftl) / 8192 * 4096)) --output=fill.log
# syncs NAME SECONDS: the longest, in ns, of writes of 4 KiB with an fsync each; or until fio is interrupted
syncs() {
	fio --name=syncs --filename=/dev/mapper/ftl --rw=randwrite --bs=4k --direct=1 --ioengine=psync --fsync=1 \
		--size=64M --offset=50% --norandommap --time_based --runtime=$2 --output-format=json --output=$1.json ||
		grep -q '"error" : 0,' $1.json
	awk '/"sync" :/ { on = 1 } on && /"max" :/ { print int($3); exit }' $1.json
}
alone=$(syncs alone 300ms)
flushed=$(field flushes ftl)
syncs beside 60s > beside &
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
killall -INT fio
wait $syncs
trimmed=$(field trimmed ftl)
echo "discard of $trimmed blocks, from $from to $to s; alone $alone beside $(cat beside)"
mtftl close ftl
