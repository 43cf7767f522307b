#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Blocks that four users sync, each on a CPU of its own, go to flash as one unit for all. It is
# written with FUA, so that no flush is sent. A power cut takes none.
#
# clock: virtual
# cpus: 4
# profile: tlc
# device: small

set -e
. ./guest.sh

# Flushes that the drive was sent
sent() { awk '{ print $16 }' /sys/class/block/nvme0n1/stat; }
# synced FIO-OPTION...: four users, 64 blocks each
synced() {
	fio --name=synced --filename=/dev/mapper/t --direct=1 --bs=4k --ioengine=psync --numjobs=4 --thread \
		--size=256k --offset_increment=256k --cpus_allowed=0-3 --cpus_allowed_policy=split \
		--verify=crc32c --output=fio.log "$@"
}
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 4)"
synced --rw=write --fsync=1 --do_verify=0 --size=16k
before=$(sent) written=$(field written t) rounds=$(field flushes t) units=$(field flash_headers t)
synced --rw=write --fsync=1 --do_verify=0
written=$(($(field written t) - written)) rounds=$(($(field flushes t) - rounds))
units=$(($(field flash_headers t) - units))
flash 1 0
echo "written $written rounds $rounds units $units flushes $(($(sent) - before))"
[ $written = 256 ]
[ $rounds -le $((written / 3)) ]
[ $units -le $((rounds + 8)) ]
[ $(($(sent) - before)) -le 4 ]
dmsetup remove t
flash 0 0
dmsetup create t --table "$(table /dev/nvme0n1 lanes 4)"
synced --rw=read
dmsetup remove t
mtftl check /dev/nvme0n1
