#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A table is prepared for headers in blocks or in metadata. If the drive has the other ones when the
# table is resumed, the mount is refused; a new table works.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: metadata ms=16
# timeout: 200

set -e
. ./guest.sh

drive=/dev/nvme0n1
length() { table $drive | cut -d' ' -f2; }

mtftl format --headers metadata --op 30% $drive > /dev/null
wanted=$(length)
dd if=$drive of=record bs=4096 count=1 iflag=direct
# The same length for users with headers in blocks, which take more.
for permille in $(seq 299 -1 200); do
	mtftl format --force --headers blocks --op $((permille / 10)).$((permille % 10))% $drive > /dev/null
	test "$(length)" -ne "$wanted" || break
done
test "$(length)" -eq "$wanted"
table $drive > loaded
dmsetup create --notable t
dmsetup load t loaded
# As another host does: the table keeps mtftl format out.
nvme zns reset-zone -a $drive
head -c 16 /dev/zero > metadata
nvme write $drive --data-size=4096 --data=record --metadata-size=16 --metadata=metadata --force
fails dmsetup resume t
dmesg | grep 'headers take 0 blocks of a unit, expected 1: formatted anew'
dmsetup remove t
dmsetup create t loaded
verify /dev/mapper/t --size=8M --do_verify=1
dmsetup remove t
