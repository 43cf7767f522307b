#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A plain dd onto the drive: where it fails the log stays in its zone, else the kernel says so.
#
# clock: virtual
# cpus: 2
# profile: none
# kernels: 6.12 current

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
mtftl open /dev/nullb0 t
log() { zones /dev/nullb0 | awk 'NR == 1 { print $2 / 8 }'; }
dd if=/dev/zero of=/dev/mapper/t bs=64k count=4 oflag=direct conv=fsync status=none
before=$(log)
fails dd if=/dev/zero of=/dev/nullb0 bs=4k count=4 oflag=direct status=none
dmsetup message t 0 checkpoint
test "$(log)" = $((before + 1))
mtftl close t
mtftl open /dev/nullb0 t
dd if=/dev/zero of=/dev/mapper/t bs=64k count=4 oflag=direct conv=fsync status=none
dd if=/dev/zero of=/dev/nullb0 bs=4k count=3 seek=$(log) oflag=direct status=none
dmesg -c > /dev/null
dmsetup message t 0 checkpoint
dmesg | grep 'superblock log: zone 0 is written up to block .* or by another program'
dmsetup status t | grep 'mtftl rw'
verify /dev/mapper/t --size=16M --do_verify=1
mtftl close t
mtftl check /dev/nullb0
