#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A mover found blocks alive, and users write them before its unit goes out: theirs are there,
# after a cut too.
#
# Another module holds the mover: what it does in between waits for nothing that a device could
# delay.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
# The first zone becomes full, and a third of it garbage.
put 10000 0 480 ,fsync
put 20000 0 64 ,fsync
holds gc
dmsetup message t 0 gc
until_true 10 is_held gc
fails saw 'submitted: .* gc'
# All that it may have found.
put 0 0 480 ,fsync
go gc
until_true 10 gained
grep 'completed: .* gc seq' /sys/kernel/tracing/trace
test "$(judge /dev/mapper/t 0 480)" = 0
cut_power
now=$(judge /dev/mapper/t 0 480) || true
echo "after the cut: $now"
test "$now" = 0
ends
