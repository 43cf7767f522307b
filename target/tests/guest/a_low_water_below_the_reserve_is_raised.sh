#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# As `dmsetup table` gives it back, with more buffer_entries: GC begins before users have to wait.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 low_water 1)"
test "$(field low_water t)" -gt "$(field reserve t)"
verify /dev/mapper/t --size=100% --io_size=300M --do_verify=1
dmsetup remove t
