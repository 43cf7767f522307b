#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The machine wakes up while a suspend begins, and a signal ends that suspend: writes must go on.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
dd if=/dev/zero of=/dev/mapper/t bs=64k count=10 oflag=direct status=none
holds wake presuspend
# As far as devices sleep, and back.
echo devices > /sys/power/pm_test
echo disk > /sys/power/state &
machine=$!
until_true 60 is_held wake
# It waits for the wake-up, and the suspend for it.
{ dd if=/dev/zero of=/dev/mapper/t bs=64k count=100 oflag=direct conv=fsync status=none; touch wrote; } &
usleep 100000
fails test -e wrote
dmsetup suspend --nolockfs t &
suspend=$!
until_true 10 is_held presuspend
go wake
wait $machine
kill $suspend
go presuspend
wait $suspend || true
# What was written by then, it did not have to wait for.
dmsetup info t | grep 'State: *ACTIVE' || dmsetup resume t
until_true 20 test -e wrote
dmsetup remove t
mtftl check /dev/nullb0
