#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# GC logs those of its victims again, as long as that writes less than a checkpoint would.
#
# clock: virtual
# cpus: 2
# profile: none
# timeout: 300

set -e
. ./guest.sh

null nullb0 size=160
mtftl format --op 30% /dev/nullb0 > /dev/null
line=$(table /dev/nullb0 lanes 2)
dmsetup create t --table "$line"
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --output=fio.log --eta=never
dmsetup message t 0 reset_stats
fio --filename=/dev/mapper/t --direct=1 --bs=4k --output=fio.log --eta=never --randseed=7 \
	--size=16M --name=write --rw=randwrite --io_size=300M --rate=60M --ioengine=psync \
	--name=discard --rw=randtrim --io_size=16M --number_ios=2500 --thinktime=2ms
sync /dev/mapper/t
echo "$(field victims t) victims, $(field checkpoints t) checkpoints, trimmed $(field trimmed t)"
test "$(field victims t)" -ge 10
test "$(field trimmed t)" -ge 1000
# One in all, as the log grows.
test $(($(field checkpoints t) * 20)) -le "$(field victims t)"
dd if=/dev/mapper/t bs=64k iflag=direct status=none | md5sum > before
dmsetup remove t
dmsetup create t --table "$line"
dd if=/dev/mapper/t bs=64k iflag=direct status=none | md5sum | cmp - before
dmsetup remove t
mtftl check /dev/nullb0
