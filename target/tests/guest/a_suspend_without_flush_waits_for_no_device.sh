#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The drive hangs: writes, flushes and discards that wait go back to device-mapper, until the
# resume.
#
# clock: virtual
# cpus: 2
# profile: none
# timeout: 600

set -e
. ./guest.sh

null nullb0 size=160
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create layer --table "0 $(cat /sys/class/block/nullb0/size) linear /dev/nullb0 0"
dmsetup create t --table "$(table /dev/mapper/layer lanes 2)"
for turn in 1 2 3; do
	verify /dev/mapper/t --size=32M --io_size=16M --randseed=$turn --do_verify=0 --fsync=100 --rate_iops=500 &
	job=$!
	fio --name=discards --filename=/dev/mapper/t --offset=40M --size=8M --rw=randtrim --bs=4k --direct=1 \
		--io_size=32M --output=discards.log --eta=never &
	discards=$!
	usleep 700000
	dmsetup suspend --nolockfs --noflush layer
	dd if=/dev/zero of=/dev/mapper/t bs=64k count=100 seek=800 oflag=direct conv=fsync status=none &
	writer=$!
	# Until the buffers are full, and the flush and both jobs wait.
	for i in $(seq 100); do usleep 20000; done
	echo "suspend $turn"
	timeout 20 dmsetup suspend --nolockfs --noflush t
	echo "done $turn"
	dmsetup resume layer
	dmsetup resume t
	wait $writer
	wait $discards
	wait $job
	verify /dev/mapper/t --size=32M --io_size=16M --randseed=$turn --verify_only=1
	test "$(field write_errors t)" = 0
done
dmsetup remove t
mtftl check /dev/mapper/layer
