#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# All that is open, again and again, also the head of the log of map blocks: no write is lost for
# it, no zone retires, and nothing is read-only.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=96
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 4)"
finished=0
for round in $(seq 40); do
	numbered $((round * 64)) 256 |
		dd of=/dev/mapper/t bs=16k seek=$((round * 16)) iflag=fullblock oflag=direct conv=notrunc status=none
	sync /dev/mapper/t
	dmsetup message t 0 checkpoint
	while read -r start written condition; do
		[ $condition = 2 ] && [ $start -ge $((2 * 8192)) ] || continue
		blkzone finish -f -o $start -l 8192 /dev/nullb0
		finished=$((finished + 1))
	done < <(zones /dev/nullb0)
done
dmsetup status t
echo "$finished finished, $(field write_errors t) writes failed"
test "$(field checkpoints t)" -ge 40
test $finished -ge 40
test "$(field write_errors t)" -ge 20
test "$(field bad t)" = 0
if dmesg | grep retired; then exit 1; fi
dmsetup status t | grep 'mtftl rw'
test "$(judge /dev/mapper/t 64 2752)" = 0
dmsetup remove t
mtftl check /dev/nullb0
