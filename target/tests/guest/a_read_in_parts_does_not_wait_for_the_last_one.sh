#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A read of 512 parts, for which the caller plugs: each is at the drive before the next ones are
# made.
#
# clock: virtual
# cpus: 2
# profile: none
# pull: events
# judge: test_target.py

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
# Each block lies apart from its neighbours.
for first in 0 1; do
	fio --name=job --filename=/dev/mapper/t --direct=1 --rw=write:4k --bs=4k --offset=$((first * 4))k \
		--size=2M --io_size=1M --ioengine=psync --output=fio.log
done
sync /dev/mapper/t
trace=/sys/kernel/tracing
for event in block_getrq block_rq_issue; do echo 1 > $trace/events/block/$event/enable; done
dd if=/dev/mapper/t of=/dev/null bs=2M count=1 iflag=direct status=none
echo 0 > $trace/tracing_on
sed -nE 's/.*(getrq|issue): .* \+ ([0-9]+) .*/\1 \2/p' $trace/trace > events
dmsetup remove t
