#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# An administrator tells the kernel for a while that the drive has no volatile cache. The kernel
# sends neither FUA nor flushes then. The first flush after that is sent, and a power cut takes
# nothing that was synced before it.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small

set -e
. ./guest.sh

cache=/sys/class/block/nvme0n1/queue/write_cache
# Flushes that the drive was sent
sent() { awk '{ print $16 }' /sys/class/block/nvme0n1/stat; }
# synced FIO-OPTION...: one user, a quarter of a MiB
synced() {
	fio --name=synced --filename=/dev/mapper/t --direct=1 --bs=4k --ioengine=psync --size=256k \
		--verify=crc32c --output=fio.log "$@"
}
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
synced --rw=write --fsync=1 --end_fsync=1 --do_verify=0 --io_size=16k
echo "write through" > $cache
synced --rw=write --fsync=1 --end_fsync=1 --do_verify=0
echo "write back" > $cache
before=$(sent)
dd if=/dev/null of=/dev/mapper/t conv=fsync,notrunc status=none
echo "flushes $(($(sent) - before))"
[ $(($(sent) - before)) -ge 1 ]
flash 1 0
dmsetup remove t
flash 0 0
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
synced --rw=read
dmsetup remove t
mtftl check /dev/nvme0n1
