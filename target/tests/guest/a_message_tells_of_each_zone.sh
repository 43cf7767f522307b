#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The message "zones" has a line for each zone, which agrees with the status line. Two
# times in that line count from the mount, a reset of the counters, and the last fault.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=2048
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 4000 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
numbered 0 64 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
blkdiscard -o $((100 * 4096)) -l $((10 * 4096)) /dev/mapper/t
sync
closed() { dmsetup message t 0 zones > zones && fails grep -q '^closing ' zones; }
until_true 10 closed
test $(wc -l < zones) = 512
awk '{ valid += $3; erases += $4; state[$1]++ } $3 > $2 { exit 1 }
	END { print state["empty"], state["full"], valid, erases }' zones > told
echo "$(field free t) $(field full t) $(field mapped t) $(field wear_total t)" | cmp - told
test "$(field mapped t)" = 3990
grep -qE '^full 10[0-9]{2} [0-9]+ 0 [1-9]' zones
grep -qE '^checkpoint ' zones
test $(grep -c '^super ' zones) = 2

usleep 3000000
test "$(field seconds t)" -ge 3
# From one line: a second may end between two.
dmsetup status t | grep -E ' seconds ([0-9]+) unchanged \1 '
dmsetup message t 0 reset_stats
test "$(field seconds t)" = 0
test "$(field unchanged t)" -ge 3
for zone in 2 3; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
dmsetup message t 0 checkpoint
dmsetup message t 0 checkpoint
test "$(field bad t)" -ge 1
test "$(field unchanged t)" -le 1
dmsetup remove t
