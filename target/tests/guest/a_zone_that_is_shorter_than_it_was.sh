#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What it held beyond its write pointer reads as errors, also when the zone is written again, and
# after a crash.
#
# clock: virtual
# cpus: 2
# profile: none
# cases: clean crash

set -e
. ./guest.sh

for i in 0 1 2; do null nullb$i size=128; done
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
dmsetup message t 0 checkpoint
sync /dev/mapper/t
[ "$1" = crash ] || dmsetup remove t
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
copy /dev/nullb0 /dev/nullb1 $zone 150
[ ! -e /dev/mapper/t ] || dmsetup remove t

dmsetup create t --table "$(table /dev/nullb1 lanes 1)"
lost=$(judge /dev/mapper/t 0 2048)
echo "lost $lost"
test $lost -gt 100
test "$(field lost t)" = $lost
dmesg | grep "$lost blocks are lost"
numbered 4096 3072 | dd of=/dev/mapper/t bs=64k seek=256 iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
test $(judge /dev/mapper/t 0 2048) = $lost
copy /dev/nullb1 /dev/nullb2
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb2 lanes 1)"
test $(judge /dev/mapper/t 0 2048) = $lost
test $(judge /dev/mapper/t 4096 3072) = 0
dmsetup remove t
mtftl check /dev/nullb2
