#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Both zones of the log turn read-only, and the device was not stopped: it mounts, read-only, with
# all its data.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --do_verify=1 --end_fsync=1
for zone in 0 1; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb0)"
dmsetup status t | grep 'mtftl read-only'
verify /dev/mapper/t --size=32M --verify_only=1
fails dd if=/dev/zero of=/dev/mapper/t bs=4k count=1 oflag=direct status=none
dmsetup suspend t
dmsetup resume t
verify /dev/mapper/t --size=32M --verify_only=1
dmsetup remove t
