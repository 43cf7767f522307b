#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A write failed, and the device pads its zone for longer than nothing may move: the only place
# that will come.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small
# timeout: 300

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 1)"
dd if=/dev/zero of=/dev/mapper/t bs=1M count=1 oflag=direct conv=fsync status=none
start=$(zones /dev/nvme0n1 | awk '$3 == 2 { start = $1 } END { print start }')
flash 0x17 0 10000
flash 0x11 $((start / 8)) 2048 1
dd if=/dev/zero of=/dev/mapper/t bs=64k count=1 seek=20 oflag=direct status=none
blkdiscard --offset 0 --length 65536 /dev/mapper/t
before=$(hundredths)
sync /dev/mapper/t
took=$(($(hundredths) - before))
echo "the flush took $took hundredths of a second"
test $took -gt 600
test "$(field write_errors t)" = 1
dmsetup status t | grep 'mtftl rw'
dmsetup remove t
mtftl check /dev/nvme0n1
