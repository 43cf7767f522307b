#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A unit that the checkpoint waits for fails, and goes to a zone that was reset meanwhile: it is
# there after a cut.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

zones_apart
numbered 0 480 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
worn_least=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
# All others are erased twice, but for those blocks' second zone. So the first one will be opened before them.
fill() { dd if=/dev/zero of=/dev/mapper/t bs=64k seek=30 count=$1 oflag=direct status=none; }
until gained 60; do fill 220; done
sync /dev/mapper/t
until [ "$(with_room)" ]; do fill 1; sync /dev/mapper/t; done
failing=$(with_room)
echo 1 > /sys/kernel/tracing/events/mtftl/enable

# A reset waits, a write of users, and a checkpoint for that write.
dmsetup suspend --nolockfs --noflush zone$worn_least
blkdiscard -f -l 1M /dev/mapper/t 2> /dev/null
dmsetup message t 0 gc
until_true 10 saw "zone $worn_least victim -> resetting"
# Its flush is over, and it is the only one.
erasing() { [ "$(field resetting t)" = 1 ] && waits '*' blkdev_zone_mgmt; }
until_true 10 erasing
dmsetup suspend --nolockfs --noflush zone$failing
numbered 320 16 | dd of=/dev/mapper/t bs=64k seek=20 iflag=fullblock oflag=direct conv=fsync status=none &
writer=$!
until_true 10 saw "submitted: .* data .* zone $failing "
dmsetup message t 0 checkpoint &
checkpoint=$!
until_true 10 waits $checkpoint mtftl_flush_sync

dmsetup resume zone$worn_least
until_true 10 saw "zone $worn_least resetting -> empty"
dmsetup load zone$failing --table "0 2048 flakey /dev/nullb0 $((failing * 2048)) 0 3600 1 error_writes"
dmsetup resume zone$failing
wait $writer
wait $checkpoint
grep ' data ' /sys/kernel/tracing/trace
saw "completed: .* data .* zone $worn_least offset 0 status 0"

# The power goes.
cut_zones
lost=$(judge /dev/mapper/t 256 224)
echo "$lost blocks read as errors"
test "$lost" = 0
test "$(field lost t)" = 0
ends
