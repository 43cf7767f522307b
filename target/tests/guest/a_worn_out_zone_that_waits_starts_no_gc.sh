#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A worn-out zone cannot be read for a while. GC leaves it for later, and collects nothing in its
# place, because zones are not short. Then it is cleared.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
zone_is -
line=$(table /dev/mapper/flaky lanes 1)
dmsetup create t --table "$line"
numbered 0 3000 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
# In the other full zones is garbage too.
numbered 1200 1800 | dd of=/dev/mapper/t bs=4k seek=1200 iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
dmsetup remove t
echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly
zone_is $zone
dmsetup create t --table "$line"
until_true 10 says "zone $zone: read failed"
# It is tried once more, and no other zone is.
for turn in $(seq 15); do
	[ "$(dmesg | grep -c "zone $zone: read failed")" -lt 2 ] || break
	usleep 1000000
done
test "$turn" -gt 8
dmsetup status t
test "$(dmesg | grep -c "zone $zone: read failed")" = 2
test "$(field victims t)" = 0
zone_is -
wait_for 'bad 1'
wait_for 'gc idle'
test "$(field victims t)" = 1
test $(judge /dev/mapper/t 0 3000) = 0
dmsetup remove t
