#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The drive makes a zone of the superblock log read-only: the kernel says so, and the log goes on in
# the other zone. Without that one too, the device turns read-only, and all can be read.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

retire() { echo $(($1 * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; }
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
mtftl open /dev/nullb0 t lanes=1
numbered 0 64 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
retire 0
dmsetup message t 0 checkpoint
dmesg | grep 'superblock log: zone 0 is read-only or offline, trying the other zone'
test -z "$(dmesg | grep 'another program')"
dmsetup status t | grep 'mtftl rw'
test "$(zones /dev/nullb0 | awk 'NR == 2 { print $2 }')" = 8

# After a stop too.
mtftl close t
mtftl open /dev/nullb0 t lanes=1
numbered 64 64 | dd of=/dev/mapper/t bs=64k seek=4 iflag=fullblock oflag=direct conv=fsync status=none
dmsetup message t 0 checkpoint
dmsetup status t | grep 'mtftl rw'

retire 1
fails dmsetup message t 0 checkpoint
dmesg | grep 'superblock log: zone 1 is read-only or offline, trying the other zone'
dmsetup status t | grep 'mtftl read-only'
test "$(judge /dev/mapper/t 0 128)" = 0
dmsetup remove t
mtftl open --readonly /dev/nullb0 t
test "$(judge /dev/mapper/t 0 128)" = 0
mtftl close t
