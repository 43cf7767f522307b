#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Reads of more than a block come back with a byte changed: GC reads those blocks again, one by
# one.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
zone_is -
dmsetup create t --table "$(table /dev/mapper/flaky lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
numbered 0 900 | dd of=/dev/mapper/t bs=4k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
zone_is $zone corrupt_bio_byte 5000 r 7 0
dmsetup message t 0 gc
until_true 10 gained
zone_is -
test "$(field lost t)" = 0
test $(judge /dev/mapper/t 0 2048) = 0
dmsetup remove t
