#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The drive has erased a zone, and says that the reset failed. GC comes back to the zone, and it is of
# use again.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
# Twice the same: nothing is left of the first zones.
for turn in 1 2; do put 0 0 2200 ,fsync; done
holds erased
dmsetup message t 0 gc
until_true 10 says 'reset failed'
is_held erased
zone=$(grep -o 'zone [0-9]* victim -> resetting' /sys/kernel/tracing/trace | head -1)
zone=${zone% victim*}
fails saw "$zone resetting -> empty"
comes_back() {
	dmsetup message t 0 gc
	saw "$zone resetting -> empty"
}
until_true 20 comes_back
test "$(field bad t)" = 0
test "$(judge /dev/mapper/t 0 2200)" = 0
cut_power
test "$(judge /dev/mapper/t 0 2200)" = 0
ends
