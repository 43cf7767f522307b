#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A reset has failed, and each pause begins before GC knows whether the device answers: still it
# is tried again.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small flash.read_ns=20000000
# needs: hold

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 1)"
# Two zones with garbage alone.
for turn in 1 2; do
	dd if=/dev/zero of=/dev/mapper/t bs=1M count=16 oflag=direct conv=fsync status=none
done
holds reset
dmsetup message t 0 gc
until_true 10 is_held reset
go reset
for turn in $(seq 40); do
	dmsetup suspend --nolockfs --noflush t
	dmsetup resume t
	! saw 'resetting -> empty' || break
done
echo "$turn pauses"
grep mtftl_zone_state /sys/kernel/tracing/trace
saw 'resetting -> empty'
dmsetup remove t
mtftl check /dev/nvme0n1
