#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Such zones never become full by themselves, and the device counts them as active: none would be
# left for a mount.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: ragged
# timeout: 400

set -e
. ./guest.sh

active() { zones /dev/nvme0n1 | awk '$3 >= 2 && $3 <= 4' | wc -l; }
mtftl format --op 25% /dev/nvme0n1 > /dev/null
line=$(table /dev/nvme0n1 lanes 2)
dmsetup create t --table "$line"
for turn in 1 2 3; do
	verify /dev/mapper/t --size=100% --io_size=50M --randseed=$turn --do_verify=1 --end_fsync=1
	for i in $(seq 200); do dmsetup message t 0 checkpoint; done
	echo "$(active) active, $(field write_errors t) writes failed"
	test "$(field write_errors t)" = 0
	dmsetup status t | grep 'mtftl rw'
	flash 0x01 0
	dmsetup remove t
	flash 0x00 0
	echo /dev/nvme0n1 is back
	dmsetup create t --table "$line"
	verify /dev/mapper/t --size=100% --io_size=50M --randseed=$turn --verify_only=1
done
dmsetup remove t
mtftl check /dev/nvme0n1
