#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The drive's physical blocks begin at its second sector: that is no matter of users.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: scsi

set -e
. ./guest.sh

modprobe sd_mod
modprobe scsi_debug zbc=managed dev_size_mb=64 zone_size_mb=4 zone_nr_conv=1 delay=0 \
	sector_size=512 physblk_exp=3 lowest_aligned=1
until [ -b /dev/sda ] && [ "$(blockdev --getsz /dev/sda)" -gt 0 ]; do usleep 10000; done
test "$(cat /sys/block/sda/alignment_offset)" != 0
mtftl format --op 30% /dev/sda > /dev/null
mtftl open /dev/sda t
disk=/sys/block/$(lsblk -ndo KNAME /dev/mapper/t)
grep . "$disk/alignment_offset" "$disk/discard_alignment" "$disk/queue/physical_block_size"
test "$(cat "$disk/alignment_offset")" = 0
test "$(cat "$disk/discard_alignment")" = 0
test "$(cat "$disk/queue/physical_block_size")" = 4096
