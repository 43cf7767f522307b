#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Two tables with one superblock, on a layer or on a copy of the drive: the second is refused, in
# either order.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0
null nullb1
mtftl format --op 30% /dev/nullb0 > /dev/null
copy /dev/nullb0 /dev/nullb1
dmsetup create layer --table "0 $(cat /sys/class/block/nullb0/size) linear /dev/nullb0 0"
for first in /dev/nullb0 /dev/mapper/layer; do
	dmsetup create t --table "$(table $first)"
	for second in /dev/nullb0 /dev/mapper/layer /dev/nullb1; do
		fails dmsetup create u --table "$(table $second)" 2> said
		grep 'Device or resource busy' said
	done
	dmesg | grep 'has the same superblock as .*, which another mtftl device uses, expected one for each drive'
	dmesg -c > /dev/null
	numbered 0 64 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
	# The same name may go over to another way to the drive.
	dmsetup load t --table "$(table /dev/mapper/layer)"
	dmsetup resume t
	test $(judge /dev/mapper/t 0 64) = 0
	dmsetup remove t
done
dmsetup create u --table "$(table /dev/nullb1)"
dmsetup remove u layer
mtftl check /dev/nullb0
