#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The checkpoints' zones and all empty ones turn read-only, and there was no stop: it mounts,
# read-only.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --do_verify=1 --end_fsync=1
zones /dev/nullb0 | while read -r start written condition; do
	[ "$start" -lt 16384 ] || { [ "$start" -ge 32768 ] && [ "$condition" != 1 ]; } ||
		echo "$start" > /sys/kernel/config/nullb/nullb0/zone_readonly
done
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb0)"
dmesg | grep 'read-only: no zones are left for a checkpoint'
verify /dev/mapper/t --size=32M --verify_only=1
fails dd if=/dev/zero of=/dev/mapper/t bs=4k count=1 oflag=direct status=none
dmsetup remove t
