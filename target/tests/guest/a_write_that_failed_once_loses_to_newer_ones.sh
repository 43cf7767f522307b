#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A write failed, and its unit waits for another place while the block is written again: the newer
# write is there after a power cut.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
holds redo
put 10000 0 64 ,fsync
become flakey /dev/nullb0 0 0 3600 1 error_writes
# In one bio, so that they are one unit: if several units failed in a row, no place would be sought any more.
numbered 20000 16 | dd of=/dev/mapper/t bs=64k count=1 iflag=fullblock oflag=direct status=none
until_true 10 is_held redo
become linear /dev/nullb0 0
echo > /sys/kernel/tracing/trace
put 0 0 16
until_true 10 saw 'completed: .* data .* status 0'
go redo
sync /dev/mapper/t
grep ' data ' /sys/kernel/tracing/trace
cut_power
test "$(judge /dev/mapper/t 0 16)" = 0
ends
