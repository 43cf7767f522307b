#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# One writer cannot follow eight users. When it lets those in that wait, the next writes find room
# without its help: it inserts few of them.
#
# clock: virtual
# cpus: 8
# profile: dram

set -e
. ./guest.sh

mtftl format /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 1 buffer_entries 1024 write_unit 1)"
job --rw=randwrite --bs=4k --ioengine=psync --numjobs=8 --time_based --runtime=30ms --size=512m
dmsetup status t
[ "$(field waits t)" -gt 0 ]
[ $(($(field waits t) * 10)) -lt "$(field written t)" ]
