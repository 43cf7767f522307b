#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Written more than once over, GC at work, read back; stopped, mounted again, read back.
#
# clock: wall
# cpus: 2
# profile: none
# timeout: 400
# kernels: 6.1 6.12 current

set -e
. ./guest.sh

count=0
# geometry DEVICE-WORDS OPTIONS: on a drive of its own
geometry() {
	local drive=nullb$count
	echo "geometry $count"
	null $drive size=64 $1
	mtftl format --op 30% /dev/$drive > /dev/null
	dmsetup create t --table "$(table /dev/$drive $2)"
	verify /dev/mapper/t --size=100% --io_size=45M --randseed=$count --do_verify=1
	dmsetup message t 0 checkpoint
	dmsetup remove t
	dmsetup create t --table "$(table /dev/$drive $2)"
	verify /dev/mapper/t --size=100% --io_size=45M --randseed=$count --verify_only=1
	test "$(field read_errors t)" = 0
	dmsetup remove t
	mtftl check /dev/$drive
	echo 0 > /sys/kernel/config/nullb/$drive/power
	count=$((count + 1))
}
geometry "" ""
geometry "" "append off"
geometry zone_capacity=3 ""
geometry "zone_max_open=4 zone_max_active=4" "lanes 8"
geometry "" "write_unit 1 lanes 2"
geometry blocksize=512 "gc_policy greedy placement none"
