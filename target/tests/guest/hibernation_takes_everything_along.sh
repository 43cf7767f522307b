#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Under load, with GC at work: nothing is written after the image is taken, nor before what wakes
# up goes on.
#
# clock: wall
# cpus: 2
# profile: tlc
# device: small
# timeout: 1200
# needs: swap
# judge: test_faults.py

set -e
. ./guest.sh

for drive in /dev/nvme0n1 /dev/nvme1n1; do
	until [ -e /sys/class/block/${drive#/dev/}/queue/zoned ]; do usleep 10000; done
	case $(cat /sys/class/block/${drive#/dev/}/queue/zoned) in
	none) other=$drive;;
	*) zoned=$drive controller=${drive%n1};;
	esac
done
mtftl format --op 30% $zoned > /dev/null
dmsetup create t --table "$(table $zoned lanes 2)"
# Where the image goes: another drive.
mkswap $other > /dev/null
swapon $other
echo 0 > /sys/power/image_size
cat /sys/class/block/${other#/dev/}/dev > /sys/power/resume
echo test_resume > /sys/power/disk
gc_works() { dmsetup status t | grep -q 'gc active'; }
for turn in 1 2; do
	fio --name=load --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=16 \
		--offset=32M --size=32M --time_based --runtime=1h --output=load.log --eta=never &
	load=$!
	verify /dev/mapper/t --size=16M --io_size=48M --randseed=$turn --do_verify=0 --eta=never
	# GC has a lot to do, on slow dies: it would be at work all the while.
	dmsetup message t 0 low_water 12
	for die in 0 1 2 3; do flash 0x17 $die 2000; done
	until_true 60 gc_works
	before=$(field victims t)
	echo disk > /sys/power/state
	echo "woke up, $before victims before, $(field victims t) now, $(field free t) zones free"
	flash 0x1f 0
	verify /dev/mapper/t --size=16M --io_size=48M --randseed=$turn --verify_only=1 --eta=never
	kill -INT $load
	wait $load || true
	dmsetup status t | grep -o 'mtftl rw'
	test "$(field write_errors t)" = 0
done
dmesg | grep -c 'PM: hibernation: Image restored successfully\|hibernation: hibernation exit'
swapoff $other
# The kernel closes io_uring's files after their process.
until_true 60 dmsetup remove t
mtftl check $zoned
