#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Zone after zone fails until none of the others is worth collecting: writes end with errors, not
# never.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=128
mtftl format --op 5% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
size=$(blockdev --getsize64 /dev/mapper/t)
fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --end_fsync=1 --output=fill.log
for zone in 9 10 11 12 13 14 15; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
fails fio --name=job --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --io_size=$((2 * size)) --output=fio.log
wait_for read-only
dmesg | grep 'read-only: no zone is left'
dd if=/dev/mapper/t of=/dev/null bs=1M iflag=direct status=none
dmsetup remove t
mtftl check /dev/nullb0
