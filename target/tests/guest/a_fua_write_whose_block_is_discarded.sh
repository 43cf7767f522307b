#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The block of a FUA write is still buffered when a discard ends it. After the write, the version
# before must not return.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: fua

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
insmod ./fuawrite.ko
layered_units
fill_with 1 0 1 conv=fsync
dmsetup suspend --nolockfs --noflush layer
# More than are in flight at once; when the writer has sent what it can, the block.
fill_with x 8 48 conv=notrunc
usleep 50000
./fua /dev/mapper/t 0 1 1 1 &
job=$!
hangs $job
blkdiscard -f -l 4k /dev/mapper/t
dmsetup resume layer
wait $job
drop_writes
first_byte_is_zero
