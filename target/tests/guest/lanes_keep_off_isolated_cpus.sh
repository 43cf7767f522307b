#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A CPU that is isolated, or without ticks, gets no lane and no writer; users there have one all
# the same.
#
# clock: virtual
# cpus: 4
# profile: tlc
# device: small
# append: isolcpus=1 nohz_full=3
# judge: test_flush.py

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
mtftl open /dev/nvme0n1 ftl
echo "lanes $(field lanes ftl)"
for task in /proc/[0-9]*; do
	case $(cat $task/comm 2> /dev/null) in
	mtftl/*) grep Cpus_allowed_list $task/status;;
	esac
done
taskset 0x8 dd if=/dev/urandom of=/dev/mapper/ftl bs=64k count=100 oflag=direct status=none
mtftl close ftl
