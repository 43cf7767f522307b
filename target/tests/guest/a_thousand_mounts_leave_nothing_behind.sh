#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Mounted, written, stopped, again and again. Then kmemleak looks for memory without a pointer to
# it.
#
# clock: wall
# cpus: 2
# profile: none
# timeout: 400
# needs: kasan

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
line=$(table /dev/nullb0 lanes 2)
for turn in $(seq 1000); do
	dmsetup create t --table "$line"
	dd if=/dev/zero of=/dev/mapper/t bs=64k count=2 oflag=direct conv=fsync status=none
	dmsetup remove t
done
# It takes objects of the last 5 seconds for live ones, and two scans to be sure.
sleep 6
for turn in 1 2; do echo scan > /sys/kernel/debug/kmemleak; done
cat /sys/kernel/debug/kmemleak
test -z "$(cat /sys/kernel/debug/kmemleak)"
