#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# After a crash: what is there can be read, and the device stays as it is, byte for byte and zone
# for zone.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

for i in 0 1; do null nullb$i size=64; done
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
copy /dev/nullb0 /dev/nullb1
dmsetup remove t
sum() { ./blocks sum /dev/nullb1; blkzone report /dev/nullb1 | md5sum; }
sum > before
dmsetup create t --readonly --table "$(table /dev/nullb1 lanes 1)"
dmsetup status t | grep 'mtftl read-only'
test $(judge /dev/mapper/t 0 2048) = 0
fails dmsetup message t 0 checkpoint
dmsetup message t 0 gc
dmsetup suspend t
dmsetup resume t
test $(judge /dev/mapper/t 0 2048) = 0
dmsetup remove t
sum | cmp - before
dmsetup create t --table "$(table /dev/nullb1 lanes 1)"
dmsetup status t | grep 'mtftl rw'
test $(judge /dev/mapper/t 0 2048) = 0
dmsetup remove t
mtftl check /dev/nullb1
