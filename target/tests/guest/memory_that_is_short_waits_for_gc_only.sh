#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A file in memory that is larger than the memory, all swap on the target: GC frees what memory
# waits for.
#
# clock: wall
# cpus: 2
# memory: 512M
# profile: tlc
# device: small flash.size=320M
# timeout: 400
# needs: swap

set -e
. ./guest.sh

mtftl format --op 20% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
mkswap /dev/mapper/t > /dev/null
swapon /dev/mapper/t
mkdir full
mount -t tmpfs -o size=100% none full
# What else lies in memory may be swapped out too.
free=$(awk '/MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
mount -o remount,size=$((free + 200))M full
for turn in 1 2 3 4 5 6 7 8; do
	[ "$(field victims t)" -lt 10 ] || break
	fio --name=turn --filename=full/file --size=$((free + 170))M --rw=randwrite --bs=4k --ioengine=psync \
		--io_size=$((free + 200))M --randseed=$turn --verify=crc32c --verify_fatal=1 --do_verify=1 \
		--output=fio.log --eta=never || { cat fio.log; exit 1; }
	swapped=$(awk '/SwapTotal/ { all = $2 } /SwapFree/ { print int((all - $2) / 1024) }' /proc/meminfo)
	echo "$free MiB free at first, $swapped swapped, $(field written t) blocks written, $(field victims t) victims"
done
test "$(field victims t)" -ge 10
dmsetup status t | grep 'mtftl rw'
test "$(field write_errors t)" = 0
umount full
swapoff /dev/mapper/t
dmsetup remove t
mtftl check /dev/nvme0n1
