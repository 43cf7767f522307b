#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Zones lie on all dies, so they are erased one after the other: none waits for those behind it.
#
# clock: virtual
# cpus: 4
# profile: tlc
# device: flash.size=512M zoned.zone_size=8M zoned.zone_capacity=6M flash.block_pages=96
# judge: test_faults.py

set -e
. ./guest.sh

mtftl format --op 25% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 4)"
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=128k --ioengine=libaio --iodepth=8 \
	--output=fio.log --eta=never
echo 1 > /sys/kernel/tracing/events/mtftl/mtftl_zone_state/enable
fio --name=age --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=libaio --iodepth=8 --numjobs=4 \
	--norandommap --io_size=100M --output=fio.log --eta=never
sed -n 's/.* \([0-9.]*\): mtftl_zone_state: .*resetting -> empty.*/\1/p' /sys/kernel/tracing/trace > erased
cat erased
dmsetup remove t
