#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Zones full of valid data are no victims: users fill what is open, GC's zone too, instead of
# waiting for ever.
#
# With small buffers what is buffered makes too little garbage for a victim.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=96
for options in "lanes 2 buffer_entries 128" "lanes 1 buffer_entries 16"; do
	mtftl format --force --op 5% /dev/nullb0 > /dev/null
	dmsetup create t --table "$(table /dev/nullb0 $options)"
	dd if=/dev/zero of=/dev/mapper/t bs=1M oflag=direct status=none 2> /dev/null || true
	timeout 60 fio --name=job --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --io_size=8M --ioengine=psync \
		--randseed=3 --output=fio.log || { dmsetup status t; exit 1; }
	dmsetup remove t
	mtftl check /dev/nullb0
done
