#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Users enter slowly, and zones that are reset want some of their blocks written: buffers are kept
# filled all the same.
#
# clock: virtual
# cpus: 4
# profile: tlc
# device: slow-to-erase
# timeout: 300

set -e
. ./guest.sh

mtftl format --op 25% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 buffer_entries 512 placement none)"
job --rw=write --bs=128k
job --rw=randwrite --bs=4k --io_size=$(($(blockdev --getsize64 /dev/mapper/t) / 2))
dmsetup message t 0 reset_stats
job --rw=randwrite --bs=4k --numjobs=4 --random_distribution=zipf:1.2 --time_based --runtime=1000ms
written=$(field written t) absorbed=$(field absorbed t)
echo "absorbed: $absorbed of $written"
test $((2 * absorbed)) -gt $written
dmsetup remove t
mtftl check /dev/nvme0n1
