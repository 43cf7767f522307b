#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A reader has looked up where a block is, and the block is written anew: it reads the block, old or
# new.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
put 0 0 480 ,fsync
# Now the first two blocks are not read as one.
put 1 1 1 ,fsync
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
holds read
dd if=/dev/mapper/t of=got bs=8k count=1 iflag=direct status=none &
until_true 10 is_held read
put 10000 0 480 ,fsync
dmsetup message t 0 gc
reset_begins $zone synchronize_srcu
go read
wait $!
test "$(judge got 0 1)" = 0
until_true 10 saw "zone $zone resetting -> empty"
cut_power
ends
