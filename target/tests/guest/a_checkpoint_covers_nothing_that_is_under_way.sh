#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A write is at the drive when a checkpoint begins: once it is flushed, it is there after a cut.
#
# The checkpoint must not count the write's number and copy the map without it.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

zones_apart
put 10000 0 8 ,fsync
echo 1 > /sys/kernel/tracing/events/mtftl/enable
zone=$(with_room)
dmsetup suspend --nolockfs --noflush "zone$zone"
put 0 0 8 ,fsync &
writer=$!
until_true 10 saw "submitted: .* data .* zone $zone "
dmsetup message t 0 checkpoint &
checkpoint=$!
# It waits for the write, or has ended without it.
has_begun() { [ ! -d /proc/$checkpoint ] || waits $checkpoint mtftl_flush_sync; }
until_true 10 has_begun
dmsetup resume "zone$zone"
wait $writer
wait $checkpoint
cut_zones
test "$(judge /dev/mapper/t 0 8)" = 0
ends
