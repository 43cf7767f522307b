#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The checkpoint after a crash cannot be written; then the device recovers, and the same table is
# resumed.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
flaky_is 0
line=$(table /dev/mapper/flaky lanes 2)
dmsetup create t --table "$line"
verify /dev/mapper/t --size=64M --io_size=96M --do_verify=1 --end_fsync=1
flaky_is 3600 error_writes
dmsetup remove t
dmsetup create t --notable
dmsetup load t --table "$line"
for turn in 1 2; do
	fails dmsetup resume t
done
flaky_is 0
dmsetup resume t
verify /dev/mapper/t --size=64M --io_size=96M --verify_only=1
verify /dev/mapper/t --size=64M --io_size=96M --randseed=2 --do_verify=1
test "$(field write_errors t)" = 0
dmsetup remove t flaky
mtftl check /dev/nullb0
