#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The newest write is still buffered when a discard ends it: after the flush the one before must
# not return.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
layered_units
fill_with 1 0 1 conv=fsync
dmsetup suspend --nolockfs --noflush layer
# More than are in flight at once, then the block.
fill_with x 8 48 conv=notrunc
fill_with 2 0 1 conv=notrunc
sync /dev/mapper/t &
job=$!
hangs $job
blkdiscard -l 4k /dev/mapper/t
dmsetup resume layer
wait $job
drop_writes
first_byte_is_zero
