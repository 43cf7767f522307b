#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A verifying job runs while its device is suspended, reloaded with other options, and CPUs go and
# come.
#
# clock: wall
# cpus: 4
# profile: none
# timeout: 600

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 4)"
work() {
	verify /dev/mapper/t --size=64M --io_size=96M --rate_iops=400 --do_verify=1 &
	job=$!
}
works() { kill -0 $job 2> /dev/null; }
work
turns=0
# However slow turns are beside a job: three of them at least.
until [ $turns -ge 3 ] && ! works; do
	works || { wait $job; work; }
	dmsetup suspend t; dmsetup resume t
	dmsetup suspend --noflush --nolockfs t; dmsetup resume t
	dmsetup load t --table "$(table /dev/nullb0 lanes $((turns % 3 + 1)) write_unit $((turns % 7 + 1)))"
	dmsetup resume t
	dmsetup load t --table "$(table /dev/nullb0 lanes 4)"
	dmsetup suspend --noflush --nolockfs t
	dmsetup resume t
	echo 0 > /sys/devices/system/cpu/cpu1/online
	dmsetup message t 0 gc
	echo 1 > /sys/devices/system/cpu/cpu1/online
	turns=$((turns + 1))
done
wait $job
test "$(field write_errors t)" = 0
dmsetup remove t
mtftl check /dev/nullb0
