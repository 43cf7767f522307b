#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# One bit of a block flips on the medium: GC sees it, and the block reads as an error; not as what
# it is now.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

for i in 0 1; do null nullb$i size=64; done
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
dmsetup remove t
layout=/dev/nullb0
copy /dev/nullb0 image
at=$(./blocks find image 950)
printf x | dd of=image bs=1 seek=$((at * 4096 + 2000)) conv=notrunc status=none
copy image /dev/nullb1
dmsetup create t --table "$(table /dev/nullb1 lanes 1)"
numbered 0 900 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
dmsetup message t 0 gc
until_true 10 gained
echo "lost $(field lost t)"
test "$(field lost t)" = 1
test $(judge /dev/mapper/t 0 2048) = 1
fails dd if=/dev/mapper/t of=/dev/null bs=4k skip=950 count=1 iflag=direct status=none
dmsetup remove t
mtftl check /dev/nullb1
