#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# GC erases the zone of the discarded block while the discard is not listed yet: a cut must not
# lose the block.
#
# clock: virtual
# cpus: 4
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
put 0 0 480 ,fsync
put 20001 1 479 ,fsync
dmsetup message t 0 checkpoint
holds list
blkdiscard -l 4k /dev/mapper/t &
until_true 10 is_held list
dmsetup message t 0 gc
wait $!
cut_power
test "$(judge /dev/mapper/t 0 1)" = 0 || cmp -n 4096 /dev/mapper/t /dev/zero
ends
