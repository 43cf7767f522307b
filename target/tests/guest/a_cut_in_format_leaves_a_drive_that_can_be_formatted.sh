#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The power goes while a drive with data is formatted anew: at a reset of a zone, or at a program. A
# mount refuses the drive, or finds a new device without data. The same command works then.
#
# clock: virtual
# cpus: 1
# profile: tlc
# device: small
# timeout: 300

set -e
. ./guest.sh

open_it() { dmsetup create t --table "$(table /dev/nvme0n1 lanes 1)"; }
mtftl format --op 30% /dev/nvme0n1 > /dev/null
refused=0 new=0
# cut_in_format ACTION N
cut_in_format() {
	open_it
	numbered 0 512 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
	dmsetup remove t
	flash "$1" "$2" > /dev/null
	if mtftl format --force --op 30% /dev/nvme0n1 > said 2>&1; then
		echo "cut $1 $2: it had ended"
		cut_machine > /dev/null
	fi
	power_on > /dev/null
	if open_it 2> said; then
		dd if=/dev/mapper/t bs=1M iflag=direct status=none | tr -d '\0' | cmp - /dev/null
		dmsetup remove t
		new=$((new + 1))
	else
		refused=$((refused + 1))
	fi
	mtftl format --force --op 30% /dev/nvme0n1 > /dev/null
	mtftl check /dev/nvme0n1 > /dev/null
}
for n in 1 2 3 5 8; do cut_in_format 0x4 $n; done
for n in 1 2 3; do cut_in_format 0x2 $n; done
echo "$refused refused, $new new"
test $refused -ge 3
test $new -ge 1
open_it
test "$(dd if=/dev/mapper/t bs=1M iflag=direct status=none | tr -d '\0' | wc -c)" = 0
dmsetup remove t
