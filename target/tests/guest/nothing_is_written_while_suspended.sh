#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Also without a flush: lanes, GC and checkpoints stop until the resume.
#
# clock: wall
# cpus: 2
# profile: none
# timeout: 1200

set -e
. ./guest.sh

null nullb0 size=96
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
verify /dev/mapper/t --size=100% --io_size=60M --do_verify=0
writes() { test "$(field written t)" -gt $before; }
for turn in $(seq 12); do
	before=$(field written t)
	fio --name=job --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=16 \
		--time_based --runtime=1h --randseed=$turn --output=fio.log --eta=never &
	job=$!
	until_true 60 writes
	usleep $((turn * 60000))
	dmsetup message t 0 gc
	[ $((turn % 3)) != 0 ] || dmsetup message t 0 checkpoint &
	dmsetup suspend --nolockfs --noflush t
	quiet nullb0 300000
	kill -0 $job
	dmsetup resume t
	kill -INT $job
	wait
done
test "$(field victims t)" -gt 0
dmsetup remove t
mtftl check /dev/nullb0
