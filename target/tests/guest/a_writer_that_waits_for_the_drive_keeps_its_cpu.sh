#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A writer sleeps in the drive's queue: it does not lack its CPU, so it is not moved to another
# one.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

null nullb0 size=32 zone_size=1
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
places() {
	for comm in $(grep -l '^mtftl/' /proc/[0-9]*/comm); do
		grep Cpus_allowed_list ${comm%comm}status
	done
}
places > before
cat before
holds submit
dd if=/dev/zero of=/dev/mapper/t bs=4k count=1 oflag=direct status=none
until_true 10 is_held submit
for look in $(seq 20); do
	usleep 20000
	places | cmp - before
done
go submit
sync /dev/mapper/t
dmsetup remove t
