#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Units hold blocks of one class, and slots become free in order. A block that finds no company of
# its class holds up the slots behind it for a while only: no write waits for milliseconds.
#
# clock: virtual
# cpus: 8
# profile: dram
# cases: 1 4

set -e
. ./guest.sh

mtftl format /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 1 buffer_entries 128 write_unit 2)"
job --rw=randwrite --bs=4k --ioengine=psync --numjobs="$1" --time_based --runtime=30ms --size=512m
dmsetup status t
[ "$(field written t)" -gt 2000 ]
# In order: 0, 1, 2 to 3, ... microseconds. From 2048 on there are none.
dmsetup message t 0 latency | tee waited
read -r -a waited < waited
for long in "${waited[@]:13}"; do [ "$long" = 0 ]; done
