#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Of eight CPUs every second one is off: each of the four writes to the lane that lies on it.
#
# clock: virtual
# cpus: 8
# profile: none
# judge: test_target.py

set -e
. ./guest.sh

for cpu in 1 3 5 7; do echo 0 > /sys/devices/system/cpu/cpu$cpu/online; done
null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
dmsetup status t | grep 'lanes 4 '
trace=/sys/kernel/tracing
echo 20000 > $trace/buffer_size_kb
fio --name=w --filename=/dev/mapper/t --rw=randwrite --bs=4k --direct=1 --ioengine=io_uring --iodepth=8 --numjobs=4 \
	--cpus_allowed=0,2,4,6 --cpus_allowed_policy=split --ramp_time=50ms --time_based --runtime=300ms --output=fio.log &
job=$!
usleep 200000
echo 1 > $trace/events/mtftl/mtftl_insert/enable
wait $job
for cpu in 0 2 4 6; do
	sed -n "s/.*\[00$cpu\].* mtftl_insert: .* lane \([0-9]*\) .*/\1/p" $trace/trace > lanes
	echo "CPU $cpu: $(grep -c $((cpu / 2)) lanes) of $(wc -l < lanes) writes"
done
dmsetup remove t
