#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A reset's flush fails while a user's unit is in flight, and nothing else was written since the
# flush before. The drive may have dropped that unit: no later flush may call it durable.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

zones_apart cache_size=1
# One zone holds garbage alone: GC moves nothing.
put 10000 0 480
put 20000 0 360 ,fsync
holds flush
dmsetup message t 0 gc
until_true 10 is_held flush

open=$(with_room)
for zone in $open; do dmsetup suspend --nolockfs --noflush zone$zone; done
echo > /sys/kernel/tracing/trace
put 30000 0 1
until_true 10 saw 'mtftl_unit_submitted: .* data '
go flush
until_true 10 saw 'mtftl_flush: .* error -5'
fails saw 'mtftl_unit_completed: '
for zone in $open; do dmsetup resume zone$zone; done
until_true 10 saw 'mtftl_unit_completed: .* status 0'
fails sync /dev/mapper/t
says 'read-only: a flush failed'
dmsetup remove t
