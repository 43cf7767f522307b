#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A real-time task takes CPU 1 for itself while nothing is flushed: what waits in lane 1 goes on
# all the same.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small
# pull: job.json
# judge: test_flush.py

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
take_cpu
fio --name=job --filename=/dev/mapper/t --rw=write --bs=512k --direct=1 --ioengine=psync --size=64M --cpus_allowed=0 \
	--thinktime=25000 --output-format=json --output=job.json
return_cpu
dmsetup status t
test "$(field flushes t)" = 0
dmsetup remove t
