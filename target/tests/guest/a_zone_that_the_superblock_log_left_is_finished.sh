#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A write to the log fails: it goes on in the other zone, and the device counts only one of them
# as active.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 zone_max_open=4 zone_max_active=4
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --io_size=48M --do_verify=1
# With the head of the log of map blocks, and one for data, three are taken; another head takes the fourth.
dmsetup message t 0 checkpoint
test "$(blkzone report /dev/nullb0 | grep -c '(oi)\|(oe)\|(cl)')" = 3
read -r start written condition < <(zones /dev/nullb0)
echo "+$((start + written))-8191" > /sys/kernel/config/nullb/nullb0/badblocks
dmsetup message t 0 checkpoint
# It takes writes again: null_blk's bad blocks cannot be read either, and that error is none of the medium's.
echo "-$((start + written))-8191" > /sys/kernel/config/nullb/nullb0/badblocks
test "$(blkzone report /dev/nullb0 | sed -n '1,2p' | grep -c '(oi)\|(oe)\|(cl)')" = 1
verify /dev/mapper/t --size=32M --io_size=48M --verify_only=1
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --io_size=48M --verify_only=1
dmsetup remove t
mtftl check /dev/nullb0
