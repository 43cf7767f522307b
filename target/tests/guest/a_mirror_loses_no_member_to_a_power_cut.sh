#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A power cut stops both drives of a RAID 1 at one instant: neither tells the other one's end, both
# are members afterwards, and what was synced is there.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small
# drives: 2
# packages: mdadm

set -e
. ./guest.sh

members 2
array 1 t0 t1
for turn in 1 2 3; do
	verify /dev/md0 --size=16M --io_size=24M --randseed=$turn --do_verify=0 --end_fsync=1
	fio --name=load --filename=/dev/md0 --direct=1 --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=16 \
		--offset=32M --size=32M --time_based --runtime=1h --output=load.log --eta=never &
	load=$!
	before=$(field written t1)
	more() { [ "$(field written t1)" -gt $((before + 1000)) ]; }
	until_true 60 more
	cut_machine
	wait $load || true
	mdadm --stop --quiet /dev/md0
	dmsetup remove t0
	dmsetup remove t1
	power_on
	open_members 2
	mdadm --assemble --run --quiet /dev/md0 /dev/mapper/t0 /dev/mapper/t1
	cat /proc/mdstat
	md_is UU
	until_true 60 grep -q idle /sys/block/md0/md/sync_action
	verify /dev/md0 --size=16M --io_size=24M --randseed=$turn --verify_only=1
	test "$(mismatches)" = 0
done
mdadm --stop --quiet /dev/md0
dmsetup remove t0
dmsetup remove t1
mtftl check /dev/nvme0n1
mtftl check /dev/nvme1n1
