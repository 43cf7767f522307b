#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# One user on each CPU, more of them than a zone that comes back has parts: none goes short for
# another one.
#
# clock: virtual
# cpus: 8
# profile: tlc
# device: slow-to-erase
# timeout: 300
# judge: test_target.py

set -e
. ./guest.sh

mtftl format --op 25% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 buffer_entries 512)"
job --rw=write --bs=128k
job --rw=randwrite --bs=4k --io_size=$(($(blockdev --getsize64 /dev/mapper/t) / 2))
job --rw=randwrite --bs=4k --numjobs=8 --cpus_allowed=0-7 --cpus_allowed_policy=split \
	--ramp_time=200ms --time_based --runtime=1000ms --output-format=json
sed -n 's/.*"total_ios" : \([1-9][0-9]*\).*/user: \1 writes/p' fio.log
dmsetup remove t
mtftl check /dev/nvme0n1
