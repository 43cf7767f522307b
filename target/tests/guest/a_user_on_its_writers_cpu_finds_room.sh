#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each user shares a CPU with the writer of its lane. The writer runs as soon as it is woken, before
# the buffer is full. If the writer waited for the end of the user's slice, one write of 320 or less
# would find no room.
#
# clock: virtual
# cpus: 8
# profile: dram

set -e
. ./guest.sh

mtftl format /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 8 buffer_entries 1024 write_unit 1)"
job --rw=randwrite --bs=4k --ioengine=psync --numjobs=8 --cpus_allowed=0-7 --cpus_allowed_policy=split \
	--time_based --runtime=30ms --size=512m
dmsetup status t
[ "$(field written t)" -gt 10000 ]
[ $(($(field waits t) * 400)) -lt "$(field written t)" ]
