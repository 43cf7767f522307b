#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Many discards of blocks that are not mapped wait behind others for room: the worker that serves
# them reschedules.
#
# clock: virtual
# cpus: 1
# profile: none
# judge: test_flush.py

set -e
. ./guest.sh

null nullb0 size=65536 zone_size=256
dmsetup create layer --table "0 $(cat /sys/class/block/nullb0/size) linear /dev/nullb0 0"
mtftl format --op 10% /dev/mapper/layer > /dev/null
dmsetup create t --table "$(table /dev/mapper/layer lanes 1)"
# Each record of a discard covers 4 MiB: more of them than there is room for.
fio --name=fill --filename=/dev/mapper/t --rw=write:4092k --bs=4k --direct=1 --ioengine=libaio --iodepth=32 \
	--io_size=4M --output=fill.log
sync /dev/mapper/t
dmsetup suspend --nolockfs --noflush layer
blkdiscard -f /dev/mapper/t &
discard=$!
usleep 500000
(while :; do :; done) &
hog=$!
trace=/sys/kernel/tracing
echo 'prev_comm ~ "kworker*" || next_comm ~ "kworker*"' > $trace/events/sched/sched_switch/filter
echo 1 > $trace/events/sched/sched_switch/enable
dmsetup resume layer
wait $discard
echo 0 > $trace/tracing_on
kill $hog
test "$(field trimmed t)" -gt 0
# The longest time for which a worker kept the CPU, in microseconds.
at='s/.* ([0-9]+)\.([0-9]+): sched_switch: prev_comm=(.*) prev_pid.*next_comm=(.*) next_pid.*/\1\2 \3 \4/p'
sed -nE "$at" $trace/trace |
	awk '$2 ~ /kworker/ && since { if ($1 - since > most) most = $1 - since } { since = $3 ~ /kworker/ ? $1 : 0 }
		END { print "longest", most }'
dmsetup remove t
