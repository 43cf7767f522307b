#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What waits goes back when device-mapper holds it: until then that sends it again, and may say
# EAGAIN.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small
# append: preempt=full
# timeout: 200

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2 buffer_entries 128)"
fio --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=64 --numjobs=2 \
	--time_based --runtime=60 --name=job --output=fio.log --eta=never &
job=$!
for turn in $(seq 100); do
	usleep $((3000 + turn * 7))
	dmsetup suspend --nolockfs --noflush t
	dmsetup resume t
done
kill -0 $job
killall -INT fio
wait $job || true
cat fio.log
fails grep 'err=[^ ]*[1-9]' fio.log
# The kernel closes io_uring's files after their process.
until_true 1 dmsetup remove t
mtftl check /dev/nvme0n1
