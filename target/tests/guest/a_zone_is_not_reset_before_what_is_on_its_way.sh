#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What is newer than its blocks left the buffers, and the device has not got it: a cut must find
# the old ones.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
put 0 0 480 ,fsync
put 64 64 100 ,fsync
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
holds submit
put 10000 0 1
until_true 10 is_held submit
dmsetup message t 0 gc
reset_begins $zone mtftl_flush_sync
cut_power
test "$(judge /dev/mapper/t 0 480)" = 0
ends
