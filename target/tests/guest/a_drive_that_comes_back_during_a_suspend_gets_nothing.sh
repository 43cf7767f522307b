#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A drive hung for longer than the suspend waits, with a record of the log half done. The rest of
# the record waits for the resume.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=32 zone_size=1
dmsetup create layer --table "0 $(cat /sys/class/block/nullb0/size) linear /dev/nullb0 0"
mtftl format --op 30% /dev/mapper/layer > /dev/null
dmsetup create t --table "$(table /dev/mapper/layer lanes 1)"
dmsetup suspend --nolockfs --noflush layer
# The log has to say first that the device is in use: a flush, then a record.
dd if=/dev/zero of=/dev/mapper/t bs=64k count=4 oflag=direct conv=fsync status=none &
job=$!
usleep 100000
dmsetup suspend --nolockfs --noflush t
events=/sys/kernel/tracing/events/block/block_bio_queue
IFS=: read -r major minor < /sys/block/dm-0/dev
echo "dev == $((major << 20 | minor))" > $events/filter
echo 1 > $events/enable
dmsetup resume layer
usleep 500000
echo 0 > $events/enable
fails grep block_bio_queue: /sys/kernel/tracing/trace
dmsetup resume t
wait $job
dmsetup remove t
mtftl check /dev/mapper/layer
