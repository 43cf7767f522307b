#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A zone that retires, blocks that are lost, a device that turns read-only; and many at once are a
# few events.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
fails heard true
before=$(dmsetup info -c --noheadings -o events t)
heard fail_checkpoint_zones /dev/nullb0 t
usleep 3000000
test $(($(dmsetup info -c --noheadings -o events t) - before)) -le 2
lose() {
	echo $(($1 * 8192)) > /sys/kernel/config/nullb/nullb0/zone_offline
	dmsetup message t 0 gc
	until_true 10 lost
}
lost() { [ "$(field lost t)" -gt 0 ]; }
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
numbered 0 900 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
usleep 3000000
heard lose $zone
usleep 3000000
end() {
	for zone in 0 1; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
	fails dmsetup message t 0 checkpoint
}
heard end
dmsetup status t | grep 'mtftl read-only'
dmsetup remove t
