#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Unloaded and loaded between two mounts; refused while a device is there. What was written stays.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: loadable

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
line=$(table /dev/nullb0 lanes 2)
for turn in 1 2 3; do
	dmsetup create t --table "$line"
	if [ $turn -gt 1 ]; then cmp -n 1048576 /dev/mapper/t data; fi
	head -c 1048576 /dev/urandom > data
	dd if=data of=/dev/mapper/t bs=64k oflag=direct status=none
	if rmmod dm_mtftl; then exit 1; fi
	dmsetup remove t
	rmmod dm_mtftl
	if dmsetup targets | grep mtftl; then exit 1; fi
	insmod /lab/dm-mtftl.ko
done
mtftl check /dev/nullb0
