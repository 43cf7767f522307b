#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A flush fails before a reset. The zones count as coming, so only GC asks for them again.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 cache_size=1
mtftl format --op 30% /dev/nullb0 > /dev/null
flaky_is 0
dmsetup create t --table "$(table /dev/mapper/flaky)"
# Zones without valid data, all of it durable.
for turn in 1 2; do dd if=/dev/zero of=/dev/mapper/t bs=1M count=32 oflag=direct conv=fsync status=none; done
flaky_is 3600 error_writes
dmsetup message t 0 gc
wait_for 'resetting [1-9]'
flaky_is 0
wait_for 'resetting 0'
test "$(field bad t)" = 0

echo it says so when the device does not answer at all
flaky_is 3600
dmsetup message t 0 gc
wait_for 'mtftl read-only'
dmesg | grep -q 'read-only: the device does not answer'
