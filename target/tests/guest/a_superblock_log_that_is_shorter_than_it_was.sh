#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The newest record that is left says that the device was stopped cleanly. What came later is
# there too.
#
# clock: wall
# cpus: 2
# profile: none

set -e
. ./guest.sh

for i in 0 1; do null nullb$i size=64; done
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
dmsetup remove t
records() { zones /dev/nullb0 | awk 'NR == 1 { print $2 / 8 }'; }
before=$(records)
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 4096 1024 | dd of=/dev/mapper/t bs=64k seek=256 iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
copy /dev/nullb0 /dev/nullb1 0 $(($(records) - before))
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb1 lanes 1)"
echo "$(judge /dev/mapper/t 4096 1024) blocks are not there"
test $(judge /dev/mapper/t 0 2048) = 0
test $(judge /dev/mapper/t 4096 1024) = 0
dmesg | grep 'newer records are missing'
dmsetup remove t
mtftl check /dev/nullb1
