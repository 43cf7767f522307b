#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A real-time task takes CPU 1 for itself: lane 1's writer works elsewhere, and flushes end.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
for cpu in 1 2; do taskset $cpu dd if=/dev/zero of=/dev/mapper/t bs=4k count=300 oflag=direct status=none; done
sync /dev/mapper/t
# ten NAME: flushes that lane 1 has its part in, and the hundredths of a second that they took
ten() {
	local before
	before=$(hundredths)
	for i in 1 2 3 4 5 6 7 8 9 10; do
		taskset 1 dd if=/dev/zero of=/dev/mapper/t bs=4k seek=$((i * 300)) count=200 oflag=direct conv=fsync status=none
	done
	took=$(($(hundredths) - before))
	echo "ten flushes, $1: $took hundredths"
}
ten undisturbed
allowed=$((2 * took + 10))
take_cpu
ten "a CPU is taken"
return_cpu
test $took -le $allowed
dmsetup remove t
