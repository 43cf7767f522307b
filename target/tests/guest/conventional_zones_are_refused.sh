#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A conventional zone's write pointer means nothing.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
line=$(table /dev/nullb0)
dd if=/dev/nullb0 of=record bs=4k count=1 iflag=direct status=none
null nullb1 size=64 zone_nr_conv=4
dd if=record of=/dev/nullb1 bs=4k oflag=direct status=none
fails timeout 20 dmsetup create t --table "${line/nullb0/nullb1}"
dmesg | grep 'Device has conventional zones, expected sequential ones only'
