#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A second device on the same flash would write to the same zones; a new table for the first one
# may.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
line=$(table /dev/nullb0)
dmsetup create t --table "$line"
fails dmsetup create u --table "$line"
dmesg | grep 'in use by another mtftl device, expected one for each device'
verify /dev/mapper/t --size=16M --do_verify=1
dmsetup load t --table "$line"
dmsetup resume t
verify /dev/mapper/t --size=16M --verify_only=1
dmsetup remove t
mtftl check /dev/nullb0
