#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every allocation below the target fails: writes and discards go on, though GC has to take
# checkpoints.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: flash.size=32M zoned.zone_size=1M zoned.zone_capacity=1M
# timeout: 500
# needs: kasan

set -e
. ./guest.sh

fail() {
	local folder
	read -r _ size _ _ _ address _ < <(grep ^dm_mtftl /proc/modules)
	for folder in failslab fail_page_alloc; do
		cd /sys/kernel/debug/$folder
		echo $address > require-start
		printf '0x%x' $((address + size)) > require-end
		echo N > ignore-gfp-wait
		echo 0 > verbose
		echo -1 > ./times
		echo $1 > probability
		cd - > /dev/null
	done
}
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
echo 0 > /sys/kernel/debug/fail_page_alloc/min-order
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --ioengine=psync --output=fio.log --eta=never
fail 100
timeout 60 fio --filename=/dev/mapper/t --direct=1 --bs=4k --ioengine=psync --output=fio.log --eta=never \
	--io_size=64M --name=write --rw=randwrite --fdatasync=64 \
	--name=discard --rw=randtrim --number_ios=3000 --thinktime=3ms ||
	{ dmsetup status t; exit 1; }
fail 0
test "$(field checkpoints t)" -gt 0
dmsetup remove t
mtftl check /dev/nvme0n1
