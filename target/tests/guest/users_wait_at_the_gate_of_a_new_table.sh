#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A mount begins with few zones empty: users' writes must not take what is kept for GC and
# flushes.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
line="$(table /dev/nvme0n1 lanes 1 buffer_entries 512 write_unit 1)"
dmsetup create t --table "$line"
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --ioengine=io_uring --iodepth=8 \
	--output=fio.log --eta=never
fio --name=job --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=64 \
	--numjobs=4 --time_based --runtime=1h --output=fio.log --eta=never &
job=$!
for turn in $(seq 30); do
	usleep 2000
	dmsetup load t --table "$line"
	dmsetup suspend --nolockfs --noflush t
	dmsetup resume t
	test "$(field free t)" -gt 0
done
killall -INT fio
wait $job || true
fails grep 'err=[^ ]*[1-9]' fio.log
until_true 1 dmsetup remove t
mtftl check /dev/nvme0n1
