#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# One byte of a block, or of its metadata, changes on the medium: GC sees it, and the block reads as
# an error. All others are moved.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: metadata ms=16
# cases: data metadata

set -e
. ./guest.sh

drive=/dev/nvme0n1
# One zone to a file and back, with one byte of its block 230 changed: of its data, or of its metadata.
mtftl format --op 30% $drive > /dev/null
dmsetup create t --table "$(table $drive lanes 1 placement none)"
numbered 0 4096 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
dmsetup remove t
zone=$(zones $drive | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
at=$((zone * 256))
for half in 0 128; do
	nvme read $drive -s $((at + half)) -c 127 -z 524288 -y 2048 -d data$half -M meta$half > /dev/null
done
case $1 in
data) printf x | dd of=data128 bs=1 seek=$((102 * 4096 + 100)) conv=notrunc status=none;;
metadata) printf x | dd of=meta128 bs=1 seek=$((102 * 16 + 5)) conv=notrunc status=none;;
esac
blkzone reset -o $((at * 8)) -c 1 $drive
for half in 0 128; do
	nvme write $drive -s $((at + half)) -c 127 -z 524288 -y 2048 -d data$half -M meta$half > /dev/null
done
dmsetup create t --table "$(table $drive lanes 1 placement none)"
test "$(field victims t)" = 0
numbered 0 200 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
dmsetup message t 0 gc
for i in $(seq 100); do
	[ "$(field victims t)" = 0 ] || break
	usleep 100000
done
test "$(field lost t)" = 1
test $(judge /dev/mapper/t 0 4096) = 1
dmsetup remove t
