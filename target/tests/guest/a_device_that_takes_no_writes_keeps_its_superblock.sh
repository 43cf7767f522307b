#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Two lanes and the flusher meet a superblock log that cannot be written: none of them resets the
# last record.
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
for turn in 1 2 3; do
	dmsetup create t --table "$line"
	flaky_is 3600 error_writes
	for job in 1 2 3 4; do
		dd if=/dev/zero of=/dev/mapper/t bs=4k count=1 seek=$job oflag=direct conv=fsync status=none 2> /dev/null &
	done
	wait
	dmsetup remove t
	flaky_is 0
	test "$(table /dev/nullb0 lanes 2)" = "${line/mapper\/flaky/nullb0}"
done
dmsetup create t --table "$line"
verify /dev/mapper/t --size=16M --do_verify=1
dmsetup remove t
