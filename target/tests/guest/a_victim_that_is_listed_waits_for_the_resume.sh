#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A zone without a footer: GC reads a header for each of many units, until a suspend, and again
# after it.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
line=$(table /dev/nvme0n1 lanes 1 write_unit 1)
dmsetup create t --table "$line"
numbered 0 400 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
# What is open at a mount gets no footer.
dmsetup load t --table "$line"
dmsetup resume t
numbered 400 4000 | dd of=/dev/mapper/t bs=64k seek=25 iflag=fullblock oflag=direct conv=fsync status=none
# Little is left of what was there before: the best victim.
numbered 0 300 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
for die in 0 1 2 3; do flash 0x17 $die 5000; done > /dev/null
dmsetup message t 0 gc
silently() { fails gained; usleep 3000000; fails gained; }
for turn in 1 2; do
	usleep 200000
	dmsetup suspend --nolockfs --noflush t
	silent silently
	dmsetup resume t
done
until_true 30 gained
fails grep 'found by the map alone' <(dmesg)
test $(judge /dev/mapper/t 0 4400) = 0
dmsetup remove t
mtftl check /dev/nvme0n1
