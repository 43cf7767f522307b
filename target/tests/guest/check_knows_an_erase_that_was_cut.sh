#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Units that read as zeroes while their footer is still there do no harm, unless one of their blocks
# is needed.
#
# clock: virtual
# cpus: 2
# profile: none
# cases: needed discarded

set -e
. ./guest.sh

for i in 0 1; do null nullb$i size=128; done
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
[ "$1" = needed ] || blkdiscard -l 8M /dev/mapper/t
dmsetup remove t
mtftl check /dev/nullb0
copy /dev/nullb0 image
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
dd if=/dev/zero of=image bs=4096 seek=$((zone * 1024 + 100)) count=500 conv=notrunc status=none
layout=/dev/nullb0
copy image /dev/nullb1
if [ "$1" = needed ]; then
	fails mtftl check /dev/nullb1
else
	mtftl check /dev/nullb1
fi
