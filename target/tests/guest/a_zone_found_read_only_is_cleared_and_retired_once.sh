#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A full zone turns read-only between two mounts: its blocks are moved, and it counts as bad once.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=64M --io_size=96M --do_verify=1
dmsetup remove t
zone=$(blkzone report /dev/nullb0 | grep -n '(fu)' | tail -1 | cut -d: -f1)
echo $(((zone - 1) * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly
dmsetup create t --table "$(table /dev/nullb0)"
wait_for 'bad 1'
wait_for 'gc idle'
verify /dev/mapper/t --size=64M --io_size=96M --verify_only=1
test "$(field victims t)" = 1
dmsetup remove t
