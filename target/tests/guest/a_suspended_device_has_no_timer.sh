#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Users were slowed when the suspend came. While nothing is written none is slowed, so no timer
# ticks.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=64 zone_size=1
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 2 low_water 32)"
fio --name=w --filename=/dev/mapper/t --rw=randwrite --bs=4k --direct=1 --ioengine=io_uring --iodepth=8 \
	--io_size=1G --time_based --runtime=60 --output=fio.log &
job=$!
trace=/sys/kernel/tracing
echo 1 > $trace/events/timer/hrtimer_expire_entry/enable
# A target that is built in has no name of a module behind its functions.
ticks() { grep -c 'function=tick \(\[dm_mtftl\] \)\?now=' $trace/trace; }
until_true 20 ticks
dmsetup suspend --nolockfs --noflush t
echo > $trace/trace
usleep 50000
echo "ticks: $(ticks)"
test "$(ticks)" -le 1
dmsetup resume t
written_without_error
# The kernel closes io_uring's files after their process.
until_true 1 dmsetup remove t
mtftl check /dev/nullb0
