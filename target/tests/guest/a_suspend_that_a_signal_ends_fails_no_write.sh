#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Device-mapper sends bios again before the target hears that the suspend has ended: they are not
# given back.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

null nullb0 size=32 zone_size=1
dmsetup create layer --table "0 $(cat /sys/class/block/nullb0/size) linear /dev/nullb0 0"
mtftl format --op 30% /dev/mapper/layer > /dev/null
dmsetup create t --table "$(table /dev/mapper/layer lanes 1 buffer_entries 128)"
dd if=/dev/zero of=/dev/mapper/t bs=4k count=1 oflag=direct conv=fsync status=none
dmsetup suspend --nolockfs --noflush layer
# The drive has this one, so the suspend waits for it.
dd if=/dev/mapper/t of=/dev/null bs=4k count=1 iflag=direct status=none &
reader=$!
hangs $reader
dd if=/dev/zero of=/dev/mapper/t bs=64k count=100 oflag=direct conv=fsync status=none &
writer=$!
hangs $writer
holds undo
dmsetup suspend --nolockfs --noflush t &
suspend=$!
until_true 10 waits $suspend dm_wait_for_completion
kill $suspend
until_true 10 is_held undo
usleep 20000
go undo
fails wait $suspend
dmsetup resume layer
wait $reader
wait $writer
dmsetup remove t
mtftl check /dev/mapper/layer
