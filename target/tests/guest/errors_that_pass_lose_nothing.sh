#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A zone cannot be read for a while: GC leaves it for later, a mount is refused. Then all is
# there.
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
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
# Of that zone little is left: the best victim.
numbered 0 900 | dd of=/dev/mapper/t bs=4k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
zone_is $zone
dmsetup message t 0 gc
until_true 10 says "zone $zone: read failed" || test "$(field lost t)" = 0
echo "GC lost $(field lost t)"
test "$(field lost t)" = 0
zone_is -
test $(judge /dev/mapper/t 0 2048) = 0
dmsetup message t 0 gc
until_true 10 gained
test $(judge /dev/mapper/t 0 2048) = 0
numbered 0 1024 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t

echo now the mount
last=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { zone = NR - 1 } END { print zone }')
null nullb1 size=64
copy /dev/nullb0 /dev/nullb1
dmsetup remove t
dmsetup remove flaky
base=/dev/nullb1
zone_is $last
fails dmsetup create t --table "$line"
dmsetup remove t 2> /dev/null || true
zone_is -
dmsetup create t --table "$line"
test $(judge /dev/mapper/t 0 2048) = 0
test "$(field lost t)" = 0
dmsetup remove t flaky
mtftl check /dev/nullb1
