#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# GC comes back to the zone. Refused again, it is of no more use.
#
# clock: wall
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
zone_is -
dmsetup create t --table "$(table /dev/mapper/flaky lanes 1 gc_policy greedy)"
# Twice the same: nothing is left of the first two zones.
for turn in 1 2; do
	numbered 0 2200 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
	sync /dev/mapper/t
done
full=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1 }')
set -- $full
echo "full: $*"
is_empty() { zones /dev/nullb0 | awk -v zone=$1 'NR - 1 == zone { exit $3 != 1 }'; }
zone_is $1 error
# It is the first of those that hold nothing, and the last one when it was refused.
dmsetup message t 0 gc
until_true 10 says "zone $1: reset failed"
dmsetup message t 0 gc
until_true 20 is_empty $2
test "$(field bad t)" = 0
zone_is -
dmsetup message t 0 gc
until_true 20 is_empty $1
test "$(field bad t)" = 0
test $(judge /dev/mapper/t 0 2200) = 0
dmsetup remove t flaky
mtftl check /dev/nullb0
