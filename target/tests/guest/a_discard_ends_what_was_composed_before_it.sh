#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A discard waits for the map while its block is written. A reader that saw the block gone finds it
# gone after a power cut, too.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
put 10000 0 1 ,fsync
holds discard
blkdiscard -l 4k /dev/mapper/t &
until_true 10 is_held discard
put 20000 0 1 ,fsync
go discard
wait $!
sync /dev/mapper/t
cmp -n 4096 /dev/mapper/t /dev/zero
cut_power
cmp -n 4096 /dev/mapper/t /dev/zero
ends
