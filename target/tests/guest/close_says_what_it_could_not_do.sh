#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What is lost for good only goes with --force: until then it can be read.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
flaky_is 0
# close_says PATTERN [OPTION]: status 8, one line
close_says() {
	local status=0
	mtftl close $2 t 2> said || status=$?
	cat said
	test $status = 8
	test $(wc -l < said) = 1
	grep -q "$1" said
}
# What is in block 0 is not on the drive.
refused() {
	close_says 't: not closed: what was written since the last flush cannot be made durable'
	dmsetup info t | grep -q 'State: *ACTIVE'
	test "$(dd if=/dev/mapper/t bs=4k count=1 iflag=direct status=none | tr -d '\0')" = "$1"
	close_says 't: closed, but what was written since the last flush is lost' --force
	fails dmsetup status t 2> /dev/null
}
put() { printf $1 | dd of=/dev/mapper/t bs=4k count=1 conv=sync oflag=direct iflag=fullblock status=none; }
echo what is buffered cannot be written
mtftl open /dev/mapper/flaky t
dd if=/dev/zero of=/dev/mapper/t bs=4k count=8 oflag=direct conv=fsync status=none
flaky_is 3600 error_writes
put first
refused first
flaky_is 0
mtftl open /dev/mapper/flaky t
mtftl close t 2>&1 | fails grep .

echo it was read-only before, with what was buffered
mtftl open /dev/mapper/flaky t
flaky_is 3600 error_writes
put second
fails sync /dev/mapper/t 2> /dev/null
dmsetup status t | grep -q 'mtftl read-only'
refused second
flaky_is 0
dmsetup remove flaky

echo all is on the drive, but the log cannot say so
mtftl open /dev/nullb0 t
dd if=/dev/zero of=/dev/mapper/t bs=4k count=8 oflag=direct conv=fsync status=none
for zone in 0 1; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
close_says 't: closed, with all data on /dev/nullb0, but the clean stop could not be written'
fails dmsetup status t 2> /dev/null
