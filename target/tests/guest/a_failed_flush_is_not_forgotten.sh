#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The device could not flush, and what it dropped is not known: no later flush may say that all is
# well.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=64 cache_size=1
mtftl format --op 30% /dev/nullb0 > /dev/null
flaky_is 0
dmsetup create t --table "$(table /dev/mapper/flaky lanes 2)"
numbered 0 1024 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
numbered 0 64 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
wait_for 'fill 0,0'
flaky_is 3600 error_writes
fails sync /dev/mapper/t
flaky_is 0
fails sync /dev/mapper/t
dmsetup status t | grep 'mtftl read-only'
dmesg | grep 'read-only: a flush failed'
test $(judge /dev/mapper/t 0 1024) = 0
dmsetup remove t
dmsetup create t --table "$(table /dev/mapper/flaky lanes 2)"
test $(judge /dev/mapper/t 0 1024) = 0
dmsetup status t | grep 'mtftl rw'
sync /dev/mapper/t
dmsetup remove t flaky
mtftl check /dev/nullb0
