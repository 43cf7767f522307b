#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# 128 MiB of buffers for two lanes on two nodes: half of it on each, wherever the table is loaded.
#
# clock: virtual
# cpus: 2
# memory_model: server2
# profile: none
# judge: test_target.py

set -e
. ./guest.sh

free() { awk '/MemFree/ {printf " %d", $4}' /sys/devices/system/node/node*/meminfo; }
null nullb0 size=2048
mtftl format --op 50% /dev/nullb0 > /dev/null
for cpu in 1 2; do
	before=$(free)
	taskset $cpu dmsetup create t --table "$(table /dev/nullb0 lanes 2 buffer_entries 32768)"
	echo taken $before $(free) $(field entries t)
	dmsetup remove t
done
