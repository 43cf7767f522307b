#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Blocks that are discarded or zeroed read as zeroes, live, after a flush and after a stop.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
tr '\0' 'x' < /dev/zero | head -c 8m > ones
dd if=ones of=/dev/mapper/t bs=1M oflag=direct status=none
blkdiscard -o 1M -l 2M /dev/mapper/t
blkdiscard -z -o 5M -l 4k /dev/mapper/t
sync /dev/mapper/t
expected() { head -c 1m ones; head -c 2m /dev/zero; head -c 2m ones; head -c 4k /dev/zero; head -c 3141632 ones; }
expected | cmp - <(dd if=/dev/mapper/t bs=1M count=8 iflag=direct status=none)
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb0)"
expected | cmp - <(dd if=/dev/mapper/t bs=1M count=8 iflag=direct status=none)
dmsetup remove t
