#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The drive has a unit, and says that its write failed. The unit is written once more, with the same
# number. Whatever is written later is there after a power cut, whichever copy a mount finds first.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
put 10000 0 64 ,fsync
holds written
# In one bio, so that they are one unit.
numbered 20000 16 | dd of=/dev/mapper/t bs=64k count=1 iflag=fullblock oflag=direct conv=fsync,notrunc status=none
is_held written
test "$(field write_errors t)" = 1
until_true 10 saw 'completed: .* data .* status -5'
put 0 0 8 ,fsync
cut_power
test "$(judge /dev/mapper/t 0 8)" = 0
# The others are as the unit has them.
dd if=/dev/mapper/t bs=4k skip=8 count=8 iflag=direct status=none > found
numbered 20008 8 | cmp - found
test "$(field bad t)" = 0
for turn in 1 2 3 4 5 6; do put 0 0 4096 ,fsync; done
test "$(judge /dev/mapper/t 0 4096)" = 0
ends
