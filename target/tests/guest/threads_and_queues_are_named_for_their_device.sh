#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each thread and each queue has its device's name in its own.
#
# clock: virtual
# cpus: 2
# profile: none
# judge: test_faults.py

set -e
. ./guest.sh

for i in 0 1; do
	null nullb$i size=64
	mtftl format --op 30% /dev/nullb$i > /dev/null
	dmsetup create t$i --table "$(table /dev/nullb$i lanes 2)"
done
names() { cat /proc/[0-9]*/comm | grep mtftl | sort; }
names
dmsetup remove t0
names | fails grep 'dm-0'
dmsetup remove t1
